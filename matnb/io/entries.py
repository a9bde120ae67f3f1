"""What is read of a file: entries by position and rectangles, and how those of a region become one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import MAX_ENTRIES, Csr, Dense, Empty, SparseBlock
from matnb.blocks.grid import Region, intersect, region_shape, relative
from matnb.errors import TooLargeError


class ReaderValue:
    """What a reader keeps on a worker: a dataclass of arrays, other such values, and what is small."""

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + sum(map(_held_bytes, vars(self).values()))


def _held_bytes(value: object) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    return value.__sizeof__() if isinstance(value, ReaderValue) else 0


@dataclass(frozen=True, eq=False)
class Slab(ReaderValue):
    """A rectangle of an array, at global positions."""

    region: Region
    values: npt.NDArray[np.generic]


def common(one: Region, other: Region) -> Region | None:
    """Return the rectangle that two share, None if it has no element."""
    both = intersect(one, other)
    return both if all(start < stop for start, stop in both) else None


def dense_of(slabs: Sequence[Slab], region: Region, dtype: np.dtype) -> Dense:
    """Return the block of a region from slabs that cover it; a slab that is all of it is taken as it is."""
    for slab in slabs:
        if slab.region == region and slab.values.dtype == dtype:
            return Dense(slab.values)
    values = np.empty(region_shape(region), dtype)
    for slab in slabs:
        values[relative(slab.region, region)] = slab.values
    return Dense(values)


DUPLICATES = ("sum", "first", "last", "min", "max", "merge")


@dataclass(frozen=True, eq=False)
class Entries(ReaderValue):
    """Positions and values, in the order of the file; ``values`` is None where every entry is a 1.

    Rows and columns are int32: global ones in a piece, local ones in a part.
    """

    rows: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.generic] | None

    def take(self, chosen: npt.NDArray[np.intp] | npt.NDArray[np.bool_]) -> Entries:
        """Return some of the entries."""
        values = None if self.values is None else self.values[chosen]
        return Entries(self.rows[chosen], self.columns[chosen], values)


def joined(chunks: Sequence[Entries], dtype: np.dtype | None) -> Entries:
    """Return the entries of all chunks in order; ``dtype`` is the values', None where there are none."""
    none = np.empty(0, np.int32)
    return Entries(
        np.concatenate([none, *(chunk.rows for chunk in chunks)]),
        np.concatenate([none, *(chunk.columns for chunk in chunks)]),
        None
        if dtype is None
        else np.concatenate(
            [np.empty(0, dtype), *(chunk.values for chunk in chunks if chunk.values is not None)]
        ),
    )


def entries_in(entries: Entries, region: Region, mirror: int = 0, *, conjugated: bool = False) -> Entries:
    """Return the entries that lie in a region, with local positions.

    Parameters
    ----------
    entries
        Entries with global positions.
    region
        Range of rows and range of columns.
    mirror
        1 where an entry off the diagonal stands for its mirror image too, -1 where the image has the other
        sign. Images follow the order of the file, among the other entries.
    conjugated
        Whether an image is the complex conjugate, as in a Hermitian matrix.
    """
    direct = _inside(entries.rows, entries.columns, region)
    if not mirror:
        return _local(entries.take(direct), region)
    image = _inside(entries.columns, entries.rows, region) & (entries.rows != entries.columns)
    chosen = _local(entries.take(direct), region)
    # an image is the entry with rows and columns exchanged, and so is the region it is looked for in
    flipped = _local(entries.take(image), (region[1], region[0]))
    values = flipped.values
    if values is not None and mirror < 0:
        values = np.negative(values)
    if values is not None and conjugated:
        values = np.conjugate(values)
    both = joined(
        (chosen, Entries(flipped.columns, flipped.rows, values)), None if values is None else values.dtype
    )
    if values is None:
        return both
    # two sorted runs, which a stable sort merges in linear time
    order = np.argsort(np.concatenate([np.flatnonzero(direct), np.flatnonzero(image)]), kind="stable")
    return both.take(order)


def _inside(
    rows: npt.NDArray[np.int32], columns: npt.NDArray[np.int32], region: Region
) -> npt.NDArray[np.bool_]:
    (top, bottom), (left, right) = region
    inside = rows >= top
    inside &= rows < bottom
    inside &= columns >= left
    inside &= columns < right
    return inside


def _local(entries: Entries, region: Region) -> Entries:
    rows = entries.rows - np.int32(region[0][0])
    return Entries(rows, entries.columns - np.int32(region[1][0]), entries.values)


def block_of(
    parts: Sequence[Entries], region: Region, dtype: np.dtype, duplicates: str = "sum"
) -> SparseBlock:
    """Return the block of a region, rows and columns in order and no entry twice.

    Parameters
    ----------
    parts
        Entries with local positions, in the order of the file.
    region
        Where the block lies.
    dtype
        Type of the entries.
    duplicates
        What an entry listed more than once becomes: "sum" (added in the order of the file; without values the
        count), "first", "last", "min", "max", or "merge" (the first value, or none).

    Raises
    ------
    TooLargeError
        When the block would hold more entries than 32-bit pointers can count.
    """
    num_rows, num_columns = region_shape(region)
    listed = [part for part in parts if part.rows.size]
    if not listed:
        return Empty((num_rows, num_columns), dtype)
    num_listed = sum(part.rows.size for part in listed)
    if num_listed > MAX_ENTRIES:
        raise TooLargeError(f"a block of {num_listed} entries: cut it into more blocks")
    key, values = _keys(listed, num_listed), None
    if listed[0].values is not None:
        values = np.concatenate([part.values for part in listed if part.values is not None])
    if not bool((key[1:] > key[:-1]).all()):
        if values is None:
            key.sort()
            firsts = _run_starts(key)
            if firsts.size < key.size and duplicates == "sum":
                values = np.diff(firsts, append=key.size).astype(dtype)
            key = key[firsts] if firsts.size < key.size else key
        else:
            key, values = _in_order(key, values, duplicates)
    columns = key.astype(np.int32)  # the lower half
    key >>= 32
    firsts = _run_starts(key)
    pointers = np.zeros(num_rows + 1, np.int32)
    pointers[key[firsts] + 1] = np.diff(firsts, append=key.size)
    np.cumsum(pointers, out=pointers)
    if values is not None:
        values = values.astype(dtype, copy=False)
    return Csr((num_rows, num_columns), pointers, columns, values, dtype)


def _keys(listed: Sequence[Entries], num_listed: int) -> npt.NDArray[np.int64]:
    # Positions as one number, row above column: they sort as the entries of a block must.
    key = np.empty(num_listed, np.int64)
    stop = 0
    for part in listed:
        start, stop = stop, stop + part.rows.size
        np.left_shift(part.rows, np.int64(32), out=key[start:stop], dtype=np.int64)
        key[start:stop] |= part.columns
    return key


def _run_starts(key: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    # Where runs of equal numbers begin.
    starts = np.flatnonzero(key[1:] != key[:-1])
    starts += 1
    return np.concatenate([[0], starts])


def _in_order(
    key: npt.NDArray[np.int64], values: npt.NDArray[np.generic], duplicates: str
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.generic]]:
    order = np.argsort(key)
    ordered = key[order]
    firsts = _run_starts(ordered)
    if firsts.size == key.size:
        return ordered, values[order]
    order = np.argsort(key, kind="stable")  # equal ones in the order of the file
    return ordered[firsts], _merged(values, order, firsts, duplicates)


def _merged(
    values: npt.NDArray[np.generic],
    order: npt.NDArray[np.intp],
    firsts: npt.NDArray[np.intp],
    duplicates: str,
) -> npt.NDArray[np.generic]:
    # One value for each run of equal positions; `firsts` says where in the order the runs begin.
    if duplicates in ("first", "merge"):
        return values[order[firsts]]
    if duplicates == "last":
        lasts: npt.NDArray[np.intp] = np.concatenate([firsts[1:] - 1, [order.size - 1]])
        return np.take(values, order[lasts])
    combine: np.ufunc = {"sum": np.add, "min": np.minimum, "max": np.maximum}[duplicates]
    return np.asarray(combine.reduceat(values[order], firsts))
