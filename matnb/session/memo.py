"""The memo: small values kept here, results on workers that outlive their handles, and files of both."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from types import MappingProxyType
from weakref import WeakKeyDictionary, ref

from matnb.backend.engines.blocks import WorkerBlocks
from matnb.backend.engines.futures import OwnersLost
from matnb.backend.kept import BlockRef, names_of
from matnb.backend.store import Entry, Store
from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Grid, whole
from matnb.config import Config
from matnb.errors import TooLargeError
from matnb.expr.client_data import copied
from matnb.expr.control import Cond, Final, Loop
from matnb.expr.nodes import Expr
from matnb.expr.retention import is_small, outlasts_handles, worth_writing
from matnb.expr.traverse import topological
from matnb.io.results import About, Result, ResultFolder, writable
from matnb.lazy.handles import live_expressions
from matnb.pictures.memo import MemoEntry, memo_html, memo_text
from matnb.plan.explain import told_alone
from matnb.program.place import laid_out
from matnb.program.plan import StoredArray
from matnb.session.naming import line_of, variable_of
from matnb.session.overrides import hiding, remembers
from matnb.session.planning import Planner

_NO_VARIABLES: Mapping[str, Expr] = MappingProxyType({})
MOST_VALUES = 100_000  # small values; a loop that asks for one each time does not fill the memory


def _made_by(node: Expr) -> str:
    # The line of code that made it, else the operation. Lines stay in this process: files have none.
    return line_of(node) or told_alone(node, called=variable_of)


@dataclass(eq=False)
class _Value:
    block: Dense
    seconds: float
    text: str
    hits: int = 0


class Memo:
    """What a session remembers, by the digests of expressions.

    Parameters
    ----------
    folder
        Where results stay between processes, or None.
    """

    def __init__(
        self,
        config: Config,
        store: Store,
        blocks: WorkerBlocks,
        planner: Planner,
        folder: ResultFolder | None,
    ) -> None:
        self._store, self._blocks, self._planner, self._folder = store, blocks, planner, folder
        self._config = config
        self._values: OrderedDict[bytes, _Value] = OrderedDict()
        # All there is when the memo is off, with the arrays' expressions when the last request ended.
        self._shown: WeakKeyDictionary[Expr, _Value] = WeakKeyDictionary()
        self._alive_then: tuple[ref[Expr], ...] = ()
        self._arrays_then: frozenset[bytes] = frozenset()
        self._requests = 0  # under way, one inside another
        self._texts: WeakKeyDictionary[Entry, tuple[str, str]] = WeakKeyDictionary()
        self._hits: WeakKeyDictionary[Entry, int] = WeakKeyDictionary()
        self._lock = threading.RLock()

    @property
    def _remembers(self) -> bool:
        return remembers(self._config)

    # small values

    def __contains__(self, node: object) -> bool:
        """Return whether the value of an expression is remembered in this process."""
        return isinstance(node, Expr) and self._found(node) is not None

    def value(self, node: Expr) -> Dense | None:
        """Return the value of a small array that was computed before; nobody writes into it."""
        found = self._found(node)
        return None if found is None else found.block

    def get_small(self, node: Expr) -> Dense | None:
        """Return a copy of a small value instead of computing it, and count that."""
        found = self._found(node)
        if found is None:
            return None
        found.hits += 1
        block = copied(found.block)
        assert isinstance(block, Dense), "small values are dense"
        return block

    def _found(self, node: Expr) -> _Value | None:
        hidden = hiding()
        if hidden is not None and node in hidden:
            return None
        if self._remembers:
            return self._values.get(node.digest)  # one look at a table, which needs no lock
        with self._lock:
            return self._shown.get(node)

    def put(self, block: Block, *names: Expr) -> None:
        """Remember a value under one or several expressions that have it, if it is small."""
        node = names[0]
        if not isinstance(block, Dense) or not is_small(node, block.nbytes):
            return
        entry = self._store.entry(node)
        values = Dense(block.values.copy())
        values.values.flags.writeable = False
        self._put(_Value(values, 0.0 if entry is None else entry.seconds, _made_by(node)), *names)

    def _put(self, value: _Value, *names: Expr) -> None:
        hidden = hiding()
        with self._lock:
            for name in names:
                if hidden is not None:
                    hidden.added(name)
                if not self._remembers:
                    self._shown[name] = value
                elif name.digest not in self._values:
                    self._values[name.digest] = value
            while len(self._values) > MOST_VALUES:
                self._values.popitem(last=False)

    # while it is off

    def request(self) -> AbstractContextManager[None]:
        """Return the scope of a request for values. With the memo off it finds what handles have kept alive.

        That is what a handle stands for, or was recorded upon, without a break since the last request: a
        loop's last state, on which no name is left once it has become the next one. The same expression
        written again is another object by then, and is computed again.
        """
        return nullcontext() if self._config.remembers else self._forgetting()

    @contextmanager
    def _forgetting(self) -> Iterator[None]:
        with self._lock:
            self._requests += 1
            if self._requests == 1:
                self._forget_unheld()
        try:
            yield
        finally:
            with self._lock:
                self._requests -= 1
                if not self._requests:
                    # Where what a handle stands for is here, what it was recorded upon is not needed.
                    found = topological(live_expressions(), self._store)
                    self._alive_then = tuple(ref(node) for node in found if node in self._store)
                    self._store.loosen()
                    self._arrays_then = frozenset(self._store.digests())

    def _forget_unheld(self) -> None:
        held = {node for one in self._alive_then if (node := one()) is not None}
        # What came since, a file's arrays for example, has its first handles now.
        since = {node for node in live_expressions() if node.digest not in self._arrays_then}
        self._store.retain(held | since)

    # before a run

    def get(self, roots: Mapping[str, Expr], fetch: Collection[str]) -> dict[str, Block]:
        """Return the values of roots that need no run, and reload remembered results that the run reads.

        From the roots down, small values and what is on disk are put on the workers where the run would read
        them and no array is there.
        """
        taken: dict[str, Block] = {}
        if self._folder is not None:
            self._folder.refresh()
        self.reload(roots.values(), [roots[name] for name in fetch])
        for name in fetch:
            node = roots[name]
            if node not in self._store and (block := self.get_small(node)) is not None:
                taken[name] = block
        return taken

    def reload(
        self, roots: Iterable[Expr], asked: Collection[Expr] = (), looked_at: Iterable[Expr] = ()
    ) -> bool:
        """Reload remembered results that a run over the roots reads; return whether any were loaded.

        Parameters
        ----------
        asked
            Roots whose values are wanted here: what is remembered of them stays here.
        looked_at
            Expressions that were looked at before, with all below them.
        """
        if not self._remembers or not (self._values or self._folder is not None):
            return False
        before = self._store.num_kept
        seen = set(looked_at)
        waiting = list(roots)
        while waiting:
            node = waiting.pop()
            if node in seen:
                continue
            seen.add(node)
            may_be_known = self._folder is not None or node.digest in self._values
            if node in self._store or (may_be_known and self._is_put(node, node in asked, seen)):
                continue
            # How often a loop ran says nothing of what it gave.
            waiting.extend(node.control.operands if isinstance(node, Final) else node.operands)
        return self._store.num_kept > before

    def _is_put(self, node: Expr, asked: bool, needed: Collection[Expr]) -> bool:
        # Whether a value or an array of the expression is where it is wanted now.
        found = self._found(node)
        if found is None and self._folder is not None and node.digest in self._folder:
            if self._folder.read(node.digest, lambda result: self._read(node, result, needed)):
                return True
            found = self._found(node)
        if found is None or asked:
            return found is not None
        block = found.block
        return self._ship(node, whole(node.shape), [block.nbytes], lambda _: block, found.seconds, needed)

    def _read(self, node: Expr, result: Result, needed: Collection[Expr]) -> bool:
        # True where the array is on the workers now; a small value stays here.
        about = result.about
        if (about.grid.shape, about.dtype, about.sparse) != (node.shape, node.dtype, node.sparse):
            return False
        if is_small(node, result.num_bytes) and about.grid.num_blocks == 1:
            block = result.block(0)
            assert isinstance(block, Dense), "what is not sparse is dense"
            block.values.flags.writeable = False
            self._put(_Value(block, about.seconds, about.text), node)
            return False
        if not self._ship(node, about.grid, result.sizes(), result.block, about.seconds, needed):
            return False
        entry = self._store.entry(node)
        assert entry is not None, "it was just put there"
        self._store.remember(node)
        self._texts[entry] = about.text, about.dtype.name
        return True

    def _ship(
        self,
        node: Expr,
        grid: Grid,
        sizes: Sequence[int],
        block: Callable[[int], Block],
        seconds: float,
        needed: Collection[Expr],
    ) -> bool:
        # Block by block, so that this process holds one; False where there is no room on the workers.
        layout = laid_out(grid, self._planner.workers())
        peaks: dict[int, int] = {}
        for owner, size in zip(layout.owners, sizes, strict=True):
            peaks[owner] = peaks.get(owner, 0) + size
        try:
            self._planner.check_peaks(peaks, needed)
        except TooLargeError:
            return False
        futures: list[BlockRef] = []
        counts: list[tuple[int, int]] = []
        for number, owner in enumerate(layout.owners):
            one = block(number)
            futures.extend(self._blocks.ship({number: one}, owner).values())
            counts.append((one.nnz, one.nbytes))
        nnz, sizes = tuple(nnz for nnz, _ in counts), tuple(size for _, size in counts)
        stored = StoredArray(layout, names_of(futures), nnz, sizes)
        self._store.add(node, Entry(stored, tuple(futures), seconds))
        self._planner.in_use.add(node)  # it may be there under a name that only passes give
        return True

    # after a run

    def touch(self, nodes: Iterable[Expr]) -> None:
        """Count a use of arrays that were there already."""
        for node in nodes:
            if (entry := self._store.entry(node)) is not None:
                self._hits[entry] = self._hits.get(entry, 0) + 1

    def replaced(self, old: Entry, new: Entry) -> None:
        """Keep the memo entry of an array that was repartitioned."""
        if old in self._texts:
            self._texts[new] = self._texts.pop(old)
        if old in self._hits:
            self._hits[new] = self._hits.pop(old)
        self._store.replace(old, new)

    def pin(self, nodes: Iterable[Expr], blocks: Callable[[int], Block] | None = None) -> None:
        """Let results that were asked for outlast their handles, and write them to the folder.

        Parameters
        ----------
        blocks
            Gives the blocks of the one result there is, where they are in this process already.
        """
        if not self._remembers:
            return
        for node in nodes:
            entry = self._store.entry(node)
            if entry is not None and outlasts_handles(node, entry.num_bytes):
                # Loops run before passes name what an expression becomes.
                by_this_name = self._store.is_second(node) and any(
                    isinstance(one, Loop | Cond) for one in topological([node])
                )
                self._store.remember(node, by_this_name)
                self._texts[entry] = _made_by(node), node.dtype.name
            if self._folder is not None:
                self._write(self._folder, node, entry, blocks)

    def _write(
        self, folder: ResultFolder, node: Expr, entry: Entry | None, blocks: Callable[[int], Block] | None
    ) -> None:
        if node.digest in folder or not worth_writing(node) or not writable(node.dtype):
            return
        value = self._found(node)
        if value is not None:
            small = value.block
            about = About(node.digest, whole(node.shape), node.dtype, False, told_alone(node), value.seconds)
            folder.write(about, lambda _: small)
        elif entry is not None and entry.stored.block_bytes:
            layout, futures = entry.stored.layout, entry.futures
            about = About(node.digest, layout.grid, node.dtype, node.sparse, told_alone(node), entry.seconds)

            def fetched(number: int) -> Block:
                (block,) = self._blocks.gather([futures[number]], [layout.owners[number]])
                return block

            # A worker that was lost meanwhile is the next run's to find out.
            with suppress(OwnersLost):
                folder.write(about, blocks or fetched, entry.num_bytes)

    # looking

    @property
    def num_values(self) -> int:
        """Small values remembered in this process."""
        return len(self._values)

    @property
    def files(self) -> tuple[str, int]:
        """The folder of results and the bytes in it; no path where there is none."""
        if self._folder is None:
            return "", 0
        self._folder.refresh()
        return self._folder.path, self._folder.num_bytes

    def entries(self, variables: Mapping[str, Expr] = _NO_VARIABLES) -> tuple[MemoEntry, ...]:
        """Return everything that is remembered: arrays on the workers, small values, and files of others.

        Parameters
        ----------
        variables
            What a user's names stand for; entries have them. Without any, entries have the variables that
            cells gave arrays to which handles still stand for.
        """
        live = live_expressions()
        variables = variables or {name: node for node in live if (name := variable_of(node))}
        self._planner.retain()
        named = self._store.named()
        called: dict[bytes | Entry, list[str]] = {}
        for name, held in variables.items():
            for place in (held.digest, self._store.entry(held)):
                if place is not None:
                    called.setdefault(place, []).append(name)
        digests = {node.digest for node in live}
        known: dict[_Value, list[bytes]] = {}
        with self._lock:
            for digest, value in self._values.items():
                known.setdefault(value, []).append(digest)
        rows = []
        here: set[Entry] = set()  # arrays whose value is in this process, too
        for value, names in known.items():
            block, has_handle = value.block, not digests.isdisjoint(names)
            entries = {entry for name in names if (entry := self._store.entry_named(name)) is not None}
            hits = value.hits + sum(self._hits.get(entry, 0) for entry in entries)
            here |= entries
            found = tuple(dict.fromkeys(one for name in names for one in called.get(name, ())))
            rows.append(
                MemoEntry(
                    value.text, block.shape, block.dtype.name, block.nbytes, hits, value.seconds,
                    "value", has_handle, found,
                )
            )  # fmt: skip
        for entry in self._store.entries():
            if entry in here:
                continue
            node = named.get(entry)
            about = ("", "") if node is None else (_made_by(node), node.dtype.name)
            text, dtype = self._texts.get(entry, about)
            shape, hits = entry.stored.layout.grid.shape, self._hits.get(entry, 0)
            rows.append(
                MemoEntry(
                    text, shape, dtype, entry.num_bytes, hits, entry.seconds,
                    "workers", self._store.has_handle(entry), tuple(called.get(entry, ())),
                )
            )  # fmt: skip
        return (*rows, *self._on_disk_alone(digests))

    def _on_disk_alone(self, live: Collection[bytes]) -> list[MemoEntry]:
        rows: list[MemoEntry] = []
        if self._folder is None:
            return rows
        self._folder.refresh()
        for digest in self._folder:
            if digest in self._values or self._store.entry_named(digest) is not None:
                continue
            found = self._folder.read(digest, lambda result: (result.about, result.num_bytes), is_use=False)
            if found is not None:
                about, size = found
                rows.append(
                    MemoEntry(
                        about.text, about.grid.shape, about.dtype.name, size, 0, about.seconds,
                        "disk", digest in live,
                    )
                )  # fmt: skip
        return rows

    def clear(self, disk: bool = False) -> None:
        """Forget everything without a handle, all small values, and with ``disk`` the files."""
        with self._lock:
            self._values.clear()
            self._shown.clear()
        self._store.forget()
        self._planner.retain()
        self._store.drop_idle(())
        if disk and self._folder is not None:
            self._folder.clear()


# What a user sees of it.


class RememberedResults:
    """What the session in use remembers; shows itself as a table. There is one, ``mn.memo``.

    Results of cells and of ``compute()`` stay on the workers when no name is left for them, within the budget
    ``mn.start(memo=...)``; small values stay in this process. What is asked for again is found there,
    whatever names it has now. With ``memo="off"`` nothing outlasts its handles.

    Examples
    --------
    >>> import matnb as mn
    >>> float(mn.arange(1000.0).sum())
    499500.0
    >>> any(one.where == "value" for one in mn.memo.entries())
    True

    Parameters
    ----------
    memo_in_use
        Returns the memo of the session in use, if there is one.
    """

    def __init__(self, memo_in_use: Callable[[], Memo | None]) -> None:
        self._memo_in_use = memo_in_use

    def entries(self, variables: Mapping[str, Expr] = _NO_VARIABLES) -> tuple[MemoEntry, ...]:
        """Return what is remembered, the most bytes first; nothing without a session.

        Arrays that only names keep are among them: ``has_handle`` distinguishes them.

        Parameters
        ----------
        variables
            What a user's names stand for; entries have them.
        """
        memo = self._memo_in_use()
        found = () if memo is None else memo.entries(variables)
        return tuple(sorted(found, key=lambda one: (-one.num_bytes, one.expression)))

    def clear(self, disk: bool = False) -> None:
        """Forget small values and every array without a name or another handle.

        Parameters
        ----------
        disk
            Whether the files in ``memo_dir`` are removed, too.
        """
        memo = self._memo_in_use()
        if memo is not None:
            memo.clear(disk)

    def __repr__(self) -> str:
        return memo_text(self.entries())

    def _repr_html_(self) -> str:
        return memo_html(self.entries())
