"""Runs of expressions: planned over what is stored, and repeated over the survivors when workers are lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from matnb.backend.cluster import Cluster
from matnb.backend.engine_dask import DaskEngine, Outcome, OwnersLost, TaskFailed
from matnb.backend.store import Entry, Store
from matnb.blocks.formats import Block
from matnb.blocks.kernels.shaping import join
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, SessionEnded, TooLargeError, WorkerLostError
from matnb.events import Event, RunFinished, RunStarted, TasksFinished, WorkersLost
from matnb.lazy.array import live_expressions
from matnb.lazy.expr import Data, Expr
from matnb.lazy.holdings import copied, held
from matnb.lazy.memo import lifetime, worth_keeping
from matnb.lazy.passes import optimize
from matnb.lazy.recording import Recording, active_recording
from matnb.lazy.traverse import topological
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_bytes, estimate_entries
from matnb.plan.explain import explain_plan
from matnb.plan.lower import lower
from matnb.plan.plan import Plan, Workers
from matnb.session.failures import cell_error

TRIES = 4  # a run is laid out anew over the survivors this often before it gives up
_RESTART_SECONDS = 8.0  # a nanny brings a worker back in two to four
_LINEAGE_DEPTH = 20  # after this many runs on each other's results their history is cut


class Runner:
    """Turns expressions into arrays on the workers.

    Parameters
    ----------
    config, cluster, engine, store
        Of the session.
    emit
        Called with every event.
    """

    def __init__(
        self,
        config: Config,
        cluster: Cluster,
        engine: DaskEngine,
        store: Store,
        emit: Callable[[Event], None],
    ) -> None:
        self._config, self._cluster, self._engine, self._store = config, cluster, engine, store
        self._emit = emit
        self._num_runs = 0

    def run(
        self,
        roots: Mapping[str, Expr],
        live: set[Expr],
        fetch: Expr | None = None,
        record: Recording | None = None,
    ) -> Block | None:
        """Compute the roots that are not stored.

        Parameters
        ----------
        roots
            Named expressions, computed in one run.
        live
            Expressions whose arrays stay if they are computed on the way.
        fetch
            A root whose value is wanted in this process; it is returned if it came back with the run.
        record
            The cell that asks, for the lines of errors.

        Raises
        ------
        WorkerLostError
            When workers were lost again and again.
        """
        record = record or active_recording()
        lost: tuple[int, ...] = ()
        for _ in range(TRIES):
            try:
                return self._attempt(roots, live, fetch, record)
            except OwnersLost as error:
                lost = error.owners
                self._emit(WorkersLost(str(self._num_runs), lost))
                self.forget(lost)
        raise WorkerLostError(f"workers {lost} were lost, and others before them; the run was given up")

    def _attempt(
        self, roots: Mapping[str, Expr], live: set[Expr], fetch: Expr | None, record: Recording | None
    ) -> Block | None:
        plan, optimized = self.plan(roots, live)
        self.check_memory(plan)
        keys: tuple[str, ...] = ()
        if fetch is not None and optimized[fetch] in plan.outputs and not fetch.sparse:
            keys = plan.outputs[optimized[fetch]].keys
        self._num_runs += 1
        text = explain_plan(plan, {optimized[node]: name for name, node in roots.items()})
        self._emit(RunStarted(str(self._num_runs), len(plan.tasks), plan.projected_bytes))
        if not plan.tasks and not plan.shipments:
            self._alias(optimized)
            self._finish(plan, text, None, record)
            return None
        try:
            outcome = self._engine.run(plan, keys)
        except TaskFailed as error:
            raise cell_error(error.failed, plan, record) from error.failed.error
        except CellCancelled as error:
            self.keep(error.outcome, plan, optimized)  # type: ignore[attr-defined]  # the engine sets it
            raise
        self.keep(outcome, plan, optimized)
        self._finish(plan, text, outcome, record)
        self._store.trim()
        if fetch is not None and keys:
            layout = plan.outputs[optimized[fetch]].layout
            return whole(fetch, layout, [outcome.fetched[key] for key in keys])
        return None

    def plan(self, roots: Mapping[str, Expr], live: set[Expr]) -> tuple[Plan, dict[Expr, Expr]]:
        """Return the plan for the roots, and what each recorded expression became in it."""
        self.drop_dead()
        needed = topological(roots.values(), self._store)
        known = self._store.find(needed)
        # What this run starts from stays for it, such as a loop's last state, on which no name is left.
        self._store.retain(live_expressions().union(needed))
        for node in needed:
            if isinstance(node, Data) and node not in known and held(node) is None:
                raise SessionEnded(
                    f"an array of shape {node.shape} was sent to workers that are gone, and no copy stayed "
                    "here; give it again with mn.asarray"
                )
        keep = [node for node in needed if worth_keeping(node, live) and node not in known]
        named = {**roots, **{f"kept {place}": node for place, node in enumerate(keep)}}
        after = optimize(named, known)
        optimized = {node: after[name] for name, node in named.items()}
        known = self._store.find(topological(after.values(), self._store))
        wanted = [after[name] for name in roots if after[name] not in known]
        entries = estimate_entries(after.values(), known)
        held_on_way = [
            optimized[node]
            for node in keep
            if estimate_bytes(optimized[node], entries[optimized[node]]) <= self._config.memo_bytes
        ]
        return lower(wanted, held_on_way, known, self.workers()), optimized

    def keep(self, outcome: Outcome, plan: Plan, optimized: Mapping[Expr, Expr]) -> None:
        """Store the arrays that a run left on the workers."""
        seconds: dict[str, float] = {}
        for one in outcome.timed:
            made = one.key.split("-", 1)[0]
            seconds[made] = seconds.get(made, 0.0) + one.seconds
        depth = 1 + max((self._depth(node) for node in plan.reused), default=0)
        for node, stored in outcome.stored.items():
            futures, at = outcome.futures[node], depth
            if depth > _LINEAGE_DEPTH:
                futures = self._engine.cut_lineage(stored)
                at = 0
            num_bytes = sum(stored.block_bytes)
            entry = Entry(stored, futures, num_bytes, seconds.get(node.digest.hex(), 0.0), False, at)
            self._store.add(node, entry, lifetime(node))
        self._alias(optimized)

    def _alias(self, optimized: Mapping[Expr, Expr]) -> None:
        # A handle finds its array under the expression that was recorded, too.
        for recorded, node in optimized.items():
            entry = self._store.entry(node)
            if recorded is not node and entry is not None:
                self._store.add(recorded, entry, lifetime(recorded))

    def _depth(self, node: Expr) -> int:
        entry = self._store.entry(node)
        return 0 if entry is None else entry.depth

    def _finish(self, plan: Plan, text: str, outcome: Outcome | None, record: Recording | None) -> None:
        timed = () if outcome is None else outcome.timed
        loads: dict[int, float] = {}
        for one in timed:
            loads[one.worker] = loads.get(one.worker, 0.0) + one.seconds
        for owner in loads:
            self._emit(
                TasksFinished(str(self._num_runs), owner, tuple(one for one in timed if one.worker == owner))
            )
        mean = sum(loads.values()) / max(1, len(loads))
        finished = RunFinished(
            run=str(self._num_runs),
            num_operations=record.num_operations if record else 0,
            num_merged=record.num_merged if record else 0,
            num_stored=len(plan.reused),
            num_tasks=len(plan.tasks),
            moved_bytes=plan.moved_bytes,
            projected_bytes=plan.projected_bytes,
            actual_bytes=sum(one.output_bytes for one in timed),
            imbalance=max(loads.values()) / mean if mean > 0 else 1.0,
            seconds=0.0 if outcome is None else outcome.seconds,
        )
        if record is not None:
            if len(plan.tasks) >= max((run.num_tasks for run in record.runs), default=0):
                record.plan_text = text
            record.runs.append(finished)
        self._emit(finished)

    def workers(self) -> Workers:
        """Return the workers that a plan is laid out over now, waiting a while when there are none."""
        numbers = self._cluster.alive()
        if not numbers:
            self._wait_for_workers()
            numbers = self._cluster.alive()
        chosen = [self._cluster.workers[number] for number in numbers]
        limits = [one.memory_limit_bytes for one in chosen]
        memory = sum(limits) if all(limits) else 0
        return Workers(numbers, max(1, min(one.threads for one in chosen)), memory)

    def _wait_for_workers(self) -> None:
        end = time.monotonic() + _RESTART_SECONDS
        while time.monotonic() < end:
            self._cluster.refresh()
            if self._cluster.alive():
                return
            time.sleep(0.1)
        raise WorkerLostError("every worker is gone and none came back; mn.stop() and start again")

    def forget(self, owners: Sequence[int]) -> None:
        """Drop the arrays of lost workers, and look who is there."""
        for owner in owners:
            self._store.drop_owner(owner)
        self._cluster.refresh()

    def drop_dead(self) -> None:
        """Drop the arrays of workers that were lost since the last run."""
        alive = set(self._cluster.alive())
        for owner in range(len(self._cluster.workers)):
            if owner not in alive:
                self._store.drop_owner(owner)

    def check_memory(self, plan: Plan) -> None:
        """Refuse a plan that does not fit the workers' memory, before its first task."""
        limit = self.workers().memory_bytes
        if limit and plan.projected_bytes + self._store.num_bytes > limit:
            raise TooLargeError(
                f"this needs about {bytes_text(plan.projected_bytes)} on top of "
                f"{bytes_text(self._store.num_bytes)} in use, but the workers have {bytes_text(limit)}; make "
                "arrays smaller or sparse, release what is not needed, or start with a larger memory_limit"
            )


def whole(node: Expr, layout: Layout, blocks: Sequence[Block]) -> Block:
    """Return the blocks of an array put together, with memory of its own."""
    offsets = [tuple(start for start, _ in region) for region in layout.grid.regions()]
    if len(blocks) == 1:
        return copied(blocks[0])
    return join(list(zip(offsets, blocks, strict=True)), node.shape, node.dtype, node.sparse)
