"""Some eigenvalues of a symmetric matrix: Lanczos' method with thick restarts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.functions.linear import norm, outer
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.ordering import argsort
from matnb.lazy.loop import converging, iterate, iteration
from matnb.lazy.random import Generator, default_rng
from matnb.linalg.operators import Apply, applied
from matnb.linalg.orthogonal import against, following

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
    sigma: float | None = None,
    OPinv: object = None,
    seed: int = 0,
) -> Eigenpairs:
    """Return k eigenvalues and eigenvectors of a symmetric matrix.

    Lanczos' method with full orthogonalization and thick restarts (Wu and Simon 2000, "Thick-Restart Lanczos
    Method for Large Symmetric Eigenvalue Problems"), on a basis of ``min(n, max(2 k + 8, 20))`` vectors.

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
    sigma
        Find the eigenvalues near this one instead: ``which`` is then of ``1 / (value - sigma)``, so that "LM"
        are the nearest ones, "LA" those above and "SA" those below.
    OPinv
        With sigma: a function of a DistArray x that records the solution of ``(A - sigma I) y = x``, or the
        inverse of this matrix as an array. ``lambda x: mn.linalg.minres(A, x, shift=sigma, rtol=1e-12).x`` is
        one; for a definite matrix :func:`matnb.linalg.cg` is another.
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
        For a k outside 1 to n, an unknown ``which``, or a sigma without OPinv.

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
    if (sigma is None) != (OPinv is None):
        raise OptionError("eigsh: sigma= and OPinv=, which solves with A - sigma I, are given together")
    apply = applied("eigsh", "A" if sigma is None else "OPinv", matrix if sigma is None else OPinv, n)
    m = min(n, max(2 * k + 8, 20))
    tol = max(tol, 1e-14)
    rng = default_rng(seed)
    first = rng.standard_normal(n) if v0 is None else asarray(v0).astype(np.float64)
    if first.shape != (n,):
        raise ShapeError(f"eigsh: v0 of shape {first.shape} for a matrix of {n} rows")

    def restart(state: _Restart) -> _Restart:
        basis = extended(state.basis, apply, state.num_kept, rng)
        values, Y, T, num_kept, residual = replicated(
            partial(_rayleigh_ritz, k=k, which=which, tol=tol), basis.projected, basis.rest
        )
        return _Restart(Basis(Y.T @ basis.vectors, T, basis.next, basis.rest), num_kept, values, residual)

    v = first / norm(first)
    start = Basis(outer(zeros(m), v), zeros((m, m)), v, asarray(0.0))
    state = _Restart(start, asarray(0), zeros(k), asarray(np.inf))
    found = iterate(restart, state, until=lambda old, new: new.residual <= tol, max_iterations=max_iterations)
    final, _ = converging("eigsh", found, "give a larger max_iterations, tol or k")
    values, vectors = final.values, final.basis.vectors[:k].T
    if sigma is None:
        return Eigenpairs(values, vectors)
    values = sigma + 1 / values
    order = argsort(values)
    return Eigenpairs(values[order], vectors[:, order])


def num_kept_of(k: int, m: int, num_converged: int) -> int:
    """Return how many of m vectors a restart keeps.

    A pair that has converged gives its place in the search to the next one, as ARPACK has it; a quarter of
    the others is kept in any case, since with k alone the search for few pairs loses what it found.

    Parameters
    ----------
    k
        How many pairs are wanted.
    m
        The vectors of the basis.
    num_converged
        How many of the pairs are near enough.
    """
    return max(k, min(k + max((m - k) // 4, min(num_converged, (m - k) // 2)), m - 1))


def _rayleigh_ritz(
    projected: Floats, rest: Floats, k: int, which: str, tol: float
) -> tuple[Floats, Floats, Floats, int, Floats]:
    # The eigenpairs (t, y) of V' A V give those of A, t and V y, up to |A V y - V y t| = rest |last of y|.
    m = len(projected)
    values, vectors = np.linalg.eigh(projected, UPLO="U")
    order = np.argsort(_ORDERS[which](values), kind="stable")
    order[:k] = np.sort(order[:k])  # eigh's are ascending
    values, vectors = values[order], vectors[:, order]
    residuals = np.abs(rest * vectors[-1, :k]) / max(np.abs(values).max(), np.finfo(float).tiny)
    # What is kept for the next restart; the vectors after it are written anew.
    num_kept = num_kept_of(k, m, int(np.count_nonzero(residuals <= tol)))
    dropped = np.arange(m) >= num_kept
    T = np.diag(np.where(dropped, 0, values))
    return values[:k], np.where(dropped, 0, vectors), T, num_kept, residuals.max()


# Lanczos' recurrence: orthonormal vectors of a Krylov space, and a symmetric matrix as seen in them.


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
