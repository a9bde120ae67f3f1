"""Sums of floats that do not depend on how an axis is cut: a binary tree over the global index.

Elements are added in pairs, 2i and 2i + 1 of the *global* index, these sums in pairs again, and so on; what
has no right neighbor goes up as it is. So a sum follows from the elements and their global places alone.

A block that holds the part ``[start, stop)`` of an axis gives its *share*: the fewest nodes of the tree that
cover the part, in order. Its length follows from ``start`` and ``stop`` (``num_nodes``). The shares of all
parts give the value of the tree.

A sum over several axes is taken axis by axis, from the last to the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import IndexArray, NumericArray, cast
from matnb.blocks.kernels.by_numpy import added_as_trees
from matnb.blocks.kernels.compiled import given, is_worth_compiling
from matnb.blocks.kernels.reductions.sum_loops import (
    LEAF,
    MOST_NODES,
    ROOM,
    push_run,
    sum_contiguous,
    sum_nodes,
    sum_rows,
    sum_short,
    sum_stack,
    sum_strided,
)

_FOLDING = 8  # times as long as what NumPy does otherwise with an element, for trees of many lengths
_SLAB = 2**19  # elements: what is made of them on the way stays in cache
_SUMMED = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))
Range = tuple[int, int]


def sums_as_tree(operation: str, dtype: np.dtype) -> bool:
    """Tell whether a reduction to this dtype is one of these sums; other sums are exact in any order.

    The extended precision of some machines is summed by NumPy, and may depend on the cuts.
    """
    return operation == "sum" and dtype.kind in "fc" and dtype.itemsize <= (8 if dtype.kind == "f" else 16)


def num_nodes(start: int, stop: int) -> int:
    """Return the length of the share of ``[start, stop)``: at most twice the levels of the tree."""
    return len(nodes_of(start, stop))


def share_of(
    values: NumericArray, axes: Sequence[int], along: int | None = None, start: int = 0
) -> NumericArray:
    """Return the sum over some axes, which keep length 1, as float64 or complex128.

    Peak memory: the result; over several axes also the sums over the last of them, of half a million elements
    at a time where the first is the outermost in memory; a copy of values that are not contiguous, or not of
    single or double precision.

    Parameters
    ----------
    values
        Of any dtype that converts to double precision.
    axes
        Not negative, none twice, in ascending order.
    along
        The first of ``axes``, where the values cover that axis in part: it gets the length of the share.
    start
        Global place of the values' first element on the axis ``along``.
    """
    values = single_or_double(values)
    if values.dtype.kind == "c":  # real and imaginary parts are a last axis that is kept
        parts = np.ascontiguousarray(values)
        real = parts.view(parts.real.dtype).reshape(*values.shape, 2)
        found = np.ascontiguousarray(share_of(real, axes, along, start))
        return found.view(np.complex128)[..., 0]
    if values.ndim == 1:
        return _along_axis(np.ascontiguousarray(values), 0, None if along is None else start)
    order = sorted(range(values.ndim), key=lambda axis: -abs(values.strides[axis]))  # as it lies in memory
    lying = np.ascontiguousarray(values.transpose(order))
    places = [order.index(axis) for axis in axes]
    if len(axes) > 1 and places[0] == 0 and lying.size > _SLAB:
        lying = _by_slabs(lying, places, start, along is None)
    else:
        for axis, place in zip(reversed(axes), reversed(places), strict=True):
            lying = _along_axis(lying, place, start if axis == along else None)
    back = sorted(range(values.ndim), key=order.__getitem__)
    return np.array(lying, np.float64, copy=None).transpose(back)


def sum_of_shares(shares: Sequence[NumericArray], ranges: Sequence[Range], axis: int) -> NumericArray:
    """Return the sum along an axis, which keeps length 1, from the shares of all its parts, in order.

    Peak memory: the shares once more, and the result.

    Parameters
    ----------
    shares
        Of ``share_of(..., along=axis)``.
    ranges
        What each covers of the axis: the first from 0, each from where the one before it stops.
    """
    nodes = np.concatenate(shares, axis=axis)
    if nodes.dtype.kind == "c":
        real = np.ascontiguousarray(nodes).view(np.float64).reshape(*nodes.shape, 2)
        return sum_of_shares([real], ranges, axis).view(np.complex128)[..., 0]
    return merged(nodes, ranges, axis, True)


def share_of_shares(shares: Sequence[NumericArray], ranges: Sequence[Range], axis: int) -> NumericArray:
    """Return the share of parts of an axis that follow one another, from the share of each, in order.

    Peak memory: the shares once more, and the result.
    """
    nodes = np.concatenate(shares, axis=axis)
    if nodes.dtype.kind == "c":
        real = np.ascontiguousarray(nodes).view(np.float64).reshape(*nodes.shape, 2)
        return share_of_shares([real], ranges, axis).view(np.complex128)[..., 0]
    return merged(nodes, ranges, axis, False)


class VectorSum:
    """The sum of a real vector that is given piece by piece; each but the last ends where a leaf does.

    Parameters
    ----------
    start
        Global place of the first piece.
    """

    def __init__(self, start: int = 0) -> None:
        self._start = self._at = start
        self._stack, self._buffer, self._top = np.empty(MOST_NODES), np.empty(ROOM), 0

    def add(self, piece: NumericArray) -> None:
        """Add the next piece."""
        at, self._at = self._at, self._at + piece.size
        values, start, stack, top = given(single_or_double(piece)), self._start, self._stack, self._top
        pushed = values, -at, at, self._at, start, False, stack, top, self._buffer
        if is_worth_compiling(push_run, piece.size, *pushed):
            self._top = push_run(*pushed)
            return
        nodes = list(stack[:top])
        for (level, end), node in zip(nodes_of(at, self._at), nodes_by_numpy(values, at), strict=True):
            _push(nodes, node[()], level, end, start)
        self._top = len(nodes)
        stack[: self._top] = nodes

    def share(self) -> NumericArray:
        """Return the share of what was added."""
        return self._stack[: self._top].copy()


def row_sums(pointers: IndexArray | npt.NDArray[np.int64], values: NumericArray) -> NumericArray:
    """Return the sum of each row's stored entries, as float64 or complex128, by the tree over their places.

    The entries of row i are ``values[pointers[i] : pointers[i + 1]]``; a row without any sums to 0. Peak
    memory: the result; a copy of values that are not of single or double precision.
    """
    values = single_or_double(values)
    if values.dtype.kind == "c":
        out = np.empty(pointers.size - 1, np.complex128)
        out.real, out.imag = row_sums(pointers, values.real), row_sums(pointers, values.imag)
        return out
    sums = np.empty(pointers.size - 1)
    places = given(pointers)
    summed = places.view(np.uint32) if places.dtype == np.int32 else places, given(values), sums
    if is_worth_compiling(sum_rows, _FOLDING * values.size, *summed):
        sum_rows(*summed)
    else:
        np.add(added_as_trees(values.astype(np.float64, copy=False), places.astype(np.int64)), 0.0, out=sums)
    return sums


def single_or_double(values: NumericArray) -> NumericArray:
    """Return values in single or double precision, whichever holds them."""
    if values.dtype in _SUMMED:
        return values
    wide = "complex128" if values.dtype.kind == "c" else "float64"
    return cast(values, np.dtype("float32" if values.dtype == np.float16 else wide))


def _around(shape: Sequence[int], axis: int) -> tuple[int, int]:
    # how many elements before and after an axis
    outer = inner = 1
    for length in shape[:axis]:
        outer *= length
    for length in shape[axis + 1 :]:
        inner *= length
    return outer, inner


def _by_slabs(values: NumericArray, axes: Sequence[int], start: int, whole: bool) -> NumericArray:
    # Over the first axis and others: the sums over the others are made for some of the first axis at a time.
    rows = values.shape[0]
    step = max(1, _SLAB * rows // values.size)
    ranges = [(start + row, start + min(row + step, rows)) for row in range(0, rows, step)]
    shares = []
    for first, last in ranges:
        slab = values[first - start : last - start]
        for axis in reversed(axes[1:]):
            slab = _along_axis(slab, axis, None)
        shares.append(_along_axis(slab, 0, first))
    return merged(np.concatenate(shares), ranges, 0, whole)


def _along_axis(values: NumericArray, axis: int, start: int | None) -> NumericArray:
    # values in C order; start None: the whole axis, from 0
    length = values.shape[axis]
    count = 1 if start is None else num_nodes(start, start + length)
    outer, inner = _around(values.shape, axis)
    out = np.empty(outer * count * inner)
    flat, first, whole = given(values).reshape(-1), start or 0, start is None
    if out.size == 0:
        pass
    elif length == 1 and whole:
        np.add(flat, 0.0, out=out)
    elif inner == outer == 1:  # as most sums are: the fewest loops to be compiled
        stack = np.empty(MOST_NODES)
        run = flat, -first, first, first + length, first, whole, stack, 0, np.empty(ROOM)
        if is_worth_compiling(push_run, length, *run):
            top = push_run(*run)
            out[:] = sum_stack(stack, top) if whole else stack[:top]
        else:
            _sum_by_numpy(flat.reshape(1, length, 1), first, whole, out.reshape(1, count, 1))
    elif inner == 1 and whole and 0 < length < LEAF:
        _call(sum_short, (flat, outer, length, out), (outer, length, inner), first, whole)
    elif inner == 1:
        runs = flat, outer, length, first, count, whole, out
        _call(sum_contiguous, runs, (outer, length, inner), first, whole)
    else:
        runs = flat, outer, length, inner, first, count, whole, out  # type: ignore[assignment]  # one more
        _call(sum_strided, runs, (outer, length, inner), first, whole)
    return out.reshape(*values.shape[:axis], count, *values.shape[axis + 1 :])


def merged(nodes: NumericArray, ranges: Sequence[Range], axis: int, whole: bool) -> NumericArray:
    """Return the nodes of adjacent real shares as those of one share, or as the value of the tree."""
    count = 1 if whole else num_nodes(ranges[0][0], ranges[-1][1])
    outer, inner = _around(nodes.shape, axis)
    out = np.empty(outer * count * inner)
    where = _ends_of(tuple(ranges))
    summed = given(nodes).reshape(-1), where, outer, inner, count, whole, out
    if is_worth_compiling(sum_nodes, nodes.size, *summed):
        sum_nodes(*summed)
    else:
        kept: list[NumericArray] = []
        given_nodes = np.moveaxis(nodes.reshape(outer, nodes.shape[axis], inner), 1, 0)
        for (level, end), node in zip(where.tolist(), given_nodes, strict=True):
            _push(kept, node, level, end, ranges[0][0])
        _write_nodes(kept, whole, out.reshape(outer, count, inner))
    return out.reshape(*nodes.shape[:axis], count, *nodes.shape[axis + 1 :])


def _call(
    loop: Callable[..., None],
    arguments: tuple[Any, ...],
    shape: tuple[int, int, int],
    start: int,
    whole: bool,
) -> None:
    # A loop whose first argument are the values, and whose last is the result; or NumPy in its place.
    values, out = arguments[0], arguments[-1]
    if is_worth_compiling(loop, values.size, *arguments):
        loop(*arguments)
    else:
        _sum_by_numpy(values.reshape(shape), start, whole, out.reshape(shape[0], -1, shape[2]))


# The same sums by NumPy, several times slower, for the first calls: a loop takes a second to be compiled.

_PIECE = 1 << 15  # elements: what is made of them on the way stays in cache, and is little


def _sum_by_numpy(values: NumericArray, start: int, whole: bool, out: NumericArray) -> None:
    # The middle one of three axes; ``out`` has the nodes there, or the sum.
    outer, length, inner = values.shape
    columns = min(inner, _PIECE)
    rows = max(1, _PIECE // max(1, length * columns))
    for i in range(0, outer, rows):
        for j in range(0, inner, columns):
            part = np.moveaxis(values[i : i + rows, :, j : j + columns], 1, 0)
            _write_nodes(nodes_by_numpy(part, start), whole, out[i : i + rows, :, j : j + columns])


def nodes_by_numpy(values: NumericArray, start: int) -> list[NumericArray]:
    """Return the nodes of real values along the first axis, whose global places begin at ``start``."""
    ends = nodes_of(start, start + len(values))
    return [_node(values[end - (1 << level) - start : end - start]) for level, end in ends]


def _node(values: NumericArray) -> NumericArray:
    # of a power of two
    if values.size > _PIECE and len(values) > 1:
        half = len(values) // 2
        return np.add(_node(values[:half]), _node(values[half:]))
    values = values.astype(np.float64, copy=False)
    while len(values) > 1:
        values = np.add(values[::2], values[1::2])
    node: NumericArray = values[0]
    return node


def _push(nodes: list[Any], node: Any, level: int, stop: int, start: int) -> None:
    # The node ends at ``stop``. While it is a right one whose left neighbor is complete and inside the range,
    # the two are one node.
    place = (stop >> level) - 1
    while place & 1 and ((place - 1) << level) >= start:
        node = np.add(nodes.pop(), node)
        place, level = place >> 1, level + 1
    nodes.append(node)


def _write_nodes(nodes: Sequence[NumericArray], whole: bool, out: NumericArray) -> None:
    if not whole:
        for number, node in enumerate(nodes):
            out[:, number] = node
        return
    total: NumericArray = nodes[-1] if nodes else np.zeros(())
    for node in reversed(nodes[:-1]):
        total = np.add(node, total)
    np.add(total, 0.0, out=out[:, 0])  # NumPy's sum begins at 0.0, so it is never -0.0


@lru_cache(1 << 10)  # a loop asks for the same ones in each iteration
def _ends_of(ranges: tuple[Range, ...]) -> npt.NDArray[np.int64]:
    # level and end of each node of shares
    where = [node for start, stop in ranges for node in nodes_of(start, stop)]
    return given(np.array(where, np.int64).reshape(-1, 2))


@lru_cache(1 << 12)  # a loop asks for the same ones in each iteration
def nodes_of(start: int, stop: int) -> tuple[Range, ...]:
    """Return level and end of each node of a share, in order.

    They are the largest ones that begin where the one before ends, and fit.
    """
    nodes = []
    while start < stop:
        level = (stop - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        start += 1 << level
        nodes.append((level, start))
    return tuple(nodes)
