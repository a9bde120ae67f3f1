"""Each algorithm on graphs gives the same on any threads, workers, processes and cuts, and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Arrays, Library, check_same, cut, expected_of, library

import matnb as mn

N = 23
ALGORITHMS: dict[str, Callable[[mn.DistArray], object]] = {
    "all_pairs_shortest_path_length": lambda A: mn.graph.all_pairs_shortest_path_length(A, batch=9),
    "all pairs, weighted": lambda A: mn.graph.all_pairs_shortest_path_length(A, [1, 5, 8], weighted=True),
    "average_clustering": mn.graph.average_clustering,
    "betweenness": lambda A: mn.graph.betweenness(A, 7, batch=4),
    "betweenness, weighted": lambda A: mn.graph.betweenness(A, [0, 4], weighted=True),
    "bfs": lambda A: mn.graph.bfs(A, 3),
    "bfs from several": lambda A: mn.graph.bfs(A, [3, 0, 9]),
    "closeness": lambda A: mn.graph.closeness(A, batch=9),
    "clustering": lambda A: mn.graph.clustering(A, directed=True),
    "common_neighbors": mn.graph.common_neighbors,
    "connected_components": mn.graph.connected_components,
    "core_number": mn.graph.core_number,
    "degree": lambda A: mn.graph.degree(A, weighted=True),
    "degree_centrality": mn.graph.degree_centrality,
    "edge_betweenness": lambda A: mn.graph.edge_betweenness(A, 7, batch=4),
    "eigenvector_centrality": mn.graph.eigenvector_centrality,
    "floyd_warshall": mn.graph.floyd_warshall,
    "harmonic": lambda A: mn.graph.harmonic(A, batch=9),
    "hits": lambda A: mn.graph.hits(A, max_iterations=1000),
    "jaccard": mn.graph.jaccard,
    "k_core": lambda A: mn.graph.k_core(A, 3),
    "k_truss": lambda A: mn.graph.k_truss(A, 4),
    "katz": lambda A: mn.graph.katz(A, alpha=0.01),
    "label_propagation": mn.graph.label_propagation,
    "laplacian": mn.graph.laplacian,
    "louvain": mn.graph.louvain,
    "markov_clustering": mn.graph.markov_clustering,
    "maximal_independent_set": mn.graph.maximal_independent_set,
    "minimum_spanning_forest": mn.graph.minimum_spanning_forest,
    "modularity": lambda A: mn.graph.modularity(A, np.arange(N) // 6),
    "pagerank": mn.graph.pagerank,
    "sssp": lambda A: mn.graph.sssp(A, 2, predecessors=True),
    "strongly_connected_components": mn.graph.strongly_connected_components,
    "transitivity": mn.graph.transitivity,
    "triangle_count": mn.graph.triangle_count,
    "triangle_estimate": lambda A: mn.graph.triangle_estimate(A, k=4),
    "triangles": mn.graph.triangles,
}
# Bits are the same but for those of the interpreter, which adds in SciPy's order, and float32 in float32.
TOLERANCES = {"int64": 1e-12, "float32": 1e-6}
CUTS = {"int64": (0, 1, 9, 10, N), "float32": (0, 5, 6, 7, 20, N)}


def graphs() -> dict[str, sp.csr_array]:
    """Return a graph with a loop, a vertex without edges and a stored zero, with weights of two dtypes."""
    rng = np.random.default_rng(8)
    drawn = sp.random_array((N, N), density=0.16, rng=rng, format="lil")
    drawn[4, 4], drawn[17, :], drawn[:, 17] = 1, 0, 0
    whole = drawn.tocsr()
    whole.data = rng.integers(1, 9, whole.nnz)
    parts = whole.astype(np.float32)
    parts.data /= np.float32(3)
    return {"int64": whole.astype(np.int64), "float32": parts}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Arrays]:
    return expected_of(ALGORITHMS, graphs())


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("weights", ["int64", "float32"])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_algorithm_gives_the_same(
    session: Library, expected: dict[tuple[str, str], Arrays], name: str, weights: str
) -> None:
    A = cut(graphs()[weights], CUTS[weights])
    tolerance = TOLERANCES[weights] if session.kind == "interpreter" else None
    check_same(session.values(ALGORITHMS[name](A)), expected[name, weights], tolerance)


def test_every_algorithm_is_here() -> None:
    functions = {name for name in mn.graph.__all__ if name[0].islower()} - {"to_networkx"}
    assert functions <= ALGORITHMS.keys()
