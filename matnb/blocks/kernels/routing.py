"""Values sent to where their labels are combined: each worker has a range of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Dense, NumericArray
from matnb.blocks.kernels.access import signed
from matnb.blocks.kernels.casting import cast
from matnb.blocks.kernels.labels import reduce_by_label
from matnb.blocks.semiring import MONOIDS
from matnb.errors import IndexingError

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
        For the first label that is no label at all.
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
