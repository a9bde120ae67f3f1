"""Markov clustering, against the same loop in SciPy."""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.rebalancing import symmetric
from harness.sessions import public

import matnb as mn

THRESHOLD, TOLERANCE, MOST = 1e-3, 1e-6, 100


def planted(groups: int) -> sp.csr_array:
    """Return a graph of groups of 30 vertices, half of whose pairs have an edge."""
    return sp.csr_array(nx.to_scipy_sparse_array(nx.planted_partition_graph(groups, 30, 0.5, 0.002, seed=1)))


def by_scipy(graph: sp.csr_array) -> int:
    """Return the entries of the last flow of Markov clustering, by SciPy alone."""

    def shares(flow: sp.csr_array) -> sp.csr_array:
        return sp.csr_array(flow / np.asarray(flow.sum(axis=0)).ravel())

    flow = shares(sp.csr_array(graph.T + sp.eye_array(graph.shape[0])))
    for _ in range(MOST):
        new = flow @ flow
        new.data **= 2
        new = shares(new)
        largest = new.max(axis=0).toarray().ravel()
        new.data *= (new.data >= THRESHOLD) | (new.data == largest[new.indices])
        new.eliminate_zeros()
        new = shares(new)
        changed = abs(new - flow).max()
        flow = new
        if changed <= TOLERANCE:
            break
    return int(flow.nnz)


def compare(bench: Bench, name: str, graph: sp.csr_array, target: float) -> None:
    graph = graph.astype(float)
    A = mn.asarray(graph).persist()
    ours, call = public(
        lambda _: mn.graph.markov_clustering(A, threshold=THRESHOLD, tolerance=TOLERANCE).flow.persist(),
        value=lambda flow: flow if isinstance(flow, int) else flow.to_scipy().nnz,
    )
    bench.compare(
        Claim(
            f"Markov clustering, {name}",
            f"{graph.shape[0]:,} vertices, {graph.nnz:,} entries, stored",
            target,
        ),
        [ours, Contender("SciPy", lambda _: by_scipy(graph))],
        call.notes,
    )


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        compare(bench, "50 groups of 30", planted(bench.sized(50, 4)), 1.5)
        scale = bench.sized(14, 8)
        compare(bench, f"R-MAT 2^{scale}", symmetric(rmat(scale)), 0.6)


if __name__ == "__main__":
    main()
