"""matnb as a contender: public calls that are known to have worked, and where their time went."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import matnb as mn
from harness.comparison import OURS, Contender
from harness.inputs import THREADS
from harness.statistics import duration
from matnb.events import Event, LoopFinished, RunFinished, TasksFinished


class StaleResult(Exception):  # noqa: N818  says what happened
    """A call that was to be timed took its result from memory."""


class PublicCall:
    """A timed public call; every round is held to have run tasks.

    Parameters
    ----------
    run
        The call, given what ``prepare`` gave.
    """

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self._run = run
        self._tasks: list[TasksFinished] = []
        self._runs: list[RunFinished | LoopFinished] = []
        self._calls: list[tuple[float, float, float, int]] = []
        mn.current_session().subscribe(self._listen)

    def __call__(self, given: Any) -> Any:
        """Run the call, and note how much of it was spent in runs and in tasks."""
        self._tasks.clear()
        self._runs.clear()
        begin = time.perf_counter()
        result = self._run(given)
        seconds = time.perf_counter() - begin
        tasks = [task for report in self._tasks for task in report.tasks]
        if not tasks:
            raise StaleResult("no task ran: give each round fresh input, or drop what is held")
        runs = sum(run.seconds for run in self._runs)
        self._calls.append((seconds, runs, sum(task.seconds for task in tasks), len(tasks)))
        return result

    def _listen(self, event: Event) -> None:
        if isinstance(event, TasksFinished):
            self._tasks.append(event)
        elif isinstance(event, RunFinished | LoopFinished):
            self._runs.append(event)

    @property
    def seconds(self) -> list[float]:
        """How long each call took but the first, which compiles."""
        return [call[0] for call in self._calls[1:]]

    def notes(self) -> tuple[str, ...]:
        """Say where the time of a call went, by medians; the first call, which compiles, is left out."""
        calls = self._calls[1:]
        if not calls:
            return ()
        whole, runs, tasks = (statistics.median(call[place] for call in calls) for place in range(3))
        return (
            f"of a call's {duration(whole)}: {duration(whole - runs)} before and after the run, in the run "
            f"{duration(runs)}, {duration(tasks)} in {calls[-1][3]} tasks on {THREADS} threads",
        )


def public(
    run: Callable[[Any], Any],
    prepare: Callable[[int], Any] = lambda number: number,
    value: Callable[[Any], Any] = lambda result: result,
    name: str = OURS,
    judged: bool = True,
) -> tuple[Contender, PublicCall]:
    """Return a public call as a contender whose results are dropped between rounds, and the call itself."""
    call = PublicCall(run)

    def drained(number: int) -> Any:
        given = prepare(number)
        mn.memo.clear()  # and with it all that no handle stands for
        return given

    return Contender(name, call, drained, value, judged), call
