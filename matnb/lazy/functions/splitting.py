"""NumPy's functions that take arrays apart."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.indexing.canonical import normalize_key, one_axis
from matnb.lazy.registry import implements

Places = int | Sequence[int]


def sliced(node: Expr, axis: int, part: slice) -> Expr:
    """Return the expression of a slice along one axis."""
    return Index(node, normalize_key((slice(None),) * axis + (part,), node.shape))


@implements(np.array_split)
def array_split(ary: object, indices_or_sections: Places, axis: int = 0) -> list[DistArray]:
    """``numpy.array_split``."""
    node = expression_of(ary)
    place = one_axis(axis, node.ndim)
    length = node.shape[place]
    if np.ndim(indices_or_sections):
        cuts = [0, *map(operator.index, indices_or_sections), length]  # type: ignore[arg-type]  # several
    else:
        count = int(operator.index(indices_or_sections))  # type: ignore[arg-type]  # one
        if count <= 0:
            raise ShapeError(f"array_split: {count} parts; give at least 1")
        each, more = divmod(length, count)
        cuts = [one * each + min(one, more) for one in range(count + 1)]
    return [wrap(sliced(node, place, slice(start, stop))) for start, stop in pairwise(cuts)]


@implements(np.split)
def split(ary: object, indices_or_sections: Places, axis: int = 0) -> list[DistArray]:
    """``numpy.split``."""
    node = expression_of(ary)
    place = one_axis(axis, node.ndim)
    if not np.ndim(indices_or_sections):
        count = int(operator.index(indices_or_sections))  # type: ignore[arg-type]  # one
        if count <= 0 or node.shape[place] % count:
            raise ShapeError(
                f"split: length {node.shape[place]} of axis {axis} in {count} equal parts; use array_split"
            )
    return array_split(DistArray(node), indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: object, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.hsplit``."""
    node = _of_axes(ary, 1, "hsplit")
    return split(DistArray(node), indices_or_sections, 1 if node.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: object, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.vsplit``."""
    return split(DistArray(_of_axes(ary, 2, "vsplit")), indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: object, indices_or_sections: Places) -> list[DistArray]:
    """``numpy.dsplit``."""
    return split(DistArray(_of_axes(ary, 3, "dsplit")), indices_or_sections, 2)


def _of_axes(ary: object, count: int, name: str) -> Expr:
    node = expression_of(ary)
    if node.ndim < count:
        raise ShapeError(f"{name} of shape {node.shape}: give an array of {count} or more axes")
    return node


@implements(np.unstack)
def unstack(x: object, /, *, axis: int = 0) -> tuple[DistArray, ...]:
    """``numpy.unstack``."""
    node = expression_of(x)
    if not node.shape:
        raise ShapeError("unstack: an array without axes has no parts")
    place = one_axis(axis, node.ndim)
    rest = (*node.shape[:place], *node.shape[place + 1 :])
    parts = (sliced(node, place, slice(number, number + 1)) for number in range(node.shape[place]))
    return tuple(wrap(reshaped(part, rest)) for part in parts)
