"""Which arrays are on the workers: who holds which block, for how long, and which is evicted first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol
from weakref import WeakKeyDictionary, ref

from matnb.backend.kept import BlockRef
from matnb.expr.nodes import Expr
from matnb.expr.retention import is_read_column
from matnb.program.plan import StoredArray


class HidesArrays(Protocol):
    """Decides which stored arrays a lookup must not find."""

    def __contains__(self, node: object) -> bool:
        """Tell whether the array of an expression is hidden."""

    def added(self, node: Expr) -> None:
        """Note that an array was added."""


MOST_NAMES = 1000  # of arrays that gave way
MOST_IDLE = 500  # arrays without a handle; each is some tasks that the scheduler knows of


@dataclass(frozen=True, eq=False)
class Entry:
    """One array: its layout and keys, what keeps its blocks, and what it would cost to make again.

    Attributes
    ----------
    depth
        How many runs on each other's results led to it, since its history was last cut.
    may_go
        Of what a user gave, whether there is a copy that takes no memory, from which it is sent again.
    """

    stored: StoredArray
    futures: tuple[BlockRef, ...]
    seconds: float = 0.0
    depth: int = 0
    may_go: bool = False

    @property
    def num_bytes(self) -> int:
        """Bytes of all blocks."""
        return sum(self.stored.block_bytes)


@dataclass(frozen=True, eq=False)
class _StoreRecord:
    entry: Entry
    # Kept while there is a handle, so that it is the same object when it is written again; an array without
    # one must not keep alive what it was made from. A column of a file does not keep itself alive either.
    node: Expr | ref[Expr] | None = field(repr=False)
    owner: bytes  # digest of the expression whose handle it stays with
    second: bool  # whether the array has a first name, under which it was made


class _Tally:
    """Under which names each array is kept, and how many bytes all have on each worker."""

    def __init__(self) -> None:
        self.names: dict[Entry, set[bytes]] = {}
        self.by_owner: dict[int, int] = {}
        self.num_bytes = 0

    def add(self, entry: Entry, name: bytes) -> None:
        """Note a name of an array."""
        names = self.names.setdefault(entry, set())
        if not names:
            self._count(entry, 1)
        names.add(name)

    def remove(self, entry: Entry, name: bytes) -> None:
        """Remove a name of an array; once it has no name left, stop counting it."""
        names = self.names[entry]
        names.discard(name)
        if not names:
            del self.names[entry]
            self._count(entry, -1)

    def _count(self, entry: Entry, sign: int) -> None:
        self.num_bytes += sign * entry.num_bytes
        for owner, size in zip(entry.stored.layout.owners, entry.stored.block_bytes, strict=False):
            self.by_owner[owner] = self.by_owner.get(owner, 0) + sign * size


class Store:
    """Arrays on the workers by the digest of their expression.

    An array goes when the last handle on its expression is gone, unless it is remembered, or is a column of a
    file that some expression reads; when a worker that held a block is lost; or when a budget is exceeded or
    a run needs the room: first those without a handle, then those with one, and of them the one that is made
    again most quickly for its bytes. What cannot be made again as it was stays: what a user gave, and this
    process has no copy of that takes no memory, and what comes of a function that may give something else
    each time.

    Attributes
    ----------
    num_gave_way
        Arrays with a handle that went for the budget or a run; they are made again where they are read.

    Parameters
    ----------
    hiding
        Returns which arrays what runs now, on the thread that asks, is not to find; None for no arrays.
    """

    def __init__(self, hiding: Callable[[], HidesArrays | None] = lambda: None) -> None:
        self._hiding = hiding
        self._kept: dict[bytes, _StoreRecord] = {}  # changed by _keep and _let_go alone
        self._tally = _Tally()  # of what is in there
        self._given: WeakKeyDictionary[Expr, Entry] = WeakKeyDictionary()
        self._has_given = False  # or had: a weak table is asked dearly, and few sessions have anything in it
        self.num_gave_way = 0
        self._gave_way: dict[bytes, None] = {}  # under which names, the newest last
        self._pinned: dict[bytes, Expr | ref[Expr]] = {}
        self._remembered: dict[bytes, None] = {}  # the one used longest ago first
        self._idle: set[Entry] = set()  # those without a handle, when it was looked last
        self._lock = threading.RLock()

    def add(self, node: Expr, entry: Entry, owner: Expr | None = None, second: bool = False) -> None:
        """Keep an array while there is a handle on its expression, or on that of ``owner``.

        Parameters
        ----------
        second
            Whether this is another name of an array that was added before: it goes with the handles on it,
            though the array may stay.
        """
        with self._lock:
            owned = node.digest if owner is None else owner.digest
            before = self._kept.get(node.digest)
            second = second and (before is None or before.second or before.entry is not entry)
            held = ref(node) if is_read_column(node) else node
            self._keep(node.digest, _StoreRecord(entry, held, owned, second))
            if (hiding := self._hiding()) is not None:
                hiding.added(node)

    def remember(self, node: Expr, by_this_name: bool = False) -> None:
        """Keep a stored array after its handles are gone, as long as the budget allows.

        It is found by its first name then, if it has one, and by this one too if that is wanted.
        """
        with self._lock:
            kept = self._kept.get(node.digest)
            if kept is None:
                return
            names = [node.digest] if by_this_name or not kept.second else []
            if kept.second:
                names += [one for one in self._tally.names[kept.entry] if not self._kept[one].second]
            for name in names or [node.digest]:
                self._remembered.pop(name, None)
                self._remembered[name] = None

    def is_second(self, node: Expr) -> bool:
        """Tell whether an array was added under another name before."""
        with self._lock:
            kept = self._kept.get(node.digest)
            return kept is not None and kept.second

    def forget(self) -> None:
        """Clear what ``remember`` noted; arrays without a handle can then go at the next ``retain``."""
        with self._lock:
            self._remembered.clear()

    def loosen(self) -> None:
        """Hold the expressions stored so far by weak references only, so that unused ones can be freed."""
        with self._lock:
            self._kept = {
                digest: replace(kept, node=ref(kept.node)) if isinstance(kept.node, Expr) else kept
                for digest, kept in self._kept.items()
            }
            self._pinned = {
                digest: ref(one) if isinstance(one, Expr) else one for digest, one in self._pinned.items()
            }

    def add_given(self, node: Expr, entry: Entry, may_go: bool = False) -> None:
        """Keep a user's array while its expression is alive; it may be evicted only if ``may_go``."""
        with self._lock:
            self._given[node], self._has_given = replace(entry, may_go=may_go), True

    def replace(self, old: Entry, new: Entry) -> None:
        """Replace an array by its repartitioned copy, under all its names."""
        with self._lock:
            for digest in tuple(self._tally.names.get(old, ())):
                self._keep(digest, replace(self._kept[digest], entry=new))
            for node in [node for node, entry in self._given.items() if entry is old]:
                self._given[node] = new
            if old in self._idle:
                self._idle.remove(old)
                self._idle.add(new)

    def pin(self, node: Expr) -> None:
        """Never evict an array while it has a handle, even once it was lost and recomputed."""
        with self._lock:
            self._pinned[node.digest] = node

    def find(self, nodes: Iterable[Expr]) -> dict[Expr, StoredArray]:
        """Return the stored arrays of those of the given expressions that are resident."""
        with self._lock:
            found = {node: self.entry(node) for node in nodes}
            return {node: entry.stored for node, entry in found.items() if entry is not None}

    def __contains__(self, node: object) -> bool:
        """Tell whether an expression's array is here; walks over expressions end at such ones."""
        return isinstance(node, Expr) and (
            (node.digest in self._kept or self._has_given) and self.entry(node) is not None
        )

    def entry(self, node: Expr) -> Entry | None:
        """Return the entry of an array, or None."""
        # Without the lock, as one table is read and then the other: it is asked some thirty times a run.
        kept = self._kept.get(node.digest)
        if kept is not None:
            hiding = self._hiding()
            if hiding is None or node not in hiding:
                return kept.entry
        return self._given.get(node) if self._has_given else None

    def entry_named(self, digest: bytes) -> Entry | None:
        """Return the entry of the array whose expression has this digest, or None."""
        kept = self._kept.get(digest)
        return None if kept is None else kept.entry

    def entries(self) -> tuple[Entry, ...]:
        """Return every array once, even if it is kept under several expressions."""
        with self._lock:
            every = (*(kept.entry for kept in self._kept.values()), *self._given.values())
            return tuple({id(entry): entry for entry in every}.values())

    def named(self) -> dict[Entry, Expr]:
        """Map each array to an expression of it that is still alive; to the recorded one if there are two."""
        with self._lock:
            every = [
                (kept.entry, kept.node() if isinstance(kept.node, ref) else kept.node)
                for kept in self._kept.values()
            ]
            every += [(entry, node) for node, entry in self._given.items()]
            return {entry: node for entry, node in every if node is not None}

    def digests(self) -> Collection[bytes]:
        """Return the digests of the expressions kept by ``add``, without those given by ``add_given``."""
        return self._kept.copy().keys()

    @property
    def num_kept(self) -> int:
        """How many expressions ``add`` keeps arrays for; those of ``add_given`` do not count."""
        return len(self._kept)

    @property
    def num_bytes(self) -> int:
        """Bytes on the workers."""
        return self._tally.num_bytes + sum(entry.num_bytes for entry in self._given_alone())

    def bytes_by_owner(self) -> dict[int, int]:
        """Return the bytes that each worker holds."""
        return _with_bytes(self._tally.by_owner, self._given_alone())

    def _given_alone(self) -> Iterable[Entry]:
        # What a user gave that has no name of its own; such arrays go by themselves.
        if not self._has_given:
            return ()
        with self._lock:
            return {entry for entry in self._given.values() if entry not in self._tally.names}

    def retain(self, live: Collection[Expr]) -> None:
        """Drop every array without a handle that is not remembered; handles stand for the ``live`` ones.

        A loop's older states are operands of the newest one, so that an expression is in use says little.
        """
        with self._lock:
            digests = {node.digest for node in live}
            if not digests.issuperset(self._pinned):
                self._pinned = {digest: node for digest, node in self._pinned.items() if digest in digests}
            gone = {
                digest
                for digest, kept in self._kept.items()
                if digest not in digests and kept.owner not in digests
            }
            names = {kept.entry: self._tally.names[kept.entry] for kept in map(self._kept.__getitem__, gone)}
            unheld = {entry for entry, its in names.items() if its <= gone}
            self._idle = {entry for entry in unheld if any(one in self._remembered for one in names[entry])}
            if len(self._idle) > MOST_IDLE:
                self._forget_oldest()
            self._idle |= {entry for entry in unheld if any(map(self._is_read, names[entry]))}
            for digest in gone:
                kept = self._kept[digest]
                is_found_so = not kept.second or digest in self._remembered
                if not is_found_so or (kept.entry in unheld and kept.entry not in self._idle):
                    self._let_go(digest)
                elif kept.entry in unheld and kept.node is not None and not self._is_read(digest):
                    self._kept[digest] = replace(kept, node=None)

    def _is_read(self, digest: bytes) -> bool:
        # Whether it is a column of a file that some expression reads still.
        node = self._kept[digest].node
        node = node() if isinstance(node, ref) else None
        return node is not None and is_read_column(node)

    def _forget_oldest(self) -> None:
        newest: set[Entry] = set()
        for digest in reversed(self._remembered):
            kept = self._kept.get(digest)
            if kept is not None and kept.entry in self._idle and len(newest) < MOST_IDLE:
                newest.add(kept.entry)
        self._idle = newest

    def idle(self) -> Collection[Entry]:
        """Return the arrays that had no handle at the last ``retain``."""
        return frozenset(self._idle)

    def has_handle(self, entry: Entry) -> bool:
        """Tell whether there was a handle on an array when it was looked last."""
        return entry not in self._idle

    def trim(self, budget_bytes: int, needed: Collection[Expr] = ()) -> None:
        """Evict arrays to meet a budget: idle ones first; of these and of others the cheapest per byte.

        Those of expressions that are ``needed`` stay.
        """
        with self._lock:
            excess = self.num_bytes - budget_bytes
            for entry in self._going(needed) if excess > 0 else ():
                if excess <= 0:
                    return
                # One that is larger than all of the budget was never to stay.
                self._give_way(entry, entry.num_bytes <= budget_bytes)
                excess -= entry.num_bytes

    def make_room(
        self, needed: Collection[Expr], lacking: Callable[[Mapping[int, int]], Collection[int]]
    ) -> dict[int, int]:
        """Evict arrays, in the order of ``trim``, until no worker lacks room.

        Where that cannot be had, none is dropped.

        Parameters
        ----------
        needed
            Expressions whose arrays stay.
        lacking
            Given the bytes that each worker holds, returns the workers that lack room then.

        Returns
        -------
        dict of int to int
            The bytes that each worker holds when all that may go for it has gone.
        """
        with self._lock:
            held = self.bytes_by_owner()
            short, going = set(lacking(held)), []
            for entry in self._going(needed) if short else ():
                if short.isdisjoint(entry.stored.layout.owners):
                    continue
                going.append(entry)
                for owner, size in zip(entry.stored.layout.owners, entry.stored.block_bytes, strict=False):
                    held[owner] -= size
                short = set(lacking(held))
                if not short:
                    break
            if not short:
                for entry in going:
                    self._give_way(entry)
            return held

    def bytes_staying(self, needed: Collection[Expr]) -> dict[int, int]:
        """Return the bytes that each worker holds of arrays that are needed or are never evicted."""
        with self._lock:
            return _with_bytes({}, self._staying(needed))

    def drop_idle(self, needed: Collection[Expr]) -> None:
        """Evict every array without a handle, unless it is needed or is never evicted."""
        with self._lock:
            for entry in self._idle.difference(self._staying(needed)):
                self._drop(entry)

    def _going(self, needed: Collection[Expr] = ()) -> list[Entry]:
        # What may go, in this order.
        stay = self._staying(needed)
        return sorted((entry for entry in self.entries() if entry not in stay), key=self._worth)

    def _staying(self, needed: Collection[Expr]) -> set[Entry]:
        pinned = (one() if isinstance(one, ref) else one for one in self._pinned.values())
        nodes = (*needed, *(one for one in pinned if one is not None))
        found = {self.entry(node) for node in nodes}
        found.update(entry for entry in self._given.values() if not entry.may_go)
        found.update(entry for entry, node in self.named().items() if node.is_made_anew)
        return {entry for entry in found if entry is not None}

    def _worth(self, entry: Entry) -> tuple[bool, float]:
        return entry not in self._idle, entry.seconds / max(1, entry.num_bytes)

    def drop_owner(self, owner: int) -> None:
        """Drop every array that had a block on a lost worker."""
        with self._lock:
            for entry in [one for one in self._tally.names if owner in one.stored.layout.owners]:
                self._drop(entry)
            lost = [node for node, entry in self._given.items() if owner in entry.stored.layout.owners]
            for node in lost:
                del self._given[node]

    def clear(self) -> None:
        """Drop every array."""
        with self._lock:
            self._kept.clear()
            self._tally = _Tally()
            self._given.clear()
            self._pinned.clear()
            self._remembered.clear()
            self._idle.clear()
            self._gave_way.clear()

    def gave_way(self, node: Expr) -> bool:
        """Tell whether the array of an expression went to make room, while there was a handle on it."""
        return node.digest in self._gave_way and self.entry(node) is None

    def _give_way(self, entry: Entry, is_counted: bool = True) -> None:
        if is_counted and entry not in self._idle:
            self.num_gave_way += 1
            given = (node.digest for node, one in self._given.items() if one is entry)
            self._gave_way.update(dict.fromkeys((*self._tally.names.get(entry, ()), *given)))
            for digest in list(self._gave_way)[:-MOST_NAMES]:
                del self._gave_way[digest]
        self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        self._idle.discard(entry)
        if entry.may_go:
            for node in [node for node, one in self._given.items() if one is entry]:
                del self._given[node]
        for digest in tuple(self._tally.names.get(entry, ())):
            self._let_go(digest)

    def _keep(self, digest: bytes, keeping: _StoreRecord) -> None:
        before = self._kept.get(digest)
        if before is None or before.entry is not keeping.entry:
            self._tally.add(keeping.entry, digest)
            if before is not None:
                self._tally.remove(before.entry, digest)
        self._kept[digest] = keeping

    def _let_go(self, digest: bytes) -> None:
        self._tally.remove(self._kept.pop(digest).entry, digest)
        self._remembered.pop(digest, None)


def _with_bytes(held: Mapping[int, int], entries: Iterable[Entry]) -> dict[int, int]:
    # The bytes that each worker holds, with these arrays too.
    found = dict(held)
    for entry in entries:
        for owner, size in zip(entry.stored.layout.owners, entry.stored.block_bytes, strict=False):
            found[owner] = found.get(owner, 0) + size
    return found
