"""The compiled loops of deviations from the mean; what their nodes are is told in ``blocks.deviations``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import compiled
from matnb.blocks.kernels.leaves import (
    AWAY,
    GREATEST,
    LEAF,
    LEAF_ROOM,
    LEAST,
    SQUARES,
    TOTALS,
    WIDTH,
    measure_leaf,
    measure_leaves,
    node_of_leaves,
)
from matnb.blocks.kernels.sum_loops import sum_part

NODE = 5  # numbers of a node: see below
MOST_NODES = 256  # of a range on the way, for any length
ROOM = LEAF_ROOM + LEAF  # numbers that loops need on the way: the last ones are a leaf that was cut
_LEAF_LEVEL, _LEAVES_LEVEL = 6, 12
_N, _S, _P, _T, _M = range(NODE)  # elements, sum, a pivot, sum of x - pivot, deviation

Floats = npt.NDArray[np.float64]


@compiled
def push_values(
    values: NumericArray, shift: int, at: int, stop: int, start: int, stack: Floats, top: int, room: Floats
) -> int:
    """Put a run of values on a stack of nodes, and return how many nodes the stack has then.

    Parameters
    ----------
    values, shift
        The value of the global place p is ``values[p + shift]``.
    at, stop, start
        Where the run begins and ends, no leaf being in two runs, and where the range begins.
    stack, top, room
        Nodes, how many there are; ``ROOM`` numbers, among them the extremes so far.
    """
    while at < stop:
        if at & (LEAF * LEAF - 1) == 0 and at + LEAF * LEAF <= stop:
            for number in range(0, LEAF, WIDTH):
                measure_leaves(values, np.uint64(at + shift + number * LEAF), room, np.uint64(number))
            stack[top, _N] = LEAF * LEAF
            stack[top, _S], stack[top, _P], stack[top, _T], stack[top, _M] = node_of_leaves(room)
            at += LEAF * LEAF
            top = _rise(stack, top, _LEAVES_LEVEL, at, start)
        elif at & (LEAF - 1) == 0 and at + LEAF <= stop:
            measure_leaf(values, np.uint64(at + shift), room, np.uint64(0))
            _write_leaf(stack, top, room)
            at += LEAF
            top = _rise(stack, top, _LEAF_LEVEL, at, start)
        else:
            value = np.float64(values[np.uint64(at + shift)])
            stack[top, _N], stack[top, _S], stack[top, _P] = 1.0, value, value
            stack[top, _T], stack[top, _M] = 0.0, value - value  # NaN of what is not finite
            room[LEAST], room[GREATEST] = min(room[LEAST], value), max(room[GREATEST], value)
            at, top = at + 1, top + 1
    return top


@compiled
def take_extremes(room: Floats) -> tuple[float, float]:
    """Return the least and the greatest value pushed since the last time, and forget them.

    They are right where there is no NaN, but for the signs of zeros.
    """
    least, greatest = np.inf, -np.inf
    for lane in range(WIDTH):
        least, greatest = min(least, room[LEAST + lane]), max(greatest, room[GREATEST + lane])
        room[LEAST + lane], room[GREATEST + lane] = np.inf, -np.inf
    return least, greatest


@compiled
def push_nodes(nodes: Floats, at: int, start: int, stack: Floats, top: int) -> int:
    """Put nodes of lines, the first of which has the global place ``at``, on a stack of nodes."""
    for number in range(nodes.shape[0]):
        for part in range(NODE):
            stack[top, part] = nodes[number, part]
        top = _rise(stack, top, 0, at + number + 1, start)
    return top


@compiled
def settle(stack: Floats, top: int, of_lines: bool, room: Floats) -> None:
    """Make the nodes of a stack, which begin with the first element, to one: the first of the stack."""
    if top == 0:
        for part in range(NODE):
            stack[0, part] = 0.0
        return
    if not of_lines:
        single = 0
        while single < top and single < LEAF - 1 and stack[top - 1 - single, _N] == 1.0:
            single += 1
        top = _settle_singles(stack, top, single, room)
    for number in range(top - 2, -1, -1):
        _join(stack, number)
    stack[0, _S] += 0.0


@compiled
def row_nodes(values: NumericArray, out: Floats) -> None:
    """Find the node of each row of a matrix."""
    stack, room = np.empty((MOST_NODES, NODE)), np.empty(ROOM)
    rows, length = values.shape
    flat = values.reshape(-1)
    for i in range(rows):
        top = push_values(flat, i * length, 0, length, 0, stack, 0, room)
        settle(stack, top, False, room)
        for part in range(NODE):
            out[i, part] = stack[0, part]


@compiled
def row_shares(values: NumericArray, start: int, out: Floats) -> None:
    """Find the nodes of each row of a matrix whose columns begin at the global place ``start``."""
    stack, room = np.empty((MOST_NODES, NODE)), np.empty(ROOM)
    rows, length = values.shape
    flat = values.reshape(-1)
    for i in range(rows):
        top = push_values(flat, i * length - start, start, start + length, start, stack, 0, room)
        for number in range(top):
            for part in range(NODE):
                out[i, number, part] = stack[number, part]


@compiled
def join_shares(shares: Floats, out: Floats) -> None:
    """Make the shares of all parts of each row, in order, to the node of the row."""
    stack, room = np.empty((MOST_NODES, NODE)), np.empty(ROOM)
    for i in range(shares.shape[0]):
        top, at, single = 0, 0, 0
        for number in range(shares.shape[1]):
            count = int(shares[i, number, _N])
            for part in range(NODE):
                stack[top, part] = shares[i, number, part]
            top, at = top + 1, at + count
            if count == 1:
                single += 1
                if at & (LEAF - 1) == 0:  # a leaf that was cut
                    top = _settle_singles(stack, top, single, room)
                    top, single = _rise(stack, top - 1, _LEAF_LEVEL, at, 0), 0
            else:
                level = 0
                while (1 << level) < count:
                    level += 1
                top = _rise(stack, top - 1, level, at, 0)
        settle(stack, top, False, room)
        for part in range(NODE):
            out[i, part] = stack[0, part]


@compiled
def join_lines(
    nodes: Floats, where: npt.NDArray[np.int64], start: int, count: int, whole: bool, out: Floats
) -> None:
    """Make nodes of lines to the nodes of a share, or to one; ``where``: the level and the end of each."""
    stack, room = np.empty((MOST_NODES, NODE)), np.empty(1)
    for i in range(nodes.shape[0]):
        top = 0
        for number in range(nodes.shape[1]):
            for part in range(NODE):
                stack[top, part] = nodes[i, number, part]
            top = _rise(stack, top, where[number, 0], where[number, 1], start)
        if whole:
            settle(stack, top, True, room)
        for number in range(count):
            for part in range(NODE):
                out[i, number, part] = stack[number, part]


@compiled
def _settle_singles(stack: Floats, top: int, count: int, room: Floats) -> int:
    # The last ones are elements of one leaf, from its first on.
    if count < 2:
        return top
    begin = top - count
    for number in range(count):
        room[LEAF_ROOM + number] = stack[begin + number, _S]
    if count == LEAF:
        measure_leaf(room, np.uint64(LEAF_ROOM), room, np.uint64(0))
        _write_leaf(stack, begin, room)
        return begin + 1
    total = sum_part(room, np.uint64(LEAF_ROOM), np.uint64(count), room)
    center = total / count
    away, squares = 0.0, 0.0
    for number in range(count):
        one = room[LEAF_ROOM + number] - center
        away += one
        squares += one * one
    _write_node(stack, begin, float(count), total, center, away, squares)
    return begin + 1


@compiled
def _write_leaf(stack: Floats, top: int, room: Floats) -> None:
    total = room[TOTALS]
    _write_node(stack, top, float(LEAF), total, total / LEAF, room[AWAY], room[SQUARES])


@compiled
def _write_node(
    stack: Floats, top: int, count: float, total: float, center: float, away: float, squares: float
) -> None:
    # The mean is rounded; what the elements are away from it on the whole is taken out again.
    stack[top, _N], stack[top, _S], stack[top, _P], stack[top, _T] = count, total, center, away
    over = away * (away / count)
    stack[top, _M] = max(squares - over, 0.0) if over < np.inf else squares


@compiled
def _rise(stack: Floats, top: int, level: int, stop: int, start: int) -> int:
    # The node on top ends at ``stop``. While it is a right one whose left neighbor is complete and inside the
    # range, the two are one node.
    node = (stop >> level) - 1
    while node & 1 and ((node - 1) << level) >= start:
        top -= 1
        _join(stack, top)
        node, level = node >> 1, level + 1
    return top + 1


@compiled
def _join(stack: Floats, left: int) -> None:
    # Chan, Golub, LeVeque 1983: the deviations, and that of the two means. The difference of means comes from
    # sums around pivots near them; sums themselves have lost the digits that a large mean leaves no room for.
    right = left + 1
    first, second = stack[left, _N], stack[right, _N]
    if second == 0.0:
        return
    if first == 0.0:
        for part in range(NODE):
            stack[left, part] = stack[right, part]
        return
    gap = stack[right, _P] - stack[left, _P]
    a, b = stack[left, _T], stack[right, _T]
    if first == second:
        apart = (a - b) - first * gap
        more = apart * (apart / (2.0 * first))
    else:
        apart = (a / first - b / second) - gap
        more = apart * (apart * (first * (second / (first + second))))
    stack[left, _N] = first + second
    stack[left, _S] += stack[right, _S]
    stack[left, _T] = (a + b) + second * gap
    stack[left, _M] = (stack[left, _M] + stack[right, _M]) + more
