"""The one long-lived mutable object: a cluster, what is stored on it, and how expressions become values."""

from __future__ import annotations

import secrets
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

from matnb.backend.answers import OwnersLost
from matnb.backend.cluster import Cluster
from matnb.backend.engine_dask import DaskEngine, Outcome, RunCancelled, TaskFailed
from matnb.backend.engine_gang import GangEngine
from matnb.backend.store import Entry, Store
from matnb.balance.decision import Decision
from matnb.balance.history import History
from matnb.blocks.formats import Block, Dense
from matnb.blocks.layout import Layout
from matnb.config import Config
from matnb.errors import CellCancelled, TooLargeError, UnsupportedError, WorkerLostError
from matnb.events import CellRecorded, Event
from matnb.io.result_folder import ResultFolder
from matnb.io.source import Found, Source
from matnb.lazy.array import live_expressions
from matnb.lazy.expr import Data, Expr
from matnb.lazy.holdings import keep_copy
from matnb.lazy.interpret import block_of, interpret
from matnb.lazy.meanings.registry import Value
from matnb.lazy.memo import is_small
from matnb.lazy.recording import Recording, active_recording
from matnb.lazy.traverse import topological
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_bytes, estimate_entries
from matnb.plan.lower import lower
from matnb.plan.place import default_layout, layout_tag
from matnb.plan.plan import Stored
from matnb.plan.report import RunReport, total
from matnb.plan.sources import reading_plan
from matnb.session.balancing import Balancer
from matnb.session.failures import cell_error
from matnb.session.looking import Looker
from matnb.session.rolling import roll
from matnb.session.running import Runner, whole
from matnb.session.status import Status


class Session:
    """A cluster in use. Made by :func:`matnb.start` and :func:`matnb.connect`; a context manager."""

    def __init__(self, config: Config, cluster: Cluster, folder: ResultFolder | None = None) -> None:
        self.config, self.cluster = config, cluster
        # Sessions one after another in a process, or at once on a cluster, must not take each other's names.
        prefix = f"matnb-{secrets.token_hex(4)}-"
        in_process = cluster.owned and not config.processes
        self._engine = DaskEngine(cluster, prefix, in_process)
        self._gang = GangEngine(cluster, prefix, in_process)
        self._store = Store(config.memo_bytes)
        self._listeners: list[Callable[[Event], None]] = []
        self._lock = threading.RLock()
        self._runner = Runner(config, cluster, self._engine, self._gang, self._store, self._emit, folder)
        self.memo = self._runner.memo
        self._interpreted: WeakKeyDictionary[Expr, Value] = WeakKeyDictionary()
        self.ended = False

    def __repr__(self) -> str:
        return "Session (ended)" if self.ended else f"Session on {self.cluster.description}"

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the session: release every array, and stop the cluster if it is ours; do nothing if ended."""
        if not self.ended:
            self.ended = True
            self._store.clear()
            self._gang.close()
            self.cluster.close()

    def subscribe(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call ``listener`` with every event; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def status(self) -> Status:
        """Return what the session is now."""
        self._runner.planner.retain()
        workers, idle = self._runner.planner.workers(), self._store.idle()
        return Status(
            self.cluster.description,
            len(workers.numbers),
            workers.slots,
            self._store.num_bytes,
            self.config.memo_bytes,
            len(self._store.entries()),
            self.config.engine,
            self.memo.num_values,
            len(idle),
            sum(entry.num_bytes for entry in idle),
            self.config.remembers,
            *self.memo.files,
        )

    # values

    def value(self, node: Expr) -> Block:
        """Compute an expression and return a copy of its value in this process.

        Raises
        ------
        TooLargeError
            When the result exceeds the limit of ``compute()``.
        """
        self._check_limit(node, 0 if node.sparse else estimate_bytes(node, node.size))
        if self.config.engine == "interpret":
            (node,) = self.rolled([node])
            return block_of(interpret(node, self._interpreted))
        if (small := self.memo.take(node)) is not None:
            return small
        with self._lock:
            (node,) = self.rolled([node])
            return self._runner.retried(lambda: self._value(node))

    def small_value(self, node: Expr) -> Dense | None:
        """Return the value of a small array that has come back from the workers before."""
        return self.memo.value(node)

    def _value(self, node: Expr) -> Block:
        entry = self._store.entry(node)
        if entry is None:
            ran = self._runner.run({"value": node}, live_expressions(), fetch=["value"])
            if "value" in ran.fetched:
                self.memo.keep([node])
                return ran.fetched["value"]
            entry = ran.entries["value"]
        else:
            self.memo.count([node])
        self._check_limit(node, entry.num_bytes)
        blocks = self._engine.gather(entry.futures, entry.stored.layout.owners)
        block = whole(node, entry.stored.layout, blocks)
        self.memo.keep_value(block, node)
        self.memo.keep([node], blocks.__getitem__)
        return block

    def persist(self, nodes: Sequence[Expr]) -> None:
        """Compute expressions in one run and keep them on the workers."""
        with self._lock:
            nodes = self.rolled(nodes)
            for node in nodes:
                self._store.pin(node)
            self.make(nodes)

    def make(self, nodes: Sequence[Expr]) -> None:
        """Compute expressions in one run, and remember their arrays."""
        nodes = self.rolled(nodes)
        if self.config.engine == "interpret":
            for node in nodes:
                interpret(node, self._interpreted)
            return
        with self._lock:
            self._runner.run({f"array {place}": node for place, node in enumerate(nodes)}, live_expressions())
            self.memo.keep(nodes)

    def rolled(self, nodes: Sequence[Expr], record: Recording | None = None) -> list[Expr]:
        """Return what is wanted, with the loops of Python's that a cell ran as one node each.

        Without a record they are those of the cell that is running now, if one is. Handles get the loops too.
        """
        known = self._interpreted if self.config.engine == "interpret" else self._store
        return roll(nodes, record or active_recording(), known)

    def run(self, roots: Mapping[str, Expr], record: Recording | None, keep: Sequence[str] = ()) -> RunReport:
        """Run what a cell ends with, and return what there is to tell.

        Parameters
        ----------
        roots
            Named expressions.
        record
            What the cell recorded, for the counts and the lines of errors.
        keep
            Names to compute even if they exceed the memo's budget.
        """
        with self._lock:
            if record is not None:
                self._emit(CellRecorded(record.num_operations, record.num_merged))
            roots = dict(zip(roots, self.rolled(list(roots.values()), record), strict=True))
            named = {**roots, **(record.names if record is not None else {})}
            self._runner.balancer.groups.names.update({node: name for name, node in named.items()})
            known = self._store.find(topological(roots.values(), self._store))
            entries = estimate_entries(roots.values(), known)
            lazy = tuple(
                name
                for name, node in roots.items()
                if name not in keep and estimate_bytes(node, entries[node]) > self.config.memo_bytes
            )
            chosen = {name: node for name, node in roots.items() if name not in lazy}
            if self.config.engine == "interpret":
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
                self.memo.keep(chosen.values())
            runs = tuple(record.runs) if record else ()
            counts = (record.num_operations, record.num_merged) if record else (0, 0)
            loops = tuple(record.loops) if record else ()
            text = ""
            if record is not None:
                text = "\n".join([record.plan_text, *(f"loop\n{one}" for one in record.loop_texts)]).lstrip(
                    "\n"
                )
            recuts = tuple(record.recuts) if record else ()
            return RunReport(total(runs, loops, *counts), lazy, text, loops, recuts)

    # where arrays are cut

    @property
    def history(self) -> History:
        """What was decided about re-cutting arrays, and what it brought."""
        return self._runner.balancer.history

    @property
    def rebalance(self) -> str:
        """What decides when arrays are re-cut, in a word: what was asked for, or "replay" for a trace."""
        return self._runner.balancer.setting

    def set_rebalance(self, rebalance: object) -> None:
        """Let something else decide from now on: as ``rebalance=`` of :func:`matnb.start`."""
        with self._lock:
            self._runner.balancer.set(rebalance)

    def rebalance_now(self) -> tuple[Decision, ...]:
        """Re-cut every stored sparse array that is badly cut, by what is known; return what was decided."""
        with self._lock:
            return self._runner.retried(self._runner.balancer.ask_now)

    def lay_out(self, nodes: Sequence[Expr], work: Callable[[Balancer], None], stored: bool = True) -> None:
        """Change how arrays are laid out, computing them first if they must be there; not interpreted."""
        if self.config.engine == "interpret":
            return

        def done() -> None:
            if stored:
                self.make(nodes)
            work(self._runner.balancer)

        with self._lock:
            self._runner.retried(done)

    # a person's large arrays

    def ship(self, node: Data, block: Block) -> None:
        """Send a person's large array to the workers now, so that no copy stays in this process."""
        if self.config.engine == "interpret":
            keep_copy(node, block)
            return
        with self._lock:
            self._runner.retried(lambda: self._ship(node, block))

    def _ship(self, node: Data, block: Block) -> None:
        self._runner.planner.drop_dead()
        if node in self._store:
            return
        layout = default_layout(node, block.nbytes, self._runner.planner.workers(), block)
        base = f"{node.digest.hex()}-{layout_tag(layout)}"
        self._store.add_given(node, Entry(*self._engine.ship_array(block, layout, base)))

    # files

    def read(self, source: Source, name: Callable[[Found], Sequence[Expr]]) -> tuple[Found, Sequence[Expr]]:
        """Read a source through on the workers, and return what is known of it and the arrays it gives.

        Parameters
        ----------
        source
            What to read.
        name
            Gives the expressions of the arrays, once shape and dtype are known.
        """
        with self._lock:
            return self._runner.retried(lambda: self._read(source, name))

    def _read(self, source: Source, name: Callable[[Found], Sequence[Expr]]) -> tuple[Found, Sequence[Expr]]:
        plan, keys, told = reading_plan(source, self._runner.planner.workers())
        outcome: Outcome | None = None
        try:
            outcome = self._engine.run(plan, (told,), keys)
            found: Found = outcome.fetched[told]
            wanted = name(found)
            stored = self._store.find(wanted)
            missing = [node for node in wanted if node not in stored]
            present = {task.key: task.owner for task in plan.tasks}
            blocks = lower(missing, (), stored, self._runner.planner.workers(), present)
            self._runner.planner.check_memory(blocks)
            made = self._engine.run(blocks)
            timed = (*outcome.timed, *made.timed)
        except TaskFailed as error:
            raise cell_error(error.failed, plan.stages, None) from None
        except RunCancelled as error:
            raise CellCancelled(str(error)) from None
        finally:
            outcome = None  # the pieces go from the workers, though an error's traceback keeps this frame
        self._runner.keep(made, blocks, sum(one.seconds for one in timed))
        self._runner.tell_times(timed)
        return found, wanted

    def blocks(self, node: Expr) -> tuple[Layout, Callable[[int], Block]]:
        """Compute an expression, and return its layout and a function that brings one block by number.

        Raises
        ------
        UnsupportedError
            With the interpreter, which has no blocks.
        """
        if self.config.engine == "interpret":
            raise UnsupportedError('mn.save writes from the workers; use engine="auto"')
        with self._lock:
            (node,) = self.rolled([node])
            ran = self._runner.run({"value": node}, live_expressions())
        entry = ran.entries["value"]

        def bring(number: int) -> Block:
            owner = entry.stored.layout.owners[number]
            try:
                (block,) = self._engine.gather([entry.futures[number]], [owner])
            except OwnersLost:
                raise WorkerLostError("a worker was lost while an array was written; save it again") from None
            return block

        return entry.stored.layout, bring

    # looking

    def stored(self, node: Expr) -> Stored | None:
        """Return where an expression's blocks are, or None; computes nothing."""
        entry = self._store.entry(node)
        return None if entry is None else entry.stored

    def explain(self, roots: Mapping[str, Expr], stage: str | None = None, measured: bool = False) -> str:
        """Return how expressions would be computed, as :meth:`matnb.session.looking.Looker.explain` does."""
        with self._lock:
            return self._looker(measured).explain(roots, stage)

    def picture(self, roots: Mapping[str, Expr], stage: str, measured: bool = False) -> Picture:
        """Return a picture of how expressions would be computed."""
        with self._lock:
            return self._looker(measured).picture(roots, stage)

    def _looker(self, measured: bool) -> Looker:
        measures = self._runner.measures
        return Looker(
            self._runner.planner,
            self._store,
            measures if measured else measures.without_seconds(),
            self.memo,
        )

    def _check_limit(self, node: Expr, size: int) -> None:
        if size > self.config.compute_limit_bytes:
            raise TooLargeError(
                f"a result of shape {node.shape} {node.dtype} is {bytes_text(size)}, over the limit of "
                f"{bytes_text(self.config.compute_limit_bytes)} for bringing values into this process; "
                "reduce or slice it, keep it on the workers with persist(), write it with mn.save, or raise "
                "the limit with mn.start(compute_limit=...)"
            )

    def _emit(self, event: Event) -> None:
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception as error:  # they only look: what is looked at goes on
                warnings.warn(f"a listener to events raised {type(error).__name__}: {error}", stacklevel=2)
