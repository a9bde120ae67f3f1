"""Layouts that a person asks for: arrays in other parts, and arrays that lie alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from matnb.backend.store import Entry, Store
from matnb.balance.contiguous import balanced_cuts
from matnb.balance.partition import work_of
from matnb.balance.rectilinear import rectilinear_cuts
from matnb.balance.situation import Cuts, Profile, Situation
from matnb.blocks.grid import Grid, regular_cuts
from matnb.blocks.layout import Layout, spread
from matnb.events import BlocksMoved, Event
from matnb.lazy.expr import Expr
from matnb.session.groups import Groups, cuts_of, has_rows_cut
from matnb.session.planning import Planner
from matnb.session.recutting import Recut, Recutter, rows_layout


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

    def rows(
        self, name: str, arrays: Mapping[Expr, Entry], new: Cuts, profile: Profile | None = None
    ) -> Recut:
        """Give arrays, the heaviest first, other cuts and owners of their rows; errors as of a Recutter."""
        layouts = {node: rows_layout(entry.stored.layout, new) for node, entry in arrays.items()}
        return self.layouts(name, arrays, layouts, {} if profile is None else {next(iter(arrays)): profile})

    def name(self, node: Expr) -> str:
        """Return what an array is called."""
        return self._groups.name(node)

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
        heaviest = max(there, key=lambda one: (one.sparse, there[one].num_bytes, one.digest))
        wanted = cuts_of(there[heaviest])
        apart = {one: found for one, found in there.items() if cuts_of(found) != wanted}
        if not apart:
            return {}
        done = self.rows(", ".join(map(self._groups.name, apart)), apart, wanted)
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
