"""The compiled loops of sums by a binary tree over the global index; ``blocks.sums`` describes the tree.

What is found of a leaf of 64 values, and of 64 leaves, is written out in vector instructions, since sums have
an order here: no compiler makes vectors of sums of neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled

Floats = npt.NDArray[np.float64]
Generated = tuple[Signature, Callable[..., ir.Value]]
WIDTH = 8  # of a vector, whatever the machine has: its compiler cuts them
LEAF = WIDTH * WIDTH
# What is known of leaves lies in a room of doubles: of up to 64 leaves the sums, the sums of distances and of
# squared distances from the mean; then the least and the greatest elements of all leaves so far, in lanes.
TOTALS, AWAY, SQUARES = (number * LEAF for number in range(3))
LEAST, GREATEST = 3 * LEAF, 3 * LEAF + WIDTH
LEAF_ROOM = GREATEST + WIDTH
_DOUBLE, _INDEX = ir.DoubleType(), ir.IntType(64)
_DOUBLES = ir.VectorType(_DOUBLE, WIDTH)
_ALIGNED = 8  # bytes
_CENTERED = 1 / LEAF  # a power of two: what is multiplied by it is divided without another error


def _memory(context: BaseContext, builder: ir.IRBuilder, array: types.Array, value: ir.Value) -> ir.Value:
    return context.make_array(array)(context, builder, value).data


def _vector_at(builder: ir.IRBuilder, data: ir.Value, place: ir.Value, width: int = WIDTH) -> ir.Value:
    kind = ir.VectorType(data.type.pointee, width)
    return builder.bitcast(builder.gep(data, [place]), kind.as_pointer())


def _constant(value: float, width: int = WIDTH) -> ir.Value:
    return ir.Constant(ir.VectorType(_DOUBLE, width), [ir.Constant(_DOUBLE, value)] * width)


def _chosen(builder: ir.IRBuilder, one: ir.Value, other: ir.Value, places: Sequence[int]) -> ir.Value:
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(places)), list(places))
    return builder.shuffle_vector(one, other, mask)


def _rows_of(
    context: BaseContext,
    builder: ir.IRBuilder,
    array: types.Array,
    values: ir.Value,
    place: ir.Value,
    width: int = LEAF,
) -> list[ir.Value]:
    # a leaf as eight vectors of doubles, or the first values of it
    data = _memory(context, builder, array, values)
    is_double = data.type.pointee == _DOUBLE
    rows = []
    for number in range(width // WIDTH):
        first = builder.add(place, _INDEX(number * WIDTH))
        row = builder.load(_vector_at(builder, data, first), align=8 if is_double else 4)
        rows.append(row if is_double else builder.fpext(row, _DOUBLES))
    return rows


def _sums_of_rows(builder: ir.IRBuilder, rows: Sequence[ir.Value]) -> ir.Value:
    # The sum of each of eight vectors by the tree of pairs, the k-th in lane k; or that of one, in each lane.
    # Neighbors are in lanes that differ in one bit; where they met, that bit says in which of two vectors.
    for apart in (1, 2, 4):
        ones, others = (rows[::2], rows[1::2]) if len(rows) > 1 else (rows, rows)
        left = [lane - apart + WIDTH if lane & apart else lane for lane in range(WIDTH)]
        right = [place + apart for place in left]
        rows = [
            builder.fadd(_chosen(builder, one, other, left), _chosen(builder, one, other, right))
            for one, other in zip(ones, others, strict=True)
        ]
    return rows[0]


def _folded(values: Sequence[ir.Value], function: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    # in pairs, and these in pairs
    while len(values) > 1:
        values = [function(one, other) for one, other in zip(values[::2], values[1::2], strict=True)]
    return values[0]


def _sum_of_leaf(_typing: object, array: types.Array, place: types.Integer) -> Generated:
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        rows = _rows_of(context, builder, signature.args[0], *arguments)
        total = _sums_of_rows(builder, [_sums_of_rows(builder, rows)])
        return builder.extract_element(total, _INDEX(0))

    return types.float64(array, types.uint64), generate


def _summing_part(width: int) -> Callable[..., Generated]:
    # Of the first values of so many; -0.0 stands for those behind them, which adds nothing to any number.
    def sum_part_of(
        _typing: object, array: types.Array, place: types.Integer, count: types.Integer
    ) -> Generated:
        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            values, place, count = arguments
            lanes = ir.VectorType(_INDEX, WIDTH)
            first = builder.insert_element(ir.Constant(lanes, ir.Undefined), count, _INDEX(0))
            counts = _chosen(builder, first, first, [0] * WIDTH)
            rows = []
            for number, row in enumerate(_rows_of(context, builder, signature.args[0], values, place, width)):
                places = ir.Constant(lanes, [_INDEX(number * WIDTH + lane) for lane in range(WIDTH)])
                is_there = builder.icmp_unsigned("<", places, counts)
                rows.append(builder.select(is_there, row, _constant(-0.0)))
            rows = [_sums_of_rows(builder, rows)] if width > WIDTH else rows
            return builder.extract_element(_sums_of_rows(builder, rows), _INDEX(0))

        return types.float64(array, types.uint64, types.uint64), generate

    return sum_part_of


def _measuring(count: int) -> Callable[..., Generated]:
    # Of one leaf, or of eight: what is folded in each is then folded in all by the same instructions, and
    # there is something to do while a leaf waits for its mean.
    def measure(
        _typing: object, array: types.Array, place: types.Integer, room: types.Array, number: types.Integer
    ) -> Generated:
        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            values, place, room, number = arguments
            data = _memory(context, builder, signature.args[2], room)

            def rows_of(leaf: int) -> list[ir.Value]:
                begin = builder.add(place, _INDEX(leaf * LEAF))
                return _rows_of(context, builder, signature.args[0], values, begin)

            def write(begin: int, vector: ir.Value) -> None:
                target = builder.gep(data, [builder.add(number, _INDEX(begin))])
                if count == 1:
                    builder.store(builder.extract_element(vector, _INDEX(0)), target)
                else:
                    builder.store(vector, builder.bitcast(target, _DOUBLES.as_pointer()), align=_ALIGNED)

            sums = []
            for leaf in range(count):
                rows = rows_of(leaf)
                sums.append(_sums_of_rows(builder, rows))
                _extend(builder, rows, _vector_at(builder, data, _INDEX(LEAST)), "<")
                _extend(builder, rows, _vector_at(builder, data, _INDEX(GREATEST)), ">")
            totals = _sums_of_rows(builder, sums)
            centers = builder.fmul(totals, _constant(_CENTERED))
            away, squares = [], []
            for leaf in range(count):
                center = _chosen(builder, centers, centers, [leaf] * WIDTH)
                apart = [builder.fsub(row, center) for row in rows_of(leaf)]
                away.append(_folded(apart, builder.fadd))
                squares.append(_folded([builder.fmul(one, one) for one in apart], builder.fadd))
            write(TOTALS, totals)
            write(AWAY, _sums_of_rows(builder, away))
            write(SQUARES, _sums_of_rows(builder, squares))
            return context.get_dummy_value()

        return types.void(array, types.uint64, room, types.uint64), generate

    return measure


def _extend(builder: ir.IRBuilder, rows: Sequence[ir.Value], extremes: ir.Value, order: str) -> None:
    # the lanes of extremes so far, by the rows of one more leaf
    def better(one: ir.Value, other: ir.Value) -> ir.Value:
        return builder.select(builder.fcmp_ordered(order, one, other), one, other)

    found = builder.load(extremes, align=_ALIGNED)
    builder.store(better(_folded(rows, better), found), extremes, align=_ALIGNED)


def _node_of_leaves(_typing: object, room: types.Array) -> Generated:
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        data = _memory(context, builder, signature.args[0], arguments[0])
        total, away, squares = (
            builder.load(_vector_at(builder, data, _INDEX(begin), LEAF), align=_ALIGNED)
            for begin in (TOTALS, AWAY, SQUARES)
        )
        center = builder.fmul(total, _constant(_CENTERED, LEAF))
        over = builder.fmul(away, builder.fmul(away, _constant(_CENTERED, LEAF)))
        rest, none = builder.fsub(squares, over), _constant(0.0, LEAF)
        rest = builder.select(builder.fcmp_ordered(">", rest, none), rest, none)
        is_finite = builder.fcmp_ordered("<", over, _constant(inf, LEAF))
        deviation = builder.select(is_finite, rest, squares)
        width, count = LEAF, float(LEAF)
        while width > 1:
            width //= 2
            (s, t), (p, q), (a, b), (m, n) = (
                [_chosen(builder, one, one, range(side, 2 * width, 2)) for side in (0, 1)]
                for one in (total, center, away, deviation)
            )
            gap = builder.fmul(builder.fsub(q, p), _constant(count, width))
            apart = builder.fsub(builder.fsub(a, b), gap)
            more = builder.fmul(apart, builder.fmul(apart, _constant(0.5 / count, width)))
            total, center = builder.fadd(s, t), p
            away = builder.fadd(builder.fadd(a, b), gap)
            deviation = builder.fadd(builder.fadd(m, n), more)
            count *= 2
        found = [builder.extract_element(one, _INDEX(0)) for one in (total, center, away, deviation)]
        return context.make_tuple(builder, signature.return_type, found)

    return types.UniTuple(types.float64, 4)(room), generate  # type: ignore[attr-defined]  # it has


# The sum of the 64 values from a place on, in the order of the tree.
sum_of_leaf: Callable[[NumericArray, np.uint64], float] = intrinsic(_sum_of_leaf)
# The sum of the first values of a leaf, 1 to 8 or 1 to 64 of so many that can be read there.
_sum_of_few: Callable[[NumericArray, np.uint64, np.uint64], float] = intrinsic(_summing_part(WIDTH))
_sum_of_some: Callable[[NumericArray, np.uint64, np.uint64], float] = intrinsic(_summing_part(LEAF))
# Find what a room has of the leaf that begins at a place of the values, and write it as of the leaf of that
# number; or of eight leaves. Extremes are right where there is no NaN, but for the signs of zeros.
measure_leaf: Callable[[NumericArray, np.uint64, Floats, np.uint64], None] = intrinsic(_measuring(1))
measure_leaves: Callable[[NumericArray, np.uint64, Floats, np.uint64], None] = intrinsic(_measuring(WIDTH))
# Return sum, pivot, distance and deviation of the node of a room's 64 leaves, as if they met in pairs.
node_of_leaves: Callable[[Floats], tuple[float, float, float, float]] = intrinsic(_node_of_leaves)


# Of a leaf, which is summed without looking at levels, and of as many leaves.
_LEAF_LEVEL, _LEAVES_LEVEL = 6, 12
ROOM = LEAF  # numbers that loops need on the way
_TILE = 256  # columns summed side by side: the nodes of a tile stay in cache
MOST_NODES = 128  # of a range on the way, for any length
# Places are unsigned: with a signed one each access asks whether it is negative, and loops stay scalar.
_1, _2, _3, _4, _5, _6, _7, _8 = (np.uint64(number) for number in range(1, 9))


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
    none: Any = np.int64(0)  # push_run would be compiled again for a literal
    for i in range(outer):
        shift = i * length - start
        top = push_run(values, shift, start, start + length, start, whole, stack, none, buffer)
        if whole:
            out[i] = sum_stack(stack, top)
        else:
            for node in range(top):
                out[i * count + node] = stack[node]


@compiled
def sum_short(values: NumericArray, outer: int, length: int, out: Floats) -> None:
    """Write the whole sums of runs of 1 to 63 values that lie behind each other."""
    # Of known lengths, several runs are summed by one instruction; the others side by side, or calls would
    # take longer than sums.
    if length == 2:
        for i in range(np.uint64(outer)):
            out[i] = (np.float64(values[i * _2]) + np.float64(values[i * _2 + _1])) + 0.0
    elif length == 3:
        for i in range(np.uint64(outer)):
            two = np.float64(values[i * _3]) + np.float64(values[i * _3 + _1])
            out[i] = (two + np.float64(values[i * _3 + _2])) + 0.0
    else:
        tile = np.empty(8 * _TILE)
        for begin in range(0, outer, _TILE):
            place, width = np.uint64(begin * length), np.uint64(min(_TILE, outer - begin))
            _sum_part_into(out[begin:], values, place, _1, length, tile, width, np.uint64(length))
            for i in range(begin, min(begin + _TILE, outer)):
                out[i] += 0.0


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
            stack[top] = _sum_padded(values, np.uint64(at + shift), np.uint64(stop - at), buffer)
            level, at = -1, stop
        else:
            stack[top] = values[np.uint64(at + shift)]
            level, at = 0, at + 1
        top = _merge(stack, top, level, at, start)
    return top


@compiled
def _sum_padded(values: NumericArray, place: np.uint64, count: np.uint64, buffer: Floats) -> float:
    # 1 to 63 values, from the first of a leaf on, as sum_part: -0.0 stands for what is not there, which adds
    # nothing to any number. A tenth of sum_part's code, which is compiled as often as push_run is.
    for j in range(count):
        buffer[j] = values[place + j]
    for j in range(count, np.uint64(LEAF)):
        buffer[j] = -0.0
    return sum_of_leaf(buffer, np.uint64(0))


@compiled
def sum_rows(pointers: UnsignedArray | npt.NDArray[np.int64], values: NumericArray, out: Floats) -> None:
    """Sum the values between pointers, each row by a tree of its own."""
    stack, buffer = np.empty(MOST_NODES), np.empty(ROOM)
    none: Any = np.int64(0)  # as in sum_contiguous
    whole: Any = np.bool_(True)
    for i in range(out.size):
        begin: Any = np.int64(pointers[i])  # a number of a loop
        count: Any = np.int64(pointers[i + 1]) - begin
        place, rest, top = np.uint64(begin), np.uint64(count & (LEAF - 1)), none
        if count >= LEAF * LEAF:
            top = push_run(values, begin, none, count, none, whole, stack, none, buffer)
            out[i] = sum_stack(stack, top)
            continue
        # A call for each row would take as long as the sum of a short one.
        for leaf in range(count // LEAF):
            total = sum_of_leaf(values, place)
            place, node = place + np.uint64(LEAF), leaf
            while node & 1:
                top, node = top - 1, node >> 1
                total = stack[top] + total
            stack[top] = total
            top += 1
        if rest == 0:
            top -= 1
            total = stack[top] if count else 0.0
        elif np.int64(place) + LEAF > values.size:
            total = _sum_padded(values, place, rest, buffer)
        else:
            total = _sum_of_few(values, place, rest) if rest <= _8 else _sum_of_some(values, place, rest)
        while top > 0:
            top -= 1
            total = stack[top] + total
        out[i] = total + 0.0  # as in sum_stack


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
