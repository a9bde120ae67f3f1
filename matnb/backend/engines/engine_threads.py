"""Runs a plan on worker threads of this process, with one hand-over and no Dask tasks."""

from __future__ import annotations

import concurrent.futures
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matnb.backend.engines.context import EngineContext, owners_of, staying
from matnb.backend.engines.driver_loops import PlanEngine
from matnb.backend.engines.engine_dask import DaskEngine, cancelled, of_whole_arrays
from matnb.backend.engines.futures import POLL_SECONDS
from matnb.backend.engines.results import Outcome, RunCancelled
from matnb.backend.kept import BlockRef, LocalBlock
from matnb.backend.tasks import worker
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph, is_small, num_threads
from matnb.events import TaskTimed
from matnb.ops.creation import inline_blocks
from matnb.program.plan import Plan, Slot


class ThreadEngine(PlanEngine):
    """Runs plans on a cluster in this process, and programs batch by batch.

    The workers' threads do the tasks, so that an interrupt strikes no kernel. Small ones that have run
    before, so that nothing is compiled, are done by the thread that asks: waking another takes longer, and
    an interrupt waits for them. What stays is held by reference. Dask starts and ends the workers, and knows
    of no run.

    Parameters
    ----------
    context
        Shared with other engines; what is sent goes by reference.
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
        """Run a plan."""
        if self._wants_tasks():
            return self._dask.run_plan(plan, given, fetch, hold)
        begin = time.perf_counter()
        owners = owners_of(plan)
        run_id = self._context.begin(owners)
        kept_there = [*staying(plan), *hold]
        wanted = dict.fromkeys((*kept_there, *fetch))
        sent: dict[Slot, BlockRef] = {}
        counts: dict[Slot, tuple[int, int]] = {}
        self.blocks.send(plan.shipments, sent, counts)
        graph = TaskGraph.borrowed(plan)
        values = self._read(plan, graph, {**given, **sent})
        sharing = SharedTasks(run_id, graph, values, wanted)
        self._context.began(run_id)
        try:
            with self._context.shared_blas(plan):
                self._do(sharing, graph, plan, owners)
            made = sharing.made()
        except KeyboardInterrupt:
            with self._cluster.stopping.undisturbed():
                sharing.stop()
                worker.forget(run_id)
                cancelled_run = self._stopped(plan, sharing, sent, run_id)
            del given, sharing, values, sent  # an error's traceback keeps this frame
            raise cancelled_run from None
        except BaseException:
            sharing.stop()
            worker.forget(run_id)
            raise
        timed, told = self._told(graph, run_id, made)
        if (failed := sharing.failed) is not None:
            del given, sharing, values, sent, made
            raise worker.TaskFailed(failed)
        graph.give_back(plan)
        counts.update(told)
        kept: dict[Slot, Any] = {**sent, **self._named(made, run_id)}
        self._context.ended(timed)
        return Outcome(
            {key: kept[key] for key in kept_there},
            counts,
            {key: kept[key].block for key in fetch},
            timed,
            time.perf_counter() - begin,
        )

    # one run

    def _read(self, plan: Plan, graph: TaskGraph, given: Mapping[Slot, BlockRef]) -> dict[Slot, Any]:
        # The values that tasks read and do not make, wherever they are.
        kept = {key: given[key] for key in graph.given if key not in plan.inline}
        fetched = self._answers.bring(list(kept.values()), self._cluster.alive())
        return {**inline_blocks(plan), **dict(zip(kept, fetched, strict=True))}

    def _do(self, sharing: SharedTasks, graph: TaskGraph, plan: Plan, owners: set[int]) -> None:
        if graph.has_run and graph.is_simple and is_small(plan, owners):
            with self._cluster.stopping.holding_back():
                sharing.work_alone()
        else:
            self._begin(sharing, plan)
            self._wait(sharing, owners)

    def _begin(self, sharing: SharedTasks, plan: Plan) -> None:
        num_tasks = Counter(task.owner for task in plan.tasks)
        if num_tasks and is_small(plan, num_tasks):
            self._cluster.submit(next(iter(num_tasks)), sharing.work_alone)
            return
        for owner, count in num_tasks.items():
            for _ in range(num_threads(plan, owner, count, self._cluster.workers[owner].threads)):
                self._cluster.submit(owner, sharing.work, owner)

    def _wait(self, sharing: SharedTasks, owners: set[int]) -> None:
        while sharing.has_tasks:
            try:
                return sharing.ended.result(timeout=POLL_SECONDS)
            except concurrent.futures.TimeoutError:
                self._answers.check_alive(owners)
        return None

    def _told(
        self, graph: TaskGraph, run_id: worker.RunId, made: Mapping[Slot, Any]
    ) -> tuple[tuple[TaskTimed, ...], dict[Slot, tuple[int, int]]]:
        # What the tasks took, and entries and bytes of what stays.
        timed: list[TaskTimed] = []
        owners = graph.owners
        counts: dict[Slot, tuple[int, int]] = {}
        for owner in sorted(set(owners.values())):
            mine = {key: value for key, value in made.items() if owners.get(key) == owner}
            report = worker.report(run_id, owner, list(mine), *mine.values())
            timed += report.timed
            counts.update(report.counts)
        return tuple(timed), counts

    @staticmethod
    def _named(made: Mapping[Slot, Any], run_id: worker.RunId) -> dict[Slot, BlockRef]:
        return {key: LocalBlock(f"{run_id}-{key}", value) for key, value in made.items()}

    def _stopped(
        self, plan: Plan, sharing: SharedTasks, sent: Mapping[Slot, BlockRef], run_id: worker.RunId
    ) -> RunCancelled:
        # Whole arrays that were finished stay.
        made: dict[Slot, BlockRef] = {**sent, **self._named(sharing.made(), run_id)}
        # Of others there may be what is no block yet, such as rows of a file as they were read.
        kept = of_whole_arrays(plan, made)
        blocks = {key: one.block for key, one in kept.items() if isinstance(one, LocalBlock)}
        counts = {key: (block.nnz, block.nbytes) for key, block in blocks.items()}
        return cancelled(plan, kept, sharing.num_done, counts)
