"""Triangles, clustering, cores and trusses against NetworkX and published numbers."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from networkx_arrays import in_order

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def test_triangles(graph: sp.csr_array, undirected: nx.Graph) -> None:
    wanted = in_order(nx.triangles(undirected))
    found = mn.graph.triangles(graph)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.compute(), wanted)
    assert int(mn.graph.triangle_count(graph)) == wanted.sum() // 3


def test_symmetric_graphs_need_not_be_made_so(both_ways: sp.csr_array) -> None:
    for algorithm in (
        mn.graph.triangles,
        mn.graph.triangle_count,
        mn.graph.clustering,
        mn.graph.transitivity,
        mn.graph.core_number,
    ):
        known = algorithm(both_ways, symmetric=True).compute()
        np.testing.assert_array_equal(known, algorithm(both_ways).compute())


def test_all_eigenvalues_count_every_triangle(graph: sp.csr_array) -> None:
    estimate = float(mn.graph.triangle_estimate(graph, k=graph.shape[0]))
    assert estimate == pytest.approx(int(mn.graph.triangle_count(graph)), abs=1e-6)


def test_few_eigenvalues_are_near(test_data: Path) -> None:
    A = mn.load(test_data / "lagraph" / "karate.mtx")
    assert float(mn.graph.triangle_estimate(A, k=10)) == pytest.approx(45, rel=0.2)
    once, again = (float(mn.graph.triangle_estimate(A, k=5, seed=2)) for _ in range(2))
    assert once == again


def test_clustering(graph: sp.csr_array, undirected: nx.Graph) -> None:
    np.testing.assert_allclose(mn.graph.clustering(graph).compute(), in_order(nx.clustering(undirected)))
    assert float(mn.graph.average_clustering(graph)) == pytest.approx(nx.average_clustering(undirected))
    assert float(mn.graph.transitivity(graph)) == pytest.approx(nx.transitivity(undirected))


def test_core_numbers(graph: sp.csr_array, undirected: nx.Graph) -> None:
    found = mn.graph.core_number(graph)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found.compute(), in_order(nx.core_number(undirected)))


@pytest.mark.parametrize("k", [0, 1, 2, 3, 9])
def test_cores(graph: sp.csr_array, undirected: nx.Graph, k: int) -> None:
    found = mn.graph.k_core(graph, k).to_scipy()
    stays = in_order(nx.core_number(undirected)) >= k
    rows, columns = graph.tocoo().coords
    wanted = stays[rows] & stays[columns]
    np.testing.assert_array_equal(found.tocoo().coords[0], rows[wanted])
    np.testing.assert_array_equal(found.data, graph.data[wanted])


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_trusses(graph: sp.csr_array, undirected: nx.Graph, k: int) -> None:
    found = mn.graph.k_truss(graph, k).to_scipy().tocoo()
    wanted = {(min(edge), max(edge)) for edge in nx.k_truss(undirected, k).edges}
    pairs = set(zip(*(one.tolist() for one in found.coords), strict=True))
    assert {(i, j) for i, j in pairs if i < j} == wanted
    assert {(j, i) for i, j in pairs} == pairs
    assert (found.data == 1).all()


@pytest.mark.parametrize("name", ["karate", "A", "jagmesh7", "bcsstk13", "LFAT5", "tree-example"])
def test_lagraph_triangles(test_data: Path, name: str) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())["triangles"]
    A = mn.load(test_data / "lagraph" / f"{name}.mtx")
    assert int(mn.graph.triangle_count(A)) == stored[name]


@pytest.mark.parametrize(("name", "degeneracy", "tall"), [("karate", 4, 34), ("west0067", 6, 67)])
def test_lagraph_cores(test_data: Path, name: str, degeneracy: int, tall: int) -> None:
    cores = mn.graph.core_number(mn.load(test_data / "lagraph" / f"{name}.mtx")).compute()
    assert (cores.max(), len(cores)) == (degeneracy, tall)


def test_lagraph_clustering(test_data: Path) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())["lcc_west0067"]
    A = mn.load(test_data / "lagraph" / "west0067.mtx")
    np.testing.assert_allclose(mn.graph.clustering(A, directed=True).compute(), stored, atol=1e-6)


@pytest.mark.parametrize("name", ["example-directed", "example-undirected", "test-lcc-directed"])
def test_ldbc_clustering(test_data: Path, name: str) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-LCC")
    directed = "undirected" not in name
    A = mn.load(folder / f"{name}.e", directed=directed, weights=False, duplicates="merge")
    linked = np.isin(stored[:, 0], A.labels.compute())
    found = mn.graph.clustering(A, directed=directed).compute()
    np.testing.assert_allclose(found, stored[linked, 1], rtol=1e-4)


def test_cugraph_truss(test_data: Path) -> None:
    stored = np.loadtxt(test_data / "cugraph" / "ref_ktruss_polbooks.csv")[:, :2].astype(int)
    A = mn.load(test_data / "cugraph" / "polbooks.mtx")
    found = mn.graph.k_truss(A, 5).to_scipy().tocoo()
    wanted = {(min(pair), max(pair)) for pair in stored.tolist()}
    assert {(int(i), int(j)) for i, j in zip(*found.coords, strict=True) if i < j} == wanted


@pytest.mark.parametrize(
    ("path", "triangles", "average"),
    [("networkit/wiki-Vote.txt", 608_389, 0.1409), ("snap_ca-GrQc/ca-GrQc.txt", 48_260, 0.5296)],
)
def test_published(test_data: Path, path: str, triangles: int, average: float) -> None:
    A = mn.load(test_data / path)
    assert int(mn.graph.triangle_count(A)) == triangles == int(mn.graph.triangles(A).sum()) // 3
    assert float(mn.graph.average_clustering(A)) == pytest.approx(average, abs=1e-4)


def test_refusals() -> None:
    A = sp.csr_array(np.eye(3))
    with pytest.raises(mn.errors.OptionError, match="k=0 eigenvalues; give 1 or more"):
        mn.graph.triangle_estimate(A, k=0)
    with pytest.raises(mn.errors.OptionError, match="k_core: k=-1; give 0 or more"):
        mn.graph.k_core(A, -1)
    with pytest.raises(mn.errors.OptionError, match="k_truss: k=1; give 2 or more"):
        mn.graph.k_truss(A, 1)
