"""Plans of expressions over what is stored and alive: where they run, and whether they fit."""

from __future__ import annotations

import time
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from matnb.backend.cluster import Cluster
from matnb.backend.store import Store
from matnb.config import Config
from matnb.errors import SessionEnded, TooLargeError, WorkerLostError
from matnb.lazy.array import live_expressions
from matnb.lazy.control import Cond, Loop
from matnb.lazy.expr import Data, Expr, Transpose
from matnb.lazy.holdings import held
from matnb.lazy.memo import worth_keeping
from matnb.lazy.passes import optimize
from matnb.lazy.traverse import topological
from matnb.pictures.quantities import bytes_text
from matnb.plan.estimate import estimate_bytes, estimate_entries
from matnb.plan.explain import Listing, explain_plan
from matnb.plan.explain_control import explain_bodies, explain_control
from matnb.plan.looping import plan_control, starts_inside
from matnb.plan.lower import lower
from matnb.plan.plan import Plan, Stored, Workers
from matnb.plan.transposes import prefers_scatter, wished
from matnb.session.looping import missing_results

_RESTART_SECONDS = 8.0  # a nanny brings a worker back in two to four


@dataclass(frozen=True)
class _Either:
    """Expressions that are in one of two containers."""

    one: Container[Expr]
    other: Container[Expr]

    def __contains__(self, node: object) -> bool:
        return node in self.one or node in self.other


class Planner:
    """Plans runs.

    Parameters
    ----------
    config, cluster, store
        Of the session.

    Attributes
    ----------
    in_use
        Expressions whose arrays stay for the run that is under way.
    num_scattered
        How often each sparse array's transpose met a dense one without being made.
    """

    def __init__(self, config: Config, cluster: Cluster, store: Store) -> None:
        self._config, self._cluster, self._store = config, cluster, store
        self.in_use: set[Expr] = set()
        self.num_scattered: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()

    def explain_controls(self, roots: Mapping[str, Expr]) -> tuple[list[str], dict[Expr, Stored], int]:
        """Return how the loops and branches below some roots would run, and the arrays they would give.

        The last number is that of the stages told of.
        """
        text: list[str] = []
        made: dict[Expr, Stored] = {}
        num_stages = 0
        listing = Listing()
        _, called = listing.of(roots, self._store)
        order = topological(roots.values(), self._store)
        for node in order:
            if not isinstance(node, Loop | Cond) or not (wanted := missing_results(node, order, self._store)):
                continue
            inputs = {str(place): one for place, one in enumerate(node.inputs) if not starts_inside(one)}
            before, after = self.plan(inputs, set(), made)
            found = {**before.reused, **before.outputs, **made}
            found.update(self._store.find(after.values()))
            stored = {one: found[after[one]] for one in inputs.values()}
            plan = plan_control(node, stored, self.workers(), wanted)
            made.update(plan.outputs)
            name = f"{'loop' if isinstance(node, Loop) else 'branch'} {called[node]}"
            if before.stages:
                names = {after[one]: called[one] for one in inputs.values()}
                text += [f"before {name}", explain_plan(before, names, num_stages)]
                num_stages += len(before.stages)
            text += explain_bodies(node, called, listing)
            text += [f"plan of {name}", *explain_control(plan, num_stages)]
            num_stages += len(plan.stages)
        return text, made, num_stages

    def plan(
        self, roots: Mapping[str, Expr], live: set[Expr], made: Mapping[Expr, Stored] | None = None
    ) -> tuple[Plan, dict[Expr, Expr]]:
        """Return the plan for the roots, and what each recorded expression became in it.

        ``made`` are arrays that will be there by then.
        """
        self.drop_dead()
        there = made or {}
        needed = topological(roots.values(), _Either(there, self._store))
        known = {**self._store.find(needed), **{node: there[node] for node in needed if node in there}}
        # What this run starts from stays for it, such as a loop's last state, on which no name is left.
        self._store.retain(live_expressions().union(needed, self.in_use))
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
        reached = topological(after.values(), _Either(there, self._store))
        known = {**self._store.find(reached), **{node: there[node] for node in reached if node in there}}
        wanted = [after[name] for name in roots if after[name] not in known]
        entries = estimate_entries(after.values(), known)
        held_on_way = [
            optimized[node]
            for node in keep
            if estimate_bytes(optimized[node], entries[optimized[node]]) <= self._config.memo_bytes
        ]
        workers = self.workers()

        def scatters(transpose: Transpose, right: Expr) -> bool:
            operand = transpose.operand
            wish = wished(operand)
            if wish != "auto":
                return wish == "none"
            width = 1 if right.ndim == 1 else right.shape[1]
            uses = self.num_scattered.get(operand, 0)
            return prefers_scatter(entries[operand], operand.shape[1], workers.slots, width, uses)

        return lower(wanted, held_on_way, known, workers, scatters=scatters), optimized

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

    def drop_dead(self) -> None:
        """Drop the arrays of workers that were lost since the last run, and look for new workers."""
        self._cluster.refresh_if_changed()
        alive = set(self._cluster.alive())
        for owner in range(len(self._cluster.workers)):
            if owner not in alive:
                self._store.drop_owner(owner)

    def check_memory(self, plan: Plan) -> None:
        """Make room for a plan, or refuse it before its first task if it does not fit the workers' memory.

        Raises
        ------
        TooLargeError
            When what a worker would hold exceeds its limit, with the numbers.
        """
        self.check_peaks(plan.peaks, plan.reused)

    def limits(self) -> dict[int, int]:
        """Return the memory of each worker that has a limit."""
        found = {number: self._cluster.workers[number].memory_limit_bytes for number in self._cluster.alive()}
        return {number: limit for number, limit in found.items() if limit}

    def fits(self, peaks: Mapping[int, int]) -> bool:
        """Tell whether each worker has so much memory besides what is stored."""
        return self._over_limit(peaks) is None

    def check_peaks(self, peaks: Mapping[int, int], needed: Collection[Expr]) -> None:
        """Make room for so much memory on each worker, beside what is ``needed``, or refuse it."""
        over = self._over_limit(peaks)
        if over is not None:
            self._store.trim(needed, sum(peaks.values()))
            over = self._over_limit(peaks)
        if over is not None:
            wanted, held, limit = over
            raise TooLargeError(
                f"this needs about {bytes_text(wanted)} on a worker on top of {bytes_text(held)} in use, but "
                f"the worker has {bytes_text(limit)}; make arrays smaller or sparse, release what is not "
                "needed, or start with more workers or a larger memory_limit"
            )

    def _over_limit(self, peaks: Mapping[int, int]) -> tuple[int, int, int] | None:
        held = self._store.bytes_by_owner()
        for owner, wanted in peaks.items():
            limit = self._cluster.workers[owner].memory_limit_bytes
            if limit and wanted + held.get(owner, 0) > limit:
                return wanted, held.get(owner, 0), limit
        return None
