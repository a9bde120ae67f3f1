"""Plans of expressions over what is stored and alive: where they run, and whether they fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from weakref import WeakKeyDictionary

from matnb.backend.cluster import Attendance, DaskCluster
from matnb.backend.futures import OwnersLost
from matnb.backend.store import Store
from matnb.config import Config
from matnb.errors import SessionEnded, TooLargeError, WorkerLostError
from matnb.expr.client_data import held
from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import Data, Expr, MaskedMatMul, MatMul, Transpose
from matnb.expr.retention import worth_keeping
from matnb.expr.traverse import Either, topological
from matnb.lazy.array import live_expressions
from matnb.lazy.read_ahead import bytes_ahead
from matnb.passes import traced
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_entries
from matnb.plan.lower import lower
from matnb.plan.product_entries import ProductCounts, worth_counting
from matnb.plan.program_cache import PlanCache, Planned, Scattering
from matnb.plan.structural_key import structural_key
from matnb.plan.transposes import scatters
from matnb.program.memory import estimate_bytes
from matnb.program.plan import Plan, Stored, Workers
from matnb.program.writer import Slots

_RECENT_SECONDS = 600.0  # in which a loss is news
_RESTART_SECONDS = 8.0  # a nanny brings a worker back in two to four
_RESTORE_SECONDS = 90.0  # at most, for one of ours that is being started again


class Planner:
    """Plans runs.

    Attributes
    ----------
    in_use
        Expressions whose arrays stay for the run that is under way.
    counted
        At most how many entries products of sparse arrays store, those that were counted.
    num_scattered
        How often each sparse array's transpose met a dense one without being made.
    """

    def __init__(self, config: Config, cluster: DaskCluster, store: Store) -> None:
        self._config, self._cluster, self._store = config, cluster, store
        self.in_use: set[Expr] = set()
        self.num_scattered: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
        self.counted = ProductCounts()
        self._plans = PlanCache()

    def plan(
        self,
        roots: Mapping[str, Expr],
        made: Mapping[Expr, Stored],
        passed: Mapping[str, Expr] | None = None,
    ) -> tuple[Plan, Mapping[Expr, Expr]]:
        """Return a plan for looking, laid out anew, and what each recorded expression became in it.

        Parameters
        ----------
        roots
            Named expressions.
        made
            Arrays that will be there by then.
        passed
            What the passes make of the roots, where that is known.
        """
        _, known, keep = self._needed(roots, set(), made)
        planned = self._anew(roots, keep, known, made, self.workers(), None if keep else passed)
        return planned.plan, planned.optimized

    def planned(self, roots: Mapping[str, Expr], live: set[Expr], products: Sequence[Expr] = ()) -> Planned:
        """Return the plan for the roots, with what is known of its expressions.

        It is an earlier one for other expressions where one of the same form is remembered, and of the same
        counts of ``products``. ``live`` expressions stay if they are computed on the way.

        Raises
        ------
        OwnersLost
            When what a loop or branch gave went with a worker meanwhile.
        """
        needed, known, keep = self._needed(roots, live, {})
        if any(isinstance(node, Loop | Cond | Final) and node not in known for node in needed):
            raise OwnersLost(())
        workers = self.workers()
        counts = tuple(self.counted[one] for one in products)
        return self._plans.planned(
            lambda with_numbers: structural_key(
                needed, known, roots.values(), keep, workers, with_numbers, counts
            ),
            known,
            self._store,
            lambda constants: self._anew(roots, keep, known, {}, workers, constants=constants),
            self._scatters(workers),
        )

    def _needed(
        self, roots: Mapping[str, Expr], live: set[Expr], there: Mapping[Expr, Stored]
    ) -> tuple[list[Expr], dict[Expr, Stored], list[Expr]]:
        # What a plan is made of, what of it is there, and what stays though it is only on the way.
        self.drop_dead()
        needed = topological(roots.values(), Either(there, self._store))
        known = {**self._store.find(needed), **{node: there[node] for node in needed if node in there}}
        # What this run starts from stays for it, such as a loop's last state, on which no name is left.
        self.retain(needed)
        for node in needed:
            if isinstance(node, Data) and node not in known and held(node) is None:
                raise SessionEnded(
                    f"an array of shape {node.shape} was sent to workers that are gone, and there was no "
                    "room for a copy in the folder for temporary files; give it again with mn.asarray"
                )
        keep = [node for node in needed if worth_keeping(node, live) and node not in known]
        return needed, known, keep

    def _anew(
        self,
        roots: Mapping[str, Expr],
        keep: Sequence[Expr],
        known: Mapping[Expr, Stored],
        there: Mapping[Expr, Stored],
        workers: Workers,
        passed: Mapping[str, Expr] | None = None,
        constants: Collection[Expr] = (),
    ) -> Planned:
        # What is too large to stay keeps no pass from doing without it.
        most = self._config.memo_bytes
        keep = [node for node in keep if node.sparse or node.size * node.dtype.itemsize <= most]
        named = {**roots, **{f"kept {place}": node for place, node in enumerate(keep)}}
        after, origins = traced(named, known) if passed is None else (passed, {})
        optimized = {node: after[name] for name, node in named.items()}
        reached = topological(after.values(), Either(there, self._store))
        known = {**self._store.find(reached), **{node: there[node] for node in reached if node in there}}
        wanted = [after[name] for name in roots if after[name] not in known]
        entries = estimate_entries(after.values(), known, self.counted)
        held_on_way = [
            optimized[node]
            for node in keep
            if estimate_bytes(optimized[node], entries[optimized[node]]) <= self._config.memo_bytes
        ]
        chooses, choices = self._scatters(workers), []

        def scatters(transpose: Transpose, right: Expr) -> bool:
            operand, width = transpose.operand, 1 if right.ndim == 1 else right.shape[1]
            chosen = chooses(operand, entries[operand], width)
            choices.append(Scattering(operand, entries[operand], width, chosen))
            return chosen

        slots = Slots(constants)
        there = {node: slots.of(array) for node, array in known.items()}
        plan = lower(wanted, held_on_way, there, workers, slots, scatters=scatters, counted=self.counted)
        return Planned(plan, optimized, origins, tuple(choices))

    def large_products(self, plan: Plan) -> list[Expr]:
        """Return the products of sparse arrays in a plan that are planned by the counts of their entries."""
        made = [one for stage in plan.stages for one in stage.inside]
        if not any(isinstance(one, MatMul | MaskedMatMul) and one.sparse for one in made):
            return []
        entries = estimate_entries(made, plan.reused, self.counted)
        return list(worth_counting(plan.stages, entries))

    def _scatters(self, workers: Workers) -> Callable[[Expr, int, int], bool]:
        # Whether a product of a sparse transpose does without it, by entries and the columns it meets.
        def chooses(operand: Expr, num_entries: int, width: int) -> bool:
            uses = self.num_scattered.get(operand, 0)
            return scatters(operand, num_entries, workers.slots, width, uses)

        return chooses

    def retain(self, needed: Collection[Expr] = ()) -> None:
        """Drop arrays without a handle that are not remembered, needed, or read in the run under way."""
        self._store.retain(live_expressions().union(needed, self.in_use))

    def workers(self) -> Workers:
        """Return the workers that a plan is laid out over now, waiting a while when there are none."""
        return self._workers_of(self._cluster.alive() or self._newcomers())

    def present(self) -> tuple[Workers, Attendance]:
        """Return the workers that are there now, which may be none, and which are missing; waits for none."""
        if not self._cluster.seconds_away:
            self._cluster.refresh_if_changed()
            if not self._cluster.alive():
                self._cluster.refresh()
        numbers = self._cluster.alive()
        return self._workers_of(numbers), self._cluster.attendance(time.monotonic() - _RECENT_SECONDS)

    def _workers_of(self, numbers: tuple[int, ...]) -> Workers:
        chosen = [self._cluster.workers[number] for number in numbers]
        limits = [one.memory_limit_bytes for one in chosen]
        memory = sum(limits) if all(limits) else 0
        hosts = list(dict.fromkeys(one.host for one in self._cluster.workers))
        placed = sorted((hosts.index(self._cluster.workers[number].host), number) for number in numbers)
        machines, numbers = tuple(one for one, _ in placed), tuple(number for _, number in placed)
        threads = max(1, min((one.threads for one in chosen), default=1))
        return Workers(numbers, threads, memory, machines, self._config.node_grid)

    def have_come(self, workers: Collection[int]) -> bool:
        """Return whether workers are there that are none of these, without asking the cluster."""
        return self._cluster.has_newcomers or not set(self._cluster.alive()).issubset(workers)

    def _newcomers(self) -> tuple[int, ...]:
        begin = time.monotonic()
        while (waited := time.monotonic() - begin) < _RESTART_SECONDS or (
            self._cluster.is_restoring and waited < _RESTORE_SECONDS
        ):
            self._cluster.stopping.check()
            self._cluster.refresh()
            if numbers := self._cluster.alive():
                return numbers
            time.sleep(0.1)
        attendance = self._cluster.attendance()
        trouble = attendance.trouble
        reason = f", which failed with: {trouble}" if trouble else ""
        if self._cluster.owned:
            todo = "call mn.stop() and start again"
        else:
            refused = "".join(f"; one that came cannot be used: {why}" for why in attendance.refused)
            todo = (
                "start workers on the cluster, as by scale() of the cluster's object or by new jobs, and run "
                f"this again{refused}"
            )
        raise WorkerLostError(f"all workers were lost and none came back{reason}; {todo}")

    def drop_dead(self, waits: bool = False) -> None:
        """Drop the arrays of workers that were lost since the last run, and look for new workers.

        With ``waits`` those that are about to come are waited for a little.
        """
        self._cluster.refresh_if_changed(waits)
        alive = set(self._cluster.alive())
        for owner in range(len(self._cluster.workers)):
            if owner not in alive:
                self._store.drop_owner(owner)

    def limits(self) -> dict[int, int]:
        """Return the memory of each worker that has a limit."""
        found = {number: self._cluster.workers[number].memory_limit_bytes for number in self._cluster.alive()}
        return {number: limit for number, limit in found.items() if limit}

    def left(self) -> dict[int, int]:
        """Return what each worker whose memory has a limit has left of it beside what is stored."""
        held = self._in_use()
        return {number: max(0, limit - held.get(number, 0)) for number, limit in self.limits().items()}

    def fits(self, peaks: Mapping[int, int]) -> bool:
        """Return whether each worker has so much memory in addition to what is stored."""
        return self._over_limit(peaks) is None

    def check_peaks(
        self, peaks: Mapping[int, int], needed: Collection[Expr], least: Mapping[int, int] | None = None
    ) -> None:
        """Make room for so much memory on each worker, beside what is ``needed``, or refuse it.

        Where there is room for the ``least`` that may be needed, it is not refused.

        Raises
        ------
        TooLargeError
            When what a worker would hold exceeds its limit, with the numbers.
        """
        over = self._over_limit(peaks)
        if over is not None:
            self._store.make_room(needed, lambda: self._over_limit(peaks) is None)
            over = self._over_limit(peaks)
        if over is not None:
            self._store.trim(needed, sum(peaks.values()))
            over = self._over_limit(peaks)
        if over is not None and least is not None:
            over = self._over_limit(least)
        if over is not None:
            wanted, held, limit = over
            ahead = self._bytes_ahead()
            batches = f" ({bytes_text(ahead)} of all for batches that are read ahead)" if ahead else ""
            smaller = "give a smaller batch_size, " if ahead else ""
            raise TooLargeError(
                f"this needs about {bytes_text(wanted)} on a worker on top of {bytes_text(held)} in use"
                f"{batches}, but the worker has {bytes_text(limit)}; {smaller}make arrays smaller or sparse, "
                "release what is not needed, or start with more workers or a larger memory_limit"
            )

    def _in_use(self) -> dict[int, int]:
        # What is stored, and what is read ahead for batches in this process, where workers are in it.
        held, ahead = self._store.bytes_by_owner(), self._bytes_ahead()
        alive = self._cluster.alive() if ahead else ()
        return {**held, **{owner: held.get(owner, 0) + ahead // len(alive) for owner in alive}}

    def _bytes_ahead(self) -> int:
        return bytes_ahead() if self._cluster.in_process else 0

    def _over_limit(self, peaks: Mapping[int, int]) -> tuple[int, int, int] | None:
        held = self._in_use()
        for owner, wanted in peaks.items():
            limit = self._cluster.workers[owner].memory_limit_bytes
            if limit and wanted + held.get(owner, 0) > limit:
                return wanted, held.get(owner, 0), limit
        return None
