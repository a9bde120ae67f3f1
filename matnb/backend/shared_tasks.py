"""Tasks of one run that several threads do together, in the process that has what they read."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from heapq import heapify, heappop, heappush
from typing import Any

from matnb.backend import worker
from matnb.program.plan import Plan, Slot, Task

_HELPED_BYTES = 64 * 1024  # read or made, from here on several threads do them
_CANCELLED = worker.Failed(None, RuntimeError("the run was cancelled"), "")


def num_threads(plan: Plan, owner: int, num_tasks: int, threads: int) -> int:
    """Return how many of a worker's threads do its tasks of a plan: one in a small run.

    Parameters
    ----------
    plan, owner, num_tasks
        What is run, and how much of it that worker has.
    threads
        Of the worker.
    """
    read = max((sum(array.block_bytes) for array in plan.reused.values()), default=0)
    is_small = bool(plan.peaks) and max(read, plan.peaks.get(owner, 0)) < _HELPED_BYTES
    return 1 if is_small else min(threads, num_tasks)


class SharedTasks:
    """Tasks that the threads of one worker or several do; one that comes late finds less to do, or nothing.

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
    ended
        Done once all tasks are, or no more are begun.
    """

    def __init__(
        self, run_id: worker.RunId, tasks: Sequence[Task], values: dict[Slot, Any], staying: Collection[Slot]
    ) -> None:
        self._run_id, self._tasks, self._values, self._staying = run_id, tasks, values, staying
        self._changed = threading.Condition()
        self._num_left = len(tasks)
        self.failed: worker.Failed | None = None
        self.ended: Future[None] = Future()
        self._broken: BaseException | None = None
        self._readers: dict[Slot, list[int]] = {}
        self._missing: list[int] = []
        for number, task in enumerate(tasks):
            for key in task.inputs:
                self._readers.setdefault(key, []).append(number)
            self._missing.append(sum(key not in values for key in task.inputs))
        self._num_readers = {key: len(readers) for key, readers in self._readers.items()}
        self._ready: dict[int, list[int]] = {task.owner: [] for task in tasks}
        for number, missing in enumerate(self._missing):
            if not missing:
                self._ready[tasks[number].owner].append(number)
        for numbers in self._ready.values():
            heapify(numbers)
        for value in values.values():
            if isinstance(value, worker.Failed):
                self.failed = value

    def work(self, owner: int) -> None:
        """Do tasks of a worker until all are done, or one failed, or the run is to end."""
        while (number := self._next(owner)) is not None:
            task = self._tasks[number]
            with self._changed:
                inputs = [self._values[key] for key in task.inputs]
            try:
                value = worker.run(task.key, task.kind, self._run_id, task.owner, task.steps, *inputs)
            except BaseException as error:  # told by the thread that is waited for
                with self._changed:
                    self._broken = error
                    self._end()
                return
            del inputs
            self._done(task, value)

    @property
    def has_tasks(self) -> bool:
        """Whether there is anything to do, or was."""
        return bool(self._tasks)

    @property
    def num_done(self) -> int:
        """Tasks that are done."""
        return len(self._tasks) - self._num_left

    def made(self) -> dict[Slot, Any]:
        """Return what stays of the values, as far as it is made; once ``ended`` is done, that is all."""
        with self._changed:
            if self._broken is not None:
                raise self._broken
            return {key: self._values[key] for key in self._staying if key in self._values}

    def stop(self) -> None:
        """Begin no more tasks, and have no thread wait for one."""
        with self._changed:
            self.failed = self.failed or _CANCELLED
            self._end()

    def _next(self, owner: int) -> int | None:
        with self._changed:
            while True:
                if self._num_left == 0 or self.failed is not None or self._broken is not None:
                    self._end()
                    return None
                if worker.is_forgotten(self._run_id):
                    self.failed = _CANCELLED
                    self._end()
                    return None
                if self._ready[owner]:
                    return heappop(self._ready[owner])
                self._changed.wait()

    def _done(self, task: Task, value: Any) -> None:
        with self._changed:
            if isinstance(value, worker.Failed):
                self.failed = self.failed or value
            self._values[task.key] = value
            for number in self._readers.get(task.key, ()):
                self._missing[number] -= 1
                if not self._missing[number]:
                    heappush(self._ready[self._tasks[number].owner], number)
            for key in task.inputs:
                self._num_readers[key] -= 1
                if not self._num_readers[key] and key not in self._staying:
                    del self._values[key]
            self._num_left -= 1
            self._changed.notify_all()

    def _end(self) -> None:
        self._changed.notify_all()
        if not self.ended.done():
            self.ended.set_result(None)
