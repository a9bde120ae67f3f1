"""Runs a plan as a Dask graph: one Dask task per plan task, or one per worker for small plans."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from distributed import Client, Future
from threadpoolctl import ThreadpoolController

from matnb.backend.cluster.connection import BROKEN
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.futures import Answers, OwnersLost
from matnb.backend.engines.graphs import DaskGraph, PlanRun, graph_of, is_bundled
from matnb.backend.engines.telemetry import Telemetry
from matnb.backend.kept import Kept, names_of
from matnb.backend.tasks import worker
from matnb.blocks.formats import Block, freeze
from matnb.blocks.grid import Region
from matnb.blocks.layout import Layout
from matnb.errors import CellCancelled, ClusterError
from matnb.events import TaskTimed
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr
from matnb.ops.creation import part_of, piece_of, pieces_of
from matnb.program import operators as op
from matnb.program.plan import Plan, Shipment, Slot, Stored

_ANSWER_SECONDS = 10.0


class RunCancelled(CellCancelled):
    """A user's interrupt of a run; ``outcome`` has the whole arrays that were finished."""

    def __init__(self, message: str, outcome: Outcome) -> None:
        super().__init__(message)
        self.outcome = outcome


@dataclass(frozen=True)
class Outcome:
    """What a run left: arrays on workers, what keeps them, fetched blocks, and the times.

    ``counts`` has entries and bytes of what was kept or held, by the plan's slots.
    """

    stored: Mapping[Expr, Stored]
    futures: Mapping[Expr, tuple[Kept, ...]]
    fetched: Mapping[Slot, Any]
    timed: tuple[TaskTimed, ...]
    seconds: float
    held: tuple[Kept, ...] = ()
    counts: Mapping[Slot, tuple[int, int]] = field(default_factory=dict)


class DaskEngine:
    """Runs plans on a cluster.

    Plans repeat, Dask's names of their values do not: a name that is used again while its last use is being
    forgotten makes the scheduler lose the new one (its update of the graph is not atomic).

    Parameters
    ----------
    cluster
        Where to run.
    prefix
        Put before every name, so that two sessions on one cluster do not meet.
    in_process
        Whether the workers are threads of this process, which share its BLAS.
    telemetry
        Is told what tasks took while somebody looks; or None.
    wants_tasks
        Tells whether what is asked for now is to be tasks of Dask's, where an engine has another way too.
    """

    def __init__(
        self,
        cluster: DaskCluster,
        prefix: str,
        in_process: bool,
        telemetry: Telemetry | None = None,
        wants_tasks: Callable[[], bool] = bool,
    ) -> None:
        self._cluster, self._prefix, self._telemetry = cluster, prefix, telemetry
        self._in_process, self._wants_tasks = in_process, wants_tasks
        self._blas = ThreadpoolController() if in_process else None
        self._client = cluster.client
        self._answers = Answers(cluster)
        self._runs = itertools.count()

    def run(
        self,
        plan: Plan,
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
        given: Mapping[Slot, Kept] | None = None,
    ) -> Outcome:
        """Run a plan and return when all its tasks are done.

        Parameters
        ----------
        plan
            What to run.
        fetch
            Slots whose values come back to this process with the times.
        hold
            Further slots to keep on the workers, as long as ``Outcome.held`` is.
        given
            What is in the slots that the plan reads and does not make.

        Raises
        ------
        OwnersLost
            When a worker of the plan died; nothing is left behind.
        TaskFailed
            When a task raised.
        RunCancelled
            On an interrupt; whole arrays that were finished are in its ``outcome``.
        """
        begin = time.perf_counter()
        run_id = worker.begin_run(self._prefix, next(self._runs))
        owners = self._owners(plan)
        self._answers.check_alive(owners)
        futures: dict[Slot | str, Future] = {}
        sent: dict[Slot, Kept] = {}
        counts: dict[Slot, tuple[int, int]] = {}
        wanted = [key for array in plan.outputs.values() for key in array.keys]
        threads = {number: one.threads for number, one in enumerate(self._cluster.workers)}
        run = PlanRun(plan, run_id, {*wanted, *hold, *fetch}, fetch, threads)
        if self._telemetry is not None:
            self._telemetry.began(str(run_id))
        try:
            self._ship(plan.shipments, sent, counts)
            sought = [key for key in dict.fromkeys((*wanted, *hold, *fetch)) if key not in sent]
            graph = graph_of(run, {**(given or {}), **sent})
            with self._shared_blas(plan):
                self._submit(graph, run_id, sought, futures)
                told: list[worker.Report] = self._answers.gather(
                    [futures[name] for name in graph.reports], owners
                )
                values: dict[Slot, Any] = {key: one for report in told for key, one in report.values.items()}
                rest = [] if _failures(told) else [key for key in fetch if key not in values]
                there: dict[Any, Kept] = {**sent, **futures}
                values.update(zip(rest, self.gather([there[key] for key in rest], list(owners)), strict=True))
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
            given = None  # the error's traceback keeps this frame
            for names in (futures, sent, there):
                names.clear()
            raise worker.TaskFailed(failures[0])
        kept = {node: tuple(there[key] for key in array.keys) for node, array in plan.outputs.items()}
        timed = tuple(one for report in told for one in report.timed)
        if self._telemetry is not None:
            self._telemetry.ended(timed)
        return Outcome(
            with_counts(plan.outputs, kept, counts),
            kept,
            {key: values[key] for key in fetch},
            timed,
            time.perf_counter() - begin,
            tuple(there[key] for key in hold),
            counts,
        )

    def gather(self, futures: Sequence[Kept], owners: Sequence[int]) -> list[Block]:
        """Return blocks in this process, which nobody writes to: copies of those of other processes.

        Raises
        ------
        OwnersLost
            When a worker that held one died.
        """
        blocks: list[Block] = self._answers.bring(futures, owners)
        return blocks

    def ship(self, blocks: Mapping[Slot, Block], owner: int) -> dict[Slot, Kept]:
        """Send blocks to a worker, and return what keeps them there."""
        names = {key: f"{self._prefix}s{next(self._runs)}-{key}" for key in blocks}
        named = {names[key]: freeze(block) for key, block in blocks.items()}
        address = self._cluster.workers[owner].address
        sending = self._client.scatter(named, workers=[address], hash=False, asynchronous=True)
        try:
            sent = self._answers.waited_for(sending, [owner])
        except KeyError as error:  # it names a worker that is gone
            raise self._answers.broken(error, [owner]) from error
        return {key: sent[name] for key, name in names.items()}

    def ship_array(
        self, block: Block, layout: Layout, is_constant: bool = False
    ) -> tuple[Stored, tuple[Kept, ...]]:
        """Send a user's array to the owners of a layout.

        Of an array that nobody ever writes to, which ``is_constant``, workers in this process get no copy.
        """
        futures: list[Kept] = []
        counts: list[tuple[int, int]] = []
        regions = list(layout.grid.regions())
        pieces = (part_of(block, one) for one in regions) if is_constant else self._pieces(block, regions)
        for number, (piece, owner) in enumerate(zip(pieces, layout.owners, strict=True)):
            futures.extend(self.ship({number: piece}, owner).values())
            counts.append((piece.nnz, piece.nbytes))
        nnz, sizes = tuple(nnz for nnz, _ in counts), tuple(size for _, size in counts)
        return Stored(layout, names_of(futures), nnz, sizes), tuple(futures)

    def _pieces(self, block: Block, regions: Sequence[Region]) -> Iterable[Block]:
        # What goes to another process is copied there one after the other.
        return pieces_of(block, regions) if self._in_process else (piece_of(block, one) for one in regions)

    def cut_lineage(self, owners: Sequence[int], futures: Sequence[Kept]) -> tuple[Kept, ...]:
        """Give blocks names without a history, since Dask keeps every task that a block came from.

        Parameters
        ----------
        owners, futures
            Of each block: the worker that has it, and what keeps it now.
        """
        self._answers.finished(futures, owners)
        run_id = f"{self._prefix}h{next(self._runs)}"
        places = {future.key: owner for future, owner in zip(futures, owners, strict=True)}
        new_names = {name: f"{run_id}-{number}" for number, name in enumerate(places)}
        by_owner: dict[int, list[str]] = {}
        for name, owner in places.items():
            by_owner.setdefault(owner, []).append(name)
        who_has: dict[str, list[str]] = {}
        num_bytes: dict[str, int] = {}
        for owner, own in by_owner.items():
            address = self._cluster.workers[owner].address
            names = {name: new_names[name] for name in own}
            try:
                answer = self._answers.waited_for(_renamed(self._client, names, address), [owner])
            except (KeyError, ValueError) as error:  # a KeyError names a worker that is gone
                raise self._answers.broken(error, [owner]) from error
            if len(answer) != len(names):
                raise OwnersLost([owner])
            num_bytes.update(answer)
            who_has.update({name: [address] for name in answer})
        try:
            self._client.sync(
                self._client.scheduler.update_data,
                who_has=who_has,
                nbytes=num_bytes,
                client=self._client.id,
                callback_timeout=_ANSWER_SECONDS,
            )
        except BROKEN as error:
            raise self._answers.broken(error, by_owner) from error
        return tuple(self._answers.future(new_names[future.key]) for future in futures)

    # one run

    def _shared_blas(self, plan: Plan) -> AbstractContextManager[object]:
        multiply = op.Multiply | op.Run  # and others that may
        products = sum(any(isinstance(step.operator, multiply) for step in task.steps) for task in plan.tasks)
        return shared_blas(self._blas, products, self._cluster)

    def _owners(self, plan: Plan) -> set[int]:
        owners = {task.owner for task in plan.tasks} | {one.owner for one in plan.shipments}
        for array in plan.reused.values():
            owners.update(array.layout.owners)
        return owners

    def _ship(
        self,
        shipments: Sequence[Shipment],
        sent: dict[Slot, Kept],
        counts: dict[Slot, tuple[int, int]],
    ) -> None:
        by_owner: dict[int, dict[Slot, Block]] = {}
        for expression, alike in itertools.groupby(shipments, lambda one: one.expression):
            block = held(expression)
            assert block is not None, "a plan ships what is held here"
            some = list(alike)
            for one, piece in zip(some, self._pieces(block, [one.region for one in some]), strict=True):
                by_owner.setdefault(one.owner, {})[one.key] = piece
                counts[one.key] = (piece.nnz, piece.nbytes)
        for owner, blocks in by_owner.items():
            sent.update(self.ship(blocks, owner))

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
            sent = self._client.get(whole, names, sync=False, retries=0)
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
        self, plan: Plan, futures: Mapping[Any, Future], sent: Mapping[Any, Kept], run_id: worker.RunId
    ) -> RunCancelled:
        done = {**sent, **{key: one for key, one in futures.items() if one.status == "finished"}}
        kept = {
            node: tuple(done[key] for key in array.keys)
            for node, array in plan.outputs.items()
            if set(array.keys).issubset(done)
        }
        staying = {key for node in kept for key in plan.outputs[node].keys}
        self._stop(plan, {key: one for key, one in futures.items() if key not in staying})
        worker.forget(run_id)
        if self._blas is None and is_bundled(plan):
            self._answers.tell(worker.forget, run_id)  # what runs goes on to the next of its tasks
        return cancelled(plan, kept, sum(task.key in done for task in plan.tasks))


async def _renamed(client: Client, names: dict[str, str], address: str) -> dict[str, int]:
    (answer,) = (await client.run(worker.rename, names, workers=[address])).values()
    return dict(answer)


def cancelled(
    plan: Plan,
    kept: Mapping[Expr, tuple[Kept, ...]],
    num_done: int,
    counts: Mapping[Slot, tuple[int, int]] | None = None,
) -> RunCancelled:
    """Return what an interrupt of a run raises, of whose tasks some were done and some arrays are whole."""
    total = sum(len(array.keys) for array in plan.outputs.values())
    whole = sum(len(ones) for ones in kept.values())
    if counts is None:  # nobody has said how large the blocks are
        arrays = {node: replace(plan.outputs[node], keys=names_of(own)) for node, own in kept.items()}
    else:
        arrays = with_counts({node: plan.outputs[node] for node in kept}, kept, counts)
    return RunCancelled(
        f"cancelled {len(plan.tasks) - num_done} of {len(plan.tasks)} tasks, kept {whole} of {total} blocks",
        Outcome(arrays, kept, {}, (), 0.0),
    )


def shared_blas(
    blas: ThreadpoolController | None, products: int, cluster: DaskCluster
) -> AbstractContextManager[object]:
    """Have each product of a run on one core, where several may be made at a time."""
    # Products side by side, each on all cores, take twice as long as one after the other.
    if blas is None or products < 2 or sum(one.threads for one in cluster.workers) < 2:
        return nullcontext()
    limited: AbstractContextManager[object] = blas.limit(limits=1, user_api="blas")
    return limited


def _failures(told: Sequence[worker.Report]) -> list[worker.Failed]:
    return [report.failed for report in told if report.failed is not None]


def with_counts(
    outputs: Mapping[Expr, Stored],
    kept: Mapping[Expr, tuple[Kept, ...]],
    counts: Mapping[Slot, tuple[int, int]],
) -> dict[Expr, Stored]:
    """Return the arrays of a plan as they are on the workers, with the entries and bytes of their blocks."""
    result = {}
    for node, array in outputs.items():
        nnz, sizes = zip(*(counts[slot] for slot in array.keys), strict=True)
        result[node] = Stored(array.layout, names_of(kept[node]), nnz, sizes)
    return result
