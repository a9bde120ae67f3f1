"""Stored arrays that are cut and re-cut together: a sparse one, and those whose rows lie as its rows do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from matnb.backend.store import Entry, Store
from matnb.balance.situation import Cuts, Profile
from matnb.expr.nodes import Expr
from matnb.expr.stable_order import place_of

LEAST_BYTES = 10**6  # of a sparse array; below, an iteration is over before anything could be gained
_INDEX_BYTES = 4


@dataclass(frozen=True, eq=False)
class Group:
    """Arrays with the same cuts and owners of their rows, and no other cuts.

    Attributes
    ----------
    name
        For a user: "A", or "A, x".
    main
        The sparse array with the most bytes, whose entries decide.
    arrays
        All of them, the main one first.
    """

    name: str
    main: Expr
    arrays: Mapping[Expr, Entry]

    @property
    def entry(self) -> Entry:
        """Of the main array."""
        return self.arrays[self.main]

    @property
    def cuts(self) -> Cuts:
        """Of all of them."""
        return cuts_of(self.entry)

    @property
    def row_bytes(self) -> float:
        """What a row takes over all arrays, without entries."""
        num_rows = max(1, self.main.shape[0])
        once = _once(self.arrays)
        dense = sum(self.arrays[node].num_bytes for node in once if not node.sparse)
        return dense / num_rows + _INDEX_BYTES * sum(node.sparse for node in once)

    @property
    def entry_bytes(self) -> float:
        """What an entry of the main array takes, with those of the others at the same rows."""
        once = [node for node in _once(self.arrays) if node.sparse]
        sparse = sum(self.arrays[node].num_bytes for node in once)
        pointers = _INDEX_BYTES * self.main.shape[0] * len(once)
        return max(0, sparse - pointers) / max(1, sum(self.entry.stored.block_nnz))

    def coarse_profile(self) -> Profile:
        """Return where the entries are as far as the counts of the blocks tell."""
        counts = np.cumsum((0, *self.entry.stored.block_nnz), dtype=np.int64)
        return Profile(np.array(self.cuts.cuts, np.int64), counts)


def cuts_of(entry: Entry) -> Cuts:
    """Return how the rows of an array are cut, which is not cut otherwise."""
    layout = entry.stored.layout
    return Cuts(layout.grid.cuts[0], layout.owners)


def has_rows_cut(node: Expr, entry: Entry) -> bool:
    """Tell whether an array has rows, no other axis of it is cut, and its blocks' sizes are known."""
    return (
        node.ndim > 0
        and node.shape[0] > 0
        and all(count == 1 for count in entry.stored.layout.grid.counts[1:])
        and len(entry.stored.block_bytes) == len(entry.stored.keys)
    )


class Groups:
    """Finds groups, and knows which arrays a user wants to lie alike.

    Parameters
    ----------
    store
        Of the session.

    Attributes
    ----------
    names
        What a user calls arrays.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.names: WeakKeyDictionary[Expr, str] = WeakKeyDictionary()
        self._numbers: WeakKeyDictionary[Expr, int] = WeakKeyDictionary()
        self._num_numbered = 0
        self._declared: list[WeakSet[Expr]] = []

    def declare(self, nodes: Iterable[Expr]) -> None:
        """Let arrays of as many rows lie alike from now on."""
        new = WeakSet(nodes)
        apart = []
        for one in self._declared:
            if one & new:
                new |= one
            elif len(one) > 1:
                apart.append(one)
        self._declared = [*apart, new]

    def beside(self, node: Expr) -> tuple[Expr, ...]:
        """Return the arrays that are to lie as one does, without itself."""
        found = next((one for one in self._declared if node in one), ())
        return tuple(sorted((one for one in found if one is not node), key=place_of))

    def of(self, entries: Mapping[Expr, Entry]) -> list[Group]:
        """Return the groups among stored arrays, with what is to lie as they do; the largest first."""
        alike: dict[Cuts, dict[Expr, Entry]] = {}
        for node, entry in entries.items():
            if has_rows_cut(node, entry):
                alike.setdefault(cuts_of(entry), {})[node] = entry
        groups = []
        for arrays in alike.values():
            sparse = {node: entry for node, entry in arrays.items() if node.sparse and node.ndim == 2}
            main = max(sparse, key=lambda node: (sparse[node].num_bytes, place_of(node)), default=None)
            if main is None or sparse[main].num_bytes < LEAST_BYTES:
                continue
            rest = dict(arrays)
            for node in arrays:
                for one in self.beside(node):
                    found = self._store.entry(one)
                    if found is not None:
                        rest.setdefault(one, found)
            groups.append(self.made(main, rest))
        return sorted(groups, key=lambda group: -group.entry.num_bytes)

    def made(self, main: Expr, arrays: Mapping[Expr, Entry]) -> Group:
        """Return the group of those arrays that lie as the main one does."""
        cuts = cuts_of(arrays[main])
        alike = {
            node: arrays[node]
            for node in (main, *(one for one in arrays if one is not main))
            if has_rows_cut(node, arrays[node]) and cuts_of(arrays[node]) == cuts
        }
        return Group(", ".join(map(self.name, _once(alike))), main, alike)

    def name(self, node: Expr) -> str:
        """Return what an array is called for a user; those without a name are numbered."""
        named = self.names.get(node)
        if named is not None:
            return named
        if node not in self._numbers:
            self._num_numbered += 1
            self._numbers[node] = self._num_numbered
        return f"array {self._numbers[node]}"


def _once(arrays: Mapping[Expr, Entry]) -> list[Expr]:
    # One expression for each array, which may have several.
    first: dict[Entry, Expr] = {}
    for node, entry in arrays.items():
        first.setdefault(entry, node)
    return list(first.values())
