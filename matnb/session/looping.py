"""Loops and branches run: by a gang, or by the driver where no gang can be had."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from matnb.backend.answers import OwnersLost
from matnb.backend.driven import Driven, Driver
from matnb.backend.engine_dask import DaskEngine, RunCancelled, TaskFailed
from matnb.backend.engine_gang import GangEngine, GangOutcome, GangUnavailable
from matnb.backend.recovery import Resume
from matnb.backend.store import Entry, Kept, Store
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, ClusterError
from matnb.events import Event, LoopAdvanced, LoopFinished, TaskTimed
from matnb.lazy.array import live_expressions
from matnb.lazy.control import Cond, Final, Loop, results_of
from matnb.lazy.expr import Expr
from matnb.lazy.memo import lifetime
from matnb.lazy.recording import Recording
from matnb.pictures.quantities import plural_text
from matnb.plan.looping import ControlPlan
from matnb.plan.plan import Stored, Workers
from matnb.plan.reusing import ControlPlans
from matnb.session.failures import cell_error

_BEFORE = "before-"  # in the names of a state's registers of a gang that lost a member


@dataclass(frozen=True)
class _Begin:
    """Where a loop goes on after a loss: the arrays of its state as the survivors hold them."""

    resume: Resume
    states: tuple[Stored, ...]

    def entries(self, node: Loop | Cond) -> dict[Expr, Entry]:
        """Return the arrays by the loop's variables."""
        found: dict[Expr, Entry] = {}
        for variable, array in zip(node.variables, self.states, strict=False):
            futures = tuple(self.resume.futures[key.removeprefix(_BEFORE)] for key in array.keys)
            found[variable] = Entry(array, futures)
        return found


class Looper:
    """Runs loops and branches whose inputs are stored.

    Parameters
    ----------
    config, engine, gang, store
        Of the session.
    emit
        Called with every event.
    """

    def __init__(
        self,
        config: Config,
        engine: DaskEngine,
        gang: GangEngine,
        store: Store,
        emit: Callable[[Event], None],
    ) -> None:
        self._config, self._engine, self._gang, self._store, self._emit = config, engine, gang, store, emit
        self._begins: dict[Expr, _Begin] = {}
        self._plans = ControlPlans()

    def forget(self) -> None:
        """Let go of the states from which loops that lost a worker were to go on."""
        self._begins.clear()

    def plan(
        self, node: Loop | Cond, entries: Mapping[Expr, Entry], workers: Workers, wanted: Collection[Expr]
    ) -> ControlPlan:
        """Return how a loop or branch runs; ``entries`` are those of its inputs.

        A loop that lost a worker goes on from the last state that the others have.
        """
        begin = self._begins.get(node)
        stored = {one: entry.stored for one, entry in entries.items()}
        return self._plans.plan(node, stored, workers, wanted, None if begin is None else begin.states)

    def run(
        self,
        node: Loop | Cond,
        plan: ControlPlan,
        entries: Mapping[Expr, Entry],
        run: str,
        record: Recording | None,
    ) -> tuple[LoopFinished, tuple[TaskTimed, ...]]:
        """Run a loop or branch as planned, store what it gives, and tell how it went and what took how long.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        ClusterError
            When ``engine="gang"`` was asked for and no gang came together.
        """
        begin = self._begins.pop(node, None)
        arrays = {**entries, **({} if begin is None else begin.entries(node))}
        given = {name: arrays[one].futures[number] for name, (one, number) in plan.given.items()}
        resume = None if begin is None else begin.resume

        num_done = 0 if resume is None else resume.iteration

        def told(iterations: int, seconds: float) -> None:
            nonlocal num_done
            num_done = iterations
            self._emit(LoopAdvanced(run, iterations, seconds))

        if isinstance(node, Loop):
            told(num_done, 0.0)
        try:
            done, reason = self._done(plan, given, _counts(plan, arrays), resume, told)
        except TaskFailed as error:
            raise cell_error(error.failed, plan.stages, record, plan.origins) from None
        except RunCancelled as error:
            words = ""
            if isinstance(node, Loop):
                done_words = plural_text(num_done, "iteration")
                words = f", after at least {done_words} of a loop, whose state is not kept"
            raise CellCancelled(f"{error}{words}") from None
        except OwnersLost:
            self._remember(node, plan)
            raise
        self._keep(plan, done)
        gang = done if isinstance(done, GangOutcome) else None
        finished = LoopFinished(
            run=run,
            engine="dask" if gang is None else "gang",
            reason=reason,
            iterations=done.iterations,
            num_tasks=plan.num_tasks,
            num_members=0 if gang is None else gang.num_members,
            sent_bytes=0 if gang is None else gang.sent_bytes,
            allocated=() if gang is None else gang.allocated,
            projected_bytes=sum(plan.peaks.values()),
            seconds=done.seconds,
            is_branch=isinstance(node, Cond),
        )
        return finished, done.timed

    def _done(
        self,
        plan: ControlPlan,
        given: Mapping[str, Kept],
        counts: Mapping[str, tuple[int, int]],
        resume: Resume | None,
        told: Callable[[int, float], None],
    ) -> tuple[GangOutcome | Driven, str]:
        # How it went, and why no gang ran it.
        reason = "" if self._config.engine != "dask" else 'engine="dask"'
        if not reason:
            try:
                return self._gang.run(plan.program, given, resume, told), ""
            except GangUnavailable as error:
                reason = error.reason
                if self._config.engine == "gang":
                    raise ClusterError(
                        f'no gang ran this loop: {reason}; try again, or let engine="auto" do it task by task'
                    ) from None
        first = 0 if resume is None else resume.iteration
        return Driver(self._engine, plan.program, given, counts, told, first).run(), reason

    def _remember(self, node: Loop | Cond, plan: ControlPlan) -> None:
        resume = self._gang.recover(self._gang.epoch)
        if resume is None:
            return
        states = []
        for array in plan.states:
            owners = tuple(resume.owners[key] for key in array.keys)
            keys = tuple(f"{_BEFORE}{key}" for key in array.keys)
            states.append(Stored(Layout(array.layout.grid, owners), keys, array.block_nnz, array.block_bytes))
        self._begins[node] = _Begin(resume, tuple(states))

    def _keep(self, plan: ControlPlan, done: GangOutcome | Driven) -> None:
        self._engine.adopt(done.futures)
        for node, array in plan.outputs.items():
            stored = array
            if all(key in done.counts for key in array.keys):
                nnz, sizes = zip(*(done.counts[key] for key in array.keys), strict=True)
                stored = replace(array, block_nnz=nnz, block_bytes=sizes)
            futures = tuple(done.futures[key] for key in array.keys)
            self._store.add(node, Entry(stored, futures, done.seconds), lifetime(node))


def _counts(plan: ControlPlan, arrays: Mapping[Expr, Entry]) -> dict[str, tuple[int, int]]:
    # Entries and bytes of what is given, as far as they are known.
    found = {}
    for name, (one, number) in plan.given.items():
        stored = arrays[one].stored
        if stored.block_nnz:
            found[name] = stored.block_nnz[number], stored.block_bytes[number]
    return found


def missing_results(node: Loop | Cond, order: Collection[Expr], store: Store) -> list[Expr]:
    """Return what a loop or branch is to give; nothing where all that ``order`` asks of it is stored.

    What handles stand for is made on the way, and so is the number of a loop's iterations.
    """
    own = [node, *(Final(node, place) for place in range(len(results_of(node))))]
    asked = set(own).intersection(order)
    if all(one in store for one in asked):
        return []
    live = live_expressions()
    return [one for one in own if one is node or one in asked or one in live]
