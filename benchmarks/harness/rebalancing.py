"""Loops whose arrays are repartitioned: fresh arrays for each round, and what a run's events tell of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise

import scipy.sparse as sp

import matnb as mn
from harness.inputs import lower_triangle
from matnb.balance.decision import Decision
from matnb.events import Event, LoopAdvanced, LoopFinished, Rebalanced, TasksFinished
from matnb.pictures.imbalance import imbalance

PARTS = 8  # blocks to begin with


def equal_rows(length: int, parts: int = PARTS, shift: int = 0) -> list[int]:
    """Return cuts of equally many rows, but for some rows by which all are shifted."""
    inner = (length * place // parts + shift for place in range(1, parts))
    return [0, *inner, length]


class FreshCuts:
    """Arrays cut anew for each run, each a few rows elsewhere, so that nothing is known of them.

    Parameters
    ----------
    matrix
        Stored.
    cuts
        Of its rows.
    """

    def __init__(self, matrix: mn.DistArray, cuts: Sequence[int]) -> None:
        self._matrix, self._cuts, self._shifts = matrix, cuts, count(1)

    def __call__(self) -> mn.DistArray:
        """Return the matrix in cuts that no array had before, stored."""
        shift = next(self._shifts)
        first, *inner, last = self._cuts
        moved = [cut + shift for cut in inner]
        if any(low >= high for low, high in pairwise([first, *moved, last])):
            raise ValueError(f"no row is left for a part of {self._cuts} after {shift} runs")
        return mn.asarray(self._matrix, blocks=[[first, *moved, last], None]).persist()


@dataclass
class Run:
    """What the events of a call told; times in seconds.

    Attributes
    ----------
    seconds
        The whole call's.
    iterations
        Of its loop; 0 where none has ended.
    engine
        What ran the loop.
    kernels
        Of each worker in the loop.
    decisions
        Those that were acted on.
    repartitions
        What each of them took.
    repartition_seconds
        All repartitions together, each from the end of the iteration before it to the begin of the next one.
    moved_bytes
        From one worker to another by them.
    stamps
        When which number of iterations was first told, since the call began, and what the last took.
    repartition_stamps
        When each repartition was told.
    """

    seconds: float = 0.0
    loop_seconds: float = 0.0
    iterations: int = 0
    engine: str = ""
    kernels: dict[int, float] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    repartitions: list[float] = field(default_factory=list)
    repartition_seconds: float = 0.0
    moved_bytes: int = 0
    stamps: list[tuple[float, int, float]] = field(default_factory=list)
    repartition_stamps: list[float] = field(default_factory=list)

    @property
    def imbalance(self) -> float:
        """The slowest worker's kernel seconds over the mean."""
        return imbalance(self.kernels)

    @property
    def exchange_seconds(self) -> float:
        """What the loop took besides its slowest worker's kernels."""
        return self.loop_seconds - max(self.kernels.values())

    def per_iteration(self, seconds: float) -> float:
        """Return the part of an iteration."""
        return seconds / self.iterations


class RunWatch:
    """Collects what the session in use tells of one call at a time."""

    def __init__(self) -> None:
        self._run, self._begin = Run(), 0.0
        self._tasks: list[TasksFinished] = []
        mn.current_session().subscribe(self._listen)

    @contextmanager
    def watched(self) -> Iterator[Run]:
        """Fill in a run with what happens in the block."""
        run = self._run = Run()
        self._tasks = []
        known = [one.number for one in mn.history()]
        self._begin = time.perf_counter()
        yield run
        run.seconds = time.perf_counter() - self._begin
        passed = [one for one in mn.history() if not known or one.number > known[-1]]
        run.decisions = [one.decision for one in passed if one.decision.acts]
        run.repartitions = [
            one.gain.cost_seconds for one in passed if one.decision.acts and one.gain is not None
        ]
        run.repartition_seconds = sum(run.repartitions)

    def _listen(self, event: Event) -> None:
        run, now = self._run, time.perf_counter() - self._begin
        match event:
            case TasksFinished():
                self._tasks.append(event)
            case LoopAdvanced(_, iterations, seconds):
                run.stamps.append((now, iterations, seconds))
            case LoopFinished():
                run.iterations, run.engine, run.loop_seconds = event.iterations, event.engine, event.seconds
                run.kernels = kernel_seconds(self._tasks, event.run)
            case Rebalanced():
                if event.acted:
                    run.repartition_stamps.append(now)
                    run.moved_bytes += event.moved_bytes


def kernel_seconds(reports: Sequence[TasksFinished], run: str) -> dict[int, float]:
    """Return the seconds of all kernels of a run, by worker."""
    found: dict[int, float] = {}
    for report in reports:
        if report.run == run:
            seconds = sum(task.seconds for task in report.tasks)
            found[report.worker] = found.get(report.worker, 0.0) + seconds
    return found


@contextmanager
def rebalanced_by(setting: str) -> Iterator[None]:
    """Let the session in use rebalance so within the block; nothing is repartitioned after it."""
    session = mn.current_session()
    session.set_rebalance(setting)
    try:
        yield
    finally:
        session.set_rebalance("off")


def symmetric(graph: sp.csr_array) -> sp.csr_array:
    """Return ``A | A.T`` without the diagonal, all ones."""
    lower = lower_triangle(graph)
    return sp.csr_array(lower + lower.T)
