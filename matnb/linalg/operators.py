"""What solvers are given, looked at before anything is recorded: matrices, right sides, preconditioners."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.sparse.linalg import LinearOperator

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray

Apply = Callable[[DistArray], DistArray]
Operand = npt.ArrayLike | DistArray
REAL = (
    "real numbers only: scipy.sparse.linalg takes complex ones in this process, as in "
    "scipy.sparse.linalg.eigsh(A.to_scipy(), k=6); np.linalg.eigh and solve take dense ones to 64 MB"
)


def applied(algorithm: str, name: str, A: ArrayLike, n: int) -> Apply:
    """Return the product with a square matrix of n rows, or a function that gives it.

    Raises
    ------
    ShapeError
        For another shape.
    DTypeError
        For complex numbers.
    """
    if isinstance(A, LinearOperator):
        raise OptionError(
            f"{algorithm}: {name} is a LinearOperator, which computes in this process: give the "
            "matrix, or a function "
            "of a DistArray x that records the product"
        )
    if callable(A):
        return lambda x: _product_of(algorithm, name, A, x)
    matrix = matrix_from(algorithm, name, A)
    if matrix.shape != (n, n):
        raise ShapeError(f"{algorithm}: {name} of shape {matrix.shape} for {n} unknowns; give ({n}, {n})")
    return lambda x: matrix @ x


def _product_of(algorithm: str, name: str, A: Callable[[DistArray], object], x: DistArray) -> DistArray:
    product = A(x)
    if not isinstance(product, DistArray) or product.shape != x.shape:
        shape = f"shape {product.shape}" if isinstance(product, DistArray) else type(product).__name__
        raise ShapeError(f"{algorithm}: the function {name} gave {shape} for an x of shape {x.shape}")
    return product


def matrix_from(algorithm: str, name: str, A: ArrayLike) -> DistArray:
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
        raise DTypeError(f"{algorithm}: {name} of dtype {matrix.dtype}; {REAL}")
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
        raise DTypeError(f"{algorithm}: {name} of dtype {given.dtype}; {REAL}")
    return given.astype(np.float64)


def preconditioner(algorithm: str, M: ArrayLike, n: int) -> Apply:
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
