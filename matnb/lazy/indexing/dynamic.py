"""Slices of a known length that begin where a run says, as ``x[i:i + b]`` in bodies of loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.grid import window_start
from matnb.errors import LoopBodyError, ShapeError
from matnb.expr.nodes import Broadcast, Elementwise, Expr, Index, Literal
from matnb.lazy.handles import Handle, expression_of
from matnb.lazy.ufuncs import astype
from matnb.ops.dynamic_slicing import DynamicSlice, DynamicUpdate
from matnb.ops.indexing import check_index


def sliced(node: Expr, start: Expr, size: int, axis: int) -> Expr:
    """Return a slice of a length along an axis: basic indexing where it is known where it begins."""
    found = DynamicSlice(node, start, size, axis)
    if not isinstance(start, Literal):
        return found
    begin = window_start(int(start.value), size, node.shape[axis], axis)
    key = [slice(0, length, 1) for length in node.shape]
    key[axis] = slice(begin, begin + size, 1) if size else slice(0, 0, 1)
    return Index(node, tuple(key))


def updated(node: Expr, new: Expr, start: Expr, axis: int) -> Expr:
    """Return an array with another written along an axis from a place on."""
    if isinstance(start, Literal) and new.ndim == node.ndim and new.shape[axis] <= node.shape[axis]:
        check_index(start, 0)
        window_start(int(start.value), new.shape[axis], node.shape[axis], axis)
    new = astype(new, node.dtype)
    rest = [(*one.shape[:axis], *one.shape[axis + 1 :]) for one in (node, new)]
    if new.sparse and not (node.sparse and rest[0] == rest[1]):
        new = Broadcast(new, new.shape)
    return DynamicUpdate(node, new, start, axis)


def has_window(key: object) -> bool:
    """Tell whether an index has a slice whose bounds a body's variables tell."""
    parts = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, slice) and _is_open(part) for part in parts)


def _is_open(part: slice) -> bool:
    return any(isinstance(one, Handle) and one.expression.free for one in (part.start, part.stop, part.step))


def windows_of(key: object, ndim: int) -> tuple[object, list[tuple[int, Expr, int]]]:
    """Return an index with whole axes for the slices whose bounds a body's variables tell, and these slices.

    Returns
    -------
    tuple
        The index that is left, and for each slice its axis, where it begins and how many elements it has.

    Raises
    ------
    LoopBodyError
        When how many they are is not the same in each iteration.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    used = [_axes_of(part) for part in parts]
    spare = ndim - sum(used)
    axis, found = 0, []
    for place, part in enumerate(parts):
        if isinstance(part, slice) and _is_open(part):
            found.append((axis, *_bounds(part)))
            parts[place] = slice(None)
        axis += max(spare, 0) if part is Ellipsis else used[place]
    return tuple(parts), found


def _axes_of(part: object) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool_):
        return 0
    if isinstance(part, Handle | np.ndarray) and part.dtype.kind == "b":
        return part.ndim
    return 1


def _bounds(part: slice) -> tuple[Expr, int]:
    is_plain = part.step is None or (isinstance(part.step, int) and part.step == 1)
    if is_plain and part.start is not None and part.stop is not None:
        start, stop = expression_of(part.start), expression_of(part.stop)
        for one in (start, stop):
            check_index(one, 0)
        terms, width = _sum(_linear(stop), _linear(start), -1)
        if not terms and width >= 0:
            return start, width
        if not terms:
            raise ShapeError(f"a slice that ends {-width} before it begins")
    raise LoopBodyError(
        "a slice whose bounds change from one iteration to the next has to have a length that is known when "
        "it is recorded: write x[i:i + b] with a number b, or mn.dynamic_slice(x, i, b)"
    )


_Linear = tuple[dict[Expr, int], int]  # how often each expression is added, and a number


def _linear(node: Expr) -> _Linear:
    # Of whole numbers: sums, differences, and products with numbers.
    match node:
        case Literal() if node.size == 1:
            return {}, int(node.value.reshape(())[()])
        case Elementwise("add", (left, right)):
            return _sum(_linear(left), _linear(right), 1)
        case Elementwise("subtract", (left, right)):
            return _sum(_linear(left), _linear(right), -1)
        case Elementwise("negative", (inner,)):
            return _sum(({}, 0), _linear(inner), -1)
        case Elementwise("multiply", (left, right)):
            one, two = _linear(left), _linear(right)
            if not one[0] or not two[0]:
                terms, factor = (two, one[1]) if not one[0] else (one, two[1])
                return _sum(({}, 0), terms, factor)
        case Elementwise("astype", (inner,)) if _is_exact(inner.dtype, node.dtype):
            return _linear(inner)
    return {node: 1}, 0


def _is_exact(given: np.dtype, made: np.dtype) -> bool:
    return given.kind in "iu" and made.kind in "iu" and np.can_cast(given, made)


def _sum(one: _Linear, other: _Linear, factor: int) -> _Linear:
    terms = dict(one[0])
    for node, count in other[0].items():
        terms[node] = terms.get(node, 0) + factor * count
    return {node: count for node, count in terms.items() if count}, one[1] + factor * other[1]


def read_windows(node: Expr, windows: Sequence[tuple[int, Expr, int]]) -> list[Expr]:
    """Return an array, and what each slice leaves of what the ones before it do."""
    found = [node]
    for axis, start, size in windows:
        found.append(sliced(found[-1], start, size, axis))
    return found


def written_back(found: Sequence[Expr], windows: Sequence[tuple[int, Expr, int]], new: Expr) -> Expr:
    """Return an array with what the innermost of its slices became, given all of :func:`read_windows`."""
    for inside, (axis, start, _) in zip(reversed(found[:-1]), reversed(windows), strict=True):
        new = updated(inside, new, start, axis)
    return new
