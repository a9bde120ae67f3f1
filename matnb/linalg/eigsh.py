"""Some eigenvalues of a symmetric matrix: Lanczos' method with thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, zeros
from matnb.lazy.functions.linear import norm
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.loop import cond, iterate, iteration
from matnb.lazy.random import Generator, default_rng

Floats = npt.NDArray[np.float64]
_ORDERS: dict[str, Callable[[Floats], Floats]] = {
    "LM": lambda values: -abs(values),
    "LA": np.negative,
    "SA": np.positive,
}


class Eigenpairs(NamedTuple):
    """What :func:`eigsh` gives."""

    values: DistArray
    vectors: DistArray


class _Restart(NamedTuple):
    basis: Basis
    num_kept: DistArray
    values: DistArray
    residual: DistArray


def eigsh(
    A: object,
    k: int = 6,
    which: str = "LM",
    tol: float = 1e-10,
    max_iterations: int = 300,
    v0: npt.ArrayLike | DistArray | None = None,
    seed: int = 0,
) -> Eigenpairs:
    """Return k eigenvalues and eigenvectors of a symmetric matrix.

    Lanczos' method with full orthogonalization, done twice, and thick restarts (Wu and Simon 2000,
    "Thick-Restart Lanczos Method for Large Symmetric Eigenvalue Problems"), on a basis of
    ``min(n, max(2 k + 1, 20))`` vectors.

    Parameters
    ----------
    A
        n x n, sparse or dense, real and symmetric, which is not checked.
    k
        How many, 1 to n.
    which
        "LM" the largest in magnitude, "LA" the largest, "SA" the smallest.
    tol
        It ends when ``|A v - v value|`` is at most this times the largest magnitude of an eigenvalue of A,
        for each pair; below 1e-14 is not reached, and taken for that. Errors of values are about its square.
    max_iterations
        The most restarts; where they do not suffice the pairs are as good as they have become.
    v0
        First vector, n numbers; drawn when left out.
    seed
        Of the draws.

    Returns
    -------
    Eigenpairs
        ``values``, float64 of shape (k,), ascending; ``vectors``, float64 of shape (n, k), whose columns
        are orthonormal.

    Raises
    ------
    ShapeError
        When A is not square or v0 has another length.
    DTypeError
        For a complex matrix.
    OptionError
        For a k outside 1 to n, or an unknown ``which``.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.diags_array([5.0, 1.0, 4.0, 3.0]).tocsr()
    >>> values, vectors = mn.linalg.eigsh(A, k=2)
    >>> values.compute().round(6)
    array([4., 5.])
    """
    matrix = asarray(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"eigsh of shape {matrix.shape}: give a square matrix")
    if matrix.dtype.kind == "c":
        raise DTypeError(f"eigsh of dtype {matrix.dtype}: real matrices only")
    n = matrix.shape[0]
    if not 1 <= k <= n:
        raise OptionError(f"eigsh: k={k} eigenvalues of a matrix of {n} rows; give 1 to {n}")
    if which not in _ORDERS:
        raise OptionError(f"eigsh: which={which!r}; known: {', '.join(_ORDERS)}; the others need a solve")
    m = min(n, max(2 * k + 1, 20))
    rng = default_rng(seed)
    first = rng.standard_normal(n) if v0 is None else asarray(v0).astype(np.float64)
    if first.shape != (n,):
        raise ShapeError(f"eigsh: v0 of shape {first.shape} for a matrix of {n} rows")

    def restart(state: _Restart) -> _Restart:
        basis = extended(state.basis, matrix, state.num_kept, rng)
        values, Y, T, residual = replicated(
            partial(_rayleigh_ritz, k=k, which=which), basis.projected, basis.rest
        )
        kept = Basis(basis.vectors @ Y, T, basis.next, basis.rest)
        return _Restart(kept, asarray(_num_kept(k, m)), values, residual)

    start = Basis(zeros((n, m)), zeros((m, m)), first / norm(first), asarray(0.0))
    state = _Restart(start, asarray(0), zeros(k), asarray(np.inf))
    final, _ = iterate(
        restart, state, until=lambda old, new: new.residual <= max(tol, 1e-14), max_iterations=max_iterations
    )
    return Eigenpairs(final.values, final.basis.vectors[:, :k])


def _num_kept(k: int, m: int) -> int:
    return max(k, min(k + (m - k) // 2, m - 1))


def _rayleigh_ritz(
    projected: Floats, rest: Floats, k: int, which: str
) -> tuple[Floats, Floats, Floats, Floats]:
    # The eigenpairs (t, y) of V' A V give those of A, t and V y, up to |A V y - V y t| = rest |last of y|.
    m = len(projected)
    values, vectors = np.linalg.eigh(projected, UPLO="U")
    order = np.argsort(_ORDERS[which](values), kind="stable")
    order[:k] = np.sort(order[:k])  # eigh's are ascending
    values, vectors = values[order], vectors[:, order]
    residual = np.abs(rest * vectors[-1, :k]).max() / max(np.abs(values).max(), np.finfo(float).tiny)
    # What is kept for the next restart; the columns after it are written anew.
    dropped = np.arange(m) >= _num_kept(k, m)
    return values[:k], np.where(dropped, 0, vectors), np.diag(np.where(dropped, 0, values)), residual


# Lanczos' recurrence: orthonormal vectors of a Krylov space, and a symmetric matrix as seen in them.

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
