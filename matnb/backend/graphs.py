"""A plan as a Dask graph: a task for each of the plan's, or one for all that a worker has in a small run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from dask._task_spec import Task as GraphTask
from dask._task_spec import TaskRef
from distributed import get_worker

from matnb.backend import worker
from matnb.program.memory import depth_first
from matnb.program.plan import Plan, Task

_BUNDLED_BYTES = 10**9  # read and made, up to which a run's tasks are put together
_HELPED_BYTES = 64 * 1024  # from here on several threads do them


@dataclass(frozen=True)
class DaskGraph:
    """What goes to Dask.

    Attributes
    ----------
    tasks
        By worker and name.
    reports
        Names of further tasks that are asked for: those that report.
    """

    tasks: Mapping[int, Mapping[str, GraphTask]]
    reports: tuple[str, ...]


@dataclass(frozen=True)
class PlanRun:
    """A plan that is run now.

    Attributes
    ----------
    staying
        Keys of the values that are left on the workers.
    fetched
        Those among them that are wanted in this process.
    is_here
        Whether the workers are threads of this process, which tell what they report by a way of their own.
    threads
        Of each worker.
    """

    plan: Plan
    run_id: worker.RunId
    staying: Collection[str]
    fetched: Collection[str]
    is_here: bool
    threads: Mapping[int, int]

    @property
    def owners(self) -> list[int]:
        """The workers that have tasks."""
        return sorted({task.owner for task in self.plan.tasks})


def graph_of(run: PlanRun, names: Mapping[str, str], name_of: Callable[[str], str]) -> DaskGraph:
    """Return the graph of a run.

    Parameters
    ----------
    names
        Of what was sent before the run, by the plan's key.
    name_of
        Gives those of what was there already.
    """
    plan = run.plan
    named = {**names, **{task.key: f"{run.run_id}-{task.key}" for task in plan.tasks}}

    def reference(key: str) -> TaskRef:
        return TaskRef(named[key] if key in named else name_of(key))

    return (_bundled if is_bundled(plan) else _by_tasks)(run, named, reference)


def is_bundled(plan: Plan) -> bool:
    """Tell whether a run is small, and none of its workers waits for another: decided by counts alone."""
    size = plan.projected_bytes + sum(sum(array.block_bytes) for array in plan.reused.values())
    if size > _BUNDLED_BYTES:
        return False
    owners = {task.key: task.owner for task in plan.tasks}
    return all(owners.get(key, task.owner) == task.owner for task in plan.tasks for key in task.inputs)


def _by_tasks(run: PlanRun, named: Mapping[str, str], reference: Callable[[str], TaskRef]) -> DaskGraph:
    tasks: dict[int, dict[str, GraphTask]] = {}
    for task in run.plan.tasks:
        name = named[task.key]
        tasks.setdefault(task.owner, {})[name] = GraphTask(
            name, worker.run, task.key, task.kind, run.run_id, task.owner, _Given(task.steps),
            *map(reference, task.inputs),
        )  # fmt: skip
    reports = []
    for owner, keys in _last_tasks(run).items():
        name = f"{run.run_id}-report-{owner}"
        reports.append(name)
        tasks[owner][name] = GraphTask(
            name, worker.report, run.run_id, owner, _Given(keys), *map(reference, keys),
            fetched=_Given(run.fetched),
        )  # fmt: skip
    return DaskGraph(tasks, tuple(reports))


def _last_tasks(run: PlanRun) -> dict[int, list[str]]:
    # A worker's report follows its last tasks, which no other of its tasks reads, and what stays on it.
    tasks = run.plan.tasks
    owners = {task.key: task.owner for task in tasks}
    read_here = {key for task in tasks for key in task.inputs if owners.get(key) == task.owner}
    last: dict[int, list[str]] = {owner: [] for owner in run.owners}
    for task in tasks:
        if task.key not in read_here or task.key in run.staying:
            last[task.owner].append(task.key)
    return last


def _bundled(run: PlanRun, named: Mapping[str, str], reference: Callable[[str], TaskRef]) -> DaskGraph:
    mine: dict[int, list[Task]] = {}
    for task in depth_first(run.plan.tasks):
        mine.setdefault(task.owner, []).append(task)
    tasks: dict[int, dict[str, GraphTask]] = {}
    reports = []
    for owner, its in mine.items():
        made = {task.key for task in its}
        left = [task.key for task in its if task.key in run.staying]
        given = list(dict.fromkeys(key for task in its for key in task.inputs if key not in made))
        alone = run.is_here and len(left) == 1
        name = named[left[0]] if alone else f"{run.run_id}-bundle-{owner}"
        large = run.plan.peaks.get(owner, 0) >= _HELPED_BYTES or any(
            sum(array.block_bytes) >= _HELPED_BYTES for array in run.plan.reused.values()
        )
        num_helpers = min(run.threads[owner], len(its)) - 1 if large else 0
        own = {
            name: GraphTask(
                name, perform, run.run_id, owner, _Given(its), _Given(left), _Given(run.fetched),
                _Given(given), alone, num_helpers, *map(reference, given),
            )
        }  # fmt: skip
        if not alone:
            for key in left:
                own[named[key]] = GraphTask(named[key], take, key, TaskRef(name))
        if not run.is_here:
            reports.append(f"{run.run_id}-report-{owner}")
            own[reports[-1]] = GraphTask(reports[-1], report_of, TaskRef(name))
        elif not left:
            reports.append(name)
        tasks[owner] = own
    return DaskGraph(tasks, tuple(reports))


class _Given(tuple[Any, ...]):
    """Parameters that Dask hands on as they are, without looking inside for tasks."""

    __slots__ = ()


# All tasks that a worker has in a small run as one task of Dask's, done by the worker's threads together.


@dataclass(frozen=True, eq=False)
class Bundle:
    """The values of several tasks, until each is taken out by a task of its own."""

    values: Mapping[str, Any]
    report: worker.Report


def perform(
    run_id: worker.RunId,
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
        self, run_id: worker.RunId, tasks: Sequence[Task], values: dict[str, Any], staying: Collection[str]
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
