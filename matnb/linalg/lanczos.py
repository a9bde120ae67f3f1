"""Lanczos' recurrence: orthonormal vectors of a Krylov space, and a symmetric matrix as seen in them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, zeros
from matnb.lazy.functions.linear import norm
from matnb.lazy.loop import iterate, iteration
from matnb.lazy.random import Generator
from matnb.linalg.copies import ORDERS, searched
from matnb.linalg.operators import Apply
from matnb.linalg.orthogonal import against, check_magnitude, following

Floats = npt.NDArray[np.float64]


class Basis(NamedTuple):
    """Vectors V, the rows, and A in them: ``A V' = V' projected + rest next e'``, e the last unit vector.

    Attributes
    ----------
    vectors
        m x n, so that each vector lies in one piece; those that are not made yet are 0.
    projected
        V A V', m x m; of the new columns the upper triangle.
    next
        The unit vector that comes next, orthogonal to V.
    rest
        How far A V reaches out of what V spans.
    """

    vectors: DistArray
    projected: DistArray
    next: DistArray
    rest: DistArray


def extended(basis: Basis, apply: Apply, begin: DistArray, rng: Generator) -> Basis:
    """Return a basis with the vectors from ``begin`` on made.

    Of A v what Lanczos' recurrence says is taken away first, so that the orthogonalization against all
    vectors, those of a Krylov space or of a thick restart, seldom has to be done again.

    Parameters
    ----------
    basis
        With vectors from 0 to ``begin`` - 1.
    apply
        Records the product of A, symmetric, with a vector.
    begin
        A whole number without axes.
    rng
        Draws a direction where the basis spans an invariant subspace.
    """

    def add_vector(state: tuple[Basis, DistArray]) -> tuple[Basis, DistArray]:
        (V, projected, v, _), before = state
        j = begin + iteration()
        V[j] = v
        # Lanczos: w = A v - alpha v - beta before, and of that (1 - V' V) w
        w = apply(v)
        alpha, beta = v @ w, before @ w
        w = w - alpha * v - beta * before
        w, rest, along = against(V, w)
        place = arange(V.shape[0])
        along += alpha * (place == j) + beta * (place == j - 1)
        projected[:, j] = along
        return Basis(V, projected, following(V, w, rest, norm(along), rng), rest), v

    (made, _), _ = iterate(
        add_vector, (basis, zeros(basis.next.shape)), max_iterations=basis.projected.shape[0] - begin
    )
    return made


def num_kept_of(k: int, m: int, num_converged: int) -> int:
    """Return how many of m vectors a restart keeps.

    A pair that has converged gives its place in the search to the next one, as ARPACK has it, up to five of
    eight places; a quarter of them is kept in any case, since with k alone the search for few pairs loses
    what it found.

    Parameters
    ----------
    k
        How many pairs are wanted.
    m
        The vectors of the basis.
    num_converged
        How many of the pairs are near enough.
    """
    return max(k, min(k + min((m - k) // 4 + num_converged, 5 * (m - k) // 8), m - 1))


class Restart(NamedTuple):
    """What a restart goes on with, as the workers find it in the small matrix that they all have.

    Attributes
    ----------
    values, vectors
        k values t and m vectors y, those that are kept, of V' A V; they are t and V y of A, up to
        ``|A V y - V y t| = rest |last of y|``.
    projected, num_kept
        V' A V of those that are kept, and how many they are.
    residual, bounds, total, is_due
        As :func:`matnb.linalg.copies.searched` has them.
    """

    values: DistArray
    vectors: DistArray
    projected: DistArray
    num_kept: DistArray
    residual: DistArray
    bounds: DistArray
    total: DistArray
    is_due: DistArray


def rayleigh_ritz(
    projected: Floats, rest: Floats, before: Floats, k: int, which: str, tol: float
) -> tuple[Floats, Floats, Floats, int, float, Floats, float, bool]:
    """Return a :class:`Restart`; ``before`` is what of the search for copies is known."""
    if not np.isfinite(projected).all():
        raise OptionError(
            "eigsh: A or v0 has an element that is NaN or infinite, or one above 1e140, or v0 is 0"
        )
    m = len(projected)
    values, vectors = np.linalg.eigh(projected, UPLO="U")
    order = np.argsort(ORDERS[which](values), kind="stable")
    order[:k] = np.sort(order[:k])  # eigh's are ascending
    values, vectors = values[order], vectors[:, order]
    check_magnitude("eigsh", values)
    scale = max(np.abs(values).max(), np.finfo(float).tiny)
    residuals = np.abs(rest * vectors[-1, : k + 1]) / scale
    # What is kept for the next restart; the vectors after it are written anew.
    num_kept = num_kept_of(k, m, int(np.count_nonzero(residuals[:k] <= tol)))
    dropped = np.arange(m) >= num_kept
    T = np.diag(np.where(dropped, 0, values))
    found = searched(values[: k + 1], k, scale, residuals, tol, which, float(before))
    return values[:k], np.where(dropped, 0, vectors), T, num_kept, *found
