"""The sum that does not depend on the cuts, over blocks on two threads, against NumPy's."""

from __future__ import annotations

import itertools
import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from harness.bandwidth import floor_note, read_bandwidth
from harness.comparison import OURS, Bench, Claim, Comparison, Contender, timed
from harness.inputs import THREADS, side_by_side
from harness.sessions import public

import matnb as mn
from matnb.blocks.grid import regular_cuts
from matnb.blocks.sums import share_of, sum_of_shares

LENGTH = 20_000_000
BLOCKS = 8


def main() -> None:
    bench = Bench(__doc__)
    bandwidth = read_bandwidth()
    x = np.random.default_rng(7).random(LENGTH)
    ranges = list(itertools.pairwise(regular_cuts(LENGTH, BLOCKS)))

    def of_block(part: tuple[int, int]) -> np.ndarray:
        return share_of(x[slice(*part)], (0,), 0, part[0])

    with mn.start(threads=THREADS), ThreadPoolExecutor(THREADS) as pool:
        stored = mn.asarray(x).persist()
        call, _ = public(lambda _: float(stored.sum()), name="matnb, public call", judged=False)
        contenders = [
            Contender(
                OURS,
                lambda _: sum_of_shares(side_by_side(pool, of_block, ranges), ranges, 0),
                value=lambda total: total[0],
            ),
            Contender("NumPy, 1 thread", lambda _: x.sum()),
            call,
        ]
        times = timed(contenders, bench.rounds)
    note = floor_note(x.nbytes, bandwidth, statistics.median(times[OURS]))
    claim = Claim("sum over blocks", f"the sum of {LENGTH:,} doubles in {BLOCKS} blocks", 1.0)
    bench.publish(Comparison(claim, times.wall, ["NumPy, 1 thread"], [note], times.cpu))


if __name__ == "__main__":
    main()
