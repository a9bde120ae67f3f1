"""Distances between many vertices, forests, edge betweenness and similarity against SciPy and NetworkX."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from networkx_arrays import in_matrix, in_order
from scipy.sparse import csgraph

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def pattern_of(graph: sp.csr_array) -> sp.csr_array:
    return sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), graph.shape)


@pytest.mark.parametrize("sources", [None, [0], [0, 0]])
def test_all_pairs(graph: sp.csr_array, sources: list[int] | None) -> None:
    found = mn.graph.all_pairs_shortest_path_length(graph, sources, batch=13)
    wanted = csgraph.shortest_path(pattern_of(graph), unweighted=True)
    wanted[np.isinf(wanted)] = -1
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found.compute(), wanted if sources is None else wanted[sources])


def test_weighted_pairs(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    found = mn.graph.all_pairs_shortest_path_length(graph, weighted=True, batch=13).compute()
    wanted = np.full(found.shape, np.inf)  # SciPy takes a stored zero for no edge
    for begin, lengths in nx.all_pairs_dijkstra_path_length(peer):
        wanted[begin, list(lengths)] = list(lengths.values())
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(mn.graph.floyd_warshall(graph).compute(), wanted)


def test_searches_from_several_vertices(graph: sp.csr_array) -> None:
    n = graph.shape[0]
    sources = [n - 1, 0, n // 2]
    levels, parents = mn.graph.bfs(graph, sources)
    for place, source in enumerate(sources):
        one = mn.graph.bfs(graph, source)
        np.testing.assert_array_equal(levels.compute()[place], one.levels.compute())
        np.testing.assert_array_equal(parents.compute()[place], one.parents.compute())


def test_predecessors(graph: sp.csr_array) -> None:
    distances, predecessors = mn.graph.sssp(graph, 0, predecessors=True)
    lengths, before = distances.compute(), predecessors.compute()
    np.testing.assert_array_equal(lengths, mn.graph.sssp(graph, 0).compute())
    dense = np.full(graph.shape, np.inf)
    rows, columns = graph.tocoo().coords
    dense[rows, columns] = graph.data
    np.testing.assert_array_equal(before < 0, np.isinf(lengths))
    for vertex in np.flatnonzero(before >= 0).tolist():
        steps = 0
        while vertex != 0:  # along the predecessors back to the source, whatever edges have length 0
            assert lengths[before[vertex]] + dense[before[vertex], vertex] == lengths[vertex]
            vertex, steps = int(before[vertex]), steps + 1
            assert steps < len(before)
    assert before[0] == 0


def test_floyd_warshall_of_negative_weights() -> None:
    A = sp.csr_array([[0, 3, 8, 0, -4], [0, 0, 0, 1, 7], [0, 4, 0, 0, 0], [2, 0, -5, 0, 0], [0, 0, 0, 6, 0]])
    found = mn.graph.floyd_warshall(A.astype(float)).compute()  # Cormen et al., "Introduction to Algorithms"
    np.testing.assert_array_equal(found, csgraph.floyd_warshall(A))
    assert mn.graph.floyd_warshall(sp.csr_array((0, 0))).compute().shape == (0, 0)
    with pytest.raises(mn.errors.OptionError, match=r"a cycle of negative length"):
        mn.graph.floyd_warshall(sp.csr_array([[0, 1.0], [-2.0, 0]])).compute()
    with pytest.raises(mn.errors.OptionError, match="a weight is NaN"):
        mn.graph.floyd_warshall(sp.csr_array([[0, np.nan], [1.0, 0]])).compute()


def test_lagraph_floyd_warshall(test_data: Path) -> None:
    A = mn.load(test_data / "lagraph" / "test_FW_1000.mtx")
    found = mn.graph.floyd_warshall(A).compute()
    np.testing.assert_array_equal(found, csgraph.floyd_warshall(A.to_scipy()))


def test_kepner_and_gilbert(test_data: Path) -> None:
    A = mn.load(test_data / "lagraph" / "test_BF.mtx")
    wanted = csgraph.bellman_ford(A.to_scipy(), indices=0)
    np.testing.assert_array_equal(mn.graph.sssp(A, 0).compute(), wanted)


@pytest.mark.parametrize("distinct", [True, False])
def test_forests(graph: sp.csr_array, distinct: bool) -> None:
    weighted = graph.copy()
    rng = np.random.default_rng(7)
    weighted.data = rng.permutation(graph.nnz) + 1.0 if distinct else rng.integers(1, 4, graph.nnz) * 1.0
    found = mn.graph.minimum_spanning_forest(weighted).to_scipy()
    wanted = csgraph.minimum_spanning_tree(weighted)
    assert found.sum() == wanted.sum()
    assert found.nnz == wanted.nnz
    rows, columns = found.tocoo().coords
    assert (rows > columns).all()
    number, _ = csgraph.connected_components(found, directed=False)
    assert number == csgraph.connected_components(pattern_of(weighted), directed=False)[0]


@pytest.mark.parametrize("weights", [[0.0, 0.0, 0.0], [-1.0, -2.0, -3.0]])
def test_forests_of_weights_that_are_not_positive(weights: list[float]) -> None:
    A = sp.csr_array((weights, ([0, 1, 0], [1, 2, 2])), shape=(3, 3))
    found = mn.graph.minimum_spanning_forest(A).to_scipy()
    assert found.nnz == 2
    assert found.sum() == sum(sorted(weights)[:2])


@pytest.mark.parametrize("name", ["msf1", "msf2", "msf3"])
def test_lagraph_forests(test_data: Path, name: str) -> None:
    A = mn.load(test_data / "lagraph" / f"{name}.mtx")
    found = mn.graph.minimum_spanning_forest(A).to_scipy()
    assert found.sum() == csgraph.minimum_spanning_tree(A.to_scipy()).sum()


def edge_values(peer: nx.Graph, normalized: bool, weight: str | None) -> dict[tuple[int, int], float]:
    return nx.edge_betweenness_centrality(peer, normalized=normalized, weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalized", [False, True])
def test_edge_betweenness(graph: sp.csr_array, weighted: bool, normalized: bool) -> None:
    positive = graph.copy()
    positive.data += 1
    n = graph.shape[0]
    weight = "weight" if weighted else None
    one_way = nx.from_scipy_sparse_array(positive, create_using=nx.DiGraph)
    found = mn.graph.edge_betweenness(positive, normalized=normalized, weighted=weighted, batch=17)
    wanted = in_matrix(edge_values(one_way, normalized, weight), n, symmetric=False)
    assert found.sparse
    np.testing.assert_allclose(found.to_scipy().toarray(), wanted, rtol=1e-12, atol=1e-15)

    both = sp.csr_array(positive.maximum(positive.T))
    two_ways = nx.from_scipy_sparse_array(both)
    found = mn.graph.edge_betweenness(both, normalized=normalized, weighted=weighted, directed=False)
    wanted = in_matrix(edge_values(two_ways, normalized, weight), n, symmetric=True)
    np.testing.assert_allclose(found.to_scipy().toarray(), wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("normalized", [False, True])
def test_weighted_betweenness(graph: sp.csr_array, normalized: bool) -> None:
    positive = graph.copy()
    positive.data += 1
    peer = nx.from_scipy_sparse_array(positive, create_using=nx.DiGraph)
    found = mn.graph.betweenness(positive, normalized=normalized, weighted=True)
    wanted = nx.betweenness_centrality(peer, normalized=normalized, weight="weight")
    np.testing.assert_allclose(found.compute(), in_order(wanted), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bad", [0.0, -1.0])
def test_weights_of_ways_that_are_counted_are_above_0(bad: float) -> None:
    A = sp.csr_array(([1.0, bad], ([0, 1], [1, 0])), shape=(2, 2))
    for algorithm in (mn.graph.betweenness, mn.graph.edge_betweenness):
        with pytest.raises(mn.errors.OptionError, match=f"a weight is {bad}; weights must be above 0"):
            algorithm(A, weighted=True).compute()


def test_common_neighbors_and_jaccard(graph: sp.csr_array, undirected: nx.Graph) -> None:
    n = graph.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    wanted = np.zeros((n, n))
    for i, j in pairs:
        wanted[i, j] = len(set(undirected[i]) & set(undirected[j]))
    shares = in_matrix({(i, j): p for i, j, p in nx.jaccard_coefficient(undirected, pairs)}, n, False)
    np.testing.assert_array_equal(mn.graph.common_neighbors(graph).to_scipy().toarray(), wanted)
    np.testing.assert_allclose(mn.graph.jaccard(graph).to_scipy().toarray(), shares)
    asked = np.zeros((n, n), bool)
    asked[tuple(graph.tocoo().coords)] = True
    np.fill_diagonal(asked, False)
    found = mn.graph.jaccard(graph, pairs=graph).to_scipy().toarray()
    np.fill_diagonal(found, 0)
    np.testing.assert_allclose(found, shares * asked)


def test_independent_sets(graph: sp.csr_array, undirected: nx.Graph) -> None:
    for seed in range(3):
        found = mn.graph.maximal_independent_set(graph, seed=seed)
        chosen = set(np.flatnonzero(found.compute()).tolist())
        assert not any(i in chosen and j in chosen for i, j in undirected.edges)
        assert all(vertex in chosen or chosen & set(undirected[vertex]) for vertex in undirected)


def test_refusals() -> None:
    A = sp.csr_array(np.eye(3))
    with pytest.raises(mn.errors.DTypeError, match="jaccard: pairs is dense"):
        mn.graph.jaccard(A, pairs=np.eye(3))
    with pytest.raises(mn.errors.ShapeError, match=r"common_neighbors: pairs of shape \(2, 2\) for 3"):
        mn.graph.common_neighbors(A, pairs=sp.csr_array((2, 2)))
    with pytest.raises(mn.errors.OptionError, match="edge_betweenness: batch=0"):
        mn.graph.edge_betweenness(A, batch=0)
    with pytest.raises(mn.errors.IndexingError, match="vertex 3 of a graph with 3"):
        mn.graph.all_pairs_shortest_path_length(A, [3])
