"""Values reduced by label: the scatter-reduce behind ``groupby``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Dense, NumericArray, cast, signed
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.operands import check_loop_dtype
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.semiring import LAND, LOR, MONOIDS, PLUS, TIMES, Monoid
from matnb.errors import DTypeError, IndexingError, ShapeError

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
        raise DTypeError(f"labels have dtype {labels.dtype}: give int32 or int64")
    if labels.ndim != 1 or values.ndim not in (1, 2) or len(values) != len(labels):
        raise ShapeError(
            f"labels of shape {labels.shape} for values of shape {values.shape}: give one for each "
            "value or row"
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
    summed = given(rows), given(labels), totals
    ufunc = _UFUNCS.get(loop)
    # NumPy's least of two zeros may be either.
    is_known = ufunc is np.add or (ufunc is not None and not np.any(np.signbit(rows) & np.equal(rows, 0)))
    if ufunc is not None and is_known and not is_worth_compiling(loop, _ADDING * rows.size, *summed):
        place = _combine_by_numpy(ufunc, *summed)
    else:
        place = loop(*summed)
    if place >= 0:
        known = f"labels go from 0 to {num_labels - 1}" if num_labels else "there are no labels"
        raise ShapeError(f"label {labels[place]} at position {place}: {known}")
    found = totals.view(held).reshape(num_labels, *values.shape[1:])
    return Dense(cast(found, accumulator))


_PIECE = 1 << 14  # labels
_ADDING = 8  # times as long as what NumPy does otherwise with an element


def _combine_by_numpy(ufunc: np.ufunc, values: NumericArray, labels: LabelArray, totals: NumericArray) -> int:
    # The loops for the first calls: one after the other, too, and some at a time, since NumPy copies labels.
    for begin in range(0, labels.size, _PIECE):
        some = labels[begin : begin + _PIECE]
        if some.min() < 0 or some.max() >= totals.shape[0]:
            return begin + int(np.argmax((some < 0) | (some >= totals.shape[0])))
        with np.errstate(all="ignore"):
            ufunc.at(totals, some, values[begin : begin + _PIECE])
    return -1


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
    if width == 1:
        single, found = values.ravel(), totals.reshape(totals.size)
        for place in range(labels.size):
            label = np.uint64(labels[place])
            if label >= num_labels:
                return place
            value, held = single[place], found[label]
            found[label] = value if value < held or value != value else held
        return -1
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
    if width == 1:
        single, found = values.ravel(), totals.reshape(totals.size)
        for place in range(labels.size):
            label = np.uint64(labels[place])
            if label >= num_labels:
                return place
            value, held = single[place], found[label]
            found[label] = value if value > held or value != value else held
        return -1
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


_UFUNCS: dict[_Loop, np.ufunc] = {_plus: np.add, _least: np.minimum, _most: np.maximum}
Range = tuple[int, int]


def labels_within(values: Sequence[Dense], within: Range, length: int, start: int) -> Dense:
    """Return the labels of a block that are in a range, as they follow from its start.

    Parameters
    ----------
    length, start
        Below what labels must be, and where in the whole array the block begins, for the message.

    Raises
    ------
    IndexingError
        For the first label that is not a label at all.
    """
    labels = signed(values[0].values)
    if labels.size and not 0 <= labels.min() <= labels.max() < length:
        bad = int(np.flatnonzero((labels < 0) | (labels >= length))[0])
        raise IndexingError(
            f"label {values[0].values[bad]} at position {start + bad}: labels go from 0 to {length - 1}"
        )
    return Dense(labels[_are_within(labels, within)] - within[0])


def values_within(values: Sequence[Dense], within: Range) -> Dense:
    """Return the values, or rows, of a block whose labels are in a range."""
    rows, labels = (one.values for one in values)
    return Dense(rows[_are_within(signed(labels), within)])


def reduced_within(
    values: Sequence[Dense], parts: tuple[int, ...], within: Range, length: int, monoid: str, dtype: np.dtype
) -> Dense:
    """Return the values, or rows, of each label of a range combined.

    Parameters
    ----------
    values
        In the order of their positions values and labels in turn: of whole blocks, or of those sent.
    parts
        For each pair where the block begins, or -1 for those that were sent.
    """
    rows, labels = [], []
    for number, start in enumerate(parts):
        pair = values[2 * number : 2 * number + 2]
        if start < 0:
            rows.append(pair[0].values)
            labels.append(pair[1].values)
        else:
            rows.append(values_within(pair, within).values)
            labels.append(labels_within(pair[1:], within, length, start).values)
    all_labels = np.concatenate(labels).astype(np.int64, copy=False)
    found = reduce_by_label(np.concatenate(rows), all_labels, within[1] - within[0], MONOIDS[monoid], dtype)
    return Dense(cast(found.values, dtype))


def _are_within(labels: NumericArray, within: Range) -> NumericArray:
    return np.greater_equal(labels, within[0]) & np.less(labels, within[1])


def scatter(
    values: Dense,
    labels: Dense,
    length: int,
    monoid: Monoid,
    dtype: np.dtype,
    start: int,
    before: Dense | None = None,
) -> Dense:
    """Combine the values, or rows, of the same label, as :func:`labels.reduce_by_label` does.

    Parameters
    ----------
    labels
        Whole numbers of any dtype.
    start
        Where in the whole array the labels begin, for the message.
    before
        What they are combined with, if it is given.

    Raises
    ------
    IndexingError
        For the first label that is out of range.
    """
    places = signed(labels.values)
    try:
        return reduce_by_label(
            values.values, places, length, monoid, dtype, None if before is None else before.values
        )
    except ShapeError:
        outside = np.flatnonzero((places < 0) | (places >= length))
        if not len(outside):
            raise
        bad = int(outside[0])
        raise IndexingError(
            f"label {labels.values[bad]} at position {start + bad}: labels go from 0 to {length - 1}"
        ) from None


def reduced_dtype(monoid: Monoid, dtype: np.dtype) -> np.dtype:
    """Return the dtype of values combined by label: that of NumPy's reduction over them.

    Raises
    ------
    DTypeError
        For values without an order and min or max, and for extended precision.
    """
    if monoid in (LOR, LAND):
        return np.dtype(np.bool_)
    if dtype.kind in "fc" and dtype.itemsize > (8 if dtype.kind == "f" else 16):
        raise DTypeError(f"values of dtype {dtype} by label: convert to double precision with astype first")
    if monoid in (PLUS, TIMES) and dtype.kind in "biu":
        return np.result_type(np.add.reduce(np.empty(0, dtype)))
    monoid.identity(dtype)
    return dtype
