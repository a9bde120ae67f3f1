"""Rows of four numbers at a time in vector instructions, for loops of which no compiler makes these.

Each sum here has an order, which a compiler must keep: so it is written out which numbers stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba.core import types
from numba.core.base import BaseContext
from numba.core.cgutils import alloca_once_value, for_range
from numba.core.typing import Signature
from numba.extending import intrinsic

from matnb.blocks.formats import NumericArray, cast
from matnb.blocks.kernels.compiled import UnsignedArray, given

Floats = npt.NDArray[np.float64]
Generated = tuple[Signature, Callable[..., ir.Value]]
Place = int | np.uint64
LANES = 4  # of a vector, whatever the machine has: its compiler joins or cuts them
_DOUBLE, _INDEX, _PLACE = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
_ALIGNED = 8  # bytes
_ZEROS = ir.Constant(ir.VectorType(_DOUBLE, LANES), [ir.Constant(_DOUBLE, 0.0)] * LANES)


def in_vectors(rows: NumericArray) -> Floats:
    """Return rows in double precision and C order, each with zeros behind it up to whole vectors."""
    rest = -rows.shape[1] % LANES
    wide = np.pad(rows, ((0, 0), (0, rest))) if rest else rows
    return given(cast(wide, np.dtype(np.float64)))


def _data(context: BaseContext, builder: ir.IRBuilder, array: types.Array, value: ir.Value) -> ir.Value:
    return context.make_array(array)(context, builder, value).data


class _VectorCode:
    # Writes loads, stores and arithmetic of doubles, one or several side by side.

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def at(self, data: ir.Value, place: ir.Value, width: int) -> ir.Value:
        address = self.builder.gep(data, [place])
        kind = ir.VectorType(_DOUBLE, width).as_pointer()
        return address if width == 1 else self.builder.bitcast(address, kind)

    def load(self, data: ir.Value, place: ir.Value, width: int) -> ir.Value:
        return self.builder.load(self.at(data, place, width), align=_ALIGNED)

    def store(self, vector: ir.Value, data: ir.Value, place: ir.Value, width: int) -> None:
        self.builder.store(vector, self.at(data, place, width), align=_ALIGNED)

    def spread(self, number: ir.Value, width: int) -> ir.Value:
        # a number in every lane
        if width == 1:
            return number
        empty = ir.Constant(ir.VectorType(_DOUBLE, width), ir.Undefined)
        one = self.builder.insert_element(empty, number, _PLACE(0))
        return self.chosen(one, one, [0] * width)

    def chosen(self, one: ir.Value, other: ir.Value, places: Sequence[int]) -> ir.Value:
        mask = ir.Constant(ir.VectorType(_PLACE, len(places)), list(places))
        return self.builder.shuffle_vector(one, other, mask)

    def elements(self, vector: ir.Value, width: int) -> list[ir.Value]:
        if width == 1:
            return [vector]
        return [self.builder.extract_element(vector, _PLACE(one)) for one in range(width)]

    def lane_sums(self, vectors: Sequence[ir.Value]) -> ir.Value:
        # of each of four vectors, or of one, the sum of its lanes: neighbors, then these pairs
        if len(vectors) == 1:
            a, b, c, d = self.elements(vectors[0], LANES)
            return self.builder.fadd(self.builder.fadd(a, b), self.builder.fadd(c, d))
        left, right = (
            self.builder.fadd(self.chosen(one, other, [0, 2, 4, 6]), self.chosen(one, other, [1, 3, 5, 7]))
            for one, other in zip(vectors[::2], vectors[1::2], strict=True)
        )
        evens, odds = self.chosen(left, right, [0, 2, 4, 6]), self.chosen(left, right, [1, 3, 5, 7])
        return self.builder.fadd(evens, odds)

    def scaled(self, one: ir.Value, other: ir.Value, to: ir.Value) -> ir.Value:
        return self.builder.fadd(to, self.builder.fmul(one, other))


def _outer(width: int) -> Callable[..., Generated]:
    def add(
        _typing: object,
        rows: types.Array,
        _count: types.Integer,
        _length: types.Integer,
        _p: types.Integer,
        _q: types.Integer,
        sums: types.Array,
    ) -> Generated:
        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            rows, count, length, p, q, sums = arguments
            kinds, write = signature.args, _VectorCode(builder)
            given, result = _data(context, builder, kinds[0], rows), _data(context, builder, kinds[5], sums)
            targets = [
                builder.add(builder.mul(builder.add(p, _INDEX(one)), length), q) for one in range(LANES)
            ]
            totals = [alloca_once_value(builder, write.load(result, one, width)) for one in targets]
            with for_range(builder, count) as loop:
                begin = builder.mul(loop.index, length)
                across = write.load(given, builder.add(begin, q), width)
                for one, total in enumerate(totals):
                    place = builder.add(builder.add(begin, p), _INDEX(one))
                    down = write.spread(write.load(given, place, 1), width)
                    builder.store(write.scaled(down, across, builder.load(total)), total)
            for target, total in zip(targets, totals, strict=True):
                write.store(builder.load(total), result, target, width)
            return context.get_dummy_value()

        return types.void(rows, types.uint64, types.uint64, types.uint64, types.uint64, sums), generate

    return add


def _take(
    _typing: object,
    factors: types.Array,
    _place: types.Integer,
    _vectors: types.Integer,
    _root: types.Float,
    _value: types.Float,
    rows: types.Array,
    _target: types.Integer,
    sums: types.Array,
) -> Generated:
    def generate(
        context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        factors, place, vectors, root, value, rows, target, sums = arguments
        kinds, write = signature.args, _VectorCode(builder)
        given = _data(context, builder, kinds[0], factors)
        taken = _data(context, builder, kinds[5], rows)
        result = _data(context, builder, kinds[7], sums)
        roots, values = write.spread(root, LANES), write.spread(value, LANES)
        with for_range(builder, vectors) as loop:
            begin = builder.mul(loop.index, _INDEX(LANES))
            one = write.load(given, builder.add(place, begin), LANES)
            write.store(builder.fmul(roots, one), taken, builder.add(target, begin), LANES)
            total = write.load(result, begin, LANES)
            write.store(write.scaled(values, one, total), result, begin, LANES)
        return context.get_dummy_value()

    return (
        types.void(
            factors, types.uint64, types.uint64, types.float64, types.float64, rows, types.uint64, sums
        ),
        generate,
    )


def _quotients(count: int) -> Callable[..., Generated]:
    # Four entries or one: what one gives is the same.
    def add(
        _typing: object,
        x: types.Array,
        _place: types.Integer,
        rows: types.Array,
        _length: types.Integer,
        others: types.Array,
        _width: types.Integer,
        columns: types.Array,
        values: types.Array,
        _entry: types.Integer,
        _more: types.Float,
        _least: types.Float,
        sums: types.Array,
        _target: types.Integer,
    ) -> Generated:
        def generate(
            context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
        ) -> ir.Value:
            place, length, width, entry, more, least, target = (arguments[at] for at in _NUMBERS)
            x, rows, others, columns, values, sums = (
                _data(context, builder, signature.args[at], arguments[at]) for at in _ARRAYS
            )
            write = _VectorCode(builder)
            at = [builder.add(entry, _INDEX(one)) for one in range(count)]
            met = [builder.zext(builder.load(builder.gep(columns, [one])), _INDEX) for one in at]
            starts = [builder.mul(one, length) for one in met]
            totals = [alloca_once_value(builder, _ZEROS) for _ in range(count)]
            with for_range(builder, builder.udiv(length, _INDEX(LANES))) as loop:
                begin = builder.mul(loop.index, _INDEX(LANES))
                given = write.load(x, builder.add(place, begin), LANES)
                for start, total in zip(starts, totals, strict=True):
                    one = write.load(rows, builder.add(start, begin), LANES)
                    builder.store(write.scaled(given, one, builder.load(total)), total)
            product = write.lane_sums([builder.load(total) for total in totals])
            product = builder.fadd(product, write.spread(more, count))
            floor = write.spread(least, count)
            product = builder.select(builder.fcmp_ordered("<", product, floor), floor, product)
            quotients = builder.fdiv(write.load(values, entry, count), product)
            weights = [write.spread(one, LANES) for one in write.elements(quotients, count)]
            starts = [builder.mul(one, width) for one in met]
            with for_range(builder, builder.udiv(width, _INDEX(LANES))) as loop:
                begin = builder.mul(loop.index, _INDEX(LANES))
                total = write.load(sums, builder.add(target, begin), LANES)
                for start, weight in zip(starts, weights, strict=True):
                    total = write.scaled(weight, write.load(others, builder.add(start, begin), LANES), total)
                write.store(total, sums, builder.add(target, begin), LANES)
            return context.get_dummy_value()

        numbers = (types.uint64, types.float64)
        signature = types.void(
            x, numbers[0], rows, numbers[0], others, numbers[0], columns, values, numbers[0],
            numbers[1], numbers[1], sums, numbers[0],
        )  # fmt: skip
        return signature, generate

    return add


_NUMBERS, _ARRAYS = (1, 3, 5, 8, 9, 10, 12), (0, 2, 4, 6, 7, 11)

# Add to sums the rows of ``others`` of four entries, or of one, each times the entry's value over its row of
# ``rows`` times x, to which ``more`` is added, at least ``least``. Rows are as long as whole vectors.
Quotients = Callable[
    [Floats, Place, Floats, Place, Floats, Place, UnsignedArray, Floats, Place, float, float,
     Floats, Place],
    None,
]  # fmt: skip
add_four_quotients: Quotients = intrinsic(_quotients(LANES))
add_quotient: Quotients = intrinsic(_quotients(1))
# Add to a matrix of sums, from row p and column q on four rows and eight or four columns of what the first
# rows of another make of themselves, ``rows' rows``; both have rows of one length. Each element is added up
# row by row.
add_outer_eight: Callable[[Floats, Place, Place, Place, Place, Floats], None] = intrinsic(_outer(2 * LANES))
add_outer_four: Callable[[Floats, Place, Place, Place, Place, Floats], None] = intrinsic(_outer(LANES))
# Write some vectors of a row that begins at a place, times a root, to a place of others, and add them, times
# a value, to sums.
take_row: Callable[[Floats, Place, Place, float, float, Floats, Place, Floats], None] = intrinsic(_take)
