"""What no user gave is made on the workers: no array as long as the data goes there from this process."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import ConvergenceWarning
from matnb.expr import client_data
from matnb.expr.nodes import Data

N, P, K = 397, 5, 3
RNG = np.random.default_rng(0)

pytestmark = pytest.mark.session("two threads")


@pytest.fixture(scope="module")
def arrays(session: None) -> dict[str, mn.DistArray]:
    X = abs(RNG.normal(size=(N, P)))
    graph = sp.csr_array(RNG.random((N, N)) < 0.01).astype(np.float64)
    given = {
        "X": X,
        "S": sp.csr_array(X * (RNG.random(X.shape) < 0.7)),
        "y": (X @ RNG.normal(size=P) > 0).astype(np.int64),
        "three": RNG.integers(0, 3, N),
        "t": RNG.normal(size=N),
        "counts": RNG.poisson(2.0, N),
        "weights": RNG.random(N),
        "G": graph + graph.T,
        "L": sp.csr_array(sp.eye_array(N) * 40.0 + graph + graph.T),
    }
    return {name: mn.asarray(one).persist() for name, one in given.items()}


def estimators() -> dict[str, Callable[[dict[str, Any]], object]]:
    learn = mn.learn
    one: dict[str, Callable[[dict[str, Any]], object]] = {}
    for rows in "XS":
        regressors = [
            learn.LinearRegression(), learn.Ridge(), learn.Lasso(alpha=0.1), learn.ElasticNet(alpha=0.1),
            learn.SGDRegressor(max_iter=2, tol=None),
            learn.SGDRegressor(max_iter=2, tol=None, batch_size=50, shuffle=False),
        ]  # fmt: skip
        for model in regressors:
            one[f"{model!r} of {rows}"] = lambda a, model=model, rows=rows: model.fit(a[rows], a["t"]).score(
                a[rows], a["t"], a["weights"]
            )
        one[f"Poisson of {rows}"] = lambda a, rows=rows: learn.PoissonRegressor().fit(a[rows], a["counts"])
        for y in ("y", "three"):
            for solver in ("lbfgs", "newton-cholesky"):
                one[f"{solver}, {y} of {rows}"] = lambda a, y=y, solver=solver, rows=rows: (
                    learn.LogisticRegression(solver=solver, class_weight="balanced")
                    .fit(a[rows], a[y])
                    .predict_proba(a[rows])
                )
            one[f"SGDClassifier, {y} of {rows}"] = lambda a, y=y, rows=rows: (
                learn.SGDClassifier("log_loss", max_iter=2, tol=None)
                .fit(a[rows], a[y], sample_weight=a["weights"])
                .predict(a[rows])
            )
        for init in ("k-means++", "random", "k-means||"):
            one[f"KMeans, {init} of {rows}"] = lambda a, init=init, rows=rows: (
                learn.KMeans(K, init=init, n_init=2, random_state=0).fit(a[rows]).transform(a[rows])
            )
        one[f"MiniBatchKMeans of {rows}"] = lambda a, rows=rows: (
            learn.MiniBatchKMeans(K, max_iter=2, random_state=0).fit(a[rows]).predict(a[rows])
        )
        one[f"neighbors of {rows}"] = lambda a, rows=rows: (
            learn.NearestNeighbors(n_neighbors=4).fit(a[rows]).kneighbors_graph()
        )
        for loss in ("frobenius", "kullback-leibler"):
            one[f"NMF, {loss} of {rows}"] = lambda a, loss=loss, rows=rows: learn.NMF(
                2, beta_loss=loss, solver="mu", init="random", max_iter=3, random_state=0
            ).fit_transform(a[rows])
        one[f"MiniBatchNMF of {rows}"] = lambda a, rows=rows: learn.MiniBatchNMF(
            2, max_iter=2, random_state=0
        ).fit_transform(a[rows])
        one[f"TruncatedSVD of {rows}"] = lambda a, rows=rows: learn.TruncatedSVD(2).fit_transform(a[rows])
        one[f"ALS of {rows}"] = lambda a, rows=rows: learn.ALS(2, iterations=2).fit(a["S"])
        for link in ("identity", "logit"):
            one[f"GLM, {link} of {rows}"] = lambda a, link=link, rows=rows: (
                learn.GLM(link, alpha=0.1).fit(a[rows], a["y"]).predict(a[rows])
            )
    one["PCA"] = lambda a: learn.PCA(2).fit_transform(a["X"])
    one["LDA"] = lambda a: learn.LatentDirichletAllocation(2, max_iter=2, random_state=0).fit_transform(
        a["S"]
    )
    one["SpectralEmbedding"] = lambda a: learn.SpectralEmbedding(2, affinity="precomputed").fit_transform(
        a["L"]
    )
    return one


def algorithms() -> dict[str, Callable[[dict[str, Any]], object]]:
    graph, linalg = mn.graph, mn.linalg
    of_graphs = (
        "pagerank", "hits", "eigenvector_centrality", "katz", "connected_components", "triangle_count",
        "clustering", "core_number", "louvain", "label_propagation", "degree_centrality", "closeness",
        "harmonic", "all_pairs_shortest_path_length", "edge_betweenness", "betweenness",
    )  # fmt: skip
    one: dict[str, Callable[[dict[str, Any]], object]] = {
        name: lambda a, name=name: getattr(graph, name)(a["G"]) for name in of_graphs if hasattr(graph, name)
    }
    one["betweenness of some"] = lambda a: graph.betweenness(a["G"], sources=7)
    one["betweenness, weighted"] = lambda a: graph.betweenness(a["G"], weighted=True, sources=[1, 2])
    one["bfs"] = lambda a: graph.bfs(a["G"], 0)
    one["sssp"] = lambda a: graph.sssp(a["G"], 0)
    for name in ("cg", "minres", "gmres", "bicgstab"):
        one[name] = lambda a, name=name: getattr(linalg, name)(a["L"], a["t"])
    one["eigsh"] = lambda a: linalg.eigsh(a["L"], k=2)
    one["svds"] = lambda a: linalg.svds(a["G"], k=2)
    one["lsqr"] = lambda a: linalg.lsqr(a["S"], a["t"])
    one["lsmr"] = lambda a: linalg.lsmr(a["S"], a["t"])
    return one


CASES = {**estimators(), **algorithms()}


# One of each kind in each run, and all of them with the slow tests.
FAST = (
    "KMeans, k-means++ of S", "NMF, kullback-leibler of X", "newton-cholesky, three of X", "GLM, logit of X",
    "neighbors of X", "SGDClassifier, y of S", "closeness", "betweenness of some",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_no_array_as_long_as_the_data_is_made_here(
    name: str, arrays: dict[str, mn.DistArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped: list[tuple[int, ...]] = []

    def noticed(content: bytes, shape: tuple[int, ...], *rest: Any) -> Data:
        # A number a row: 1 MB for 131,000 rows. Orders of shuffled rows are drawn here, though.
        if np.prod(shape, dtype=float) >= N - 1:
            shipped.append(shape)
        return Data(content, shape, *rest)

    monkeypatch.setattr(client_data, "Data", noticed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = CASES[name](arrays)
        for one in found if isinstance(found, tuple) else (found,):
            if isinstance(one, mn.DistArray):
                one.persist()
    assert shipped == []
