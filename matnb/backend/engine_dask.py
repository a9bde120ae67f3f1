"""Runs a plan as a Dask graph: one task a block and fused stage, pinned to its owner."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dask._task_spec import Task as GraphTask
from dask._task_spec import TaskRef
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Future

from matnb.backend import worker
from matnb.backend.cluster import Cluster
from matnb.blocks.formats import Block
from matnb.errors import CellCancelled
from matnb.events import TaskTimed
from matnb.lazy.expr import Expr
from matnb.lazy.holdings import held
from matnb.plan.plan import Plan, Shipment, Stored
from matnb.plan.sources import piece_of

_POLL_SECONDS = 0.05  # how soon a loss is noticed; a result is noticed at once
_CANCEL_SECONDS = 1.0  # an interrupt waits this long for the scheduler's word, then leaves


class OwnersLost(Exception):  # noqa: N818  not an error yet: the run is laid out anew
    """Workers that a run needs are gone."""

    def __init__(self, owners: Sequence[int]) -> None:
        super().__init__(f"workers {tuple(owners)} are gone")
        self.owners = tuple(owners)


class TaskFailed(Exception):  # noqa: N818  carries a worker's error to the room that knows the cell
    """A task raised on its worker."""

    def __init__(self, failed: worker.Failed) -> None:
        super().__init__(f"{failed.key}: {failed.error}")
        self.failed = failed


@dataclass(frozen=True)
class Outcome:
    """What a run left: arrays on workers, the futures that keep them, fetched blocks, and the times."""

    stored: Mapping[Expr, Stored]
    futures: Mapping[Expr, tuple[Future, ...]]
    fetched: Mapping[str, Any]
    timed: tuple[TaskTimed, ...]
    seconds: float
    held: tuple[Future, ...] = ()


class DaskEngine:
    """Runs plans on a cluster.

    Parameters
    ----------
    cluster
        Where to run.
    prefix
        Put before every key, so that two sessions on one cluster do not meet.
    """

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self._cluster, self._prefix = cluster, prefix
        self._client = cluster.client
        self._runs = itertools.count()

    def run(self, plan: Plan, fetch: Sequence[str] = (), hold: Sequence[str] = ()) -> Outcome:
        """Run a plan and return when all its tasks are done.

        Parameters
        ----------
        plan
            What to run.
        fetch
            Keys whose values come back to this process with the times.
        hold
            Further keys to keep on the workers, as long as ``Outcome.held`` is.

        Raises
        ------
        OwnersLost
            When a worker of the plan died; nothing is left behind.
        TaskFailed
            When a task raised.
        CellCancelled
            On an interrupt; whole arrays that were finished are in its ``outcome``.
        """
        begin = time.perf_counter()
        run_id = f"{self._prefix}r{next(self._runs)}"
        self._check_owners(plan)
        shipped = self._ship(plan.shipments)
        wanted = [key for array in plan.outputs.values() for key in array.keys]
        reports = self._report_keys(plan, run_id)
        layers = self._layers(plan, run_id, reports)
        sought = {
            self._prefix + key: None for key in (*wanted, *hold, *fetch) if key not in shipped
        } | dict.fromkeys(reports)
        futures = self._submit(layers, list(sought), shipped)
        try:
            values = self._wait(
                [futures[name] for name in (*reports, *(self._prefix + key for key in fetch))], plan
            )
        except KeyboardInterrupt:
            raise self._cancelled(plan, futures, shipped, run_id) from None
        except OwnersLost:
            self._drop(futures, run_id)
            raise
        timed: list[TaskTimed] = []
        failures = []
        counts = {key: (block.nnz, block.nbytes) for key, (_, block) in shipped.items()}
        for report in values[: len(reports)]:
            timed.extend(report.timed)
            counts.update(report.counts)
            if report.failed is not None:
                failures.append(report.failed)
        if failures:
            raise TaskFailed(failures[0])
        kept = {
            node: tuple(self._future(key, futures, shipped) for key in array.keys)
            for node, array in plan.outputs.items()
        }
        fetched = dict(zip(fetch, values[len(reports) :], strict=True))
        return Outcome(
            _with_counts(plan.outputs, counts),
            kept,
            fetched,
            tuple(timed),
            time.perf_counter() - begin,
            tuple(futures[self._prefix + key] for key in hold),
        )

    def gather(self, futures: Sequence[Future], owners: Sequence[int]) -> list[Block]:
        """Return copies of blocks in this process.

        Raises
        ------
        OwnersLost
            When a worker that held one died.
        """
        blocks: list[Block] = self._gather(list(futures), set(owners))
        return blocks

    def cut_lineage(self, array: Stored, futures: Sequence[Future]) -> tuple[Stored, tuple[Future, ...]]:
        """Give blocks new keys without a history, since Dask keeps every task that a block came from."""
        renamed: dict[str, str] = {key: f"{key}-h{next(self._runs)}" for key in array.keys}
        held_by: dict[int, dict[str, str]] = {}
        for key, owner in zip(array.keys, array.layout.owners, strict=True):
            held_by.setdefault(owner, {})[self._prefix + key] = self._prefix + renamed[key]
        addresses = {owner: self._cluster.workers[owner].address for owner in held_by}
        who_has: dict[str, list[str]] = {}
        nbytes: dict[str, int] = {}
        for owner, names in held_by.items():
            (answer,) = self._client.run(worker.rename, names, workers=[addresses[owner]]).values()
            nbytes.update(answer)
            who_has.update({name: [addresses[owner]] for name in answer})
        if len(who_has) != len(renamed):
            return array, tuple(futures)
        self._client.sync(
            self._client.scheduler.update_data, who_has=who_has, nbytes=nbytes, client=self._client.id
        )
        new = tuple(Future(self._prefix + renamed[key], self._client) for key in array.keys)
        for future in new:
            self._client.futures[future.key].finish()  # as the client does for what it scatters
        return Stored(array.layout, tuple(renamed.values()), array.block_nnz, array.block_bytes), new

    # one run

    def _check_owners(self, plan: Plan) -> None:
        needed = {task.owner for task in plan.tasks} | {one.owner for one in plan.shipments}
        for array in plan.reused.values():
            needed.update(array.layout.owners)
        gone = needed - set(self._cluster.alive())
        if gone:
            raise OwnersLost(sorted(gone))

    def _ship(self, shipments: Sequence[Shipment]) -> dict[str, tuple[Future, Block]]:
        shipped: dict[str, tuple[Future, Block]] = {}
        by_owner: dict[int, dict[str, Block]] = {}
        for one in shipments:
            block = held(one.expression)
            assert block is not None, "lowering checks that the data is here"
            by_owner.setdefault(one.owner, {})[one.key] = piece_of(block, one.region)
        for owner, blocks in by_owner.items():
            shipped.update(self.ship(blocks, owner))
        return shipped

    def ship(self, blocks: Mapping[str, Block], owner: int) -> dict[str, tuple[Future, Block]]:
        """Send blocks to a worker and return their futures."""
        named = {self._prefix + key: worker.freeze(block) for key, block in blocks.items()}
        sent = self._client.scatter(named, workers=[self._cluster.workers[owner].address], hash=False)
        return {key: (sent[self._prefix + key], block) for key, block in blocks.items()}

    def _report_keys(self, plan: Plan, run_id: str) -> dict[str, tuple[int, list[str]]]:
        # A worker's report follows its last tasks, which no other of its tasks reads, and what stays on it.
        staying = {key for array in plan.outputs.values() for key in array.keys}
        owners = {task.key: task.owner for task in plan.tasks}
        read_here = {key for task in plan.tasks for key in task.inputs if owners.get(key) == task.owner}
        last: dict[int, list[str]] = {}
        for task in plan.tasks:
            last.setdefault(task.owner, [])
            if task.key not in read_here or task.key in staying:
                last[task.owner].append(task.key)
        return {f"{run_id}-report-{owner}": (owner, keys) for owner, keys in sorted(last.items())}

    def _layers(
        self, plan: Plan, run_id: str, reports: Mapping[str, tuple[int, list[str]]]
    ) -> HighLevelGraph:
        by_owner: dict[int, dict[str, GraphTask]] = {}
        for task in plan.tasks:
            name = self._prefix + task.key
            by_owner.setdefault(task.owner, {})[name] = GraphTask(
                name, worker.run, task.key, task.kind, run_id, task.owner, _Steps(task.steps),
                *(TaskRef(self._prefix + key) for key in task.inputs),
            )  # fmt: skip
        for name, (owner, keys) in reports.items():
            by_owner.setdefault(owner, {})[name] = GraphTask(
                name, worker.report, run_id, owner, _Steps(keys), *(TaskRef(self._prefix + key) for key in keys)
            )
        layers = {}
        for owner, tasks in by_owner.items():
            pinned = {"workers": [self._cluster.workers[owner].address], "allow_other_workers": False}
            layers[f"{run_id}-{owner}"] = MaterializedLayer(tasks, annotations=pinned)
        return HighLevelGraph(layers, {name: set() for name in layers})

    def _submit(
        self, graph: HighLevelGraph, names: list[str], shipped: Mapping[str, tuple[Future, Block]]
    ) -> dict[str, Future]:
        if not names:
            return {}
        return dict(zip(names, self._client.get(graph, names, sync=False, retries=0), strict=True))

    def _wait(self, futures: list[Future], plan: Plan) -> list[Any]:
        owners = {task.owner for task in plan.tasks}
        for array in plan.reused.values():
            owners.update(array.layout.owners)
        return self._gather(futures, owners)

    def _gather(self, futures: list[Future], owners: set[int]) -> list[Any]:
        if not futures:
            return []
        waiting = asyncio.run_coroutine_threadsafe(
            _gathered(self._client, futures), self._client.loop.asyncio_loop
        )
        try:
            while True:
                try:
                    return waiting.result(timeout=_POLL_SECONDS)
                except concurrent.futures.TimeoutError:
                    gone = owners - set(self._cluster.alive())
                    if gone:
                        raise OwnersLost(sorted(gone)) from None
                except (asyncio.CancelledError, concurrent.futures.CancelledError, KeyError, OSError):
                    gone = owners - set(self._cluster.alive())
                    if gone:
                        raise OwnersLost(sorted(gone)) from None
                    raise
        finally:
            waiting.cancel()

    def _future(
        self, key: str, futures: Mapping[str, Future], shipped: Mapping[str, tuple[Future, Block]]
    ) -> Future:
        return shipped[key][0] if key in shipped else futures[self._prefix + key]

    def _drop(self, futures: Mapping[str, Future], run_id: str) -> None:
        self._client.cancel(list(futures.values()), asynchronous=False, force=True)
        worker.forget(run_id)

    def _cancelled(
        self,
        plan: Plan,
        futures: Mapping[str, Future],
        shipped: Mapping[str, tuple[Future, Block]],
        run_id: str,
    ) -> CellCancelled:
        done = {name for name, future in futures.items() if future.status == "finished"}
        kept = {}
        for node, array in plan.outputs.items():
            if all(key in shipped or self._prefix + key in done for key in array.keys):
                kept[node] = tuple(self._future(key, futures, shipped) for key in array.keys)
        staying = {future.key for ones in kept.values() for future in ones}
        leaving = [future for name, future in futures.items() if future.key not in staying]
        cancelling = asyncio.run_coroutine_threadsafe(
            _cancel(self._client, leaving), self._client.loop.asyncio_loop
        )
        try:
            cancelling.result(timeout=_CANCEL_SECONDS)
        except (concurrent.futures.TimeoutError, KeyboardInterrupt):
            cancelling.cancel()
        worker.forget(run_id)
        total = sum(len(array.keys) for array in plan.outputs.values())
        whole = sum(len(ones) for ones in kept.values())
        error = CellCancelled(
            f"cancelled {len(plan.tasks) - len(done)} of {len(plan.tasks)} tasks, kept {whole} of {total} blocks"
        )
        error.outcome = Outcome({node: plan.outputs[node] for node in kept}, kept, {}, (), 0.0)  # type: ignore[attr-defined]
        return error


class _Steps(tuple[Any, ...]):
    """Parameters that Dask hands on as they are, without looking inside for tasks."""

    __slots__ = ()


async def _gathered(client: Any, futures: list[Future]) -> list[Any]:
    return list(await client.gather(futures, asynchronous=True))


async def _cancel(client: Any, futures: list[Future]) -> None:
    await client.cancel(futures, asynchronous=True, force=True)


def _with_counts(
    outputs: Mapping[Expr, Stored], counts: Mapping[str, tuple[int, int]]
) -> dict[Expr, Stored]:
    result = {}
    for node, array in outputs.items():
        known = [counts[key] for key in array.keys]
        nnz, sizes = tuple(nnz for nnz, _ in known), tuple(size for _, size in known)
        result[node] = Stored(array.layout, array.keys, nnz, sizes)
    return result
