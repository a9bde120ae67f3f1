"""What solvers are given, looked at before anything is recorded: matrices, right sides, preconditioners."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm

Apply = Callable[[DistArray], DistArray]
Operand = npt.ArrayLike | DistArray


LONGER_OR_NEARER = "give a larger maxiter or rtol, or a preconditioner M"  # where a solver does not end


class Solution(NamedTuple):
    """A solution as SciPy returns it.

    Attributes
    ----------
    x
        float64 of shape (n,): the solution, or the best so far.
    info
        int64, without axes: 0 where the tolerance was reached, else the number of iterations taken.
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
    A: object,
    b: Operand,
    x0: Operand | None,
    M: object,
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
        raise ShapeError(f"{algorithm}: x0 of shape {start.shape} for b of shape {right.shape}")
    reached = norm(right) * rtol
    return System(
        applied(algorithm, "A", A, n),
        preconditioner(algorithm, M, n),
        right,
        start,
        where(reached > atol, reached, atol),
        10 * n if max_iterations is None else max_iterations,
    )


def applied(algorithm: str, name: str, A: object, n: int) -> Apply:
    """Return the product with a square matrix of n rows, or a function that gives it.

    Raises
    ------
    ShapeError
        For another shape.
    DTypeError
        For complex numbers.
    """
    if callable(A):
        return A
    matrix = matrix_from(algorithm, name, A)
    if matrix.shape != (n, n):
        raise ShapeError(f"{algorithm}: {name} of shape {matrix.shape} for {n} unknowns; give ({n}, {n})")
    return lambda x: matrix @ x


def matrix_from(algorithm: str, name: str, A: object) -> DistArray:
    """Return a real matrix, sparse or dense.

    Raises
    ------
    ShapeError
        For what has no two axes.
    DTypeError
        For complex numbers.
    """
    matrix = asarray(A)
    if matrix.ndim != 2:
        raise ShapeError(f"{algorithm}: {name} of shape {matrix.shape}; give a matrix")
    if matrix.dtype.kind == "c":
        raise DTypeError(f"{algorithm}: {name} of dtype {matrix.dtype}; real matrices only")
    return matrix


def vector_from(algorithm: str, name: str, values: Operand) -> DistArray:
    """Return a real vector as float64; one of shape (n, 1) is taken as one, as SciPy does.

    Raises
    ------
    ShapeError
        For another shape.
    DTypeError
        For complex numbers.
    """
    given = asarray(values)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given.reshape(-1)
    if given.ndim != 1:
        raise ShapeError(f"{algorithm}: {name} of shape {given.shape}; give a vector")
    if given.dtype.kind == "c":
        raise DTypeError(f"{algorithm}: {name} of dtype {given.dtype}; real numbers only")
    return given.astype(np.float64)


def preconditioner(algorithm: str, M: object, n: int) -> Apply:
    """Return the product with what is near the inverse of a matrix of n rows.

    Parameters
    ----------
    algorithm
        What the user called.
    M
        None, n numbers for a diagonal matrix, n x n, or a function.
    n
        Its rows.
    """
    if M is None:
        return lambda r: r
    if not callable(M):
        given = asarray(M)
        if given.shape == (n,):  # a diagonal, as of Jacobi's
            return lambda r: (given if r.ndim == 1 else given[:, None]) * r
    return applied(algorithm, "M", M, n)
