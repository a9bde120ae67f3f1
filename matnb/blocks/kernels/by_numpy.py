"""What NumPy and SciPy do in place of loops whose machine code is not there yet: with the same bits."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Csr, IndexArray, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray

Pointers = npt.NDArray[np.int64]

# As ``is_worth_compiling`` counts elements: what a call of NumPy's takes, and how many of SciPy's are one.
CALL, QUICK = 64, 4
KINDS = "fiu"  # of numbers that both multiply and add alike
_LEAF = 64  # entries of a row that are added one after the other


def added_as_trees(values: NumericArray, pointers: Pointers) -> NumericArray:
    """Return the sum of each segment by the tree of pairs over the places in it; of none 0."""
    lengths = np.diff(pointers)
    values = values[int(pointers[0]) : int(pointers[-1])] if pointers.size else values[:0]
    while values.size and lengths.max() > 1:
        begins = np.cumsum(lengths) - lengths
        place = np.arange(values.size) - np.repeat(begins, lengths)
        left = np.flatnonzero(place % 2 == 0)
        paired = place[left] + 1 < np.repeat(lengths, (lengths + 1) // 2)
        total = values[left]
        np.add(total, values[np.minimum(left + 1, values.size - 1)], out=total, where=paired)
        values, lengths = total, (lengths + 1) // 2
    sums = np.zeros(lengths.size, values.dtype)
    sums[lengths > 0] = values
    return sums


def added_up(
    values: NumericArray,
    pointers: Pointers,
    carry: NumericArray,
    identity: NumericArray,
    is_exclusive: bool,
    continues: bool,
    out: NumericArray,
) -> None:
    """Write the running sums of each segment, as the loop of ``segments`` does."""
    for begin, end in pairwise(pointers.tolist()):
        if begin < end:
            is_continued = continues and begin == 0
            before = (carry if is_continued else identity) if is_continued or is_exclusive else values[:0]
            sums = np.add.accumulate(np.concatenate([before, values[begin:end]]), dtype=out.dtype)
            out[begin:end] = sums[before.size - is_exclusive : sums.size - is_exclusive]


def sorted_segments(values: NumericArray, pointers: Pointers, few: int) -> None:
    """Sort each segment in place, NaN last; those of up to so ``few`` values keep equal ones in order."""
    for begin, end in pairwise(pointers.tolist()):
        if end - begin > 1:
            values[begin:end].sort(kind="stable" if end - begin <= few else None)


def product_with_vector(
    pointers: IndexArray | UnsignedArray,
    columns: IndexArray | UnsignedArray,
    values: NumericArray | None,
    x: NumericArray,
    wide: np.dtype,
) -> NumericArray:
    """Return the sums of a sparse matrix, of ones if it has no values, times a vector, in the ``wide`` dtype.

    Each row in leaves of 64 entries, which a tree adds, as ``dense_product_loops`` describes it.
    """
    bounds = pointers.astype(np.int64)
    part = slice(int(bounds[0]), int(bounds[-1]))
    columns, bounds = columns[part], bounds - bounds[0]
    leaves = -(-np.diff(bounds) // _LEAF)
    ends = np.cumsum(leaves)
    number = np.arange(ends[-1] if ends.size else 0) - np.repeat(ends - leaves, leaves)
    cuts = np.append(np.repeat(bounds[:-1], leaves) + _LEAF * number, bounds[-1:]).astype(np.int32)
    terms, factors = np.ones(columns.size, wide), x.astype(wide)
    if values is not None:  # products are made first: some machines' SciPy rounds a product and a sum once
        terms = values[part].astype(wide) * factors[columns]
        columns, factors = np.zeros_like(columns), np.ones(1, wide)
    sums = sp.csr_array((terms, columns, cuts), shape=(cuts.size - 1, factors.size)) @ factors
    return added_as_trees(sums, np.append(0, ends))


def product_with_rows(
    pointers: IndexArray | UnsignedArray,
    columns: IndexArray | UnsignedArray,
    values: NumericArray | None,
    X: NumericArray,
    wide: np.dtype,
) -> NumericArray:
    """Return the sums of a sparse matrix times a dense one in the ``wide`` dtype: column by column."""
    return np.stack([product_with_vector(pointers, columns, values, x, wide) for x in X.T], axis=1)


def add_transposed_product(
    pointers: IndexArray | UnsignedArray,
    columns: IndexArray | UnsignedArray,
    values: NumericArray,
    x: NumericArray,
    out: NumericArray,
) -> None:
    """Add A.T @ x to ``out``, in the order of the rows; one value may stand for all."""
    part = slice(int(pointers[0]), int(pointers[-1]))
    bounds = pointers.astype(np.int64)
    factors = np.repeat(x.astype(out.dtype), np.diff(bounds))
    own = (values if values.size == 1 else values[part]).astype(out.dtype)
    np.add.at(out, columns[part], np.multiply(own, factors))


@cache
def rounds_twice() -> bool:
    """Tell whether this machine's SciPy rounds products before it adds them, as loops do."""
    number = 1 + 2.0**-30
    row, column = sp.csr_array([[1.0, number]]), sp.csr_array([[-(number * number)], [number]])
    return (row @ column).nnz == 0


def sparse_product(
    left: Csr, right: Csr, values: tuple[NumericArray, NumericArray]
) -> tuple[IndexArray, IndexArray, NumericArray]:
    """Return pointers, columns and values of a product, with an entry wherever a pair of entries meets."""
    ones = np.ones(left.nnz, np.int32), np.ones(right.nnz, np.int32)
    pattern, product = (_scipy_array(left, one) @ _scipy_array(right, other) for one, other in (ones, values))
    pattern.sort_indices()
    product.sort_indices()
    columns, pointers = pattern.indices.astype(np.int32), pattern.indptr.astype(np.int32)
    if product.nnz == pattern.nnz:
        return pointers, columns, product.data
    # SciPy drops sums that cancel.
    width = np.int64(max(1, right.shape[1]))
    kept, every = (np.repeat(np.arange(left.shape[0]), np.diff(one.indptr)) * width + one.indices
                   for one in (product, pattern))  # fmt: skip
    found = np.zeros(pattern.nnz, product.dtype)
    found[np.searchsorted(every, kept)] = product.data
    return pointers, columns, found


def _scipy_array(block: Csr, values: NumericArray) -> Any:
    # SciPy's types know no general dtype
    return sp.csr_array((values, block.columns, block.pointers), shape=block.shape)


def runs_between(block: Csr, first: int, stop: int) -> tuple[IndexArray, IndexArray]:
    """Return where in each row the entries of columns from ``first`` to before ``stop`` are, and how many."""
    starts, ends = (
        block.pointers[:-1] + np.diff(np.append(0, np.cumsum(block.columns < one))[block.pointers])
        for one in (first, stop)
    )
    return starts.astype(np.int32), (ends - starts).astype(np.int32)


def copy_runs(
    starts: UnsignedArray,
    counts: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    shift: np.uint32,
    places: UnsignedArray,
    out_columns: UnsignedArray,
    out_values: NumericArray,
) -> None:
    """Copy to each place so many entries from where they start, as the loop of ``patterns`` does."""
    lengths = counts.astype(np.int64)
    number = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    source, target = (np.repeat(one, lengths) + number for one in (starts, places))
    out_columns[target] = columns[source] + shift
    if out_values.size:
        out_values[target] = values[source]
    places += counts


def moved_to_columns(block: Csr, values: NumericArray | None) -> tuple[IndexArray, IndexArray, NumericArray]:
    """Return pointers and columns of the transposed block, and the values, if any, at their new places."""
    numbers = np.arange(block.nnz, dtype=np.int32)
    turned = sp.csr_array((numbers, block.columns, block.pointers), shape=block.shape).tocsc()
    moved = np.empty(0, np.uint64) if values is None else values[turned.data]
    return turned.indptr.astype(np.int32), turned.indices.astype(np.int32), moved


def firsts(
    values: NumericArray, begin: int, is_largest: bool, out: NumericArray, places: NumericArray
) -> None:
    """Put the columns of a matrix in among the firsts of its rows, as ``ordering.add_firsts`` does."""
    held = min(begin, out.shape[1])
    every = np.concatenate([out[:, :held], values], axis=1)
    where = np.broadcast_to(np.arange(begin, begin + values.shape[1]), values.shape)
    where = np.concatenate([places[:, :held], where], axis=1)
    if is_largest:
        order = every.shape[1] - 1 - np.argsort(every[:, ::-1], axis=1, kind="stable")[:, ::-1]
    else:
        order = np.argsort(every, axis=1, kind="stable")
    order = order[:, : out.shape[1]]
    out[:, : order.shape[1]] = np.take_along_axis(every, order, axis=1)
    places[:, : order.shape[1]] = np.take_along_axis(where, order, axis=1)
