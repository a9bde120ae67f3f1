"""Reductions of single blocks to partial results, their combination, and the last step to the result.

Products of floats are made one element after the other, as NumPy multiplies them, and go on from block to
block. A product of blocks' products is not the product of the elements: 1e200 * 1e200 is infinite, where
1e-300 came before it is not, and 0 times it is NaN. So a block begins with what the blocks before it made.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    Empty,
    IndexArray,
    NumericArray,
    cast,
    entries_as,
    is_sparse,
    to_numpy,
)
from matnb.blocks.kernels.compiled import (
    UnsignedArray,
    compiled,
    given,
    is_ready,
    is_worth_compiling,
    unsigned,
)
from matnb.blocks.kernels.patterns import as_csr, pattern_of, transposed_order
from matnb.blocks.kernels.reductions.deviations import deviation_of_shares, deviation_share
from matnb.blocks.kernels.registry import Family
from matnb.blocks.kernels.shaping.shaping import densify
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, OF_STORED, PLUS, TIMES, Monoid
from matnb.blocks.sums import Range, row_sums, share_of, share_of_shares, sum_of_shares, sums_as_tree
from matnb.errors import DTypeError, OptionError, ShapeError

# ``out`` comes filled with the identity. It is written after every entry where its dtype must wrap, since
# Numba computes narrow integers in 64 bits. "any" and "all" of truth values are their max and min.


@compiled
def add_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Add up the entries of each row."""
    for i in range(out.size):
        for place in range(pointers[i], pointers[i + 1]):
            out[i] += values[place]


@compiled
def multiply_rows(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    length: int,
    with_absent: bool,
    shared: bool,
    out: NumericArray,
) -> None:
    """Multiply what ``out`` holds by the elements of each row, one after the other.

    Absent elements are zeros where they take part, at their place: of several the first one tells.
    ``shared``: all rows have one product, and go on from each other.
    """
    zero = out.dtype.type(0)
    for i in range(pointers.size - 1):
        line = 0 if shared else i
        total, column = out[line], 0
        for place in range(pointers[i], pointers[i + 1]):
            if with_absent and column >= 0 and np.int64(columns[place]) != column:
                total, column = total * zero, -1
            total *= values[place]
            column += column >= 0
        if with_absent and 0 <= column < length:
            total *= zero
        out[line] = total


@compiled
def least_of_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the least entry of each row; NaN if there is one."""
    for i in range(out.size):
        least = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            value = values[place]
            if value < least or value != value:
                least = value
        out[i] = least


@compiled
def greatest_of_rows(pointers: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the greatest entry of each row; NaN if there is one."""
    for i in range(out.size):
        greatest = out[i]
        for place in range(pointers[i], pointers[i + 1]):
            value = values[place]
            if value > greatest or value != value:
                greatest = value
        out[i] = greatest


@compiled
def count_columns(columns: UnsignedArray, out: IndexArray) -> None:
    """Count the entries of each column."""
    for place in range(columns.size):
        out[columns[place]] += 1


@compiled
def add_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Add up the entries of each column."""
    for place in range(columns.size):
        out[columns[place]] += values[place]


@compiled
def multiply_columns(
    pointers: UnsignedArray,
    columns: UnsignedArray,
    values: NumericArray,
    with_absent: bool,
    out: NumericArray,
) -> None:
    """Multiply what ``out`` holds by the elements of each column, as ``multiply_rows`` does of each row."""
    zero, rows = out.dtype.type(0), pointers.size - 1
    following = np.zeros(out.size, np.int64)  # the row whose element is the next one; -1 behind an absent one
    for i in range(rows):
        for place in range(pointers[i], pointers[i + 1]):
            column = columns[place]
            if with_absent and following[column] >= 0:
                if following[column] != i:
                    out[column] *= zero
                    following[column] = -1
                else:
                    following[column] += 1
            out[column] *= values[place]
    if with_absent:
        for column in range(out.size):
            if 0 <= following[column] < rows:
                out[column] *= zero


@compiled
def least_of_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the least entry of each column; NaN if there is one."""
    for place in range(columns.size):
        column, value = columns[place], values[place]
        if value < out[column] or value != value:
            out[column] = value


@compiled
def greatest_of_columns(columns: UnsignedArray, values: NumericArray, out: NumericArray) -> None:
    """Find the greatest entry of each column; NaN if there is one."""
    for place in range(columns.size):
        column, value = columns[place], values[place]
        if value > out[column] or value != value:
            out[column] = value


_TILE = 2**14  # elements whose copy stays in cache
_WIDE_ROW = 256  # elements beside each other, from where whole rows are taken at a time
# With loops for sparse blocks.
_COMPILED = ("float64", "float32", "complex128", "complex64", "int64", "int32")


def is_multiplied_in_order(operation: str, dtype: np.dtype) -> bool:
    """Tell whether a reduction is a product whose value depends on the order of its elements."""
    return operation in ("prod", "prod of stored") and dtype.kind in "fc"


def has_loops(dtype: np.dtype) -> bool:
    """Tell whether there are loops that multiply the entries of sparse blocks in a dtype."""
    return dtype.name in _COMPILED


def multiplied(values: Sequence[Block], operation: str, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    """Return the product of a block over some axes, in the order of rows, which keep length 1.

    Peak memory: the result, of a dense block a copy where the axes are not its first ones, or where it is of
    another dtype; of a sparse one 8 bytes a column, and its values where they are of another dtype. Sparse
    blocks are made dense for a product in extended precision.

    Parameters
    ----------
    values
        The block, and what the blocks before it on these axes made, unless it is the first.
    operation
        "prod", or "prod of stored", in which absent elements of a sparse block take no part.
    dtype
        Of the result.
    """
    block, *before = values
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(block.shape))
    start = to_numpy(before[0]).reshape(shape) if before else None
    with np.errstate(all="ignore"):
        if is_sparse(block) and dtype.name in _COMPILED:
            return Dense(_of_sparse(block, operation == "prod", axes, dtype, shape, start))
        if operation == "prod of stored" and is_sparse(block):
            raise DTypeError(f"{operation} elements in dtype {dtype}: convert to double precision first")
        rows = np.moveaxis(densify(block).values, axes, range(len(axes)))
        rows = cast(rows, dtype).reshape(-1, *rows.shape[len(axes) :])
        if start is None:
            return Dense(np.asarray(np.multiply.reduce(rows, axis=0)).reshape(shape))
        total = np.squeeze(start, axis=axes)
        return Dense(np.array(_multiply_on(rows, total)).reshape(shape))


def _multiply_on(rows: NumericArray, total: NumericArray) -> NumericArray:
    width = max(1, total.size)
    if width >= _WIDE_ROW:
        total = total.copy()
        for row in rows:
            np.multiply(total, row, out=total)
        return total
    step = max(1, _TILE // width)
    for first in range(0, len(rows), step):
        total = accumulated(np.multiply, rows[first : first + step], total, rows.dtype)[-1]
    return total


def accumulated(ufunc: np.ufunc, rows: NumericArray, start: NumericArray, dtype: np.dtype) -> NumericArray:
    """Return what a ufunc makes of a start and the rows up to each one, one after the other."""
    joined = np.empty((len(rows) + 1, *rows.shape[1:]), dtype)
    joined[0], joined[1:] = start, rows
    return np.asarray(ufunc.accumulate(joined, axis=0))[1:]


def _of_sparse(
    block: Block,
    with_absent: bool,
    axes: tuple[int, ...],
    dtype: np.dtype,
    shape: tuple[int, ...],
    start: NumericArray | None,
) -> NumericArray:
    assert not isinstance(block, Dense)
    csr = as_csr(block)
    columns = csr.shape[1]
    out = np.ones(shape, dtype) if start is None else cast(start, dtype, copy=True)
    values = given(entries_as(csr, dtype))
    pointers, places = unsigned(csr.pointers), unsigned(csr.columns)
    if axes == (0,):
        multiply_columns(pointers, places, values, with_absent, out.reshape(columns))
    else:
        shared = len(axes) == 2
        multiply_rows(pointers, places, values, columns, with_absent, shared, out.reshape(-1))
    return out


@compiled
def extremes_of_rows(values: NumericArray, is_max: bool, out: NumericArray) -> None:
    """Find the least or the greatest element of each row of a matrix; NaN if there is one."""
    flat, length = values.reshape(-1), np.uint64(values.shape[1])
    for i in range(np.uint64(out.size)):
        best = flat[i * length]
        for j in range(np.uint64(1), length):
            value = flat[i * length + j]
            is_better = (value > best) if is_max else (value < best)
            best = value if (is_better or value != value) and best == best else best
        out[i] = best


REDUCTIONS = Family("reduction")
_MONOIDS = {"sum": PLUS, "prod": TIMES, "min": MIN, "max": MAX, "any": LOR, "all": LAND, "stored": PLUS}
_MONOIDS |= {name: _MONOIDS[plain] for name, plain in OF_STORED.items()}
_WIDE: dict[str, np.dtype] = {
    "float16": np.dtype(np.float64),
    "float32": np.dtype(np.float64),
    "complex64": np.dtype(np.complex128),
}
_TRUTH = np.dtype(np.bool_)
_LOOPS = {
    "sum": (add_rows, add_columns),
    "min": (least_of_rows, least_of_columns),
    "max": (greatest_of_rows, greatest_of_columns),
    "any": (greatest_of_rows, greatest_of_columns),
    "all": (least_of_rows, least_of_columns),
}
_LOOP_DTYPES = (
    "float64",
    "float32",
    "int64",
    "int32",
    "bool",
)  # what sparse blocks are made of; more would each be compiled

Ranges = Sequence[Range]
# Of elements, and of what is left of them when the last axes are reduced: see ``blocks.deviations``.
DEVIATIONS = ("deviation", "deviation of nodes")


@lru_cache(256)  # NumPy takes microseconds to name a dtype
def accumulator_dtype(operation: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the partial results of a reduction: short floats are summed in long ones.

    NumPy multiplies half precision in single precision along an axis that lies in memory, and rounds once.
    """
    if operation in DEVIATIONS:
        return np.dtype(np.float64)
    if operation.startswith("prod") and dtype == np.float16:
        return np.dtype(np.float32)
    return _WIDE.get(dtype.name, dtype) if operation == "sum" else dtype


def reduce_block(
    operation: str,
    block: Block,
    axes: tuple[int, ...],
    dtype: np.dtype,
    along: int | None = None,
    start: int = 0,
) -> Dense:
    """Reduce one block to its part of the result.

    Peak memory: the result, and what ``sums.share_of`` says for sums of floats; of a sparse block 5 bytes for
    each of its rows or columns, 8 a row for a sum of floats over both axes, and its values once more where
    they are of another dtype than the part.

    Parameters
    ----------
    operation
        "sum", "prod", "min", "max", "any", "all", or "stored": the number of stored entries, in a Dense
        block all elements. Or "prod", "min", "max" or "all" with " of stored", in which absent elements take
        no part. Or one of ``DEVIATIONS``, whose part has one more axis, for the numbers of a node.
    block
        Absent elements of a sparse block count as 0, except for "stored". NaN goes through as in NumPy.
    axes
        Not negative, none twice, in ascending order.
    dtype
        Of the result of the whole reduction; the part has ``accumulator_dtype(operation, dtype)``.
    along, start
        For what is ``sums_as_tree``: the first of ``axes``, where the block is a part of that axis, and its
        global place there. The axis then gets the length of its share in the sum.

    Returns
    -------
    Dense
        Of as many axes as the block, the reduced ones of length 1. Over no element at all it is the identity
        of the operation, also for "min" and "max", since the array may have elements where the block has
        none. Shares no memory with the block.

    Raises
    ------
    UnsupportedError
        For an unknown operation.
    """
    if operation in DEVIATIONS:
        values = to_numpy(block)
        return Dense(deviation_share(values, axes, along, start, operation != "deviation"))
    kernel = REDUCTIONS.find(operation, block)
    wide = accumulator_dtype(operation, dtype)
    with np.errstate(all="ignore"):
        if along is None:
            part = kernel(operation, block, axes, wide)
        elif isinstance(block, Dense):
            part = Dense(share_of(block.values, axes, along, start))
        else:  # over its rows; each row is one number before
            rows = kernel(operation, block, axes[1:], wide) if axes[1:] else densify(block)
            assert isinstance(rows, Dense)
            part = Dense(share_of(rows.values, axes[:1], along, start))
    assert isinstance(part, Dense)
    return part


def combine(operation: str, parts: Sequence[Dense], along: int | None = None, ranges: Ranges = ()) -> Dense:
    """Combine partial results, in the given order.

    Parameters
    ----------
    operation, parts
        What ``reduce_block`` made of blocks: of one shape, but for the axis ``along``.
    along, ranges
        As of ``reduce_block``, and what part of that axis each share is of, in order, from 0 to its end.

    Raises
    ------
    ShapeError
        When there is no part, or their shapes differ.
    OptionError
        For an unknown operation.
    """
    if operation == "deviation" and along is not None and parts:
        return Dense(deviation_of_shares([part.values for part in parts], ranges, along))
    if operation not in _MONOIDS:
        raise OptionError(f"no reduction {operation!r}; known: {', '.join(_MONOIDS)}")
    if along is not None and parts:
        return Dense(sum_of_shares([part.values for part in parts], ranges, along))
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(f"partial results of shapes {[part.shape for part in parts]}: give some, all alike")
    ufunc = getattr(np, _MONOIDS[operation].ufunc)
    total = parts[0].values.copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = np.asarray(ufunc(total, part.values))
    return Dense(total)


def combine_neighbors(values: Sequence[Dense], operation: str, along: int | None, ranges: Ranges) -> Dense:
    """Combine partial results of blocks that follow one another to one of all of these; see ``combine``.

    It is what their block would have given, where the operation is not a product of floats or "deviation".
    """
    if along is None:
        return combine(operation, values)
    return Dense(share_of_shares([one.values for one in values], ranges, along))


def finish(
    block: Dense, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype, operation: str = ""
) -> Dense:
    """Return the combined partial results as ``dtype``, without the reduced axes unless ``keepdims``.

    Shares the memory of the block where the dtype is the same. Without axes, a "deviation" goes on.
    """
    last = block.values[..., -1] if operation == "deviation" and axes else block.values
    values = cast(last, dtype)
    return Dense(values if keepdims else np.squeeze(values, axis=axes))


def _reduce_dense(operation: str, block: Dense, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    if not axes:  # nothing to combine, but "any" and "all" ask each element whether it is true
        return Dense(cast(cast(block.values, _operand_dtype(operation, dtype)), dtype, copy=True))
    if sums_as_tree(operation, dtype):
        return Dense(share_of(cast(block.values, dtype) if dtype.kind == "c" else block.values, axes))
    monoid = _MONOIDS[operation]
    values = block.values
    if operation not in ("sum", "prod") or not np.can_cast(values.dtype, dtype, "same_kind"):
        values = cast(values, _operand_dtype(operation, dtype))
    options = {"axis": axes, "keepdims": True}
    ufunc = getattr(np, monoid.ufunc)
    if operation in ("sum", "prod"):  # converted piece by piece inside the reduction
        return Dense(np.asarray(ufunc.reduce(values, dtype=dtype, **options)))
    if operation in ("min", "max") and _has_short_rows(values, axes):
        return Dense(cast(_extremes_of_short_rows(values, operation == "max"), dtype))
    if operation in ("min", "max") and prod(block.shape[axis] for axis in axes) == 0:
        return Dense(np.asarray(ufunc.reduce(values, initial=monoid.identity(values.dtype), **options)))
    return Dense(cast(np.asarray(ufunc.reduce(values, **options)), dtype))


_SHORT_ROW = 32  # elements; of longer ones NumPy is fast
_WORTH_COMPILING = 1 << 18  # elements: below, what a loop saves is little beside its first call


def _has_short_rows(values: NumericArray, axes: tuple[int, ...]) -> bool:
    is_last = axes == (values.ndim - 1,) and values.ndim > 1 and 1 < values.shape[-1] <= _SHORT_ROW
    is_large = values.size >= _WORTH_COMPILING or (values.size > 0 and is_ready(extremes_of_rows))
    return (
        is_last
        and is_large
        and values.dtype.kind in "f"
        and values.dtype.itemsize in (4, 8)
        and (values.flags.c_contiguous)
    )


def _extremes_of_short_rows(values: NumericArray, is_max: bool) -> NumericArray:
    # Which of two zeros is the extreme, and which of two NaN, NumPy leaves to the processor, and so do we.
    rows = given(values).reshape(-1, values.shape[-1])
    out = np.empty(len(rows), values.dtype)
    extremes_of_rows(rows, is_max, out)
    uncertain = np.flatnonzero((out == 0) | (out != out))
    if uncertain.size:
        out[uncertain] = (np.max if is_max else np.min)(rows[uncertain], axis=1)
    return out.reshape(*values.shape[:-1], 1)


def _reduce_sparse(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    if not axes:
        return _reduce_dense(operation, densify(block), axes, dtype)
    if operation == "prod" and has_loops(dtype):
        return multiplied([block], operation, axes, dtype)
    csr = as_csr(block)
    return _reduce_csr(operation, csr, axes, dtype, csr.shape)


def _reduce_stored(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    plain = OF_STORED[operation]
    if axes and plain == "prod" and has_loops(dtype):
        return multiplied([block], operation, axes, dtype)
    if axes:  # no line is longer than what it stores
        return _reduce_csr(plain, as_csr(block), axes, dtype, (0, 0))
    pattern = densify(pattern_of(block, _TRUTH)).values
    elements = cast(densify(block).values, _operand_dtype(plain, dtype))
    return Dense(cast(np.where(pattern, elements, _MONOIDS[plain].identity(elements.dtype)), dtype))


def _reduce_csr(
    operation: str, csr: Csr, axes: tuple[int, ...], dtype: np.dtype, lengths: tuple[int, int]
) -> Dense:
    # ``lengths``: how many elements a column and a row have; any that are not stored are 0.
    (rows, columns), (num_down, num_across) = csr.shape, lengths
    if axes == (0,):
        counts = np.zeros(columns, np.int32)
        adds = operation in ("sum", "any") and dtype.name in _LOOP_DTYPES  # absent elements change nothing
        if not adds or csr.values is None:
            count_columns(unsigned(csr.columns), counts)
        return Dense(_reduce_lines(operation, csr, counts, num_down, dtype, False).reshape(1, columns))
    counts = np.diff(csr.pointers)
    if axes == (1,):
        return Dense(_reduce_lines(operation, csr, counts, num_across, dtype, True).reshape(rows, 1))
    if sums_as_tree(operation, dtype):
        totals = _reduce_lines(operation, csr, counts, columns, dtype, True)
        return Dense(share_of(totals, (0,)).reshape(1, 1))
    line = Csr((1, rows * columns), csr.pointers[[0, -1]], csr.columns, csr.values, csr.dtype)
    number = np.array([csr.nnz])
    return Dense(_reduce_lines(operation, line, number, num_down * num_across, dtype, True).reshape(1, 1))


def _reduce_lines(
    operation: str, block: Csr, counts: npt.NDArray[np.integer], length: int, dtype: np.dtype, by_rows: bool
) -> NumericArray:
    # Each row or column stores ``counts`` of its ``length`` elements, the others of which are 0.
    if operation == "sum" and block.values is None:
        return cast(counts, dtype)
    monoid = _MONOIDS[operation]
    operand = _operand_dtype(operation, dtype)
    if by_rows and sums_as_tree(operation, operand) and block.values is not None:
        return cast(row_sums(block.pointers, block.values), dtype)
    # Ones, and there is no need to look at each; of complex numbers no monoid knows the least.
    if block.values is None and operation != "sum" and operand.kind != "c":
        out = np.where(counts > 0, operand.type(1), monoid.identity(operand))
        return _with_absent(operation, out, counts < length, dtype)
    values = entries_as(block, operand)
    if operation in _LOOPS and operand.name in _LOOP_DTYPES:
        out = np.full(counts.size, monoid.identity(operand), operand)
        rows_loop, columns_loop = _LOOPS[operation]
        if by_rows:
            rows_loop(unsigned(block.pointers), given(values), out)
        elif columns_loop is not add_columns or is_worth_compiling(
            add_columns, values.size, unsigned(block.columns), given(values), out
        ):
            columns_loop(unsigned(block.columns), given(values), out)
        else:
            np.add.at(out, block.columns, values)
    else:
        out = _reduce_others(monoid, block, values, counts, by_rows)
    return _with_absent(operation, out, counts < length, dtype)


def _with_absent(
    operation: str, out: NumericArray, is_short: npt.NDArray[np.bool_], dtype: np.dtype
) -> NumericArray:
    # Lines that do not store all of their elements also have a 0.
    if operation not in ("sum", "any"):
        ufunc = getattr(np, _MONOIDS[operation].ufunc)
        ufunc(out, out.dtype.type(0), out=out, where=is_short)
    return cast(out, dtype)


def _reduce_others(
    monoid: Monoid, block: Csr, values: NumericArray, counts: npt.NDArray[np.integer], by_rows: bool
) -> NumericArray:
    # By NumPy, for the dtypes that no loop is compiled for.
    ufunc = getattr(np, monoid.ufunc)
    starts = block.pointers[:-1]
    if not by_rows:
        pointers, _, order = transposed_order(block)
        starts, values = pointers[:-1], values[order]
    some = counts > 0
    out = np.zeros(counts.size, values.dtype)
    if monoid in (TIMES, MIN, MAX, LAND) and values.dtype.kind != "c":
        out[~some] = monoid.identity(values.dtype)  # absent zeros meet it afterwards, if they take part
    if some.any():  # reduceat cannot make an empty run, so those are left out
        out[some] = ufunc.reduceat(values, starts[some], dtype=values.dtype)
    return out


def _operand_dtype(operation: str, dtype: np.dtype) -> np.dtype:
    return _TRUTH if operation in ("any", "all") else dtype


def _count_dense(operation: str, block: Dense, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(block.shape))
    return Dense(np.full(shape, prod(block.shape[axis] for axis in axes), dtype))


def _count_sparse(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    return _reduce_sparse("sum", pattern_of(block, dtype), axes, dtype)


for _operation in _MONOIDS:
    _counts = _operation == "stored"
    _is_stored = _operation in OF_STORED
    if not _is_stored:
        REDUCTIONS.register(_operation, Dense)(_count_dense if _counts else _reduce_dense)
    for _format in (Csr, Empty):
        REDUCTIONS.register(_operation, _format)(
            _count_sparse if _counts else _reduce_stored if _is_stored else _reduce_sparse
        )
