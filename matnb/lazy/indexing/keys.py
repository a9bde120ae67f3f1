"""An index as a user gives it made plain: axes, slices, numbers of run time, and lists of places."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from matnb.errors import AxisError, DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Expr, Index, Key, Literal, Shape, broadcast_shapes
from matnb.lazy.ufuncs import literal
from matnb.ops.indexing import check_whole


def normalize_axes(axis: int | tuple[int, ...] | None, ndim: int) -> tuple[int, ...]:
    """Return axes as increasing non-negative numbers; None means all.

    Raises
    ------
    AxisError
        For an invalid axis.
    ShapeError
        For one that is named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    given = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    axes = []
    for one in given:
        if not isinstance(one, int | np.integer):
            raise DTypeError(f"axis={one!r}: give an integer or a tuple of integers")
        if not -ndim <= one < ndim:
            if not ndim:
                raise AxisError(f"axis {one} is out of bounds for an array without axes", int(one), ndim)
            given_text = f", not {axis}" if len(given) > 1 else ""
            text = f"axis {one} of an array of {ndim} axes: give {-ndim} to {ndim - 1}{given_text}"
            raise AxisError(text, int(one), ndim)
        axes.append(int(one) % ndim)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis={axis} names the same axis twice")
    return tuple(sorted(axes))


def one_axis(axis: object, ndim: int) -> int:
    """Return one axis as a non-negative number.

    Raises
    ------
    AxisError
        For an invalid axis.
    DTypeError
        For anything but a whole number, as None and tuples.
    """
    try:
        place = operator.index(axis)  # type: ignore[arg-type]  # what refuses others
    except TypeError:
        raise DTypeError(f"axis={axis!r}: give one integer") from None
    return normalize_axes(place, ndim)[0]


def normalize_key(key: object, shape: Shape) -> Key:
    """Return a basic index as an entry for every axis, with slices and integers made non-negative.

    Raises
    ------
    IndexingError
        For an integer out of range, too many entries, or a kind of index that is not supported.
    """
    parts: list[object] = list(key) if isinstance(key, tuple) else [key]
    for part in parts:
        if not (part is None or part is Ellipsis or isinstance(part, slice | int | np.integer)) or isinstance(
            part, bool
        ):
            raise IndexingError(
                f"an index of type {type(part).__name__}: give integers, slices, ..., None, or arrays or "
                "lists of integers or booleans"
            )
    if sum(part is Ellipsis for part in parts) > 1:
        raise IndexingError("an index can have a single '...'")
    used = sum(part is not None and part is not Ellipsis for part in parts)
    if used > len(shape):
        raise IndexingError(f"too many indices: {used} for an array with {len(shape)} axes")
    rest = [slice(None)] * (len(shape) - used)
    place = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts = parts[:place] + rest + parts[place + 1 :]
    result: list[int | slice | None] = []
    axis = 0
    for part in parts:
        if part is None:
            result.append(None)
            continue
        length = shape[axis]
        if isinstance(part, slice):
            result.append(_bounded(part, length))
        else:
            assert isinstance(part, int | np.integer), "checked above"
            if not -length <= part < length:
                raise IndexingError(f"index {part} is out of bounds for axis {axis} of length {length}")
            result.append(int(part) % length)
        axis += 1
    return tuple(result)


def _bounded(part: slice, length: int) -> slice:
    try:
        covered = range(*part.indices(length))
    except (TypeError, ValueError) as error:
        raise IndexingError(f"slice {part}: {error}") from None
    if len(covered) == 0:
        return slice(0, 0, 1)
    # Bounds from the elements themselves, so that slices that pick the same elements are equal.
    if len(covered) == 1:
        return slice(covered[0], covered[0] + 1, 1)
    stop = covered[-1] + (1 if covered.step > 0 else -1)
    return slice(covered[0], None if stop < 0 else stop, covered.step)


@dataclass(frozen=True, eq=False)
class IndexKey:
    """An index.

    Attributes
    ----------
    plain
        With an entry for every axis, whole ones for those that numbers and lists pick along.
    numbers
        Whole numbers without axes, by their place in ``plain``.
    lists
        Arrays of whole numbers, by their place in ``plain``; they broadcast together.
    is_first
        Whether the axes of the lists come first in what is picked: a slice keeps them apart.
    """

    plain: Key
    numbers: Mapping[int, Expr]
    lists: Mapping[int, Expr]
    is_first: bool

    def axis_of(self, place: int) -> int:
        """Return which axis an entry is after integers and numbers dropped theirs."""
        gone = sum(isinstance(part, int) for part in self.plain[:place])
        return place - gone - sum(number < place for number in self.numbers)

    def lists_by_axis(self) -> dict[int, Expr]:
        """Return the lists by the axis along which each picks, after integers and numbers dropped theirs."""
        return {self.axis_of(place): index for place, index in self.lists.items()}

    def broadcast(self) -> Shape:
        """Return the shape that the lists have together.

        Raises
        ------
        IndexingError
            When they have none.
        """
        shapes = [one.shape for one in self.lists.values()]
        try:
            return broadcast_shapes(*shapes, name="index")
        except ValueError:
            raise IndexingError(
                f"arrays of shapes {', '.join(map(str, shapes))} in one index do not broadcast together"
            ) from None


def parts_of(key: object, shape: Shape) -> IndexKey:
    """Return an index of an array of a shape, taken apart.

    Parameters
    ----------
    key
        Of integers, slices, ``...``, None, and expressions of whole numbers; True and False, which add an
        axis of length 1 or 0.

    Raises
    ------
    IndexingError
        For an integer out of range, too many entries, or an index of another kind.
    """
    given = [_constant(part) for part in (key if isinstance(key, tuple) else (key,))]
    if sum(part is Ellipsis for part in given) > 1:
        raise IndexingError("an index can have a single '...'")
    has_lists = any(isinstance(part, bool) or (isinstance(part, Expr) and part.ndim) for part in given)
    picks = [place for place, part in enumerate(given) if isinstance(part, int | np.integer | Expr)]
    is_first = has_lists and picks[-1] - picks[0] >= len(picks)
    used = sum(part is not None and part is not Ellipsis and not isinstance(part, bool) for part in given)
    if Ellipsis in [part for part in given if part is Ellipsis]:
        at = next(place for place, part in enumerate(given) if part is Ellipsis)
        given[at : at + 1] = [slice(None)] * (len(shape) - used)
    numbers: dict[int, Expr] = {}
    lists: dict[int, Expr] = {}
    parts: list[object] = []
    for place, part in enumerate(given):
        if isinstance(part, bool):
            lists[place] = literal(np.zeros(int(part), np.int64))
            parts.append(None)
        elif isinstance(part, Expr):
            check_whole(part)
            (lists if part.ndim else numbers)[place] = part
            parts.append(slice(None))
        else:
            parts.append(part)
    return IndexKey(normalize_key(tuple(parts), shape), numbers, lists, is_first)


def is_whole(key: Key, shape: Shape) -> bool:
    """Tell whether an index is all of an array."""
    return len(key) == len(shape) and all(
        part == slice(0, length, 1) for part, length in zip(key, shape, strict=True)
    )


def _constant(part: object) -> object:
    if isinstance(part, np.bool_):
        return bool(part)
    if isinstance(part, Literal) and not part.shape and part.dtype.kind in "iu":
        return int(part.value)
    return part


def with_new_axes(node: Expr, place: int, count: int = 1) -> Expr:
    """Return an array with axes of length 1 before one of its own, or behind the last."""
    whole = [slice(0, length, 1) for length in node.shape]
    return Index(node, (*whole[:place], *(None,) * count, *whole[place:])) if count else node


def without_axes(node: Expr, axes: Collection[int]) -> Expr:
    """Return what is first on some axes, without these."""
    return Index(node, tuple(0 if axis in axes else slice(0, n, 1) for axis, n in enumerate(node.shape)))


def flipped(node: Expr, axes: Sequence[int]) -> Expr:
    """Return the expression with the order of some axes' elements reversed."""
    key = tuple(slice(None, None, -1 if axis in axes else 1) for axis in range(node.ndim))
    return Index(node, normalize_key(key, node.shape))
