"""A source: an ordered series of batches that can be gone through again, read ahead by a thread."""

from __future__ import annotations

import inspect
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError, TooLargeError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import owned_array, send
from matnb.lazy.evaluator import evaluator
from matnb.lazy.fields import has_fields
from matnb.lazy.loop import LoopPiece
from matnb.lazy.read_ahead import reading_ahead
from matnb.pictures.quantities import bytes_text
from matnb.sources.rows import Demand, RowPart, Series, Values, check_alike, cut_anew
from matnb.sources.whole_numbers import whole

AHEAD = 2  # batches that are ready while one is worked on
PIECES_AHEAD = 1  # while another is read: pieces are large
PIECE_BYTES = 1 << 25  # of rows that a loop goes through at once: a run costs little beside reading them
SHARE = 16  # a piece takes at most one of so many parts of the memory
MOST_BATCHES = 1 << 12  # in a piece
SHUFFLED_BATCHES = 64  # whose rows are drawn among each other, where not all are here

Item = TypeVar("Item")


@has_fields
class Minibatch(NamedTuple):
    """Rows and their targets, as passed to the step of :func:`matnb.iterate`."""

    X: DistArray
    y: DistArray | None


@has_fields
class SourceBatch(NamedTuple):
    """Rows and their targets, with the numbers of the batch and the pass."""

    X: DistArray
    y: DistArray | None
    start: int
    number: int
    epoch: int


@dataclass(frozen=True)
class _Piece:
    """Rows of a pass from a batch's first on: whole batches, or the shorter last one."""

    X: DistArray
    y: DistArray | None
    start: int
    epoch: int
    num_bytes: int


@has_fields
class Split(NamedTuple):
    """Result of ``holdout``: a source of the rows for training, and one of those held out."""

    training: BatchSource
    held_out: BatchSource


class ReadingAhead(Generic[Item]):
    """What an iterator gives, made by a thread of its own some items ahead.

    An error comes out where its item would have. The thread ends with the iterator, or by :meth:`close`.

    Attributes
    ----------
    waited_seconds
        How long was waited for items.
    """

    def __init__(self, items: Callable[[], Iterator[Item]], ahead: int) -> None:
        self._items, self._ahead = items, ahead
        self._ready: deque[tuple[Item | None, BaseException | None]] = deque()
        self._changed = threading.Condition()
        self._is_closed = self._is_done = False
        self.waited_seconds = 0.0
        self._thread = threading.Thread(target=self._read, name="matnb-source", daemon=True)
        self._thread.start()

    def _read(self) -> None:
        error: BaseException | None = None
        try:
            items = self._items()
            try:
                for item in items:
                    if not self._put(item, None):
                        break
            finally:
                if hasattr(items, "close"):
                    items.close()
        except BaseException as raised:  # whatever it is, the one who waits is told
            error = raised
        self._put(None, error)

    def _put(self, item: Item | None, error: BaseException | None) -> bool:
        with self._changed:
            if item is None:
                self._is_done = True
                if error is not None:
                    self._ready.append((None, error))
                self._changed.notify_all()
                return False
            self._changed.wait_for(lambda: len(self._ready) < self._ahead or self._is_closed)
            if self._is_closed:
                return False
            self._ready.append((item, None))
            self._changed.notify_all()
            return True

    def __iter__(self) -> ReadingAhead[Item]:
        return self

    def __next__(self) -> Item:
        began = time.perf_counter()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._is_done)
            self.waited_seconds += time.perf_counter() - began
            if not self._ready:
                raise StopIteration
            item, error = self._ready.popleft()
            self._changed.notify_all()
        if error is not None:
            raise error
        assert item is not None
        return item

    def close(self) -> None:
        """End the thread; what is being read is read first."""
        with self._changed:
            self._is_closed = True
            self._ready.clear()
            self._changed.notify_all()
        self._thread.join()


@dataclass(frozen=True, repr=False)
class BatchSource:
    """A reproducible sequence of batches of rows, of equal size except for the last.

    Created by :func:`memory`, :func:`files` and :func:`calls`. ``for batch in source`` iterates over it; a
    batch has ``X`` and ``y`` (None without targets) as DistArrays, ``start``, the number of its first row in
    the pass, ``number``, that of the batch, and ``epoch``, that of the pass, all from 0.
    :func:`matnb.iterate` takes a source as ``over=``. While one piece is processed, a thread reads ahead up
    to two more; it ends with the loop.

    Attributes
    ----------
    series
        Where the rows come from.
    batch_size
        Rows of a batch.
    seed
        Seed for shuffling rows; None keeps their order.
    """

    series: Series
    batch_size: int
    seed: int | None = None
    maps: tuple[Callable[..., object], ...] = ()
    passes: int = 1
    limit: int | None = None  # batches of a pass
    every: int | None = None  # the last of so many rows is held out,
    held: bool = False  # and is what this source gives, or does not give
    _waited: list[float] = field(default_factory=lambda: [0.0], compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "batch_size", whole(self.batch_size, "batch_size"))
        if self.seed is not None:
            object.__setattr__(self, "seed", whole(self.seed, "seed", least=0))

    def __repr__(self) -> str:
        told = [repr(self.series), f"batch_size={self.batch_size}"]
        told += [f"shuffle=True, seed={self.seed}"] if self.seed is not None else []
        told += [f"{'held out' if self.held else 'without'} one row of {self.every}"] if self.every else []
        told += [f"{self.limit} batches"] if self.limit is not None else []
        told += [f"{self.passes} passes"] if self.passes != 1 else []
        return f"BatchSource({', '.join(told)})"

    # what it is made into

    def map(self, fn: Callable[..., object]) -> BatchSource:
        """Return a source with a function applied to each batch.

        Parameters
        ----------
        fn
            ``fn(X)``, or ``fn(X, y)`` where there are targets, on the DistArrays of a batch; returns X, or X
            and y, with the same number of rows. In :func:`matnb.iterate` it becomes part of the step.

        Examples
        --------
        >>> import numpy as np, matnb as mn
        >>> source = mn.sources.memory(np.ones((3, 2)), batch_size=2).map(lambda X: 2 * X)
        >>> [batch.X.compute().tolist() for batch in source]
        [[[2.0, 2.0], [2.0, 2.0]], [[2.0, 2.0]]]
        """
        return replace(self, maps=(*self.maps, fn))

    def take(self, n: int) -> BatchSource:
        """Return a source of the first ``n`` batches of each pass."""
        n = whole(n, "n", least=0)
        return replace(self, limit=n if self.limit is None else min(n, self.limit))

    def repeat(self, n: int) -> BatchSource:
        """Return a source that makes ``n`` passes in a row, each with its own shuffling."""
        return replace(self, passes=self.passes * whole(n, "n"))

    def holdout(self, every: int = 20) -> Split:
        """Split into two sources: rows for training, and every ``every``-th row held out, never shuffled.

        Rows are counted within each file, so the split does not depend on shuffling.

        Raises
        ------
        OptionError
            If rows of this source were already held out.

        Examples
        --------
        >>> import numpy as np, matnb as mn
        >>> rows = mn.sources.memory(np.arange(5.0)[:, None], batch_size=4)
        >>> training, held_out = rows.holdout(every=3)
        >>> [batch.X.compute().ravel().tolist() for batch in (*training, *held_out)]
        [[0.0, 1.0, 3.0, 4.0], [2.0]]
        """
        every = whole(every, "every", least=2)
        if self.every is not None:
            raise OptionError(
                f"holdout(every={every}) of a source that already holds out one row in {self.every}"
            )
        if self.limit is not None:
            raise OptionError(
                f"holdout(every={every}) after take({self.limit}): call holdout first, then take"
            )
        training = replace(self, every=every)
        return Split(training, replace(self, every=every, held=True, seed=None))

    # what is known of it

    @property
    def num_rows(self) -> int | None:
        """Number of rows per pass; None if it is known only after reading."""
        count = self.series.num_rows
        if count is None or self.every is not None:
            count = self._counted_rows if self.series.is_here else None
        return count if count is None or self.limit is None else min(count, self.limit * self.batch_size)

    @cached_property
    def _counted_rows(self) -> int:
        return sum(len(part) for part in self._rows(0, Demand()))

    @property
    def num_batches(self) -> int | None:
        """Number of batches per pass, including a shorter last one; None if unknown."""
        return None if self.num_rows is None else -(-self.num_rows // self.batch_size)

    @property
    def known_batches(self) -> int | None:
        """As ``num_batches``, but None if rows would have to be read to find out."""
        return None if self.every is not None else self.num_batches

    @cached_property
    def first(self) -> SourceBatch:
        """The first batch of the first pass: what to know of its shape and kind.

        Raises
        ------
        ShapeError
            When there is none.
        """
        for batch in self.batches():
            return batch
        raise ShapeError(f"{self!r} has no rows")

    @property
    def num_features(self) -> int:
        """Columns of X."""
        return self.first.X.shape[1]

    @property
    def has_targets(self) -> bool:
        """Whether batches have ``y``."""
        return self.first.y is not None

    @property
    def waited_seconds(self) -> float:
        """Total seconds spent waiting for data in all loops over this source."""
        return self._waited[0]

    # going through it

    def __iter__(self) -> Iterator[SourceBatch]:
        return self.batches()

    def batches(self, epoch: int = 0) -> Iterator[SourceBatch]:
        """Yield the batches of a pass and those that ``repeat`` adds, the first one as pass ``epoch``."""
        for piece in self._ready(range(epoch, epoch + self.passes), in_loops=False):
            X, y = self.mapped(piece.X, piece.y)
            yield SourceBatch(X, y, piece.start, piece.start // self.batch_size, piece.epoch)

    def loop_pieces(self, epochs: int = 1, epoch: int = 0) -> Iterator[LoopPiece]:
        """Yield what :func:`matnb.iterate` goes through at once: pieces of whole batches, or a shorter one.

        Parameters
        ----------
        epochs
            Passes.
        epoch
            The number of the first of them.
        """
        for piece in self._ready(range(epoch, epoch + epochs * self.passes), in_loops=True):
            size = min(self.batch_size, piece.X.shape[0])
            if piece.y is None:
                yield LoopPiece(piece.X, size, self._without_targets, piece.epoch)
            else:
                yield LoopPiece(Minibatch(piece.X, piece.y), size, self._with_targets, piece.epoch)

    def _without_targets(self, item: Any) -> Minibatch:
        return Minibatch(*self.mapped(item, None))

    def _with_targets(self, item: Any) -> Minibatch:
        return Minibatch(*self.mapped(*item))

    def mapped(self, X: DistArray, y: DistArray | None) -> tuple[DistArray, DistArray | None]:
        """Return rows and targets as the functions given to ``map`` make them.

        Raises
        ------
        ShapeError
            When one changes the number of rows.
        OptionError
            When one takes another number of arguments than a batch has arrays.
        """
        for fn in self.maps:
            given = (X,) if y is None else (X, y)
            try:
                made = fn(*given)
            except TypeError:
                _check_takes(fn, given)
                raise
            new = made if isinstance(made, tuple) else (made, None)
            if len(new) != 2 or not isinstance(new[0], DistArray):
                raise DTypeError(f"map: {fn!r} returns {type(made).__name__}: return X, or X and y")
            for name, one in zip("Xy", new, strict=True):
                if one is not None and one.shape[:1] != X.shape[:1]:
                    raise ShapeError(f"map: {name} of shape {one.shape} for a batch of {X.shape[0]} rows")
            X, y = new
        return X, y

    def _ready(self, epochs: range, in_loops: bool) -> Iterator[_Piece]:
        if self.series.is_here:
            yield from self._pieces(epochs, in_loops)
            return
        count = PIECES_AHEAD if in_loops else AHEAD
        room = evaluator().memory_here()
        most_bytes = min(PIECE_BYTES, room // SHARE) if room else PIECE_BYTES
        pieces = partial(self._pieces, epochs, in_loops, most_bytes)
        with reading_ahead() as held, closing(ReadingAhead(pieces, count)) as ahead:
            for piece in ahead:
                held.at_least((count + 1) * piece.num_bytes)  # and one that is being read
                if room and room < (taken := (count + 2) * piece.num_bytes):
                    raise TooLargeError(
                        f"batches take {bytes_text(taken)}: {bytes_text(piece.num_bytes)} for one, as much "
                        f"for each of {count + 1} that are read ahead; workers have {bytes_text(room)}: "
                        "give a smaller batch_size"
                    )
                self._waited[0] += ahead.waited_seconds
                ahead.waited_seconds = 0.0
                for array in (piece.X, piece.y):
                    if array is not None:
                        send(array)
                del array
                yield piece
                del piece

    def _pieces(self, epochs: range, in_loops: bool, most_bytes: int = PIECE_BYTES) -> Iterator[_Piece]:
        for epoch in epochs:
            start = 0
            for part in self._parts(epoch, in_loops, most_bytes):
                whole = len(part) // self.batch_size * self.batch_size
                for cut in (part.cut(0, whole), part.cut(whole, len(part))):
                    if len(cut):
                        y = None if cut.y is None else _on_workers(cut.y)
                        yield _Piece(_on_workers(cut.X), y, start, epoch, len(cut) * cut.row_bytes)
                        start += len(cut)

    def _parts(self, epoch: int, in_loops: bool, most_bytes: int) -> Iterator[RowPart]:
        wanted = Demand()
        rows = self._rows(epoch, wanted)
        first = next(rows, None)
        if first is None:
            return
        size = self.batch_size
        if in_loops:
            size *= max(1, min(MOST_BATCHES, most_bytes // (size * first.row_bytes)))
            if self.series.is_here and self.seed is None:
                size *= max(1, len(first) // size)  # what is here is not cut
        left = math.inf if self.limit is None else self.limit * self.batch_size
        for part in cut_anew(self._alike(first, rows), size, wanted):
            if left <= 0:
                return
            yield part.cut(0, int(min(left, len(part))))
            left -= len(part)

    def _alike(self, first: RowPart, rows: Iterator[RowPart]) -> Iterator[RowPart]:
        yield first
        for part in rows:
            check_alike(first, part)
            yield part

    def _rows(self, epoch: int, wanted: Demand) -> Iterator[RowPart]:
        # What is left after holding out, in the order of the pass; no part is without a row.
        order = None if self.seed is None else np.random.default_rng([self.seed, epoch])
        parts = self.series.parts(order, wanted)
        if self.every is not None:
            every = self.every
            parts = (part.outside(every, self.held) for part in parts)
        parts = (part for part in parts if len(part))
        if order is None:
            yield from parts
            return
        if not self.series.is_here:
            parts = cut_anew(parts, SHUFFLED_BATCHES * self.batch_size, Demand())
        for part in parts:
            yield part.taken(order.permutation(len(part)))


def _check_takes(fn: Callable[..., object], given: tuple[DistArray, ...]) -> None:
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):  # some compiled functions have none
        return
    try:
        signature.bind(*given)
    except TypeError:
        names, call = ("X and y", "fn(X, y)") if len(given) == 2 else ("X and no y", "fn(X)")
        raise OptionError(
            f"map: {fn!r} takes {signature}, and batches have {names}: give a function called as {call}"
        ) from None


def _on_workers(values: Values) -> DistArray:
    return values if isinstance(values, DistArray) else owned_array(values)
