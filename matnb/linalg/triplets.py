"""The largest singular triplets by Golub and Kahan's bidiagonalization with thick restarts."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import cond, converging, iterate, iteration
from matnb.lazy.random import Generator
from matnb.linalg.bidiagonal import Apply, Pair, bidiagonal_outside
from matnb.linalg.copies import NOT_YET, LanczosStep, copies_missing, searched
from matnb.linalg.lanczos import num_kept_of
from matnb.linalg.orthogonal import against, check_magnitude, following, outside

Floats = npt.NDArray[np.float64]


class _Bases(NamedTuple):
    # A right' = left' seen, and A' left' = right' seen' + rest next e', e the last unit vector.
    left: DistArray
    right: DistArray
    seen: DistArray
    next: DistArray
    rest: DistArray


class _BidiagonalSearch(NamedTuple):
    bases: _Bases
    num_kept: DistArray
    values: DistArray
    residual: DistArray
    before: DistArray  # what the search for copies has found: see copies.searched


class _BidiagonalRestart(NamedTuple):
    # As lanczos.Restart; what is left of the left and right vectors, and the matrix as seen in these.
    values: DistArray
    left: DistArray
    right: DistArray
    seen: DistArray
    num_kept: DistArray
    residual: DistArray
    bounds: DistArray
    total: DistArray
    is_due: DistArray


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

    def restart(state: _BidiagonalSearch) -> _BidiagonalSearch:
        bases = _extended(state.bases, products, state.num_kept, rng)
        found = _BidiagonalRestart(*replicated(
            partial(_triplets, k=k, tol=tol), bases.seen, bases.rest, state.before
        ))  # fmt: skip
        left, right = found.left.T @ bases.left, found.right.T @ bases.right
        new = _Bases(left, right, found.seen, bases.next, bases.rest)
        made = _BidiagonalSearch(new, found.num_kept, found.values, found.residual, state.before)
        if size == min(m, n):  # the bases are all there is
            return made
        return cond(found.is_due, lambda: with_copies(made, found), lambda: made)

    def with_copies(state: _BidiagonalSearch, found: _BidiagonalRestart) -> _BidiagonalSearch:
        bases, kept = state.bases, arange(size) < k
        known = bases.right[: num_kept_of(k, size, k)]
        start = outside(known, rng)
        goes_on, before = copies_missing(
            partial(bidiagonal_outside, known, products),
            LanczosStep(zeros(m), start, asarray(0.0), asarray(0.0)),
            found.bounds,
            found.total,
            size * most,
        )
        # The method goes on with the triplets found, and what is away from them from where that was met.
        left, right = (where(kept[:, None], one, 0.0) for one in (bases.left, bases.right))
        again = _Bases(left, right, where(kept, bases.seen, 0.0), start, asarray(0.0))
        return cond(
            goes_on,
            lambda: _BidiagonalSearch(again, asarray(k), state.values, asarray(np.inf), before),
            lambda: state,
        )

    first = rng.standard_normal(n)
    bases = _Bases(zeros((size, m)), zeros((size, n)), zeros((size, size)), first / norm(first), asarray(0.0))
    found = iterate(
        restart,
        _BidiagonalSearch(bases, asarray(0), zeros(k), asarray(np.inf), asarray(NOT_YET)),
        until=lambda old, new: new.residual <= tol,
        max_iterations=most,
    )
    final, taken = converging("svds", found, "give a larger max_iterations, tol or k")
    return final.bases.left[:k].T, final.values, final.bases.right[:k], taken


def _extended(bases: _Bases, products: tuple[Apply, Apply], begin: DistArray, rng: Generator) -> _Bases:
    # What the recurrence says is taken away first, so that the orthogonalization against all vectors seldom
    # has to be done again: A v = size u + rest before, A' u = size v + rest next.
    forward, backward = products

    def add_vectors(state: tuple[_Bases, DistArray, DistArray]) -> tuple[_Bases, DistArray, DistArray]:
        (left, right, seen, v, _), before, beta = state
        j = begin + iteration()
        right[j] = v
        u, size, along = against(left, forward(v) - beta * before)
        along += beta * (arange(left.shape[0]) == j - 1)
        u = following(left, u, size, norm(along), rng)
        left[j] = u
        seen[:, j] = along
        seen[j, j] = size
        w, rest, back = against(right, backward(u) - size * v)
        new = following(right, w, rest, size + norm(back), rng)
        return _Bases(left, right, seen, new, rest), u, rest

    start = (bases, zeros(bases.left.shape[1]), asarray(0.0))
    (made, _, _), _ = iterate(add_vectors, start, max_iterations=bases.seen.shape[0] - begin)
    return made


def _triplets(
    seen: Floats, rest: Floats, before: Floats, k: int, tol: float
) -> tuple[Floats, Floats, Floats, Floats, int, float, Floats, float, bool]:
    # The triplets of A as seen give those of A up to |A' u - s v| = rest |last of x|.
    if not np.isfinite(seen).all():
        raise OptionError("svds: A has an element that is NaN or infinite, or one above 1e140")
    m = len(seen)
    X, values, Yt = np.linalg.svd(seen)
    check_magnitude("svds", values)
    scale = max(values[0], np.finfo(float).tiny)
    residuals = np.abs(rest * X[-1, : k + 1]) / scale
    num_kept = num_kept_of(k, m, int(np.count_nonzero(residuals[:k] <= tol)))
    dropped = np.arange(m) >= num_kept
    kept = np.diag(np.where(dropped, 0, values))
    residual, bounds, total, is_due = searched(values[: k + 1], k, scale, residuals, tol, "LA", float(before))
    squares = np.copysign(bounds**2, bounds)  # the values of A' A
    return (
        values[:k],
        np.where(dropped, 0, X),
        np.where(dropped, 0, Yt.T),
        kept,
        num_kept,
        residual,
        squares,
        total,
        is_due,
    )
