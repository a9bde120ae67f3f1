"""The sum of squared distances from the mean, in one pass, with bits that do not depend on how axes are cut.

The tree is that of ``blocks.sums``, and so is the sum of each of its nodes. A node is five numbers: how many
elements, their sum, a pivot near them, the sum of their distances from it, and their deviation. That of a
leaf of 64 elements is taken from the leaf's own mean while it is in the near cache; two nodes meet by the
formula of Chan, Golub and LeVeque. So it is as accurate as two passes, also where the mean is large.

A leaf that a cut divides is put together from its elements: as nodes of one element each they are part of the
*share* of a range, before and after the nodes of whole leaves. Over several axes it goes from the last axis
to the first; a line is then one node, and lines meet in pairs like elements of a sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels import deviation_loops as loops
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.deviation_loops import MOST_NODES, NODE, ROOM
from matnb.blocks.kernels.leaves import LEAF
from matnb.blocks.sums import Range, merged, nodes_of, num_nodes, single_or_double

Nodes = npt.NDArray[np.float64]
_SLAB = 2**15  # elements: what is converted or copied of them stays in cache


def num_deviation_nodes(start: int, stop: int) -> int:
    """Return the length of the share of the elements ``[start, stop)``."""
    first = min(stop, -(-start // LEAF) * LEAF)
    last = max(first, stop // LEAF * LEAF)
    return first - start + num_nodes(first, last) + stop - last


class Deviation:
    """The nodes of an array that is given in slabs along its first axis, and is reduced over all axes.

    Parameters
    ----------
    start
        Global place of the first slab on that axis. Of an array of one axis every slab but the last ends
        where a leaf does.
    """

    def __init__(self, start: int = 0) -> None:
        self._start = self._at = start
        self._stack, self._room = np.empty((MOST_NODES, NODE)), np.empty(ROOM)
        self._top, self._of_lines = 0, False
        loops.take_extremes(self._room)
        self._extremes = {"min": 0.0, "max": 0.0}

    def add(self, slab: NumericArray) -> None:
        """Add the next slab."""
        at, start = self._at, self._start
        self._at += slab.shape[0]
        if slab.ndim == 1:
            values = given(single_or_double(slab))
            self._top = loops.push_values(
                values, -at, at, self._at, start, self._stack, self._top, self._room
            )
            least, greatest = loops.take_extremes(self._room)
            self._extremes = {"min": least, "max": greatest}
            return
        self._of_lines = True
        lines = np.asarray(deviation_share(slab, tuple(range(1, slab.ndim))), np.float64)
        self._top = loops.push_nodes(lines.reshape(-1, NODE), at, start, self._stack, self._top)

    def extreme(self, operation: str) -> float | None:
        """Return the least ("min") or the greatest ("max") element of the last slab, where it is certain.

        It is not where there may be a NaN or zeros of either sign, nor of several axes.
        """
        found = self._extremes[operation]
        return None if found == 0.0 or np.isnan(self._stack[: self._top, 1]).any() else found

    def share(self) -> NumericArray:
        """Return the nodes of what was added, a row each."""
        return self._stack[: self._top].copy()

    def sums(self) -> NumericArray:
        """Return the share of the sum of what was added."""
        nodes = self._stack[: self._top]
        if self._of_lines:
            return nodes[:, 1].copy()
        ends = self._start + np.cumsum(nodes[:, 0].astype(np.int64))
        ranges = [(int(end - count), int(end)) for end, count in zip(ends, nodes[:, 0], strict=True)]
        return merged(nodes[:, 1], ranges, 0, False) if ranges else nodes[:, 1].copy()

    def whole(self) -> NumericArray:
        """Return the one node of all that was added, if that began at the first element, as a row."""
        stack = self._stack.copy()
        loops.settle(stack, self._top, self._of_lines, self._room)
        return stack[:1]


def deviation_share(
    values: NumericArray,
    axes: Sequence[int],
    along: int | None = None,
    start: int = 0,
    is_nodes: bool = False,
) -> NumericArray:
    """Return the nodes over some axes, which keep length 1; the numbers of a node are one more axis.

    Peak memory: the result; a copy of some of the values where they are not contiguous, or not of single or
    double precision: half a MB of them where the first axis is among ``axes``, else all.

    Parameters
    ----------
    values
        Real; or nodes, where the axes after ``axes`` were reduced before.
    axes
        Not negative, in ascending order, up to the last one that is not reduced yet.
    along, start
        The first of ``axes``, if the values are part of it, and their global place there: it gets the length
        of the share.
    """
    shape = values.shape[:-1] if is_nodes else values.shape
    if axes[0] == 0 and not is_nodes:
        found = Deviation(start)
        for first, last in slabs(shape, start, _SLAB):
            found.add(values[first - start : last - start])
        nodes = found.whole() if along is None else found.share()
        return nodes.reshape(-1, *(1 for _ in shape[1:]), NODE)
    nodes = values
    for axis in reversed(axes):
        begin = start if axis == along else None
        is_first = nodes.ndim == len(shape)
        nodes = _of_elements(nodes, begin) if is_first else _of_lines(nodes, axis, begin)
    return nodes


def slabs(shape: Sequence[int], start: int, num_elements: int) -> list[Range]:
    """Return where an array that begins at ``start`` is cut along its first axis, so that each slab is small.

    Of one axis every slab but the last ends where a leaf does.
    """
    stop, width = start + shape[0], prod(shape[1:])
    step = max(1, num_elements // max(1, width))
    first = start + step
    if len(shape) == 1:
        step = max(LEAF, step // LEAF * LEAF)
        first = start - start % step + step
    ends = [*range(first, stop, step), stop]
    return list(zip([start, *ends], ends, strict=False)) if shape[0] else []


def deviation_of_shares(shares: Sequence[NumericArray], ranges: Sequence[Range], axis: int) -> NumericArray:
    """Return the nodes along an axis, which keeps length 1, from the shares of all its parts, in order.

    Parameters
    ----------
    shares
        Of ``deviation_share(..., along=axis)``.
    ranges
        What each covers of the axis: the first from 0, each from where the one before it stops.
    """
    nodes = np.concatenate(shares, axis=axis)
    if axis < nodes.ndim - 2:
        where = np.array([node for one in ranges for node in nodes_of(*one)], np.int64)
        return _joined_lines(nodes, axis, where, 0, 1, True)
    out = np.empty((prod(nodes.shape[:-2]), NODE))
    loops.join_shares(np.ascontiguousarray(nodes).reshape(out.shape[0], *nodes.shape[-2:]), out)
    return out.reshape(*nodes.shape[:-2], 1, NODE)


def _of_elements(values: NumericArray, start: int | None) -> NumericArray:
    # along the last axis
    *before, length = values.shape
    rows = given(single_or_double(values)).reshape(prod(before), length)
    if start is None:
        out = np.empty((rows.shape[0], NODE))
        loops.row_nodes(rows, out)
        return out.reshape(*before, 1, NODE)
    shares = np.empty((rows.shape[0], num_deviation_nodes(start, start + length), NODE))
    loops.row_shares(rows, start, shares)
    return shares.reshape(*before, *shares.shape[1:])


def _of_lines(nodes: NumericArray, axis: int, start: int | None) -> NumericArray:
    begin, length = start or 0, nodes.shape[axis]
    ends = np.arange(begin + 1, begin + length + 1)
    where = np.stack([np.zeros_like(ends), ends], axis=-1)
    count = 1 if start is None else num_nodes(begin, begin + length)
    return _joined_lines(nodes, axis, where, begin, count, start is None)


def _joined_lines(
    nodes: NumericArray, axis: int, where: npt.NDArray[np.int64], start: int, count: int, whole: bool
) -> NumericArray:
    moved: Nodes = np.ascontiguousarray(np.moveaxis(nodes, axis, -2), np.float64)
    out = np.empty((prod(moved.shape[:-2]), count, NODE))
    ends = where.reshape(-1, 2)
    loops.join_lines(moved.reshape(out.shape[0], *moved.shape[-2:]), ends, start, count, whole, out)
    return np.moveaxis(out.reshape(*moved.shape[:-2], count, NODE), -2, axis)
