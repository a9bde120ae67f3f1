"""Lanczos' recurrence: orthonormal vectors of a Krylov space, and a symmetric matrix as seen in them."""

from __future__ import annotations

from typing import NamedTuple

from matnb.lazy.array import DistArray
from matnb.lazy.branch import cond
from matnb.lazy.functions.norms import norm
from matnb.lazy.loop import iterate, iteration
from matnb.lazy.random import Generator

ROUNDING = 1e-13  # of a vector whose every part was taken away this share is left, or less


class Basis(NamedTuple):
    """Vectors V, the columns, and A in them: ``A V = V projected + rest next e'``, e the last unit vector.

    Attributes
    ----------
    vectors
        n x m; the columns that are not made yet are 0.
    projected
        V' A V, m x m; of the new columns the upper triangle.
    next
        The unit vector that comes next, orthogonal to V.
    rest
        How far A V reaches out of what V spans.
    """

    vectors: DistArray
    projected: DistArray
    next: DistArray
    rest: DistArray


def extended(basis: Basis, matrix: DistArray, begin: DistArray, rng: Generator) -> Basis:
    """Return a basis with the columns from ``begin`` on made.

    Every vector is made orthogonal to all before it, twice, which is enough (Parlett 1998, "The Symmetric
    Eigenvalue Problem", section 6.9). So the columns before may be of a Krylov space or of a thick restart.

    Parameters
    ----------
    basis
        With columns from 0 to ``begin`` - 1.
    matrix
        A, symmetric.
    begin
        A whole number without axes.
    rng
        Draws a direction where the basis spans an invariant subspace.
    """

    def add_column(basis: Basis) -> Basis:
        V, projected, v, _ = basis
        j = begin + iteration()
        V[:, j] = v
        # w = (1 - V V') A v
        w = matrix @ v
        along = V.T @ w
        w -= V @ along
        again = V.T @ w
        w -= V @ again
        projected[:, j] = along + again
        rest = norm(w)
        v = cond(rest > ROUNDING * norm(along), lambda: w / rest, lambda: _outside(V, rng))
        return Basis(V, projected, v, rest)

    made, _ = iterate(add_column, basis, max_iterations=basis.projected.shape[0] - begin)
    return made


def _outside(V: DistArray, rng: Generator) -> DistArray:
    direction = rng.standard_normal(V.shape[0])
    for _ in range(2):
        direction -= V @ (V.T @ direction)
    direction /= norm(direction)
    return direction
