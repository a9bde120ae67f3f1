"""Products of floats, one element after the other as NumPy multiplies them, going on from block to block.

A product of blocks' products is no product of the elements: 1e200 * 1e200 is infinite, where 1e-300 came
before it is not, and 0 times it is NaN. So a block begins with what the blocks before it made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, is_sparse, to_numpy
from matnb.blocks.kernels import reduction_loops as loops
from matnb.blocks.kernels.casting import cast, entries_as
from matnb.blocks.kernels.compiled import given, unsigned
from matnb.blocks.kernels.patterns import as_csr
from matnb.blocks.kernels.shaping import densify
from matnb.errors import DTypeError

_TILE = 2**14  # elements whose copy stays in cache
_WIDE = 256  # elements beside each other, from where whole rows are taken at a time
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
    if width >= _WIDE:
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
        loops.multiply_columns(pointers, places, values, with_absent, out.reshape(columns))
    else:
        shared = len(axes) == 2
        loops.multiply_rows(pointers, places, values, columns, with_absent, shared, out.reshape(-1))
    return out
