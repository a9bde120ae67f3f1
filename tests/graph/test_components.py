"""Connected components against SciPy and published numbers of components."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import matnb as mn

pytestmark = pytest.mark.session("two workers")


def check(A: sp.csr_array, number: mn.DistArray, labels: mn.DistArray) -> None:
    pattern = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), A.shape)
    wanted_number, wanted = connected_components(pattern, directed=True, connection="weak")
    _, smallest = np.unique(wanted, return_index=True)  # SciPy's labels, made the smallest vertex's
    assert int(number) == wanted_number
    np.testing.assert_array_equal(labels.compute(), smallest[wanted])


def test_labels_are_the_smallest_vertices(graph: sp.csr_array) -> None:
    check(graph, *mn.graph.connected_components(graph))


def test_a_symmetric_graph_is_read_in_one_direction(both_ways: sp.csr_array) -> None:
    check(both_ways, *mn.graph.connected_components(both_ways, symmetric=True))


@pytest.mark.parametrize(
    ("order", "n"), [("ascending", 10_000), ("descending", 10_000), ("shuffled", 100_000)]
)
def test_a_long_path_takes_few_rounds(order: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = []

    def counted(*arguments: object, **options: object) -> tuple[object, ...]:
        result = mn.iterate(*arguments, **options)
        rounds.append(result[1])
        return result

    monkeypatch.setattr("matnb.graph.components.iterate", counted)
    vertices = {
        "ascending": np.arange(n),
        "descending": np.arange(n)[::-1],
        "shuffled": np.random.default_rng(1).permutation(n),
    }[order]
    A = sp.csr_array((np.ones(n - 1), (vertices[:-1], vertices[1:])), shape=(n, n))
    number, labels = mn.graph.connected_components(A)
    assert int(number) == 1
    assert not labels.compute().any()
    assert int(rounds[0]) <= np.log2(n) + 2


@pytest.mark.parametrize(
    "name", ["karate", "A", "jagmesh7", "LFAT5", "LFAT5_hypersparse", "LFAT5_two", "bcsstk13", "zenios"]
)
def test_lagraph(test_data: Path, name: str) -> None:
    stored = json.loads((test_data / "lagraph" / "expected_vectors.json").read_text())["components"]
    number, _ = mn.graph.connected_components(mn.load(test_data / "lagraph" / f"{name}.mtx"))
    assert int(number) == stored[name]


@pytest.mark.parametrize("name", ["example-directed", "example-undirected", "test-wcc-directed"])
def test_ldbc(test_data: Path, name: str) -> None:
    folder = test_data / "ldbc"
    stored = np.loadtxt(folder / f"{name}-WCC", dtype=np.int64)
    A = mn.load(folder / f"{name}.e", directed="undirected" not in name, weights=False, duplicates="merge")
    vertices = A.labels.compute()
    labels = vertices[mn.graph.connected_components(A).labels.compute()]
    # Both name a component after one of its vertices; a vertex without edges is in the list of vertices only.
    linked = np.isin(stored[:, 0], vertices)
    np.testing.assert_array_equal(stored[linked, 0], vertices)
    _, ours = np.unique(labels, return_inverse=True)
    _, theirs = np.unique(stored[linked, 1], return_inverse=True)
    assert len(set(zip(ours.tolist(), theirs.tolist(), strict=True))) == ours.max() + 1 == theirs.max() + 1


@pytest.mark.parametrize(
    ("path", "largest"),
    [
        ("networkit/wiki-Vote.txt", 7066),
        ("snap_ca-GrQc/ca-GrQc.txt", 4158),
        ("snap_p2p-Gnutella08/p2p-Gnutella08.txt", 6299),
    ],
)
def test_the_largest_component(test_data: Path, path: str, largest: int) -> None:
    _, labels = mn.graph.connected_components(mn.load(test_data / path))
    assert np.bincount(labels.compute()).max() == largest
