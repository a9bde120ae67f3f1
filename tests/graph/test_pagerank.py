"""PageRank against NetworkX, and what it refuses; published vectors are in ``test_published_ranks.py``."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def expected(peer: nx.DiGraph, **options: object) -> np.ndarray:
    ranks = nx.pagerank(peer, tol=1e-14, max_iter=1000, **options)
    return np.array([ranks[vertex] for vertex in range(len(peer))])


@pytest.mark.parametrize("damping", [0.85, 0.5, 0.0])
def test_ranks_are_those_of_networkx(graph: sp.csr_array, peer: nx.DiGraph, damping: float) -> None:
    ranks, iterations = mn.graph.pagerank(graph, damping, tolerance=1e-12, max_iterations=1000)
    np.testing.assert_allclose(ranks.compute(), expected(peer, alpha=damping), rtol=1e-8)
    assert float(ranks.sum()) == pytest.approx(1)
    assert 0 < int(iterations) < 1000


def test_jumps_and_dangling_mass_go_where_they_are_sent(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    weights = 1.0 + np.arange(graph.shape[0])
    ranks, _ = mn.graph.pagerank(graph, tolerance=1e-12, max_iterations=1000, personalization=weights)
    wanted = expected(peer, personalization=dict(enumerate(weights)))
    np.testing.assert_allclose(ranks.compute(), wanted, rtol=1e-8)


def ranks_by_networkx(G: nx.DiGraph, personalization: dict) -> list[float]:
    return [*nx.pagerank(G, tol=1e-14, max_iter=1000, personalization=personalization).values()]


def test_jumps_go_to_vertices_by_their_labels(tmp_path: Path) -> None:
    edges = [(70, 3), (3, 900), (900, 70), (70, 900), (12, 3)]
    (tmp_path / "e.txt").write_text("".join(f"{one} {other}\n" for one, other in edges))
    ids, names = nx.DiGraph(), nx.DiGraph([("b", "a"), ("a", "c"), ("c", "b"), ("c", "a")])
    ids.add_nodes_from([3, 12, 70, 900])
    ids.add_edges_from(edges)
    rows = nx.relabel_nodes(ids, dict(zip(ids, range(4), strict=True)))
    for A, G, jumps in (
        (mn.load(str(tmp_path / "e.txt")), ids, {900: 1, 12: 3}),
        (mn.asarray(names), names, {"c": 2.5}),
        (nx.to_scipy_sparse_array(rows), rows, {3: 1, 0: 2}),
    ):
        ranks, _ = mn.graph.pagerank(A, tolerance=1e-12, max_iterations=1000, personalization=jumps)
        np.testing.assert_allclose(ranks.compute(), ranks_by_networkx(G, jumps), rtol=1e-8)
    A = mn.load(str(tmp_path / "e.txt"))
    with pytest.raises(mn.errors.IndexingError, match="personalization of vertex 2, which is no label"):
        mn.graph.pagerank(A, personalization={900: 1, 2: 1}).ranks.compute()
    with pytest.raises(mn.errors.IndexingError, match="vertex 'x', which is no label of the graph"):
        mn.graph.pagerank(mn.asarray(names), personalization={"x": 1})
    with pytest.raises(mn.errors.IndexingError, match="vertex 4 of a graph with 4 vertices: give 0 to 3"):
        mn.graph.pagerank(nx.to_scipy_sparse_array(rows), start={4: 1})


def test_it_starts_where_it_is_told(graph: sp.csr_array) -> None:
    ranks, _ = mn.graph.pagerank(graph, tolerance=1e-12, max_iterations=1000)
    again, iterations = mn.graph.pagerank(graph, tolerance=1e-9, start=ranks.compute() * 7)
    assert int(iterations) == 1
    np.testing.assert_allclose(again.compute(), ranks.compute(), rtol=1e-8)


@pytest.mark.parametrize("tolerance", [None, 0])
def test_without_a_tolerance_the_number_of_iterations_is_fixed(tolerance: float | None) -> None:
    A = sp.csr_array(np.ones((3, 3)))
    ranks, iterations = mn.graph.pagerank(A, tolerance=tolerance, max_iterations=7)
    assert int(iterations) == 7
    np.testing.assert_allclose(ranks.compute(), np.full(3, 1 / 3))


def test_no_iterations_leave_the_start() -> None:
    ranks, iterations = mn.graph.pagerank(sp.csr_array(np.eye(2)), max_iterations=0, start=[3, 1])
    assert ranks.compute().tolist() == [0.75, 0.25]
    assert int(iterations) == 0


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"damping": 1.5}, mn.errors.OptionError, "damping=1.5"),
        ({"tolerance": -1.0}, mn.errors.OptionError, "tolerance=-1.0"),
        ({"personalization": [1.0]}, mn.errors.ShapeError, r"personalization of shape \(1,\) for 3 vertices"),
        ({"start": [1.0]}, mn.errors.ShapeError, r"start of shape \(1,\) for 3 vertices"),
    ],
)
def test_what_it_refuses(options: dict[str, object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        mn.graph.pagerank(sp.csr_array(np.eye(3)), **options)
