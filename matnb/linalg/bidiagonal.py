"""What LSQR and LSMR share: Golub and Kahan's bidiagonalization, and what they are given."""

from __future__ import annotations

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.linalg.operators import Operand, matrix_from, vector_from

Problem = tuple[DistArray, DistArray, DistArray]
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


def least_squares_from(
    algorithm: str, A: object, b: Operand, x0: Operand | None, numbers: tuple[float, float, float]
) -> Problem:
    """Return a matrix, a right side and a beginning that fit each other.

    Raises
    ------
    ShapeError, DTypeError
        For others, and for complex numbers.
    OptionError
        For a damping or a tolerance below 0.
    """
    matrix = matrix_from(algorithm, "A", A)
    right = vector_from(algorithm, "b", b)
    m, n = matrix.shape
    if right.shape != (m,):
        raise ShapeError(
            f"{algorithm}: b of shape {right.shape} for A of shape {matrix.shape}; give {m} numbers"
        )
    damp, atol, btol = numbers
    if not (damp >= 0 and atol >= 0 and btol >= 0):
        raise OptionError(f"{algorithm}: damp={damp}, atol={atol}, btol={btol}; give 0 or more")
    start = zeros(n) if x0 is None else vector_from(algorithm, "x0", x0)
    if start.shape != (n,):
        raise ShapeError(
            f"{algorithm}: x0 of shape {start.shape} for A of shape {matrix.shape}; give {n} numbers"
        )
    return matrix, right, start
