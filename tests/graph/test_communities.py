"""Communities, strong components and clusters against NetworkX, SciPy and published labels."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def propagated(graph: sp.csr_array, rounds: int) -> np.ndarray:
    """Return the labels of the definition, a vertex at a time."""
    rows, columns = graph.tocoo().coords
    around: dict[int, list[int]] = {vertex: [] for vertex in range(graph.shape[0])}
    for i, j in zip(rows.tolist(), columns.tolist(), strict=True):
        around[i].append(j)
        around[j].append(i)
    labels = list(range(graph.shape[0]))
    for _ in range(rounds):
        counts = {vertex: Counter(labels[one] for one in found) for vertex, found in around.items()}
        labels = [
            min(label for label in counts[vertex] if counts[vertex][label] == max(counts[vertex].values()))
            if counts[vertex]
            else labels[vertex]
            for vertex in around
        ]
    return np.array(labels)


@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_label_propagation(graph: sp.csr_array, rounds: int) -> None:
    found = mn.graph.label_propagation(graph, max_iterations=rounds).compute()
    np.testing.assert_array_equal(found, propagated(graph, rounds))


@pytest.mark.parametrize(
    ("name", "rounds"), [("example-directed", 2), ("example-undirected", 2), ("test-cdlp-directed", 5)]
)
def test_ldbc_labels(test_data: Path, name: str, rounds: int) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-CDLP", dtype=np.int64)
    directed = "undirected" not in name
    A = mn.load(folder / f"{name}.e", directed=directed, weights=False, duplicates="merge")
    vertices = A.labels.compute()
    found = mn.graph.label_propagation(A, max_iterations=rounds, symmetric=not directed).compute()
    linked = np.isin(stored[:, 0], vertices)
    np.testing.assert_array_equal(vertices[found], stored[linked, 1])


def test_lagraph_labels(test_data: Path) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())["cdlp_jagmesh7"]
    A = mn.load(test_data / "lagraph" / "jagmesh7.mtx")
    found = mn.graph.label_propagation(A, max_iterations=100, symmetric=True).compute()
    np.testing.assert_array_equal(found, stored)


def sets_of(labels: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(labels == one).tolist()) for one in np.unique(labels)]


@pytest.mark.parametrize("resolution", [0.5, 1.0, 2.0])
def test_modularity(graph: sp.csr_array, peer: nx.DiGraph, resolution: float) -> None:
    n = graph.shape[0]
    labels = np.random.default_rng(1).integers(0, max(1, n // 5), n)
    found = float(mn.graph.modularity(graph, labels, resolution))
    if not graph.sum():
        assert np.isnan(found)
        return
    wanted = nx.community.modularity(peer, sets_of(labels), resolution=resolution)
    assert found == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", ["karate", "dolphins", "planted"])
def test_louvain_is_as_good_as_networkx(test_data: Path, name: str) -> None:
    if name == "planted":
        drawn = nx.planted_partition_graph(12, 40, 0.3, 0.01, seed=1)
        A = sp.csr_array(nx.to_scipy_sparse_array(drawn, dtype=float))
    else:
        folder = "lagraph" if name == "karate" else "cugraph"
        A = sp.csr_array(mn.load(test_data / folder / f"{name}.mtx").to_scipy() != 0).astype(float)
    labels, value = mn.graph.louvain(A, symmetric=True)
    peer = nx.from_scipy_sparse_array(A)
    theirs = nx.community.modularity(peer, nx.community.louvain_communities(peer, seed=1))
    assert float(value) == pytest.approx(nx.community.modularity(peer, sets_of(labels.compute())), abs=1e-12)
    assert float(value) >= 0.97 * theirs
    assert float(mn.graph.louvain(A)[1]) >= 0.97 * theirs  # weights of both directions are added


def test_louvain_of_few_edges(graph: sp.csr_array, both_ways: sp.csr_array) -> None:
    labels, value = mn.graph.louvain(both_ways, symmetric=True, seed=4)
    found = labels.compute()
    assert found.dtype == np.int64
    assert ((found >= 0) & (found < graph.shape[0])).all()
    if graph.nnz:
        assert float(value) >= float(mn.graph.modularity(both_ways, np.arange(graph.shape[0])))
    np.testing.assert_array_equal(found, mn.graph.louvain(both_ways, symmetric=True, seed=4)[0].compute())


def test_strong_components(graph: sp.csr_array) -> None:
    pattern = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), graph.shape)
    wanted_number, wanted = connected_components(pattern, directed=True, connection="strong")
    _, smallest = np.unique(wanted, return_index=True)
    number, labels = mn.graph.strongly_connected_components(graph)
    assert (int(number), labels.dtype) == (wanted_number, np.int64)
    np.testing.assert_array_equal(labels.compute(), smallest[wanted])


def test_many_strong_components() -> None:
    for density in (0.01, 0.02, 0.03, 0.05):
        drawn = sp.random_array((80, 80), density=density, rng=np.random.default_rng(2), format="csr")
        test_strong_components(drawn)


@pytest.mark.parametrize(
    ("path", "largest"), [("networkit/wiki-Vote.txt", 1300), ("snap_p2p-Gnutella08/p2p-Gnutella08.txt", 2068)]
)
def test_the_largest_strong_component(test_data: Path, path: str, largest: int) -> None:
    _, labels = mn.graph.strongly_connected_components(mn.load(test_data / path))
    assert np.bincount(labels.compute()).max() == largest


def flow_of(A: sp.csr_array, inflation: float, threshold: float, tolerance: float) -> tuple[np.ndarray, int]:
    """Return Markov clustering's last matrix by NumPy alone."""
    flow = A.toarray().T + np.eye(A.shape[0])
    flow /= flow.sum(axis=0)
    number, new = 0, flow
    while number < 100:
        number += 1
        new = (flow @ flow) ** inflation
        new /= new.sum(axis=0)
        new *= (new >= threshold) | (new == new.max(axis=0))
        new /= new.sum(axis=0)
        if abs(new - flow).max() <= tolerance:
            break
        flow = new
    return new, number


@pytest.mark.parametrize("inflation", [1.4, 2.0])
def test_markov_clustering(graph: sp.csr_array, both_ways: sp.csr_array, inflation: float) -> None:
    labels, flow, taken = mn.graph.markov_clustering(both_ways, inflation=inflation)
    wanted, number = flow_of(both_ways, inflation, 1e-3, 1e-6)
    assert int(taken) == number
    assert flow.sparse
    np.testing.assert_allclose(flow.to_scipy().toarray(), wanted, atol=1e-12)
    _, components = connected_components(wanted > 0, directed=False)
    _, smallest = np.unique(components, return_index=True)
    np.testing.assert_array_equal(labels.compute(), smallest[components])


def test_markov_clustering_forgets_what_is_zero() -> None:
    drawn = nx.planted_partition_graph(10, 30, 0.5, 0.01, seed=1)
    labels, flow, _ = mn.graph.markov_clustering(sp.csr_array(nx.to_scipy_sparse_array(drawn, dtype=float)))
    assert len(np.unique(labels.compute())) == 10
    assert flow.to_scipy().nnz < 2 * 300


def test_refusals() -> None:
    A = sp.csr_array(np.eye(3))
    with pytest.raises(mn.errors.DTypeError, match="labels have dtype float64; give integers"):
        mn.graph.modularity(A, [0.0, 1.0, 1.0])
    with pytest.raises(
        mn.errors.ShapeError, match=r"labels have shape \(2,\); give one label for each of the 3"
    ):
        mn.graph.modularity(A, [0, 1])
    with pytest.raises(mn.errors.OptionError, match="louvain: resolution=-1"):
        mn.graph.louvain(A, resolution=-1)
    for options, message in (
        ({"expansion": 1}, "expansion=1; give 2 or more"),
        ({"inflation": 1}, "inflation=1; give a number above 1"),
        ({"threshold": 1}, "threshold=1; give 0 to 1"),
        ({"tolerance": 0}, "tolerance=0; give a number above 0"),
    ):
        with pytest.raises(mn.errors.OptionError, match=message):
            mn.graph.markov_clustering(A, **options)


def test_louvain_does_not_end_with_a_quiet_draw() -> None:
    pair, two = sp.csr_array([[0.0, 1], [1, 0]]), sp.csr_array(np.kron(np.eye(2), [[0.0, 1], [1, 0]]))
    barbell = sp.csr_array(nx.to_scipy_sparse_array(nx.barbell_graph(4, 0), dtype=float))
    for seed in range(8):
        for A, wanted in ((pair, 0.0), (two, 0.5), (barbell, 0.4230769230769231)):
            labels, value = mn.graph.louvain(A, symmetric=True, seed=seed)
            assert float(value) == pytest.approx(wanted)
            found = labels.compute()
            np.testing.assert_array_equal(found[found], found)


def test_graphs_without_vertices() -> None:
    nothing = sp.csr_array((0, 0))
    assert mn.graph.label_propagation(nothing).compute().shape == (0,)
    assert mn.graph.louvain(nothing).labels.compute().shape == (0,)
    assert mn.graph.markov_clustering(nothing).labels.compute().shape == (0,)
    assert mn.graph.all_pairs_shortest_path_length(nothing).compute().shape == (0, 0)
    assert float(mn.graph.triangle_estimate(nothing)) == 0


@pytest.mark.parametrize("bad", [-1.0, np.nan])
def test_weights_that_are_none(bad: float) -> None:
    A = sp.csr_array(([1.0, bad], ([0, 1], [1, 0])), shape=(2, 2))
    for algorithm in (mn.graph.louvain, mn.graph.markov_clustering):
        with pytest.raises(mn.errors.OptionError, match=f"{algorithm.__name__}: a weight is {bad}"):
            algorithm(A).labels.compute()
    if np.isnan(bad):
        with pytest.raises(
            mn.errors.OptionError, match="minimum_spanning_forest: a weight is nan; weights must be numbers"
        ):
            mn.graph.minimum_spanning_forest(A).to_scipy()
