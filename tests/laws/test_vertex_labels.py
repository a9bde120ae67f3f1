"""Labels of rows follow what is made of a graph, or are not there; a number that is shown is what selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import matnb as mn

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
    "a row": (lambda A: A[2], None),
    "sums": (lambda A: A.sum(axis=0), None),
    "another's vertices": (lambda A: A + mn.asarray(nx.DiGraph([(c, c) for c in "uvwxyz"])), None),
}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with mn.start(workers=1, threads=2, processes=False):
        yield
    mn.stop()


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
