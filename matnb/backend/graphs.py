"""A plan as a Dask graph: a task for each of the plan's, or one for all that a worker has in a small run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from dask._task_spec import Task as GraphTask
from dask._task_spec import TaskRef

from matnb.backend import bundle, worker
from matnb.program.memory import depth_first
from matnb.program.plan import Plan, Task

_BUNDLED_BYTES = 10**9  # read and made, up to which a run's tasks are put together
_HELPED_BYTES = 64 * 1024  # from here on several threads do them


@dataclass(frozen=True)
class Graph:
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
class Run:
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
    run_id: str
    staying: Collection[str]
    fetched: Collection[str]
    is_here: bool
    threads: Mapping[int, int]

    @property
    def owners(self) -> list[int]:
        """The workers that have tasks."""
        return sorted({task.owner for task in self.plan.tasks})


def graph_of(run: Run, names: Mapping[str, str], name_of: Callable[[str], str]) -> Graph:
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


def _by_tasks(run: Run, named: Mapping[str, str], reference: Callable[[str], TaskRef]) -> Graph:
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
    return Graph(tasks, tuple(reports))


def _last_tasks(run: Run) -> dict[int, list[str]]:
    # A worker's report follows its last tasks, which no other of its tasks reads, and what stays on it.
    tasks = run.plan.tasks
    owners = {task.key: task.owner for task in tasks}
    read_here = {key for task in tasks for key in task.inputs if owners.get(key) == task.owner}
    last: dict[int, list[str]] = {owner: [] for owner in run.owners}
    for task in tasks:
        if task.key not in read_here or task.key in run.staying:
            last[task.owner].append(task.key)
    return last


def _bundled(run: Run, named: Mapping[str, str], reference: Callable[[str], TaskRef]) -> Graph:
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
                name, bundle.perform, run.run_id, owner, _Given(its), _Given(left), _Given(run.fetched),
                _Given(given), alone, num_helpers, *map(reference, given),
            )
        }  # fmt: skip
        if not alone:
            for key in left:
                own[named[key]] = GraphTask(named[key], bundle.take, key, TaskRef(name))
        if not run.is_here:
            reports.append(f"{run.run_id}-report-{owner}")
            own[reports[-1]] = GraphTask(reports[-1], bundle.report_of, TaskRef(name))
        elif not left:
            reports.append(name)
        tasks[owner] = own
    return Graph(tasks, tuple(reports))


class _Given(tuple[Any, ...]):
    """Parameters that Dask hands on as they are, without looking inside for tasks."""

    __slots__ = ()
