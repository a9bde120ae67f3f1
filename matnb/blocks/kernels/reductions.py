"""Reductions of single blocks to partial results, their combination, and the last step to the result."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, IndexArray, NumericArray
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.patterns import as_csr, pattern_of, transposed_order
from matnb.blocks.kernels.registry import Family
from matnb.blocks.kernels.shaping import densify
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, PLUS, TIMES
from matnb.errors import OptionError, ShapeError

REDUCTIONS = Family("reduction")
_MONOIDS = {"sum": PLUS, "prod": TIMES, "min": MIN, "max": MAX, "any": LOR, "all": LAND, "stored": PLUS}
_WIDE: dict[str, np.dtype] = {
    "float16": np.dtype(np.float64),
    "float32": np.dtype(np.float64),
    "complex64": np.dtype(np.complex128),
}
_TRUTH = np.dtype(np.bool_)


def accumulator_dtype(operation: str, dtype: np.dtype) -> np.dtype:
    """Return the dtype of the partial results of a reduction: short floats are summed in long ones."""
    return _WIDE.get(dtype.name, dtype) if operation == "sum" else dtype


def reduce_block(operation: str, block: Block, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    """Reduce one block to its part of the result.

    Parameters
    ----------
    operation
        "sum", "prod", "min", "max", "any", "all", or "stored": the number of stored entries, in a Dense
        block all elements.
    block
        Absent elements of a sparse block count as 0, except for "stored". NaN goes through as in NumPy.
    axes
        Not negative, none twice.
    dtype
        Of the result of the whole reduction; the part has ``accumulator_dtype(operation, dtype)``.

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
    kernel = REDUCTIONS.find(operation, block)
    with np.errstate(all="ignore"):
        part = kernel(operation, block, axes, accumulator_dtype(operation, dtype))
    assert isinstance(part, Dense)
    return part


def combine(operation: str, parts: Sequence[Dense]) -> Dense:
    """Combine partial results of one shape, in the given order.

    Raises
    ------
    ShapeError
        When there is no part, or their shapes differ.
    OptionError
        For an unknown operation.
    """
    if operation not in _MONOIDS:
        raise OptionError(f"no reduction {operation!r}; known: {', '.join(_MONOIDS)}")
    if len({part.shape for part in parts}) != 1:
        raise ShapeError(f"partial results of shapes {[part.shape for part in parts]}: give some, all alike")
    ufunc = getattr(np, _MONOIDS[operation].ufunc)
    total = parts[0].values.copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = np.asarray(ufunc(total, part.values))
    return Dense(total)


def finish(block: Dense, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype) -> Dense:
    """Return the combined partial results as ``dtype``, without the reduced axes unless ``keepdims``.

    Shares the memory of the block where the dtype is the same.
    """
    values = cast(block.values, dtype)
    return Dense(values if keepdims else np.squeeze(values, axis=axes))


def _reduce_dense(operation: str, block: Dense, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    if not axes:  # nothing to combine, but "any" and "all" ask each element whether it is true
        return Dense(cast(cast(block.values, _operand_dtype(operation, dtype)), dtype, copy=True))
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
    csr = as_csr(block)
    rows, columns = csr.shape
    match sorted(axes):
        case [0, 1]:
            ends = np.array([0, csr.nnz], np.int32)
            return Dense(_reduce_runs(operation, csr.values, ends, rows * columns, dtype).reshape(1, 1))
        case [0]:
            ends, _, order = transposed_order(csr)
            values = None if csr.values is None else csr.values[order]
            return Dense(_reduce_runs(operation, values, ends, rows, dtype).reshape(1, columns))
    return Dense(_reduce_runs(operation, csr.values, csr.pointers, columns, dtype).reshape(rows, 1))


def _reduce_runs(
    operation: str, values: NumericArray | None, pointers: IndexArray, length: int, dtype: np.dtype
) -> NumericArray:
    # Each run of stored values (None: ones) stands for ``length`` elements, the others of which are 0.
    monoid = _MONOIDS[operation]
    ufunc = getattr(np, monoid.ufunc)
    counts = np.diff(pointers)
    operand = _operand_dtype(operation, dtype)
    zero = operand.type(0)
    out = np.full(counts.size, monoid.identity(operand) if length == 0 else zero, operand)
    some = counts > 0
    if values is None:
        out[some] = cast(counts[some], operand) if operation == "sum" else 1
    elif some.any():  # reduceat cannot make an empty run, so those are left out
        out[some] = ufunc.reduceat(cast(values, operand), pointers[:-1][some], dtype=operand)
    if operation not in ("sum", "any"):
        short = some & (counts < length)
        out[short] = ufunc(out[short], zero)
    return cast(out, dtype)


def _operand_dtype(operation: str, dtype: np.dtype) -> np.dtype:
    return _TRUTH if operation in ("any", "all") else dtype


def _count_dense(operation: str, block: Dense, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(block.shape))
    return Dense(np.full(shape, prod(block.shape[axis] for axis in axes), dtype))


def _count_sparse(operation: str, block: Csr | Empty, axes: tuple[int, ...], dtype: np.dtype) -> Dense:
    return _reduce_sparse("sum", pattern_of(block, dtype), axes, dtype)


for _operation in _MONOIDS:
    _counts = _operation == "stored"
    REDUCTIONS.register(_operation, Dense)(_count_dense if _counts else _reduce_dense)
    for _format in (Csr, Empty):
        REDUCTIONS.register(_operation, _format)(_count_sparse if _counts else _reduce_sparse)
