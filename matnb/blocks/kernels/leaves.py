"""What is found of a leaf of 64 values, and of 64 leaves, by vector instructions.

They are written out, since sums have an order here: no compiler makes vectors of sums of neighbors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray

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
    context: BaseContext, builder: ir.IRBuilder, array: types.Array, values: ir.Value, place: ir.Value
) -> list[ir.Value]:
    # a leaf as eight vectors of doubles
    data = _memory(context, builder, array, values)
    is_double = data.type.pointee == _DOUBLE
    rows = []
    for number in range(WIDTH):
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
# Find what a room has of the leaf that begins at a place of the values, and write it as of the leaf of that
# number; or of eight leaves. Extremes are right where there is no NaN, but for the signs of zeros.
measure_leaf: Callable[[NumericArray, np.uint64, Floats, np.uint64], None] = intrinsic(_measuring(1))
measure_leaves: Callable[[NumericArray, np.uint64, Floats, np.uint64], None] = intrinsic(_measuring(WIDTH))
# Return sum, pivot, distance and deviation of the node of a room's 64 leaves, as if they met in pairs.
node_of_leaves: Callable[[Floats], tuple[float, float, float, float]] = intrinsic(_node_of_leaves)
