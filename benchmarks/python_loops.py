"""PageRank in a plain Python loop in a cell, without a test and with one, against the same by iterate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, rmat
from harness.loops import LoopWatch
from harness.sessions import PublicCall, public

import matnb as mn
from matnb.magics.cell import compile_cell, run_cell

SCALE = 20
ITERATIONS = 20
DAMPING = 0.85
TOLERANCE = 1e-6
TARGET, TESTED_TARGET = 1.2, 2.0  # seconds of a loop of Python's for each second of iterate

LOOP = f"""
for _ in range({ITERATIONS}):
    lost = (rank * dangling).sum()
    rank = incoming @ (rank * share) + jump(lost)
"""
TESTED_LOOP = f"""
while True:
    lost = (rank * dangling).sum()
    new = incoming @ (rank * share) + jump(lost)
    moved = float(abs(new - rank).sum())
    rank = new
    if moved < {TOLERANCE}:
        break
"""


@dataclass(frozen=True)
class Graph:
    """The stored input of every contender."""

    scale: int
    incoming: mn.DistArray
    share: mn.DistArray
    dangling: mn.DistArray

    @classmethod
    def of(cls, scale: int) -> Graph:
        """Make and store the graph; called where a session is current."""
        degrees = np.diff(rmat(scale).indptr)
        share = np.where(degrees > 0, DAMPING / np.maximum(degrees, 1), 0.0)
        return cls(
            scale,
            mn.random.rmat(scale=scale, seed=1).T.persist(),
            mn.asarray(share).persist(),
            mn.asarray((degrees == 0).astype(float)).persist(),
        )

    def start(self, number: float) -> mn.DistArray:
        """Return equal ranks, which differ between rounds by less than results are compared with."""
        return mn.asarray(np.full(2**self.scale, (1 + number * 1e-15) / 2**self.scale)).persist()

    def jump(self, lost: mn.DistArray) -> mn.DistArray:
        """Return what each vertex gets besides what comes over edges."""
        return (lost * DAMPING + (1 - DAMPING)) / 2**self.scale

    def step(self, rank: mn.DistArray) -> mn.DistArray:
        """Return the next ranks."""
        return self.incoming @ (rank * self.share) + self.jump((rank * self.dangling).sum())


def in_a_cell(graph: Graph, source: str) -> tuple[Contender, PublicCall]:
    """Return a cell's code, from recording it to the ranks in this process."""
    code = compile_cell(source, "<benchmark>")

    def run(rank: mn.DistArray) -> np.ndarray:
        names = {"rank": rank, "jump": graph.jump, **vars(graph)}
        done = run_cell(code, names)
        mn.current_session().run(done.program.roots, done.record)
        return names["rank"].compute()

    return public(run, graph.start)


def by_iterate(graph: Graph, until: Callable[[mn.DistArray, mn.DistArray], mn.DistArray] | None) -> Contender:
    """Return the same loop by iterate."""

    def run(rank: mn.DistArray) -> np.ndarray:
        most = ITERATIONS if until is None else None
        final, _ = mn.iterate(graph.step, rank, until=until, max_iterations=most)
        return final.compute()

    # Other ranks than the cell's, or the loop, which may be the same expression, would be found in memory.
    contender, _ = public(run, lambda number: graph.start(number + 0.5), name="mn.iterate")
    return contender


def main() -> None:
    bench = Bench(__doc__, scale=SCALE)
    with mn.start(threads=THREADS):
        graph = Graph.of(bench.scale)
        work = f"R-MAT 2^{bench.scale}, A.T stored"
        watch = LoopWatch()
        ours, call = in_a_cell(graph, LOOP)
        bench.compare(
            Claim(
                f"PageRank in a plain Python loop, 2^{bench.scale}",
                f"{work}, {ITERATIONS} iterations, no value asked for",
                TARGET,
            ),
            [ours, by_iterate(graph, None)],
            lambda: (*call.notes(), *watch.notes(ITERATIONS)),
        )
        tested, tested_call = in_a_cell(graph, TESTED_LOOP)
        bench.compare(
            Claim(
                f"PageRank in a plain Python loop with a test, 2^{bench.scale}",
                f"{work}, until the ranks move by less than {TOLERANCE:g}, asked in every iteration",
                TESTED_TARGET,
            ),
            [tested, by_iterate(graph, lambda old, new: abs(new - old).sum() < TOLERANCE)],
            tested_call.notes,
        )


if __name__ == "__main__":
    main()
