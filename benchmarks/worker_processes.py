"""PageRank over two worker processes that talk by sockets of the user's own, against ports that all reach."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import psutil
from harness.comparison import OURS, Bench, Claim, Contender

import matnb as mn

SCALE = 20
WORKERS = 2
ITERATIONS = 50
DAMPING = 0.85
PORTS = "matnb, security=False"


@dataclass
class Loop:
    """PageRank in a session of its own, which begins with each round."""

    scale: int
    cpu_seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def prepare(self, security: bool, number: int) -> Callable[[int], Any]:
        """Start a session, store the graph, and return the loop, which was run before."""
        mn.start(workers=WORKERS, threads=1, processes=True, security=security, rebalance="entries")
        A = mn.random.rmat(scale=self.scale, seed=1)
        degrees = A.sum(axis=1)
        incoming = A.T.persist()
        share = np.where(degrees > 0, 1 / np.maximum(degrees, 1), 0.0).persist()

        def ranks(number: int) -> Any:
            # Equal ranks, which differ from call to call by less than results are compared with.
            start = mn.full(incoming.shape[0], (1 + number * 1e-15) / incoming.shape[0])
            rank, _ = mn.iterate(
                lambda rank: DAMPING * (incoming @ (rank * share)) + (1 - DAMPING) / incoming.shape[0],
                start,
                max_iterations=ITERATIONS,
            )
            return rank.compute()

        ranks(number + 1000)
        return partial(ranks, number)

    def run(self, name: str, ranks: Callable[[], Any]) -> Any:
        """Run the loop, and note the seconds of processors that it and the workers took."""
        before = _cpu_seconds()
        found = ranks()
        self.cpu_seconds[name].append(_cpu_seconds() - before)
        return found

    def notes(self) -> list[str]:
        """Return the seconds of processors, the median of the rounds."""
        medians = {name: statistics.median(seconds[1:]) for name, seconds in self.cpu_seconds.items()}
        return [
            f"seconds of processors: {medians[OURS]:.3g} by sockets, {medians[PORTS]:.3g} by ports, "
            f"ratio {medians[OURS] / medians[PORTS]:.2f}"
        ]


def _cpu_seconds() -> float:
    here = psutil.Process()
    return sum(sum(one.cpu_times()[:2]) for one in [here, *here.children(recursive=True)])


def main() -> None:
    bench = Bench(__doc__, SCALE)
    loop = Loop(bench.scale)
    contenders = [
        Contender(name, partial(loop.run, name), partial(loop.prepare, security))
        for name, security in ((OURS, True), (PORTS, False))
    ]
    claim = Claim(
        "worker processes without ports",
        f"{ITERATIONS} iterations of PageRank, R-MAT 2^{bench.scale}, over {WORKERS} processes of one "
        "thread, which talk by sockets in a folder of the user's, against ports of the loopback interface",
        1.1,
    )
    try:
        bench.compare(claim, contenders, loop.notes)
    finally:
        mn.stop()


if __name__ == "__main__":
    main()
