"""The one long-lived mutable object: a cluster, what is stored on it, and how expressions become values."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp

from matnb.backend.cluster.cancellation import CancelScope, deferred, resend_dropped
from matnb.backend.cluster.dask_cluster import Attendance, DaskCluster
from matnb.backend.engines.context import EngineContext
from matnb.backend.engines.driver_loops import PlanEngine
from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.engine_gang import GangEngine
from matnb.backend.engines.engine_processes import ProcessEngine
from matnb.backend.engines.engine_threads import ThreadEngine
from matnb.backend.engines.futures import Answers, OwnersLost
from matnb.backend.engines.results import Outcome
from matnb.backend.engines.telemetry import Telemetry
from matnb.backend.store import Entry, Store
from matnb.balance.decision import Decision
from matnb.balance.history import History
from matnb.blocks.formats import Block, Dense, csr_block, to_scipy
from matnb.blocks.layout import Layout
from matnb.config import Config, parse_bytes
from matnb.errors import CellCancelled, TooLargeError, UnsupportedError, WorkerLostError
from matnb.events import CellRecorded, Event, SessionAwaited, SessionStopped
from matnb.expr.client_data import keep_copy
from matnb.expr.nodes import Data, Expr, Literal, Load
from matnb.expr.retention import is_small
from matnb.expr.traverse import topological
from matnb.io.files import files_of
from matnb.io.results import ResultFolder
from matnb.io.source import Source, SourceFacts
from matnb.lazy.handles import live_expressions
from matnb.lazy.limits import check_limit
from matnb.lazy.loop_rolling import roll
from matnb.lazy.recording import Recording, active_recording
from matnb.ops.creation import reading_plan
from matnb.ops.interpret import interpret
from matnb.ops.reference import Value, block_of
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import plural_text
from matnb.pictures.summary import interrupted_text
from matnb.plan.estimate import estimate_entries
from matnb.plan.explain import LAST_VALUE
from matnb.plan.lower import lower
from matnb.plan.report import RunReport, total
from matnb.program.memory import estimate_bytes
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.session.array_facts import ValuesThere
from matnb.session.background import Background, Later
from matnb.session.failures import raised_in_cell
from matnb.session.inspect import Looker
from matnb.session.listeners import Convergence, Listeners, Subscription
from matnb.session.memo import Memo
from matnb.session.naming import name_roots
from matnb.session.overrides import chosen, engine_of, hiding, note_written, remembers
from matnb.session.rebalance import Balancer
from matnb.session.run import Runner, whole
from matnb.session.run_listeners import CHEAP


class Session:
    """A cluster in use. Made by :func:`matnb.start` and :func:`matnb.connect`; a context manager."""

    def __init__(self, config: Config, cluster: DaskCluster, folder: ResultFolder | None = None) -> None:
        self.config, self.cluster, self.ended = config, cluster, False
        # Sessions one after another in a process, or at once on a cluster, must not take each other's names.
        prefix = f"matnb-{secrets.token_hex(4)}-"
        cluster.leave_nothing_of(prefix)
        cluster.keep_freed_memory(prefix)
        self._listeners = Listeners(self._sample)
        self._telemetry = Telemetry(cluster, prefix, self._listeners.tell_sample)
        self._engine = self._engine_for(prefix)
        self._gang = GangEngine(cluster, prefix, telemetry=self._telemetry)
        self._store = Store(hiding)
        self._runner = Runner(config, cluster, self._engine, self._gang, self._store, self.tell, folder)
        self._convergence = self._runner.log.convergence
        self.memo, self.listeners = self._runner.memo, self._runner.listeners
        self._interpreter = Interpreter(config, self._store, self._value, cluster.stopping, self._convergence)
        self.values_there = ValuesThere(self._store, self.memo, self._interpreter.here, Answers(cluster))
        self._lock = SessionLock(cluster.stopping, self.tell, lambda thread: self._background.found(thread))
        self._background = Background(cluster.stopping, self._lock)
        self._end_resending = resend_dropped()
        self._reported_at = time.monotonic()  # which workers are gone

    def _engine_for(self, prefix: str) -> PlanEngine:
        context, in_process = EngineContext(self.cluster, prefix, self._telemetry), self.cluster.in_process
        if not self.cluster.owned:
            return DaskEngine(context)

        def wants_tasks() -> bool:
            # In other processes what is not remembered here has to stay on the workers.
            return engine_of(self.config) == "dask" or not (in_process or remembers(self.config))

        return (ThreadEngine if in_process else ProcessEngine)(context, wants_tasks)

    def __repr__(self) -> str:
        return "Session (ended)" if self.ended else f"Session on {self.cluster.description}"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __await__(self) -> Generator[None, None, Session]:
        """Give the session, which is there already, to who writes ``await`` as for a client of Dask's."""
        return self
        yield

    def close(self) -> None:
        """End the session: release every array, and stop the cluster if it is ours; do nothing if ended."""
        if self.ended:
            return
        self.ended = True
        with deferred(), ExitStack() as stack:  # each is closed though another cannot be
            stack.callback(self._end_resending)
            stack.callback(self.cluster.close)
            if not self.cluster.owned:  # else it ends with the workers, which may not answer
                stack.callback(self._gang.close)
            stack.callback(self._telemetry.close)
            stack.callback(self._store.clear)
            stack.callback(self._background.close)
            self.tell(SessionStopped())

    def subscribe(self, listener: Callable[[Event], None], samples: bool = False) -> Subscription:
        """Call ``listener`` with every event; the returned function ends that.

        Parameters
        ----------
        samples
            Whether it also hears how the workers do, a few times a second: WorkersBusy and WorkersSampled,
            which may come on another thread. Workers are sampled only while a listener wants it.
        """
        return self._listeners.add(listener, samples)

    def cancel(self) -> bool:
        """Cancel what runs now, from any thread, as an interrupt does: finished blocks stay.

        The thread that runs gets CellCancelled within two seconds, and the session works on. With
        ``engine="interpret"`` the operation that NumPy is in comes to its end before.

        Returns
        -------
        bool
            Whether anything was running.
        """
        return self.cluster.stopping.ask()

    def stoppable(self, around: bool = False) -> AbstractContextManager[None]:
        """Return a scope in which :meth:`cancel` reaches this thread between two runs, too.

        ``around`` says that it is around whatever a user runs: there :meth:`cancel` means other threads.
        """
        return self.cluster.stopping.scope(around)

    def status(self) -> Status:
        """Return what the session is now, at once, also when no worker is left."""
        self._runner.planner.retain()
        workers, attendance = self._runner.planner.present()
        parts = (self._store, self.memo, self.config, self._runner.planner.memo_bytes)
        return status_of(self.cluster.description, workers, attendance, *parts)

    # values

    def value(self, node: Expr) -> Block:
        """Compute an expression and return a copy of its value in this process.

        Raises
        ------
        TooLargeError
            When the result exceeds the limit of ``compute()``.
        """
        self.check_result(node)
        if self._interpreter.is_used:
            (node,) = self.rolled([node])
            return self._interpreter.value(node, self.check_result)
        with self._convergence, self.memo.request():
            if (small := self.memo.get_small(node)) is not None:
                with self.stoppable():  # for a wish that came before
                    return small
            with self._lock:
                (node,) = self.rolled([node])
                if self._store.entry(node) is not None:
                    self.memo.touch([node])
                    return self._runner.retried(lambda: self._value(node))
                ran = self._runner.run({"value": node}, live_expressions(), fetch=["value"])
                if "value" in ran.fetched:
                    self.memo.pin([node])
                    return ran.fetched["value"]
                made = dict(ran.entries)  # they outlast the budget until their values were fetched
                del ran
                return self._runner.retried(lambda: self._value(node, made.pop("value", None)))

    def glance(self, node: Expr) -> Block | None:
        """Compute an expression to show it if that is cheap by the plan's estimate, and nothing runs now."""
        there = isinstance(node, Literal | Data) or self.values_there.here(node) is not None
        if there or self.stored(node) is not None or self._lock.depth:
            return None
        with self._lock:
            workers = [self.cluster.workers[number] for number in self.cluster.alive()]
            known = self._store.find(topological([node], self._store))
            if not any(is_cheap(node, known, workers, self.config.node_grid) for is_cheap in CHEAP):
                return None
            return self.value(node)

    def check_result(self, node: Expr, num_entries: int = 0) -> None:
        """Refuse to bring an array into this process if it, with so many stored entries, is above the limit.

        Raises
        ------
        TooLargeError
            With the numbers, and what to do.
        """
        size = estimate_bytes(node, num_entries if node.sparse else node.size)
        check_limit(self.config.compute_limit_bytes, node, size)

    def small_value(self, node: Expr) -> Dense | None:
        """Return the value of a small array that has come back from the workers, or was interpreted."""
        found = self._interpreter.small(node) if self._interpreter.is_used else None
        return self.memo.value(node) if found is None else found

    def _value(self, node: Expr, entry: Entry | None = None) -> Block:
        # Of an array that was there, or was just made; made again where its worker was lost meanwhile.
        if entry is None:
            entry = self._store.entry(node)
        if entry is None:
            entry = self._runner.run({"value": node}, live_expressions()).entries["value"]
        if entry.stored.block_nnz:
            self.check_result(node, sum(entry.stored.block_nnz))
            blocks = self._engine.blocks.gather(entry.futures, entry.stored.layout.owners)
        else:  # the counts of an interrupted run are not known
            blocks, num_entries = [], 0
            for future, owner in zip(entry.futures, entry.stored.layout.owners, strict=True):
                blocks += self._engine.blocks.gather([future], [owner])
                num_entries += blocks[-1].nnz
                self.check_result(node, num_entries)
        block = whole(node, entry.stored.layout, blocks)
        self.memo.put(block, node)
        self.memo.pin([node], blocks.__getitem__)
        return block

    def persist(self, nodes: Sequence[Expr]) -> None:
        """Compute expressions in one run and keep them on the workers."""
        with self._convergence, self._lock, self.memo.request():
            nodes = self.rolled(nodes)
            for node in nodes:
                self._store.pin(node)
            self._make(nodes)

    def make(self, nodes: Sequence[Expr]) -> None:
        """Compute expressions in one run, and remember their arrays."""
        self._make(self.rolled(nodes))

    def _make(self, nodes: Sequence[Expr]) -> None:
        if self._interpreter.is_used:
            for node in nodes:
                self._interpreter.make(node)
            return
        with self._convergence, self._lock, self.memo.request():
            self._runner.run({f"array {place}": node for place, node in enumerate(nodes)}, live_expressions())
            self.memo.pin(nodes)

    def rolled(self, nodes: Sequence[Expr], record: Recording | None = None) -> list[Expr]:
        """Return what is wanted, with the loops of Python's that a cell ran as one node each.

        Without a record they are those of the cell that is running now, if one is. Handles get the loops too.
        """
        known = self._interpreter.known if self._interpreter.is_used else self._store
        return roll(nodes, record or active_recording(), known)

    def run(self, roots: Mapping[str, Expr], record: Recording, keep: Sequence[str] = ()) -> RunReport:
        """Run what a cell ends with, and return its report.

        Parameters
        ----------
        roots
            Named expressions.
        record
            What the cell recorded, for the counts and the lines of errors.
        keep
            Names to compute even if they exceed the memo's budget.
        """
        with self._convergence, self._lock, self.memo.request():
            note_written(record)
            self.tell(CellRecorded(record.num_operations, record.num_merged))
            roots = dict(zip(roots, self.rolled(list(roots.values()), record), strict=True))
            record.notes += name_roots(roots, record, self._store)
            entries: Mapping[Expr, int] = {}
            if sparse := [node for node in roots.values() if node.sparse]:
                entries = estimate_entries(sparse, self._store.find(topological(sparse, self._store)))
            lazy = tuple(
                name
                for name, node in roots.items()
                if name not in keep
                and estimate_bytes(node, entries.get(node, node.size)) > self._runner.planner.memo_bytes
            )
            chosen = {name: node for name, node in roots.items() if name not in lazy}
            if self._interpreter.is_used:
                self.make(list(chosen.values()))
            elif chosen:
                small = [
                    name
                    for name, node in chosen.items()
                    if not node.sparse and is_small(node, estimate_bytes(node, node.size))
                ]
                self._runner.run(chosen, set(), fetch=small, record=record)
                for name in small:
                    if chosen[name] not in self.memo:  # its blocks were there already
                        self.value(chosen[name])
                self.memo.pin(chosen.values())
            loops = tuple(record.loops)
            texts = (*([record.plan_text] if record.plan_text else []), *record.loop_texts)
            return RunReport(
                total(tuple(record.runs), loops, record.num_operations, record.num_merged, record.loads),
                lazy,
                texts,
                loops,
                tuple(record.repartitions),
                self._workers_text(),
                tuple(record.notes),
            )

    def _workers_text(self) -> str:
        # Of each loss once, and that workers are missing as long as they are.
        if not self.cluster.seconds_away:
            self.cluster.refresh_if_changed()
        attendance = self.cluster.attendance(self._reported_at)
        self._reported_at = attendance.seconds
        return attendance_text(attendance, attendance.num_gone)

    def later(
        self,
        roots: Mapping[str, Expr],
        record: Recording,
        keep: Sequence[str] = (),
        value: object = None,
        cell: int | None = None,
    ) -> Later:
        """Run what a cell ends with in the background, after what was given before, and return a handle.

        Parameters
        ----------
        roots, record, keep
            As :meth:`run` takes them.
        value
            What the handle's result is.
        cell
            The number of the cell, for messages of those that wait for it.
        """
        names = {node: name for name, node in roots.items()}
        names |= {node: name for name, node in roots.items() if name.isidentifier() and name != LAST_VALUE}

        def work() -> RunReport:
            with ExitStack() as stack:
                stack.callback(self.subscribe(found.hear))
                return self.run(roots, record, keep).without_plans()  # a handle on it may stay for long

        found = Later(list(names.values()), value, work, record.filename, cell)
        self._background.add(found)
        return found

    # where arrays are cut

    @property
    def history(self) -> History:
        """What was decided about repartitioning arrays, and what it gained."""
        return self._runner.balancer.decider.history

    @property
    def rebalance(self) -> str:
        """Who decides when arrays are repartitioned, in a word: what was asked for, or "replay"."""
        return self._runner.balancer.decider.setting.name

    def set_compute_limit(self, limit: str | int) -> None:
        """Let results up to another size be brought into this process from now on.

        Parameters
        ----------
        limit
            Bytes, such as ``"8GB"``; also of what is read into this process from elsewhere.

        Raises
        ------
        OptionError
            For what is no size, or below one byte.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.current_session().set_compute_limit("8GB")
        """
        self.config = replace(self.config, compute_limit_bytes=parse_bytes(limit, "compute_limit"))

    def set_rebalance(self, rebalance: object) -> None:
        """Let something else decide from now on: as ``rebalance=`` of :func:`matnb.start`."""
        with self._lock:
            self._runner.balancer.set(rebalance)

    def rebalance_now(self) -> tuple[Decision, ...]:
        """Repartition every stored sparse array that is badly cut by what is known; return the decisions."""
        with self._lock:
            return self._runner.retried(self._runner.balancer.ask_now)

    def lay_out(self, nodes: Sequence[Expr], work: Callable[[Balancer], None], stored: bool = True) -> None:
        """Change how arrays are laid out, computing them first if they must be there; not interpreted."""
        if self._interpreter.is_used:
            return

        def done() -> None:
            if stored:
                self.make(nodes)
            work(self._runner.balancer)

        with self._lock:
            self._runner.retried(done)

    # a user's large arrays

    def ship(self, node: Data, block: Block) -> None:
        """Send a user's large array to the workers now, keeping a copy here that takes no memory more.

        Workers in this process share the copy; of what goes to others it is a file without a name.
        """
        if self._interpreter.is_used:
            keep_copy(node, block)
            return
        with self._lock:
            self._runner.retried(lambda: self._runner.ship(node, block))

    # files

    def read(
        self, source: Source, name: Callable[[SourceFacts], Sequence[Expr]]
    ) -> tuple[SourceFacts, Sequence[Expr]]:
        """Read a source through on the workers, and return what is known of it and the arrays it gives.

        Parameters
        ----------
        source
            What to read.
        name
            Gives the expressions of the arrays, once shape and dtype are known.
        """
        with self._lock:
            parts = (self._engine, self._store, self._runner)
            return self._runner.retried(lambda: read_source(source, name, *parts))

    def blocks(self, node: Expr) -> tuple[Layout, Callable[[int], Block]]:
        """Compute an expression, and return its layout and a function that brings one block by number.

        Raises
        ------
        UnsupportedError
            With the interpreter, which has no blocks.
        """
        if self._interpreter.is_used:
            raise UnsupportedError('mn.save writes from the workers; use engine="auto"')
        with self._lock, self.memo.request():
            (node,) = self.rolled([node])
            ran = self._runner.run({"value": node}, live_expressions())
        entry = ran.entries["value"]

        def bring(number: int) -> Block:
            owner = entry.stored.layout.owners[number]
            try:
                (block,) = self._engine.blocks.gather([entry.futures[number]], [owner])
            except OwnersLost:
                raise WorkerLostError("a worker was lost while an array was written; save it again") from None
            return block

        return entry.stored.layout, bring

    # looking

    def stored(self, node: Expr) -> StoredArray | None:
        """Return where an expression's blocks are, or None; computes nothing."""
        entry = self._store.entry(node)
        return None if entry is None else entry.stored

    def explain(self, roots: Mapping[str, Expr], stage: str | None = None, measured: bool = False) -> str:
        """Return how expressions would be computed, as :meth:`matnb.session.inspect.Looker.explain` does."""
        with self._lock:
            return self._looker(measured).explain(roots, stage)

    def picture(self, roots: Mapping[str, Expr], stage: str | None = None, measured: bool = False) -> Picture:
        """Return a picture of how expressions would be computed."""
        with self._lock:
            return self._looker(measured).picture(roots, stage)

    def planned_layout(self, node: Expr) -> Layout:
        """Return how an expression would lie if it were computed now, as :class:`Looker` does."""
        with self._lock:
            return self._looker(False).layout(node)

    def _looker(self, measured: bool) -> Looker:
        measures = self._runner.log.measures
        seen = measures if measured else measures.without_seconds()
        return Looker(self._runner.planner, self._store, seen, self.memo, self._interpreter.is_used)

    def tell(self, event: Event) -> None:
        """Call the listeners."""
        self._listeners.tell(event)

    def _sample(self, wanted: bool) -> None:
        (self._telemetry.begin if wanted else self._telemetry.end)()


# One thread at a time uses a session; a thread that waits learns for what, and can be cancelled.

_SHOWN_SECONDS = 0.4  # a shorter wait is not shown
_STEP_SECONDS = 0.1


class SessionLock:
    """Held by the thread that uses a session, which may take it again; a context manager.

    Parameters
    ----------
    stopping
        Of the cluster; looked at while a thread waits.
    tell
        Called when the calling thread waits, and when that has ended.
    found
        Returns what a thread does in the background, and the number of the cell that wrote it.

    Raises
    ------
    CellCancelled
        In the thread that waits, when another thread or an interrupt cancels it.
    """

    def __init__(
        self,
        stopping: CancelScope,
        tell: Callable[[SessionAwaited], None],
        found: Callable[[int | None], tuple[tuple[str, ...], int | None]],
    ) -> None:
        self._stopping, self._tell, self._found = stopping, tell, found
        self._lock = threading.RLock()
        self._owner: int | None = None
        self.depth = 0  # how often it is held

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._wait()
        self._owner = threading.get_ident()
        self.depth += 1

    def __exit__(self, *_: object) -> None:
        self.depth -= 1
        self._lock.release()

    def _wait(self) -> None:
        begin, is_shown, is_held = time.monotonic(), False, False
        names, cell = self._found(self._owner)
        try:
            try:
                while not (is_held := self._lock.acquire(timeout=_STEP_SECONDS)):
                    self._stopping.check()  # if a scope is around this: else only what runs is meant
                    names, cell = self._found(self._owner)
                    if not is_shown and time.monotonic() - begin > _SHOWN_SECONDS:
                        is_shown = True
                        self._tell(SessionAwaited(names, cell))
            finally:
                if is_shown:
                    self._tell(SessionAwaited(is_over=True))
        except BaseException as error:
            if is_held:
                self._lock.release()
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, CellCancelled):
                raise CellCancelled(interrupted_text(names)) from error
            raise


# Values by NumPy and SciPy in this process, where a user sets ``engine="interpret"``.


class Interpreter:
    """Gives values without workers.

    Parameters
    ----------
    bring
        Returns what is on the workers.
    stopping
        Looked at between two operations, for a wish to end what runs.
    convergence
        Receives the progress of loops.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        bring: Callable[[Expr], Block],
        stopping: CancelScope,
        convergence: Convergence,
    ) -> None:
        self._config, self._store, self._bring, self._stopping = config, store, bring, stopping
        self._convergence = convergence
        self._values: WeakKeyDictionary[Expr, Value] = WeakKeyDictionary()

    @property
    def is_used(self) -> bool:
        """Whether values are to be found so now."""
        return engine_of(self._config) == "interpret"

    @property
    def known(self) -> MutableMapping[Expr, Value]:
        """The values that are known; those of a cell that alone wants it so go with the cell."""
        return self._values if self._config.engine == "interpret" else chosen().values

    def value(self, node: Expr, check: Callable[[Expr, int], None]) -> Block:
        """Return the value of an expression, with memory of its own, unless ``check`` refuses its entries."""
        value = self.make(node)
        check(node, value.nnz if sp.issparse(value) else value.size)
        return block_of(value)

    def small(self, node: Expr) -> Dense | None:
        """Return the value of a small dense array if it was found already, to be shown."""
        value = self.known.get(node)
        if value is None or node.sparse or not is_small(node, estimate_bytes(node, node.size)):
            return None
        block = block_of(value)
        return block if isinstance(block, Dense) else None

    def here(self, node: Expr) -> Block | None:
        """Return a value that was found already, to be shown: not a copy."""
        value = self.known.get(node) if self.is_used else None
        if value is None:
            return None
        return csr_block(value) if sp.issparse(value) else Dense(np.asarray(value))

    def make(self, node: Expr) -> Value:
        """Find the value of an expression and keep it."""
        known = self.known
        if self._config.engine != "interpret":  # then only the workers may have what others are made from
            for leaf in topological([node], known):
                if isinstance(leaf, Data | Load) and leaf not in known and leaf in self._store:
                    block = self._bring(leaf)
                    known[leaf] = block.values if isinstance(block, Dense) else to_scipy(block)
        with self._convergence, self._stopping.scope(), self._stopping.heeding():
            return interpret(node, known, self._stopping.check, self._convergence.note)


# A source read through on the workers, and its arrays left there.


def _with_pieces(
    source: Source, blocks: Plan, reading: Plan, outcome: Outcome, found: SourceFacts
) -> dict[int, int]:
    # What making the blocks takes on each worker, beside the pieces that were read, which are there still.
    peaks = dict(blocks.peaks)
    owners = {task.key: task.owner for task in reading.tasks}
    for one in outcome.timed:
        if one.key in owners:
            peaks[owners[one.key]] = peaks.get(owners[one.key], 0) + one.output_bytes
    share = source.placing_bytes(found) // max(1, len(set(owners.values())))
    return {owner: peak + share for owner, peak in peaks.items()}


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    # Names the file that does not fit.
    try:
        yield
    except TooLargeError as error:
        raise TooLargeError(
            f"cannot read {source!r}: {error}; mn.sources.files(path, batch_size=1000) goes through its rows"
        ) from None


def read_source(
    source: Source,
    name: Callable[[SourceFacts], Sequence[Expr]],
    engine: PlanEngine,
    store: Store,
    runner: Runner,
) -> tuple[SourceFacts, Sequence[Expr]]:
    """Read a source and return what is known of it and the expressions of the arrays it gives.

    Parameters
    ----------
    source
        What to read.
    name
        Gives these expressions, once shape and dtype are known.

    Raises
    ------
    OwnersLost
        When a worker was lost.
    CellCancelled
        On an interrupt.
    """
    reading = reading_plan(source, runner.planner.workers())
    plan = reading.plan
    outcome: Outcome | None = None
    with _naming(source):
        runner.planner.check_peaks(plan.peaks, plan.reused)
    with runner.log.stopping():
        read_bytes = sum(file.size for file in files_of(source))
        runner.log.begin(len(plan.tasks), plan.projected_bytes, read_bytes)
        try:
            with raised_in_cell(plan.stages, plan.tasks):
                outcome = engine.run(plan, {}, (reading.told,), reading.held)
                found: SourceFacts = outcome.fetched[reading.told]
                wanted = name(found)
                stored = store.find(wanted)
                missing = [node for node in wanted if node not in stored]
                blocks = lower(missing, (), {}, runner.planner.workers(), reading.slots)
                with _naming(source):
                    peaks = _with_pieces(source, blocks, plan, outcome, found)
                    runner.planner.check_peaks(peaks, blocks.reused)
                made = engine.run(blocks, outcome.kept)
            timed = (*outcome.timed, *made.timed)
            seconds = outcome.seconds + made.seconds
        finally:
            outcome = None  # the pieces go from the workers, though an error's traceback keeps this frame
        runner.keep(made, blocks, sum(one.seconds for one in timed))
        runner.log.finish(plan, timed, seconds)
    if found.edges is not None:
        found = replace(found, nnz=sum(store.find(wanted[:1])[wanted[0]].block_nnz))  # merged ones once
    return found, wanted


# What a session is now, in a few numbers.


@dataclass(frozen=True)
class Status:
    """What a session is now.

    Attributes
    ----------
    stored_bytes, num_arrays
        Of the arrays on the workers; ``memo_bytes`` is their limit, at most half of what the workers have.
    num_gave_way
        Arrays with a handle that went from the workers to make room since the session began.
    num_values
        Small values remembered in this process.
    num_remembered, remembered_bytes
        Of the arrays, those without a handle.
    remembers
        Whether anything is, without a handle.
    num_gone
        Of the workers there have been, those that were lost or left in the last ten minutes; ``num_workers``
        are there now, with ``num_threads`` in all.
    workers_text
        What became of workers that are not there any more; nothing while none is gone.
    memo_dir, file_bytes
        The folder with files of results, if there is one, and what they take.
    """

    description: str
    num_workers: int
    num_threads: int
    stored_bytes: int
    memo_bytes: int
    num_arrays: int
    engine: str
    num_values: int = 0
    num_remembered: int = 0
    remembered_bytes: int = 0
    remembers: bool = True
    num_gone: int = 0
    workers_text: str = ""
    memo_dir: str = ""
    file_bytes: int = 0
    num_gave_way: int = 0


def status_of(
    description: str,
    workers: Workers,
    attendance: Attendance,
    store: Store,
    memo: Memo,
    config: Config,
    memo_bytes: int,
) -> Status:
    """Return what a session on some workers is now."""
    idle = store.idle()
    return Status(
        description,
        len(workers.numbers),
        workers.slots,
        store.num_bytes,
        memo_bytes,
        len(store.entries()),
        config.engine,
        memo.num_values,
        len(idle),
        sum(entry.num_bytes for entry in idle),
        config.remembers,
        attendance.num_gone,
        attendance_text(attendance, attendance.num_gone),
        *memo.files,
        store.num_gave_way,
    )


def attendance_text(attendance: Attendance, num_lost: int) -> str:
    """Return a sentence about workers that are gone, ``num_lost`` of which were not reported yet."""
    num_now, num_asked = attendance.num_now, attendance.num_asked
    lost = plural_text(num_lost, "worker")
    if num_asked is not None and num_now < num_asked:
        there = f"{num_now} of {plural_text(num_asked, 'worker')} there"
        if attendance.trouble:
            return f"{there}: starting another failed ({attendance.trouble}) and is tried again"
        return f"{there}: others are being started in the place of those that were lost"
    if attendance.seconds_away:
        return (
            f"the scheduler has been away for {attendance.seconds_away:.0f} s; it is looked for all the time"
        )
    refused = [f"a worker that came is not used: {why}" for why in attendance.refused]
    if not num_lost:
        return "; ".join(refused)
    if num_asked is not None:
        return f"{plural_text(num_now, 'worker')} now, {lost} lost before and replaced"
    if not num_now:
        return "; ".join([f"no worker is left, {lost} gone: start some on the cluster, and go on", *refused])
    return "; ".join([f"{plural_text(num_now, 'worker')} now, {lost} gone", *refused])
