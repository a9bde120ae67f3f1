"""Runs a plan as a Dask graph: one Dask task per plan task, or one per worker for small plans."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Future

from matnb.backend.cluster.connection import BROKEN
from matnb.backend.engines.context import owners_of, staying
from matnb.backend.engines.driver_loops import PlanEngine
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.engines.graphs import DaskGraph, PlanRun, graph_of, is_bundled
from matnb.backend.engines.results import Outcome, RunCancelled
from matnb.backend.kept import BlockRef
from matnb.backend.tasks import worker
from matnb.errors import ClusterError
from matnb.program.plan import Plan, Slot


class DaskEngine(PlanEngine):
    """Runs plans as tasks of Dask's, and programs batch by batch."""

    def run_plan(
        self,
        plan: Plan,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
    ) -> Outcome:
        """Run a plan."""
        begin = time.perf_counter()
        owners = owners_of(plan)
        run_id = self._context.begin(owners)
        futures: dict[Slot | str, Future] = {}
        sent: dict[Slot, BlockRef] = {}
        counts: dict[Slot, tuple[int, int]] = {}
        wanted = staying(plan)
        threads = {number: one.threads for number, one in enumerate(self._cluster.workers)}
        run = PlanRun(plan, run_id, {*wanted, *hold, *fetch}, fetch, threads)
        self._context.began(run_id)
        try:
            self.blocks.send(plan.shipments, sent, counts)
            sought = [key for key in dict.fromkeys((*wanted, *hold, *fetch)) if key not in sent]
            graph = graph_of(run, {**given, **sent})
            with self._context.shared_blas(plan):
                self._submit(graph, run_id, sought, futures)
                told: list[worker.Report] = self._answers.gather(
                    [futures[name] for name in graph.reports], owners
                )
                values: dict[Slot, Any] = {key: one for report in told for key, one in report.values.items()}
                rest = [] if _failures(told) else [key for key in fetch if key not in values]
                there: dict[Any, BlockRef] = {**sent, **futures}
                values.update(
                    zip(rest, self.blocks.gather([there[key] for key in rest], list(owners)), strict=True)
                )
        except KeyboardInterrupt:
            with self._cluster.stopping.undisturbed():
                raise self._cancelled(plan, futures, sent, run_id) from None
        except OwnersLost:
            self._stop(plan, futures)
            worker.forget(run_id)
            raise
        except ClusterError:
            worker.forget(run_id)
            raise
        for report in told:
            counts.update(report.counts)
        if failures := _failures(told):
            del given  # the error's traceback keeps this frame
            for names in (futures, sent, there):
                names.clear()
            raise worker.TaskFailed(failures[0])
        timed = tuple(one for report in told for one in report.timed)
        self._context.ended(timed)
        return Outcome(
            {key: there[key] for key in (*wanted, *hold)},
            counts,
            {key: values[key] for key in fetch},
            timed,
            time.perf_counter() - begin,
        )

    # one run

    def _submit(
        self, graph: DaskGraph, run_id: worker.RunId, keys: Sequence[Slot], futures: dict[Slot | str, Future]
    ) -> None:
        if not graph.tasks:
            return
        layers = {}
        for owner, tasks in graph.tasks.items():
            pinned = {"workers": [self._cluster.workers[owner].address], "allow_other_workers": False}
            layers[f"{run_id}-{owner}"] = MaterializedLayer(dict(tasks), annotations=pinned)
        # Dask would look through each task of a plain dict, to name it by its content.
        whole = HighLevelGraph(layers, {name: set() for name in layers})
        names = [*(f"{run_id}-{key}" for key in keys), *graph.reports]
        try:
            sent = self._cluster.client.get(whole, names, sync=False, retries=0)
        except BROKEN as error:  # a client that has closed
            raise self._answers.broken(error, graph.tasks) from error
        futures.update(zip((*keys, *graph.reports), sent, strict=True))

    def _stop(self, plan: Plan, futures: Mapping[Slot | str, Future]) -> None:
        # Dask cancels what reads a cancelled name first, and fails with the client's connection where nobody
        # holds one of those. So only what no task reads is cancelled, and the rest is let go.
        read = {key for task in plan.tasks for key in task.inputs}
        self._answers.cancel([future for key, future in futures.items() if key not in read])
        for key, future in futures.items():
            if key in read:
                future.release()

    def _cancelled(
        self, plan: Plan, futures: Mapping[Any, Future], sent: Mapping[Any, BlockRef], run_id: worker.RunId
    ) -> RunCancelled:
        done = {**sent, **{key: one for key, one in futures.items() if one.status == "finished"}}
        kept = of_whole_arrays(plan, done)
        self._stop(plan, {key: one for key, one in futures.items() if key not in kept})
        worker.forget(run_id)
        if not self._context.cluster.in_process and is_bundled(plan):
            self._answers.tell(worker.forget, run_id)  # what runs goes on to the next of its tasks
        return cancelled(plan, kept, sum(task.key in done for task in plan.tasks))


def of_whole_arrays(plan: Plan, made: Mapping[Slot, BlockRef]) -> dict[Slot, BlockRef]:
    """Return what keeps the blocks of those arrays of a plan whose blocks are all made."""
    whole = [array.keys for array in plan.outputs.values() if all(key in made for key in array.keys)]
    return {key: made[key] for keys in whole for key in keys}


def cancelled(
    plan: Plan,
    kept: Mapping[Slot, BlockRef],
    num_done: int,
    counts: Mapping[Slot, tuple[int, int]] | None = None,
) -> RunCancelled:
    """Return what an interrupt of a run raises, of whose tasks some were done and some arrays are whole."""
    outputs = [array.keys for array in plan.outputs.values()]
    total, whole = sum(map(len, outputs)), sum(len(keys) for keys in outputs if kept.keys() >= {*keys})
    return RunCancelled(
        f"cancelled {len(plan.tasks) - num_done} of {len(plan.tasks)} tasks, kept {whole} of {total} blocks",
        Outcome(kept, counts or {}),
    )


def _failures(told: Sequence[worker.Report]) -> list[worker.TaskFailure]:
    return [report.failed for report in told if report.failed is not None]
