"""Clusters, components and neighbors are the same on any threads, workers, processes and cuts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Arrays, Library, check_same, cut, expected_of, library

import matnb as mn

N = 67
Rows = mn.DistArray


def clusters(model: Any, X: Rows) -> list[mn.DistArray]:
    found = model.fit(X)
    return [found.labels_, found.cluster_centers_, found.predict(X)]


def components(model: Any, X: Rows) -> list[mn.DistArray]:
    found = model.fit(X)
    return [found.components_, found.explained_variance_, found.singular_values_]


def embedded(X: Rows) -> mn.DistArray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # where rows are apart
        return mn.learn.SpectralEmbedding(1, n_neighbors=40, random_state=0).fit_transform(X)


LEARNERS: dict[str, Callable[[Rows], list[mn.DistArray]]] = {
    "KMeans": lambda X: clusters(mn.learn.KMeans(4, random_state=1), X),
    "KMeans, random": lambda X: clusters(mn.learn.KMeans(4, init="random", random_state=1), X),
    "KMeans, oversampled": lambda X: clusters(mn.learn.KMeans(4, init="k-means||", random_state=1), X),
    "IncrementalPCA": lambda X: components(mn.learn.IncrementalPCA(2, batch_size=20), X),
    "MiniBatchKMeans": lambda X: clusters(mn.learn.MiniBatchKMeans(4, batch_size=20, random_state=1), X),
    "SpectralEmbedding": lambda X: [embedded(X)],
    "PCA": lambda X: components(mn.learn.PCA(2, svd_solver="covariance_eigh"), X),
    "PCA, by Lanczos": lambda X: components(mn.learn.PCA(2, svd_solver="arpack", random_state=0), X),
    "TruncatedSVD": lambda X: components(mn.learn.TruncatedSVD(2, algorithm="arpack", random_state=0), X),
    "NearestNeighbors": lambda X: list(mn.learn.NearestNeighbors(n_neighbors=3).fit(X).kneighbors()),
}
CUTS = {"dense": (0, 1, 9, 30, N), "sparse": (0, 5, 6, 40, N)}
# Products of BLAS, and sums by label, are rounded as blocks are: numbers are the same to this, labels and
# places are the same.
TOLERANCE = 1e-7


def matrices() -> dict[str, Any]:
    """Return rows around four places, and sparse ones."""
    rng = np.random.default_rng(6)
    dense = rng.normal(size=(N, 5)) + 8.0 * rng.normal(size=(4, 5))[rng.integers(0, 4, N)]
    return {"dense": dense, "sparse": sp.csr_array(np.where(rng.random((N, 5)) < 0.6, dense, 0.0))}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Arrays]:
    return expected_of(LEARNERS, matrices())


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("format", ["dense", "sparse"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_gives_the_same(
    session: Library, expected: dict[tuple[str, str], Arrays], name: str, format: str
) -> None:
    X = cut(matrices()[format], CUTS[format])
    check_same(session.values(LEARNERS[name](X)), expected[name, format], TOLERANCE)


def test_the_same_cuts_give_the_same_bits(session: Library) -> None:
    X = cut(matrices()["dense"], CUTS["dense"])
    one, other = (session.values(LEARNERS["KMeans"](X + shift)) for shift in (0.0, -0.0))
    check_same(one, other, None)
