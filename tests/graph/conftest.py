"""What the tests of graphs share: graphs to hold the algorithms against."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(params=["sparse", "dense", "loops", "path", "without edges", "one vertex"])
def graph(request: pytest.FixtureRequest) -> sp.csr_array:
    """Return a directed graph with weights, among them stored zeros."""
    rng = np.random.default_rng(5)
    match request.param:
        case "sparse":
            drawn = sp.random_array((60, 60), density=0.03, rng=rng, format="csr")
        case "dense":
            drawn = sp.random_array((40, 40), density=0.3, rng=rng, format="csr")
        case "loops":
            drawn = sp.csr_array(sp.random_array((30, 30), density=0.05, rng=rng) + sp.eye_array(30))
        case "path":
            drawn = sp.diags_array([np.ones(16)], offsets=[1], shape=(17, 17)).tocsr()
        case "without edges":
            return sp.csr_array((5, 5))
        case _:
            return sp.csr_array((1, 1))
    drawn.data = rng.integers(0, 9, drawn.nnz).astype(float)  # a stored zero is an edge too
    return drawn


@pytest.fixture
def peer(graph: sp.csr_array) -> nx.DiGraph:
    """Return the same graph of NetworkX."""
    return as_networkx(graph)


@pytest.fixture
def both_ways(graph: sp.csr_array) -> sp.csr_array:
    """Return the same graph with every edge in both directions, of weight 1."""
    rows, columns = graph.tocoo().coords
    entries = np.ones(2 * graph.nnz), (np.r_[rows, columns], np.r_[columns, rows])
    made = sp.csr_array(entries, shape=graph.shape)
    made.data[:] = 1
    return made


def as_networkx(graph: sp.csr_array) -> nx.DiGraph:
    rows, columns = graph.tocoo().coords
    made = nx.DiGraph()
    made.add_nodes_from(range(graph.shape[0]))
    made.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), graph.data.tolist(), strict=True))
    return made


def as_undirected(graph: sp.csr_array) -> nx.Graph:
    """Return the edges in both directions, without weights and without those from a vertex to itself."""
    made = nx.Graph(as_networkx(graph).to_undirected(as_view=True).edges)
    made.add_nodes_from(range(graph.shape[0]))
    made.remove_edges_from(list(nx.selfloop_edges(made)))
    return made


@pytest.fixture
def undirected(graph: sp.csr_array) -> nx.Graph:
    """Return the same graph of NetworkX without directions, weights and loops."""
    return as_undirected(graph)
