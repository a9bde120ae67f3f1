"""Values counted: how many lie between edges or have a label, or the sums of their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.compiled import compiled, given, inlined, is_worth_compiling
from matnb.blocks.kernels.operands import check_loop_dtype
from matnb.errors import DTypeError, IndexingError, ShapeError

_Loop = Callable[..., None]
_TILE = 1024  # values whose bins are found side by side
_IN_CACHE = 1 << 16  # elements that are read twice at the cost of once


def sums_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which weights of another are summed: the longest of their kind."""
    check_loop_dtype(dtype)
    return np.dtype({"f": np.float64, "c": np.complex128, "u": np.uint64}.get(dtype.kind, np.int64))


def extent(values: Sequence[Block]) -> Dense:
    """Return the least and the greatest element of a block that has some; NaN where one is NaN."""
    elements = to_numpy(values[0])
    if elements.size <= _IN_CACHE or not elements.flags.c_contiguous:
        return Dense(np.array([elements.min(), elements.max()], elements.dtype))
    flat = elements.reshape(-1)  # both of a part while it is in the cache: memory is read once
    parts = [flat[begin : begin + _IN_CACHE] for begin in range(0, flat.size, _IN_CACHE)]
    ends = np.array([(part.min(), part.max()) for part in parts], flat.dtype)
    return Dense(np.array([ends[:, 0].min(), ends[:, 1].max()], flat.dtype))


def extent_of_all(values: Sequence[Dense]) -> Dense:
    """Return the least and the greatest of blocks' own."""
    ends = np.array([one.values for one in values])
    return Dense(np.array([ends[:, 0].min(), ends[:, 1].max()], ends.dtype))


def edges_between(values: Sequence[Dense], count: int, element: np.dtype) -> Dense:
    """Return the edges of ``count`` equal bins from the least to the greatest of some values.

    As NumPy finds them, which widens a range of nothing by a half on either side.

    Raises
    ------
    ShapeError
        When either is NaN or infinite, the greatest is below the least, or there are too many bins.
    """
    low, high = values[0].values
    if not (np.isfinite(low) and np.isfinite(high)):
        raise ShapeError(
            f"the values range from {low} to {high}, which is not finite: give range=, or remove such values"
        )
    nothing = np.empty(0, values[0].dtype)
    try:
        with np.errstate(all="ignore"):
            edges = np.histogram_bin_edges(nothing, count, (low, high))
    except ValueError as error:
        raise ShapeError(f"{count} bins from {low} to {high}: {error}") from None
    return Dense(edges.astype(element, copy=False))


def check_edges(edges: NumericArray) -> None:
    """Refuse edges that do not ascend.

    Raises
    ------
    ShapeError
        Naming the first that is below the one before it.
    """
    falls = np.flatnonzero(np.greater(edges[:-1], edges[1:]))
    if falls.size:
        place = int(falls[0])
        raise ShapeError(
            f"the edges of bins must increase: edge {place} is {edges[place]}, and the next one "
            f"{edges[place + 1]}"
        )


def binned(values: Sequence[Block], num_axes: int, is_equal: tuple[bool, ...], dtype: np.dtype) -> Dense:
    """Return how many places of a block have their values between edges, or the sums of their weights.

    Peak memory: the counts; for several axes, or weights, 8 bytes an element more.

    Parameters
    ----------
    values
        For each axis of the result a block of values, all of one shape; for each the edges; the weights, if
        there are any. A bin has its lower edge, and the last one the upper one too. NaN is in none.
    is_equal
        For each axis whether its bins are equally wide.
    dtype
        Of the whole result; sums are in ``sums_dtype`` of it.

    Raises
    ------
    ShapeError
        When edges do not ascend.
    """
    edges = [_in_loops(to_numpy(one)) for one in values[num_axes : 2 * num_axes]]
    for one, equal in zip(edges, is_equal, strict=True):
        if not equal:
            check_edges(one)
    shape = tuple(one.size - 1 for one in edges)
    totals = np.zeros(shape, sums_dtype(dtype))
    weighted = len(values) > 2 * num_axes
    if 0 in shape:
        return Dense(totals)
    if num_axes == 1 and not weighted:
        _count(values[0], edges[0], is_equal[0], totals)
        return Dense(totals)
    places: NumericArray = np.zeros(values[0].shape, np.int64).ravel()
    for block, one, equal in zip(values, edges, is_equal, strict=False):
        (_place_equal if equal else _place_between)(given(_in_loops(to_numpy(block))).ravel(), one, places)
    if weighted:
        weights = cast(to_numpy(values[-1]), totals.dtype)
        _add_at(places, given(weights).ravel(), totals.ravel())
    else:
        _count_at(places, totals.ravel())
    return Dense(totals)


def _count(block: Block, edges: NumericArray, is_equal: bool, counts: NumericArray) -> None:
    loop: _Loop = _count_equal if is_equal else _count_between
    if isinstance(block, Dense):
        loop(given(_in_loops(block.values)).ravel(), edges, counts)
        return
    if block.nnz:
        loop(given(_in_loops(block.entries)).ravel(), edges, counts)  # type: ignore[union-attr]  # it has some
    absent = np.zeros_like(counts)
    loop(_in_loops(np.zeros(1, block.dtype)), edges, absent)
    np.add(counts, absent * (block.shape[0] * block.shape[1] - block.nnz), out=counts)


def labeled(values: Sequence[Block], length: int, start: int) -> Dense:
    """Return how often each whole number below ``length`` occurs in a block.

    Parameters
    ----------
    start
        Where in the whole array the block begins, for the message.

    Raises
    ------
    IndexingError
        For the first one that is out of range.
    """
    labels = to_numpy(values[0])
    if labels.dtype.kind == "b":
        labels = labels.view(np.uint8)
    counts = np.zeros(length, np.int64)
    flat = given(labels).ravel()
    is_compiled = is_worth_compiling(_count_labels, flat.size, flat, counts)
    place = (_count_labels if is_compiled else _count_by_numpy)(flat, counts)
    if place >= 0:
        raise IndexingError(
            f"label {labels.flat[place]} at position {start + place}: labels go from 0 to {length - 1}"
        )
    return Dense(counts)


def _in_loops(values: NumericArray) -> NumericArray:
    # Numba has neither half precision nor truths that are ordered.
    if values.dtype == np.float16:
        return values.astype(np.float32)
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype.kind == "c":
        raise DTypeError(
            f"values of dtype {values.dtype} have no order, so they cannot be binned: use x.real and x.imag"
        )
    check_loop_dtype(values.dtype)
    return values


@inlined
def _equal_bin(value: np.generic, edges: NumericArray, low: float, width: float) -> int:
    # NumPy's way: where the bin should be, then a step where rounding says otherwise. Without branches, which
    # random values would have guessed wrong.
    last = edges.size - 2
    index = np.int64((np.float64(value) - low) / width * (last + 1.0))
    at = np.uint64(min(index, last))  # type: ignore[arg-type]  # whole numbers
    at = at - np.uint64(value < edges[at])
    return at + np.uint64((value >= edges[at + np.uint64(1)]) & (at != np.uint64(last)))  # type: ignore[return-value]  # unsigned, for the loops


@compiled
def _find_between(values: NumericArray, edges: NumericArray, found: NumericArray) -> None:
    # The last of the edges, but for the very last, that is not above a value: by halves, all values side by
    # side, since each step waits for the one before.
    found[:] = 0
    size = edges.size - 1
    while size > 1:
        half = size >> 1
        for place in range(values.size):
            at = found[place] + half
            found[place] = at if edges[np.uint64(at)] <= values[place] else found[place]
        size -= half


@compiled
def _count_equal(values: NumericArray, edges: NumericArray, counts: NumericArray) -> None:
    first, last = edges[0], edges[-1]
    low, width = np.float64(first), np.float64(last) - np.float64(first)
    for place in range(values.size):
        value = values[place]
        if value >= first and value <= last:
            counts[_equal_bin(value, edges, low, width)] += 1


@compiled
def _count_between(values: NumericArray, edges: NumericArray, counts: NumericArray) -> None:
    first, last = edges[0], edges[-1]
    found = np.empty(_TILE, np.int64)
    for start in range(0, values.size, _TILE):
        part = values[start : start + _TILE]
        _find_between(part, edges, found)
        for place in range(part.size):
            if part[place] >= first and part[place] <= last:
                counts[np.uint64(found[place])] += 1


@compiled
def _place_equal(values: NumericArray, edges: NumericArray, places: NumericArray) -> None:
    # Places in counts of several axes: of this one, the last so far; -1 where a value is in no bin.
    first, last, count = edges[0], edges[-1], edges.size - 1
    low, width = np.float64(first), np.float64(last) - np.float64(first)
    for place in range(values.size):
        value, before = values[place], places[place]
        if before >= 0 and value >= first and value <= last:
            places[place] = before * count + np.int64(_equal_bin(value, edges, low, width))
        else:
            places[place] = -1


@compiled
def _place_between(values: NumericArray, edges: NumericArray, places: NumericArray) -> None:
    first, last, count = edges[0], edges[-1], edges.size - 1
    found = np.empty(_TILE, np.int64)
    for start in range(0, values.size, _TILE):
        part, at = values[start : start + _TILE], places[start : start + _TILE]
        _find_between(part, edges, found)
        for place in range(part.size):
            value = part[place]
            if at[place] >= 0 and value >= first and value <= last:
                at[place] = at[place] * count + found[place]
            else:
                at[place] = -1


@compiled
def _add_at(places: NumericArray, weights: NumericArray, totals: NumericArray) -> None:
    for place in range(places.size):
        if places[place] >= 0:
            totals[np.uint64(places[place])] += weights[place]


@compiled
def _count_at(places: NumericArray, totals: NumericArray) -> None:
    for place in range(places.size):
        if places[place] >= 0:
            totals[np.uint64(places[place])] += 1


def _count_by_numpy(labels: NumericArray, counts: NumericArray) -> int:
    is_label = np.greater_equal(labels, 0) & np.less(labels, counts.size)
    if not is_label.all():
        return int(np.argmin(is_label))
    counts[:] = np.bincount(labels.astype(np.int64, copy=False), minlength=counts.size)
    return -1


@compiled
def _count_labels(labels: NumericArray, counts: NumericArray) -> int:
    length = np.uint64(counts.size)
    for place in range(labels.size):
        label = np.uint64(labels[place])
        if label >= length:
            return place
        counts[label] += 1
    return -1
