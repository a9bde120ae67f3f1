"""Values reduced by label: the scatter-reduce behind ``groupby``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.operands import check_loop_dtype
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.semiring import LAND, LOR, PLUS, Monoid
from matnb.errors import DTypeError, ShapeError

LabelArray = npt.NDArray[np.int32] | npt.NDArray[np.int64]
_Loop = Callable[[NumericArray, LabelArray, NumericArray], int]


def reduce_by_label(
    values: NumericArray,
    labels: LabelArray,
    num_labels: int,
    monoid: Monoid,
    dtype: np.dtype,
    before: NumericArray | None = None,
) -> Dense:
    """Combine all values, or all rows, of the same label.

    Peak memory: the result in the dtype it is summed in, once, the values in that dtype where they are of
    another, and nothing more.

    Parameters
    ----------
    values
        Of one axis, or rows of two.
    labels
        int32 or int64, one for each value or row, from 0 to ``num_labels`` - 1.
    monoid
        plus, times, min, max, lor or land. The last two take what is not 0 as true. A NaN goes through min
        and max, as in NumPy.
    dtype
        Of the whole result. Integers wrap.
    before
        What the values are combined with, if it is given: what came of other values before.

    Returns
    -------
    Dense
        ``num_labels`` elements or rows; the identity of the monoid for a label that nothing has. Float sums
        of 16 and 32 bits are given in float64, so that the results of several blocks are combined by the
        monoid before they are rounded. Values are combined in the order of their positions: the same cuts
        give the same bits, other cuts may round a float sum otherwise.

    Raises
    ------
    ShapeError
        When lengths differ or a label is out of range.
    DTypeError
        When labels are of another dtype, or the result of extended precision.
    """
    if labels.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
        raise DTypeError(f"labels of dtype {labels.dtype}: give int32 or int64")
    if labels.ndim != 1 or values.ndim not in (1, 2) or len(values) != len(labels):
        raise ShapeError(
            f"labels of shape {labels.shape} for values of shape {values.shape}: give one a value or row"
        )
    check_loop_dtype(dtype)
    accumulator = accumulator_dtype("sum", dtype) if monoid is PLUS else dtype
    held = np.dtype(np.bool_) if monoid in (LOR, LAND) else accumulator
    if held == np.float16:
        held = np.dtype(np.float64)  # compiled loops have no shorter float than float32
    loop = (_LOOPS_OF_TRUTH if held == np.bool_ else _LOOPS)[monoid.name]
    width = 1 if values.ndim == 1 else values.shape[1]
    rows = cast(values, held).reshape(len(labels), width)
    if before is None:
        totals = np.full((num_labels, width), monoid.identity(held), held)
    else:
        totals = cast(before, held, copy=True).reshape(num_labels, width)
    if held == np.bool_:
        rows, totals = rows.view(np.uint8), totals.view(np.uint8)
    place = loop(given(rows), given(labels), totals)
    if place >= 0:
        known = f"labels go from 0 to {num_labels - 1}" if num_labels else "there are no labels"
        raise ShapeError(f"label {labels[place]} at position {place}: {known}")
    found = totals.view(held).reshape(num_labels, *values.shape[1:])
    return Dense(cast(found, accumulator))


@compiled
def _plus(values: NumericArray, labels: LabelArray, totals: NumericArray) -> int:
    num_labels, width = np.uint64(totals.shape[0]), totals.shape[1]
    if width == 1:  # a loop of its own is twice as fast
        single, sums = values.ravel(), totals.reshape(totals.size)
        for place in range(labels.size):
            label = np.uint64(labels[place])
            if label >= num_labels:  # a negative one became very large
                return place
            sums[label] += single[place]
        return -1
    for place in range(labels.size):
        label = np.uint64(labels[place])
        if label >= num_labels:
            return place
        for column in range(width):
            totals[label, column] += values[place, column]
    return -1


@compiled
def _times(values: NumericArray, labels: LabelArray, totals: NumericArray) -> int:
    num_labels, width = np.uint64(totals.shape[0]), totals.shape[1]
    for place in range(labels.size):
        label = np.uint64(labels[place])
        if label >= num_labels:
            return place
        for column in range(width):
            totals[label, column] *= values[place, column]
    return -1


@compiled
def _least(values: NumericArray, labels: LabelArray, totals: NumericArray) -> int:
    num_labels, width = np.uint64(totals.shape[0]), totals.shape[1]
    for place in range(labels.size):
        label = np.uint64(labels[place])
        if label >= num_labels:
            return place
        for column in range(width):
            value, held = values[place, column], totals[label, column]
            totals[label, column] = value if value < held or value != value else held
    return -1


@compiled
def _most(values: NumericArray, labels: LabelArray, totals: NumericArray) -> int:
    num_labels, width = np.uint64(totals.shape[0]), totals.shape[1]
    for place in range(labels.size):
        label = np.uint64(labels[place])
        if label >= num_labels:
            return place
        for column in range(width):
            value, held = values[place, column], totals[label, column]
            totals[label, column] = value if value > held or value != value else held
    return -1


_LOOPS: dict[str, _Loop] = {"plus": _plus, "times": _times, "min": _least, "max": _most}
_LOOPS_OF_TRUTH: dict[str, _Loop] = {
    "plus": _most, "times": _least, "min": _least, "max": _most, "lor": _most, "land": _least,
}  # fmt: skip
