"""Graphs and vertices that the algorithms refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

ALGORITHMS = {
    name: getattr(mn.graph, name)
    for name in mn.graph.__all__
    if not isinstance(getattr(mn.graph, name), type) and name not in ("bfs", "sssp", "k_core", "k_truss")
}
ALGORITHMS["modularity"] = lambda A: mn.graph.modularity(A, [0, 0])
ALGORITHMS["bfs"] = lambda A: mn.graph.bfs(A, 0)
ALGORITHMS["sssp"] = lambda A: mn.graph.sssp(A, 0)
ALGORITHMS["k_core"] = lambda A: mn.graph.k_core(A, 2)
ALGORITHMS["k_truss"] = lambda A: mn.graph.k_truss(A, 3)


@pytest.mark.parametrize(("name", "algorithm"), ALGORITHMS.items())
def test_matrices_that_are_no_graphs(name: str, algorithm: Callable[[object], object]) -> None:
    with pytest.raises(mn.errors.ShapeError, match=rf"{name} of shape \(2, 3\)"):
        algorithm(sp.csr_array((2, 3)))
    with pytest.raises(mn.errors.DTypeError, match=f"{name} of a dense array: .*format='sparse'"):
        algorithm(np.eye(3))
    with pytest.raises(mn.errors.DTypeError, match=rf"{name} of a dense DistArray of shape \(3, 3\)"):
        algorithm(mn.ones((3, 3)))
    with pytest.raises(mn.errors.DTypeError, match=f"{name} of list"):
        algorithm([[1]])


@pytest.mark.parametrize("search", [mn.graph.bfs, mn.graph.sssp])
def test_vertices_that_are_none(search: Callable[[object, object], object]) -> None:
    A = sp.csr_array(np.eye(3))
    for source in (3, -1):
        with pytest.raises(
            mn.errors.IndexingError, match=f"vertex {source} of a graph with 3 .*: give 0 to 2"
        ):
            search(A, source)
    with pytest.raises(mn.errors.DTypeError, match=r"vertex 1\.5: a vertex is an integer"):
        search(A, 1.5)
    with pytest.raises(mn.errors.IndexingError, match="without vertices"):
        search(sp.csr_array((0, 0)), 0)


def test_a_graph_without_vertices() -> None:
    A = sp.csr_array((0, 0))
    assert mn.graph.pagerank(A).ranks.compute().shape == (0,)
    number, labels = mn.graph.connected_components(A)
    assert int(number) == 0
    assert labels.shape == (0,)
    assert mn.graph.betweenness(A).compute().shape == (0,)
