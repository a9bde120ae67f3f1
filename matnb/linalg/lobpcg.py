"""Some eigenvalues of a symmetric matrix from given vectors: LOBPCG."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.shaping import concatenate
from matnb.lazy.loop import converging, iterate
from matnb.linalg.eigsh import Eigenpairs
from matnb.linalg.operators import Operand, matrix_from, preconditioner

Floats = npt.NDArray[np.float64]


class _State(NamedTuple):
    X: DistArray
    P: DistArray
    values: DistArray
    residual: DistArray


def lobpcg(
    A: ArrayLike,
    X: Operand,
    M: ArrayLike = None,
    tol: float | None = None,
    maxiter: int | None = 20,
    largest: bool = True,
) -> Eigenpairs:
    """Return the extreme eigenvalues and eigenvectors of a symmetric matrix by LOBPCG.

    Knyazev 2001, "Toward the Optimal Preconditioned Eigensolver: Locally Optimal Block Preconditioned
    Conjugate Gradient Method"; with the arguments and results of ``scipy.sparse.linalg.lobpcg``. The three
    blocks of a step are orthonormalized by the eigenvectors of their Gram matrix, without those that are due
    to rounding (Duersch, Shao, Yang and Gu 2018, "A Robust and Efficient Implementation of LOBPCG").

    Parameters
    ----------
    A
        n x n, sparse or dense, real; symmetry is not checked.
    X
        n x k initial guess for the k eigenvectors; k is at most n / 3.
    M
        A preconditioner that approximates the inverse of A: n x n, or n numbers for a diagonal one, or a
        function of a matrix whose columns it is applied to.
    tol
        Stop when the norm of ``A x - value x`` is at most this for each pair; by default sqrt(eps) n, as in
        SciPy.
    maxiter
        Maximum number of iterations.
    largest
        True for the largest eigenvalues, False for the smallest.

    Returns
    -------
    Eigenpairs
        ``values``, float64 of shape (k,), starting with the largest or smallest; ``vectors``, n x k, whose
        columns are orthonormal.

    Raises
    ------
    ShapeError, DTypeError, OptionError
        For arguments of inconsistent shapes, complex numbers, too many vectors, a negative tolerance.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp, matnb as mn
    >>> A = sp.diags_array(np.arange(1.0, 51.0)).tocsr()
    >>> X = np.random.default_rng(0).random((50, 2))
    >>> mn.linalg.lobpcg(A, X, tol=1e-8, maxiter=200).values.compute().round(6)
    array([50., 49.])
    """
    matrix = matrix_from("lobpcg", "A", A)
    n = matrix.shape[0]
    first = matrix_from("lobpcg", "X", X).astype(np.float64)
    k = first.shape[1]
    if matrix.shape != (n, n) or first.shape[0] != n:
        raise ShapeError(f"lobpcg: X of shape {first.shape} for A of shape {matrix.shape}")
    if not 1 <= k <= n // 3:
        raise OptionError(f"lobpcg: {k} vectors for a matrix of {n} rows; give 1 to {n // 3}, else eigh")
    if tol is not None and not tol >= 0:
        raise OptionError(f"lobpcg: tol={tol}; give 0 or more")
    limit = n * np.finfo(float).eps ** 0.5 if tol is None else tol
    apply = preconditioner("lobpcg", M, n)
    find = partial(_rayleigh_ritz, k=k, sign=-1.0 if largest else 1.0)

    def step(state: _State) -> _State:
        X, P, values, _ = state
        AX = matrix @ X
        R = apply(AX - X * values)
        S = concatenate([X, R, P], axis=1)
        AS = concatenate([AX, matrix @ concatenate([R, P], axis=1)], axis=1)
        values, C = replicated(find, S.T @ S, S.T @ AS, like=(np.zeros(k), np.zeros((3 * k, k))))
        new = S @ C
        rest = AS @ C - new * values
        # The part of the step that X has no share in is the direction of the next one.
        return _State(new, S[:, k:] @ C[k:], values, np.sqrt((rest**2).sum(axis=0)).max())

    projected = first.T @ (matrix @ first)
    values, C = replicated(find, first.T @ first, projected, like=(np.zeros(k), np.zeros((k, k))))
    start = _State(first @ C, zeros((n, k)), values, asarray(np.inf))
    most = 20 if maxiter is None else maxiter
    found = iterate(step, start, until=lambda old, new: new.residual <= limit, max_iterations=most)
    final, _ = converging("lobpcg", found, "give a larger maxiter or tol, or a preconditioner M")
    return Eigenpairs(final.values, final.X)


def _rayleigh_ritz(gram: Floats, projected: Floats, k: int, sign: float) -> tuple[Floats, Floats]:
    if not np.isfinite(gram).all() or not np.isfinite(projected).all():
        raise OptionError("lobpcg: A or X has an element that is NaN or infinite")
    # Columns of norm 1, an orthonormal basis of what they span, and the pairs of A as seen in it.
    scale = np.diag(gram) ** 0.5
    scale = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 0)
    gram = gram * scale[:, None] * scale
    weights, vectors = np.linalg.eigh((gram + gram.T) / 2)
    stays = weights > 1e-13 * len(weights) * max(weights[-1], 0.0)
    if np.count_nonzero(stays) < k:
        raise OptionError(
            "lobpcg: the columns of X are linearly dependent or contain NaN; give linearly independent "
            "columns"
        )
    basis = scale[:, None] * (vectors[:, stays] / np.sqrt(weights[stays]))
    seen = basis.T @ ((projected + projected.T) / 2) @ basis
    values, inner = np.linalg.eigh((seen + seen.T) / 2 * sign)
    return sign * values[:k], basis @ inner[:, :k]
