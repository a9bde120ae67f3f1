"""Labels of rows follow what is made of a graph, or are not there; a number that is shown is what selects."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import ShapeError
from matnb.graph import vertex_labels

IDS = np.array([5, 9, 30, 31, 77, 100])
EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]
KEEP = np.array([True, False, True, True, False, True])
PLACES = np.array([4, 0, 2])
# What is made of a matrix, and of which rows its rows are; None where they are no vertices.
MADE: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "transpose": (lambda A: A.T, slice(None)),
    "sum": (lambda A: A + A.T, slice(None)),
    "number": (lambda A: A * 1, slice(None)),
    "comparison": (lambda A: (A != 0).astype(float), slice(None)),
    "rows": (lambda A: A[KEEP], KEEP),
    "columns": (lambda A: A[:, KEEP], slice(None)),
    "columns, turned": (lambda A: A[:, KEEP].T, KEEP),
    "rows and columns": (lambda A: A[KEEP][:, KEEP], KEEP),
    "rows of the workers": (lambda A: A[mn.asarray(KEEP)], KEEP),
    "rows by degree": (lambda A: A[mn.graph.degree(A, "both") > 2], np.array([2, 3])),
    "places": (lambda A: A[PLACES], PLACES),
    "a block": (lambda A: A[np.ix_(PLACES, PLACES)], PLACES),
    "a slice": (lambda A: A[1:4, 1:4], slice(1, 4)),
    "turned around": (lambda A: np.flip(A), slice(None, None, -1)),
    "a core": (lambda A: mn.graph.k_core(A + A.T, 2), slice(None)),
    "square": (lambda A: A @ A, slice(None)),
    "by its transpose": (lambda A: A @ A.T, slice(None)),
    "scaled by rows": (lambda A: mn.diag(A.sum(axis=1)) @ A, slice(None)),
    "without self-loops": (lambda A: A - mn.diag(mn.diag(A)), slice(None)),
    "triangle": (lambda A: mn.triu(A), slice(None)),
    "pattern": (lambda A: A.pattern(float).prune(0.5).select(A > 0), slice(None)),
    "other cuts": (lambda A: mn.repartition(A, 3), slice(None)),
    "a copy": (lambda A: A.copy().persist(), slice(None)),
    "dense": (lambda A: mn.asarray(A, format="dense"), slice(None)),
    "a row": (lambda A: A[2], slice(None)),
    "sums": (lambda A: A.sum(axis=0), slice(None)),
    "sums of some rows": (lambda A: A[KEEP].sum(axis=1), KEEP),
    "a vector": (lambda A: np.sqrt(A.sum(axis=1)) + 1, slice(None)),
    "elements": (lambda A: A.sum(axis=1)[KEEP], KEEP),
    "a product with a vector": (lambda A: A[PLACES] @ np.ones(6), PLACES),
    "a vector times a matrix": (lambda A: np.ones(6) @ A, slice(None)),
    "a column": (lambda A: A.sum(axis=1)[:, None], slice(None)),
    "a sum of what broadcasts": (lambda A: np.ones((6, 1)) * A.sum(axis=0), None),
    "a diagonal": (lambda A: mn.diag(A.sum(axis=0)), slice(None)),
    "all": (lambda A: A.sum(), None),
    "in another order": (lambda A: np.sort(A.sum(axis=1)), None),
    "no labels": (lambda A: A.without_labels() + 1, None),
}

pytestmark = pytest.mark.session("two threads")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{IDS[one]} {IDS[other]}\n" for one, other in EDGES))
    return path


def named() -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from("abcdef")
    graph.add_edges_from(("abcdef"[one], "abcdef"[other]) for one, other in EDGES)
    return graph


@pytest.mark.parametrize("name", MADE)
def test_ids_of_a_file_and_names_of_a_graph_follow(name: str, path: Path) -> None:
    make, rows = MADE[name]
    for given, labels in ((mn.load(path), IDS), (mn.asarray(named()), np.array(list("abcdef"), object))):
        found = make(given).labels
        if rows is None:
            assert found is None
        else:
            assert np.asarray(found).tolist() == labels[rows].tolist()


# What each function of mn.graph gives, and which of its axes are vertices: all, those of some rows, or none.
ALL = slice(None)
TWO = np.array([3, 1])
RESULTS: dict[str, tuple[Callable[[Any, Any], Any], list[tuple[Any, ...]]]] = {
    "all_pairs_shortest_path_length": (
        lambda A, _: mn.graph.all_pairs_shortest_path_length(A), [(ALL, ALL)],
    ),
    "all_pairs_shortest_path_length of two": (
        lambda A, two: mn.graph.all_pairs_shortest_path_length(A, two), [(TWO, ALL)],
    ),
    "average_clustering": (lambda A, _: mn.graph.average_clustering(A), [()]),
    "betweenness": (mn.graph.betweenness, [(ALL,)]),
    "bfs": (lambda A, two: mn.graph.bfs(A, two[0]), [(ALL,), (ALL,)]),
    "bfs of two": (mn.graph.bfs, [(TWO, ALL), (TWO, ALL)]),
    "closeness": (lambda A, _: mn.graph.closeness(A), [(ALL,)]),
    "clustering": (lambda A, _: mn.graph.clustering(A), [(ALL,)]),
    "common_neighbors": (lambda A, _: mn.graph.common_neighbors(A), [(ALL, ALL)]),
    "connected_components": (lambda A, _: mn.graph.connected_components(A), [(), (ALL,)]),
    "core_number": (lambda A, _: mn.graph.core_number(A), [(ALL,)]),
    "degree": (lambda A, _: mn.graph.degree(A, "both"), [(ALL,)]),
    "degree_centrality": (lambda A, _: mn.graph.degree_centrality(A), [(ALL,)]),
    "edge_betweenness": (mn.graph.edge_betweenness, [(ALL, ALL)]),
    "eigenvector_centrality": (lambda A, _: mn.graph.eigenvector_centrality(A), [(ALL,), ()]),
    "floyd_warshall": (lambda A, _: mn.graph.floyd_warshall(A), [(ALL, ALL)]),
    "harmonic": (lambda A, _: mn.graph.harmonic(A), [(ALL,)]),
    "hits": (lambda A, _: mn.graph.hits(A), [(ALL,), (ALL,), ()]),
    "jaccard": (lambda A, _: mn.graph.jaccard(A), [(ALL, ALL)]),
    "k_core": (lambda A, _: mn.graph.k_core(A, 2), [(ALL, ALL)]),
    "k_truss": (lambda A, _: mn.graph.k_truss(A, 3), [(ALL, ALL)]),
    "katz": (lambda A, _: mn.graph.katz(A), [(ALL,), ()]),
    "label_propagation": (lambda A, _: mn.graph.label_propagation(A), [(ALL,)]),
    "laplacian": (lambda A, _: mn.graph.laplacian(A, normed=True), [(ALL, ALL)]),
    "louvain": (lambda A, _: mn.graph.louvain(A), [(ALL,), ()]),
    "markov_clustering": (lambda A, _: mn.graph.markov_clustering(A), [(ALL,), (ALL, ALL), ()]),
    "maximal_independent_set": (lambda A, _: mn.graph.maximal_independent_set(A), [(ALL,)]),
    "minimum_spanning_forest": (lambda A, _: mn.graph.minimum_spanning_forest(A), [(ALL, ALL)]),
    "modularity": (lambda A, _: mn.graph.modularity(A, [0, 0, 0, 1, 1, 1]), [()]),
    "pagerank": (lambda A, _: mn.graph.pagerank(A), [(ALL,), ()]),
    "sssp": (lambda A, two: mn.graph.sssp(A, two[0]), [(ALL,)]),
    "sssp with predecessors": (lambda A, two: mn.graph.sssp(A, two[0], True), [(ALL,), (ALL,)]),
    "strongly_connected_components": (
        lambda A, _: mn.graph.strongly_connected_components(A), [(), (ALL,)],
    ),
    "transitivity": (lambda A, _: mn.graph.transitivity(A), [()]),
    "triangle_count": (lambda A, _: mn.graph.triangle_count(A), [()]),
    "triangle_estimate": (lambda A, _: mn.graph.triangle_estimate(A), [()]),
    "triangles": (lambda A, _: mn.graph.triangles(A), [(ALL,)]),
}  # fmt: skip


def test_every_function_is_in_the_table() -> None:
    functions = {name for name in mn.graph.__all__ if inspect.isfunction(getattr(mn.graph, name))}
    assert functions - {"to_networkx"} == {name.split(" ")[0] for name in RESULTS}


@pytest.mark.parametrize("name", RESULTS)
def test_axes_of_results_that_are_vertices_have_their_labels(name: str, path: Path) -> None:
    call, axes = RESULTS[name]
    names = np.array(list("abcdef"), object)
    edges = {"src": [names[one] for one, _ in EDGES], "dst": [names[other] for _, other in EDGES]}
    for given, labels in (
        (mn.load(path), IDS), (mn.asarray(named()), names), (named(), names),
        (mn.table(edges).pivot("src", "dst"), names),
    ):  # fmt: skip
        found = call(given, labels[TWO].tolist())
        arrays = [found] if isinstance(found, mn.DistArray) else [*found]
        assert len(arrays) == len(axes)
        for array, rows in zip(arrays, axes, strict=True):
            assert array.ndim == len(rows)
            for side, wanted in zip((array, array.T), rows, strict=False):
                assert np.asarray(side.labels).tolist() == labels[wanted].tolist()


def edges_in(path: Path, edges: list[tuple[Any, Any]]) -> mn.DistArray:
    path.write_text("".join(f"{one} {other}\n" for one, other in edges))
    return mn.load(path)


RING = [(1, 2), (2, 3), (3, 1)]
OTHER = [(1, 2), (2, 4), (4, 1)]
COMBINED: dict[str, Callable[[Any, Any], Any]] = {
    "compared": lambda A, B: (A != B).nnz,
    "a product": lambda A, B: A @ B,
    "a product over a semiring": lambda A, B: mn.matmul(A, B, semiring="min_plus"),
    "a product where another has entries": lambda A, B: mn.matmul(A, A, mask=B),
    "a sum": lambda A, B: A + B,
    "a sum with what is turned": lambda A, B: A.T + B.T,
    "a sum in place": lambda A, B: (A * 1.0).__iadd__(B),
    "a sum into another": lambda A, B: np.add(A, B, out=A * 1.0),
    "chosen": lambda A, B: np.where(A > 0, B, 0),
    "the larger": lambda A, B: np.maximum(A, B),
    "scipy's product": lambda A, B: A.multiply(B),
    "degrees": lambda A, B: mn.graph.degree(A) + mn.graph.degree(B),
    "ranks": lambda A, B: mn.graph.pagerank(A).ranks - mn.graph.pagerank(B).ranks,
    "a matrix and ranks": lambda A, B: A @ mn.graph.pagerank(B).ranks,
    "ranks and a matrix": lambda A, B: mn.graph.pagerank(B).ranks @ A,
    "an inner product": lambda A, B: A.sum(axis=0) @ B.sum(axis=0),
    "scaled rows": lambda A, B: A * mn.graph.degree(B)[:, None],
    "scaled columns": lambda A, B: A / mn.graph.degree(B),
    "a scaling product": lambda A, B: mn.diag(B.sum(axis=1)) @ A,
    "some rows": lambda A, B: A[[2, 1]] + B[[2, 1]],
    "some rows by a mask": lambda A, B: A[np.array([False, True, True])] + B[np.array([False, True, True])],
    "a slice": lambda A, B: A[1:] + B[1:],
    "some rows and all": lambda A, B: A[np.array([False, True, True])] @ B,
    "jumps": lambda A, B: mn.graph.pagerank(A, personalization=mn.graph.pagerank(B).ranks),
    "a start": lambda A, B: mn.graph.pagerank(A, start=B.sum(axis=0)),
    "pairs": lambda A, B: mn.graph.jaccard(A, pairs=B),
    "communities": lambda A, B: mn.graph.modularity(A, mn.graph.louvain(B).labels),
    "katz": lambda A, B: mn.graph.katz(A, beta=mn.graph.degree(B)),
}


@pytest.mark.parametrize("name", COMBINED)
def test_vertices_of_two_graphs_are_combined_only_where_they_are_the_same(name: str, tmp_path: Path) -> None:
    combine = COMBINED[name]
    A, B = edges_in(tmp_path / "a.txt", RING), edges_in(tmp_path / "b.txt", OTHER)
    same = edges_in(tmp_path / "same.txt", [(2, 1), (3, 2), (1, 3)])
    numbered = edges_in(tmp_path / "numbered.txt", [(0, 1), (1, 2), (2, 0)])
    text = mn.asarray(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    assert numbered.labels is None
    for one, other in ((A, B), (B, A), (A, numbered), (numbered, A), (A, text), (text, numbered)):
        with pytest.raises(ShapeError, match=r"labeled .*without_labels\(\)"):
            combine(one, other)
    plain = mn.asarray(sp.csr_array(np.ones((3, 3))))
    for one, other in ((A, A), (A, same), (A, plain), (plain, A), (A.without_labels(), B)):
        combine(one, other)


def test_a_saved_graph_has_the_vertices_that_it_had(tmp_path: Path) -> None:
    A, B = edges_in(tmp_path / "a.txt", RING), edges_in(tmp_path / "b.txt", OTHER)
    mn.save(A, tmp_path / "a.npz")
    stored = mn.load(tmp_path / "a.npz")
    assert (stored != A).nnz == 0
    with pytest.raises(ShapeError, match=r"labeled 3.*labeled 4"):
        stored + B


def test_the_same_vertices_in_another_order_are_listed_as_they_are_in_the_file(path: Path) -> None:
    A = mn.load(path)
    with pytest.raises(ShapeError, match=r"another order: number 0 of one is 100, of the other 5\."):
        A[::-1] + A


def test_labels_that_would_have_to_be_computed_are_not_compared(tmp_path: Path) -> None:
    A, B = edges_in(tmp_path / "a.txt", RING), edges_in(tmp_path / "b.txt", OTHER)
    masks = [mn.graph.pagerank(one).ranks > 0 for one in (A, B)]
    before = len(mn.history())
    sums = [one[mask].sum(axis=1) for one, mask in zip((A, B), masks, strict=True)]
    assert (sums[0] + sums[1]).labels is None
    assert len(mn.history()) == before


def test_elements_of_vectors_are_combined_as_the_user_picks_them(path: Path) -> None:
    ranks = mn.graph.pagerank(mn.load(path)).ranks
    values = np.asarray(ranks)
    np.testing.assert_array_equal(ranks[1:] - ranks[:-1], values[1:] - values[:-1])
    np.testing.assert_array_equal(np.diff(ranks), np.diff(values))
    one, other = np.array(EDGES).T
    np.testing.assert_array_equal(ranks[one] - ranks[other], values[one] - values[other])


def test_labels_end_where_vectors_of_parameters_alone_are_meant() -> None:
    one = mn.asarray(nx.DiGraph([("a", "b")]))
    two = mn.asarray(nx.DiGraph([("c", "d")]))
    for graph in (one, two):
        mn.graph.katz(graph, alpha=0.0)
    assert mn.zeros(2).labels is None
    assert mn.full(2, 1.0).labels is None


# Which vertex is meant, of the graph with vertices 5, 9, 30, 31, 77, 100 and of that with "a" to "f".
BY_VERTEX: dict[str, Callable[[Any, Any], Any]] = {
    "bfs": lambda A, v: mn.graph.bfs(A, v).levels,
    "bfs of several": lambda A, v: mn.graph.bfs(A, [v]).levels[0],
    "parents": lambda A, v: mn.graph.bfs(A, v).parents,
    "sssp": mn.graph.sssp,
    "betweenness": lambda A, v: mn.graph.betweenness(A, sources=[v]),
    "edge_betweenness": lambda A, v: mn.graph.edge_betweenness(A, sources=[v]).sum(axis=0),
    "all pairs": lambda A, v: mn.graph.all_pairs_shortest_path_length(A, sources=[v])[0],
    "jumps": lambda A, v: mn.graph.pagerank(A, personalization={v: 1}, tolerance=None).ranks,
    "start": lambda A, v: mn.graph.pagerank(A, start={v: 1}, tolerance=None, max_iterations=2).ranks,
}


@pytest.mark.parametrize("name", BY_VERTEX)
def test_a_vertex_is_named_by_its_label_where_there_is_one(name: str, path: Path) -> None:
    find = BY_VERTEX[name]
    ids, names = mn.load(path), mn.asarray(named())
    plain = ids.without_labels()
    for row in (0, 3, 5):
        wanted = np.asarray(find(plain, row))
        label = "abcdef"[row]
        for given, vertex in (
            (ids, int(IDS[row])), (ids, IDS[row]), (names, label), (names, np.str_(label)), (named(), label),
            (names, row), (ids.to_scipy(), row), (nx.convert_node_labels_to_integers(named()), row),
        ):  # fmt: skip
            np.testing.assert_array_equal(np.asarray(find(given, vertex)), wanted)
        part = np.array([1, row])  # rows of a graph that was picked from it
        np.testing.assert_array_equal(
            np.asarray(find(ids[part][:, part], int(IDS[row]))), np.asarray(find(plain[part][:, part], 1))
        )
    for given, vertex, told in (
        (ids, 3, r"vertex 3.*\b5, 9, 30 and others"),
        (ids, "5", "'5'.*no label of the graph"),
        (names, "g", "'g'.*no label of the graph"),
        (names, 6, "vertex 6 of a graph with 6 vertices: give 0 to 5"),
    ):
        with pytest.raises(mn.errors.IndexingError, match=told):
            np.asarray(find(given, vertex))


def test_a_row_that_is_no_label_is_told_with_the_way(path: Path) -> None:
    with pytest.raises(mn.errors.IndexingError, match=r"vertex of row 3 is A\.labels\[3\]"):
        mn.graph.bfs(mn.load(path), 3)
    with pytest.raises(mn.errors.IndexingError, match="did you mean 'alice'"):
        mn.graph.sssp(nx.DiGraph([("alice", "bob")]), "alcie")
    ids = mn.load(path)
    first = ids.labels[0]
    np.testing.assert_array_equal(mn.graph.sssp(ids, first), mn.graph.sssp(ids, 5))


def test_vertices_may_be_tuples_or_mixed() -> None:
    grid = nx.grid_2d_graph(2, 3)
    wanted = nx.single_source_shortest_path_length(grid, (0, 1))
    levels = mn.graph.bfs(grid, (0, 1)).levels.compute()
    assert levels.tolist() == [wanted[vertex] for vertex in grid]
    several = mn.graph.bfs(grid, [(0, 1), (1, 2)]).levels.compute()
    np.testing.assert_array_equal(several[0], levels)
    mixed = nx.Graph([(7, "x"), ("x", 0)])
    assert mn.graph.bfs(mixed, 0).levels.tolist() == [2, 1, 0]
    with pytest.raises(mn.errors.IndexingError, match="vertex 1, which is no label"):
        mn.graph.bfs(mixed, 1)


def test_equal_matrices_of_graphs_with_other_names_keep_their_own() -> None:
    one, other = named(), nx.relabel_nodes(named(), dict(zip("abcdef", "ABCDEF", strict=True)))
    first, second = mn.asarray(one), mn.asarray(other)
    assert "".join(first.labels) == "abcdef"
    assert "".join(second.labels) == "ABCDEF"
    assert mn.asarray(nx.karate_club_graph()).labels is None  # vertices are the numbers of their rows
    assert mn.asarray(nx.DiGraph([(7, 8), (8, 2)])).labels.tolist() == [7, 8, 2]
    assert mn.asarray(nx.DiGraph([((0, 1), "x")])).labels.tolist() == [(0, 1), "x"]


def test_a_target_of_a_row_is_no_label_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "rows.svm"
    path.write_text("1 1:2.0 2:1.0\n-1 2:3.0\n")
    X = mn.load(path)
    assert np.asarray((X * 2)[1:].labels).tolist() == [-1]
    assert X.T.labels is None


def test_the_number_of_a_group_that_is_shown_selects_it(path: Path) -> None:
    for graph in (mn.load(path), mn.asarray(named()), mn.asarray(np.asarray(mn.load(path)), format="sparse")):
        for result in (mn.graph.connected_components(graph), mn.graph.louvain(graph)):
            result.labels.persist()
            text = repr(result)
            groups = text.split("largest groups of labels\n")[1]
            shown = re.findall(r"^  (\d+)(?: \(vertex (\w+)\))? +(\d+)$", groups, re.MULTILINE)
            assert shown
            for number, name, size in shown:
                assert int((result.labels == int(number)).sum()) == int(size)
                assert name == ("" if graph.labels is None else str(np.asarray(graph.labels)[int(number)]))


def test_rows_that_have_no_labels_are_called_rows(path: Path) -> None:
    graph = mn.load(path)
    alone = mn.asarray(graph.to_scipy())
    assert alone.labels is None
    for matrix, names in ((graph, {str(one) for one in IDS}), (alone, {f"row {one}" for one in range(6)})):
        ranking = mn.graph.pagerank(matrix + matrix.T)
        ranking.ranks.persist()
        lines = repr(ranking).split("largest ranks\n")[1].splitlines()[:5]
        assert {line.rpartition(" ")[0].strip() for line in lines} <= names


def test_loops_are_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    axes = vertex_labels._axes
    monkeypatch.setattr(vertex_labels, "_axes", lambda *args: calls.append(1) or axes(*args))
    graph = mn.asarray(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    X = np.random.default_rng(0).normal(size=(30, 3))
    mn.learn.LogisticRegression().fit(X, X[:, 0] > 0)  # loops in loops, which know nothing of the graph
    assert len(calls) < 2000, "133,000 once"
    twice = lambda x: mn.iterate(lambda y: graph @ y / 2, x, max_iterations=2)[0]  # noqa: E731
    ranks, _ = mn.iterate(twice, graph.sum(axis=1), max_iterations=2)
    assert ranks.labels.tolist() == ["a", "b", "c"]
    assert len(calls) < 3000
