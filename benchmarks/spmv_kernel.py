"""The kernel of a sparse matrix times a vector, over all blocks on two threads, against GraphBLAS."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from graphblas import semiring
from harness import graphblas_peer
from harness.bandwidth import floor_note, read_bandwidth
from harness.comparison import OURS, Bench, Claim, Comparison, Contender, timed
from harness.inputs import THREADS, rmat, row_blocks, side_by_side
from harness.threads import by_threads, graphblas_threads

from matnb.blocks.formats import Block, Dense, freeze
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.semiring import PLUS_TIMES

SCALE = 20
BLOCKS = 16


def compare(bench: Bench, bandwidth: float, graph: sp.csr_array, pattern: bool, target: float) -> None:
    """Compare on a matrix with values, or all ones of which only the pattern is stored."""
    x = np.random.default_rng(7).random(graph.shape[1])
    dense = freeze(Dense(x))
    blocks = [freeze(block) for block in row_blocks(graph, BLOCKS, pattern)]
    theirs = graphblas_peer.pattern(graph) if pattern else graphblas_peer.matrix(graph)
    ring = semiring.plus_second if pattern else semiring.plus_times
    full = graphblas_peer.vector(x)
    float64 = np.dtype(np.float64)

    def of_block(block: Block) -> Block:
        return multiply(block, dense, PLUS_TIMES, float64)

    graphblas = Contender(
        "GraphBLAS", lambda _: theirs.mxv(full, ring).new(), value=lambda vector: vector.to_dense(0.0)
    )
    peers = by_threads(graphblas, graphblas_threads)
    judged = [peer.name for peer in peers]
    with ThreadPoolExecutor(THREADS) as pool:
        times = timed(
            [
                Contender(
                    OURS,
                    lambda _: side_by_side(pool, of_block, blocks),
                    value=lambda parts: np.concatenate([part.values for part in parts]),
                ),
                *peers,
                Contender("SciPy, 1 thread", lambda _: graph @ x, judged=False),
            ],
            bench.rounds,
            in_turn=True,
        )
    num_bytes = sum(block.nbytes for block in blocks) + x.nbytes
    kind = "pattern-only" if pattern else "with values"
    work = f"A @ x on {BLOCKS} blocks of equal entries, R-MAT 2^{SCALE} {kind}, {graph.nnz:,} entries"
    note = floor_note(num_bytes, bandwidth, statistics.median(times[OURS]))
    claim = Claim(f"SpMV kernel, {kind}", work, target)
    bench.publish(Comparison(claim, times.wall, judged, [note], times.cpu))


def main() -> None:
    bench = Bench(__doc__)
    bandwidth = read_bandwidth()
    compare(bench, bandwidth, rmat(SCALE), True, 0.85)
    compare(bench, bandwidth, rmat(SCALE, values=True), False, 1.1)


if __name__ == "__main__":
    main()
