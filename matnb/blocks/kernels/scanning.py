"""Scans of blocks: what a ufunc makes of the elements up to each one, and of those before a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.blocks.kernels.casting import cast

_TILE = 2**14  # elements that are still in cache when what came before them is added
_WIDE = 256  # elements beside each other, from where whole rows are taken at a time


def total_of(values: Sequence[Block], ufunc: str, axis: int, dtype: np.dtype) -> Dense:
    """Return what the ufunc makes of a block along an axis, which keeps length 1."""
    with np.errstate(all="ignore"):
        operand = _operand(to_numpy(values[0]), dtype)
        return Dense(np.asarray(getattr(np, ufunc).reduce(operand, axis=axis, keepdims=True, dtype=dtype)))


def carried(values: Sequence[Block], ufunc: str) -> Dense:
    """Return what the ufunc makes of totals, from the first to the last."""
    with np.errstate(all="ignore"):
        return Dense(np.array(reduce(getattr(np, ufunc), map(to_numpy, values))))


def scanned(values: Sequence[Block], ufunc: str, axis: int, dtype: np.dtype) -> Dense:
    """Return the scan of a block: the first of ``values``, after the totals of those before it.

    Peak memory: the result, and the block once more where it is sparse or converts unsafely.
    """
    block, *before = values
    operand = _operand(to_numpy(block), dtype)
    out = np.empty(operand.shape, dtype)
    carry = carried(before, ufunc).values if before else None
    function = getattr(np, ufunc)
    with np.errstate(all="ignore"):
        if operand.ndim == 1:
            _scan_vector(function, operand, None if carry is None else carry[0], out)
        elif prod(operand.shape[axis + 1 :]) >= _WIDE:
            _scan_rows(function, np.moveaxis(operand, axis, 0), carry, np.moveaxis(out, axis, 0), axis)
        else:
            function.accumulate(operand, axis=axis, dtype=dtype, out=out)
            if carry is not None:
                function(carry, out, out=out)
    return Dense(out)


def _scan_vector(
    function: np.ufunc, values: NumericArray, carry: np.generic | None, out: NumericArray
) -> None:
    if carry is None:
        function.accumulate(values, dtype=out.dtype, out=out)
        return
    for start in range(0, values.size, _TILE):
        tile = out[start : start + _TILE]
        function.accumulate(values[start : start + _TILE], dtype=out.dtype, out=tile)
        function(carry, tile, out=tile)
        carry = tile[-1]


def _scan_rows(
    function: np.ufunc, values: NumericArray, carry: NumericArray | None, out: NumericArray, axis: int
) -> None:
    # Row by row along the first axis: NumPy's own goes down each column.
    for place in range(values.shape[0]):
        if place:
            function(out[place - 1], values[place], out=out[place], dtype=out.dtype)
        elif carry is None:
            out[0] = values[0]
        else:
            function(np.moveaxis(carry, axis, 0)[0], values[0], out=out[0], dtype=out.dtype)


def _operand(values: NumericArray, dtype: np.dtype) -> NumericArray:
    # Converted piece by piece inside the scan where that is safe.
    return values if np.can_cast(values.dtype, dtype, "same_kind") else cast(values, dtype)
