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
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.elementwise.tile_loops import ITEM, TileProgram, run_tiles
from matnb.blocks.kernels.reductions.sum_loops import (
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
    sum_part,
)
from matnb.blocks.sums import Range, merged, nodes_by_numpy, nodes_of, num_nodes, single_or_double

NODE = 5  # numbers of a node: see below
_JOINING = 1 << 10  # times as long as what NumPy does otherwise with an element
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
            _write_leaves(stack, top, room)
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
def measure_tiles(
    program: TileProgram, made: Floats, direct: bool, length: int, start: int, stack: Floats, room: Floats
) -> int:
    """Put what the tile machine makes of a range on an empty stack of nodes, and return how many these are.

    Parameters
    ----------
    program
        What ``run_tiles`` takes, up to the value that is wanted.
    made, direct
        Room for eight leaves, which are measured while they are in the first cache with what they are made
        from; whether the machine's last function may write there.
    length, start
        How many elements there are, and the global place of the first.
    stack, room
        As of ``push_values``.
    """
    code, num_first, numbers, tiles, places, steps, truths, rows, row_length, last = program
    # What is of numbers alone is made once, with the first element, and stays.
    run_tiles(
        code, num_first, numbers, tiles, places, steps, truths, rows, row_length, last, 0, 1,
        made.ctypes.data, False,
    )  # fmt: skip
    if num_first >= 0:
        code, num_first, numbers = code[num_first:], 0, numbers[:0]
    top = at = 0
    while at < length:
        place = start + at
        is_whole = place & (LEAF * LEAF - 1) == 0 and at + LEAF * LEAF <= length
        for number in range(0, LEAF if is_whole else WIDTH, WIDTH):
            stop = min(length, at + made.size - (start + at) % made.size)
            target = made.ctypes.data - at * ITEM
            if direct and num_first >= 0:
                places[last], steps[last] = target, ITEM
            run_tiles(
                code, num_first, numbers, tiles, places, steps, truths, rows, row_length, last, at, stop,
                target, False,
            )  # fmt: skip
            if is_whole:
                measure_leaves(made, np.uint64(0), room, np.uint64(number))
            at = stop
        if is_whole:
            _write_leaves(stack, top, room)
            top = _rise(stack, top, _LEAVES_LEVEL, start + at, start)
        else:
            top = push_values(made, -place, place, start + at, start, stack, top, room)
    return top


def take_extremes(room: Floats) -> tuple[float, float]:
    """Return the least and the greatest value pushed since the last time, and forget them.

    They are right where there is no NaN, but for the signs of zeros.
    """
    lanes = room[LEAST : LEAST + WIDTH], room[GREATEST : GREATEST + WIDTH]
    least, greatest = float(np.fmin.reduce(lanes[0])), float(np.fmax.reduce(lanes[1]))
    lanes[0][:], lanes[1][:] = np.inf, -np.inf
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
def segment_deviations(values: NumericArray, pointers: npt.NDArray[np.int64], out: Floats) -> None:
    """Find the deviation of the values between pointers, each by a tree of its own; 0 of none."""
    stack, room = np.empty((MOST_NODES, NODE)), np.empty(ROOM)
    for k in range(out.size):
        begin, count = pointers[k], pointers[k + 1] - pointers[k]
        rest = count & (LEAF - 1)
        top = 0
        if count >= LEAF:
            top = push_values(values, begin, 0, count - rest, 0, stack, 0, room)
        if rest:
            place = np.uint64(begin + count - rest)
            total, center, away, squares = _measure_few(values, place, rest, room)
            _write_node(stack, top, float(rest), total, center, away, squares)
            top += 1
        for number in range(top - 2, -1, -1):
            _join(stack, number)
        out[k] = stack[0, _M] if top else 0.0


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
    total, center, away, squares = _measure_few(room, np.uint64(LEAF_ROOM), count, room)
    _write_node(stack, begin, float(count), total, center, away, squares)
    return begin + 1


@compiled
def _measure_few(
    values: NumericArray, place: np.uint64, count: int, room: Floats
) -> tuple[float, float, float, float]:
    # The sum, mean, distances from it and their squares, of 1 to 63 values from the first of a leaf on.
    total = sum_part(values, place, np.uint64(count), room)
    center = total / count
    away, squares = 0.0, 0.0
    for at in range(place, place + np.uint64(count)):
        one = np.float64(values[at]) - center
        away += one
        squares += one * one
    return total, center, away, squares


@compiled
def _write_leaves(stack: Floats, top: int, room: Floats) -> None:
    stack[top, _N] = LEAF * LEAF
    stack[top, _S], stack[top, _P], stack[top, _T], stack[top, _M] = node_of_leaves(room)


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


# What ``push_values`` and ``settle`` do, by NumPy, for the first calls: they take a second to be compiled.


def _push_by_numpy(
    values: NumericArray, shift: int, at: int, stop: int, start: int, stack: Floats, top: int, room: Floats
) -> int:
    for level, end in nodes_of(at, stop):
        first = end - (1 << level)
        if level < _LEAF_LEVEL:
            for value in values[first + shift : end + shift].astype(np.float64):
                with np.errstate(invalid="ignore"):
                    stack[top] = 1.0, value, value, 0.0, value - value
                top += 1
            continue
        step = min(1 << level, _SLAB)
        for begin in range(first, end, step):
            stack[top] = _node_by_numpy(values[begin + shift : begin + step + shift].astype(np.float64))
            top = _rise_by_numpy(stack, top, step.bit_length() - 1, begin + step, start)
    if stop > at:
        pushed = values[at + shift : stop + shift]
        room[LEAST] = np.fmin(room[LEAST], np.fmin.reduce(pushed))
        room[GREATEST] = np.fmax(room[GREATEST], np.fmax.reduce(pushed))
    return top


def _node_by_numpy(values: Floats) -> Floats:
    # Of as many leaves as a power of two: of each as in ``measure_leaf`` and ``_write_node``, side by side.
    with np.errstate(all="ignore"):
        leaves = values.reshape(-1, LEAF)
        total: Floats = nodes_by_numpy(leaves.T, 0)[0]  # type: ignore[assignment]  # in double precision
        center = total / LEAF
        away = np.subtract(leaves, center[:, None]).reshape(-1, WIDTH, WIDTH)
        away, squares = (_folded_by_numpy(one) for one in (away, np.multiply(away, away)))
        over = away * (away / LEAF)
        deviation = np.where(np.less(over, np.inf), np.fmax(squares - over, 0.0), squares)
        nodes = np.stack([np.full_like(total, LEAF), total, center, away, deviation])
        while nodes.shape[1] > 1:  # as in ``_join``
            (count, s, p, a, m), (_, t, q, b, n) = nodes[:, ::2], nodes[:, 1::2]
            gap = count * (q - p)
            apart = (a - b) - gap
            more = apart * (apart / (2.0 * count))
            nodes = np.stack([2.0 * count, s + t, p, (a + b) + gap, (m + n) + more])
    return nodes[:, 0]


def _folded_by_numpy(leaves: Floats) -> Floats:
    # Eight vectors of a leaf are added in pairs, and then their lanes.
    lanes = nodes_by_numpy(np.moveaxis(leaves, 1, 0), 0)[0]
    found: Floats = nodes_by_numpy(lanes.T, 0)[0]  # type: ignore[assignment]  # likewise
    return found


def _rise_by_numpy(stack: Floats, top: int, level: int, stop: int, start: int) -> int:
    node = (stop >> level) - 1
    while node & 1 and ((node - 1) << level) >= start:
        top -= 1
        _join_by_numpy(stack, top)
        node, level = node >> 1, level + 1
    return top + 1


def _join_by_numpy(stack: Floats, left: int) -> None:
    with np.errstate(all="ignore"):
        _join.py_func(stack, left)  # type: ignore[attr-defined]  # of a compiled loop


def _settle_by_numpy(stack: Floats, top: int, of_lines: bool, room: Floats) -> None:
    if top == 0:
        stack[0] = 0.0
        return
    if not of_lines:
        singles = 0
        while singles < min(top, LEAF - 1) and stack[top - 1 - singles, _N] == 1.0:
            singles += 1
        if singles > 1:
            top -= singles
            stack[top] = _few_by_numpy(stack[top : top + singles, _S].copy())
            top += 1
    for number in range(top - 2, -1, -1):
        _join_by_numpy(stack, number)
    stack[0, _S] += 0.0


def _join_shares_by_numpy(shares: Floats, out: Floats) -> None:
    # ``join_shares``; of a leaf that was cut the elements are put together.
    for row, nodes in zip(out, shares, strict=True):
        stack = np.empty((MOST_NODES, NODE))
        top = at = singles = 0
        for node in nodes:
            count = int(node[_N])
            stack[top] = node
            top, at, singles = top + 1, at + count, singles + (count == 1)
            level = count.bit_length() - 1
            if count == 1:
                if at & (LEAF - 1):
                    continue
                top -= singles
                stack[top] = _node_by_numpy(stack[top : top + singles, _S].copy())
                top, singles, level = top + 1, 0, _LEAF_LEVEL
            top = _rise_by_numpy(stack, top - 1, level, at, 0)
        _settle_by_numpy(stack, top, False, row)
        row[:] = stack[0]


def _few_by_numpy(values: Floats) -> Floats:
    # as in ``_measure_few`` and ``_write_node``
    with np.errstate(all="ignore"):
        total, *before = map(float, reversed(nodes_by_numpy(values, 0)))
        for node in before:
            total = node + total
        center, away, squares = total / values.size, 0.0, 0.0
        for one in (values - center).tolist():
            away, squares = away + one, squares + one * one
        over = away * (away / values.size)
        deviation = np.fmax(squares - over, 0.0) if over < np.inf else squares
    return np.array([values.size, total, center, away, deviation])


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
        take_extremes(self._room)
        self._extremes = {"min": 0.0, "max": 0.0}

    def add(self, slab: NumericArray) -> None:
        """Add the next slab."""
        at, start = self._at, self._start
        self._at += slab.shape[0]
        if slab.ndim == 1:
            values = given(single_or_double(slab))
            pushed = values, -at, at, self._at, start, self._stack, self._top, self._room
            push = push_values if is_worth_compiling(push_values, slab.size, *pushed) else _push_by_numpy
            self._top = push(*pushed)
            least, greatest = take_extremes(self._room)
            self._extremes = {"min": least, "max": greatest}
            return
        self._of_lines = True
        lines = np.asarray(deviation_share(slab, tuple(range(1, slab.ndim))), np.float64)
        self._top = push_nodes(lines.reshape(-1, NODE), at, start, self._stack, self._top)

    def add_made(self, program: TileProgram, direct: bool, length: int) -> None:
        """Add the only slab, of one axis, as the tile machine makes it; the extremes are those of all."""
        self._top = measure_tiles(
            program, np.empty(WIDTH * LEAF), direct, length, self._start, self._stack, self._room
        )
        least, greatest = take_extremes(self._room)
        self._extremes = {"min": least, "max": greatest}

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
        settled = stack, self._top, self._of_lines, self._room
        (settle if is_worth_compiling(settle, self._top, *settled) else _settle_by_numpy)(*settled)
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
    joined = np.ascontiguousarray(nodes).reshape(out.shape[0], *nodes.shape[-2:]), out
    is_compiled = is_worth_compiling(join_shares, _JOINING * nodes.size, *joined)
    (join_shares if is_compiled else _join_shares_by_numpy)(*joined)
    return out.reshape(*nodes.shape[:-2], 1, NODE)


def _of_elements(values: NumericArray, start: int | None) -> NumericArray:
    # along the last axis
    *before, length = values.shape
    rows = given(single_or_double(values)).reshape(prod(before), length)
    if start is None:
        out = np.empty((rows.shape[0], NODE))
        row_nodes(rows, out)
        return out.reshape(*before, 1, NODE)
    shares = np.empty((rows.shape[0], num_deviation_nodes(start, start + length), NODE))
    row_shares(rows, start, shares)
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
    join_lines(moved.reshape(out.shape[0], *moved.shape[-2:]), ends, start, count, whole, out)
    return np.moveaxis(out.reshape(*moved.shape[:-2], count, NODE), -2, axis)
