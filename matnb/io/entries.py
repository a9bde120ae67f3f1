"""Entries of a sparse matrix by position, and how those of a region become one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import MAX_ENTRIES, Csr, Empty, SparseBlock
from matnb.blocks.grid import Region, region_shape
from matnb.errors import TooLargeError

DUPLICATES = ("sum", "first", "last", "min", "max", "merge")


@dataclass(frozen=True, eq=False)
class Entries:
    """Positions and values, in the order of the file; ``values`` is None where every entry is a 1.

    Rows and columns are int32: global ones in a piece, local ones in a part.
    """

    rows: npt.NDArray[np.int32]
    columns: npt.NDArray[np.int32]
    values: npt.NDArray[np.generic] | None

    def __sizeof__(self) -> int:
        held = self.rows.nbytes + self.columns.nbytes
        return object.__sizeof__(self) + held + (0 if self.values is None else self.values.nbytes)

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


def entries_in(entries: Entries, region: Region, mirror: int = 0) -> Entries:
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
    if sum(part.rows.size for part in listed) > MAX_ENTRIES:
        raise TooLargeError(
            f"a block of {sum(part.rows.size for part in listed)} entries: cut it into more blocks"
        )
    entries = (
        listed[0] if len(listed) == 1 else joined(listed, dtype if listed[0].values is not None else None)
    )
    key = entries.rows.astype(np.int64)
    key *= num_columns
    key += entries.columns
    values = entries.values
    if not bool((key[1:] > key[:-1]).all()):
        order = np.argsort(key)
        fresh = np.diff(key[order], prepend=-1) != 0
        if bool(fresh.all()):
            values = None if values is None else values[order]
        else:
            order = np.argsort(key, kind="stable")  # duplicates in the order of the file
            values = _merged(values, order, np.flatnonzero(fresh), duplicates, dtype)
        key = key[order][fresh]
        rows, columns = np.divmod(key, num_columns)
    else:
        rows, columns = entries.rows, entries.columns
    pointers = np.zeros(num_rows + 1, np.int32)
    last = np.flatnonzero(np.diff(rows, append=-1))  # of each row that has an entry
    pointers[rows[last] + 1] = np.diff(last, prepend=-1)
    np.cumsum(pointers, out=pointers)
    if values is not None:
        values = values.astype(dtype, copy=False)
    return Csr((num_rows, num_columns), pointers, columns.astype(np.int32, copy=False), values, dtype)


def _merged(
    values: npt.NDArray[np.generic] | None,
    order: npt.NDArray[np.intp],
    firsts: npt.NDArray[np.intp],
    duplicates: str,
    dtype: np.dtype,
) -> npt.NDArray[np.generic] | None:
    # One value for each run of equal positions; `firsts` says where in the order the runs begin.
    lengths = np.diff(firsts, append=order.size)
    if values is None:
        return lengths.astype(dtype) if duplicates == "sum" else None
    if duplicates in ("first", "merge"):
        return values[order[firsts]]
    if duplicates == "last":
        return values[order[firsts + lengths - 1]]
    combine = {"sum": np.add, "min": np.minimum, "max": np.maximum}[duplicates]
    return combine.reduceat(values[order], firsts)
