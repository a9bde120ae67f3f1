"""The compiled loops of sums by a binary tree over the global index; the tree is told in ``blocks.sums``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled
from matnb.blocks.kernels.leaves import LEAF, sum_of_leaf

_LEAF_LEVEL, _LEAVES_LEVEL = (
    6,
    12,
)  # of a leaf, which is summed without looking at levels, and of as many leaves
ROOM = LEAF  # numbers that loops need on the way
_TILE = 256  # columns summed side by side: the nodes of a tile stay in cache
MOST_NODES = 128  # of a range on the way, for any length
# Places are unsigned: with a signed one each access asks whether it is negative, and loops stay scalar.
_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(number) for number in range(1, 9))

Floats = npt.NDArray[np.float64]


@compiled
def sum_contiguous(
    values: NumericArray, outer: int, length: int, start: int, count: int, whole: bool, out: Floats
) -> None:
    """Sum runs of ``length`` values that lie behind each other: the shares of a range, or the whole sums.

    Parameters
    ----------
    values, outer
        The runs, and how many.
    start
        Global place of each run's first value; 0 for whole sums.
    count, whole
        The length of a share; whether to write the value of the tree instead, of length 1.
    """
    stack, buffer = np.empty(MOST_NODES), np.empty(ROOM)
    if whole and length == 2:  # of known lengths, several runs are summed by one instruction
        for i in range(np.uint64(outer)):
            out[i] = (np.float64(values[i * _2]) + np.float64(values[i * _2 + _1])) + 0.0
        return
    if whole and length == 3:
        for i in range(np.uint64(outer)):
            two = np.float64(values[i * _3]) + np.float64(values[i * _3 + _1])
            out[i] = (two + np.float64(values[i * _3 + _2])) + 0.0
        return
    if whole and 1 <= length < LEAF:  # side by side, or calls would take longer than sums
        tile = np.empty(8 * _TILE)
        for begin in range(0, outer, _TILE):
            place, width = np.uint64(begin * length), np.uint64(min(_TILE, outer - begin))
            _sum_part_into(out[begin:], values, place, _1, length, tile, width, np.uint64(length))
            for i in range(begin, min(begin + _TILE, outer)):
                out[i] += 0.0
        return
    for i in range(outer):
        shift = i * length - start
        top = push_run(values, shift, start, start + length, start, whole, stack, 0, buffer)
        if whole:
            out[i] = sum_stack(stack, top)
        else:
            for node in range(top):
                out[i * count + node] = stack[node]


@compiled
def push_run(
    values: NumericArray,
    shift: int,
    at: int,
    stop: int,
    start: int,
    whole: bool,
    stack: Floats,
    top: int,
    buffer: Floats,
) -> int:
    """Put a run of values on a stack of nodes, and return how many nodes the stack has then.

    Parameters
    ----------
    values, shift
        The value of the global place p is ``values[p + shift]``.
    at, stop, start
        Where the run begins and ends, no leaf being in two runs, and where the range begins.
    whole, stack, top, buffer
        Whether what is incomplete is one node; nodes, how many there are; ``ROOM`` numbers.
    """
    while at < stop:
        if at & (LEAF * LEAF - 1) == 0 and at + LEAF * LEAF <= stop:
            for number in range(LEAF):
                buffer[number] = sum_of_leaf(values, np.uint64(at + shift + number * LEAF))
            stack[top] = sum_of_leaf(buffer, np.uint64(0))
            level, at = _LEAVES_LEVEL, at + LEAF * LEAF
        elif at & (LEAF - 1) == 0 and at + LEAF <= stop:
            stack[top] = sum_of_leaf(values, np.uint64(at + shift))
            level, at = _LEAF_LEVEL, at + LEAF
        elif whole:
            stack[top] = sum_part(values, np.uint64(at + shift), np.uint64(stop - at), buffer)
            level, at = -1, stop
        else:
            stack[top] = values[np.uint64(at + shift)]
            level, at = 0, at + 1
        top = _merge(stack, top, level, at, start)
    return top


@compiled
def sum_rows(pointers: UnsignedArray, values: NumericArray, out: Floats) -> None:
    """Sum the values between pointers, each row by a tree of its own."""
    stack, buffer = np.empty(MOST_NODES), np.empty(ROOM)
    for i in range(out.size):
        place, count = np.uint64(pointers[i]), np.int64(pointers[i + 1]) - np.int64(pointers[i])
        if count < LEAF:
            out[i] = sum_part(values, place, np.uint64(count), buffer) + 0.0 if count else 0.0
            continue
        run = values[place : place + np.uint64(count)]
        top = push_run(run, 0, 0, run.size, 0, True, stack, 0, buffer)
        out[i] = sum_stack(stack, top)


@compiled
def sum_strided(
    values: NumericArray,
    outer: int,
    length: int,
    inner: int,
    start: int,
    count: int,
    whole: bool,
    out: Floats,
) -> None:
    """Sum the middle one of three axes; as ``sum_contiguous``, for ``inner`` columns side by side."""
    wide = min(inner, _TILE)
    stack, buffer = np.empty((MOST_NODES, wide)), np.empty(8 * wide)
    stop = start + length
    for i in range(outer):
        for begin in range(0, inner, wide):
            width = np.uint64(min(wide, inner - begin))
            shift = (i * length - start) * inner + begin
            top, at = 0, start
            while at < stop:
                place = np.uint64(at * inner + shift)
                if at & (LEAF - 1) == 0 and at + LEAF <= stop:
                    _sum_leaf_into(stack[top], values, place, np.uint64(inner), buffer, width)
                    level, at = _LEAF_LEVEL, at + LEAF
                elif whole:
                    _sum_part_into(stack[top], values, place, np.uint64(inner), stop - at, buffer, width, _1)
                    level, at = -1, stop
                else:
                    _fold_into(stack[top], values, place, np.uint64(inner), _1, width, _1)
                    level, at = 0, at + 1
                top = _merge_rows(stack, top, level, at, start, width)
            if whole:
                _sum_stack_into(out[i * inner + begin :], stack, top, width)
            else:
                _write_stack(out[i * count * inner + begin :], inner, stack, top, width)


@compiled
def sum_nodes(
    nodes: Floats,
    where: npt.NDArray[np.int64],
    outer: int,
    inner: int,
    count: int,
    whole: bool,
    out: Floats,
) -> None:
    """Sum nodes that together cover a range; ``where``: the level and the end of each."""
    num_nodes = where.shape[0]
    wide = max(1, min(inner, _TILE))
    stack = np.empty((MOST_NODES, wide))
    start = where[0, 1] - (1 << where[0, 0]) if num_nodes else 0
    for i in range(outer):
        for begin in range(0, inner, wide):
            width = np.uint64(min(wide, inner - begin))
            top = 0
            for number in range(num_nodes):
                place = np.uint64((i * num_nodes + number) * inner + begin)
                _fold_into(stack[top], nodes, place, np.uint64(inner), _1, width, _1)
                top = _merge_rows(stack, top, where[number, 0], where[number, 1], start, width)
            if whole:
                _sum_stack_into(out[i * inner + begin :], stack, top, width)
            else:
                _write_stack(out[i * count * inner + begin :], inner, stack, top, width)


@compiled
def _merge(stack: Floats, top: int, level: int, stop: int, start: int) -> int:
    # The node on top ends at ``stop``. While it is a right one whose left neighbor is complete and inside the
    # range, the two are one node. Level -1: what is incomplete has no level, and waits.
    if level >= 0:
        node = (stop >> level) - 1
        while node & 1 and ((node - 1) << level) >= start:
            top -= 1
            stack[top] += stack[top + 1]
            node, level = node >> 1, level + 1
    return top + 1


@compiled
def _merge_rows(stack: Floats, top: int, level: int, stop: int, start: int, width: np.uint64) -> int:
    if level >= 0:
        node = (stop >> level) - 1
        while node & 1 and ((node - 1) << level) >= start:
            top -= 1
            left, right = stack[top], stack[top + 1]
            for c in range(width):
                left[c] += right[c]
            node, level = node >> 1, level + 1
    return top + 1


@compiled
def fold(values: NumericArray, p: np.uint64, count: np.uint64) -> float:
    """Sum 1 to 8 values from the place ``p`` on."""
    if count == _8:
        return (
            (np.float64(values[p]) + np.float64(values[p + _1]))
            + (np.float64(values[p + _2]) + np.float64(values[p + _3]))
        ) + (
            (np.float64(values[p + _4]) + np.float64(values[p + _5]))
            + (np.float64(values[p + _6]) + np.float64(values[p + _7]))
        )
    # Without branches, which would be guessed wrongly: -0.0 stands for what is not there.
    last = p + count - _1
    two = np.float64(values[p]) + (np.float64(values[min(p + _1, last)]) if count > _1 else -0.0)
    four = two + (
        (np.float64(values[min(p + _2, last)]) if count > _2 else -0.0)
        + (np.float64(values[min(p + _3, last)]) if count > _3 else -0.0)
    )
    if count <= _4:
        return four
    return four + (
        (
            np.float64(values[min(p + _4, last)])
            + (np.float64(values[min(p + _5, last)]) if count > _5 else -0.0)
        )
        + (np.float64(values[min(p + _6, last)]) if count > _6 else -0.0)
    )


@compiled
def sum_part(values: NumericArray, place: np.uint64, count: np.uint64, buffer: Floats) -> float:
    """Sum 1 to 63 values, from the first of a leaf on."""
    if count <= _8:
        return fold(values, place, count)
    num_groups, rest = count >> _3, count & _7
    for j in range(num_groups):
        p = place + j * _8
        buffer[j] = (
            (np.float64(values[p]) + np.float64(values[p + _1]))
            + (np.float64(values[p + _2]) + np.float64(values[p + _3]))
        ) + (
            (np.float64(values[p + _4]) + np.float64(values[p + _5]))
            + (np.float64(values[p + _6]) + np.float64(values[p + _7]))
        )
    if rest:
        buffer[num_groups] = fold(values, place + num_groups * _8, rest)
        num_groups = num_groups + _1
    return fold(buffer, np.uint64(0), num_groups)


@compiled
def sum_stack(stack: Floats, top: int) -> float:
    """Return the value of the tree of which a stack has the nodes."""
    # What is incomplete on the right has no neighbor there, so it goes up and meets the node before it.
    if top == 0:
        return 0.0
    total = stack[top - 1]
    for node in range(top - 2, -1, -1):
        total = stack[node] + total
    return float(total + 0.0)  # NumPy's sum begins at 0.0, so it is never -0.0


@compiled
def _fold_into(
    target: Floats,
    values: NumericArray,
    p: np.uint64,
    step: np.uint64,
    count: np.uint64,
    width: np.uint64,
    apart: np.uint64,
) -> None:
    # The tree of 1 to 8 rows, ``step`` from each other, of elements ``apart`` from each other; by four, since
    # of more the compiler does not prove them apart.
    rest = count & _3
    if count & (_4 + _8):
        for c in range(width):
            q = p + c * apart
            target[c] = (np.float64(values[q]) + np.float64(values[q + step])) + (
                np.float64(values[q + step * _2]) + np.float64(values[q + step * _3])
            )
        p = p + step * _4
        if count == _8:
            for c in range(width):
                q = p + c * apart
                target[c] += (np.float64(values[q]) + np.float64(values[q + step])) + (
                    np.float64(values[q + step * _2]) + np.float64(values[q + step * _3])
                )
        elif rest == _3:
            for c in range(width):
                q = p + c * apart
                two = np.float64(values[q]) + np.float64(values[q + step])
                target[c] += two + np.float64(values[q + step * _2])
        elif rest == _2:
            for c in range(width):
                q = p + c * apart
                target[c] += np.float64(values[q]) + np.float64(values[q + step])
        elif rest == _1:
            for c in range(width):
                target[c] += np.float64(values[p + c * apart])
    elif rest == _3:
        for c in range(width):
            q = p + c * apart
            two = np.float64(values[q]) + np.float64(values[q + step])
            target[c] = two + np.float64(values[q + step * _2])
    elif rest == _2:
        for c in range(width):
            q = p + c * apart
            target[c] = np.float64(values[q]) + np.float64(values[q + step])
    else:
        for c in range(width):
            target[c] = values[p + c * apart]


@compiled
def _sum_part_into(
    target: Floats,
    values: NumericArray,
    place: np.uint64,
    step: np.uint64,
    count: int,
    buffer: Floats,
    width: np.uint64,
    apart: np.uint64,
) -> None:
    # 1 to 64 rows, from the first of a leaf on
    if count <= 8:
        _fold_into(target, values, place, step, np.uint64(count), width, apart)
        return
    num_groups = (count + 7) >> 3
    for j in range(num_groups):
        some = np.uint64(min(8, count - 8 * j))
        row = buffer[j * np.int64(width) :]
        _fold_into(row, values, place + np.uint64(8 * j) * step, step, some, width, apart)
    _fold_into(target, buffer, np.uint64(0), width, np.uint64(num_groups), width, _1)


@compiled
def _sum_leaf_into(
    target: Floats,
    values: NumericArray,
    place: np.uint64,
    step: np.uint64,
    buffer: Floats,
    width: np.uint64,
) -> None:
    for j in range(_8):
        p, at = place + j * _8 * step, j * width
        for c in range(width):
            q = p + c
            buffer[at + c] = (np.float64(values[q]) + np.float64(values[q + step])) + (
                np.float64(values[q + step * _2]) + np.float64(values[q + step * _3])
            )
        p = p + step * _4
        for c in range(width):
            q = p + c
            buffer[at + c] += (np.float64(values[q]) + np.float64(values[q + step])) + (
                np.float64(values[q + step * _2]) + np.float64(values[q + step * _3])
            )
    _fold_into(target, buffer, np.uint64(0), width, _8, width, _1)


@compiled
def _sum_stack_into(target: Floats, stack: Floats, top: int, width: np.uint64) -> None:
    for c in range(width):
        target[c] = 0.0 if top == 0 else stack[top - 1, c]
    for node in range(top - 2, -1, -1):
        for c in range(width):
            target[c] = stack[node, c] + target[c]
    for c in range(width):
        target[c] += 0.0


@compiled
def _write_stack(target: Floats, inner: int, stack: Floats, top: int, width: np.uint64) -> None:
    for node in range(top):
        for c in range(width):
            target[np.uint64(node * inner) + c] = stack[node, c]
