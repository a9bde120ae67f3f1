"""A matrix as NetworkX's graph: the same edges, weights, nodes and kind."""

from __future__ import annotations

import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import TooLargeError, UnsupportedError

pytestmark = pytest.mark.session("interpreter", compute_limit="20 kB")


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_there_and_back_is_the_same_graph(kind: type[nx.Graph]) -> None:
    given = kind()
    given.add_nodes_from("zyx")
    given.add_weighted_edges_from([("z", "x", 2.5), ("x", "x", 1.0), ("y", "z", 4.0)])
    made = mn.graph.to_networkx(mn.asarray(given))
    assert type(made) is kind
    assert list(made) == list(given)
    assert nx.utils.graphs_equal(made, given)


def test_nodes_are_the_ids_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("30 10\n10 77\n77 10\n")
    A = mn.load(path)
    made = mn.graph.to_networkx(A)
    assert set(made.edges) == {(30, 10), (10, 77), (77, 10)}
    assert nx.reciprocity(made) == pytest.approx(2 / 3)
    assert not mn.graph.to_networkx(A + A.T).is_directed()
    assert mn.graph.to_networkx(A + A.T, directed=True).number_of_edges() == 4
    pivot = mn.table({"a": ["x", "y"], "b": ["y", "x"]}).pivot("a", "b")
    assert set(mn.graph.to_networkx(pivot).edges) == {("x", "y")}


def test_what_is_nan_both_ways_is_undirected() -> None:
    weights = np.array([[0.0, np.nan], [np.nan, 0.0]])
    assert not mn.graph.to_networkx(sp.csr_array(weights)).is_directed()
    weights[1, 0] = 1.0
    assert mn.graph.to_networkx(sp.csr_array(weights)).is_directed()


def test_what_does_not_fit_or_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TooLargeError):
        mn.graph.to_networkx(mn.asarray(sp.csr_array(np.ones((60, 60)))))
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(UnsupportedError, match="pip install networkx"):
        mn.graph.to_networkx(mn.eye(2))


@pytest.mark.parametrize("name", ["reciprocity", "transitivity", "is_directed_acyclic_graph", "pagerank"])
def test_networkx_functions_of_a_matrix_name_its_graph(name: str) -> None:
    G = nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")])
    A = mn.asarray(G)
    with pytest.raises((AttributeError, UnsupportedError), match=r"NetworkX takes mn.graph.to_networkx\(A\)"):
        getattr(nx, name)(A)
    assert getattr(nx, name)(mn.graph.to_networkx(A)) == getattr(nx, name)(G)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ego_graph", ("a",)), ("shortest_path_length", ("a", "c")), ("has_path", ("a", "c")),
        ("single_source_dijkstra", ("a",)), ("predecessor", ("a",)), ("node_boundary", (["a"],)),
        ("is_empty", ()), ("nodes_with_selfloops", ()),
    ],
)  # fmt: skip
def test_so_do_those_that_ask_for_a_vertex_or_edges_first(name: str, others: tuple[object, ...]) -> None:
    A = mn.asarray(nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c")]))
    for one in (A, mn.asarray(A.to_scipy())):
        with pytest.raises(UnsupportedError, match=r"NetworkX takes mn.graph.to_networkx\(A\)"):
            getattr(nx, name)(one, *others)
    getattr(nx, name)(mn.graph.to_networkx(A), *others)
    assert 1 in mn.asarray(A.to_scipy())
    assert 7 not in mn.asarray(A.to_scipy())


def test_labels_go_through_loops_that_keep_them() -> None:
    A = mn.asarray(nx.DiGraph([("a", "b"), ("b", "a"), ("b", "c"), ("c", "a")]))
    kept = mn.iterate(lambda x: x @ A + A, A, max_iterations=3)[0]
    assert kept.labels.tolist() == ["a", "b", "c"]
    assert kept.T.labels.tolist() == ["a", "b", "c"]
    assert kept[1:].labels.tolist() == ["b", "c"]
    moved = mn.iterate(lambda x: x[mn.asarray(np.array([1, 2, 0]))], A, max_iterations=3)[0]
    assert moved.labels is None
    assert moved.T.labels.tolist() == ["a", "b", "c"]
    (one, other), _ = mn.iterate(lambda pair: (pair[1] * 2, pair[0][::-1]), (A, A + A), max_iterations=2)
    assert one.labels is None
    assert other.labels is None
