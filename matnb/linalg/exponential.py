"""The exponential of a matrix times vectors."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, eye
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.labels import check_one_set
from matnb.lazy.loop import iterate, iteration
from matnb.linalg.operators import Operand, matrix_from

_MOST_TERMS, _NORM = 55, 9.9  # table 3.1 of the source: of this norm so many terms are exact to rounding
_MOST_PARTS = 1e7  # hours even for the smallest matrix


def expm_multiply(A: ArrayLike, B: Operand) -> DistArray:
    """Return ``expm(A) @ B`` without computing the matrix exponential.

    Al-Mohy and Higham 2011, "Computing the Action of the Matrix Exponential, with an Application to
    Exponential Integrators", algorithm 3.2: A is shifted by its mean eigenvalue and scaled by an integer s,
    and s truncated Taylor series are applied one after the other. Equivalent to SciPy's ``expm_multiply``.

    Parameters
    ----------
    A
        n x n, sparse or dense, real.
    B
        Of shape (n,) or n x k, real.

    Returns
    -------
    DistArray
        float64, of the shape of B.

    Raises
    ------
    ShapeError, DTypeError
        For a matrix that is not square, a B that does not fit it, complex numbers.
    OptionError
        When computed, for an A with NaN or infinite elements, or with a 1-norm above 9.9e7, which would take
        hours.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, matnb as mn
    >>> A = sp.csr_array([[0.0, 1.0], [-1.0, 0.0]])
    >>> mn.linalg.expm_multiply(A * (np.pi / 2), [1.0, 0.0]).compute().round(6)
    array([ 0., -1.])
    """
    check_one_set(A, "expm_multiply")
    matrix = matrix_from("expm_multiply", "A", A).astype(np.float64)
    n = matrix.shape[0]
    if matrix.shape != (n, n):
        raise ShapeError(f"expm_multiply: A of shape {matrix.shape}; give a square matrix")
    start = asarray(B).astype(np.float64)
    if start.ndim not in (1, 2) or start.shape[0] != n:
        raise ShapeError(f"expm_multiply: B of shape {start.shape} for a matrix of {n} rows")
    mu = matrix.diagonal().sum() / max(n, 1)
    shifted = matrix - mu * eye(n)
    parts: DistArray = replicated(_num_parts, abs(shifted).sum(axis=0).max(initial=0.0), like=1.0)  # type: ignore[assignment]

    def size(values: DistArray) -> DistArray:
        return abs(values).max(initial=0.0)

    def add_term(state: tuple[DistArray, DistArray, DistArray]) -> tuple[DistArray, DistArray, DistArray]:
        total, term, _ = state
        following = (shifted @ term) / (parts * (iteration() + 1))
        return total + following, following, size(term)

    def step(total: DistArray) -> DistArray:
        (made, _, _), _ = iterate(
            add_term,
            (total, total, asarray(np.inf)),
            until=lambda old, new: new[2] + size(new[1]) <= 2.0**-53 * size(new[0]),
            max_iterations=_MOST_TERMS,
        )
        return np.exp(mu / parts) * made

    result, _ = iterate(step, start, max_iterations=parts.astype(np.int64))
    return result


def _num_parts(size: np.floating) -> float:
    if not np.isfinite(size):
        raise OptionError("expm_multiply: A has an element that is NaN or infinite")
    num_parts = float(max(np.ceil(size / _NORM), 1.0))
    if num_parts > _MOST_PARTS:
        raise OptionError(
            f"expm_multiply: A less its mean eigenvalue has 1-norm {size:.3g}, which takes {num_parts:.3g} "
            f"steps, above the limit of {_MOST_PARTS:.0e}; give a smaller A, such as A * t for a shorter time"
        )
    return num_parts
