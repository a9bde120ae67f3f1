"""Betweenness of edges and of vertices, against igraph."""

from __future__ import annotations

import igraph
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.rebalancing import symmetric
from harness.sessions import public

import matnb as mn

SCALE, SMALL_SCALE = 16, 8
NUM_SOURCES = 64
SQUARE = 34  # a grid of so many rows: 1,156 vertices, about as many as the mesh of the published answers
TARGET = 5.0


def grid(side: int) -> sp.csr_array:
    """Return the edges of a square grid with one diagonal in each square, all ones."""
    path = sp.diags_array([np.ones(side - 1)], offsets=[1], shape=(side, side))
    eye = sp.eye_array(side)
    upper = sp.kron(path, eye) + sp.kron(eye, path) + sp.kron(path, path)
    return sp.csr_array(upper + upper.T)


def as_igraph(graph: sp.csr_array) -> igraph.Graph:
    """Return the edges of the upper triangle, in its order."""
    upper = sp.csr_array(sp.triu(graph, 1)).tocoo()
    return igraph.Graph(n=graph.shape[0], edges=np.stack(upper.coords, axis=1))


def of_edges(bench: Bench, scale: int) -> None:
    graph = symmetric(rmat(scale))
    graph = sp.csr_array(sp.tril(graph, -1) + sp.triu(graph, 1))
    graph.data = np.ones(graph.nnz)
    A, peer = mn.asarray(graph).persist(), as_igraph(graph)
    sources = np.random.default_rng(3).choice(graph.shape[0], min(NUM_SOURCES, graph.shape[0]), replace=False)

    def upper(found: object) -> np.ndarray:
        return np.asarray(found) if isinstance(found, list) else sp.triu(found.to_scipy(), 1).tocsr().data

    ours, call = public(
        lambda _: mn.graph.edge_betweenness(A, sources, normalized=False, directed=False).persist(),
        value=upper,
    )
    bench.compare(
        Claim(
            f"edge betweenness, {len(sources)} sources, 2^{scale}",
            f"R-MAT 2^{scale} with its transpose, {graph.nnz:,} entries, stored",
            TARGET,
        ),
        [
            ours,
            Contender(
                "igraph",
                lambda _: peer.edge_betweenness(directed=False, sources=sources.tolist()),
                value=upper,
            ),
        ],
        call.notes,
    )


def of_vertices(bench: Bench, side: int) -> None:
    graph = grid(side)
    A, peer = mn.asarray(graph).persist(), as_igraph(graph)
    ours, call = public(
        lambda _: mn.graph.betweenness(A, normalized=False, directed=False, batch=128).compute()
    )
    bench.compare(
        Claim(f"betweenness, a mesh of {side**2:,}", f"all sources, {graph.nnz:,} entries, stored", TARGET),
        [ours, Contender("igraph", lambda _: np.array(peer.betweenness(directed=False)))],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        of_edges(bench, bench.sized(SCALE, SMALL_SCALE))
        of_vertices(bench, bench.sized(SQUARE, 10))


if __name__ == "__main__":
    main()
