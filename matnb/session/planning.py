"""Plans expressions over stored and live arrays: on which engine, and whether they fit in memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from math import inf
from weakref import WeakKeyDictionary

from matnb.backend.cluster.dask_cluster import Attendance, DaskCluster, worker_wanted
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.store import Store
from matnb.config import Config
from matnb.errors import SessionEnded, TooLargeError, WorkerLostError
from matnb.expr.client_data import held
from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import (
    Broadcast,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    MaskedMatMul,
    MatMul,
    Regrid,
    Transpose,
)
from matnb.expr.retention import is_made_in_parts, worth_keeping
from matnb.expr.traverse import Either, ExprGraph, consumers, rewrite, topological
from matnb.lazy.handles import live_expressions
from matnb.lazy.read_ahead import bytes_ahead
from matnb.passes import traced
from matnb.pictures.quantities import bytes_text
from matnb.plan.chosen_entries import Choice, choices_worth_counting, most_chosen
from matnb.plan.estimate import estimate_entries
from matnb.plan.lower import lower
from matnb.plan.product_entries import ProductCounts, is_worth_counting, worth_counting
from matnb.plan.program_cache import PlanCache, PlanResult, ScatterChoice
from matnb.plan.structural_key import structural_key
from matnb.plan.transposes import scatters
from matnb.program.memory import estimate_bytes
from matnb.program.place import regular_grid
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.program.writer import Slots

_COUNTED = MatMul | MaskedMatMul | Choice  # large ones of sparse arrays are planned by counts
_ADAPT_SECONDS = 1.0  # after which a worker is asked for, which an adaptive cluster starts
_RESTART_SECONDS = 8.0  # a nanny brings a worker back in two to four
_RESTORE_SECONDS = 90.0  # at most, for one of ours that is being started again


_MOST_FUNCTIONS = 8  # over a source: a loop of Python's that looks at each state makes these on each other


def _sliced_sources(
    keep: Sequence[Expr], needed: Sequence[Expr], roots: Collection[Expr], known: Container[Expr]
) -> dict[Expr, float]:
    # Of what is made from parameters, with few functions of it, and only slices are read of: how much of it
    # these are.
    if not any(is_made_in_parts(node) for node in needed):
        return {}
    depths: dict[Expr, int] = {}
    for node in needed:
        if node in known:
            continue
        if is_made_in_parts(node) or isinstance(node, Literal):
            depths[node] = 0
        elif isinstance(node, Elementwise | Broadcast | Transpose) and all(
            one in depths for one in node.operands
        ):
            depths[node] = 1 + max(depths[one] for one in node.operands)
    sources = {node for node in keep if depths.get(node, _MOST_FUNCTIONS) < _MOST_FUNCTIONS}
    if not sources:
        return {}
    users, wanted = consumers(needed, known), set(roots)
    shares: dict[Expr, float] = {}
    for node in reversed(needed):
        if node in depths and node not in wanted and users[node]:
            slices = [
                one.size / max(1, node.size) if isinstance(one, Index) else shares.get(one, inf)
                for one in users[node]
            ]
            if (share := sum(slices)) < inf and (node in sources or node not in keep):
                shares[node] = share
    return {node: shares[node] for node in keep if node in sources and node in shares}


def _reloaded(optimized: Mapping[Expr, Expr], reload: Callable[[Sequence[Expr]], bool]) -> bool:
    # Whether any of what passes made of expressions was remembered, and is on the workers now.
    made = [one for node, one in optimized.items() if one is not node]
    return bool(made) and reload(made)


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
        self._shares_made: WeakKeyDictionary[Expr, float] = WeakKeyDictionary()  # of sources, in slices
        self._shares_now: dict[Expr, float] = {}
        self.counted = ProductCounts()
        self._plans = PlanCache()

    def plan(
        self,
        roots: Mapping[str, Expr],
        made: Mapping[Expr, StoredArray],
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

    def planned(
        self,
        roots: Mapping[str, Expr],
        live: set[Expr],
        products: Sequence[Expr] = (),
        reload: Callable[[Sequence[Expr]], bool] | None = None,
    ) -> PlanResult:
        """Return the plan for the roots, with what is known of its expressions.

        It is an earlier one for other expressions where one of the same form is remembered, and of the same
        counts of ``products``. ``live`` expressions stay if they are computed on the way. ``reload`` puts
        what is remembered of expressions that passes made on the workers, and tells whether it did.

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
            lambda constants: self._anew(roots, keep, known, {}, workers, None, constants, reload),
            self._scatters(workers),
            lambda planned: reload is None or not _reloaded(planned.optimized, reload),
        )

    def _needed(
        self, roots: Mapping[str, Expr], live: set[Expr], there: Mapping[Expr, StoredArray]
    ) -> tuple[list[Expr], dict[Expr, StoredArray], list[Expr]]:
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
        # What is there needs no plan.
        self._shares_now = _sliced_sources(keep, needed, roots.values(), known) if keep else {}
        for node, share in self._shares_now.items():
            # All of it is made and stays once its slices have cost as much.
            if self._shares_made.get(node, 0.0) + share <= 1.0:
                keep.remove(node)
        return needed, known, keep

    def note_slices(self) -> None:
        """Note that the last plan has run, so that sources of which many slices are read stay."""
        for node, share in self._shares_now.items():
            self._shares_made[node] = self._shares_made.get(node, 0.0) + share

    def _anew(
        self,
        roots: Mapping[str, Expr],
        keep: Sequence[Expr],
        known: Mapping[Expr, StoredArray],
        there: Mapping[Expr, StoredArray],
        workers: Workers,
        passed: Mapping[str, Expr] | None = None,
        constants: Collection[Expr] = (),
        reload: Callable[[Sequence[Expr]], bool] | None = None,
    ) -> PlanResult:
        # What is too large to stay keeps no pass from doing without it.
        most = self.memo_bytes
        keep = [node for node in keep if node.sparse or node.size * node.dtype.itemsize <= most]
        named = {**roots, **{f"kept {place}": node for place, node in enumerate(keep)}}
        after, origins = traced(named, known) if passed is None else (passed, {})
        optimized = {node: after[name] for name, node in named.items()}
        if reload is not None:
            _reloaded(optimized, reload)
        reached = topological(after.values(), Either(there, self._store))
        known = {**self._store.find(reached), **{node: there[node] for node in reached if node in there}}
        wanted = [after[name] for name in roots if after[name] not in known]
        entries = estimate_entries(after.values(), known, self.counted)
        held_on_way = [
            optimized[node]
            for node in keep
            if estimate_bytes(optimized[node], entries[optimized[node]]) <= most
        ]
        chooses, choices = self._scatters(workers), []

        def scatters(transpose: Transpose, right: Expr) -> bool:
            operand, width = transpose.operand, 1 if right.ndim == 1 else right.shape[1]
            chosen = chooses(operand, entries[operand], width)
            choices.append(ScatterChoice(operand, entries[operand], width, chosen))
            return chosen

        slots = Slots(constants)
        there = {node: slots.of(array) for node, array in known.items()}
        plan = lower(wanted, held_on_way, there, workers, slots, scatters=scatters, counted=self.counted)
        return PlanResult(plan, optimized, origins, tuple(choices))

    def large_products(self, plan: Plan) -> list[Expr]:
        """Return what a plan makes of sparse arrays by counts of their entries: products and choices."""
        made = [one for stage in plan.stages for one in stage.inside]
        sparse = (one for one in made if one.sparse and isinstance(one, _COUNTED))
        if not any(is_worth_counting(one, one.size) for one in sparse):
            return []
        entries = estimate_entries(made, plan.reused, self.counted, most_chosen)
        return [*worth_counting(plan.stages, entries), *choices_worth_counting(plan.stages, entries)]

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
        return self._workers_of(numbers), self._cluster.recent_attendance()

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
        cluster, begin = self._cluster, time.monotonic()
        most = _RESTART_SECONDS if cluster.owned else max(_RESTART_SECONDS, cluster.patience_seconds)
        is_asked = cluster.owned  # whose workers come back by themselves
        with contextlib.ExitStack() as wanting:
            while (waited := time.monotonic() - begin) < most or (
                cluster.is_restoring and waited < _RESTORE_SECONDS
            ):
                cluster.stopping.check()
                cluster.refresh()
                if numbers := cluster.alive():
                    return numbers
                if not is_asked and waited > _ADAPT_SECONDS:  # else one is on its way
                    wanting.enter_context(worker_wanted(cluster.client))
                    is_asked = True
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
                f"this again, or wait longer with timeout_seconds= of mn.connect{refused}"
            )
        raise WorkerLostError(f"all workers were lost and none came in {most:.0f} s{reason}; {todo}")

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
        """Return the memory that each worker with a limit has left beside its stored arrays."""
        held = self._with_ahead(self._store.bytes_by_owner())
        return {number: max(0, limit - held.get(number, 0)) for number, limit in self.limits().items()}

    def fits(self, peaks: Mapping[int, int]) -> bool:
        """Return whether each worker has this much memory free beside its stored arrays."""
        return not self._lacking(peaks, self._with_ahead(self._store.bytes_by_owner()))

    def check_peaks(
        self, peaks: Mapping[int, int], needed: Collection[Expr], least: Mapping[int, int] | None = None
    ) -> None:
        """Make room for the peak of each worker without evicting what is ``needed``, or refuse the plan.

        Where there is room for the ``least`` that may be needed, it is not refused.

        Raises
        ------
        TooLargeError
            When what a worker would hold exceeds its limit, with the numbers.
        """
        held = self.make_room(peaks, needed)
        if least is not None and self._lacking(peaks, held):
            self._store.drop_idle({*needed, *self.in_use})
            peaks, held = least, self.make_room(least, needed)
        if self._lacking(peaks, held):
            raise self._too_large(peaks, held)

    def blocks_that_fit(self, roots: Mapping[str, Expr]) -> int:
        """Return how many blocks an array that was asked for in blocks needs at least, so that a plan fits.

        It is 0 where the plan would not fit in finer blocks, and where nobody asked for blocks.
        """
        known = self._store.find(topological(roots.values(), self._store))
        asked = [node for node in topological(roots.values(), known) if isinstance(node, Regrid)]
        asked = [node for node in asked if node not in known]
        if not asked:
            return 0
        workers = self.workers()
        bare = rewrite(ExprGraph(roots, known), lambda node: node.operand if node in asked else None).roots
        entries = estimate_entries(asked, known, self.counted)
        sizes = {node: estimate_bytes(node, entries[node]) for node in asked}
        largest = max(asked, key=sizes.__getitem__)
        try:
            peaks = self._anew(bare, [], known, {}, workers).plan.peaks
            num_blocks = regular_grid(largest, sizes[largest], workers).num_blocks
        except TooLargeError:
            return 0
        staying = self._store.bytes_staying({*known, *self.in_use})
        return 0 if self._lacking(peaks, self._with_ahead(staying)) else num_blocks

    def make_room(self, peaks: Mapping[int, int], needed: Collection[Expr]) -> Mapping[int, int]:
        """Have arrays give way to so much memory on each worker, if that makes room enough.

        First those without a handle, then those that can be made again, the quickest for their bytes before
        all others. What is ``needed`` stays, and what the run that is under way reads.

        Returns
        -------
        Mapping of int to int
            What each worker holds when all that may go has gone.
        """
        held = self._store.make_room(
            {*needed, *self.in_use}, lambda held: self._lacking(peaks, self._with_ahead(held))
        )
        return self._with_ahead(held)

    def trim(self) -> None:
        """Drop arrays until those that are left are within the memo's budget.

        What loops and branches gave to the run that is under way stays for it: no plan makes that again.
        """
        self._store.trim(self.memo_bytes, [n for n in self.in_use if isinstance(n, Loop | Cond | Final)])

    @property
    def memo_bytes(self) -> int:
        """The memo's budget: at most half of what the workers have, so that runs have the other half."""
        most, workers = self._config.memo_bytes, self._cluster.workers
        limits = [workers[number].memory_limit_bytes for number in self._cluster.alive()]
        return min(most, sum(limits) // 2) if limits and all(limits) else most

    def _too_large(self, peaks: Mapping[int, int], held: Mapping[int, int]) -> TooLargeError:
        owner = next(iter(self._lacking(peaks, held)))
        limit = self._cluster.workers[owner].memory_limit_bytes
        ahead = self._bytes_ahead()
        batches = f" ({bytes_text(ahead)} of all for batches that are read ahead)" if ahead else ""
        smaller = "give a smaller batch_size, " if ahead else ""
        more = "start with more workers or a larger memory_limit"
        if not self._cluster.owned:
            more = "give the cluster more workers, or its workers more memory (--memory-limit)"
        return TooLargeError(
            f"this needs about {bytes_text(peaks[owner])} on a worker on top of "
            f"{bytes_text(held.get(owner, 0))} in use{batches}, but the worker has {bytes_text(limit)}; "
            f"{smaller}compute results one at a time, since what several read is kept whole; make arrays "
            f"smaller or sparse, release what is not needed, or {more}"
        )

    def _with_ahead(self, held: Mapping[int, int]) -> Mapping[int, int]:
        # What is stored, what worker processes have of their own, and what is read ahead for batches in this
        # process, where workers are in it.
        alive, ahead = self._cluster.alive(), self._bytes_ahead()
        own = {owner: self._cluster.workers[owner].own_bytes for owner in alive}
        return {**held, **{owner: held.get(owner, 0) + ahead // len(alive) + own[owner] for owner in alive}}

    def _bytes_ahead(self) -> int:
        return bytes_ahead() if self._cluster.in_process else 0

    def _lacking(self, peaks: Mapping[int, int], held: Mapping[int, int]) -> list[int]:
        # The workers that lack room for so much memory beside what they hold.
        found = []
        for owner, wanted in peaks.items():
            limit = self._cluster.workers[owner].memory_limit_bytes
            if limit and wanted + held.get(owner, 0) > limit:
                found.append(owner)
        return found
