"""Components, triangles, trusses, cores and labels of a graph, against SciPy, igraph and GraphBLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphblas as gb
import igraph
import numpy as np
import scipy.sparse as sp
from graphblas import monoid, semiring
from harness import graphblas_peer
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.rebalancing import symmetric
from harness.sessions import public
from harness.threads import by_threads, graphblas_threads
from scipy.sparse import csgraph

import matnb as mn

SCALE = 18
SMALL_SCALE = 10
TARGET = 1.0
TRUSS = 4
ROUNDS = 10  # of label propagation, as LDBC's Graphalytics has it


def without_loops(scale: int) -> sp.csr_array:
    """Return R-MAT made symmetric, without edges from a vertex to itself, all ones."""
    graph = symmetric(rmat(scale))
    graph = sp.csr_array(sp.tril(graph, -1) + sp.triu(graph, 1))
    graph.data = np.ones(graph.nnz)
    return graph


def triangles_by_graphblas(A: gb.Matrix) -> np.ndarray:
    """Return the triangles at each vertex: LAGraph's LCC without its division."""
    closed = A.mxm(A.T, semiring.plus_pair).new(mask=A.S).reduce_rowwise(monoid.plus).new()
    found = np.zeros(A.nrows, np.int64)
    places, values = closed.to_coo()
    found[places] = values // 2
    return found


def truss_by_graphblas(A: gb.Matrix) -> int:
    """Return the entries of the truss: LAGraph's k-truss."""
    current = A.dup()
    while True:
        support = current.mxm(current.T, semiring.plus_pair).new(mask=current.S)
        kept = gb.select.valuege(support, TRUSS - 2).new()
        if kept.nvals == current.nvals:
            return int(kept.nvals)
        current = kept


def label_rounds(graph: sp.csr_array) -> np.ndarray:
    """Return the labels after the rounds, by a sort of each round's labels by rows in NumPy."""
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    labels = np.arange(graph.shape[0])
    for _ in range(ROUNDS):
        keys = np.sort(rows * graph.shape[0] + labels[graph.indices])
        starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
        counts = np.diff(np.r_[starts, len(keys)])
        owners, found = np.divmod(keys[starts], graph.shape[0])
        order = np.lexsort((found, -counts, owners))
        first = order[np.flatnonzero(np.r_[True, np.diff(owners[order]) > 0])]
        new = labels.copy()
        new[owners[first]] = found[first]
        if (new == labels).all():
            break
        labels = new
    return labels


def as_igraph(graph: sp.csr_array) -> igraph.Graph:
    """Return the edges of the upper triangle as igraph's graph."""
    upper = sp.triu(graph, 1).tocoo()
    return igraph.Graph(n=graph.shape[0], edges=np.stack(upper.coords, axis=1))


def compare(
    bench: Bench, name: str, about: str, ours: Callable[[], Any], peers: list[Contender], value: Any
) -> None:
    contender, call = public(lambda _: ours(), value=value)
    bench.compare(Claim(name, about, TARGET), [contender, *peers], call.notes)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        scale = bench.sized(SCALE, SMALL_SCALE)
        graph = without_loops(scale)
        A, peer = mn.asarray(graph).persist(), as_igraph(graph)
        G = graphblas_peer.pattern(graph, bool)
        about = f"R-MAT 2^{scale} with its transpose, {graph.nnz:,} entries, stored"
        compare(
            bench, f"connected components, 2^{scale}", about,
            lambda: int(mn.graph.connected_components(A, symmetric=True).number),
            [
                Contender("SciPy", lambda _: csgraph.connected_components(graph, directed=False)[0]),
                Contender("igraph", lambda _: len(peer.connected_components())),
            ],
            int,
        )  # fmt: skip
        compare(
            bench, f"triangles of each vertex, 2^{scale}", about,
            lambda: mn.graph.triangles(A, symmetric=True).compute(),
            by_threads(Contender("GraphBLAS", lambda _: triangles_by_graphblas(G)), graphblas_threads),
            lambda found: found,
        )  # fmt: skip
        compare(
            bench, f"{TRUSS}-truss, 2^{scale}", about,
            lambda: mn.graph.k_truss(A, TRUSS, symmetric=True).persist(),
            by_threads(Contender("GraphBLAS", lambda _: truss_by_graphblas(G)), graphblas_threads),
            lambda found: found if isinstance(found, int) else found.to_scipy().nnz,
        )  # fmt: skip
        compare(
            bench, f"core numbers, 2^{scale}", about,
            lambda: mn.graph.core_number(A, symmetric=True).compute(),
            [Contender("igraph", lambda _: np.array(peer.coreness()))],
            lambda found: found,
        )  # fmt: skip
        compare(
            bench, f"label propagation, {ROUNDS} rounds, 2^{scale}", about,
            lambda: mn.graph.label_propagation(A, ROUNDS, symmetric=True).compute(),
            [Contender("NumPy, sorted", lambda _: label_rounds(graph))],
            lambda found: found,
        )  # fmt: skip


if __name__ == "__main__":
    main()
