"""Blocks along an axis: what a function makes of the elements up to each, and differences of neighbors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from typing import TypeAlias

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, cast, to_numpy
from matnb.blocks.kernels.calls import Function, called, packed_bytes, results_of, unpacked
from matnb.blocks.kernels.compiled import compiled, given, is_worth_compiling
from matnb.blocks.kernels.reductions.reductions import accumulated
from matnb.errors import DTypeError, ShapeError

_TILE = 2**14  # elements that are still in cache when what came before them is added
_ADDED = "dflq"  # kinds of numbers that a compiled loop adds up, one machine code each
_WIDE = 256  # elements beside each other, from where whole rows are taken at a time


def runs_in_order(ufunc: str, dtype: np.dtype) -> bool:
    """Tell whether a scan goes on from block to block: see ``reductions``."""
    return ufunc == "multiply" and dtype.kind in "fc"


def last_of(values: Sequence[Block], axis: int) -> Dense:
    """Return the end of a block along an axis, of length 1."""
    return Dense(to_numpy(values[0]).take([-1], axis=axis))


def total_of(values: Sequence[Block], ufunc: str, axis: int, dtype: np.dtype) -> Dense:
    """Return what the ufunc makes of a block along an axis, which keeps length 1."""
    with np.errstate(all="ignore"):
        operand = _operand(to_numpy(values[0]), dtype)
        return Dense(np.asarray(getattr(np, ufunc).reduce(operand, axis=axis, keepdims=True, dtype=dtype)))


def carried(values: Sequence[Block], ufunc: str) -> Dense:
    """Return what the ufunc makes of totals, from the first to the last."""
    with np.errstate(all="ignore"):
        return Dense(np.array(reduce(getattr(np, ufunc), map(to_numpy, values))))


def scanned(values: Sequence[Block], ufunc: str, axis: int, dtype: np.dtype) -> Dense:
    """Return the scan of a block: the first of ``values``, after the totals of those before it.

    A scan that runs in order is given the end of the block before it instead, and each element meets what is
    left of it. Peak memory: the result, and the block once more where it is sparse or converts unsafely.
    """
    block, *before = values
    operand = _operand(to_numpy(block), dtype)
    out = np.empty(operand.shape, dtype)
    carry = carried(before, ufunc).values if before else None
    function = getattr(np, ufunc)
    with np.errstate(all="ignore"):
        if carry is not None and runs_in_order(ufunc, dtype):
            start = np.asarray(carry.take(0, axis))
            _scan_on(function, np.moveaxis(operand, axis, 0), start, np.moveaxis(out, axis, 0))
        elif operand.ndim == 1:
            _scan_vector(function, operand, None if carry is None else carry[0], out)
        elif prod(operand.shape[axis + 1 :]) >= _WIDE:
            _scan_rows(function, np.moveaxis(operand, axis, 0), carry, np.moveaxis(out, axis, 0), axis)
        else:
            function.accumulate(operand, axis=axis, dtype=dtype, out=out)
            if carry is not None:
                function(carry, out, out=out)
    return Dense(out)


def _scan_on(function: np.ufunc, rows: NumericArray, carry: NumericArray, out: NumericArray) -> None:
    step = max(1, _TILE // max(1, carry.size))
    for start in range(0, len(rows), step):
        tile = out[start : start + step]
        tile[...] = accumulated(function, rows[start : start + step], carry, out.dtype)
        carry = tile[-1]


def _scan_vector(
    function: np.ufunc, values: NumericArray, carry: np.generic | None, out: NumericArray
) -> None:
    if not values.size:
        return
    is_same = values.dtype == out.dtype and values.flags.c_contiguous
    if function is np.add and is_same and out.dtype.char in _ADDED:
        first = values[0] if carry is None else function(carry, values[0])
        summed = given(values), out.dtype.type(first), out
        if is_worth_compiling(_add_up, values.size, *summed):
            _add_up(*summed)
        else:
            every = values.copy()
            every[0] = first
            np.add.accumulate(every, out=out)
        return
    if carry is None:
        function.accumulate(values, dtype=out.dtype, out=out)
        return
    for start in range(0, values.size, _TILE):
        tile = out[start : start + _TILE]
        function.accumulate(values[start : start + _TILE], dtype=out.dtype, out=tile)
        function(carry, tile, out=tile)
        carry = tile[-1]


@compiled
def _add_up(values: NumericArray, total: np.generic, out: NumericArray) -> None:
    # As NumPy does, one by one, in half the time. The first element is in the total.
    out[0] = total
    for place in range(1, values.size):
        total += values[place]
        out[place] = total


def _scan_rows(
    function: np.ufunc, values: NumericArray, carry: NumericArray | None, out: NumericArray, axis: int
) -> None:
    # Row by row along the first axis: NumPy's own goes down each column.
    for place in range(values.shape[0]):
        if place:
            function(out[place - 1], values[place], out=out[place], dtype=out.dtype)
        elif carry is None:
            out[0] = values[0]
        else:
            function(np.moveaxis(carry, axis, 0)[0], values[0], out=out[0], dtype=out.dtype)


def _operand(values: NumericArray, dtype: np.dtype) -> NumericArray:
    # Converted piece by piece inside the scan where that is safe.
    return values if np.can_cast(values.dtype, dtype, "same_kind") else cast(values, dtype)


def differences(values: Sequence[Block], axis: int) -> Dense:
    """Return each element of a block less the one before it, of truths whether they differ.

    Parameters
    ----------
    values
        The block, and what follows it on the axis, of length 1, unless nothing does.
    """
    given_values, *following = (np.moveaxis(to_numpy(one), axis, 0) for one in values)
    function = np.not_equal if given_values.dtype == np.bool_ else np.subtract
    count = len(given_values) - 1
    shape = list(to_numpy(values[0]).shape)
    shape[axis] = count + len(following)
    out = np.empty(shape, given_values.dtype)
    rows = np.moveaxis(out, axis, 0)
    with np.errstate(all="ignore"):
        function(given_values[1:], given_values[:-1], out=rows[:count])
        for one in following:
            function(one, given_values[-1:], out=rows[count:])
    return Dense(out)


# Scans by a user's associative function of two tuples of arrays. A block goes through in tiles; a tile is so
# many runs, which go on side by side, one element of each at a time; then the ends of runs are scanned, and
# each run meets what is before it. That is two calls' work an element: Blelloch, "Prefix sums and their
# applications", 1990.

_RUN = 61  # elements: odd, so that one element of each run does not fall on the same lines of a cache
_ROWS = 2**14  # elements of a tile

Leaves: TypeAlias = list[NumericArray]  # arrays scanned together, the axis first


@dataclass(frozen=True)
class Associative:
    """A user's associative function, called on arrays whose scanned axis comes first.

    Attributes
    ----------
    is_alone
        Whether it takes two arrays, not two tuples of them.
    dtypes
        Of its results.
    """

    function: Function
    is_alone: bool
    axis: int
    dtypes: tuple[np.dtype, ...]

    def __call__(self, left: Leaves, right: Leaves) -> Leaves:
        """Return what the function makes of elements and those behind them.

        Raises
        ------
        KernelError, ShapeError, DTypeError
            When it fails, or gives other than arrays of the shapes it is given.
        """
        sides = [tuple(map(self._given, one)) for one in (left, right)]
        if self.is_alone:
            found = called(self.function, lambda callee: callee(sides[0][0], sides[1][0]))
            results = [found]
        else:
            found = called(self.function, lambda callee: callee(*sides))
            results = list(found) if isinstance(found, tuple | list) else [found]
        if len(results) != len(right):
            raise ShapeError(f"{self.function.name} gave {len(results)} arrays of {len(right)}: give as many")
        made = results_of(results, self.function.name)
        for one, given_one, dtype in zip(made, sides[1], self.dtypes, strict=True):
            if one.shape != given_one.shape:
                raise ShapeError(
                    f"{self.function.name} gave an array of shape {one.shape} for {given_one.shape}: an "
                    "associative function gives arrays like its own"
                )
            if not np.can_cast(one.dtype, dtype, "same_kind"):
                raise DTypeError(f"{self.function.name} gave an array of dtype {one.dtype} for {dtype}")
        return [
            np.moveaxis(cast(one, dtype), self.axis, 0) for one, dtype in zip(made, self.dtypes, strict=True)
        ]

    def _given(self, values: NumericArray) -> NumericArray:
        view = np.moveaxis(values, 0, self.axis)
        view.flags.writeable = False
        return view

    def scan(self, leaves: Leaves, carry: Leaves | None) -> Leaves:
        """Return the scan of a block after what comes before it, tile by tile."""
        out = [np.empty(one.shape, one.dtype) for one in leaves]
        rows = max(_RUN, _ROWS // max(1, *(prod(one.shape[1:]) for one in leaves)) // _RUN * _RUN)
        start, length = 0, len(leaves[0])
        while start < length:
            stop = min(start + rows, length)
            if stop - start > _RUN:
                stop -= (stop - start) % _RUN
            tile = [one[start:stop] for one in out]
            self._scan_tile([one[start:stop] for one in leaves], carry, tile)
            carry = [one[-1:] for one in tile]
            start = stop
        return out

    def _scan_tile(self, leaves: Leaves, carry: Leaves | None, out: Leaves) -> None:
        run = min(_RUN, len(out[0]))
        taken, made = ([one.reshape(-1, run, *one.shape[1:]) for one in side] for side in (leaves, out))
        for one, values in zip(made, taken, strict=True):
            one[:, 0] = values[:, 0]
        for place in range(1, run):
            found = self([one[:, place - 1] for one in made], [one[:, place] for one in taken])
            for one, values in zip(made, found, strict=True):
                one[:, place] = values
        ends = [one[:, -1].copy() for one in made]
        step, count = 1, len(ends[0])
        while step < count:  # Hillis, Steele: "Data parallel algorithms", 1986
            found = self([one[:-step] for one in ends], [one[step:] for one in ends])
            ends = [np.concatenate([one[:step], values]) for one, values in zip(ends, found, strict=True)]
            step *= 2
        if carry is not None:
            ends = self([np.repeat(one, count, axis=0) for one in carry], ends)
            before = [np.concatenate([one, last[:-1]]) for one, last in zip(carry, ends, strict=True)]
            rest = out
        else:
            before, rest = [one[:-1] for one in ends], [one[run:] for one in out]
        if len(before[0]):
            found = self([np.repeat(one, run, axis=0) for one in before], rest)
            for one, values in zip(rest, found, strict=True):
                one[...] = values

    def total(self, leaves: Leaves) -> Leaves:
        """Return what the function makes of a block: of neighbors in pairs, tile by tile."""
        carry: Leaves | None = None
        rows = max(2, _ROWS // max(1, *(prod(one.shape[1:]) for one in leaves)))
        for start in range(0, len(leaves[0]), rows):
            tile = [one[start : start + rows] for one in leaves]
            while (count := len(tile[0])) > 1:
                found = self([one[0 : count - 1 : 2] for one in tile], [one[1::2] for one in tile])
                if count % 2:
                    found = [np.concatenate([one, last[-1:]]) for one, last in zip(found, tile, strict=True)]
                tile = found
            carry = tile if carry is None else self(carry, tile)
        assert carry is not None, "a block has an element"
        return carry


def _leaves_of(values: Sequence[Block], by: Associative, is_reversed: bool) -> Leaves:
    arrays = [
        np.moveaxis(cast(to_numpy(one), dtype), by.axis, 0)
        for one, dtype in zip(values, by.dtypes, strict=True)
    ]
    return [one[::-1] for one in arrays] if is_reversed else arrays


def _packed(leaves: Leaves) -> Dense:
    outputs = [(one.shape, one.dtype) for one in leaves]
    buffer = np.zeros(packed_bytes(outputs), np.uint8)
    for part, one in zip(unpacked(buffer, outputs), leaves, strict=True):
        part[...] = one
    return Dense(buffer)


def _unpacked(packed: Block, by: Associative, shapes: Sequence[tuple[int, ...]]) -> Leaves:
    outputs = [((1, *one), dtype) for one, dtype in zip(shapes, by.dtypes, strict=True)]
    return unpacked(to_numpy(packed), outputs)


def associated_total(values: Sequence[Block], by: Associative, is_reversed: bool) -> Dense:
    """Return what an associative function makes of all elements of a block, packed. Peak memory: a tile."""
    return _packed(by.total(_leaves_of(values, by, is_reversed)))


def associated_on(values: Sequence[Block], by: Associative, shapes: Sequence[tuple[int, ...]]) -> Dense:
    """Return what an associative function makes of two packed totals; ``shapes`` are those of elements."""
    left, right = (_unpacked(one, by, shapes) for one in values)
    return _packed(by(left, right))


def associated(
    values: Sequence[Block],
    by: Associative,
    is_reversed: bool,
    output: int,
    shapes: Sequence[tuple[int, ...]],
) -> Dense:
    """Return one array of the scan of a block: of ``values``, then of what comes before it, packed.

    Peak memory: all arrays of the result, and tiles.
    """
    leaves = _leaves_of(values[: len(shapes)], by, is_reversed)
    before = values[len(shapes) :]
    found = by.scan(leaves, _unpacked(before[0], by, shapes) if before else None)[output]
    return Dense(np.ascontiguousarray(np.moveaxis(found[::-1] if is_reversed else found, 0, by.axis)))


# Linear recurrences, y[i] = f[i] y[i - 1] + t[i], which are scans of pairs: (f, t) then (g, u) is
# (f g, g t + u). Each step waits for the one before, so that four parts of a vector go on side by side.

_FEWEST_IN_PARTS = 256


def recurred(values: Sequence[Block], axis: int, is_reversed: bool) -> Dense:
    """Return the recurrence of a block from factors, terms, and the packed total of those before, if any.

    Peak memory: the result, and the block once more where the axis is not the first.
    """
    factors, terms, *before = values
    t = _lines(terms, axis, is_reversed)
    f = _factors(factors, axis, is_reversed, t)
    start = to_numpy(before[0])[1] if before else np.zeros(t.shape[1], t.dtype)
    out = np.empty(t.shape, t.dtype)
    if t.shape[1] == 1:
        _recur_vector(given(f.reshape(-1)), given(t.reshape(-1)), start[0], bool(before), out.reshape(-1))
    elif out.size:
        _recur_rows(given(f), given(t), given(start), bool(before), out)
    found = out[::-1] if is_reversed else out
    shape = terms.shape
    moved = found.reshape(shape[axis], *shape[:axis], *shape[axis + 1 :])
    return Dense(np.ascontiguousarray(np.moveaxis(moved, 0, axis)))


def recurred_total(values: Sequence[Block], axis: int, is_reversed: bool) -> Dense:
    """Return the product of a block's factors and where its recurrence ends from 0, for each line."""
    t = _lines(values[1], axis, is_reversed)
    f = _factors(values[0], axis, is_reversed, t)
    out = np.zeros((2, t.shape[1]), t.dtype)
    _recur_total(given(f), given(t), out)
    return Dense(out)


def recurred_on(values: Sequence[Block]) -> Dense:
    """Return where a recurrence ends after two parts, of which the packed totals are given."""
    left, right = map(to_numpy, values)
    with np.errstate(all="ignore"):
        return Dense(np.stack([left[0] * right[0], left[1] * right[0] + right[1]]))


def _lines(block: Block, axis: int, is_reversed: bool) -> NumericArray:
    moved = np.moveaxis(to_numpy(block), axis, 0)
    lines = moved.reshape(moved.shape[0], prod(moved.shape[1:]))
    return np.ascontiguousarray(lines[::-1]) if is_reversed else np.ascontiguousarray(lines)


def _factors(block: Block, axis: int, is_reversed: bool, t: NumericArray) -> NumericArray:
    return _lines(block, axis, is_reversed) if block.shape else to_numpy(block).reshape(1, 1)


@compiled
def _recur_vector(
    f: NumericArray, t: NumericArray, start: np.generic, goes_on: bool, out: NumericArray
) -> None:
    n = t.size
    if n == 0:
        return
    step = 0 if f.size == 1 and n > 1 else 1
    first = f[0] * start + t[0] if goes_on else t[0]
    part = n // 4
    is_parted = n >= _FEWEST_IN_PARTS
    if is_parted:
        y, a, b = first, t[part], t[2 * part]
        p, q = f[part * step], f[2 * part * step]
        for i in range(1, part):
            y = f[i * step] * y + t[i]
            g = f[(part + i) * step]
            a = g * a + t[part + i]
            p *= g
            h = f[(2 * part + i) * step]
            b = h * b + t[2 * part + i]
            q *= h
        a = p * y + a
        b = q * a + b
        # Where a product overflows, so that 0 times it is NaN, elements are taken one by one.
        is_parted = np.isfinite(p) and np.isfinite(q) and np.isfinite(b) and np.isfinite(a) and np.isfinite(y)
    out[0] = first
    if not is_parted:
        y = first
        for i in range(1, n):
            y = f[i * step] * y + t[i]
            out[i] = y
        return
    z, c, d = y, a, b
    y = first
    a = f[part * step] * z + t[part]
    b = f[2 * part * step] * c + t[2 * part]
    e = f[3 * part * step] * d + t[3 * part]
    out[part], out[2 * part], out[3 * part] = a, b, e
    for i in range(1, part):
        y = f[i * step] * y + t[i]
        a = f[(part + i) * step] * a + t[part + i]
        b = f[(2 * part + i) * step] * b + t[2 * part + i]
        e = f[(3 * part + i) * step] * e + t[3 * part + i]
        out[i], out[part + i], out[2 * part + i], out[3 * part + i] = y, a, b, e
    for i in range(4 * part, n):
        e = f[i * step] * e + t[i]
        out[i] = e


@compiled
def _recur_rows(
    f: NumericArray, t: NumericArray, start: NumericArray, goes_on: bool, out: NumericArray
) -> None:
    is_one = f.size == 1
    for j in range(t.shape[1]):
        g = f[0, 0] if is_one else f[0, j]
        out[0, j] = g * start[j] + t[0, j] if goes_on else t[0, j]
    for i in range(1, t.shape[0]):
        for j in range(t.shape[1]):
            g = f[0, 0] if is_one else f[i, j]
            out[i, j] = g * out[i - 1, j] + t[i, j]


@compiled
def _recur_total(f: NumericArray, t: NumericArray, out: NumericArray) -> None:
    is_one = f.size == 1
    n, width = t.shape
    part = n // 4
    if width == 1 and part > 0:
        step = 0 if is_one else 1
        ps, ys = np.ones(4, t.dtype), np.zeros(4, t.dtype)
        p, q, r, s = ps[0], ps[1], ps[2], ps[3]
        y, a, b, e = ys[0], ys[1], ys[2], ys[3]
        for i in range(part):
            g = f[i * step, 0]
            y = g * y + t[i, 0]
            p *= g
            g = f[(part + i) * step, 0]
            a = g * a + t[part + i, 0]
            q *= g
            g = f[(2 * part + i) * step, 0]
            b = g * b + t[2 * part + i, 0]
            r *= g
            g = f[(3 * part + i) * step, 0]
            e = g * e + t[3 * part + i, 0]
            s *= g
        for i in range(4 * part, n):
            g = f[i * step, 0]
            e = g * e + t[i, 0]
            s *= g
        out[0, 0] = p * q * r * s
        out[1, 0] = s * (r * (q * y + a) + b) + e
        return
    for j in range(width):
        out[0, j] = 1
    for i in range(n):
        for j in range(width):
            g = f[0, 0] if is_one else f[i, j]
            out[1, j] = g * out[1, j] + t[i, j]
            out[0, j] *= g
