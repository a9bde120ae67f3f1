"""Shortest paths over weights that are lost beside larger ones: betweenness counts no circles."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import OptionError
from matnb.graph import weighted_ways
from matnb.graph.sssp import distances_along, tight_edges

Graph = dict[tuple[int, int], float]

pytestmark = pytest.mark.session("one thread")


def path(*weights: float) -> sp.csr_array:
    n = len(weights) + 1
    return undirected({(i, i + 1): weight for i, weight in enumerate(weights)}, n)


def undirected(edges: Graph, n: int) -> sp.csr_array:
    (rows, columns), weights = np.array(list(edges)).T, np.array(list(edges.values()), float)
    places = np.r_[rows, columns], np.r_[columns, rows]
    return sp.csr_array((np.r_[weights, weights], places), shape=(n, n))


def exact(graph: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the betweenness of vertices and of edges, of all pairs, in fractions."""
    n, coo = graph.shape[0], graph.tocoo()
    weights = {(int(i), int(j)): Fraction(float(w)) for i, j, w in zip(*coo.coords, coo.data, strict=True)}
    distance = [[Fraction(0) if i == j else weights.get((i, j)) for j in range(n)] for i in range(n)]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                first, second = distance[i][k], distance[k][j]
                if first is not None and second is not None:
                    old, new = distance[i][j], first + second
                    distance[i][j] = new if old is None or new < old else old
    vertices, edges = np.zeros(n), np.zeros((n, n))
    for s in range(n):
        reached = [v for v in range(n) if distance[s][v] is not None]
        order = sorted(reached, key=lambda v: distance[s][v])  # type: ignore[arg-type, return-value]
        ways = [0] * n
        ways[s] = 1
        before: dict[int, list[int]] = {v: [] for v in reached}
        for w in order:
            for v in order:
                if (v, w) in weights and distance[s][v] + weights[v, w] == distance[s][w]:  # type: ignore[operator]
                    before[w].append(v)
                    ways[w] += ways[v]
        share = [Fraction(0)] * n
        for w in reversed(order):
            for v in before[w]:
                part = Fraction(ways[v], ways[w]) * (1 + share[w])
                edges[v, w] += float(part)
                share[v] += part
        for v in reached:
            vertices[v] += float(share[v]) if v != s else 0
    return vertices, edges


def check(graph: sp.csr_array) -> None:
    vertices, edges = exact(graph)
    found = mn.graph.betweenness(graph, weighted=True, normalized=False)
    np.testing.assert_allclose(found.compute(), vertices, rtol=1e-12, atol=1e-12)
    of_edges = mn.graph.edge_betweenness(graph, weighted=True, normalized=False).to_scipy().toarray()
    np.testing.assert_allclose(of_edges, edges, rtol=1e-12, atol=1e-12)


def test_a_lost_weight_is_no_circle() -> None:
    found = mn.graph.betweenness(path(1, 1, 1e-23, 1), weighted=True, normalized=False, directed=False)
    assert found.compute().tolist() == [0, 3, 4, 3, 0]


GRAPHS = {
    "once": path(1, 1e-23, 1, 1e-23),
    "within what is lost": path(1, 1e-20, 1e-40, 1e-60, 1),
    "in a ring": undirected({(0, 1): 1, (1, 2): 1e-30, (2, 3): 1e-30, (1, 3): 3e-30, (3, 4): 1}, 5),
    "of two ways": undirected({(0, 1): 1, (1, 2): 1e-20, (1, 3): 1e-20, (2, 4): 1e-20, (3, 4): 1e-20}, 5),
    "of subnormal ones": path(1e-300, 5e-324, 1, 5e-324),
    "at the beginning": path(1e-200, 1e-100, 1, 1e100),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_lost_weights_have_their_order(name: str) -> None:
    check(GRAPHS[name])


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda edge: edge[0] < edge[1]),
        st.sampled_from([1.0, 2.0, 2.0**-60, 2.0**-59, 2.0**-130]),
        min_size=3,
        max_size=9,
    )
)
@settings(max_examples=8, suppress_health_check=list(HealthCheck))
def test_of_drawn_weights_no_vertex_has_more_than_all_paths(edges: Graph) -> None:
    graph = undirected(edges, 6)
    found = mn.graph.betweenness(graph, weighted=True, normalized=False, directed=False).compute()
    assert (found <= 10 + 1e-9).all()  # as many pairs of others
    # What is away from other edges has its order exactly; a tie of long paths may be rounding.
    if is_forest(edges):
        check(graph)


def is_forest(edges: Graph) -> bool:
    parts = {vertex: {vertex} for vertex in range(6)}
    for one, other in edges:
        if parts[one] is parts[other]:
            return False
        joined = parts[one] | parts[other]
        for vertex in joined:
            parts[vertex] = joined
    return True


@pytest.mark.parametrize("name", ["betweenness", "edge_betweenness"])
@pytest.mark.parametrize("weights", [(1, 1, 1e-23, 1), (1, 1e-20, 1), (5, 1, 1e-200, 1e-210, 1)])
def test_numbers_of_paths_that_never_settle_are_refused(
    weights: tuple[float, ...], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if edges whose weights are lost were left without an order: they go round in circles.
    def unordered(matrix: mn.DistArray, at_source: mn.DistArray, far: mn.DistArray) -> mn.DistArray:
        return tight_edges(matrix, distances_along(matrix, at_source, far))

    monkeypatch.setattr(weighted_ways, "_ordered", unordered)
    with pytest.raises(OptionError, match="did not settle in"):
        getattr(mn.graph, name)(path(*weights), weighted=True).compute()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["betweenness", "edge_betweenness"])
def test_more_paths_than_are_counted_are_refused(name: str, weighted: bool) -> None:
    # 64**200 shortest paths from end to end, through layers of which each is joined to all of the next.
    layers = sp.kron(sp.diags_array([np.ones(199)], offsets=[1]), np.ones((64, 64))).tocsr()
    with pytest.raises(OptionError, match="more shortest paths than a float64 can count"):
        getattr(mn.graph, name)(layers, sources=[0], weighted=weighted).compute()
