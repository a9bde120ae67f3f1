"""Graphs and vertices that the algorithms refuse."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.traverse import topological
from matnb.ops.mapping import Replicated

pytestmark = pytest.mark.session("two workers")

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


def is_checked(array: mn.DistArray) -> bool:
    """Whether anything is looked at on workers before it is computed."""
    return any(isinstance(node, Replicated) for node in topological([array.expression]))


WEIGHTS = {
    "ordinary": ([1.0, 0.5, 2.0, 3.0], False),
    "single precision": (np.array([1.0, 0.5, 2.0, 3.0], np.float32), False),
    "whole numbers": ([1, 5, 2, 3], False),
    "booleans": ([True, True, True, True], False),
    "a stored zero": ([1.0, 0.0, 2.0, 3.0], False),
    "far apart": ([1e-290, 1e290, 1.0, 1.0], False),
    "negative": ([1.0, -0.5, 2.0, 3.0], True),
    "NaN": ([1.0, np.nan, 2.0, 3.0], True),
    "infinite": ([1.0, np.inf, 2.0, 3.0], True),
    "sums that are too large": ([6e299, 6e299, 1.0, 1.0], True),
    "sums that are too small": ([1.0, 1.0, 1e-301, 1.0], True),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_that_came_from_here_are_looked_at_here(name: str) -> None:
    values, is_bad = WEIGHTS[name]
    A = sp.csr_array((values, ([0, 0, 1, 2], [1, 2, 2, 0])), shape=(3, 3))
    ranks, of_workers = (
        mn.graph.pagerank(one, tolerance=None, max_iterations=5).ranks for one in (A, mn.asarray(A) * 1)
    )
    assert is_checked(ranks) == is_bad
    if is_bad:
        for one in (ranks, of_workers):
            with pytest.raises(mn.errors.OptionError, match=r"pagerank: .*weight"):
                one.compute()
    else:
        np.testing.assert_array_equal(ranks.compute(), of_workers.compute())


def test_an_index_that_may_be_a_label_is_told_the_way() -> None:
    A = mn.asarray(nx.DiGraph([("ann", "bea"), ("bea", "cy")]))
    with pytest.raises(mn.errors.IndexingError, match=r"type str: .*one is A\[A.labels == 'bea'\]"):
        A["bea"]
    with pytest.raises(mn.errors.IndexingError, match=r"out of bounds.* A\[A.labels == 77\]"):
        A[77, 0]
    assert A[A.labels == "bea"].toarray().tolist() == [[0, 0, 1]]
    with pytest.raises(mn.errors.IndexingError) as found:
        mn.asarray(np.eye(3))["bea"]
    assert "labels" not in str(found.value)
