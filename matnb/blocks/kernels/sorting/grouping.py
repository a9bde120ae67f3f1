"""Distinct keys of one block: a code for each key, its place among them in order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from matnb.blocks.formats import Dense, NumericArray, cast
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.reductions.labels import reduce_by_label
from matnb.blocks.semiring import MONOIDS
from matnb.errors import DTypeError, IndexingError

_SORTING = 4  # times as long as what NumPy does otherwise with an element
_FEW = 1 << 16  # codes that a table may have for the asking


def codes_of(values: Sequence[Dense]) -> Dense:
    """Return the code of each key of a block: its place among the distinct ones, ascending, NaN last.

    0.0 and -0.0 are one key, and so are all NaN. Peak memory: 8 bytes a key where it is not a 64-bit integer,
    and 24 to 48 bytes a distinct one.

    Returns
    -------
    Dense
        int32.
    """
    keys = values[0].values
    codes = np.empty(keys.shape, np.int32)
    if not keys.size:
        return Dense(codes)
    if keys.dtype.kind in "biu":
        low, high = int(keys.min()), int(keys.max())
        if high - low < max(_FEW, keys.size // 8):
            table = np.full(high - low + 1, -1, np.int32)
            plain = keys.view(np.uint8) if keys.dtype.kind == "b" else keys
            known = given(plain), plain.dtype.type(low), table, codes
            is_compiled = is_worth_compiling(_codes_by_table, keys.size, *known)
            (_codes_by_table if is_compiled else _codes_by_numpy)(*known)
            return Dense(codes)
    distinct = _codes_by_hash(given(_bits(keys)), codes)
    order = np.argsort(_as_keys(distinct, keys.dtype), kind="stable")
    ranks = np.empty(order.size, np.int32)
    ranks[order] = np.arange(order.size, dtype=np.int32)
    if is_worth_compiling(_rename, codes.size, ranks, codes):
        _rename(ranks, codes)
    else:
        codes[:] = ranks[codes]
    return Dense(codes)


def num_codes(values: Sequence[Dense]) -> Dense:
    """Return how many distinct keys a block of codes tells apart, as the only element."""
    codes = values[0].values
    return Dense(np.array([codes.max() + 1 if codes.size else 0], np.int64))


def placed(values: Sequence[Dense], count: int) -> Dense:
    """Return an array of ``count`` keys, each at the place that is its code."""
    keys, codes = (one.values for one in values)
    found = np.empty(count, keys.dtype)
    found[codes] = keys
    return Dense(found)


def reduced(values: Sequence[Dense], count: int, monoid: str, dtype: np.dtype) -> Dense:
    """Return the values, or rows, of each of ``count`` codes combined, in the dtype they are summed in.

    With "count" instead of a monoid, how many there are.
    """
    rows, codes = (one.values for one in values)
    if monoid == "count":
        return Dense(np.bincount(codes, minlength=count))
    return reduce_by_label(rows, codes.view(np.int32), count, MONOIDS[monoid], dtype)


def picked(values: Sequence[Dense]) -> Dense:
    """Return the element of each code, of one for each distinct key."""
    elements, codes = (one.values for one in values)
    return Dense(elements[codes])


def _bits(keys: NumericArray) -> NumericArray:
    # 64 bits that are equal where keys are.
    if keys.dtype.kind in "bu":
        return keys.astype(np.uint64, copy=False).view(np.int64)
    if keys.dtype.kind == "i":
        return keys.astype(np.int64, copy=False)
    if keys.dtype.kind != "f" or keys.dtype.itemsize > 8:
        raise DTypeError(f"keys have dtype {keys.dtype}: give real numbers of at most 64 bits")
    wide = keys.astype(np.float64) + 0.0  # which makes 0.0 of -0.0
    wide[np.isnan(wide)] = np.nan
    return wide.view(np.int64)


def _as_keys(bits: NumericArray, dtype: np.dtype) -> NumericArray:
    # What orders as keys of the dtype do.
    return bits.view({"i": np.int64, "f": np.float64}.get(dtype.kind, np.uint64))


def _codes_by_numpy(keys: NumericArray, low: np.generic, table: NumericArray, codes: NumericArray) -> None:
    wide = np.dtype(np.uint64 if keys.dtype.kind == "u" else np.int64)
    places = np.subtract(keys.astype(wide), low.astype(wide)).astype(np.int64)
    table[places] = 0
    codes[:] = (np.cumsum(table == 0) - 1)[places]


@compiled
def _codes_by_table(keys: NumericArray, low: np.generic, table: NumericArray, codes: NumericArray) -> None:
    origin = np.uint64(low)
    for place in range(keys.size):
        table[np.uint64(keys[place]) - origin] = 0
    count = 0
    for place in range(table.size):
        if table[place] == 0:
            table[place] = count
            count += 1
    for place in range(keys.size):
        codes[place] = table[np.uint64(keys[place]) - origin]


def _codes_by_hash(keys: NumericArray, codes: NumericArray) -> NumericArray:
    # Returns the distinct keys as they appear, and gives each key its place among them. The table grows
    # before it is half full.
    distinct = np.empty(1 << 12, np.int64)
    place = count = 0
    if not is_worth_compiling(_fill, _SORTING * keys.size, keys, codes):
        values, firsts, places = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(firsts)
        ranks = np.empty(order.size, codes.dtype)
        ranks[order] = np.arange(order.size)
        codes[:] = ranks[places]
        return values[order]
    while True:
        shift = np.uint64(64 - distinct.size.bit_length())
        slots, found = np.full(2 * distinct.size, -1, np.int32), np.empty(2 * distinct.size, np.int64)
        _fill(distinct[:count], np.empty(count, np.int32), 0, slots, found, distinct.copy(), 0, shift)
        place, count = _fill(keys, codes, place, slots, found, distinct, count, shift)
        if place == keys.size:
            return distinct[:count]
        distinct = np.concatenate([distinct, np.empty(3 * distinct.size, np.int64)])


@compiled
def _fill(
    keys: NumericArray,
    codes: NumericArray,
    start: int,
    slots: NumericArray,
    found: NumericArray,
    distinct: NumericArray,
    count: int,
    shift: np.uint64,
) -> tuple[int, int]:
    # Goes on from a key until all are done or one more distinct key has no room; tells where, and how many
    # are known. Linear probing; the first slot is the high bits of a product with 2^64 over the golden ratio,
    # which spreads keys that follow a pattern.
    mask, one = np.uint64(slots.size - 1), np.uint64(1)
    factor = np.uint64(0x9E3779B97F4A7C15)
    for place in range(start, keys.size):
        key = keys[place]
        at = (np.uint64(key) * factor) >> shift
        code = slots[at]
        while code >= 0 and found[at] != key:
            at = (at + one) & mask
            code = slots[at]
        if code < 0:
            if count == distinct.size:
                return place, count
            code = np.int32(count)
            slots[at] = code
            found[at] = key
            distinct[count] = key
            count += 1
        codes[place] = code
    return keys.size, count


@compiled
def _rename(ranks: NumericArray, codes: NumericArray) -> None:
    for place in range(codes.size):
        codes[place] = ranks[np.uint64(codes[place])]


# What is combined in each group up to each row: a number for each label goes from block to block, so that
# values meet in the order of rows, whatever the cuts.


def running_table(values: Sequence[Dense], length: int, monoid: str, dtype: np.dtype, first: int) -> Dense:
    """Return what values, or rows, of each label make, after those of the blocks before.

    Parameters
    ----------
    values
        Values, their labels, and the table of the blocks before, if there are any.
    first
        The position of the block, for an error's message.

    Raises
    ------
    IndexingError
        For a label outside of ``length``.
    """
    return Dense(_ran(values, length, monoid, dtype, first, False)[0])


def running(values: Sequence[Dense], length: int, monoid: str, dtype: np.dtype, first: int) -> Dense:
    """Return what values, or rows, of each label make up to each one; as ``running_table``."""
    return Dense(_ran(values, length, monoid, dtype, first, True)[1].reshape(values[0].shape))


def _ran(
    values: Sequence[Dense], length: int, monoid: str, dtype: np.dtype, first: int, is_wanted: bool
) -> tuple[NumericArray, NumericArray]:
    block, labels, *before = (one.values for one in values)
    rows = given(cast(block.reshape(len(block), prod(block.shape[1:])), dtype))
    identity = MONOIDS[monoid].identity(dtype)
    table = before[0].copy() if before else np.full((length, rows.shape[1]), identity, dtype)
    out = np.empty(rows.shape if is_wanted else (0, rows.shape[1]), dtype)
    loop = _run_sums if monoid in ("plus", "times") else _run_extremes
    wrong = loop(rows, given(labels), table, out, monoid in ("times", "max"))
    if wrong >= 0:
        raise IndexingError(
            f"label {labels[wrong]} at position {first + wrong}: labels go from 0 to {length - 1}"
        )
    return table, out


@compiled
def _run_sums(
    rows: NumericArray, labels: NumericArray, table: NumericArray, out: NumericArray, is_product: bool
) -> int:
    for i in range(rows.shape[0]):
        label = np.int64(labels[i])
        if label < 0 or label >= table.shape[0]:
            return i
        for j in range(rows.shape[1]):
            if is_product:
                table[label, j] *= rows[i, j]
            else:
                table[label, j] += rows[i, j]
            if out.size:
                out[i, j] = table[label, j]
    return -1


@compiled
def _run_extremes(
    rows: NumericArray, labels: NumericArray, table: NumericArray, out: NumericArray, is_greatest: bool
) -> int:
    # NaN stays, as in NumPy's.
    for i in range(rows.shape[0]):
        label = np.int64(labels[i])
        if label < 0 or label >= table.shape[0]:
            return i
        for j in range(rows.shape[1]):
            value, so_far = rows[i, j], table[label, j]
            is_beyond = value > so_far if is_greatest else value < so_far
            if (is_beyond or value != value) and so_far == so_far:
                table[label, j] = value
            if out.size:
                out[i, j] = table[label, j]
    return -1
