"""The kernel of a sparse matrix times a tall dense one, over all blocks on two threads, against SciPy."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from harness.bandwidth import floor_note, read_bandwidth
from harness.comparison import OURS, Bench, Claim, Comparison, Contender, timed
from harness.inputs import THREADS, rmat, row_blocks, side_by_side

from matnb.blocks.formats import Block, Dense, freeze
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.semiring import PLUS_TIMES

SCALE = 18
COLUMNS = 32
BLOCKS = 16


def main() -> None:
    bench = Bench(__doc__)
    bandwidth = read_bandwidth()
    graph = rmat(SCALE, values=True)
    X = np.random.default_rng(7).random((graph.shape[1], COLUMNS))
    dense = freeze(Dense(X))
    blocks = [freeze(block) for block in row_blocks(graph, BLOCKS)]
    float64 = np.dtype(np.float64)

    def of_block(block: Block) -> Block:
        return multiply(block, dense, PLUS_TIMES, float64)

    def value(parts: list[Dense]) -> np.ndarray:
        return np.concatenate([part.values for part in parts])

    with ThreadPoolExecutor(THREADS) as pool:
        contenders = [
            Contender(OURS, lambda _: side_by_side(pool, of_block, blocks), value=value),
            Contender("SciPy, 1 thread", lambda _: graph @ X),
            Contender("matnb, 1 thread", lambda _: list(map(of_block, blocks)), value=value, judged=False),
        ]
        times = timed(contenders, bench.rounds, in_turn=True)
    num_bytes = sum(block.nbytes for block in blocks) + X.nbytes
    work = f"A @ X on {BLOCKS} blocks of equal entries, R-MAT 2^{SCALE} with values, {graph.nnz:,} entries"
    note = floor_note(num_bytes, bandwidth, statistics.median(times[OURS]))
    claim = Claim(f"SpMM kernel, {COLUMNS} columns", f"{work}, {COLUMNS} columns", 0.6)
    bench.publish(Comparison(claim, times.wall, ["SciPy, 1 thread"], [note], times.cpu))


if __name__ == "__main__":
    main()
