"""A plan as a Dask graph: one Dask task per plan task, or one per worker for small plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from dask._task_spec import Task as GraphTask
from dask._task_spec import TaskRef
from distributed import get_worker

from matnb.backend.kept import BlockRef, LocalBlock, LocalRef, resolved
from matnb.backend.tasks import worker
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph, num_threads
from matnb.blocks.formats import Block
from matnb.ops.creation import inline_blocks
from matnb.program.memory import depth_first
from matnb.program.plan import Plan, Slot, Task

_BUNDLED_BYTES = 10**9  # read and made, up to which a run's tasks are put together


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
        Slots of the values that are left on the workers.
    fetched
        Those among them that are wanted in this process.
    threads
        Of each worker.
    """

    plan: Plan
    run_id: worker.RunId
    staying: Collection[Slot]
    fetched: Collection[Slot]
    threads: Mapping[int, int]

    @property
    def owners(self) -> list[int]:
        """The workers that have tasks."""
        return sorted({task.owner for task in self.plan.tasks})


Reference: TypeAlias = TaskRef | LocalRef | Block  # what a task's parameters have for a value


def reference_to(kept: BlockRef) -> TaskRef | LocalRef:
    """Return what stands in a task's parameters for a value that is there."""
    return LocalRef(kept.key) if isinstance(kept, LocalBlock) else TaskRef(kept.key)


def graph_of(run: PlanRun, there: Mapping[Slot, BlockRef]) -> DaskGraph:
    """Return the graph of a run over blocks that are resident or were sent before."""
    plan = run.plan
    inline = inline_blocks(plan)
    named = {task.key: f"{run.run_id}-{task.key}" for task in plan.tasks}

    def reference(slot: Slot) -> Reference:
        if slot in named:
            return TaskRef(named[slot])
        return inline[slot] if slot in inline else reference_to(there[slot])

    return (_bundled if is_bundled(plan) else _by_tasks)(run, named, reference)


def is_bundled(plan: Plan) -> bool:
    """Tell whether a run is small, and none of its workers waits for another: decided by counts alone."""
    size = plan.projected_bytes + sum(sum(array.block_bytes) for array in plan.reused.values())
    if size > _BUNDLED_BYTES:
        return False
    owners = {task.key: task.owner for task in plan.tasks}
    return all(owners.get(key, task.owner) == task.owner for task in plan.tasks for key in task.inputs)


def _by_tasks(run: PlanRun, named: Mapping[Slot, str], reference: Callable[[Slot], Reference]) -> DaskGraph:
    tasks: dict[int, dict[str, GraphTask]] = {}
    for task in run.plan.tasks:
        name = named[task.key]
        tasks.setdefault(task.owner, {})[name] = GraphTask(
            name, worker.run, task.key, task.kind.name, run.run_id, task.owner, Verbatim(task.steps),
            *map(reference, task.inputs),
        )  # fmt: skip
    reports = []
    for owner, keys in _last_tasks(run).items():
        name = f"{run.run_id}-report-{owner}"
        reports.append(name)
        tasks[owner][name] = GraphTask(
            name, worker.report, run.run_id, owner, Verbatim(keys), *map(reference, keys),
            fetched=Verbatim(run.fetched),
        )  # fmt: skip
    return DaskGraph(tasks, tuple(reports))


def _last_tasks(run: PlanRun) -> dict[int, list[Slot]]:
    # A worker's report follows its last tasks, which no other of its tasks reads, and what stays on it.
    tasks = run.plan.tasks
    owners = {task.key: task.owner for task in tasks}
    read_here = {key for task in tasks for key in task.inputs if owners.get(key) == task.owner}
    last: dict[int, list[Slot]] = {owner: [] for owner in run.owners}
    for task in tasks:
        if task.key not in read_here or task.key in run.staying:
            last[task.owner].append(task.key)
    return last


def _bundled(run: PlanRun, named: Mapping[Slot, str], reference: Callable[[Slot], Reference]) -> DaskGraph:
    mine: dict[int, list[Task]] = {}
    for task in depth_first(run.plan.tasks):
        mine.setdefault(task.owner, []).append(task)
    tasks: dict[int, dict[str, GraphTask]] = {}
    reports = []
    for owner, its in mine.items():
        made = {task.key for task in its}
        left = [task.key for task in its if task.key in run.staying]
        given = list(dict.fromkeys(key for task in its for key in task.inputs if key not in made))
        name = f"{run.run_id}-bundle-{owner}"
        num_helpers = num_threads(run.plan, owner, len(its), run.threads[owner]) - 1
        own = {
            name: GraphTask(
                name, perform, run.run_id, owner, Verbatim(its), Verbatim(left), Verbatim(run.fetched),
                Verbatim(given), num_helpers, *map(reference, given),
            )
        }  # fmt: skip
        for key in left:
            own[named[key]] = GraphTask(named[key], take, key, TaskRef(name))
        reports.append(f"{run.run_id}-report-{owner}")
        own[reports[-1]] = GraphTask(reports[-1], report_of, TaskRef(name))
        tasks[owner] = own
    return DaskGraph(tasks, tuple(reports))


class Verbatim(tuple[Any, ...]):
    """Parameters that Dask hands on as they are, without looking inside for tasks."""

    __slots__ = ()


# All tasks that a worker has in a small run as one task of Dask's, done by the worker's threads together.


@dataclass(frozen=True, eq=False)
class Bundle:
    """The values of several tasks, until each is taken out by a task of its own."""

    values: Mapping[Slot, Any]
    report: worker.Report


def perform(
    run_id: worker.RunId,
    owner: int,
    tasks: Sequence[Task],
    results: Sequence[Slot],
    fetched: Collection[Slot],
    given: Sequence[Slot],
    num_helpers: int,
    *inputs: Any,
) -> Bundle:
    """Run tasks, and return what they leave.

    Parameters
    ----------
    tasks
        In the order in which they are begun where they can.
    results
        Slots of values that are left.
    fetched
        Those whose values the report carries, if they are small.
    given, inputs
        Values by slot.
    num_helpers
        Threads of the worker that may help.
    """
    values = dict(zip(given, map(resolved, inputs), strict=True))
    sharing = SharedTasks(run_id, TaskGraph(tasks), values, {*results})
    for _ in range(num_helpers):
        get_worker().executors["default"].submit(sharing.work, owner)
    sharing.work(owner)
    made = sharing.made()
    left = {key: made.get(key, sharing.failed) for key in results}
    told = worker.report(run_id, owner, list(left), *left.values(), fetched=fetched, failed=sharing.failed)
    return Bundle({} if sharing.failed else left, told)


def take(key: Slot, bundle: Bundle) -> Any:
    """Return one of the values of a bundle."""
    return bundle.values.get(key, bundle.report.failed)


def report_of(bundle: Bundle) -> worker.Report:
    """Return the report of a bundle."""
    return bundle.report
