"""One value of each line of blocks: places of extremes, and what a ufunc makes of all elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import (
    Block,
    Csr,
    Dense,
    Empty,
    IndexArray,
    NumericArray,
    cast,
    entries_as,
    is_sparse,
    to_numpy,
)
from matnb.blocks.kernels.compiled import compiled, given, is_ready
from matnb.blocks.kernels.patterns import as_csr, transposed_order
from matnb.errors import ShapeError

_SHORT_ROW = 8  # elements; in longer ones NumPy is faster
_WORTH_COMPILING = 1 << 18  # elements: below, what a loop saves is little beside its first call
_PART = 2**15  # elements whose copy stays in cache

_FoldedRows = tuple[
    npt.NDArray[np.intp], NumericArray, npt.NDArray[np.bool_]
]  # places, values, and whether there is one not NaN


@compiled
def places_in_rows(
    values: NumericArray, is_max: bool, places: npt.NDArray[np.intp], extremes: NumericArray
) -> None:
    """Find the first of the least or greatest elements of each row of a matrix, or the first NaN."""
    flat, length = values.reshape(-1), np.uint64(values.shape[1])
    for i in range(np.uint64(places.size)):
        best, place = flat[i * length], np.intp(0)
        for j in range(np.uint64(1), length):
            value = flat[i * length + j]
            is_better = (value > best) if is_max else (value < best)
            is_better = (is_better or value != value) and best == best
            best, place = (value, np.intp(j)) if is_better else (best, place)
        places[i], extremes[i] = place, best


def folded(
    values: Sequence[Block], ufunc: str, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype
) -> Dense:
    """Return what an associative ufunc makes of several blocks of one shape, and then over some axes."""
    function = getattr(np, ufunc)
    with np.errstate(all="ignore"):
        found = reduce(function, [cast(to_numpy(one), dtype) for one in values])
        for axis in axes:
            found = np.asarray(function.reduce(found, axis=axis, keepdims=True, dtype=dtype))
    if not keepdims:
        found = np.squeeze(found, axis=axes)
    return Dense(np.array(found, dtype))


def least_and_greatest(
    values: Sequence[Block],
    operation: str,
    axes: tuple[int, ...],
    start: tuple[int, ...],
    shape: tuple[int, ...],
) -> Dense:
    """Return a block's share of the places of extremes, as bytes along one more axis.

    Peak memory: of a dense block the share, and for a "nan" operation the values once more; of a sparse one
    about five numbers a stored entry.

    Parameters
    ----------
    operation
        "argmin", "argmax", "nanargmin" or "nanargmax".
    axes
        One axis, or all of them.
    start, shape
        Where the block begins in the array, and the array's lengths.
    """
    (block,) = values
    is_max = operation.endswith("max")
    if is_sparse(block):
        assert not isinstance(block, Dense)
        found = _of_sparse(block, operation, axes, is_max)
    else:
        found = _of_dense(to_numpy(block), operation, axes, is_max)
    places, extremes, some = found
    if len(axes) == 1:
        places = places + start[axes[0]]
    else:  # the place in the whole array, in the order of rows
        inside = np.unravel_index(places, block.shape)
        whole = np.ravel_multi_index(
            tuple(one + begin for one, begin in zip(inside, start, strict=True)), shape
        )
        places = np.asarray(whole)
    return _packed((places, extremes, some))


def extreme_places(
    values: Sequence[Block], operation: str, axes: tuple[int, ...], keepdims: bool, dtype: np.dtype
) -> Dense:
    """Return the places of extremes from the shares of blocks of this dtype.

    Raises
    ------
    ShapeError
        Where a "nan" operation finds nothing else than NaN.
    """
    shares = [_unpacked(to_numpy(one), dtype) for one in values]
    places, _, some = reduce(_better(operation.endswith("max")), shares)
    if not some.all():
        raise ShapeError(f"{operation}: a slice contains only NaN; use np.where to replace NaN first")
    found = places if keepdims else np.squeeze(places, axis=axes)
    return Dense(np.array(found, np.intp))


def _better(is_max: bool):  # type: ignore[no-untyped-def]  # of two shares the better
    choose = np.maximum if is_max else np.minimum

    def better(one: _FoldedRows, other: _FoldedRows) -> _FoldedRows:
        # Of equal ones, and of NaN, that of the lower place; NaN beats all.
        best = choose(one[1], other[1])
        has = [(found[1] == best) | ((found[1] != found[1]) & (best != best)) for found in (one, other)]
        last = np.intp(np.iinfo(np.intp).max)
        places = np.minimum(np.where(has[0], one[0], last), np.where(has[1], other[0], last))
        return places, best, one[2] | other[2]

    return better


def _of_dense(values: NumericArray, operation: str, axes: tuple[int, ...], is_max: bool) -> _FoldedRows:
    values, some = _without_nan(values, operation, is_max)
    find = np.argmax if is_max else np.argmin
    if len(axes) == 1:
        places, extremes = _found_along(find, values, axes[0])
        there = some if isinstance(some, bool) else some.any(axis=axes[0], keepdims=True)
        return places, extremes, np.broadcast_to(there, places.shape)
    kept = (1,) * values.ndim
    place = _place_of(find, values)
    there = np.asarray(some if isinstance(some, bool) else some.any())
    return (
        np.full(kept, place, np.intp),
        values[np.unravel_index(place, values.shape)].reshape(kept),
        there.reshape(kept),
    )


# NumPy copies what may not be written to, as blocks may not, before it looks: here, parts that stay in cache.


def _place_of(find: Callable[..., npt.NDArray[np.intp]], values: NumericArray) -> int:
    # The place in the order of rows: the extreme values of parts need no copy, and tell in which part it is.
    flat = values.reshape(-1)
    whole = flat.size // _PART * _PART
    extreme = np.max if find is np.argmax else np.min
    best = extreme(flat[:whole].reshape(-1, _PART), axis=1)
    if whole < flat.size or not flat.size:  # of nothing NumPy says that there is none
        best = np.append(best, extreme(flat[whole:]))
    start = int(find(best)) * _PART
    return start + int(find(flat[start : start + _PART]))


def _found_along(
    find: Callable[..., npt.NDArray[np.intp]], values: NumericArray, axis: int
) -> tuple[npt.NDArray[np.intp], NumericArray]:
    is_short = axis == values.ndim - 1 > 0 and 1 < values.shape[-1] <= _SHORT_ROW
    is_plain = values.dtype in (np.float64, np.float32, np.int64, np.int32) and values.flags.c_contiguous
    is_large = values.size >= _WORTH_COMPILING or (values.size > 0 and is_ready(places_in_rows))
    if not (is_short and is_plain and is_large):
        places = _places_along(find, values, axis)
        return places, np.take_along_axis(values, places, axis)
    rows = given(values).reshape(-1, values.shape[-1])
    places, extremes = np.empty(len(rows), np.intp), np.empty(len(rows), values.dtype)
    places_in_rows(rows, find is np.argmax, places, extremes)
    shape = (*values.shape[:-1], 1)
    return places.reshape(shape), extremes.reshape(shape)


def _places_along(
    find: Callable[..., npt.NDArray[np.intp]], values: NumericArray, axis: int
) -> npt.NDArray[np.intp]:
    if values.size == values.shape[axis]:
        return np.full((1,) * values.ndim, _place_of(find, values), np.intp)
    lengths = [0 if place == axis else length for place, length in enumerate(values.shape)]
    cut = int(np.argmax(lengths))
    if not lengths[cut]:
        return find(values, axis=axis, keepdims=True)
    step = max(1, _PART * lengths[cut] // max(1, values.size))
    parts = (
        values[(*[slice(None)] * cut, slice(start, start + step))] for start in range(0, lengths[cut], step)
    )
    return np.concatenate([find(one, axis=axis, keepdims=True) for one in parts], axis=cut)


def _without_nan(
    values: NumericArray, operation: str, is_max: bool
) -> tuple[NumericArray, npt.NDArray[np.bool_] | bool]:
    # Infinities in the place of NaN for a "nan" operation, and which were none.
    if not operation.startswith("nan") or values.dtype.kind not in "fc":
        return values, True
    is_nan = np.isnan(values)
    return np.where(is_nan, values.dtype.type(-np.inf if is_max else np.inf), values), ~is_nan


def _of_sparse(block: Csr | Empty, operation: str, axes: tuple[int, ...], is_max: bool) -> _FoldedRows:
    csr = as_csr(block)
    if axes == (0,):
        pointers, rows, order = transposed_order(csr)
        values = entries_as(csr, csr.dtype)[order]
        found = _of_lines(pointers, rows, values, csr.shape[0], operation, is_max)
        return found[0].reshape(1, -1), found[1].reshape(1, -1), found[2].reshape(1, -1)
    values = entries_as(csr, csr.dtype)
    places, extremes, some = _of_lines(csr.pointers, csr.columns, values, csr.shape[1], operation, is_max)
    if axes == (1,):
        return places.reshape(-1, 1), extremes.reshape(-1, 1), some.reshape(-1, 1)
    row = int(np.argmax(extremes) if is_max else np.argmin(extremes))
    place = np.full((1, 1), row * csr.shape[1] + int(places[row]), np.intp)
    return place, extremes[row].reshape(1, 1), np.full((1, 1), bool(some.any()))


def _of_lines(
    pointers: IndexArray,
    columns: IndexArray,
    values: NumericArray,
    length: int,
    operation: str,
    is_max: bool,
) -> _FoldedRows:
    # Each line stores some of its elements, at increasing columns; the others are 0.
    values, given = _without_nan(values, operation, is_max)
    starts, counts = pointers[:-1], np.diff(pointers)
    stored = counts > 0
    last = np.intp(np.iinfo(np.intp).max)
    places, extremes = np.full(counts.size, last, np.intp), np.zeros(counts.size, values.dtype)
    gaps, some = counts.astype(np.intp), counts < length  # the first column that is not stored
    if stored.any():
        begins, lines = starts[stored], np.repeat(np.arange(counts.size), counts)
        choose = np.maximum if is_max else np.minimum
        extremes[stored] = choose.reduceat(values, begins)
        best = extremes[lines]
        is_best = (values == best) | ((values != values) & (best != best))
        places[stored] = np.minimum.reduceat(np.where(is_best, columns, last), begins)
        inside = np.arange(values.size) - starts[lines]
        gaps[stored] = np.minimum.reduceat(np.where(columns != inside, inside, last), begins)
        gaps = np.minimum(gaps, counts)
        if not isinstance(given, bool):
            some[stored] |= np.logical_or.reduceat(given, begins)
        else:
            some[stored] = True
    has_gap = counts < length
    better = np.less(extremes, 0) if is_max else np.greater(extremes, 0)
    takes_gap = has_gap & (~stored | better)
    equal = has_gap & stored & (extremes == 0)
    places = np.where(takes_gap, gaps, np.where(equal, np.minimum(places, gaps), places))
    return places, np.where(takes_gap, values.dtype.type(0), extremes), some


def _record(dtype: np.dtype) -> np.dtype:
    return np.dtype([("place", np.intp), ("value", dtype), ("some", np.bool_)])


def _packed(found: _FoldedRows) -> Dense:
    places, extremes, some = found
    record = np.zeros(places.shape, _record(extremes.dtype))
    record["place"], record["value"], record["some"] = places, extremes, some
    return Dense(record.view(np.uint8).reshape(*places.shape, record.dtype.itemsize))


def _unpacked(content: NumericArray, dtype: np.dtype) -> _FoldedRows:
    record = np.ascontiguousarray(content).view(_record(dtype))[..., 0]
    return record["place"], record["value"], record["some"]


def share_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Return the bytes of a share of so many places of extremes."""
    return prod(shape) * _record(dtype).itemsize
