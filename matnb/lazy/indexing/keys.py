"""An index as a user gives it, taken apart: what is basic, numbers of run time, and lists of places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from matnb.errors import IndexingError
from matnb.expr.nodes import Expr, Key, Literal, Shape, broadcast_shapes
from matnb.lazy.indexing.canonical import normalize_key
from matnb.lazy.ufuncs import literal


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
            if part.dtype.kind not in "iu":
                raise IndexingError(
                    f"an index of dtype {part.dtype}: give whole numbers, or convert with astype"
                )
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
