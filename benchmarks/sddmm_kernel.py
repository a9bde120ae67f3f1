"""The kernel of a sampled product of two dense matrices, S * (U @ W.T), against NumPy gathering rows."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from harness.comparison import OURS, Bench, Claim, Contender
from harness.inputs import THREADS, equal_entry_cuts, rmat, side_by_side

from matnb.blocks.formats import Block, Csr, Dense, csr_block, freeze
from matnb.blocks.kernels.products.sampled_products import masked_multiply
from matnb.blocks.semiring import PLUS_TIMES

SCALE = 18
RANK = 32
BLOCKS = 16


def main() -> None:
    bench = Bench(__doc__)
    graph = rmat(SCALE)
    rng = np.random.default_rng(7)
    U, W = rng.random((graph.shape[0], RANK)), rng.random((graph.shape[1], RANK))
    right = freeze(Dense(W.T))  # a view: what a plan hands to the kernel where U @ W.T is written
    cuts = equal_entry_cuts(graph.indptr, BLOCKS)
    pieces = [
        (freeze(Dense(U[a:b])), freeze(csr_block(graph[a:b], pattern=True)))
        for a, b in itertools.pairwise(cuts)
    ]
    rows = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    float64 = np.dtype(np.float64)

    def of_block(piece: tuple[Dense, Block]) -> Block:
        left, sampled = piece
        return masked_multiply(left, right, sampled, PLUS_TIMES, float64, structural=True, scaled=float64)

    def value(parts: list[Csr]) -> np.ndarray:
        return np.concatenate([part.entries for part in parts])

    with ThreadPoolExecutor(THREADS) as pool:
        bench.compare(
            Claim(
                f"SDDMM kernel, rank {RANK}",
                f"S * (U @ W.T) on {BLOCKS} blocks of equal entries, S the pattern of R-MAT 2^{SCALE}, "
                f"{graph.nnz:,} entries, rank {RANK}",
                0.15,
            ),
            [
                Contender(OURS, lambda _: side_by_side(pool, of_block, pieces), value=value),
                Contender("NumPy, gather, multiply, sum", lambda _: (U[rows] * W[graph.indices]).sum(1)),
                Contender(
                    "NumPy, gather, einsum",
                    lambda _: np.einsum("ij,ij->i", U[rows], W[graph.indices]),
                    judged=False,
                ),
                Contender(
                    "matnb, 1 thread", lambda _: list(map(of_block, pieces)), value=value, judged=False
                ),
            ],
        )


if __name__ == "__main__":
    main()
