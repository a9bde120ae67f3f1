"""Columns of lists in Parquet and Arrow files as nested arrays: read on the workers, written in pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from matnb.backend.cluster.cancellation import cancellable
from matnb.blocks.formats import to_numpy
from matnb.errors import DTypeError, TooLargeError, UnsupportedError
from matnb.expr.nodes import Expr, Load
from matnb.io.folders import Where
from matnb.io.source import SourceFacts
from matnb.io.write import checked_place
from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import asked, evaluator
from matnb.lazy.limits import RAISE
from matnb.lazy.registry import writes
from matnb.nested.array import NestedArray
from matnb.nested.creation import unflatten
from matnb.nested.deep import AnyNested, DeepNestedArray
from matnb.nested.lists import ListColumnFacts, ListsChunk, check_lists_target, open_lists, write_lists
from matnb.pictures.quantities import bytes_text
from matnb.session.current import check_closed, current_session
from matnb.session.files import loaded

_VALUES = 1 << 20  # of a row group, but for a longer segment
_ROWS = 1 << 20  # whose lengths are here at a time


@cancellable()
def load(
    path: Where, column: str | None = None, *, kind: str | None = None, strategy: str = "auto"
) -> AnyNested:
    """Read a column of lists of numbers on the workers, by row groups, and return a nested array.

    Parameters
    ----------
    path
        A Parquet or Arrow IPC (Feather) file, as a path or a url; or several with such a column: a folder, a
        pattern such as ``"events/*.parquet"``, or a list.
    column
        The name of a column of type list of integers, floats or booleans, or of lists of such lists; by
        default the only one. :func:`matnb.load` reads others.
    kind
        "parquet" or "arrow", if the file name's suffix does not say.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray or DeepNestedArray
        With a segment for each row; of lists of lists with as many levels.

    Raises
    ------
    FileFormatError
        If a file is malformed, the column is of another type, or lists or values in it are missing; if one of
        several files has other levels of lists.
    MissingFileError
        If the file does not exist.
    OptionError
        For an unknown column, kind or strategy.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, matnb as mn
    >>> pq.write_table(pa.table({"hits": [[1.5, 2.0], [], [4.0]]}), "events.parquet")
    >>> mn.nested.load("events.parquet", "hits").sum().compute()
    array([3.5, 0. , 4. ])
    """
    source = open_lists(path, column, kind)

    def arrays(found: SourceFacts) -> Sequence[Expr]:
        assert isinstance(found, ListColumnFacts), "what this source finds"
        lengths = [
            Load(source.lengths(level), "matrix", (count,), np.dtype(np.int64), False)
            for level, count in enumerate(found.num_lists)
        ]
        return (*lengths, Load(source, "matrix", found.shape, found.dtype, False))

    _, nodes = current_session().read(source, arrays)
    loaded.note(source)
    *counts, values = map(DistArray, nodes)
    made: AnyNested = unflatten(values, counts[-1], strategy=strategy)
    for one in reversed(counts[:-1]):
        made = unflatten(made, one, strategy=strategy)
    return made


@writes(NestedArray, DeepNestedArray)
def _save(segments: AnyNested, path: str | os.PathLike[str], **options: object) -> None:
    """Compute a nested array and write it as a column of lists, as :func:`matnb.save` says."""
    check_lists_target(path)
    checked_place(path)
    levels, inner = [segments.offsets], segments
    while isinstance(inner, DeepNestedArray):
        inner = inner.flatten()
        levels.append(inner.offsets)
    if inner._positions is not None:
        raise UnsupportedError(
            "mn.save: the segments have positions, which lists do not: save the sparse matrix whose rows "
            "they are, or without positions mn.nested.from_offsets(N.values, N.offsets)"
        )
    if segments.dtype.kind == "c":
        raise DTypeError(
            f"mn.save: Arrow has no type for {segments.dtype}: save np.real(N) and np.imag(N), or N.values "
            "and N.offsets as arrays"
        )
    check_closed(segments.values.expression)
    # Of each level, where the segments of the outermost one begin in it.
    begins = levels[:1]
    for offsets in levels[1:]:
        begins.append(offsets[begins[-1]])
    longest = _checked_longest(segments, begins[-1])
    write_lists(path, _chunks(begins, levels[1:], segments.values), longest)


def _checked_longest(segments: AnyNested, begins: DistArray) -> int:
    # A list is written in one piece.
    if isinstance(segments, NestedArray):
        longest = segments.longest
    else:
        lengths: Any = begins[1:] - begins[:-1]
        longest = int(asked(lengths.max().expression, "the longest segment")) if len(segments) else 0
    size, limit = longest * segments.dtype.itemsize, evaluator().limit(segments.values.expression)
    if size > limit:
        raise TooLargeError(
            f"mn.save: the longest segment has {longest:,} values, {bytes_text(size)}, over the limit of "
            f"{bytes_text(limit)} for bringing values into this process, and a list is written in one piece: "
            f"save N.values and N.offsets as arrays, {RAISE}"
        )
    return longest


class _Reader:
    """A flat array that is read from its begin to its end, of which one block is here."""

    def __init__(self, array: DistArray) -> None:
        self._empty = np.empty(0, array.dtype)
        self._number, self._block = -1, self._empty
        if array.size:
            layout, self._bring = current_session().blocks(array.expression)
            self._cuts = layout.grid.cuts[0]

    def part(self, begin: int, end: int) -> np.ndarray:
        """Return some elements, which begin no earlier than the last that were read."""
        parts = [self._empty]
        while begin < end:
            if self._number < 0 or begin >= self._cuts[self._number + 1]:
                self._number += 1
                if begin < self._cuts[self._number + 1]:
                    self._block = self._empty  # before the next one comes
                    self._block = to_numpy(self._bring(self._number))
                continue
            first = self._cuts[self._number]
            parts.append(self._block[begin - first : end - first])
            begin += parts[-1].size
        return parts[-1] if len(parts) == 2 else np.concatenate(parts)


def _chunks(
    begins: Sequence[DistArray], inner: Sequence[DistArray], values: DistArray
) -> Iterator[ListsChunk]:
    # Whole segments of the outermost level, of about as many values each.
    num_rows, outer = begins[0].shape[0] - 1, [_Reader(one) for one in begins]
    within, flat = [_Reader(one) for one in inner], _Reader(values)
    for start in range(0, max(1, num_rows), _ROWS):
        stop = min(num_rows, start + _ROWS)
        ends = [one.part(start, stop + 1) for one in outer]
        first = 0
        while first < stop - start or not num_rows:
            lasts = [int(np.searchsorted(one, one[first] + _VALUES, side="right")) - 1 for one in ends]
            last = min(stop - start, max(first + 1, min(lasts)))
            levels = [ends[0][first : last + 1]]
            levels += [
                one.part(int(end[first]), int(end[last]) + 1)
                for one, end in zip(within, ends[:-1], strict=True)
            ]
            yield flat.part(int(ends[-1][first]), int(ends[-1][last])), [one - one[0] for one in levels]
            first = last
            if not num_rows:
                return
