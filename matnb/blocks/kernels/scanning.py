"""Blocks along an axis: what a ufunc makes of the elements up to each one, and differences of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import prod

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.reductions import accumulated

_TILE = 2**14  # elements that are still in cache when what came before them is added
_ADDED = "dflq"  # kinds of numbers that a compiled loop adds up, one machine code each
_WIDE = 256  # elements beside each other, from where whole rows are taken at a time


def runs_in_order(ufunc: str, dtype: np.dtype) -> bool:
    """Tell whether a scan goes on from block to block: see ``reductions``."""
    return ufunc == "multiply" and dtype.kind in "fc"


def last_of(values: Sequence[Block], axis: int) -> Dense:
    """Return the end of a block along an axis, of length 1."""
    return Dense(to_numpy(values[0]).take([-1], axis=axis))


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

    A scan that runs in order is given the end of the block before it instead, and each element meets what is
    left of it. Peak memory: the result, and the block once more where it is sparse or converts unsafely.
    """
    block, *before = values
    operand = _operand(to_numpy(block), dtype)
    out = np.empty(operand.shape, dtype)
    carry = carried(before, ufunc).values if before else None
    function = getattr(np, ufunc)
    with np.errstate(all="ignore"):
        if carry is not None and runs_in_order(ufunc, dtype):
            start = np.asarray(carry.take(0, axis))
            _scan_on(function, np.moveaxis(operand, axis, 0), start, np.moveaxis(out, axis, 0))
        elif operand.ndim == 1:
            _scan_vector(function, operand, None if carry is None else carry[0], out)
        elif prod(operand.shape[axis + 1 :]) >= _WIDE:
            _scan_rows(function, np.moveaxis(operand, axis, 0), carry, np.moveaxis(out, axis, 0), axis)
        else:
            function.accumulate(operand, axis=axis, dtype=dtype, out=out)
            if carry is not None:
                function(carry, out, out=out)
    return Dense(out)


def _scan_on(function: np.ufunc, rows: NumericArray, carry: NumericArray, out: NumericArray) -> None:
    step = max(1, _TILE // max(1, carry.size))
    for start in range(0, len(rows), step):
        tile = out[start : start + step]
        tile[...] = accumulated(function, rows[start : start + step], carry, out.dtype)
        carry = tile[-1]


def _scan_vector(
    function: np.ufunc, values: NumericArray, carry: np.generic | None, out: NumericArray
) -> None:
    if not values.size:
        return
    is_same = values.dtype == out.dtype and values.flags.c_contiguous
    if function is np.add and is_same and out.dtype.char in _ADDED:
        first = values[0] if carry is None else function(carry, values[0])
        _add_up(given(values), out.dtype.type(first), out)
        return
    if carry is None:
        function.accumulate(values, dtype=out.dtype, out=out)
        return
    for start in range(0, values.size, _TILE):
        tile = out[start : start + _TILE]
        function.accumulate(values[start : start + _TILE], dtype=out.dtype, out=tile)
        function(carry, tile, out=tile)
        carry = tile[-1]


@compiled
def _add_up(values: NumericArray, total: np.generic, out: NumericArray) -> None:
    # As NumPy does, one by one, in half the time. The first element is in the total.
    out[0] = total
    for place in range(1, values.size):
        total += values[place]
        out[place] = total


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


def differences(values: Sequence[Block], axis: int) -> Dense:
    """Return each element of a block less the one before it, of truths whether they differ.

    Parameters
    ----------
    values
        The block, and what follows it on the axis, of length 1, unless nothing does.
    """
    given_values, *following = (np.moveaxis(to_numpy(one), axis, 0) for one in values)
    function = np.not_equal if given_values.dtype == np.bool_ else np.subtract
    count = len(given_values) - 1
    shape = list(to_numpy(values[0]).shape)
    shape[axis] = count + len(following)
    out = np.empty(shape, given_values.dtype)
    rows = np.moveaxis(out, axis, 0)
    with np.errstate(all="ignore"):
        function(given_values[1:], given_values[:-1], out=rows[:count])
        for one in following:
            function(one, given_values[-1:], out=rows[count:])
    return Dense(out)
