"""Which arrays are on the workers: who holds which block, for how long, and which goes first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from weakref import finalize

from distributed import Future

from matnb.lazy.expr import Expr
from matnb.plan.plan import Stored


@dataclass
class Entry:
    """One array: its layout and keys, the futures that keep it, and what it would cost to make again."""

    stored: Stored
    futures: tuple[Future, ...]
    num_bytes: int
    seconds: float
    pinned: bool
    depth: int


class Store:
    """Arrays on the workers by the digest of their expression, within a budget of bytes.

    An array goes when its expression does, when a worker that held a block is lost, or when the budget is
    exceeded: then the one that is made again most quickly for its bytes.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.budget_bytes = budget_bytes
        self._entries: dict[bytes, Entry] = {}
        self._died: deque[bytes] = deque()  # appended to by finalizers, which may run anywhere
        self._lock = threading.RLock()

    def add(self, node: Expr, entry: Entry, lifetime: Expr | None = None) -> None:
        """Keep an array as long as its expression, or that of ``lifetime``, exists."""
        with self._lock:
            self._drain()
            self._entries[node.digest] = entry
            finalize(node if lifetime is None else lifetime, self._died.append, node.digest).atexit = False

    def pin(self, node: Expr) -> None:
        """Keep an array whatever the budget says."""
        with self._lock:
            if node.digest in self._entries:
                self._entries[node.digest].pinned = True

    def find(self, nodes: Iterable[Expr]) -> dict[Expr, Stored]:
        """Return those of the expressions whose arrays are here."""
        with self._lock:
            self._drain()
            return {node: self._entries[node.digest].stored for node in nodes if node.digest in self._entries}

    def entry(self, node: Expr) -> Entry | None:
        """Return what is known of an array, or None."""
        with self._lock:
            self._drain()
            return self._entries.get(node.digest)

    def entries(self) -> Mapping[bytes, Entry]:
        """Return all arrays by digest."""
        with self._lock:
            self._drain()
            return dict(self._entries)

    @property
    def num_bytes(self) -> int:
        """Bytes on the workers."""
        with self._lock:
            self._drain()
            return sum(entry.num_bytes for entry in self._entries.values())

    def trim(self) -> None:
        """Drop unpinned arrays, the cheapest to make again for their bytes first, until the budget is met."""
        with self._lock:
            excess = self.num_bytes - self.budget_bytes
            if excess <= 0:
                return
            by_worth = sorted(
                (entry.seconds / max(1, entry.num_bytes), digest)
                for digest, entry in self._entries.items()
                if not entry.pinned
            )
            for _, digest in by_worth:
                if excess <= 0:
                    return
                excess -= self._entries.pop(digest).num_bytes

    def drop_owner(self, owner: int) -> int:
        """Drop every array that had a block on a lost worker, and return how many there were."""
        with self._lock:
            lost = [digest for digest, entry in self._entries.items() if owner in entry.stored.layout.owners]
            for digest in lost:
                del self._entries[digest]
            return len(lost)

    def clear(self) -> None:
        """Drop every array."""
        with self._lock:
            self._entries.clear()
            self._died.clear()

    def _drain(self) -> None:
        while self._died:
            self._entries.pop(self._died.popleft(), None)
