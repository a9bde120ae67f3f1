"""What a handle reads and writes by an index, as a person gives it: handles, NumPy's arrays and lists too."""

from __future__ import annotations

import numpy as np

from matnb.errors import IndexingError
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.expr import Expr
from matnb.lazy.masks import Picked, assigned_where, has_mask, picked
from matnb.lazy.places import assigned, indexed
from matnb.lazy.selection import Selection


def read(node: Expr, key: object) -> DistArray | Selection:
    """Return what ``array[key]`` is: a handle, or a selection where only a run can tell how many."""
    plain = _with_expressions(_listed(key, node))
    if has_mask(plain):
        found = picked(node, plain)
        return Selection(found.values, found.mask, found.axis)
    return wrap(indexed(node, plain))


def written(node: Expr, key: object, value: object) -> Expr:
    """Return what ``array[key] = value`` makes of the array."""
    new = value if isinstance(value, Picked) or ufuncs.is_weak(value) else expression_of(value)
    if isinstance(new, Expr) and new.ndim == node.ndim and new.shape[:1] not in ((), (1,)):
        key = _listed(key, node)  # a value for each element or row that known booleans pick
    plain = _with_expressions(key)
    if has_mask(plain):
        return assigned_where(node, plain, new)
    if isinstance(new, Picked):
        new = expression_of(value)
    return assigned(node, plain, new)


def _with_expressions(key: object) -> object:
    # an index with expressions for handles, and for arrays and lists of places or booleans
    if isinstance(key, tuple):
        return tuple(map(_with_expressions, key))
    if isinstance(key, list) or (isinstance(key, np.ndarray) and key.ndim):
        array = np.asarray(key, np.intp if key == [] else None) if isinstance(key, list) else key
        return expression_of(array) if array.dtype.kind in "iub" and array.ndim else key
    return key.expression if isinstance(key, DistArray) else key


def _listed(key: object, node: Expr) -> object:
    # Booleans of the first axis that are known now, as the places where they are true.
    mask = np.asarray(key) if isinstance(key, list) and key else key
    is_known = isinstance(mask, np.ndarray) and mask.ndim == 1 and mask.dtype.kind == "b"
    if not is_known or node.sparse or not node.shape:
        return key
    assert isinstance(mask, np.ndarray), "just asked"
    if mask.shape != node.shape[:1]:
        raise IndexingError(f"booleans of shape {mask.shape} for axes of lengths {node.shape[:1]}")
    return np.flatnonzero(mask)
