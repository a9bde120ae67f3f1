"""Runs a plan on local worker processes: a small one with a single message per worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed import Worker

from matnb.backend.engines.context import EngineContext
from matnb.backend.engines.driver_loops import PlanEngine
from matnb.backend.engines.engine_dask import DaskEngine, cancelled
from matnb.backend.engines.results import Outcome, RunCancelled
from matnb.backend.kept import BlockRef
from matnb.backend.tasks import worker
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph, is_small
from matnb.blocks.formats import Block
from matnb.expr.retention import is_small as is_small_value
from matnb.ops.creation import inline_blocks
from matnb.program.memory import depth_first
from matnb.program.plan import Plan, Slot, Task


@dataclass(frozen=True)
class _Split:
    """The part of a plan that each worker runs alone, and how this process combines their results.

    Attributes
    ----------
    tasks
        By worker, in order.
    given
        What these read, by worker.
    results
        What they leave for this process, by worker.
    rest
        The other tasks, which read nothing but what those made.
    """

    tasks: Mapping[int, tuple[Task, ...]]
    given: Mapping[int, tuple[Slot, ...]]
    results: Mapping[int, tuple[Slot, ...]]
    rest: tuple[Task, ...]


class ProcessEngine(PlanEngine):
    """Runs plans on worker processes that were started here, and programs batch by batch.

    A small run that leaves no array, as for a number that is asked for, has each worker do its part by one
    message on a connection of Dask's to it; what is made of several workers' parts is made here. All others
    are tasks of Dask's, and so is the first run of each plan, so that its loops are compiled.

    Parameters
    ----------
    context
        Shared with other engines.
    wants_tasks
        Tells whether what is asked for now is to be tasks of Dask's.
    """

    def __init__(self, context: EngineContext, wants_tasks: Callable[[], bool] = bool) -> None:
        super().__init__(context)
        self._dask, self._wants_tasks = DaskEngine(context), wants_tasks

    def run_plan(
        self,
        plan: Plan,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
    ) -> Outcome:
        """Run a plan; of small values only the fetched ones are kept."""
        leaves_nothing = not (hold or self._wants_tasks()) and _leaves_nothing(plan, fetch)
        split = plan.found.get("split") if leaves_nothing else None
        try:
            found = None
            if isinstance(split, _Split) and is_small(plan, split.tasks):
                found = self._asked(plan, split, fetch, given)
            if found is not None:
                return found
            found = self._dask.run_plan(plan, given, fetch, hold)
        except BaseException:
            del given
            raise
        if leaves_nothing and "split" not in plan.found:
            plan.found["split"] = split_between(plan)
        return found

    def _asked(
        self, plan: Plan, split: _Split, fetch: Sequence[Slot], given: Mapping[Slot, BlockRef]
    ) -> Outcome | None:
        # None where a worker does not have what it is to read.
        begin = time.perf_counter()
        run_id = self._context.begin(split.tasks)
        inline = inline_blocks(plan)
        read = (slot for own in split.given.values() for slot in own)
        named = {slot: inline[slot] if slot in inline else given[slot].key for slot in read}
        del given  # an error's traceback keeps this frame
        parameters = {
            owner: (
                run_id,
                owner,
                tasks,
                split.results[owner],
                {key: named[key] for key in split.given[owner]},
            )
            for owner, tasks in split.tasks.items()
        }
        self._context.began(run_id)
        try:
            answers = self._answers.ask(do_part, parameters)
            if any(answer is None for answer in answers):
                return None
            values: dict[Slot, Any] = {slot: block for _, made in answers for slot, block in made.items()}
            told: list[worker.Report] = [report for report, _ in answers]
            failed = next((report.failed for report in told if report.failed is not None), None)
            if failed is None and split.rest:
                sharing = SharedTasks(run_id, TaskGraph(split.rest), values, {*fetch})
                with self._cluster.stopping.holding_back():
                    sharing.work_alone()
                values, failed = sharing.made(), sharing.failed
                told += [worker.report(run_id, owner, ()) for owner in {task.owner for task in split.rest}]
        except KeyboardInterrupt:
            with self._cluster.stopping.undisturbed():
                raise self._ended(plan, run_id) from None
        except BaseException:
            worker.forget(run_id)
            raise
        timed = tuple(one for report in told for one in report.timed)
        self._context.ended(timed)
        if failed is not None:
            raise worker.TaskFailed(failed)
        fetched = {key: values[key] for key in fetch}
        return Outcome(fetched=fetched, timed=timed, seconds=time.perf_counter() - begin)

    def _ended(self, plan: Plan, run_id: worker.RunId) -> RunCancelled:
        worker.forget(run_id)
        self._answers.tell(worker.forget, run_id)  # what runs goes on to the next of its tasks
        return cancelled(plan, {}, 0)


def _leaves_nothing(plan: Plan, fetch: Sequence[Slot]) -> bool:
    # Whether all that a plan makes is small and comes home, where it is remembered.
    return {key for array in plan.outputs.values() for key in array.keys} <= {*fetch} and all(
        is_small_value(node, node.size * node.dtype.itemsize) for node in plan.outputs
    )


def split_between(plan: Plan) -> _Split | None:
    """Return how a plan is made by workers that hear nothing of each other, and by this process; or None.

    That is where all tasks that read stored arrays, or what such tasks made, find it on their own worker,
    up to those that read nothing else than what tasks made.
    """
    graph = TaskGraph(plan.tasks)
    if plan.shipments or not plan.tasks or not graph.is_simple:
        return None
    places = {key: owner for one in plan.reused.values() for key, owner in zip(one.keys, one.layout.owners)}  # noqa: B905  as many
    mine: dict[Slot, int] = {}  # the worker that makes a value by itself
    rest: list[Task] = []
    for task in depth_first(plan.tasks):
        found = {mine.get(key, places.get(key, task.owner)) for key in task.inputs}
        if found <= {task.owner} and not any(one in graph.owners and one not in mine for one in task.inputs):
            mine[task.key] = task.owner
        elif all(key in graph.owners for key in task.inputs):
            rest.append(task)
        else:
            return None
    read = {key for task in rest for key in task.inputs}
    wanted = read | {key for array in plan.outputs.values() for key in array.keys}
    tasks: dict[int, list[Task]] = {}
    for task in graph.tasks:
        if task.key in mine:
            tasks.setdefault(task.owner, []).append(task)
    return _Split(
        {owner: tuple(own) for owner, own in tasks.items()},
        {
            owner: tuple(dict.fromkeys(key for task in own for key in task.inputs if key not in graph.owners))
            for owner, own in tasks.items()
        },
        {owner: tuple(task.key for task in own if task.key in wanted) for owner, own in tasks.items()},
        tuple(rest),
    )


async def do_part(
    run_id: worker.RunId,
    owner: int,
    tasks: Sequence[Task],
    results: Sequence[Slot],
    given: Mapping[Slot, Block | str],
    dask_worker: Worker,
) -> tuple[worker.Report, dict[Slot, Any]] | None:
    """Do a worker's part of a run on one of its threads, and return its report and what it made.

    Parameters
    ----------
    tasks
        In order.
    results
        What is returned of what they make.
    given
        Numbers and small blocks, and Dask's names of blocks that the worker has; None is returned where it
        does not.
    """
    values: dict[Slot, Any] = {}
    for slot, one in given.items():
        if isinstance(one, str):
            if one not in dask_worker.data:
                return None
            one = dask_worker.data[one]
        values[slot] = one
    work = partial(_done, run_id, owner, tasks, results, values)
    return await asyncio.get_running_loop().run_in_executor(dask_worker.executors["default"], work)


def _done(
    run_id: worker.RunId, owner: int, tasks: Sequence[Task], results: Sequence[Slot], values: dict[Slot, Any]
) -> tuple[worker.Report, dict[Slot, Any]]:
    sharing = SharedTasks(run_id, TaskGraph(tasks), values, {*results})
    sharing.work_alone()
    made = {} if sharing.failed else sharing.made()
    return worker.report(run_id, owner, list(made), *made.values(), failed=sharing.failed), made
