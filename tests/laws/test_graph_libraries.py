"""NetworkX and csgraph are right about a DistArray, or refuse it; beyond the limit none makes it dense."""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from fetched import counting
from scipy.sparse import csgraph

import matnb as mn
from matnb.errors import TooLargeError, UnsupportedError

LIMIT = 100_000
N = 2**14

RIGHT: dict[str, Callable[[object], object]] = {
    "connected_components": lambda A: csgraph.connected_components(A)[1],
    "dijkstra": lambda A: csgraph.dijkstra(A, indices=0),
    "shortest_path": csgraph.shortest_path,
    "laplacian": csgraph.laplacian,
    "minimum_spanning_tree": csgraph.minimum_spanning_tree,
    "breadth_first_tree": lambda A: csgraph.breadth_first_tree(A, 0),
    "from_numpy_array": lambda A: nx.to_numpy_array(nx.from_numpy_array(_dense(A))),
}
REFUSING: dict[str, tuple[Callable[[object], object], type[Exception], str]] = {
    "maximum_flow": (lambda A: csgraph.maximum_flow(A, 0, 1), TypeError, "CSR"),
    "structural_rank": (csgraph.structural_rank, TypeError, "sparse"),
    "reverse_cuthill_mckee": (csgraph.reverse_cuthill_mckee, TypeError, "sparse"),
}


def _dense(A: object) -> object:
    return A.toarray() if sp.issparse(A) else A


pytestmark = pytest.mark.session("interpreter", compute_limit=LIMIT)


@pytest.fixture(scope="module")
def graph() -> sp.csr_array:
    found: sp.csr_array = nx.to_scipy_sparse_array(nx.gnp_random_graph(8, 0.4, seed=2), dtype=float)
    return found


@pytest.mark.parametrize("name", RIGHT)
def test_what_takes_a_distarray_is_right(name: str, graph: sp.csr_array) -> None:
    call = RIGHT[name]
    expected = _dense(call(graph))
    for array in (mn.asarray(graph), mn.asarray(graph.toarray())):
        np.testing.assert_allclose(_dense(call(array)), expected)  # type: ignore[arg-type]  # arrays


@pytest.mark.parametrize("name", REFUSING)
def test_what_does_not_says_so(name: str, graph: sp.csr_array) -> None:
    call, error, words = REFUSING[name]
    with pytest.raises(error, match=words):
        call(mn.asarray(graph))


@pytest.mark.parametrize("name", sorted(RIGHT.keys() - {"from_numpy_array"}))
def test_beyond_the_limit_none_makes_it_dense(name: str) -> None:
    large = mn.asarray(sp.csr_array(([1.0], ([0], [N - 1])), shape=(N, N)))
    with counting() as fetched, pytest.raises(TooLargeError, match=r"2.15 GB.*\.to_scipy\(\)"):
        RIGHT[name](large)
    assert not fetched.sizes


@pytest.mark.parametrize("name", ["dijkstra", "connected_components", "minimum_spanning_tree"])
def test_edges_of_weight_zero_are_not_lost(name: str) -> None:
    graph = sp.csr_array(([1.0, 0.0, 5.0, 2.0], ([0, 1, 0, 2], [1, 2, 2, 3])), shape=(4, 4))
    with pytest.raises(UnsupportedError, match=r"edges of weight 0.*A\.to_scipy\(\)"):
        RIGHT[name](mn.asarray(graph))
    RIGHT[name](mn.asarray(graph).to_scipy())
