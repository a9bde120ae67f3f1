"""What ``N[...]`` gives of a nested array: a segment, an element of one, or some segments in any order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.blocks.grid import regular_cuts
from matnb.errors import IndexingError, LoopBodyError
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import arange, asarray
from matnb.lazy.evaluator import asked, evaluator
from matnb.lazy.indexing.compress import compressed
from matnb.nested.cutting import nested
from matnb.nested.segments import Cuts
from matnb.nested.structure import (
    Structure,
    check_same,
    is_nested,
    spread,
    structure_from_counts,
    structure_from_offsets,
)

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray

_GIVE = "give an integer, a slice, booleans or integers for segments, or two integers for an element"


def indexed(array: NestedArray, key: object) -> DistArray | NestedArray:
    """Return a segment, an element, or a nested array of some segments.

    Parameters
    ----------
    key
        An integer; two integers, a segment and a place or position in it; a slice; one boolean a segment; or
        integers, of which each gives a segment.

    Raises
    ------
    IndexingError
        For a segment or element that there is not, with both numbers, and for another key.
    LoopBodyError
        For a key that depends on the state of a loop.
    """
    parts = key if isinstance(key, tuple) else (key,)
    for part in parts:
        _check_free(part)
    if len(parts) > 2:
        raise IndexingError(f"{len(parts)} indices of a nested array, which has two: a segment and a place")
    if len(parts) == 2:
        return _element(array, *parts)
    if not parts:
        return array
    (part,) = parts
    if isinstance(part, slice):
        return _range(array, part)
    number = _number(part)
    if number is not None:
        begin, end = _bounds(array, number)
        return array.values[begin:end]
    return _chosen(array, part)


def _check_free(part: object) -> None:
    inner = (part.start, part.stop, part.step) if isinstance(part, slice) else (part,)
    arrays = [getattr(one, "values", None) if is_nested(one) else one for one in inner]
    if any(isinstance(one, DistArray) and one.expression.free for one in arrays):
        raise LoopBodyError(
            "an index of a nested array depends on the state of a loop, and shapes are fixed inside a loop's "
            "body: take the segments before the loop, or values by N.values[places]"
        )


def _number(part: Any) -> int | None:
    # The integer that an index is; None for what may be an array.
    is_scalar = isinstance(part, int | np.integer | float | complex | np.generic | str) or part is None
    if not is_scalar and part is not Ellipsis and getattr(part, "shape", None) != ():
        return None
    dtype = getattr(part, "dtype", None)
    if isinstance(part, bool) or (dtype is not None and dtype.kind not in "iu"):
        raise IndexingError(f"an index of a nested array has dtype {dtype or bool.__name__}: {_GIVE}")
    try:
        return operator.index(part)
    except TypeError:
        raise IndexingError(f"an index of a nested array is {part!r}: {_GIVE}") from None


def _bounds(array: NestedArray, segment: int) -> tuple[int, int]:
    # Where a segment begins and ends among the values: two offsets are read.
    count = array.num_segments
    if not -count <= segment < count:
        raise _no_segment(segment, count)
    first = segment % count
    begin, end = asked(array.offsets[first : first + 2].expression, "where a segment begins").tolist()
    return begin, end


def _no_segment(segment: int, count: int) -> IndexingError:
    return IndexingError(f"segment {segment} of {count:,}{_bounds_text(count)}")


def _bounds_text(length: int) -> str:
    return f": give {-length} to {length - 1}" if length else ""


def _element(array: NestedArray, segment: object, place: object) -> DistArray:
    number, wanted = _number_of(segment), _number_of(place)
    begin, end = _bounds(array, number)
    if array._positions is None:
        if not begin - end <= wanted < end - begin:
            raise IndexingError(
                f"N[{number}, {wanted}]: the segment has length {end - begin:,}{_bounds_text(end - begin)}"
            )
        return array.values[(begin if wanted >= 0 else end) + wanted]
    length = end - begin
    found = length
    if length:
        is_there = array.positions[begin:end] == wanted
        first = np.where(is_there, arange(length), length).min()
        found = int(asked(handle_of(first).expression, "where a position is"))
    if found == length:
        raise IndexingError(
            f"N[{number}, {wanted}]: none of the {length:,} values of the segment has position {wanted}"
        )
    return array.values[begin + found]


def _number_of(part: object) -> int:
    number = None if isinstance(part, slice) else _number(part)
    if number is None:
        raise IndexingError(
            "two indices of a nested array are a segment and a place, both integers: for a part of a segment "
            "give N[segment][start:stop], for a place of every segment N.T[place]"
        )
    return number


def _range(array: NestedArray, part: slice) -> NestedArray:
    try:
        start, stop, step = part.indices(array.num_segments)
    except (TypeError, ValueError) as error:
        raise IndexingError(f"an index of a nested array is {part!r}: {error}") from None
    taken = range(start, stop, step)
    if step != 1:
        return _listed(array, arange(start, stop, step))
    if len(taken) == array.num_segments:
        return array
    first, last = (start, stop) if taken else (0, 0)
    ends = array.offsets[asarray(np.array([first, last]))]
    begin, end = asked(ends.expression, "where segments begin").tolist()
    structure = structure_from_offsets(array.offsets[first : last + 1] - begin, "N[start:stop]")
    return _taken(array, structure, lambda flat: flat[begin:end])


def _chosen(array: NestedArray, part: object) -> NestedArray:
    if is_nested(part):
        return _filtered(array, part)  # type: ignore[arg-type]  # checked there
    given = part if isinstance(part, DistArray) else asarray(np.asarray(part))
    if not given.size and isinstance(part, list):
        given = asarray(np.empty(0, np.int64))
    if given.ndim != 1:
        raise IndexingError(f"an index of a nested array has shape {given.shape}: {_GIVE}")
    if given.dtype.kind == "b":
        return _masked(array, given)
    if given.dtype.kind not in "iu":
        raise IndexingError(f"an index of a nested array has dtype {given.dtype}: {_GIVE}")
    if not given.size:
        return _range(array, slice(0, 0))
    return _listed(array, given)


def _masked(array: NestedArray, mask: DistArray) -> NestedArray:
    # Values stay where they are: each block keeps those of its segments that are chosen.
    if mask.shape[0] != array.num_segments:
        raise IndexingError(
            f"{mask.shape[0]:,} booleans for {array.num_segments:,} segments: give one for each"
        )
    counts = wrap(compressed(array.counts.expression, mask.expression))
    structure = structure_from_counts(counts, "N[mask]")
    if not structure.num_values:
        return _taken(array, structure, lambda flat: flat[:0])
    kept = array._spread(mask).expression
    return _taken(array, structure, lambda flat: wrap(compressed(flat.expression, kept)))


def _filtered(array: NestedArray, mask: NestedArray) -> NestedArray:
    # The values of each segment for which a mask of the same segments is true, as in Awkward Array.
    if type(mask) is not type(array) or mask.dtype.kind != "b":
        raise IndexingError("a nested index of a nested array is boolean and has no more levels, as N > 0")
    check_same(array._structure, mask._structure, "N[mask]")
    have_both = array._positions is not None and mask._positions is not None
    if have_both and not are_alike(array, mask, "N[mask]"):
        raise IndexingError("N[mask]: the booleans are at other positions: give those of the array, as N > 0")
    counts = mask.sum()
    evaluator().persist([mask.values.expression, counts.expression])
    structure = structure_from_counts(counts, "N[mask]")
    return _taken(array, structure, lambda flat: flat[mask.values] if structure.num_values else flat[:0])


def _listed(array: NestedArray, order: DistArray) -> NestedArray:
    count = array.num_segments
    if not order.size:
        return _range(array, slice(0, 0))
    ends = handle_of(np.stack([order.min(), order.max()]))
    for one in asked(ends.expression, "which segments are taken").tolist():
        if not -count <= one < count:
            raise _no_segment(one, count)
    counts: DistArray = array.counts[order]
    structure = structure_from_counts(counts, "N[order]")
    if not structure.num_values:
        return _taken(array, structure, lambda flat: flat[:0])
    places = _places_of(structure, array.offsets[:-1][order], array)
    return _taken(array, structure, lambda flat: flat[places])


def are_alike(one: NestedArray, other: NestedArray, what: str) -> bool:
    """Tell whether two arrays have values at the same positions, which is asked for where it is not known.

    Raises
    ------
    ShapeError
        For different numbers of segments.
    """
    if one.num_segments != other.num_segments:
        check_same(one._structure, other._structure, what)
    is_known = one.offsets.expression is other.offsets.expression
    if is_known and one.positions.expression is other.positions.expression:
        return True
    if one.num_values != other.num_values or one.longest != other.longest:
        return False
    if not one.num_values:
        return True
    differs: Any = np.concatenate([one.offsets != other.offsets, one.positions != other.positions])
    return not bool(asked(differs.any().expression, "whether positions are the same"))


def _places_of(structure: Structure, starts: DistArray, source: NestedArray) -> DistArray:
    # Where the values of a structure are among those of an array: of each segment, from its start.
    cuts = _regular(structure, source)
    shift: DistArray = starts - structure.offsets[:-1]
    places: DistArray = spread(structure, shift, cuts) + arange(structure.num_values)
    return places


def placed(
    source: NestedArray, structure: Structure, values: DistArray, positions: DistArray | None = None
) -> NestedArray:
    """Return values in the segments of a structure that was made from an array's; in loops, too."""
    if values.expression.free and structure.num_values:  # nothing is planned yet
        structure = replace(structure, cuts=_regular(structure, source))
        return type(source)(values, structure, "uniform", positions)
    return nested(type(source), values, structure, "auto", "the new lengths", positions)


def _taken(source: NestedArray, structure: Structure, taken: Callable[[DistArray], DistArray]) -> NestedArray:
    positions = None if source._positions is None else taken(source._positions)
    return placed(source, structure, taken(source.values), positions)


def _regular(structure: Structure, source: NestedArray) -> Cuts:
    # Cuts into blocks about as long as those of an array.
    count, blocks = structure.num_values, len(source._structure.cuts) - 1
    return regular_cuts(count, -(-count * blocks // source.num_values) if source.num_values else 1)
