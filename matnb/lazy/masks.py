"""The elements that an array of booleans picks: assigned to, and read without knowing how many they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matnb.errors import IndexingError, ShapeError, UnsupportedError
from matnb.lazy.expr import Expr, Index, Literal, Shape, broadcast_shapes
from matnb.lazy.places import assigned, fitting, indexed
from matnb.lazy.reductions import where
from matnb.lazy.ufuncs import Weak, astype, call


@dataclass(frozen=True, eq=False)
class Picked:
    """The elements of an array where booleans are true: as many as are true, which only a run can tell.

    Attributes
    ----------
    values
        The array with all its elements.
    mask
        Booleans for some of its axes, one after the other.
    axis
        The first of them: in NumPy, where the axis of the picked elements is.
    """

    values: Expr
    mask: Expr
    axis: int

    @property
    def aligned_mask(self) -> Expr:
        """The booleans, which broadcast to the values."""
        return _before(self.mask, self.values.ndim - self.axis - self.mask.ndim)

    def aligned(self, value: Expr) -> Expr:
        """Return a value that broadcasts to the picked elements as one that does so to all of them.

        Raises
        ------
        ShapeError
            When it does not broadcast.
        UnsupportedError
            For one value for each picked element.
        """
        rest = self.values.ndim - self.axis - self.mask.ndim
        place = value.ndim - 1 - rest  # of the axis of the picked elements
        if place >= 0:
            if value.ndim > 1 and not self.axis and not rest:
                raise ShapeError(
                    f"a value of shape {value.shape} for elements that booleans pick, which have one axis"
                )
            if value.shape[place] != 1:
                raise UnsupportedError(
                    f"a value of shape {value.shape} has one element for each that is picked, whose number "
                    "only a run can tell: use np.where(mask, new, old) with a new value for every element, "
                    "or compute() the mask first"
                )
            extra = max(value.ndim - self.axis - 1 - rest, 0)
            if any(length != 1 for length in value.shape[:extra]):
                raise ShapeError(
                    f"a value of shape {value.shape} does not fit an array of {self.values.shape}"
                )
            kept = [slice(0, length, 1) for length in value.shape]
            key = (*(0,) * extra, *kept[extra:place], *(None,) * (self.mask.ndim - 1), *kept[place:])
            value = Index(value, key) if len(key) != value.ndim or extra else value
        if broadcast_shapes(value.shape, self.values.shape, name="assignment") != self.values.shape:
            raise ShapeError(f"a value of shape {value.shape} does not fit an array of {self.values.shape}")
        return value


def has_mask(key: object) -> bool:
    """Tell whether an index holds an array of booleans."""
    return any(_is_mask(part) for part in (key if isinstance(key, tuple) else (key,)))


def picked(node: Expr, key: object) -> Picked:
    """Return the elements that an index with one array of booleans picks.

    Raises
    ------
    IndexingError
        When the booleans do not have the lengths of the axes they stand for.
    UnsupportedError
        For other arrays beside it, and where NumPy would put the axis of what is picked first.
    """
    rest, mask, axis, is_adjacent = _split(node, key)
    if not is_adjacent:
        raise UnsupportedError(
            "an index with booleans and integers that a slice keeps apart is not recorded: index twice"
        )
    values = indexed(node, rest)
    _check(mask, axis, values)
    return Picked(values, mask, axis)


def assigned_where(node: Expr, key: object, value: Expr | Weak | Picked) -> Expr:
    """Return an array with a value written where booleans are true.

    Parameters
    ----------
    key
        An array of booleans, also between integers and slices.
    value
        One for all picked elements, what broadcasts to each row, or what was made of the elements that the
        same booleans pick.

    Raises
    ------
    ShapeError, IndexingError
        When the value or the booleans do not fit.
    DTypeError
        When the value would lose more than precision in the array's dtype.
    UnsupportedError
        For one value for each picked element, and where a sparse array would get elements.
    """
    rest, mask, axis, is_adjacent = _split(node, key)
    old = indexed(node, rest)
    _check(mask, axis, old)
    place = Picked(old, mask, axis)
    if isinstance(value, Picked):
        if value.mask is not mask or value.axis != axis:
            raise UnsupportedError(
                "elements that one array of booleans picks go where the same one picks: x[mask] = y[mask]; "
                "use np.where(mask, new, old)"
            )
        new = fitting(value.values, node.dtype)
    else:
        new = fitting(value, node.dtype)
        if new.shape and not is_adjacent:
            raise UnsupportedError(
                "assignment of an array by booleans and integers that a slice keeps apart is not recorded: "
                "assign to the row or column first"
            )
        new = place.aligned(new)
    if node.sparse:
        return _in_sparse(node, place, new)
    return assigned(node, rest, where(place.aligned_mask, new, old))


def filled(place: Picked, value: np.generic) -> Expr:
    """Return the array with a value for all that the booleans do not pick."""
    content = Literal(value.tobytes(), (), value.dtype)
    return where(place.aligned_mask, place.values, content)


def _split(node: Expr, key: object) -> tuple[tuple[object, ...], Expr, int, bool]:
    # The index with whole axes for the booleans, these, the axis where they begin after the rest has picked,
    # and whether integers stand beside them, as NumPy asks of what is picked to stay in its place.
    parts = list(key) if isinstance(key, tuple) else [key]
    masks = [(place, part) for place, part in enumerate(parts) if _is_mask(part)]
    others = any(isinstance(part, Expr) and part.ndim and not _is_mask(part) for part in parts)
    if len(masks) > 1 or others:
        raise UnsupportedError("an index by booleans stands beside integers and slices only: index twice")
    ((place, mask),) = masks
    assert isinstance(mask, Expr), "one of booleans is"
    used = sum(part is not None and part is not Ellipsis for part in parts) - 1 + mask.ndim
    if used > node.ndim:
        raise IndexingError(f"{used} indices for an array of {node.ndim} axes")
    whole = [slice(None)]
    parts[place : place + 1] = whole * mask.ndim
    # the parts before the booleans, with an Ellipsis for as many axes as it stands for
    before = parts[:place]
    if Ellipsis in [part for part in before if part is None or part is Ellipsis]:
        at = next(number for number, part in enumerate(before) if part is Ellipsis)
        before[at : at + 1] = whole * (node.ndim - used)
    after = parts[place + mask.ndim :]
    kept = [not _is_number(part) for part in before]
    is_adjacent = kept == sorted(kept, reverse=True) and _adjacent(after)
    return tuple(parts), mask, sum(kept), is_adjacent


def _adjacent(after: list[object]) -> bool:
    numbers = [_is_number(part) for part in after]
    return numbers == sorted(numbers, reverse=True)


def _is_number(part: object) -> bool:
    return isinstance(part, int | np.integer | Expr)


def _is_mask(part: object) -> bool:
    return isinstance(part, Expr) and part.dtype.kind == "b" and part.ndim > 0


def _check(mask: Expr, axis: int, values: Expr) -> None:
    lengths: Shape = values.shape[axis : axis + mask.ndim]
    if mask.shape != lengths:
        raise IndexingError(f"booleans of shape {mask.shape} for axes of lengths {lengths}")


def _before(node: Expr, count: int) -> Expr:
    # With new axes behind its own.
    if not count:
        return node
    return Index(node, (*(slice(0, length, 1) for length in node.shape), *(None,) * count))


def _in_sparse(node: Expr, place: Picked, new: Expr) -> Expr:
    # Elements become entries only where the booleans are entries; zeros need no entries.
    mask = place.aligned_mask
    if place.values is not node:
        raise UnsupportedError("assignment to a part of a sparse array is not recorded: x[mask] = value")
    if not mask.sparse and isinstance(new, Literal) and not new.shape and not any(new.content):
        mask = call(np.multiply, (astype(node, np.bool_), mask))[0]
    result = where(mask, new, node)
    if not result.sparse:
        raise UnsupportedError(
            "assignment by dense booleans would fill a sparse array: give sparse ones, as in A[A > 1] = 2, "
            "or the value 0"
        )
    return result
