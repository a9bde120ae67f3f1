"""Layouts of stored arrays: those of a group, of arrays that are aligned, and parts a user asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from matnb.backend.store import Entry, Store
from matnb.balance.contiguous import balanced_cuts, rectilinear_cuts
from matnb.balance.decision import Decision, Gain
from matnb.balance.history import History
from matnb.balance.partition import work_of
from matnb.balance.policy import FIXED_COSTS
from matnb.balance.situation import Profile, Situation
from matnb.blocks.grid import Grid, regular_cuts
from matnb.blocks.layout import Cuts, Layout, spread
from matnb.errors import OptionError
from matnb.events import BlocksMoved, Event, Rebalanced
from matnb.expr.nodes import Expr
from matnb.expr.stable_order import place_of
from matnb.pictures.quantities import axes_text
from matnb.program.place import laid_out
from matnb.session.groups import RELEASE, Group, Groups, Partners, has_rows_cut, has_sizes, once_each
from matnb.session.planning import Planner
from matnb.session.repartitioner import Repartition, Repartitioner


class StoredLayouts:
    """Changes how stored arrays lie, and knows which cuts follow from measured times.

    Attributes
    ----------
    history
        Of all changes, with those that policies decide.
    """

    def __init__(
        self,
        store: Store,
        planner: Planner,
        repartitioner: Repartitioner,
        groups: Groups,
        emit: Callable[[Event], None],
    ) -> None:
        self._store, self._planner, self._repartitioner = store, planner, repartitioner
        self._groups, self._emit = groups, emit
        self.history = History()
        # Of arrays whose cuts follow from measured times, those that counts gave.
        self._counted: WeakKeyDictionary[Entry, Cuts] = WeakKeyDictionary()

    def counted(self, entry: Entry) -> Cuts | None:
        """Return the cuts that counts gave an array which is cut as measured times had it, else None."""
        return self._counted.get(entry)

    def follow_times(self, entry: Entry, counted: Cuts) -> None:
        """Take note that the cuts of an array follow from measured times, and which ones counts gave."""
        if entry.stored.layout.rows.cuts != counted.cuts:
            self._counted[entry] = counted
        else:
            self.forget_times([entry])

    def forget_times(self, entries: Iterable[Entry]) -> None:
        """Take note that the cuts of arrays are to stay, whatever they follow from."""
        for entry in entries:
            self._counted.pop(entry, None)

    def made(self, made: Iterable[Expr], read: Iterable[Expr]) -> None:
        """Take note of new arrays that lie as some whose cuts follow from measured times, and were read."""
        entries = [entry for one in read if self._counted and (entry := self._store.entry(one))]
        alike = {one.stored.layout.rows: self._counted[one] for one in entries if one in self._counted}
        for node in made if alike else ():
            entry = self._store.entry(node)
            if entry is not None and has_rows_cut(entry) and entry.stored.layout.rows in alike:
                self.follow_times(entry, alike[entry.stored.layout.rows])

    def group(self, arrays: Mapping[Expr, Entry]) -> Group:
        """Return the heaviest of some arrays, with those that lie as it does or are to."""
        main = max(arrays, key=lambda one: (one.sparse, arrays[one].num_bytes, place_of(one)))
        return self._groups.made(main, {**arrays, **self._groups.beside(main)})

    def change_rows(
        self, name: str, arrays: Mapping[Expr, Entry], new: Cuts, profile: Profile | None = None
    ) -> Repartition:
        """Give arrays, the heaviest first, other cuts and owners of rows; errors as of a Repartitioner."""
        layouts = {node: entry.stored.layout.with_rows(new) for node, entry in arrays.items()}
        return self._change(name, arrays, layouts, {} if profile is None else {next(iter(arrays)): profile})

    def _change(
        self,
        name: str,
        arrays: Mapping[Expr, Entry],
        layouts: Mapping[Expr, Layout],
        profiles: Mapping[Expr, Profile],
    ) -> Repartition:
        done = self._repartitioner.repartition(
            {node: (entry, layouts[node]) for node, entry in arrays.items()}, profiles
        )
        self._emit(BlocksMoved(name, done.num_blocks, done.moved_bytes, done.seconds))
        return done

    def held(self, entries: Iterable[Entry]) -> str:
        """Return why some of these arrays have to keep their cuts; empty where they need not."""
        return self._groups.held(entries)

    def align(self, nodes: Sequence[Expr], axes: Sequence[int] = (0,)) -> None:
        """Let arrays lie alike from now on, and lay out those that are stored as the heaviest of them.

        Raises
        ------
        OptionError
            Where they cannot lie alike, or would have to move and have to keep their cuts; nothing is done.
        """
        self._planner.retain(nodes)  # arrays without a handle bind no others
        partners = self._groups.joined(nodes, axes)
        leader, layouts = self._apart(partners)
        moved = [entry for node in layouts if (entry := self._store.entry(node)) is not None]
        if reason := self.held(moved):
            raise OptionError(
                f"align: {', '.join(map(self._groups.name, layouts))} cannot be moved: {reason}; {RELEASE}"
            )
        self._groups.declare(partners)
        self._lay_beside(partners, leader, layouts)

    def aligned(self, nodes: Iterable[Expr] | None = None) -> Mapping[Entry, Entry]:
        """Repartition the arrays that should be aligned with another and are not yet.

        Parameters
        ----------
        nodes
            With whose partners that is done; None for all arrays.

        Returns
        -------
        What entries became. Arrays that have to keep their cuts stay where they are.
        """
        found = self._groups.declared
        if nodes is not None and found:
            wanted = {id(one): one for node in nodes if (one := self._groups.partners(node)) is not None}
            found = list(wanted.values())
        new: dict[Entry, Entry] = {}
        for one in found:
            leader, layouts = self._apart(one)
            free = {
                node: layout
                for node, layout in layouts.items()
                if (entry := self._store.entry(node)) is not None and not self.held([entry])
            }
            new.update(self._lay_beside(one, leader, free))
        return new

    def _apart(self, partners: Partners) -> tuple[Expr | None, dict[Expr, Layout]]:
        # The array as which its partners are to lie, and the layouts of those that do not, of what is stored.
        axes = partners.axes
        there = {
            node: entry
            for node in sorted(partners.nodes, key=place_of)
            if (entry := self._store.entry(node)) is not None and has_sizes(entry)
        }
        if not there or not axes:
            return None, {}
        layouts = {node: entry.stored.layout for node, entry in there.items()}

        def weight(node: Expr) -> tuple[bool, bool, int, tuple[bytes, bytes]]:
            entry = there[node]
            return bool(self.held([entry])), node.sparse, entry.num_bytes, place_of(node)

        leader = max(there, key=weight)
        if not layouts[leader].cuts_only(axes):
            cut = [one for one in there if layouts[one].cuts_only(axes) and layouts[one].grid.num_blocks > 1]
            leader = max(cut, key=weight, default=leader)
        first = layouts[leader]
        if not first.cuts_only(axes):
            first = self.evenly(leader, self.counts_along(leader, axes), there[leader])
        wanted = {node: first.along(axes, node.shape) for node in there}
        return leader, {node: wanted[node] for node in there if wanted[node] != layouts[node]}

    def counts_along(self, node: Expr, axes: Sequence[int]) -> tuple[int, ...]:
        """Return a part a thread along the longest of some axes, and one along the others."""
        longest = max(axes, key=lambda axis: (node.shape[axis], -axis))
        slots = self._planner.workers().slots
        return tuple(slots if axis == longest else 1 for axis in range(node.ndim))

    def _lay_beside(
        self, partners: Partners, leader: Expr | None, layouts: Mapping[Expr, Layout]
    ) -> Mapping[Entry, Entry]:
        if leader is None or not layouts:
            return {}
        axes = axes_text(partners.axes)
        reason = f"aligned: {axes} lie as those of {self._groups.name(leader)}"
        if leader in layouts:  # it was cut along other axes
            reason = f"aligned: {axes} of these arrays are to lie alike"
        entry = self._store.entry(leader)
        counted = None if entry is None else self.counted(entry)
        new = self.lay_out(layouts, "aligned", reason)
        if counted is not None:
            for one in new.values():
                self.follow_times(one, counted)
        return new

    def lay_out(self, layouts: Mapping[Expr, Layout], policy: str, reason: str) -> Mapping[Entry, Entry]:
        """Give stored arrays other layouts, and note it in the history; errors as of a Repartitioner.

        Parameters
        ----------
        layouts
            The new ones; the history has the cuts of the first array.
        policy, reason
            As of a :class:`~matnb.balance.decision.Decision`.

        Returns
        -------
        What entries became.
        """
        arrays = {node: entry for node in layouts if (entry := self._store.entry(node)) is not None}
        name = ", ".join(map(self._groups.name, once_each(arrays)))
        done = self._change(name, arrays, layouts, {})
        before, after = (next(iter(one.values())).stored for one in (arrays, done.entries))
        axis = before.layout.changed_axis(after.layout)
        acts = any(layouts[node] != entry.stored.layout for node, entry in arrays.items())
        decision = Decision(
            name=name,
            policy=policy,
            acts=acts,
            reason=reason if acts else "unchanged: these are the cuts",
            before=before.layout.cuts_along(axis),
            after=after.layout.cuts_along(axis),
            strategy="segmented",
            loads_before=_entries_of(arrays.values()),
            loads_after=_entries_of(done.entries.values()),
            block_seconds=(),
            saving_seconds=0.0,
            num_remaining=0.0,
            cost_seconds=FIXED_COSTS.seconds(done.moved_bytes),
            moved_bytes=done.moved_bytes,
            iteration=0,
            in_entries=True,
            axis=axis,
        )
        number = self.history.add(decision)
        if acts:
            self.history.gained(number, Gain({}, math.nan, done.seconds, done.moved_bytes))
        self._emit(rebalanced(decision, done.seconds, done.moved_bytes))
        return {arrays[node]: new for node, new in done.entries.items()}

    def rows_in(self, situation: Situation, num_parts: int) -> Cuts:
        """Return cuts into ``num_parts`` parts of about equal work, fewer where there are fewer rows."""
        num_parts = min(num_parts, situation.profile.length)
        owners = spread(num_parts, self._planner.workers().numbers)
        shares = [situation.speeds.get(owner, 1.0) for owner in owners]
        return Cuts(balanced_cuts(work_of(situation), shares), owners)

    def evenly(self, node: Expr, counts: Sequence[int], entry: Entry) -> Layout:
        """Return a layout with so many parts along each axis, of a sparse matrix with about equal entries."""
        cuts = tuple(regular_cuts(length, count) for length, count in zip(node.shape, counts, strict=True))
        if node.sparse and node.ndim == 2 and min(node.shape) > 0:
            weights, edges = self._repartitioner.histogram(node, entry)
            numbers = (min(counts[0], weights.shape[0]), min(counts[1], weights.shape[1]))
            found = rectilinear_cuts(weights, numbers)
            cuts = tuple(
                tuple(int(one[place]) for place in np.asarray(places))
                for one, places in zip(edges, found, strict=True)
            )
        return self.spread(Grid(cuts))

    def rows_at(self, grid: Grid) -> Cuts:
        """Return the cuts of a grid's rows, spread over the workers there are."""
        return Cuts(grid.cuts[0], self.spread(grid).owners)

    def spread(self, grid: Grid) -> Layout:
        """Return the layout that spreads a grid over the workers there are."""
        return laid_out(grid, self._planner.workers())


def rebalanced(decision: Decision, seconds: float, moved_bytes: int) -> Rebalanced:
    """Return the event of a decision: what it took, and moved to other workers."""
    return Rebalanced(
        name=decision.name,
        policy=decision.policy,
        reason=decision.reason,
        acted=decision.acts,
        by_entries=decision.in_entries,
        imbalance_before=decision.imbalance_before,
        imbalance_after=decision.imbalance_after,
        iteration=decision.iteration,
        seconds=seconds,
        moved_bytes=moved_bytes,
    )


def _entries_of(arrays: Iterable[Entry]) -> dict[int, float]:
    # Of each worker, over all arrays.
    loads: dict[int, float] = {}
    for entry in set(arrays):  # an interrupted run left no counts
        for owner, count in zip(entry.stored.layout.owners, entry.stored.block_nnz, strict=False):
            loads[owner] = loads.get(owner, 0.0) + count
    return dict(sorted(loads.items()))
