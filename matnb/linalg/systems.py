"""Systems that solvers are given, whose parts fit each other, and what solvers return."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm
from matnb.linalg.operators import Apply, Operand, applied, matrix_from, preconditioner, vector_from
from matnb.tables.results import shows

Problem = tuple[DistArray, DistArray, DistArray]
LONGER_OR_NEARER = "give a larger maxiter or rtol, or a preconditioner M"  # where a solver does not end


@shows(info="info")
@has_fields
class Solution(NamedTuple):
    """The solution of a linear system, as SciPy returns it.

    Attributes
    ----------
    x
        float64 of shape (n,): the solution, or the last iterate.
    info
        int64 scalar: 0 if the tolerance was reached, else the number of iterations taken.
    """

    x: DistArray
    info: DistArray


class System(NamedTuple):
    """A square system: its matrix and preconditioner as functions, its right side, where to begin."""

    apply: Apply
    precondition: Apply
    b: DistArray
    x0: DistArray
    limit: DistArray
    max_iterations: int

    def iterations_from(self, residual: DistArray) -> DistArray:
        """Return how many iterations may be taken: none where the beginning is near enough."""
        return where(norm(residual) <= self.limit, 0, self.max_iterations)

    def solution(self, x: DistArray, residual: DistArray, num_iterations: DistArray) -> Solution:
        """Return what SciPy does; ``residual`` is its norm."""
        return Solution(x, where(residual <= self.limit, 0, num_iterations))


def system_from(
    algorithm: str,
    A: ArrayLike,
    b: Operand,
    x0: Operand | None,
    M: ArrayLike,
    tolerances: tuple[float, float],
    max_iterations: int | None,
) -> System:
    """Return a system whose parts fit each other.

    Raises
    ------
    ShapeError
        For a matrix that is not square, or vectors of another length.
    DTypeError
        For complex numbers.
    OptionError
        For a tolerance that is negative, or a number of iterations below 0.
    """
    right = vector_from(algorithm, "b", b)
    n = right.shape[0]
    rtol, atol = tolerances
    if not (rtol >= 0 and atol >= 0):
        raise OptionError(f"{algorithm}: rtol={rtol}, atol={atol}; give 0 or more")
    if max_iterations is not None and max_iterations < 0:
        raise OptionError(f"{algorithm}: maxiter={max_iterations}; give 0 or more")
    start = zeros(n) if x0 is None else vector_from(algorithm, "x0", x0)
    if start.shape != right.shape:
        raise ShapeError(
            f"{algorithm}: x0 has shape {start.shape} and b has shape {right.shape}: they must be the same"
        )
    reached = norm(right) * rtol
    reached = where(reached < np.inf, reached, np.nan)  # nothing is near an infinite right side
    return System(
        applied(algorithm, "A", A, n),
        preconditioner(algorithm, M, n),
        right,
        start,
        where(reached < atol, atol, reached),
        10 * n if max_iterations is None else max_iterations,
    )


def least_squares_from(
    algorithm: str, A: ArrayLike, b: Operand, x0: Operand | None, numbers: tuple[float, float, float]
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
