"""Reductions of single blocks to partial results, their combination, and the last step to the result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.deviations import deviation_of_shares, deviation_share
from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, to_numpy
from matnb.blocks.kernels import reduction_loops as loops
from matnb.blocks.kernels.casting import cast, entries_as
from matnb.blocks.kernels.compiled import given, unsigned
from matnb.blocks.kernels.patterns import as_csr, pattern_of, transposed_order
from matnb.blocks.kernels.registry import Family
from matnb.blocks.kernels.running_products import has_loops, multiplied
from matnb.blocks.kernels.shaping import densify
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, PLUS, TIMES, Monoid
from matnb.blocks.sums import Range, row_sums, share_of, sum_of_shares, sums_as_tree
from matnb.errors import OptionError, ShapeError

REDUCTIONS = Family("reduction")
_MONOIDS = {"sum": PLUS, "prod": TIMES, "min": MIN, "max": MAX, "any": LOR, "all": LAND, "stored": PLUS}
# Of sparse blocks, where an absent element is none, not a zero.
_OF_STORED = {f"{name} of stored": name for name in ("prod", "min", "max", "all")}
_MONOIDS |= {name: _MONOIDS[plain] for name, plain in _OF_STORED.items()}
_WIDE: dict[str, np.dtype] = {
    "float16": np.dtype(np.float64),
    "float32": np.dtype(np.float64),
    "complex64": np.dtype(np.complex128),
}
_TRUTH = np.dtype(np.bool_)
_LOOPS = {
    "sum": (loops.add_rows, loops.add_columns),
    "min": (loops.least_of_rows, loops.least_of_columns),
    "max": (loops.greatest_of_rows, loops.greatest_of_columns),
    "any": (loops.greatest_of_rows, loops.greatest_of_columns),
    "all": (loops.least_of_rows, loops.least_of_columns),
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
    if operation in ("min", "max") and prod(block.shape[axis] for axis in axes) == 0:
        return Dense(np.asarray(ufunc.reduce(values, initial=monoid.identity(values.dtype), **options)))
    return Dense(cast(np.asarray(ufunc.reduce(values, **options)), dtype))


def _reduce_sparse(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    if not axes:
        return _reduce_dense(operation, densify(block), axes, dtype)
    if operation == "prod" and has_loops(dtype):
        return multiplied([block], operation, axes, dtype)
    csr = as_csr(block)
    return _reduce_csr(operation, csr, axes, dtype, csr.shape)


def _reduce_stored(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    plain = _OF_STORED[operation]
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
            loops.count_columns(unsigned(csr.columns), counts)
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
    if block.values is None and operation != "sum":  # ones, and there is no need to look at each
        out = np.where(counts > 0, operand.type(1), monoid.identity(operand))
        return _with_absent(operation, out, counts < length, dtype)
    values = entries_as(block, operand)
    if operation in _LOOPS and operand.name in _LOOP_DTYPES:
        out = np.full(counts.size, monoid.identity(operand), operand)
        rows_loop, columns_loop = _LOOPS[operation]
        if by_rows:
            rows_loop(unsigned(block.pointers), given(values), out)
        else:
            columns_loop(unsigned(block.columns), given(values), out)
    else:
        out = _reduce_others(monoid, block, values, counts, by_rows)
    return _with_absent(operation, out, counts < length, dtype)


def _with_absent(
    operation: str, out: NumericArray, is_short: npt.NDArray[np.bool_], dtype: np.dtype
) -> NumericArray:
    # Lines that do not store all of their elements have a 0 besides.
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
    _is_stored = _operation in _OF_STORED
    if not _is_stored:
        REDUCTIONS.register(_operation, Dense)(_count_dense if _counts else _reduce_dense)
    for _format in (Csr, Empty):
        REDUCTIONS.register(_operation, _format)(
            _count_sparse if _counts else _reduce_stored if _is_stored else _reduce_sparse
        )
