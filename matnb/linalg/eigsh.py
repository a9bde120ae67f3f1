"""Some eigenvalues of a symmetric matrix: Lanczos' method with thick restarts."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import arange, asarray, zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.linear import norm, outer
from matnb.lazy.functions.mapping import replicated
from matnb.lazy.functions.ordering import argsort
from matnb.lazy.labels import check_one_set
from matnb.lazy.loop import cond, converging, iterate
from matnb.lazy.random import Generator, default_rng
from matnb.linalg.copies import NOT_YET, ORDERS, LanczosStep, copies_missing
from matnb.linalg.lanczos import Basis, Restart, extended, num_kept_of, rayleigh_ritz
from matnb.linalg.operators import REAL, Apply, applied
from matnb.linalg.orthogonal import outside
from matnb.tables.results import shows

Floats = npt.NDArray[np.float64]


@shows(values="spectrum")
@has_fields
class Eigenpairs(NamedTuple):
    """Result of :func:`eigsh`."""

    values: DistArray
    vectors: DistArray


class _EigenSearch(NamedTuple):
    basis: Basis
    num_kept: DistArray
    values: DistArray
    residual: DistArray
    before: DistArray  # what the search for copies has found: see copies.searched


def eigsh(
    A: ArrayLike,
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

    The Lanczos method with full orthogonalization and thick restarts (Wu and Simon 2000, "Thick-Restart
    Lanczos Method for Large Symmetric Eigenvalue Problems"), with a basis of ``min(n, max(2 k + 8, 20))``
    vectors.

    A multiple eigenvalue counts as often as it is there. One start vector finds one eigenvector of each, so
    after convergence a drawn one is searched for larger eigenvalues than the last of the k, away from those
    found, and if there are some, the method goes on with both. For a matrix without multiple eigenvalues that
    takes a tenth to a fifth as many products again, none for k=1. Eigenvalues nearer to each other than ten
    times ``tol`` count as equal.

    Parameters
    ----------
    A
        n x n, sparse or dense, real; symmetry is not checked.
    k
        Number of eigenvalues, 1 to n.
    which
        "LM" for the largest in magnitude, "LA" for the largest, "SA" for the smallest.
    tol
        Stop when ``|A v - v value|`` is at most this times the largest magnitude of an eigenvalue of A, for
        each pair; values below 1e-14 are treated as 1e-14. The relative errors of eigenvalues are about its
        square.
    max_iterations
        Maximum number of restarts; if it is reached, the current approximations are returned.
    v0
        Start vector, n numbers; by default random.
    sigma
        Shift-invert mode: find the eigenvalues near sigma. ``which`` then refers to ``1 / (value - sigma)``:
        "LM" are the nearest ones, "LA" those above and "SA" those below.
    OPinv
        With sigma: a function that returns the solution y of ``(A - sigma I) y = x`` for a DistArray x, or
        the inverse of that matrix as an array. ``lambda x: mn.linalg.minres(A, x, shift=sigma,
        rtol=1e-12).x`` is one; for a definite matrix :func:`matnb.linalg.cg` is another.
    seed
        Seed of random draws.

    Returns
    -------
    Eigenpairs
        ``values``, float64 of shape (k,), ascending; ``vectors``, float64 of shape (n, k), whose columns
        are orthonormal.

    Raises
    ------
    ShapeError
        If A is not square or v0 does not have n elements.
    DTypeError
        For a complex matrix.
    OptionError
        For a k outside 1 to n, an unknown ``which``, or a sigma without OPinv; when computed, for
        values above 0 and below 1e-140, or above 1e140.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> A = sp.diags_array([5.0, 1.0, 4.0, 3.0]).tocsr()
    >>> values, vectors = mn.linalg.eigsh(A, k=2)
    >>> values.compute().round(6)
    array([4., 5.])
    """
    check_one_set(A, "eigsh")
    matrix = asarray(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ShapeError(f"eigsh of shape {matrix.shape}: give a square matrix")
    if matrix.dtype.kind == "c":
        raise DTypeError(f"eigsh of dtype {matrix.dtype}; {REAL}")
    n = matrix.shape[0]
    if not 1 <= k <= n:
        raise OptionError(f"eigsh: k={k} eigenvalues of a matrix of {n} rows; give 1 to {n}")
    if which not in ORDERS:
        least = "; of the least of a Laplacian, and what has no negative ones, which='SA'" * (which == "SM")
        raise OptionError(
            f"eigsh: which={which!r}; {suggestion(which, ORDERS, 'without a solve there are')}{least}"
        )
    if (sigma is None) != (OPinv is None):
        raise OptionError(
            "eigsh: sigma= needs OPinv=, which solves with A - sigma I: give both or neither. which='SA' is "
            "of the least; scipy.sparse.linalg.eigsh(A.to_scipy(), k, sigma=sigma) factorizes A here"
        )
    apply = applied("eigsh", "A" if sigma is None else "OPinv", matrix if sigma is None else OPinv, n)
    rng = default_rng(seed)
    first = rng.standard_normal(n) if v0 is None else asarray(v0).astype(np.float64)
    if first.shape != (n,):
        raise ShapeError(f"eigsh: v0 of shape {first.shape} for a matrix of {n} rows")

    found = _searched(apply, first, (k, which, max(tol, 1e-14)), max_iterations, rng)
    final, _ = converging("eigsh", found, "give a larger max_iterations, tol or k")
    values, vectors = final.values, final.basis.vectors[:k].T
    if sigma is None:
        return Eigenpairs(values, vectors)
    values = sigma + 1 / values
    order = argsort(values)
    return Eigenpairs(values[order], vectors[:, order])


def _searched(
    apply: Apply, first: DistArray, wanted: tuple[int, str, float], most: int, rng: Generator
) -> tuple[_EigenSearch, DistArray]:
    # The state after the last of at most ``most`` restarts, and their number.
    (k, which, tol), n = wanted, first.shape[0]
    m = min(n, max(2 * k + 8, 20))

    def restart(state: _EigenSearch) -> _EigenSearch:
        basis = extended(state.basis, apply, state.num_kept, rng)
        found = Restart(*replicated(
            partial(rayleigh_ritz, k=k, which=which, tol=tol), basis.projected, basis.rest, state.before
        ))  # fmt: skip
        basis = Basis(found.vectors.T @ basis.vectors, found.projected, basis.next, basis.rest)
        made = _EigenSearch(basis, found.num_kept, found.values, found.residual, state.before)
        if m == n:  # the basis is all there is
            return made
        return cond(found.is_due, lambda: with_copies(made, found), lambda: made)

    def with_copies(state: _EigenSearch, found: Restart) -> _EigenSearch:
        V, kept = state.basis.vectors, arange(m) < k
        known = V[: num_kept_of(k, m, k)]
        start = outside(known, rng)
        begin = LanczosStep(zeros(n), start, asarray(0.0), asarray(0.0))
        goes_on, before = copies_missing(
            partial(_away_from, known, apply), begin, found.bounds, found.total, m * most
        )
        # The method goes on with the pairs found, and what is away from them from where that was met.
        projected = where(kept, state.basis.projected, 0.0)
        again = Basis(where(kept[:, None], V, 0.0), projected, start, asarray(0.0))
        return cond(
            goes_on,
            lambda: _EigenSearch(again, asarray(k), state.values, asarray(np.inf), before),
            lambda: state,
        )

    v = first / norm(first)
    start = Basis(outer(zeros(m), v), zeros((m, m)), v, asarray(0.0))
    state = _EigenSearch(start, asarray(0), zeros(k), asarray(np.inf), asarray(NOT_YET))
    return iterate(restart, state, until=lambda old, new: new.residual <= tol, max_iterations=most)


def _away_from(V: DistArray, apply: Apply, last: LanczosStep) -> LanczosStep:
    # A step for (1 - V' V) A (1 - V' V)
    v = last.following
    w = apply(v)
    w = w - (V @ w) @ V
    alpha = v @ w
    w = w - alpha * v - last.beta * last.before
    beta = norm(w)
    return LanczosStep(v, w / where(beta > 0, beta, 1.0), alpha, beta)
