"""Which arrays are on the workers: who holds which block, for how long, and which goes first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from operator import is_

from distributed import Future

from matnb.lazy.expr import Expr
from matnb.plan.plan import Stored


@dataclass
class Entry:
    """One array: its layout and keys, the futures that keep it, and what it would cost to make again.

    Attributes
    ----------
    pinned
        Whether the budget leaves it alone, because a person asked for it to be kept.
    depth
        How many runs on each other's results led to it, since its history was last cut.
    """

    stored: Stored
    futures: tuple[Future, ...]
    num_bytes: int
    seconds: float
    pinned: bool = False
    depth: int = 0


@dataclass
class _Kept:
    entry: Entry
    node: Expr = field(repr=False)  # keeps the expression, so that it is the same object when written again
    owner: Expr = field(repr=False)  # the expression whose handle it stays with


class Store:
    """Arrays on the workers by the digest of their expression, within a budget of bytes.

    An array goes when the last handle on its expression is gone, when a worker that held a block is lost, or
    when the budget is exceeded: then the one that is made again most quickly for its bytes.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._kept: dict[bytes, _Kept] = {}
        self._lock = threading.RLock()

    def add(self, node: Expr, entry: Entry, owner: Expr | None = None) -> None:
        """Keep an array while there is a handle on its expression, or on that of ``owner``."""
        with self._lock:
            self._kept[node.digest] = _Kept(entry, node, node if owner is None else owner)

    def pin(self, node: Expr) -> None:
        """Keep an array whatever the budget says."""
        with self._lock:
            if node.digest in self._kept:
                self._kept[node.digest].entry.pinned = True

    def find(self, nodes: Iterable[Expr]) -> dict[Expr, Stored]:
        """Return those of the expressions whose arrays are here."""
        with self._lock:
            return {node: self._kept[node.digest].entry.stored for node in nodes if node.digest in self._kept}

    def __contains__(self, node: object) -> bool:
        """Tell whether an expression's array is here; walks over expressions end at such ones."""
        with self._lock:
            return isinstance(node, Expr) and node.digest in self._kept

    def entry(self, node: Expr) -> Entry | None:
        """Return what is known of an array, or None."""
        with self._lock:
            kept = self._kept.get(node.digest)
            return None if kept is None else kept.entry

    def entries(self) -> Mapping[bytes, Entry]:
        """Return all arrays by digest; one that was recorded in two ways is there twice."""
        with self._lock:
            return {digest: kept.entry for digest, kept in self._kept.items()}

    @property
    def num_bytes(self) -> int:
        """Bytes on the workers."""
        with self._lock:
            return sum(entry.num_bytes for entry in self._different())

    def retain(self, live: Collection[Expr]) -> None:
        """Drop every array without a handle; ``live`` are the expressions that handles stand for.

        A loop's older states are operands of the newest one, so that an expression is in use says little.
        """
        with self._lock:
            self._kept = {
                digest: kept for digest, kept in self._kept.items() if kept.owner in live or kept.node in live
            }

    def trim(self) -> None:
        """Drop unpinned arrays, the cheapest to make again for their bytes first, until the budget is met."""
        with self._lock:
            excess = self.num_bytes - self.budget_bytes
            by_worth = sorted(self._different(), key=lambda entry: entry.seconds / max(1, entry.num_bytes))
            for entry in by_worth:
                if excess <= 0:
                    return
                if not entry.pinned:
                    self._drop(partial(is_, entry))
                    excess -= entry.num_bytes

    def drop_owner(self, owner: int) -> None:
        """Drop every array that had a block on a lost worker."""
        with self._lock:
            self._drop(lambda entry: owner in entry.stored.layout.owners)

    def clear(self) -> None:
        """Drop every array."""
        with self._lock:
            self._kept.clear()

    def _different(self) -> list[Entry]:
        return list({id(kept.entry): kept.entry for kept in self._kept.values()}.values())

    def _drop(self, goes: Callable[[Entry], bool]) -> None:
        self._kept = {digest: kept for digest, kept in self._kept.items() if not goes(kept.entry)}
