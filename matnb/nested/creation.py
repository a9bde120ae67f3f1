"""Nested arrays from values and lengths, lists, rows of a sparse matrix, and keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, overload

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError, suggestion
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import zeros
from matnb.lazy.fields import has_fields
from matnb.lazy.functions.grouping import GroupBy, Way, groupby
from matnb.lazy.indexing.compress import parts_of, picked_parts
from matnb.lazy.reductions import reduce
from matnb.lazy.registry import implements
from matnb.nested.array import NestedArray
from matnb.nested.cutting import machine_for, nested
from matnb.nested.deep import AnyNested, DeepNestedArray, grouped
from matnb.nested.strategy import as_given
from matnb.nested.strategy_log import strategies_of
from matnb.nested.structure import (
    as_vector,
    is_nested,
    is_one_level,
    structure_from_counts,
    structure_from_offsets,
)
from matnb.ops.pattern import Pattern
from matnb.ops.selecting import StoredEntries
from matnb.session.current import current_session
from matnb.tables.results import shows

_STRATEGIES = ("auto", "segmented", "uniform")


@overload
def unflatten(values: AnyNested, counts: object, *, strategy: str = ...) -> DeepNestedArray: ...  # type: ignore[overload-overlap]
@overload
def unflatten(values: object, counts: object, *, strategy: str = ...) -> NestedArray: ...
def unflatten(values: object, counts: object, *, strategy: str = "auto") -> NestedArray | DeepNestedArray:
    """Return values divided into segments of given lengths.

    Parameters
    ----------
    values
        n numbers or booleans, one after the other; or a nested array of n segments.
    counts
        The length of each segment: whole numbers of at least 0 whose sum is n.
    strategy
        How to cut the values: "segmented", between segments, so that nothing along a segment communicates;
        "uniform", into equal shares, whatever the lengths; "auto" takes the one of the smaller predicted
        cost. Results are the same, to the last bit but for scans of floats.

    Returns
    -------
    NestedArray
        Its lengths are summarized now; values are lazy. Of a nested array a :class:`DeepNestedArray`, whose
        segments are made of those.

    Raises
    ------
    ShapeError
        If the lengths do not add up to the number of values, or one is negative.
    DTypeError
        For values that are no numbers of at most 64 bits, or lengths that are no whole numbers.
    OptionError
        For another strategy.
    LoopBodyError
        For lengths that depend on the state of a loop.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.unflatten([1.0, 2.0, 3.0], [1, 0, 2]).tolist()
    [[1.0], [], [2.0, 3.0]]
    """
    _check_strategy(strategy)
    if is_nested(values):
        structure = structure_from_counts(counts, "unflatten: counts")
        return grouped(values, structure, strategy, "unflatten: counts")
    flat = as_vector(values, "unflatten: values")
    structure = structure_from_counts(counts, "unflatten: counts")
    return nested(NestedArray, flat, structure, strategy, "unflatten: counts")


def from_offsets(values: object, offsets: object, *, strategy: str = "auto") -> NestedArray:
    """Return values divided into segments that begin at given places.

    Parameters
    ----------
    values, strategy
        As of :func:`unflatten`.
    offsets
        Where each segment begins, from 0 on, and where the last one ends: one more than there are segments,
        as a SciPy CSR matrix has them in ``indptr``.

    Raises
    ------
    ShapeError, DTypeError, OptionError, LoopBodyError
        As :func:`unflatten`, and for offsets that decrease or do not begin with 0.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.from_offsets([1.0, 2.0, 3.0], [0, 1, 1, 3]).tolist()
    [[1.0], [], [2.0, 3.0]]
    """
    _check_strategy(strategy)
    flat = as_vector(values, "from_offsets: values")
    structure = structure_from_offsets(offsets, "from_offsets: offsets")
    return nested(NestedArray, flat, structure, strategy, "from_offsets: offsets")


def from_lists(lists: Sequence[Sequence[float]], *, strategy: str = "auto") -> NestedArray:
    """Return a list of lists of numbers, or of arrays, as a nested array.

    Parameters
    ----------
    lists
        A list, or what can be gone through, of lists of numbers or booleans or of arrays of one axis.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray
        Of the dtype in which NumPy joins what is not empty; float64 where all are empty lists.

    Raises
    ------
    ShapeError
        For what is not one list of lists of numbers.
    DTypeError, OptionError
        As :func:`unflatten`.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.from_lists([[1, 2], [], [3]]).count().compute()
    array([2, 0, 1])
    """
    try:
        given = list(lists)
    except TypeError:
        raise ShapeError(f"from_lists: {type(lists).__name__}: give a list of lists of numbers") from None
    parts = [_part(one, place) for place, one in enumerate(given)]
    filled = [one for one in parts if one.size]
    # Where all are empty, arrays have a dtype and lists have none.
    filled = filled or [part for one, part in zip(given, parts, strict=True) if hasattr(one, "dtype")]
    values = np.concatenate(filled) if filled else np.empty(0)
    return unflatten(values, [one.size for one in parts], strategy=strategy)


def _part(one: Sequence[float], place: int) -> np.ndarray:
    try:
        part = np.asarray(one)
    except ValueError:  # lists of unequal lengths
        part = np.empty((0, 0))
    if part.ndim == 1:
        return part
    what = f"has shape {part.shape}" if part.size else "has lists in it"
    raise ShapeError(
        f"from_lists: element {place} {what}: give a list of numbers, or make nested arrays of nested ones "
        "with mn.nested.unflatten(N, counts)"
    )


def from_rows(A: object, *, strategy: str = "auto") -> NestedArray:
    """Return the stored entries of a sparse matrix as a nested array: a segment a row.

    Parameters
    ----------
    A
        Sparse, of shape (m, n): a DistArray or SciPy's. Stored zeros are entries like any other.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray
        m segments, whose ``positions`` are the columns of their values, int64, ascending. Values stay in the
        memory of the matrix where it is cut between rows.

    Raises
    ------
    DTypeError
        For a dense array.
    LoopBodyError
        For a matrix that depends on the state of a loop.

    Examples
    --------
    >>> import scipy.sparse as sp, matnb as mn
    >>> N = mn.nested.from_rows(sp.csr_array([[0.0, 2.0], [0.0, 0.0], [3.0, 4.0]]))
    >>> N.tolist(), N.positions.tolist()
    ([[2.0], [], [3.0, 4.0]], [1, 0, 1])
    """
    _check_strategy(strategy)
    rows = handle_of(A)
    if not rows.sparse:
        raise DTypeError(
            f"from_rows: a dense array of shape {rows.shape}: give a sparse matrix, or its elements and the "
            "length of each row to mn.nested.unflatten"
        )
    node = rows.expression
    counts = wrap(reduce(node, "stored", 1))
    structure = structure_from_counts(counts, "from_rows: the number of entries of each row")
    before = parts_of(node, node)
    after = picked_parts(Pattern(node, np.dtype(np.bool_)), before)
    structure = replace(structure, knots=structure.knots.with_places(before, after))
    values = wrap(StoredEntries(node, "values", before, after))
    positions = wrap(StoredEntries(node, "columns", before, after))
    cuts = tuple(sorted(set(after)))
    is_even = np.diff(cuts).max(initial=0) * (len(cuts) - 1) <= 2 * structure.num_values
    if structure.num_values and strategy == "auto" and is_even:
        choice = as_given(structure.knots, structure.longest, cuts, machine_for(structure))
        strategies_of(current_session()).add(structure.knots, choice)
        return NestedArray(values, replace(structure, cuts=cuts, choice=choice), "segmented", positions)
    return nested(NestedArray, values, structure, strategy, "from_rows: entries", positions)


@shows()
@has_fields
class KeyedSegments(NamedTuple):
    """Distinct keys, ascending, and for each the values that have it: ``segments[k]`` of ``keys[k]``."""

    keys: DistArray | tuple[DistArray, ...]
    segments: NestedArray


def from_keys(keys: object, values: object) -> KeyedSegments:
    """Return values divided by their keys into segments, in the order of values: a stable sort by key.

    Parameters
    ----------
    keys
        n real numbers or booleans, in any order; or a tuple of such arrays. All NaN are one key, the last.
    values
        n numbers or booleans.

    Returns
    -------
    KeyedSegments
        The distinct ``keys`` (of several keys a tuple of arrays) and the ``segments``, one for each. For
        ``matnb.groupby(keys)`` that is there already, ``groups.nested(values)`` gives the segments.

    Raises
    ------
    ShapeError, DTypeError
        As :func:`matnb.groupby`, and unless there is one value a key.
    LoopBodyError
        For keys that depend on the state of a loop.

    Examples
    --------
    >>> import matnb as mn
    >>> keys, segments = mn.nested.from_keys([7, 5, 7], [1.0, 2.0, 3.0])
    >>> keys.tolist(), segments.tolist()
    ([5, 7], [[2.0], [1.0, 3.0]])
    """
    several = keys if isinstance(keys, tuple) else (keys,)
    flat = tuple(as_vector(one, "from_keys: keys") for one in several)
    groups = groupby(flat if isinstance(keys, tuple) else flat[0])
    return KeyedSegments(groups.keys, groups.nested(as_vector(values, "from_keys: values")))


@implements(GroupBy.nested)
def _of_groups(values: DistArray, groups: Way) -> NestedArray:
    if values.ndim != 1:
        raise ShapeError(f"nested: values of groups have shape {values.shape}: give one axis")
    structure = structure_from_counts(wrap(groups.counted()), "nested: the number of values of each group")
    order: Any = np.argsort(wrap(groups.numbered()[0]), kind="stable")
    taken = values[order]
    return nested(NestedArray, taken, structure, "auto", "nested: groups")


def merge(*arrays: object, strategy: str = "auto") -> NestedArray:
    """Return flat arrays as the segments of one nested array: segment k is the k-th array.

    Parameters
    ----------
    arrays
        Numbers or booleans in one axis each; their common dtype is NumPy's. Nested arrays are refused:
        ``N.flatten()`` is one as a single segment.
    strategy
        As of :func:`matnb.nested.unflatten`.

    Returns
    -------
    NestedArray
        Their lengths are known, so nothing is computed.

    Raises
    ------
    ShapeError, DTypeError
        For other than one axis, and for what is no number of at most 64 bits, with its place.
    UnsupportedError
        For a nested array, with its place.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.nested.merge(mn.arange(3), mn.arange(0), mn.arange(2)).tolist()
    [[0, 1, 2], [], [0, 1]]
    """
    for place, one in enumerate(arrays):
        if is_one_level(one):
            raise UnsupportedError(
                f"merge: array {place} is nested, where each array is one segment: give N.flatten() to make "
                "one segment of it"
            )
    flat = [as_vector(one, f"merge: values of array {place}") for place, one in enumerate(arrays)]
    structure = structure_from_counts([one.shape[0] for one in flat], "merge")
    values = handle_of(np.concatenate(flat)) if flat else zeros(0)
    return nested(NestedArray, values, structure, strategy, "merge: arrays")


def _check_strategy(strategy: str) -> None:
    if strategy not in _STRATEGIES:
        raise OptionError(f"strategy={strategy!r}; {suggestion(str(strategy), _STRATEGIES)}")
