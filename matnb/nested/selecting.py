"""Values picked from each segment: the distinct ones, and the largest or smallest."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from matnb.errors import DTypeError, LoopBodyError, ShapeError
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.evaluator import evaluator
from matnb.lazy.fields import has_fields
from matnb.nested.cutting import nested
from matnb.nested.structure import is_one_level, structure_from_counts
from matnb.tables.results import shows

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray


@shows()
@has_fields
class UniqueSegments(NamedTuple):
    """The distinct values of each segment, ascending, and how often each is there."""

    values: NestedArray
    counts: NestedArray


@shows()
@has_fields
class TopSegments(NamedTuple):
    """The first values of each segment in an order, and their places within it."""

    values: NestedArray
    places: NestedArray


def unique(segments: NestedArray) -> NestedArray:
    """Return the distinct values of each segment, ascending, as ``np.unique`` of each; NaN once, the last.

    Raises
    ------
    DTypeError
        For complex values, and for what is no nested array of one level.
    LoopBodyError
        For values that depend on the state of a loop.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.unique(mn.nested.from_lists([[2, 1, 2], [], [5]])).tolist()
    [[1, 2], [], [5]]
    """
    return _distinct(segments)[0]


def unique_counts(segments: NestedArray) -> UniqueSegments:
    """Return the distinct values of each segment and how often each is there.

    As ``np.unique_counts`` of each segment; NaN is one value, the last.

    Raises
    ------
    DTypeError, LoopBodyError
        As :func:`unique`.

    Examples
    --------
    >>> import matnb as mn
    >>> found = mn.nested.unique_counts(mn.nested.from_lists([[2, 1, 2], [], [5]]))
    >>> found.values.tolist(), found.counts.tolist()
    ([[1, 2], [], [5]], [[1, 2], [], [1]])
    """
    values, is_first = _distinct(segments)
    if not values.num_values:
        return UniqueSegments(values, values.with_values(np.empty(0, np.int64)))
    firsts: Any = np.flatnonzero(is_first)
    # Every segment begins with a distinct value, so that the last one ends where the next begins.
    counts = np.diff(np.concatenate([firsts, np.array([segments.num_values])]))
    return UniqueSegments(values, values.with_values(counts))


def _check_one_level(segments: object, what: str) -> None:
    if not is_one_level(segments):
        raise DTypeError(
            f"{what}: {type(segments).__name__} is no nested array of one level: make one with "
            "mn.nested.from_lists; of more levels, use its own methods, or N.flatten()"
        )


def _distinct(segments: NestedArray) -> tuple[NestedArray, DistArray]:
    # The distinct values, and where in the sorted segments they begin.
    _check_one_level(segments, "unique")
    _refuse_in_loop(segments, "unique")
    ordered = segments.sort()
    values: Any = ordered.values
    if not segments.num_values:
        return ordered, values.astype(np.bool_)
    differ: Any = values[1:] != values[:-1]
    if values.dtype.kind == "f":
        differ &= ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    is_first: Any = np.concatenate([np.ones(1, np.bool_), differ]) | (ordered.positions == 0)
    counts = ordered.with_values(is_first).sum()
    evaluator().persist([values.expression, is_first.expression, counts.expression])
    return _picked(segments, values, is_first, counts, "unique"), is_first


def _refuse_in_loop(segments: NestedArray, what: str) -> None:
    if segments.values.expression.free:
        raise LoopBodyError(
            f"{what} gives segments whose lengths depend on the state of a loop, and shapes are fixed inside "
            "a loop's body: do it after the loop, or sort the segments"
        )


def _picked(source: NestedArray, values: Any, mask: Any, counts: DistArray, what: str) -> NestedArray:
    # Where a mask is true, in segments of what is left of each.
    return nested(type(source), values[mask], structure_from_counts(counts, what), "auto", what)


def topk(segments: NestedArray, k: int, largest: bool = True) -> TopSegments:
    """Return the ``k`` largest or smallest values of each segment, in order, and their places.

    Parameters
    ----------
    segments
        What to look through; complex values have no order.
    k
        An integer of at least 0; a segment with fewer values is returned whole.
    largest
        True for the largest, in descending order; False for the smallest, in ascending order.

    Returns
    -------
    TopSegments
        ``values`` and ``places``, nested arrays of the same segments. Places are counted within the segment,
        int64; of the rows of a sparse matrix they are columns, such as the ``k`` nearest neighbors of each
        vertex. NaN is larger than any number, as in :func:`matnb.topk`; of equal values the earlier comes
        first.

    Raises
    ------
    ShapeError, DTypeError
        For ``k`` below 0 or no integer, for complex values, and for what is no nested array of one level.
    LoopBodyError
        For values that depend on the state of a loop, where a segment has more than ``k``.

    Examples
    --------
    >>> import matnb as mn
    >>> top = mn.nested.topk(mn.nested.from_lists([[3, 1, 9, 9], [], [4]]), 2)
    >>> top.values.tolist(), top.places.tolist()
    ([[9, 9], [], [4]], [[2, 3], [], [0]])
    """
    _check_one_level(segments, "topk")
    try:
        count = operator.index(k)
    except TypeError:
        raise DTypeError(f"topk: k={k!r}; give an integer") from None
    if count < 0:
        raise ShapeError(f"topk: k={count}; give at least 0")
    values, places = _descending(segments) if largest else (segments.sort(), segments._places())
    if segments.longest > count:
        _refuse_in_loop(segments, "topk")
        counts: Any = np.minimum(segments.counts, count)
        mask: Any = values.positions < count
        evaluator().persist([one.expression for one in (values.values, places.values, mask, counts)])
        values = _picked(segments, values.values, mask, counts, "topk")
        places = values.with_values(places.values[mask])
    return TopSegments(values, segments._columns(places))


def _descending(segments: NestedArray) -> tuple[NestedArray, NestedArray]:
    # Values and their places in descending order: a stable sort of the segments from their ends, read from
    # its end, has the earlier of equal values first.
    if not segments.num_values:
        return segments.sort(), segments._places()
    turned = segments._turned()
    values, places = (
        type(segments)(handle_of(np.flip(one.values)), segments._structure, segments.strategy)
        for one in (turned.sort(), turned._places())
    )
    last: Any = segments.counts - 1
    return values, last - places
