"""Loops from equal rows, short and long: what "auto" costs beside "off" and "entries", and what it brings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from harness.comparison import OURS, Bench, Claim, Comparison, Contender
from harness.inputs import lower_triangle, rmat
from harness.loops import GangDidNotRun
from harness.rebalancing import PARTS, FreshCuts, Run, RunWatch, equal_rows, rebalanced_by

import matnb as mn

SCALE = 19
OFF, ENTRIES = "off", "entries"
COST_TARGET, GAIN_TARGET = 1.03, 0.85
UNEVEN = 1.4  # imbalance of kernel seconds without, from which on repartitioning must bring something


@dataclass(frozen=True)
class LoopCase:
    """A loop over an R-MAT graph in blocks of equal rows.

    Attributes
    ----------
    below
        How much smaller than the benchmark's scale its own is.
    columns
        Of the state; 0 for a masked product of the lower triangle by itself.
    is_slowed
        Whether another program keeps the core of one worker busy.
    """

    below: int
    iterations: int
    columns: int = 1
    is_slowed: bool = False

    def name(self, scale: int) -> str:
        """Return what the claim is called."""
        what = (
            "(sL @ L) * L" if not self.columns else "A @ x" if self.columns == 1 else f"A @ X, {self.columns}"
        )
        return f"{self.iterations} x {what}, 2^{scale - self.below}{', one core shared' * self.is_slowed}"


CASES = (
    LoopCase(0, 200),
    LoopCase(0, 50),
    LoopCase(1, 10),
    LoopCase(2, 200),
    LoopCase(3, 500),
    LoopCase(4, 100),
    LoopCase(1, 20, 8),
    LoopCase(2, 60, 32),
    LoopCase(3, 20, 32),
    LoopCase(4, 200, 4),
    LoopCase(4, 20, 0),
    LoopCase(5, 60, 0),
    LoopCase(0, 200, is_slowed=True),
)


@dataclass
class Loops:
    """One case under three settings, each run over cuts that no array had before."""

    case: LoopCase
    watch: RunWatch
    cuts: FreshCuts
    start: Callable[[int], Any]
    shared: Callable[[], Any]
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def contender(self, name: str, setting: str) -> Contender:
        """Return the loop under a setting."""

        def prepare(number: int) -> tuple[mn.DistArray, Any]:
            given = self.cuts(), self.start(number)
            mn.memo.clear()
            return given

        def run(given: tuple[mn.DistArray, Any]) -> mn.DistArray:
            with self.shared(), rebalanced_by(setting), self.watch.watched() as told:
                result = mn.iterate(self.step(given[0]), given[1], max_iterations=self.case.iterations)[0]
                result.persist()
            if told.engine != "gang":
                raise GangDidNotRun(f"{name}: {told.engine or 'nothing'} ran the loop")
            self.runs.setdefault(name, []).append(told)
            return result

        return Contender(name, run, prepare, mn.DistArray.compute)

    def step(self, A: mn.DistArray) -> Callable[[Any], Any]:
        """Return what an iteration makes of the state."""
        if not self.case.columns:
            return lambda s: 1 + 1e-12 * (((A * s) @ A) * A).sum()
        return lambda x: 1e-3 * (A @ x) + 0.1

    def compare(self, bench: Bench, work: str) -> None:
        """Time the settings, and judge cost and gain."""
        name = self.case.name(bench.scale)
        contenders = [
            self.contender(OURS, "auto"),
            self.contender(OFF, OFF),
            self.contender(ENTRIES, ENTRIES),
        ]
        claim = Claim(f"auto, {name}", work, COST_TARGET)
        found = bench.compare(claim, contenders, self.notes)
        if self.imbalance > UNEVEN:
            seconds, cpu = (
                {one: part[one] for one in (OURS, OFF)} for part in (found.seconds, found.cpu_seconds)
            )
            claim = Claim(f"auto beside off, {name}", work, GAIN_TARGET)
            bench.publish(Comparison(claim, seconds, [OFF], cpu_seconds=cpu))

    @property
    def imbalance(self) -> float:
        """Of kernel seconds without repartitions."""
        return median(run.imbalance for run in self.runs[OFF][1:])

    def notes(self) -> tuple[str, ...]:
        """Say how uneven it was and what was done."""
        acted = [len(run.decisions) for run in self.runs[OURS][1:]]
        spent = [run.repartition_seconds for run in self.runs[OURS][1:]]
        return (
            f"imbalance of kernel seconds without: {self.imbalance:.2f}; repartitions in a run: "
            f"{min(acted)} to {max(acted)}, together {1e3 * median(spent):.0f} ms",
        )


@contextmanager
def burner(core: int) -> Iterator[Callable[[], Any]]:
    """Give what keeps a core busy for the while of a context."""
    code = f"import os; os.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    other = subprocess.Popen([sys.executable, "-c", code])
    other.send_signal(signal.SIGSTOP)

    @contextmanager
    def burns() -> Iterator[None]:
        other.send_signal(signal.SIGCONT)
        try:
            yield
        finally:
            other.send_signal(signal.SIGSTOP)

    try:
        yield burns
    finally:
        other.kill()
        other.wait()


def pin(core: int) -> None:
    """Keep all threads of a worker on one core."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})


def run_case(bench: Bench, case: LoopCase) -> None:
    """Run a case in a session of its own."""
    scale = bench.scale - case.below
    cores = sorted(os.sched_getaffinity(0))
    with mn.start(workers=2, threads=1, processes=True, rebalance="off") as session:
        if case.columns:
            matrix = mn.random.rmat(scale=scale, seed=1).persist()
        else:
            matrix = mn.asarray(lower_triangle(rmat(scale))).persist()
        length = matrix.shape[0]
        shape = {0: (), 1: (length,)}.get(case.columns, (length, case.columns))
        if case.is_slowed:
            for worker, core in zip(session.cluster.workers, cores, strict=False):
                session.cluster.client.run(pin, core, workers=[worker.address])
        with burner(cores[0]) if case.is_slowed else nullcontext(nullcontext) as shared:
            loops = Loops(
                case,
                RunWatch(),
                FreshCuts(matrix, equal_rows(length)),
                lambda number: mn.asarray(np.full(shape, 1 + number * 1e-14)).persist(),
                shared,
            )
            work = (
                f"{case.name(bench.scale)}: R-MAT, {matrix.nnz:,} entries, {PARTS} blocks of equal rows at "
                "first, 2 processes x 1 thread; the better of off and entries is the peer"
            )
            loops.compare(bench, work)


def main() -> None:
    bench = Bench(__doc__, SCALE)
    for case in CASES:
        run_case(bench, case)


if __name__ == "__main__":
    main()
