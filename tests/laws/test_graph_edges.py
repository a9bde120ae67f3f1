"""What is an edge, and how often it counts: self-loops, stored zeros and booleans, as NetworkX has them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import StoredZerosWarning

N = 6
DRAWN = st.dictionaries(
    st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)), st.sampled_from([0.5, 1.0, 3.0]), max_size=14
)
FEW = settings(max_examples=12, suppress_health_check=list(HealthCheck))
Edges = dict[tuple[int, int], float]

pytestmark = pytest.mark.session("one thread")


def graph_of(edges: Edges, directed: bool) -> nx.Graph:
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(N))
    graph.add_weighted_edges_from((i, j, weight) for (i, j), weight in edges.items())
    return graph


def in_order(values: dict[int, float]) -> list[float]:
    return [values[vertex] for vertex in range(N)]


@given(DRAWN, st.booleans(), st.booleans())
@FEW
def test_degrees_are_those_of_networkx(edges: Edges, directed: bool, weighted: bool) -> None:
    graph = graph_of(edges, directed)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(N), format="csr")
    weight = "weight" if weighted else None
    asked = {"both": graph.degree, "out": graph.out_degree, "in": graph.in_degree} if directed else {
        "out": graph.degree, "in": graph.degree,
    }  # fmt: skip
    for direction, wanted in asked.items():
        known = in_order(dict(wanted(weight=weight)))
        # A matrix that equals its transpose is taken for an undirected graph's.
        ways: list[tuple[object, bool | None]] = [(graph, None), (matrix, directed)]
        if not directed or (matrix != matrix.T).nnz:
            ways.append((matrix, None))
        for given_graph, is_directed in ways:
            found = mn.graph.degree(given_graph, direction, weighted, directed=is_directed)
            np.testing.assert_allclose(found.compute(), known)
            if not weighted:
                shares = mn.graph.degree_centrality(given_graph, direction, directed=is_directed)
                np.testing.assert_allclose(shares.compute(), np.array(known) / (N - 1))


@given(DRAWN.filter(len), st.booleans(), st.lists(st.integers(0, 2), min_size=N, max_size=N))
@FEW
def test_modularity_is_that_of_networkx(edges: Edges, directed: bool, labels: list[int]) -> None:
    graph = graph_of(edges, directed)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(N), format="csr")
    parts = [{v for v in range(N) if labels[v] == part} for part in set(labels)]
    wanted = nx.community.modularity(graph, parts, resolution=1.5)
    for given_graph, is_directed in ((graph, None), (matrix, directed)):
        found = mn.graph.modularity(given_graph, labels, 1.5, directed=is_directed)
        assert float(found) == pytest.approx(wanted, abs=1e-12)
    if not directed:
        assert float(mn.graph.modularity(matrix, labels, 1.5)) == pytest.approx(wanted, abs=1e-12)


@given(DRAWN.filter(len), st.booleans())
@settings(FEW, max_examples=4)
def test_communities_of_undirected_graphs_have_networkx_modularity(edges: Edges, symmetric: bool) -> None:
    graph = graph_of(edges, directed=False)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(N), format="csr")
    labels, value = mn.compute(*mn.graph.louvain(matrix, symmetric=symmetric))
    parts = [{v for v in range(N) if labels[v] == part} for part in set(labels.tolist())]
    assert float(value) == pytest.approx(nx.community.modularity(graph, parts), abs=1e-12)


def test_a_loop_has_two_ends() -> None:
    pair = sp.csr_array([[1.0, 1.0], [1.0, 0.0]])
    assert mn.graph.degree(pair).compute().tolist() == [3, 1]
    assert mn.graph.degree(pair, weighted=True).compute().tolist() == [3.0, 1.0]
    assert mn.graph.degree_centrality(pair).compute().tolist() == [3.0, 1.0]
    assert mn.graph.degree(pair, directed=True).compute().tolist() == [2, 1]
    assert float(mn.graph.modularity(pair, [0, 1])) == pytest.approx(2 / 4 - 9 / 16 - 1 / 16)


@pytest.mark.parametrize(
    ("weights", "is_undirected"),
    [
        ([[3, 1], [2, 0]], False),
        ([[3.0, 2.0], [2.0, 0.0]], True),
        ([[1, 5, 0], [4, 0, 2], [0, 2, 1]], False),
        ([[1.0, np.nan], [np.nan, 2.0]], True),
        ([[1.0, np.nan], [1.0, 2.0]], False),
        ([[2.0, 0.0], [1.0, 0.0]], False),
        ([[True, True], [True, False]], True),
        ([[True, True], [False, True]], False),
    ],
)
@pytest.mark.parametrize("asked", ["degree", "weighted", "centrality"])
def test_what_is_asked_of_a_matrix_does_not_change_whether_it_is_undirected(
    asked: str, weights: list[list[float]], is_undirected: bool
) -> None:
    matrix = sp.csr_array(np.array(weights))
    function = {
        "degree": mn.graph.degree,
        "weighted": partial(mn.graph.degree, weighted=True),
        "centrality": mn.graph.degree_centrality,
    }[asked]
    np.testing.assert_array_equal(function(matrix), function(matrix, directed=not is_undirected))


def test_a_zero_stored_one_way_is_an_edge_of_a_directed_graph() -> None:
    one_way = sp.csr_array(([1.0, 0.0], ([0, 0], [0, 1])), shape=(2, 2))
    assert mn.graph.degree(one_way).compute().tolist() == [2, 0]
    assert mn.graph.degree(one_way, weighted=True).compute().tolist() == [1.0, 0.0]


BY_EDGES: dict[str, Callable[[object], mn.DistArray]] = {
    "degree": mn.graph.degree,
    "bfs": lambda A: mn.graph.bfs(A, 0).levels,
    "connected_components": lambda A: mn.graph.connected_components(A).labels,
    "triangle_count": mn.graph.triangle_count,
    "betweenness": mn.graph.betweenness,
    "closeness": mn.graph.closeness,
    "core_number": mn.graph.core_number,
    "label_propagation": mn.graph.label_propagation,
    "jaccard": lambda A: mn.graph.jaccard(A).sum(),
    "pagerank": lambda A: mn.graph.pagerank(A).ranks,
    "sssp": lambda A: mn.graph.sssp(A, 0),
}


def some_weights() -> np.ndarray:
    rng = np.random.default_rng(1)
    half = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.8), 1)
    return half + half.T


@pytest.mark.parametrize("name", BY_EDGES)
def test_false_is_no_edge(name: str) -> None:
    weights = some_weights()
    matrix, wanted = mn.asarray(sp.csr_array(weights), blocks=3), sp.csr_array((weights > 0.5).astype(float))
    expected = BY_EDGES[name](wanted).compute()
    stored = sp.csr_array(weights)
    stored = sp.csr_array((stored.data > 0.5, stored.indices, stored.indptr), shape=stored.shape)
    for boolean in (matrix > 0.5, (matrix > 0.5).T, stored, mn.asarray(stored)):
        np.testing.assert_allclose(BY_EDGES[name](boolean).compute(), expected, err_msg=name)


ROWS = np.arange(N) % 2 == 0
MASKED: dict[str, Callable[[mn.DistArray], mn.DistArray]] = {
    "product with booleans of rows": lambda A: A * ROWS[:, None],
    "product with chosen rows": lambda A: A * (mn.arange(A.shape[0]) % 2 == 0)[:, None],
    "product with what is not a number": lambda A: A * (A.max() != A),
    "the other way round": lambda A: ROWS * A,
    "transposed": lambda A: (A * ROWS).T,
    "scaled": lambda A: 2 * (A * ROWS),
    "product with a mask's opposite": lambda A: A * ~(A > 0.5),
    "product with what is true of 0": lambda A: A * (A < 0.5),
}


@pytest.mark.parametrize("name", MASKED)
def test_zeros_that_a_dense_mask_leaves_are_warned_of_once(name: str) -> None:
    matrix = mn.asarray(sp.csr_array(some_weights()))
    masked = MASKED[name](matrix)
    with pytest.warns(StoredZerosWarning, match=r"degree of .*\.eliminate_zeros\(\)") as caught:
        mn.graph.degree(masked)
    assert caught[0].filename == __file__
    without = masked.eliminate_zeros()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mn.graph.connected_components(masked)  # once for a matrix
        mn.graph.pagerank(
            MASKED[name](mn.asarray(sp.csr_array(some_weights() * 1.25)))
        )  # by weight: 0 is none
        mn.graph.degree(MASKED[name](mn.asarray(sp.csr_array(some_weights() * 1.5))), weighted=True)
        degrees = mn.graph.degree(without).compute()
    wanted = (without.to_scipy().toarray() != 0).sum(axis=1)
    np.testing.assert_array_equal(degrees, wanted)


EXACT: dict[str, Callable[[mn.DistArray], mn.DistArray]] = {
    "product": lambda A: A * (A > 0.5),
    "the other way round": lambda A: (A > 0.5) * A,
    "transposed": lambda A: (A * (A > 0.5)).T,
    "scaled": lambda A: 2 * (A * (A > 0.5)),
    "converted": lambda A: (A > 0.5).astype(float),
    "chosen": lambda A: mn.where(A > 0.5, A, 0),
    "product with two comparisons": lambda A: A * ((A > 0.3) & (A < 0.9)),
    "two comparisons, converted": lambda A: ((A > 0.3) & (A < 0.9)).astype(float),
    "columns": lambda A: A * np.arange(1.0, N + 1),
    "squares": lambda A: A * A,
    "not 0": lambda A: A != 0,
    "both ways": lambda A: ((A + A.T) != 0).astype(float),
    "steps": lambda A: A @ A,
    "one way less the other": lambda A: A - (A > 0.5) * A,
    "without self-loops": lambda A: A + mn.eye(N) - mn.diag(mn.diag(A + mn.eye(N))),
    "of some vertices": lambda A: mn.diag(mn.asarray(ROWS * 1.0)) @ A @ mn.diag(mn.asarray(ROWS * 1.0)),
}


@pytest.mark.parametrize("name", EXACT)
def test_other_masks_leave_no_zeros_and_are_not_warned_of(name: str) -> None:
    matrix = mn.asarray(sp.csr_array(some_weights()), blocks=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = EXACT[name](matrix)
        degrees = mn.graph.degree(made, directed=True).compute()
    np.testing.assert_array_equal(degrees, (made.toarray() != 0).sum(axis=1))


def test_masks_of_any_depth_are_found() -> None:
    deep = mn.asarray(sp.csr_array(some_weights() * 1.75)) * ROWS
    for _ in range(3000):
        deep = deep * 2.0
    with pytest.warns(StoredZerosWarning, match="masked by booleans"):
        mn.graph.degree(deep)
    some = mn.asarray(sp.csr_array(some_weights() * 1.8))
    with pytest.warns(StoredZerosWarning, match=r"a comparison \(not_equal\)"):
        mn.graph.degree(some * (some.max() != some))


def test_errors_name_what_was_called() -> None:
    with pytest.raises(mn.errors.OptionError, match=r"^degree_centrality: direction='upward'"):
        mn.graph.degree_centrality(nx.path_graph(3), direction="upward")
