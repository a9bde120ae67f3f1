"""What a handle reads and writes by an index, as a person gives it: handles, NumPy's arrays and lists too."""

from __future__ import annotations

import numpy as np

from matnb.errors import IndexingError, ShapeError
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.asking import asked
from matnb.lazy.expr import Expr
from matnb.lazy.listed import assigned, indexed
from matnb.lazy.masks import Picked, assigned_where, has_mask, picked
from matnb.lazy.selection import Selection

_MOST_LISTED = 10**6  # known booleans up to here are the places where they are true


def read(node: Expr, key: object) -> DistArray:
    """Return what ``array[key]`` is: a handle, or a selection where only a run can tell how many."""
    plain = with_expressions(_listed(key, node))
    if has_mask(plain):
        found = picked(node, plain)
        return Selection(found) if isinstance(found, Picked) else wrap(found)
    return wrap(indexed(node, plain))


def written(node: Expr, key: object, value: object) -> Expr:
    """Return what ``array[key] = value`` makes of the array."""
    new: Expr | ufuncs.Weak | Picked
    if isinstance(value, Selection) and value.place is not None:
        new = value.place
    else:
        new = value if ufuncs.is_weak(value) else expression_of(value)
    if isinstance(new, Expr) and new.ndim == node.ndim and new.shape[:1] not in ((), (1,)):
        key = _listed(key, node)  # a value for each element or row that known booleans pick
    if isinstance(new, Expr) and new.ndim and _is_element(key, node):
        raise ShapeError(f"a value of shape {new.shape} for one element: give a number")
    plain = with_expressions(key)
    if has_mask(plain):
        return assigned_where(node, plain, new)
    return assigned(node, plain, new.alone() if isinstance(new, Picked) else new)


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
