"""NumPy's functions that move, repeat, insert, drop or pad elements."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np

from matnb.blocks.creation import Arange, Eye, Full
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError, UnsupportedError, suggestion
from matnb.expr.nodes import Broadcast, Create, Expr, Index, Literal
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import ShapeLike, shape_of
from matnb.lazy.evaluator import asked
from matnb.lazy.functions.shaping import joined, joined_ranges, laned, moveaxis, transposed, with_axes
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.compress import parts_of
from matnb.lazy.indexing.getitem import converted, converted_here
from matnb.lazy.indexing.keys import flipped, normalize_axes, normalize_key, one_axis
from matnb.lazy.labels import moves_labels
from matnb.lazy.lost_writes import owned
from matnb.lazy.reductions import reduce
from matnb.lazy.registry import implements, recorded
from matnb.lazy.shapes import reshaped, sliced
from matnb.lazy.ufuncs import astype, call, literal
from matnb.ops.joining import Pad
from matnb.ops.reshaping import CountsOf, Repeat, RepeatEach

_FEW = 16  # copies beside each other are that many blocks that are not copied, up to here


@implements(np.flip)
@moves_labels(np.flip)
def flip(m: ArrayLike, axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.flip``."""
    node = expression_of(m)
    return wrap(flipped(node, normalize_axes(axis, node.ndim)))


@implements(np.fliplr)
@moves_labels(np.fliplr)
def fliplr(m: ArrayLike) -> DistArray:
    """``numpy.fliplr``."""
    node = expression_of(m)
    if node.ndim < 2:
        raise ShapeError(f"fliplr of shape {node.shape}: give an array with two or more axes")
    return wrap(flipped(node, (1,)))


@implements(np.flipud)
@moves_labels(np.flipud)
def flipud(m: ArrayLike) -> DistArray:
    """``numpy.flipud``."""
    node = expression_of(m)
    if not node.ndim:
        raise ShapeError("flipud of an array without axes")
    return wrap(flipped(node, (0,)))


@implements(np.rot90)
@moves_labels(np.rot90)
def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> DistArray:
    """``numpy.rot90``."""
    node = expression_of(m)
    if len(axes) != 2 or len(normalize_axes(tuple(axes), node.ndim)) != 2:
        raise ShapeError(f"rot90: axes {tuple(axes)}; give two different ones")
    one, other = (axis % node.ndim for axis in axes)
    turns = k % 4
    if turns in (0, 2):
        return wrap(flipped(node, (one, other)) if turns else node)
    order = list(range(node.ndim))
    order[one], order[other] = other, one
    return wrap(transposed(flipped(node, (other if turns == 1 else one,)), order))


@implements(np.roll)
def roll(a: ArrayLike, shift: int | Sequence[int], axis: int | tuple[int, ...] | None = None) -> DistArray:
    """``numpy.roll``: blocks stay on their workers; one block is split in two."""
    node = expression_of(a)
    if axis is None:
        flat = (1, node.size) if node.sparse else (node.size,)
        return wrap(reshaped(_rolled(reshaped(node, flat), len(flat) - 1, _sum(shift)), node.shape))
    return _rolled_along(a, shift, axis)


@moves_labels(np.roll)
def _rolled_along(
    a: object, shift: int | Sequence[int], axis: int | np.integer | tuple[int, ...]
) -> DistArray:
    node = expression_of(a)
    axes = [axis] if isinstance(axis, int | np.integer) else list(axis)
    shifts, places = np.broadcast_arrays(np.asarray(shift), np.asarray(axes))
    if shifts.dtype.kind not in "iu":
        raise DTypeError(f"roll: shift {shift!r}; give integers")
    if shifts.ndim > 1:
        raise ShapeError("roll: shift and axis are numbers or tuples of them")
    for one, place in zip(shifts.tolist(), places.tolist(), strict=True):
        node = _rolled(node, normalize_axes(place, node.ndim)[0], one)
    return wrap(node)


def _sum(shift: int | Sequence[int]) -> int:
    return sum(_integers("roll", shift))


def _integers(name: str, given: object) -> list[int]:
    # One or several, of an array too; booleans count, as in NumPy.
    found = np.asarray(given)
    if found.ndim > 1:
        raise ShapeError(f"{name}: an array of shape {found.shape}; give a number or a sequence of them")
    if found.size and found.dtype.kind not in "biu":
        raise DTypeError(f"{name}: {given!r}; give integers")
    return list(map(int, found.ravel().tolist()))


def _rolled(node: Expr, axis: int, shift: int) -> Expr:
    length = node.shape[axis]
    start = shift % length if length else 0
    if not start:
        return node
    return joined_ranges(node, [(length - start, length), (0, length - start)], axis)


def tiled(node: Expr, count: int, axis: int) -> Expr:
    """Return the expression of so many copies of an array, one beside the other along an axis."""
    if count == 1:
        return node
    if count == 0:
        return sliced(node, axis, slice(0, 0))
    if count <= _FEW:
        return joined([node] * count, axis)
    if node.sparse:
        whole = [tiled(node, _FEW, axis)] * (count // _FEW)
        return joined([*_in_turn(whole, axis), *[node] * (count % _FEW)], axis)
    before, after = node.shape[:axis], node.shape[axis + 1 :]
    rows = reshaped(node, (prod(before), 1, node.shape[axis] * prod(after)))
    return reshaped(Repeat(rows, count, 1), (*before, count * node.shape[axis], *after))


def _in_turn(parts: list[Expr], axis: int) -> list[Expr]:
    # Of many equal parts, a few of them put together.
    return [tiled(parts[0], len(parts), axis)] if len(parts) > _FEW else parts


@implements(np.tile)
def tile(A: ArrayLike, reps: int | Sequence[int]) -> DistArray:
    """``numpy.tile``."""
    node = expression_of(A)
    counts = tuple(_integers("tile", reps))
    if any(count < 0 for count in counts):
        raise ShapeError(f"tile: {counts} copies; counts cannot be negative")
    ndim = max(node.ndim, len(counts))
    counts = (1,) * (ndim - len(counts)) + counts
    if ndim > node.ndim:
        node = reshaped(node, (1,) * (ndim - node.ndim) + node.shape)
    for axis, count in enumerate(counts):
        node = tiled(node, count, axis)
    return owned(wrap(node))


@implements(np.repeat)
def repeat(a: ArrayLike, repeats: object, axis: int | None = None) -> DistArray:
    """``numpy.repeat``; counts given as an array are computed immediately."""
    node, place = laned(expression_of(a), axis)
    counts = expression_of(repeats)
    if counts.dtype == np.uint64:
        counts = astype(counts, np.int64)  # which the standard has, unlike NumPy
    if not np.can_cast(counts.dtype, np.int64, "safe") or counts.ndim > 1:
        raise DTypeError(
            f"repeat: counts of dtype {counts.dtype} and shape {counts.shape}; give whole numbers"
        )
    if counts.size == 1:
        known = counts.value if isinstance(counts, Literal) else asked(counts, "the length of np.repeat")
        count = int(known.item())
        if count < 0:
            raise OptionError(f"repeat: {count} times; counts cannot be negative")
        return wrap(Repeat(node, count, place))
    if counts.shape != (node.shape[place],):
        raise ShapeError(
            f"repeat: {counts.size} counts for an axis of length {node.shape[place]}; give one count "
            "for each element"
        )
    before = parts_of(counts, counts)
    sums = asked(CountsOf(counts, before), "the length of np.repeat")
    if min(sums.tolist(), default=0) < 0:
        raise OptionError("repeat: counts cannot be negative")
    after = (0, *accumulate(sums.tolist()))
    return wrap(RepeatEach(node, counts, place, before, after))


_MOST_PARTS = 1000  # of an array that is put together from slices
Places = int | slice | Sequence[int]


def _along(arr: object, axis: int | None) -> tuple[Expr, int]:
    # An array and its axis; without one it is the array's elements in a row.
    node = expression_of(arr)
    if axis is None:
        return reshaped(node, (node.size,)), 0
    return node, one_axis(axis, node.ndim)


def _whole(places: object) -> np.ndarray:
    # Numbers a user lists; a list of none is as good as any.
    found = np.asarray(places)
    return found.astype(np.int64) if not found.size and found.dtype.kind == "f" else found


def _check_places(places: np.ndarray, length: int, most: int) -> np.ndarray:
    if places.dtype.kind not in "iu":
        raise IndexingError(f"indices have dtype {places.dtype}: give integers")
    if ((places < -length) | (places > most)).any():
        raise IndexingError(
            f"index {places[(places < -length) | (places > most)][0]} is out of bounds for length {length}"
        )
    return np.where(places < 0, places + length, places)


def _check_parts(count: int, name: str, instead: str) -> None:
    if count > _MOST_PARTS:
        raise UnsupportedError(
            f"{name} at {count:,} indices would cut the array into as many parts: {instead}"
        )


@implements(np.delete)
def delete(arr: ArrayLike, obj: ArrayLike, axis: int | None = None) -> DistArray:
    """``numpy.delete``; with a boolean DistArray the length of the result is computed immediately."""
    node, place = _along(arr, axis)
    length = node.shape[place]
    if isinstance(obj, slice):
        return wrap(_without_range(node, place, range(length)[obj]))
    chosen = expression_of(obj) if isinstance(obj, DistArray) else _whole(obj)
    if chosen.dtype.kind == "b":
        return _without_mask(node, place, expression_of(obj))
    _check_parts(chosen.size, "np.delete", "use x[mask], or np.delete(x, mask), where mask is of booleans")
    if isinstance(chosen, Expr):
        chosen = asked(chosen, "which elements np.delete drops")
    dropped = np.unique(_check_places(chosen.reshape(-1), length, length - 1))
    return wrap(_joined_ranges(node, place, dropped))


def _joined_ranges(node: Expr, axis: int, dropped: np.ndarray) -> Expr:
    # What lies between the places that are dropped.
    bounds = [-1, *dropped.tolist(), node.shape[axis]]
    ranges = [(low + 1, high) for low, high in pairwise(bounds) if low + 1 < high] or [(0, 0)]
    return joined_ranges(node, ranges, axis)


def _without_range(node: Expr, axis: int, dropped: range) -> Expr:
    if not dropped:
        return node
    step = abs(dropped.step)
    low, high = min(dropped), max(dropped) + 1
    if step == 1:
        return joined_ranges(node, [(0, low), (high, node.shape[axis])], axis)
    before, after = sliced(node, axis, slice(0, low)), sliced(node, axis, slice(high, None))
    # Between, the rows of a table each begin with what is dropped; of the last one nothing else is left.
    count = len(dropped) - 1
    middle = sliced(node, axis, slice(low, low + count * step))
    rows, width = prod(node.shape[:axis]) * count, prod(node.shape[axis + 1 :])
    kept = sliced(reshaped(middle, (rows, step * width)), 1, slice(width, None))
    shape = (*node.shape[:axis], count * (step - 1), *node.shape[axis + 1 :])
    return joined([before, reshaped(kept, shape), after], axis)


def _without_mask(node: Expr, axis: int, mask: Expr) -> DistArray:
    if mask.shape != (node.shape[axis],):
        raise ShapeError(f"np.delete: booleans of shape {mask.shape} for an axis of {node.shape[axis]}")
    kept = DistArray(call(np.logical_not, (mask,))[0])
    if axis == 0:
        return DistArray(node)[kept]
    return moveaxis(moveaxis(DistArray(node), axis, 0)[kept], 0, axis)


@implements(np.insert)
def insert(arr: ArrayLike, obj: ArrayLike, values: ArrayLike, axis: int | None = None) -> DistArray:
    """``numpy.insert``, at most 1,000 positions."""
    node, place = _along(arr, axis)
    length = node.shape[place]
    new = converted(values, node.dtype)
    if isinstance(obj, slice):
        chosen = np.arange(length)[obj] if abs(obj.step or 1) * _MOST_PARTS >= length else np.arange(length)
    else:
        if isinstance(obj, DistArray):
            _check_parts(obj.size, "np.insert", "concatenate and sort by keys instead")
        chosen = _whole(
            asked(obj.expression, "where np.insert puts them") if isinstance(obj, DistArray) else obj
        )
    if chosen.dtype.kind == "b":
        chosen = np.flatnonzero(chosen) if chosen.ndim else chosen
    if chosen.ndim > 1:
        raise OptionError("np.insert: give one index or a 1-d array of indices")
    places = _check_places(chosen.reshape(-1), length, length)
    if places.size == 1 and not chosen.ndim and new.ndim:
        # NumPy reads values for a single place as what stands there: its first axis is the array's.
        new = expression_of(moveaxis(DistArray(with_axes(new, node.ndim)), 0, place))
    count = new.shape[place] if places.size == 1 and new.ndim == node.ndim else max(places.size, 0)
    _check_parts(places.size, "np.insert", "concatenate and sort by keys instead")
    shape = (*node.shape[:place], count, *node.shape[place + 1 :])
    new = new if new.shape == shape else Broadcast(new, shape)
    if places.size == 1:
        ranges = [(int(places[0]), slice(0, count))]
    else:
        order = np.argsort(places, kind="stable")
        ranges = [(int(places[one]), slice(int(one), int(one) + 1)) for one in order]
    parts, done = [], 0
    for where, part in ranges:
        if where > done:
            parts.append(sliced(node, place, slice(done, where)))
            done = where
        parts.append(sliced(new, place, part))
    parts.append(sliced(node, place, slice(done, None)))
    return wrap(joined(parts, place))


@implements(np.resize)
def resize(a: ArrayLike, new_shape: ShapeLike) -> DistArray:
    """``numpy.resize``."""
    node, shape = expression_of(a), shape_of(new_shape)
    size = prod(shape)
    if not node.size or not size:
        return wrap(Create(Full(shape, bytes(node.dtype.itemsize), node.dtype)))
    flat = tiled(reshaped(node, (node.size,)), -(-size // node.size), 0)
    return wrap(reshaped(sliced(flat, 0, slice(0, size)), shape))


@implements(np.trim_zeros)
def trim_zeros(filt: object, trim: str = "fb", axis: int | Sequence[int] | None = None) -> DistArray:
    """``numpy.trim_zeros``; the first and last nonzero elements are located immediately."""
    node = expression_of(filt)
    if not set(trim.lower()) <= set("fb"):
        raise OptionError(f"trim_zeros: trim {trim!r}; choose 'f', 'b' or 'fb'")
    axes = normalize_axes(None if axis is None else tuple(np.atleast_1d(axis).tolist()), node.ndim)
    key: list[slice] = [slice(None)] * node.ndim
    for one in axes:
        first, last = _bounds(node, one)
        key[one] = slice(
            first if "f" in trim.lower() else 0, last if "b" in trim.lower() else node.shape[one]
        )
        if first == last:
            key[one] = slice(0, 0)
    return wrap(Index(node, normalize_key(tuple(key), node.shape)))


def _bounds(node: Expr, axis: int) -> tuple[int, int]:
    # Where along an axis the first slice with an element that is not zero is, and the one after the last.
    length = node.shape[axis]
    if not node.size:
        return 0, 0
    some = call(np.not_equal, (node, 0))[0]
    if node.ndim > 1:
        others = tuple(place for place in range(node.ndim) if place != axis)
        some = reduce(some, "any", others)
    places = Create(Arange(0, 1, length, np.dtype(np.int64)))
    first = reduce(_chosen(some, places, length), "min")
    last = reduce(_chosen(some, places, -1), "max")
    found = asked(joined([reshaped(first, (1,)), reshaped(last, (1,))], 0), "what np.trim_zeros leaves")
    start, stop = found.tolist()
    return (0, 0) if stop < 0 else (start, stop + 1)


def _chosen(mask: Expr, places: Expr, otherwise: int) -> Expr:
    return expression_of(recorded(np.where)(DistArray(mask), DistArray(places), otherwise))


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}
_STATISTICS: Mapping[str, Callable[..., object]] = {
    "maximum": np.max,
    "mean": np.mean,
    "median": np.median,
    "minimum": np.min,
}


@dataclass(frozen=True)
class _Side:
    # Where an axis goes on: before its first element or behind its last, and for how long.
    axis: int
    is_before: bool
    width: int

    def edge(self, node: Expr, length: int = 1) -> Expr:
        """Return the elements next to it."""
        part = slice(0, length) if self.is_before else slice(max(0, node.shape[self.axis] - length), None)
        return sliced(node, self.axis, part)

    def shape(self, node: Expr) -> tuple[int, ...]:
        """Return the shape of what is put there."""
        return (*node.shape[: self.axis], self.width, *node.shape[self.axis + 1 :])

    def beside(self, node: Expr, new: Expr) -> Expr:
        """Return an array with something put there."""
        return joined([new, node] if self.is_before else [node, new], self.axis, node.dtype)


@implements(np.pad)
def pad(array: ArrayLike, pad_width: object, mode: str = "constant", **options: Any) -> DistArray:
    """``numpy.pad``, in all modes except a function; "empty" pads with zeros."""
    node = expression_of(array)
    if callable(mode):
        raise UnsupportedError(
            "np.pad with a function as mode is not supported: give the name of a mode, or use mn.map_blocks"
        )
    if mode not in _OPTIONS:
        raise OptionError(f"pad: mode {mode!r}; {suggestion(mode, _OPTIONS)}")
    if unknown := sorted(set(options) - set(_OPTIONS[mode])):
        raise OptionError(
            f"pad: mode {mode!r} has no option {unknown[0]!r}; {suggestion(unknown[0], _OPTIONS[mode])}"
        )
    widths = _pairs(_by_axis(pad_width, node.ndim), node.ndim, "pad_width")
    if widths.dtype.kind not in "iu":
        raise DTypeError(f"pad: pad_width {pad_width!r}; give integers")
    if (widths < 0).any():
        raise OptionError(f"pad: pad_width {pad_width!r}; widths cannot be negative")
    values = _pairs(next(iter(options.values()), None), node.ndim, mode, mode not in ("reflect", "symmetric"))
    pairs = tuple((before, after) for before, after in widths.tolist())
    if mode in ("constant", "empty", "edge") and _is_thin(node, pairs):
        return wrap(_around(node, pairs, mode, values))
    for axis, (before, after) in enumerate(pairs):
        sides = (_Side(axis, True, before), _Side(axis, False, after))
        node = _padded(node, mode, [one for one in sides if one.width], values[axis])
    return wrap(node)


def _is_thin(node: Expr, widths: Sequence[tuple[int, int]]) -> bool:
    # Whether what is put around makes no block much larger.
    return bool(node.size) and all(
        width <= max(1, length // 16)
        for length, pair in zip(node.shape, widths, strict=True)
        for width in pair
    )


def _around(node: Expr, widths: tuple[tuple[int, int], ...], mode: str, values: np.ndarray) -> Expr:
    if mode == "edge":
        return Pad(node, widths)
    constants = tuple(
        (_element(node, before).tobytes(), _element(node, after).tobytes()) for before, after in values
    )
    return Pad(node, widths, constants)


def _element(node: Expr, value: object) -> np.ndarray:
    return converted_here(0 if value is None else value, node.dtype, is_basic=True)


def _by_axis(pad_width: object, ndim: int) -> object:
    if not isinstance(pad_width, Mapping):
        return pad_width
    widths: list[object] = [(0, 0)] * ndim
    for axis, width in pad_width.items():
        place = one_axis(axis, ndim)
        widths[place] = np.broadcast_to(np.asarray(width), (2,)).tolist()
    return widths


def _pairs(given: object, ndim: int, what: str, is_number: bool = True) -> np.ndarray:
    values = np.asarray(given, None if is_number and given is not None else object)
    try:
        return np.broadcast_to(values, (ndim, 2))
    except ValueError:
        raise ShapeError(
            f"pad: {what} {given!r} does not fit {ndim} axes: give one pair for each axis"
        ) from None


def _padded(node: Expr, mode: str, sides: Sequence[_Side], values: np.ndarray) -> Expr:
    if not sides:
        return node
    axis = sides[0].axis
    if mode in ("constant", "empty"):
        made = [_constant(node, side, values[0 if side.is_before else 1]) for side in sides]
    elif not node.shape[axis]:
        raise ShapeError(
            f"pad: axis {axis} has length 0, which only the modes 'constant' and 'empty' can pad"
        )
    elif mode == "edge" or (mode == "reflect" and node.shape[axis] == 1):
        made = [Repeat(side.edge(node), side.width, axis) for side in sides]
    elif mode == "linear_ramp":
        made = [_ramp(node, side, values[0 if side.is_before else 1]) for side in sides]
    elif mode in _STATISTICS:
        made = [_statistic(node, side, mode, values[0 if side.is_before else 1]) for side in sides]
    elif mode == "wrap" or values[0] in ("even", None):
        made = [_mirrored(node, side, mode) for side in sides]
    elif values[0] == "odd":
        return _reflected_odd(node, sides, mode == "symmetric")
    else:
        raise OptionError(f"pad: reflect_type {values[0]!r}; choose 'even' or 'odd'")
    parts = {side.is_before: one for side, one in zip(sides, made, strict=True)}
    before, after = parts.get(True), parts.get(False)
    return joined([one for one in (before, node, after) if one is not None], axis, node.dtype)


def _constant(node: Expr, side: _Side, value: object) -> Expr:
    element = _element(node, value)
    shape = side.shape(node)
    if node.sparse and not element:
        rows, columns = shape
        return Create(Eye(rows, columns, columns, node.dtype))  # whose diagonal is outside: nothing is stored
    return Create(Full(shape, element.tobytes(), node.dtype))


def _ramp(node: Expr, side: _Side, end: object) -> Expr:
    # From the end value to the edge, which comes next, by equal steps, as np.linspace makes them.
    steps = np.arange(side.width, dtype=np.float64)
    if not side.is_before:
        steps = steps[::-1]
    along = literal(steps.reshape(-1, *(1,) * (node.ndim - side.axis - 1)))
    first = np.asarray(0 if end is None else end) * 1.0
    rise = call(np.subtract, (side.edge(node), literal(first)))[0]
    step = call(np.divide, (rise, float(side.width)))[0]
    made = call(np.add, (call(np.multiply, (along, step))[0], literal(first)))[0]
    if node.dtype.kind in "iu":
        made = call(np.floor, (made,))[0]
    return astype(made, node.dtype)


def _statistic(node: Expr, side: _Side, mode: str, length: object) -> Expr:
    whole = node.shape[side.axis]
    count = whole if length is None else min(operator.index(length), whole)  # type: ignore[arg-type]  # or it raises
    if count < 0 or (count == 0 and mode in ("maximum", "minimum")):
        raise OptionError(f"pad: stat_length {length!r} for mode {mode!r}; give 1 or more")
    function = recorded(_STATISTICS[mode])
    found = expression_of(function(DistArray(side.edge(node, count)), axis=side.axis, keepdims=True))
    if node.dtype.kind in "iu" and found.dtype.kind == "f":
        found = call(np.rint, (found,))[0]
    return Repeat(astype(found, node.dtype), side.width, side.axis)


def _mirrored(node: Expr, side: _Side, mode: str) -> Expr:
    # The array goes on for ever as a period: itself, then for some modes itself backwards.
    axis, length = side.axis, node.shape[side.axis]
    period = [node]
    if mode == "symmetric":
        period.append(flipped(node, (axis,)))
    elif mode == "reflect":
        period.append(sliced(flipped(node, (axis,)), axis, slice(1, length - 1)))
    total = sum(one.shape[axis] for one in period)
    start = (-side.width) % total if side.is_before else length % total
    parts: list[Expr] = []
    wanted = side.width
    while wanted and len(parts) < 2 * len(period):
        begin = 0
        for one in period:
            stop = begin + one.shape[axis]
            if begin <= start < stop and wanted:
                last = min(stop, start + wanted)
                parts.append(sliced(one, axis, slice(start - begin, last - begin)))
                wanted -= last - start
                start = last % total
            begin = stop
    if not wanted:
        return joined(parts, axis)
    start = (-side.width) % total if side.is_before else length % total
    copies = tiled(joined(period, axis), -(-(start + side.width) // total), axis)
    return sliced(copies, axis, slice(start, start + side.width))


def _reflected_odd(node: Expr, sides: Sequence[_Side], repeats_edge: bool) -> Expr:
    # Mirrored in the edge, also in its value; what is longer than the array is mirrored again.
    left = {side.is_before: side.width for side in sides}
    skipped = 0 if repeats_edge else 1
    axis = sides[0].axis
    while any(left.values()):
        before = node
        for is_before in (True, False):
            width = min(left.get(is_before, 0), before.shape[axis] - skipped)
            if width:
                side = _Side(axis, is_before, width)
                chunk = side.edge(before, width + skipped)
                inner = slice(skipped, None) if is_before else slice(0, width)
                mirrored = flipped(sliced(chunk, axis, inner), (axis,))
                twice = call(np.multiply, (2, side.edge(before)))[0]
                node = side.beside(node, astype(call(np.subtract, (twice, mirrored))[0], node.dtype))
                left[is_before] -= width
    return node
