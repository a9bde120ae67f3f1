"""PageRank written on DistArray against published vectors of LAGraph and LDBC, and NetworkX's stored ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import matnb as mn

DAMPING = 0.85

pytestmark = pytest.mark.session("two workers")

Ranks = Callable[..., np.ndarray]


@pytest.fixture(params=["a loop of Python's", "mn.graph"])
def ranks(request: pytest.FixtureRequest) -> Ranks:
    return ranks_by_graph if request.param == "mn.graph" else ranks_by_loop


def ranks_by_graph(A: mn.DistArray, num_iterations: int = 1000, tolerance: float = 1e-10) -> np.ndarray:
    found = mn.graph.pagerank(A, DAMPING, tolerance, num_iterations)
    return np.asarray(found.ranks)


def ranks_by_loop(A: mn.DistArray, num_iterations: int = 1000, tolerance: float = 1e-10) -> np.ndarray:
    """Power iteration with the rank of vertices without an edge spread evenly."""
    n = A.shape[0]
    out = A.sum(axis=1)
    share = DAMPING / np.maximum(out, 1)
    dangling = (out == 0) * (DAMPING / n)
    x = mn.full(n, 1 / n)
    for _ in range(num_iterations):
        new = A.T @ (share * x) + (dangling * x).sum() + (1 - DAMPING) / n
        change = abs(new - x).sum()
        x = new
        if tolerance and float(change) < tolerance:
            break
    return np.asarray(x)


def pattern(path: Path) -> mn.DistArray:
    return (mn.load(path, blocks=3) != 0).astype(float)


@pytest.mark.parametrize(
    ("name", "vector"),
    [
        ("karate", "karate_rank"),
        ("west0067", "west0067_rank"),
        ("ldbc-directed-example", "ldbc_directed_example_rank"),
    ],
)
def test_lagraph(ranks: Ranks, test_data: Path, name: str, vector: str) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())[vector]
    found = ranks(pattern(test_data / "lagraph" / f"{name}.mtx"))
    assert np.abs(found - stored).max() < 1e-4  # they are stored to 4e-5 only


@pytest.mark.parametrize(
    ("name", "directed", "num_iterations"),
    [("example-directed", True, 2), ("example-undirected", False, 2), ("test-pr-directed", True, 14)],
)
def test_ldbc(ranks: Ranks, test_data: Path, name: str, directed: bool, num_iterations: int) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-PR")
    A = mn.load(folder / f"{name}.e", directed=directed, weights=False, duplicates="merge", blocks=2)
    np.testing.assert_array_equal(A.labels.compute(), stored[:, 0])
    np.testing.assert_allclose(ranks(A, num_iterations, tolerance=0), stored[:, 1], rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("cugraph/dolphins", "cugraph/dolphins.mtx"),
        ("cugraph/polbooks", "cugraph/polbooks.mtx"),
        ("networkit/celegans_metabolic", "networkit/celegans_metabolic.graph"),
        ("networkit/jazz", "networkit/jazz.graph"),
        ("nwgraph/Erdos991", "nwgraph/Erdos991.mtx"),
        ("nwgraph/delaunay_n10", "nwgraph/delaunay_n10.mtx"),
    ],
)
def test_stored_vectors(ranks: Ranks, test_data: Path, name: str, path: str) -> None:
    stored = json.loads((test_data / "answers.json").read_text())["graph_vectors_networkx"][name]
    found = ranks(pattern(test_data / path))
    assert np.abs(found - stored["pagerank_0.85"]).sum() < 1e-5


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("networkit/wiki-Vote_top10", "networkit/wiki-Vote.txt"),
        ("snap_p2p-Gnutella08_top10", "snap_p2p-Gnutella08/p2p-Gnutella08.txt"),
    ],
)
def test_the_top_ten(ranks: Ranks, test_data: Path, name: str, path: str) -> None:
    stored = json.loads((test_data / "answers.json").read_text())["graph_vectors_networkx"][name]
    A = mn.load(test_data / path)
    found = ranks(A)
    labels = np.arange(len(found)) if A.labels is None else A.labels.compute()
    best = np.argsort(-found)[:10]
    assert labels[best].tolist() == [vertex for vertex, _ in stored]
    np.testing.assert_allclose(found[best], [rank for _, rank in stored], rtol=1e-5)
