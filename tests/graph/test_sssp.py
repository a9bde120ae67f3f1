"""Shortest ways against NetworkX, SciPy and published distances."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

pytestmark = pytest.mark.session("two workers")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
def test_distances(graph: sp.csr_array, peer: nx.DiGraph, dtype: type) -> None:
    known = nx.single_source_dijkstra_path_length(peer, 0)
    distances = mn.graph.sssp(graph.astype(dtype), 0)
    assert distances.dtype == np.float64
    wanted = [known.get(vertex, np.inf) for vertex in range(len(peer))]
    np.testing.assert_array_equal(distances.compute(), wanted)


def test_a_way_of_many_light_edges_beats_a_heavy_one() -> None:
    n = 50
    A = sp.diags_array([np.ones(n - 1)], offsets=[1], shape=(n, n)).tolil()
    A[0, n - 1] = 100.0
    distances = mn.graph.sssp(A.tocsr(), 0).compute()
    np.testing.assert_array_equal(distances, np.arange(n))


@pytest.mark.parametrize("name", ["example-directed", "example-undirected", "test-sssp-directed"])
def test_ldbc(test_data: Path, name: str) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-SSSP")
    properties = (folder / f"{name}.properties").read_text()
    (source,) = (int(line.split("=")[1]) for line in properties.splitlines() if ".sssp.source-vertex" in line)
    A = mn.load(folder / f"{name}.e", directed="undirected" not in name, duplicates="first")
    vertices = A.labels.compute()
    np.testing.assert_array_equal(vertices, stored[:, 0])
    distances = mn.graph.sssp(A, source).compute()
    np.testing.assert_allclose(distances, stored[:, 1], rtol=1e-4)


def test_lesmis(test_data: Path) -> None:
    stored = json.loads((test_data / "answers.json").read_text())["graph_vectors_networkx"]
    distances = mn.graph.sssp(mn.load(test_data / "networkit" / "lesmis.graph"), 0).compute()
    np.testing.assert_array_equal(distances, stored["networkit/lesmis_sssp_src0"])


@pytest.mark.parametrize("bad", [-1.0, np.nan, -1])
def test_negative_weights_are_refused(bad: float) -> None:
    distances = mn.graph.sssp(sp.csr_array([[0, 1], [bad, 0]]), 0)  # where nothing is asked for
    for asked in (distances, distances[:1], distances.max()):
        with pytest.raises(mn.errors.OptionError, match=f"weight is {float(bad)}; weights must be 0 or more"):
            asked.compute()
