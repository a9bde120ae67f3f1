"""Layouts that a user asks for: arrays in other parts, and arrays that lie alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np

from matnb.backend.store import Entry, Store
from matnb.balance.contiguous import balanced_cuts
from matnb.balance.partition import work_of
from matnb.balance.rectilinear import rectilinear_cuts
from matnb.balance.situation import Cuts, Profile, Situation
from matnb.blocks.grid import Grid, regular_cuts
from matnb.blocks.layout import Layout, spread
from matnb.events import BlocksMoved, Event
from matnb.expr.nodes import Expr
from matnb.expr.stable_order import place_of
from matnb.session.groups import Group, Groups, cuts_of, has_rows_cut
from matnb.session.planning import Planner
from matnb.session.recut import Recut, Recutter, rows_layout


class Moves:
    """Lays stored arrays out anew and tells of it.

    Parameters
    ----------
    store, planner, recutter, groups
        Of the session.
    emit
        Called with every event.
    """

    def __init__(
        self,
        store: Store,
        planner: Planner,
        recutter: Recutter,
        groups: Groups,
        emit: Callable[[Event], None],
    ) -> None:
        self._store, self._planner, self._recutter = store, planner, recutter
        self._groups, self._emit = groups, emit
        # Of arrays whose cuts follow from measured times, those that counts gave.
        self._counted: WeakKeyDictionary[Entry, Cuts] = WeakKeyDictionary()

    def counted(self, entry: Entry) -> Cuts | None:
        """Return the cuts that counts gave an array which is cut as measured times had it, else None."""
        return self._counted.get(entry)

    def follow_times(self, entry: Entry, counted: Cuts) -> None:
        """Take note that the cuts of an array follow from measured times, and which ones counts gave."""
        if cuts_of(entry).cuts != counted.cuts:
            self._counted[entry] = counted
        else:
            self.forget_times([entry])

    def forget_times(self, entries: Iterable[Entry]) -> None:
        """Take note that the cuts of arrays are to stay, whatever they follow from."""
        for entry in entries:
            self._counted.pop(entry, None)

    def made(self, made: Iterable[Expr], read: Iterable[Entry]) -> None:
        """Take note of new arrays that lie as some whose cuts follow from measured times, and were read."""
        found = ((one, self._counted.get(one)) for one in read if self._counted)
        alike = {cuts_of(one): counted for one, counted in found if counted is not None}
        for node in made if alike else ():
            entry = self._store.entry(node)
            if entry is not None and has_rows_cut(node, entry) and cuts_of(entry) in alike:
                self.follow_times(entry, alike[cuts_of(entry)])

    def group(self, arrays: Mapping[Expr, Entry]) -> Group:
        """Return the heaviest of some arrays, with those that lie as it does or are to."""
        main = max(arrays, key=lambda one: (one.sparse, arrays[one].num_bytes, place_of(one)))
        beside = {one: found for one in self._groups.beside(main) if (found := self._store.entry(one))}
        return self._groups.made(main, {**arrays, **beside})

    def rows(
        self, name: str, arrays: Mapping[Expr, Entry], new: Cuts, profile: Profile | None = None
    ) -> Recut:
        """Give arrays, the heaviest first, other cuts and owners of their rows; errors as of a Recutter."""
        layouts = {node: rows_layout(entry.stored.layout, new) for node, entry in arrays.items()}
        return self.layouts(name, arrays, layouts, {} if profile is None else {next(iter(arrays)): profile})

    def layouts(
        self,
        name: str,
        arrays: Mapping[Expr, Entry],
        layouts: Mapping[Expr, Layout],
        profiles: Mapping[Expr, Profile],
    ) -> Recut:
        """Give arrays other layouts."""
        done = self._recutter.recut(
            {node: (entry, layouts[node]) for node, entry in arrays.items()}, profiles
        )
        self._emit(BlocksMoved(name, done.num_blocks, done.moved_bytes, done.seconds))
        return done

    def align(self, nodes: Sequence[Expr]) -> None:
        """Let arrays lie alike from now on, and lay out those that are stored as the heaviest of them."""
        self._groups.declare(nodes)
        for node in nodes:
            self.aligned(node)

    def aligned(self, node: Expr) -> Mapping[Entry, Entry]:
        """Lay out anew what is to lie as another array does and does not yet; return what entries became."""
        beside = self._groups.beside(node)
        if not beside:
            return {}
        stored = {one: self._store.entry(one) for one in (node, *beside)}
        there = {one: found for one, found in stored.items() if found and has_rows_cut(one, found)}
        if node not in there:
            return {}
        heaviest = max(there, key=lambda one: (one.sparse, there[one].num_bytes, place_of(one)))
        wanted = cuts_of(there[heaviest])
        apart = {one: found for one, found in there.items() if cuts_of(found) != wanted}
        if not apart:
            return {}
        done = self.rows(", ".join(map(self._groups.name, apart)), apart, wanted)
        counted = self.counted(there[heaviest])
        if counted is not None:
            for entry in done.entries.values():
                self.follow_times(entry, counted)
        return {apart[one]: new for one, new in done.entries.items()}

    def rows_in(self, situation: Situation, num_parts: int) -> Cuts:
        """Return cuts into so many parts of about equal work, fewer where there are fewer rows."""
        num_parts = min(num_parts, situation.profile.length)
        owners = spread(num_parts, self._planner.workers().numbers)
        shares = [situation.speeds.get(owner, 1.0) for owner in owners]
        return Cuts(balanced_cuts(work_of(situation), shares), owners)

    def evenly(self, node: Expr, counts: Sequence[int], entry: Entry) -> Layout:
        """Return a layout with so many parts along each axis, of a sparse matrix with about equal entries."""
        cuts = tuple(regular_cuts(length, count) for length, count in zip(node.shape, counts, strict=True))
        if node.sparse and node.ndim == 2 and min(node.shape) > 0:
            weights, edges = self._recutter.histogram(node, entry)
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
        return Layout(grid, spread(grid.num_blocks, self._planner.workers().numbers))
