"""Runs a plan on worker threads of this process, with one hand-over and no Dask tasks."""

from __future__ import annotations

import concurrent.futures
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from matnb.backend.engines.engine_dask import (
    DaskEngine,
    Outcome,
    RunCancelled,
    cancelled,
    with_counts,
)
from matnb.backend.engines.futures import POLL_SECONDS
from matnb.backend.kept import Kept, LocalBlock
from matnb.backend.tasks import worker
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph, is_small, num_threads
from matnb.blocks.formats import Block, freeze
from matnb.events import TaskTimed
from matnb.ops.creation import inline_blocks
from matnb.program.plan import Plan, Slot


class ThreadEngine(DaskEngine):
    """Runs plans on a cluster in this process.

    The workers' threads do the tasks, so that an interrupt strikes no kernel. Small ones that have run
    before, so that nothing is compiled, are done by the thread that asks: waking another takes longer, and
    an interrupt waits for them. What stays is held by reference. Dask starts and ends the workers, and knows
    of no run.
    """

    def run(
        self,
        plan: Plan,
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
        given: Mapping[Slot, Kept] | None = None,
    ) -> Outcome:
        """Run a plan as :meth:`DaskEngine.run` does."""
        if self._wants_tasks():
            return super().run(plan, fetch, hold, given)
        begin = time.perf_counter()
        run_id = worker.begin_run(self._prefix, next(self._runs))
        owners = self._owners(plan)
        self._answers.check_alive(owners)
        made_here = (key for array in plan.outputs.values() for key in array.keys)
        wanted = dict.fromkeys((*made_here, *hold, *fetch))
        sent, counts = self._shipped(plan)
        graph = TaskGraph.borrowed(plan)
        values = self._read(plan, graph, {**(given or {}), **sent})
        sharing = SharedTasks(run_id, graph, values, wanted)
        if self._telemetry is not None:
            self._telemetry.began(str(run_id))
        try:
            with self._shared_blas(plan):
                self._do(sharing, graph, plan, owners)
            made = sharing.made()
        except KeyboardInterrupt:
            with self._cluster.stopping.undisturbed():
                sharing.stop()
                worker.forget(run_id)
                cancelled_run = self._stopped(plan, sharing, sent, run_id)
            given = None  # an error's traceback keeps this frame
            del sharing, values, sent
            raise cancelled_run from None
        except BaseException:
            sharing.stop()
            worker.forget(run_id)
            raise
        timed, told = self._told(graph, run_id, made)
        if (failed := sharing.failed) is not None:
            given = None
            del sharing, values, sent, made
            raise worker.TaskFailed(failed)
        graph.give_back(plan)
        counts.update(told)
        kept: dict[Slot, Any] = {**sent, **self._named(made, run_id)}
        arrays = {node: tuple(kept[key] for key in array.keys) for node, array in plan.outputs.items()}
        if self._telemetry is not None:
            self._telemetry.ended(timed)
        return Outcome(
            with_counts(plan.outputs, arrays, counts),
            arrays,
            {key: kept[key].block for key in fetch},
            timed,
            time.perf_counter() - begin,
            tuple(kept[key] for key in hold),
            counts,
        )

    def ship(self, blocks: Mapping[Slot, Block], owner: int) -> dict[Slot, Kept]:
        """Keep blocks by reference."""
        base = f"{self._prefix}s{next(self._runs)}"
        return {key: LocalBlock(f"{base}-{key}", freeze(block)) for key, block in blocks.items()}

    def cut_lineage(self, owners: Sequence[int], futures: Sequence[Kept]) -> tuple[Kept, ...]:
        """Return what has no history as it is; Dask keeps one of what its tasks made."""
        far = [one for one in zip(owners, futures, strict=True) if not isinstance(one[1], LocalBlock)]
        if not far:
            return tuple(futures)
        new = iter(super().cut_lineage(*(list(column) for column in zip(*far, strict=True))))
        return tuple(one if isinstance(one, LocalBlock) else next(new) for one in futures)

    # one run

    def _shipped(self, plan: Plan) -> tuple[dict[Slot, Kept], dict[Slot, tuple[int, int]]]:
        # A user's data that the tasks read, with entries and bytes.
        sent: dict[Slot, Kept] = {}
        counts: dict[Slot, tuple[int, int]] = {}
        self._ship(plan.shipments, sent, counts)
        return sent, counts

    def _read(self, plan: Plan, graph: TaskGraph, given: Mapping[Slot, Kept]) -> dict[Slot, Any]:
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
    def _named(made: Mapping[Slot, Any], run_id: worker.RunId) -> dict[Slot, Kept]:
        return {key: LocalBlock(f"{run_id}-{key}", value) for key, value in made.items()}

    def _stopped(
        self, plan: Plan, sharing: SharedTasks, sent: Mapping[Slot, Kept], run_id: worker.RunId
    ) -> RunCancelled:
        # Whole arrays that were finished stay.
        made: dict[Slot, Kept] = {**sent, **self._named(sharing.made(), run_id)}
        kept = {
            node: tuple(made[key] for key in array.keys)
            for node, array in plan.outputs.items()
            if all(key in made for key in array.keys)
        }
        # Of others there may be what is no block yet, such as rows of a file as they were read.
        stays = {key for node in kept for key in plan.outputs[node].keys}
        blocks = {key: one.block for key in stays if isinstance(one := made[key], LocalBlock)}
        counts = {key: (block.nnz, block.nbytes) for key, block in blocks.items()}
        return cancelled(plan, kept, sharing.num_done, counts)
