"""What a handle reads and writes by an index, as a user gives it: handles, NumPy's arrays and lists too."""

from __future__ import annotations

import numpy as np

from matnb.errors import DTypeError, IndexingError, OptionError, RangeError, ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.creation import asarray, holds_handles
from matnb.lazy.force import asked
from matnb.lazy.indexing.boolean import BooleanSelection, Selection, assigned_where, has_mask, picked
from matnb.lazy.indexing.fancy import assigned, indexed

_KNOWN = (bool, int, float, complex, np.generic, list, tuple)
_MOST_LISTED = 10**6  # known booleans up to here are the places where they are true


def read(node: Expr, key: object) -> DistArray:
    """Return what ``array[key]`` is: a handle, or a selection where only a run can tell how many."""
    plain = with_expressions(_listed(key, node))
    if has_mask(plain):
        found = picked(node, plain)
        return Selection(found) if isinstance(found, BooleanSelection) else wrap(found)
    return wrap(indexed(node, plain))


def written(node: Expr, key: object, value: object) -> Expr:
    """Return what ``array[key] = value`` makes of the array."""
    new: Expr | BooleanSelection
    if isinstance(value, Selection) and value.place is not None:
        new = value.place
    else:
        new = converted(value, node.dtype, _is_basic(key))
    if isinstance(new, Expr) and new.ndim == node.ndim and new.shape[:1] not in ((), (1,)):
        key = _listed(key, node)  # a value for each element or row that known booleans pick
    if isinstance(new, Expr) and new.ndim and _is_element(key, node):
        raise ShapeError(f"a value of shape {new.shape} for one element: give a number")
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
    if isinstance(value, list | tuple) and holds_handles(value):
        value = asarray(value)
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
        raise DTypeError(f"{value!r} does not go into an array of dtype {dtype}: {error}") from None
    except ValueError as error:
        raise OptionError(f"{value!r} does not go into an array of dtype {dtype}: {error}") from None


def _is_basic(key: object) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None
        or part is Ellipsis
        or isinstance(part, slice | int | np.integer)
        or (isinstance(part, DistArray | np.ndarray) and not part.ndim)
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
    if not isinstance(key, DistArray):
        return key
    node = key.expression
    if node.dtype.kind == "b" and not node.shape:
        return bool(asked(node, "whether an index picks anything"))
    return node


def _listed(key: object, node: Expr) -> object:
    # Booleans of the first axis that are known now, as the places where they are true.
    mask = np.asarray(key) if isinstance(key, list) and key else key
    if not isinstance(mask, np.ndarray) or mask.ndim != 1 or mask.dtype.kind != "b" or not node.shape:
        return key
    if mask.shape != node.shape[:1]:
        raise IndexingError(f"booleans of shape {mask.shape} for axes of lengths {node.shape[:1]}")
    return np.flatnonzero(mask) if mask.size <= _MOST_LISTED else key
