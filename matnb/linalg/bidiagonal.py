"""Golub and Kahan's bidiagonalization: step by step, and with all vectors kept and thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import converging, iterate, iteration
from matnb.lazy.random import Generator
from matnb.linalg.lanczos import num_kept_of
from matnb.linalg.orthogonal import against, following

Floats = npt.NDArray[np.float64]
Apply = Callable[[DistArray], DistArray]
Pair = tuple[DistArray, DistArray, DistArray, DistArray]


def bidiagonal(matrix: DistArray, u: DistArray, before: DistArray | None = None) -> Pair:
    """Return the next pair of vectors, each a unit vector or 0, with their lengths: u, beta, v, alpha.

    Parameters
    ----------
    matrix
        A, m x n.
    u
        ``A v - alpha u`` of the pair before, or the right side.
    before
        Its v.
    """
    beta = norm(u)
    u = u / not_0(beta)
    v = matrix.T @ u
    if before is not None:
        v = v - beta * before
    alpha = norm(v)
    return u, beta, v / not_0(alpha), alpha


def not_0(value: DistArray) -> DistArray:
    """Return a number by which can be divided: 1 for 0."""
    return where(value > 0, value, 1.0)


class _Bases(NamedTuple):
    # A right' = left' seen, and A' left' = right' seen' + rest next e', e the last unit vector.
    left: DistArray
    right: DistArray
    seen: DistArray
    next: DistArray
    rest: DistArray


class _Bidiagonalization(NamedTuple):
    bases: _Bases
    num_kept: DistArray
    values: DistArray
    residual: DistArray


def largest_triplets(
    shape: tuple[int, ...], products: tuple[Apply, Apply], k: int, tol: float, most: int, rng: Generator
) -> Pair:
    """Return the k largest singular values of a matrix: u, s descending, vh, and the number of restarts.

    Parameters
    ----------
    shape
        m x n.
    products
        Record the products of a vector with the matrix, and with its transpose.
    k, tol, most
        As in :func:`matnb.linalg.svds`.
    rng
        Draws where to begin.
    """
    m, n = shape
    size = min(m, n, max(2 * k + 8, 20))

    def restart(state: _Bidiagonalization) -> _Bidiagonalization:
        bases = _extended(state.bases, products, state.num_kept, rng)
        values, X, Y, kept, num_kept, residual = replicated(
            partial(_triplets, k=k, tol=tol), bases.seen, bases.rest
        )
        new = _Bases(X.T @ bases.left, Y.T @ bases.right, kept, bases.next, bases.rest)
        return _Bidiagonalization(new, num_kept, values, residual)

    first = rng.standard_normal(n)
    bases = _Bases(zeros((size, m)), zeros((size, n)), zeros((size, size)), first / norm(first), asarray(0.0))
    found = iterate(
        restart,
        _Bidiagonalization(bases, asarray(0), zeros(k), asarray(np.inf)),
        until=lambda old, new: new.residual <= tol,
        max_iterations=most,
    )
    final, taken = converging("svds", found, "give a larger max_iterations, tol or k")
    return final.bases.left[:k].T, final.values, final.bases.right[:k], taken


def _extended(bases: _Bases, products: tuple[Apply, Apply], begin: DistArray, rng: Generator) -> _Bases:
    forward, backward = products

    def add_vectors(state: _Bases) -> _Bases:
        left, right, seen, v, _ = state
        j = begin + iteration()
        right[j] = v
        u, size, along = against(left, forward(v))
        u = following(left, u, size, norm(along), rng)
        left[j] = u
        seen[:, j] = along
        seen[j, j] = size
        w, rest, back = against(right, backward(u))
        return _Bases(left, right, seen, following(right, w, rest, norm(back), rng), rest)

    made, _ = iterate(add_vectors, bases, max_iterations=bases.seen.shape[0] - begin)
    return made


def _triplets(
    seen: Floats, rest: Floats, k: int, tol: float
) -> tuple[Floats, Floats, Floats, Floats, int, Floats]:
    # The triplets of A as seen give those of A up to |A' u - s v| = rest |last of x|.
    if not np.isfinite(seen).all():
        raise OptionError("svds: A has an element that is NaN or infinite")
    m = len(seen)
    X, values, Yt = np.linalg.svd(seen)
    residuals = np.abs(rest * X[-1, :k]) / max(values[0], np.finfo(float).tiny)
    num_kept = num_kept_of(k, m, int(np.count_nonzero(residuals <= tol)))
    dropped = np.arange(m) >= num_kept
    kept = np.diag(np.where(dropped, 0, values))
    return values[:k], np.where(dropped, 0, X), np.where(dropped, 0, Yt.T), kept, num_kept, residuals.max()
