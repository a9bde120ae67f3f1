"""Fifty iterations from cuts of equal rows on a skewed graph, with cuts that follow the time and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.comparison import OURS, Bench, Claim, Comparison, Contender
from harness.inputs import equal_entry_cuts, rmat
from harness.loops import GangDidNotRun
from harness.rebalancing import PARTS, FreshCuts, Run, RunWatch, equal_rows, rebalanced_by, symmetric
from harness.statistics import duration

import matnb as mn

SCALE = 20
ITERATIONS = 50
DAMPING = 0.85
COLUMNS = 8
EIGENVALUES, MOST_EIGSH = 6, 17  # at 20 a run takes minutes
WITHOUT, PRESTO = "off, equal rows", "presto, equal rows"
TARGETS = {1: 0.85, COLUMNS: 0.75}
IMBALANCE_TARGET, MAKESPAN_TARGET, SHARE_TARGET, EIGSH_TARGET = 1.1, 1.15, 0.03, 0.85
STAR_ROWS, STAR_ROW, STAR_TARGET = 1024, 500, 1.2
MOST_REPARTITIONS = 4


@dataclass
class Contest:
    """The same loop from several cuts under several settings, and what each of its runs told.

    Attributes
    ----------
    loop
        Runs the loop on a matrix and a start, and gives an array of results.
    start
        Makes the start of a round.
    tolerance
        By how much results may differ; 0.0 asks for the same bits.
    has_others
        Whether Presto's rule, and cuts of equal entries from the start, take part.
    """

    watch: RunWatch
    equal: FreshCuts
    by_entries: FreshCuts
    loop: Callable[[mn.DistArray, Any], mn.DistArray]
    start: Callable[[int], Any]
    tolerance: float
    has_others: bool = True
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def once(self, name: str, setting: str, A: mn.DistArray, start: Any) -> mn.DistArray:
        """Run the loop under a setting and keep what was told of it."""
        with rebalanced_by(setting), self.watch.watched() as run:
            result = self.loop(A, start).persist()
        if run.engine != "gang":
            raise GangDidNotRun(f"{name}: {run.engine or 'nothing'} ran the loop")
        self.runs.setdefault(name, []).append(run)
        return result

    def contender(self, name: str, setting: str, cuts: FreshCuts, judged: bool) -> Contender:
        """Return one setting from some cuts; every round's array is a new one."""

        def prepare(number: int) -> tuple[mn.DistArray, Any]:
            given = cuts(), self.start(number)
            mn.memo.clear()  # and with it all that no handle stands for
            return given

        def run(given: tuple[mn.DistArray, Any]) -> mn.DistArray:
            return self.once(name, setting, *given)

        return Contender(name, run, prepare, mn.DistArray.compute, judged, self.tolerance)

    def contenders(self) -> list[Contender]:
        """Return all settings, matnb's own first."""
        judged = [
            self.contender(OURS, "auto", self.equal, True),
            self.contender(WITHOUT, "off", self.equal, True),
        ]
        if not self.has_others:
            return judged
        return [
            *judged,
            self.contender(PRESTO, "presto", self.equal, False),
            self.contender("off, equal entries", "off", self.by_entries, False),
        ]

    def timed(self, name: str) -> list[Run]:
        """Return the runs of a contender but the first, which compiles and checks."""
        return self.runs[name][1:]

    def notes(self) -> tuple[str, ...]:
        """Say how often was repartitioned, and how loads were without."""
        counts = [len(run.decisions) for run in self.timed(OURS)]
        outcome = "holds" if max(counts) <= MOST_REPARTITIONS else "missed"
        at = ", ".join(str(one.iteration) for one in self.runs[OURS][-1].decisions)
        before = sorted(run.imbalance for run in self.timed(WITHOUT))
        presto = [len(run.decisions) for run in self.timed(PRESTO)] if self.has_others else []
        theirs = f"; Presto's rule: {min(presto)} to {max(presto)}" if presto else ""
        return (
            f"{min(counts)} to {max(counts)} repartitions in a run, at most {MOST_REPARTITIONS}: {outcome}; "
            f"in the last run after iterations {at or 'none'}{theirs}",
            f"imbalance of kernel seconds without: {before[0]:.2f} to {before[-1]:.2f}",
            f"kernels of an iteration, all workers: {self.kernels(OURS)}, without {self.kernels(WITHOUT)}",
        )

    def kernels(self, name: str) -> str:
        """Return what the kernels of all workers typically took together in an iteration."""
        found = sorted(run.per_iteration(sum(run.kernels.values())) for run in self.timed(name))
        return duration(found[len(found) // 2])

    def settled(self, rounds: int) -> list[Run]:
        """Return runs without repartitions over the cuts that one run with them has come to."""
        A = self.equal()
        self.once("to settle", "auto", A, self.start(0))
        return [self.after(A, number) for number in range(1, rounds + 1)]

    def after(self, A: mn.DistArray, number: int) -> Run:
        """Run once over the cuts that there are."""
        mn.memo.clear()
        self.once("settled", "off", A, self.start(number))
        return self.runs["settled"][-1]


def compare(bench: Bench, contest: Contest, name: str, work: str, target: float) -> None:
    """Time a contest against its target, then judge loads, makespan and the price of repartitioning."""
    bench.compare(Claim(f"rebalancing, {name}", work, target), contest.contenders(), contest.notes)
    recutting = {
        OURS: [run.repartition_seconds for run in contest.timed(OURS)],
        "the run": [run.seconds for run in contest.timed(OURS)],
    }
    claim = Claim(f"repartitioning's share, {name}", f"Repartitioning of: {work}", SHARE_TARGET)
    bench.publish(Comparison(claim, recutting, ["the run"]))


def judge_settled(bench: Bench, contest: Contest, name: str, work: str) -> None:
    """Judge loads and makespan over the cuts that a run has come to."""
    runs = contest.settled(bench.rounds)
    even = [run.per_iteration(sum(run.kernels.values()) / len(run.kernels)) for run in runs]
    loads = {OURS: [run.per_iteration(max(run.kernels.values())) for run in runs], "an even share": even}
    claim = Claim(
        f"kernel seconds of the slowest worker, {name}",
        f"Per iteration after repartitioning: {work}",
        IMBALANCE_TARGET,
    )
    bench.publish(Comparison(claim, loads, ["an even share"]))
    exchange = [run.per_iteration(run.exchange_seconds) for run in runs]
    peer = "an even share + exchange"
    spans = {
        OURS: [run.per_iteration(run.loop_seconds) for run in runs],
        peer: [one + other for one, other in zip(even, exchange, strict=True)],
    }
    typical = duration(sorted(exchange)[len(runs) // 2])
    note = f"exchange, all of an iteration that is not its slowest worker's kernels: {typical}"
    claim = Claim(f"makespan of an iteration, {name}", f"After repartitioning: {work}", MAKESPAN_TARGET)
    bench.publish(Comparison(claim, spans, [peer], (note,)))


def ranks(share: mn.DistArray, width: int, length: int) -> Callable[[mn.DistArray, Any], mn.DistArray]:
    """Return the loop of a product of some columns."""
    spread = share if width == 1 else share[:, None]

    def loop(A: mn.DistArray, start: Any) -> mn.DistArray:
        final, _ = mn.iterate(
            lambda x: A @ (x * spread) + (1 - DAMPING) / length, start, max_iterations=ITERATIONS
        )
        return final

    return loop


def starts(length: int, width: int) -> Callable[[int], mn.DistArray]:
    """Return what makes the start of a round: ones that differ between rounds by less than is compared."""
    shape = length if width == 1 else (length, width)
    return lambda number: mn.asarray(np.full(shape, (1 + number * 1e-15) / length)).persist()


def compare_products(bench: Bench, watch: RunWatch) -> None:
    length = 2**bench.scale
    graph = rmat(bench.scale)
    degrees = np.bincount(graph.indices, minlength=length)
    share = mn.asarray(DAMPING / np.maximum(degrees, 1)).persist()
    matrix = mn.random.rmat(scale=bench.scale, seed=1).persist()
    cuts = FreshCuts(matrix, equal_rows(length)), FreshCuts(matrix, equal_entry_cuts(graph.indptr, PARTS))
    for width, target in TARGETS.items():
        contest = Contest(watch, *cuts, ranks(share, width, length), starts(length, width), 0.0, width == 1)
        name = f"A @ {'x' if width == 1 else 'X'}, 2^{bench.scale}"
        work = (
            f"R-MAT 2^{bench.scale}, {graph.nnz:,} entries, {PARTS} blocks of equal rows at first, "
            f"{ITERATIONS} iterations of A @ (x * share) + c, x of {width} column{'s' if width > 1 else ''}, "
            "2 processes x 1 thread"
        )
        compare(bench, contest, name, work, target)
        judge_settled(bench, contest, name, work)


def compare_eigsh(bench: Bench, watch: RunWatch) -> None:
    scale = min(bench.scale, MOST_EIGSH)
    both = symmetric(rmat(scale))
    cuts = equal_rows(both.shape[0]), equal_entry_cuts(both.indptr, PARTS)
    matrix = mn.asarray(both).persist()
    work = (
        f"R-MAT 2^{scale}, A | A.T without diagonal, {both.nnz:,} entries, {PARTS} blocks of equal "
        f"rows at first, {EIGENVALUES} eigenvalues, 2 processes x 1 thread"
    )
    del both
    contest = Contest(
        watch,
        *(FreshCuts(matrix, each) for each in cuts),
        lambda A, _: mn.linalg.eigsh(A, k=EIGENVALUES).values,
        start=lambda number: number,
        tolerance=1e-7,  # its dense products' bits follow the cuts
    )
    compare(bench, contest, f"eigsh, 2^{scale}", work, EIGSH_TARGET)


def star(scale: int) -> sp.csr_array:
    """Return a wide matrix one row of which holds half of all entries, and the other rows as many each."""
    num_columns = 2**scale
    rng = np.random.default_rng(0)
    each = num_columns // STAR_ROWS
    rows = np.repeat(np.arange(STAR_ROWS), each)
    columns = rng.integers(0, each, rows.size) + each * np.tile(np.arange(each) % STAR_ROWS, STAR_ROWS)
    full = np.full(num_columns, STAR_ROW), np.arange(num_columns)
    indices = np.concatenate((rows, full[0])), np.concatenate((columns, full[1]))
    return sp.csr_array((np.ones(indices[0].size), indices), shape=(STAR_ROWS, num_columns))


def compare_star(bench: Bench, watch: RunWatch) -> None:
    matrix = star(bench.scale + 2)
    num_columns = matrix.shape[1]
    contest = Contest(
        watch,
        *(FreshCuts(mn.asarray(matrix).persist(), equal_rows(STAR_ROWS)),) * 2,
        lambda A, x: mn.iterate(lambda x: x * 0.5 + (A @ x).sum() * 1e-9, x, max_iterations=ITERATIONS)[0],
        starts(num_columns, 1),
        tolerance=0.0,
    )
    runs = contest.settled(bench.rounds)
    strategies = {one.strategy for run in contest.runs["to settle"] for one in run.decisions}
    loads = {
        OURS: [run.per_iteration(max(run.kernels.values())) for run in runs],
        "an even share": [run.per_iteration(sum(run.kernels.values()) / len(run.kernels)) for run in runs],
    }
    claim = Claim(
        "kernel seconds of the slowest worker, star",
        f"{STAR_ROWS:,} x {num_columns:,}, {matrix.nnz:,} entries, half of them in row {STAR_ROW}, per "
        "iteration after repartitioning, 2 processes x 1 thread",
        STAR_TARGET,
    )
    note = f"strategies of its repartitions: {', '.join(sorted(strategies)) or 'none'}"
    bench.publish(Comparison(claim, loads, ["an even share"], (note,)))


PARTS_OF_IT = (compare_products, compare_eigsh, compare_star)


def main(parts: Sequence[Callable[[Bench, RunWatch], None]] = PARTS_OF_IT) -> None:
    bench = Bench(__doc__, SCALE)
    for part in parts:
        with mn.start(workers=2, threads=1, processes=True, rebalance="off"):
            part(bench, RunWatch())


if __name__ == "__main__":
    main()
