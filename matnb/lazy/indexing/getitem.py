"""What ``x[...]`` reads and writes, as a user gives it; and the elements that booleans pick, however many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from matnb.errors import DTypeError, IndexingError, OptionError, RangeError, ShapeError
from matnb.expr.nodes import Broadcast, Expr, Index, Literal, Shape, Transpose, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.evaluator import asked
from matnb.lazy.fields import refuse_result
from matnb.lazy.handles import Handle, expression_of, stacked
from matnb.lazy.indexing.compress import compressed, expanded, places_where
from matnb.lazy.indexing.dynamic import has_window, read_windows, windows_of, written_back
from matnb.lazy.indexing.fancy import assigned, indexed
from matnb.lazy.indexing.keys import with_new_axes, without_axes
from matnb.lazy.labels import row_by_label
from matnb.lazy.reductions import where
from matnb.lazy.ufuncs import astype, call
from matnb.ops.indexing import Pick, PutWhere


@dataclass(frozen=True, eq=False)
class BooleanSelection:
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
        return with_new_axes(self.mask, self.mask.ndim, self.values.ndim - self.axis - self.mask.ndim)

    def has_each(self, value: Expr) -> bool:
        """Tell whether a value has one element for each that is picked, or might."""
        place = value.ndim - 1 - (self.values.ndim - self.axis - self.mask.ndim)
        return place >= 0 and value.shape[place] != 1

    def aligned(self, value: Expr) -> Expr:
        """Return a value that broadcasts to the picked elements as one that does so to all of them.

        Raises
        ------
        ShapeError
            When it does not broadcast.
        """
        rest = self.values.ndim - self.axis - self.mask.ndim
        place = value.ndim - 1 - rest  # of the axis of the picked elements
        if place >= 0:
            if value.ndim > 1 and not self.axis and not rest:
                raise ShapeError(
                    f"a value of shape {value.shape} for elements that booleans pick, which have one axis"
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

    def alone(self) -> Expr:
        """Return the picked elements as an array; how many they are is asked for.

        Raises
        ------
        LoopBodyError
            Inside the body of a loop or branch.
        """
        if not self.axis:
            return compressed(self.values, self.mask)
        if self.mask.ndim == 1:
            return Pick(self.values, places_where(self.mask), self.axis)
        return _back(compressed(_masked_first(self.values, self.axis, self.mask.ndim), self.mask), self.axis)

    def with_each(self, new: Expr) -> Expr:
        """Return the array with one value for each picked element; how many they are is asked for.

        Raises
        ------
        ShapeError
            When there is not one for each.
        LoopBodyError
            Inside the body of a loop or branch.
        """
        masked, axis = self.mask.ndim, self.axis
        beside = (*self.values.shape[:axis], *self.values.shape[axis + masked :])
        ndim = len(beside) + 1
        while new.ndim > ndim and new.shape[0] == 1:
            new = without_axes(new, (0,))
        length = new.shape[new.ndim - 1 - (len(beside) - axis)]
        whole = (*beside[:axis], length, *beside[axis:])
        if new.ndim > ndim or broadcast_shapes(new.shape, whole, name="assignment") != whole:
            raise ShapeError(f"values of shape {new.shape} cannot be assigned to elements of shape {whole}")
        if new.shape != whole or new.sparse:
            new = Broadcast(new, whole)
        if not axis:
            return expanded(self.values, self.mask, new)
        turned = expanded(
            _masked_first(self.values, axis, masked),
            self.mask,
            Transpose(new, (axis, *(one for one in range(ndim) if one != axis))),
        )
        order = _masked_order(self.values.ndim, axis, masked)
        return Transpose(turned, tuple(order.index(one) for one in range(self.values.ndim)))


def has_mask(key: object) -> bool:
    """Tell whether an index holds an array of booleans."""
    return any(_is_mask(part) for part in (key if isinstance(key, tuple) else (key,)))


def picked(node: Expr, key: object) -> BooleanSelection | Expr:
    """Return the elements that an index with arrays of booleans picks.

    Of one such array beside integers and slices they are not counted; of others they are, and what is given
    is an array of its own.

    Raises
    ------
    IndexingError
        When the booleans do not have the lengths of the axes they stand for.
    """
    place = _alone(node, key)
    if place is None:
        return indexed(node, _with_places(node, key))
    rest, mask, axis, is_adjacent = place
    if not is_adjacent:
        return indexed(node, _with_places(node, key))
    values = indexed(node, rest)
    _check(mask, axis, values)
    return BooleanSelection(values, mask, axis)


def assigned_where(node: Expr, key: object, value: Expr | BooleanSelection) -> Expr:
    """Return an array with a value written where booleans are true.

    Parameters
    ----------
    key
        Arrays of booleans, also between integers, slices and arrays of whole numbers.
    value
        One for all picked elements, what broadcasts to each row, one for each, or what was made of the
        elements that the same booleans pick.

    Raises
    ------
    ShapeError, IndexingError
        When the value or the booleans do not fit.
    DTypeError
        When a value for elements along one axis has several axes.
    """
    if isinstance(key, Expr) and isinstance(value, Expr) and value.ndim > 1 and key.ndim == node.ndim:
        raise DTypeError(f"a value of shape {value.shape} for elements that booleans pick: give one axis")
    place = _alone(node, key)
    if place is None:
        return assigned(
            node, _with_places(node, key), value.alone() if isinstance(value, BooleanSelection) else value
        )
    rest, mask, axis, is_adjacent = place
    old = indexed(node, rest)
    _check(mask, axis, old)
    chosen = BooleanSelection(old, mask, axis)
    if isinstance(value, BooleanSelection) and (value.mask is not mask or value.axis != axis):
        value = value.alone()
    if isinstance(value, BooleanSelection):
        new = astype(value.values, node.dtype)
    else:
        new = astype(value, node.dtype)
        if new.shape and not is_adjacent:
            return assigned(node, _with_places(node, key), new)
        if chosen.has_each(new):
            return assigned(node, rest, chosen.with_each(new))
        new = chosen.aligned(new)
    if old.sparse:
        return assigned(node, rest, _in_sparse(chosen, new))
    return assigned(node, rest, where(chosen.aligned_mask, new, old))


def filled(place: BooleanSelection, value: np.generic) -> Expr:
    """Return the array with a value for all that the booleans do not pick."""
    content = Literal(value.tobytes(), (), value.dtype)
    return where(place.aligned_mask, place.values, content)


def _alone(node: Expr, key: object) -> tuple[tuple[object, ...], Expr, int, bool] | None:
    # The index with whole axes for the booleans, these, the axis where they begin after the rest has picked,
    # and whether integers stand beside them, as NumPy asks of what is picked to stay in its place. None where
    # other arrays stand beside them.
    parts = list(key) if isinstance(key, tuple) else [key]
    masks = [(place, part) for place, part in enumerate(parts) if _is_mask(part)]
    others = any(
        isinstance(part, bool | np.bool_) or (isinstance(part, Expr) and part.ndim and not _is_mask(part))
        for part in parts
    )
    if len(masks) > 1 or others:
        return None
    ((place, mask),) = masks
    assert isinstance(mask, Expr), "one of booleans is"
    used = sum(part is not None and part is not Ellipsis for part in parts) - 1 + mask.ndim
    if used > node.ndim:
        raise IndexingError(f"too many indices: {used} for an array with {node.ndim} axes")
    whole = [slice(None)]
    parts[place : place + 1] = whole * mask.ndim
    # the parts before the booleans, with an Ellipsis for as many axes as it stands for
    before = parts[:place]
    if Ellipsis in [part for part in before if part is None or part is Ellipsis]:
        at = next(number for number, part in enumerate(before) if part is Ellipsis)
        before[at : at + 1] = whole * (node.ndim - used)
    after = parts[place + mask.ndim :]
    numbers = [_is_number(part) for part in (*parts[:place], True, *after)]
    numbers[place] = True
    is_adjacent = numbers.index(True) + sum(numbers) == len(numbers) - numbers[::-1].index(True)
    return tuple(parts), mask, sum(not _is_number(part) for part in before), is_adjacent


def _with_places(node: Expr, key: object) -> tuple[object, ...]:
    # The index with the places where booleans are true, on each of their axes.
    parts = list(key) if isinstance(key, tuple) else [key]
    used = [part.ndim if _is_mask(part) else 1 for part in parts if _takes_axis(part)]  # type: ignore[union-attr]
    spare = node.ndim - sum(used)
    result: list[object] = []
    axis = 0
    for part in parts:
        if _is_mask(part):
            assert isinstance(part, Expr), "one of booleans is"
            _check(part, axis, node)
            result += places_where(part)
            axis += part.ndim
            continue
        result.append(part)
        axis += max(spare, 0) if part is Ellipsis else _takes_axis(part)
    return tuple(result)


def _takes_axis(part: object) -> bool:
    return not (part is None or part is Ellipsis or isinstance(part, bool | np.bool_))


def _is_number(part: object) -> bool:
    return isinstance(part, int | np.integer | Expr)


def _is_mask(part: object) -> bool:
    return isinstance(part, Expr) and part.dtype.kind == "b" and part.ndim > 0


def _check(mask: Expr, axis: int, values: Expr) -> None:
    lengths: Shape = values.shape[axis : axis + mask.ndim]
    if mask.shape != lengths:
        raise IndexingError(f"booleans of shape {mask.shape} for axes of lengths {lengths}")


def _masked_order(ndim: int, axis: int, masked: int) -> tuple[int, ...]:
    own = range(axis, axis + masked)
    return (*own, *(one for one in range(ndim) if one not in own))


def _masked_first(node: Expr, axis: int, masked: int) -> Expr:
    return Transpose(node, _masked_order(node.ndim, axis, masked))


def _back(node: Expr, axis: int) -> Expr:
    # The first axis to its place.
    rest = list(range(1, node.ndim))
    return Transpose(node, (*rest[:axis], 0, *rest[axis:]))


def _in_sparse(place: BooleanSelection, new: Expr) -> Expr:
    # Zeros need no entries, and elements become entries where the booleans are true.
    mask, node = place.aligned_mask, place.values
    if not mask.sparse and isinstance(new, Literal) and not new.shape and not any(new.content):
        mask = call(np.multiply, (astype(node, np.bool_), mask))[0]
    result = where(mask, new, node)
    return result if result.sparse else PutWhere(node, mask, new)


_KNOWN = (bool, int, float, complex, np.generic, list, tuple)
_MOST_LISTED = 10**6  # known booleans up to here are the places where they are true


def read(node: Expr, key: object) -> Expr | BooleanSelection:
    """Return what ``array[key]`` is: an array, or a selection where only a run can tell how many."""
    refuse_result(key)
    if has_window(key):
        key, windows = windows_of(key, node.ndim)
        node = read_windows(node, windows)[-1]
    try:
        plain = with_expressions(_listed(key, node))
        return picked(node, plain) if has_mask(plain) else indexed(node, plain)
    except IndexingError as error:
        if not (way := row_by_label(node, key)):
            raise
        raise IndexingError(f"{error}; {way}") from None


def written(node: Expr, key: object, value: object) -> Expr:
    """Return what ``array[key] = value`` makes of the array; a value may be elements that booleans pick."""
    refuse_result(key)
    if has_window(key):
        rest, windows = windows_of(key, node.ndim)
        found = read_windows(node, windows)
        return written_back(found, windows, written(found[-1], rest, value))
    new = value if isinstance(value, BooleanSelection) else converted(value, node.dtype, _is_basic(key))
    if isinstance(new, Expr) and new.ndim == node.ndim and new.shape[:1] not in ((), (1,)):
        key = _listed(key, node)  # a value for each element or row that known booleans pick
    if isinstance(new, Expr) and new.ndim and _is_element(key, node):
        raise ShapeError(f"a value of shape {new.shape} cannot be assigned to one element: give a number")
    plain = with_expressions(key)
    if has_mask(plain):
        return assigned_where(node, plain, new)
    return assigned(node, plain, new.alone() if isinstance(new, BooleanSelection) else new)


def converted(value: object, dtype: np.dtype, is_basic: bool = False) -> Expr:
    """Return a value as assignment converts it to an array's dtype: whatever is lost, unless NumPy refuses.

    Arrays are converted as ``astype`` does. Numbers and lists are known, and NumPy itself converts them: it
    refuses whole numbers that do not fit, NaN and infinities for integers, and complex numbers of Python for
    real arrays.

    Parameters
    ----------
    is_basic
        Whether the index is one of integers and slices, where NumPy takes numbers of its own for Python's.

    Raises
    ------
    RangeError, DTypeError, OptionError
        For a number that NumPy refuses.
    ShapeError
        For lists of unequal lengths.
    """
    value = stacked(value)
    if isinstance(value, _KNOWN) or (isinstance(value, np.ndarray) and not value.ndim):
        return expression_of(converted_here(value, dtype, is_basic))
    return ufuncs.astype(expression_of(value), dtype)


def converted_here(value: object, dtype: np.dtype, is_basic: bool = False) -> np.ndarray:
    """Return a known number, or numbers in lists, as assignment converts them; see :func:`converted`."""
    try:
        if not is_basic or not isinstance(value, np.generic):
            return np.asarray(value, dtype)
        array = np.empty((), dtype)
        array[...] = value
        return array
    except OverflowError as error:
        raise RangeError(f"the number {value} does not fit dtype {dtype}: {error}") from None
    except TypeError as error:
        raise DTypeError(f"{value!r} cannot be stored in an array of dtype {dtype}: {error}") from None
    except ValueError as error:
        raise OptionError(f"{value!r} cannot be stored in an array of dtype {dtype}: {error}") from None


def _is_basic(key: object) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice | int | np.integer)
        or (isinstance(part, Handle | np.ndarray) and not part.ndim)
        for part in parts
    )


def _is_element(key: object, node: Expr) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return len(parts) == node.ndim > 0 and all(
        isinstance(part, int | np.integer) and not isinstance(part, bool) for part in parts
    )


def with_expressions(key: object) -> object:
    """Return an index with expressions for handles, and for arrays and lists of places or booleans."""
    if isinstance(key, tuple):
        return tuple(map(with_expressions, key))
    if isinstance(key, list) or (isinstance(key, np.ndarray) and key.ndim):
        array = np.asarray(key, np.intp if key == [] else None) if isinstance(key, list) else key
        return expression_of(array) if array.dtype.kind in "iub" and array.ndim else key
    if isinstance(key, np.ndarray):
        return key[()]
    if hasattr(type(key), "__matnb_mask__"):  # a table's booleans, of which some are missing
        key = key.__matnb_mask__()  # type: ignore[attr-defined]
    if not isinstance(key, Handle):
        return key
    node = key.expression
    if node.dtype.kind == "b" and not node.shape:
        return bool(asked(node, "whether an index picks anything"))
    return node


def _listed(key: object, node: Expr) -> object:
    # A range as its numbers, and booleans of the first axis that are known now as the places where they are
    # true.
    if isinstance(key, range):
        return np.asarray(key, np.int64)
    mask = np.asarray(key) if isinstance(key, list) and key else key
    if not isinstance(mask, np.ndarray) or mask.ndim != 1 or mask.dtype.kind != "b" or not node.shape:
        return key
    if mask.shape != node.shape[:1]:
        raise IndexingError(f"booleans of shape {mask.shape} for axes of lengths {node.shape[:1]}")
    return np.flatnonzero(mask) if mask.size <= _MOST_LISTED else key
