"""All tasks that a worker has in a small run as one task of Dask's, done by the worker's threads together."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from distributed import get_worker

from matnb.backend import worker
from matnb.program.plan import Task


@dataclass(frozen=True, eq=False)
class Bundle:
    """The values of several tasks, until each is taken out by a task of its own."""

    values: Mapping[str, Any]
    report: worker.Report


def perform(
    run_id: str,
    owner: int,
    tasks: Sequence[Task],
    results: Sequence[str],
    fetched: Collection[str],
    given: Sequence[str],
    alone: bool,
    num_helpers: int,
    *inputs: Any,
) -> Any:
    """Run tasks, and return the value of the only result, or a Bundle.

    Parameters
    ----------
    tasks
        In the order in which they are begun where they can.
    results
        Keys of values that are left.
    fetched
        Those whose values the report carries, if they are small.
    given, inputs
        Values by key.
    alone
        Whether the only result is returned as it is, the report having its own way home.
    num_helpers
        Threads of the worker that may help.
    """
    values = dict(zip(given, inputs, strict=True))
    sharing = _Sharing(run_id, tasks, values, {*results})
    for _ in range(num_helpers):
        get_worker().executors["default"].submit(sharing.work)
    sharing.work()
    made = sharing.finished()
    left = {key: made.get(key, sharing.failed) for key in results}
    told = worker.report(run_id, owner, list(left), *left.values(), fetched=fetched, failed=sharing.failed)
    if alone and len(results) == 1:
        return left[results[0]]
    return Bundle({} if sharing.failed else left, told)


def take(key: str, bundle: Bundle) -> Any:
    """Return one of the values of a bundle."""
    return bundle.values.get(key, bundle.report.failed)


def report_of(bundle: Bundle) -> worker.Report:
    """Return the report of a bundle."""
    return bundle.report


class _Sharing:
    """Tasks that several threads do together; a thread that comes late finds less to do, or nothing.

    Parameters
    ----------
    tasks
        The earlier ones first where several are ready.
    values
        Those given; filled with what is made, and let go with the last reader unless it is among ``staying``.

    Attributes
    ----------
    failed
        What the first task left that failed; then no more are begun.
    """

    def __init__(
        self, run_id: str, tasks: Sequence[Task], values: dict[str, Any], staying: Collection[str]
    ) -> None:
        self._run_id, self._tasks, self._values, self._staying = run_id, tasks, values, staying
        self._changed = threading.Condition()
        self._num_left = len(tasks)
        self.failed: worker.Failed | None = None
        self._broken: BaseException | None = None
        self._readers: dict[str, list[int]] = {}
        self._missing: list[int] = []
        for number, task in enumerate(tasks):
            for key in task.inputs:
                self._readers.setdefault(key, []).append(number)
            self._missing.append(sum(key not in values for key in task.inputs))
        self._num_readers = {key: len(readers) for key, readers in self._readers.items()}
        self._ready = [number for number, missing in enumerate(self._missing) if not missing]
        heapify(self._ready)
        for value in values.values():
            if isinstance(value, worker.Failed):
                self.failed = value

    def work(self) -> None:
        """Do tasks until all are done, or one failed, or the run is to end."""
        while (number := self._next()) is not None:
            task = self._tasks[number]
            with self._changed:
                inputs = [self._values[key] for key in task.inputs]
            try:
                value = worker.run(task.key, task.kind, self._run_id, task.owner, task.steps, *inputs)
            except BaseException as error:  # told by the thread that is waited for
                with self._changed:
                    self._broken = error
                    self._changed.notify_all()
                return
            del inputs
            self._done(task, value)

    def finished(self) -> dict[str, Any]:
        """Return what stays of the values, once no thread is at work."""
        with self._changed:
            if self._broken is not None:
                raise self._broken
            return {key: self._values[key] for key in self._staying if key in self._values}

    def _next(self) -> int | None:
        with self._changed:
            while True:
                if self._num_left == 0 or self.failed is not None or self._broken is not None:
                    return None
                if worker.is_forgotten(self._run_id):
                    self.failed = worker.Failed("", RuntimeError("the run was cancelled"), "")
                    self._changed.notify_all()
                    return None
                if self._ready:
                    return heappop(self._ready)
                self._changed.wait()

    def _done(self, task: Task, value: Any) -> None:
        with self._changed:
            if isinstance(value, worker.Failed):
                self.failed = self.failed or value
            self._values[task.key] = value
            for number in self._readers.get(task.key, ()):
                self._missing[number] -= 1
                if not self._missing[number]:
                    heappush(self._ready, number)
            for key in task.inputs:
                self._num_readers[key] -= 1
                if not self._num_readers[key] and key not in self._staying:
                    del self._values[key]
            self._num_left -= 1
            self._changed.notify_all()
