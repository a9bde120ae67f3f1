"""Which arrays are on the workers: who holds which block, for how long, and which goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import is_
from typing import TypeAlias
from weakref import WeakKeyDictionary

from distributed import Future

from matnb.lazy.expr import Expr
from matnb.plan.plan import Stored

Kept: TypeAlias = Future  # keeps a block on its worker


@dataclass(frozen=True, eq=False)
class Entry:
    """One array: its layout and keys, the futures that keep it, and what it would cost to make again.

    Attributes
    ----------
    depth
        How many runs on each other's results led to it, since its history was last cut.
    """

    stored: Stored
    futures: tuple[Future, ...]
    seconds: float = 0.0
    depth: int = 0

    @property
    def num_bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(self.stored.block_bytes)


@dataclass(frozen=True, eq=False)
class _Kept:
    entry: Entry
    node: Expr = field(repr=False)  # kept, so that it is the same object when it is written again
    owner: Expr = field(repr=False)  # the expression whose handle it stays with


class Store:
    """Arrays on the workers by the digest of their expression, within a budget of bytes.

    An array goes when the last handle on its expression is gone, when a worker that held a block is lost, or
    when the budget is exceeded: then the one that is made again most quickly for its bytes. What a person
    gave, and this process has no copy of, stays as long as any expression needs it.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._kept: dict[bytes, _Kept] = {}
        self._given: WeakKeyDictionary[Expr, Entry] = WeakKeyDictionary()
        self._pinned: dict[bytes, Expr] = {}
        self._lock = threading.RLock()

    def add(self, node: Expr, entry: Entry, owner: Expr | None = None) -> None:
        """Keep an array while there is a handle on its expression, or on that of ``owner``."""
        with self._lock:
            self._kept[node.digest] = _Kept(entry, node, node if owner is None else owner)

    def add_given(self, node: Expr, entry: Entry) -> None:
        """Keep a person's array while any expression needs it, since nobody could make it again."""
        with self._lock:
            self._given[node] = entry

    def pin(self, node: Expr) -> None:
        """Keep an array whatever the budget says, also when it is made again after a loss."""
        with self._lock:
            self._pinned[node.digest] = node

    def find(self, nodes: Iterable[Expr]) -> dict[Expr, Stored]:
        """Return those of the expressions whose arrays are here."""
        with self._lock:
            found = {node: self.entry(node) for node in nodes}
            return {node: entry.stored for node, entry in found.items() if entry is not None}

    def __contains__(self, node: object) -> bool:
        """Tell whether an expression's array is here; walks over expressions end at such ones."""
        return isinstance(node, Expr) and self.entry(node) is not None

    def entry(self, node: Expr) -> Entry | None:
        """Return what is known of an array, or None."""
        with self._lock:
            kept = self._kept.get(node.digest)
            return self._given.get(node) if kept is None else kept.entry

    def entries(self) -> tuple[Entry, ...]:
        """Return every array once, though it was recorded in two ways."""
        with self._lock:
            every = (*(kept.entry for kept in self._kept.values()), *self._given.values())
            return tuple({id(entry): entry for entry in every}.values())

    @property
    def num_bytes(self) -> int:
        """Bytes on the workers."""
        return sum(entry.num_bytes for entry in self.entries())

    def bytes_by_owner(self) -> dict[int, int]:
        """Return the bytes that each worker holds."""
        held: dict[int, int] = {}
        for entry in self.entries():
            for owner, size in zip(entry.stored.layout.owners, entry.stored.block_bytes, strict=False):
                held[owner] = held.get(owner, 0) + size
        return held

    def retain(self, live: Collection[Expr]) -> None:
        """Drop every array without a handle; ``live`` are the expressions that handles stand for.

        A loop's older states are operands of the newest one, so that an expression is in use says little.
        """
        with self._lock:
            self._kept = {
                digest: kept for digest, kept in self._kept.items() if kept.owner in live or kept.node in live
            }
            self._pinned = {digest: node for digest, node in self._pinned.items() if node in live}

    def trim(self, needed: Collection[Expr] = (), room_bytes: int = 0) -> None:
        """Drop arrays, the cheapest to make again for their bytes first, until the budget is met.

        Parameters
        ----------
        needed
            Expressions whose arrays stay, because a run is about to read them.
        room_bytes
            What must be free within the budget.
        """
        with self._lock:
            excess = self.num_bytes + room_bytes - self.budget_bytes
            stay = {id(self.entry(node)) for node in (*needed, *self._pinned.values(), *self._given)}
            by_worth = sorted(self.entries(), key=lambda entry: entry.seconds / max(1, entry.num_bytes))
            for entry in by_worth:
                if excess <= 0:
                    return
                if id(entry) not in stay:
                    self._drop(partial(is_, entry))
                    excess -= entry.num_bytes

    def drop_owner(self, owner: int) -> None:
        """Drop every array that had a block on a lost worker."""
        with self._lock:
            self._drop(lambda entry: owner in entry.stored.layout.owners)
            lost = [node for node, entry in self._given.items() if owner in entry.stored.layout.owners]
            for node in lost:
                del self._given[node]

    def clear(self) -> None:
        """Drop every array."""
        with self._lock:
            self._kept.clear()
            self._given.clear()
            self._pinned.clear()

    def _drop(self, goes: Callable[[Entry], bool]) -> None:
        self._kept = {digest: kept for digest, kept in self._kept.items() if not goes(kept.entry)}
