"""Breadth-first search against NetworkX and published levels and parents."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = pytest.mark.session("two workers")

NOT_REACHED = 9223372036854775807  # in Graphalytics' files


@pytest.mark.parametrize("source", [0, -1])
def test_levels_and_parents(graph: sp.csr_array, peer: nx.DiGraph, source: int) -> None:
    n = len(peer)
    source %= n
    known = nx.single_source_shortest_path_length(peer, source)
    levels, parents = mn.graph.bfs(graph, source)
    wanted = np.array([known.get(vertex, -1) for vertex in range(n)])
    before = [
        min((one for one in peer.predecessors(vertex) if wanted[one] == wanted[vertex] - 1), default=-1)
        for vertex in range(n)
    ]
    assert levels.dtype == np.int32
    np.testing.assert_array_equal(levels.compute(), wanted)
    reached = (wanted > 0) | (np.arange(n) == source)
    before[source] = source
    np.testing.assert_array_equal(parents.compute(), np.where(reached, before, -1))


def test_searches_from_other_vertices_are_their_own(graph: sp.csr_array, peer: nx.DiGraph) -> None:
    A, n = mn.asarray(graph).persist(), len(peer)
    for source in sorted({0, 1, 2, n - 1} & set(range(n))):
        known = nx.single_source_shortest_path_length(peer, source)
        wanted = [known.get(vertex, -1) for vertex in range(n)]
        np.testing.assert_array_equal(mn.graph.bfs(A, source).levels.compute(), wanted)


def test_what_is_not_asked_for_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[object] = []
    iterate = mn.iterate
    monkeypatch.setattr(
        "matnb.graph.searches.iterate",
        lambda step, *arguments, **options: recorded.append(step) or iterate(step, *arguments, **options),
    )
    found = mn.graph.bfs(sp.csr_array(np.eye(3)), 0)
    assert not recorded
    assert found.levels is found[0]
    assert len(recorded) == 1
    assert found[-1] is found.parents
    assert [*found] == [found.levels, found.parents] == [*found[:]]
    assert len(recorded) == len(found) == 2
    with pytest.raises(IndexError):
        found[2]


@pytest.mark.parametrize("name", ["example-directed", "example-undirected", "test-bfs-directed"])
def test_ldbc(test_data: Path, name: str) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-BFS", dtype=np.int64)
    properties = (folder / f"{name}.properties").read_text()
    (source,) = (int(line.split("=")[1]) for line in properties.splitlines() if ".bfs.source-vertex" in line)
    A = mn.load(folder / f"{name}.e", directed="undirected" not in name, weights=False, duplicates="merge")
    vertices = A.labels.compute()
    np.testing.assert_array_equal(vertices, stored[:, 0])
    levels, _ = mn.graph.bfs(A, source)
    np.testing.assert_array_equal(levels.compute(), np.where(stored[:, 1] == NOT_REACHED, -1, stored[:, 1]))


def test_lagraph_karate(test_data: Path) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())
    levels, parents = mn.graph.bfs(mn.load(test_data / "lagraph" / "karate.mtx"), 30)
    np.testing.assert_array_equal(levels.compute(), stored["karate_bfs_src30_levels30"])
    np.testing.assert_array_equal(parents.compute(), stored["karate_bfs_src30_min_parent"])


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
def test_stored_levels(test_data: Path, name: str, path: str) -> None:
    stored = json.loads((test_data / "answers.json").read_text())["graph_vectors_networkx"][name]
    levels, _ = mn.graph.bfs(mn.load(test_data / path), 0)
    np.testing.assert_array_equal(levels.compute(), stored["bfs_levels_src0"])
