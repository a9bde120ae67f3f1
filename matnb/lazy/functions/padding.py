"""``numpy.pad``: along each axis, what stands before an array, the array, and what stands behind it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matnb.blocks.creation import Eye, Full
from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Create, Expr
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.joining import joined
from matnb.lazy.functions.moving import flipped, tiled
from matnb.lazy.functions.splitting import sliced
from matnb.lazy.indexing.canonical import one_axis
from matnb.lazy.indexing.getitem import converted_here
from matnb.lazy.registry import implements, recorded
from matnb.lazy.ufuncs import astype, call, literal
from matnb.ops.joining import Pad
from matnb.ops.reshaping import Repeat

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
def pad(array: object, pad_width: object, mode: str = "constant", **options: Any) -> DistArray:
    """``numpy.pad`` in all of its modes but a user's own function; "empty" pads with zeros."""
    node = expression_of(array)
    if callable(mode):
        raise UnsupportedError("pad by a function is not recorded: pad by a mode, or use mn.map_blocks")
    if mode not in _OPTIONS:
        raise OptionError(f"pad: mode {mode!r}; choose one of {', '.join(_OPTIONS)}")
    if unknown := sorted(set(options) - set(_OPTIONS[mode])):
        raise OptionError(f"pad: mode {mode!r} has no option {', '.join(unknown)}")
    widths = _pairs(_by_axis(pad_width, node.ndim), node.ndim, "pad_width")
    if widths.dtype.kind not in "iu":
        raise DTypeError(f"pad: pad_width {pad_width!r}; give whole numbers")
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
        raise ShapeError(f"pad: {what} {given!r} does not fit {ndim} axes: give a pair an axis") from None


def _padded(node: Expr, mode: str, sides: Sequence[_Side], values: np.ndarray) -> Expr:
    if not sides:
        return node
    axis = sides[0].axis
    if mode in ("constant", "empty"):
        made = [_constant(node, side, values[0 if side.is_before else 1]) for side in sides]
    elif not node.shape[axis]:
        raise ShapeError(f"pad: axis {axis} without elements; only modes 'constant' and 'empty' extend it")
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
