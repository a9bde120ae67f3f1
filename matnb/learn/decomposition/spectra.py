"""Singular values and vectors of centered rows, by several solvers; signs as scikit-learn has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matnb.errors import OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.functions.decompositions import eigh, svd
from matnb.lazy.functions.elementwise import where
from matnb.lazy.functions.indexing import take_along_axis
from matnb.lazy.functions.linear import outer
from matnb.learn.arguments import one_of, whole
from matnb.linalg.svds import svds

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized")
TOLERANCE = 1e-12  # of singular triplets, where 0 is asked for


class Spectrum(NamedTuple):
    """Singular values, descending, and right singular vectors, k x p, of centered rows."""

    values: DistArray
    vectors: DistArray


def with_signs(vectors: DistArray) -> DistArray:
    """Return rows with such signs that of each the element that is largest in magnitude is positive."""
    places = asarray(np.abs(vectors)).argmax(axis=1)
    largest = take_along_axis(vectors, places[:, None], axis=1)
    return where(largest < 0, -vectors, vectors)


class SolverOptions(NamedTuple):
    """Of "arpack" its tolerance, of "randomized" how often what is drawn is multiplied; a seed."""

    tol: float
    rounds: int
    seed: int


def spectrum(X: DistArray, mean: DistArray, solver: str, k: float, options: SolverOptions) -> Spectrum:
    """Return the first k singular values and vectors of X - mean; all of them by a solver that finds all."""
    if solver == "full":
        _, values, vectors = svd(X - mean, full_matrices=False)
        return Spectrum(values, vectors)
    if solver == "covariance_eigh":
        return _of_covariance(X, mean)
    if solver == "arpack":
        found = svds(X, int(k), tol=options.tol, center=True, seed=options.seed)
    else:
        found = svds(
            X, int(k), center=True, solver="randomized", max_iterations=options.rounds, seed=options.seed
        )
    return Spectrum(found.s[::-1], found.vh[::-1])


def _of_covariance(X: DistArray, mean: DistArray) -> Spectrum:
    # C'C = X'C - m s' of the centered rows C = X - 1 m', whose sums s are 0 but for what was rounded
    if X.sparse:
        product = X.T @ X - X.shape[0] * outer(mean, mean)
    else:
        product = X.T @ (X - mean) - outer(mean, (X - mean).sum(axis=0))
    values, vectors = eigh(product)
    values = values[::-1]
    return Spectrum(asarray(np.sqrt(where(values > 0, values, 0.0))), vectors[:, ::-1].T)


def solver_of(X: DistArray, svd_solver: str, n_components: Any) -> str:
    """Return the solver that "auto" stands for, as scikit-learn chooses it."""
    solver = one_of(svd_solver, "svd_solver", "PCA", SOLVERS)
    if isinstance(n_components, str):
        raise OptionError(
            f"PCA: n_components={n_components!r}; give a whole number, a share of the variance such as 0.95, "
            "or None for all components"
        )
    if solver == "full" and X.sparse:
        raise OptionError("PCA: svd_solver='full' of a sparse X; choose 'arpack' or 'covariance_eigh'")
    if solver != "auto":
        return solver
    if X.sparse:
        return "arpack"
    n, p = X.shape
    if p <= 1000 and n >= 10 * p:
        return "covariance_eigh"
    k = min(n, p) if n_components is None else n_components
    return "randomized" if max(n, p) > 500 and 1 <= k < 0.8 * min(n, p) else "full"


def num_components(X: DistArray, solver: str, n_components: Any) -> float:
    """Return how many components are asked for, or a share of the variance.

    Raises
    ------
    OptionError
        For more than there are, and a share of what the solver does not find.
    """
    most = min(X.shape) - (solver == "arpack")  # as scikit-learn
    if n_components is None:
        return most
    if not isinstance(n_components, float):
        return whole(n_components, "n_components", f"PCA with svd_solver={solver!r}", most=most)
    if solver in ("arpack", "randomized") or not 0 < n_components < 1:
        raise OptionError(
            f"PCA: n_components={n_components} with svd_solver={solver!r}; give a whole number, or a share "
            "between 0 and 1 with 'full' or 'covariance_eigh'"
        )
    return n_components
