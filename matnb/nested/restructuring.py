"""Other structures from nested arrays: values combined or moved to new places, transposes, merged arrays.

Operations are those of "Partition Balancing in Distributed Nested Data-Parallel Systems" (section 3), as are
the rules which structures follow from the one before and which are counted.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import (
    DTypeError,
    IndexingError,
    LoopBodyError,
    OptionError,
    ShapeError,
    UnsupportedError,
)
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import arange, ones, zeros
from matnb.lazy.evaluator import asked
from matnb.lazy.functions.grouping import scatter_reduce
from matnb.nested.cutting import nested
from matnb.nested.indexing import are_alike, placed
from matnb.nested.scans import only_monoid
from matnb.nested.structure import Structure, as_vector, check_same, is_one_level, structure_from_counts

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray

Target = tuple[DistArray, DistArray]  # segments, and places in them


def combine(array: NestedArray, target: object, monoid: object, counts: object, stable: bool) -> NestedArray:
    """Return values moved to new places and combined by a monoid where they meet, as NestedArray.combine."""
    name = only_monoid(monoid, "combine")
    segments, places = _target(array, target, "combine")
    structure = _structure(segments, places, counts, "combine")
    labels = _labels(structure, segments, places, "combine")
    if not stable:
        values = scatter_reduce(array.values, labels, structure.num_values, name)
        return placed(array, structure, values)
    if labels.expression.free:
        raise LoopBodyError(
            "combine: stable=True sorts values by where they go, and the target depends on the state of a "
            "loop: combine before the loop, or without stable"
        )
    meeting = structure_from_counts(_number(labels, structure.num_values), "combine")
    order: Any = np.argsort(labels, kind="stable")
    return placed(
        array, structure, nested(type(array), array.values[order], meeting, "auto", "combine").reduce(name)
    )


def shuffle(array: NestedArray, target: object, counts: object) -> NestedArray:
    """Return values moved to new places, one to each, as NestedArray.shuffle does."""
    segments, places = _target(array, target, "shuffle")
    if segments.expression.free or places.expression.free:
        raise LoopBodyError(
            "shuffle: the target depends on the state of a loop, where it cannot be checked that each place "
            "gets one value: shuffle before the loop, or N.combine(target, counts=counts)"
        )
    structure = _structure(segments, places, counts, "shuffle")
    labels = _labels(structure, segments, places, "shuffle")
    total = structure.num_values
    if total != array.num_values or (total and int(_number(labels, total).max()) > 1):
        raise _not_one_to_one(structure, labels)
    return placed(array, structure, _moved(array.values, labels, total))


def _moved(values: DistArray, places: DistArray, count: int) -> DistArray:
    # Each value at its place among so many: of none the place is another's.
    moved = zeros(count, values.dtype)
    if count:
        moved[places] = values
    return moved


def _number(labels: DistArray, length: int) -> DistArray:
    return scatter_reduce(ones(labels.shape[0], np.int64), labels, length)


def _target(array: NestedArray, target: object, what: str) -> Target:
    if not isinstance(target, tuple | list) or len(target) != 2:
        raise OptionError(f"{what}: the target is no pair: give (segments, places), integers for each value")
    found = []
    for name, one in zip(("segments", "places"), target, strict=True):
        if is_one_level(one):
            check_same(array._structure, one._structure, f"{what}: {name} of the target")
            one = one.values
        flat = as_vector(one, f"{what}: {name} of the target")
        if flat.shape[0] != array.num_values:
            raise ShapeError(f"{what}: {flat.shape[0]:,} {name} for {array.num_values:,} values")
        if flat.dtype.kind not in "iu" and flat.size:
            raise DTypeError(f"{what}: {name} of the target have dtype {flat.dtype}: give integers")
        found.append(flat.astype(np.int64))
    return found[0], found[1]


def _structure(segments: DistArray, places: DistArray, counts: object, what: str) -> Structure:
    # Of lengths that are given, or counted: the largest place and one.
    if counts is not None:
        return structure_from_counts(counts, f"{what}: counts")
    if segments.expression.free or places.expression.free:
        raise LoopBodyError(
            f"{what}: the target depends on the state of a loop, and shapes are fixed inside a loop's body: "
            "give counts="
        )
    if not segments.size:
        return structure_from_counts([], what)
    facts: Any = np.stack([segments.min(), segments.max(), places.min()])
    least, most, first = asked(facts.expression, "the lengths of new segments").tolist()
    if least < 0 or first < 0:
        number = int(np.argmax(np.minimum(segments, places) < 0))
        raise _outside(number, int(segments[number]), int(places[number]), "", what)
    lengths = np.maximum(scatter_reduce(places + 1, segments, most + 1, "max"), 0)
    return structure_from_counts(lengths, what)


def _labels(structure: Structure, segments: DistArray, places: DistArray, what: str) -> DistArray:
    # Where each value goes among all new ones.
    count, num_values = structure.num_segments, segments.shape[0]
    if not num_values:
        return segments
    if not count:
        raise _outside(0, int(segments[0]), int(places[0]), " of 0", what)
    within: Any = np.clip(segments, 0, count - 1)
    lengths: Any = structure.counts[within]
    labels: Any = structure.offsets[:-1][within] + places
    is_outside = (within != segments) | (places < 0) | (places >= lengths)
    if is_outside.expression.free:  # found when it runs, by the label
        return handle_of(np.where(is_outside, -1, labels))
    first: Any = np.where(is_outside, arange(num_values), num_values).min()
    number = int(asked(first.expression, "whether all places are there"))
    if number == num_values:
        return labels  # type: ignore[no-any-return]  # operators of arrays give Any
    segment = int(segments[number])
    is_segment = 0 <= segment < count
    bound = f", which has length {int(structure.counts[segment]):,}" if is_segment else f" of {count:,}"
    raise _outside(number, segment, int(places[number]), bound, what)


def _outside(number: int, segment: int, place: int, bound: str, what: str) -> IndexingError:
    return IndexingError(f"{what}: value {number:,} would go to place {place} of segment {segment}{bound}")


def _not_one_to_one(structure: Structure, labels: DistArray) -> ShapeError:
    # In order, labels are 0, 1, 2 and so on as far as each place gets one value.
    count = labels.shape[0]
    label, order = 0, None
    if count:
        order = np.argsort(labels)
        differs: Any = labels[order] != arange(count)
        label = int(np.where(differs, arange(count), count).min())
    found = int(labels[order[label]]) if order is not None and label < count else label + 1
    label = min(label, found)
    ends: Any = np.searchsorted(structure.offsets, label, side="right")
    segment = int(ends) - 1
    name = f"place {label - int(structure.offsets[segment])} of segment {segment}"
    if found > label or order is None:
        return ShapeError(f"shuffle: no value goes to {name}")
    first = np.where(labels == label, arange(count), count).min()
    last = np.where(labels == label, arange(count), -1).max()
    return ShapeError(
        f"shuffle: values {int(first):,} and {int(last):,} both go to {name}; combine them by a monoid with "
        "N.combine"
    )


# Transposes.


def transpose(array: NestedArray, num_segments: int | None) -> NestedArray:
    """Return a nested array in which places and segments have changed roles, as NestedArray.transpose."""
    if num_segments is not None:
        num_segments = _whole(num_segments)
    positions = array._positions
    count, length, num_values = array.num_segments, array.longest, array.num_values
    if positions is not None:
        return _sparse_transpose(array, positions, num_segments)
    if num_segments is not None and num_segments < length:
        raise ShapeError(f"transpose: num_segments={num_segments}, but the longest segment has {length:,}")
    width = length if num_segments is None else num_segments
    structure = structure_from_counts(_num_longer(array, width), "transpose")
    if not num_values:
        return placed(array, structure, array.values)
    if num_values == count * length:  # a matrix
        values: Any = array.values.reshape(count, length).T.reshape(num_values)
    else:
        # Equal places stay in the order of segments.
        values = array.values[np.argsort(array.positions, kind="stable")]
    return placed(array, structure, values)


def _whole(num_segments: int) -> int:
    try:
        return operator.index(num_segments)
    except TypeError:
        raise OptionError(f"transpose: num_segments={num_segments!r}: give an integer") from None


def _num_longer(array: NestedArray, width: int) -> object:
    # How many segments are longer than each place, which follows from the structure.
    count, length = array.num_segments, array.longest
    if not length:
        return np.zeros(width, np.int64)
    if array.num_values == count * length:
        return np.repeat([count, 0], [length, width - length])
    by_length: Any = _number(array.counts, width + 1)
    return count - np.cumsum(by_length[:-1])


def _sparse_transpose(array: NestedArray, positions: DistArray, num_segments: int | None) -> NestedArray:
    # Its segments are counted: which positions there are is no part of the structure.
    width = 0
    if positions.size:
        most = handle_of(positions.max())
        width = int(asked(most.expression, "how many segments a transpose has")) + 1
    if num_segments is not None and num_segments < width:
        raise ShapeError(f"transpose: num_segments={num_segments}, but the largest position is {width - 1:,}")
    width = width if num_segments is None else num_segments
    if not positions.size:
        empty = structure_from_counts(np.zeros(width, np.int64), "transpose")
        return placed(array, empty, array.values, positions)
    structure = structure_from_counts(_number(positions, width), "transpose")
    order: Any = np.argsort(positions, kind="stable")
    segments = array._spread(arange(array.num_segments))
    return placed(array, structure, array.values[order], segments[order])


# Arrays with positions side by side.

_WHERE_BOTH = ("multiply", "logical_and", "bitwise_and")


def united(inputs: Sequence[object], what: str) -> list[Any]:
    """Return operands with the nested arrays among them at the same positions, of which some had others.

    That is where any has a value, and the others count as 0 there; of products, where all have one. Which
    positions these are is asked for, but not of arrays whose positions are the same expression.

    Raises
    ------
    ShapeError
        For different numbers of segments.
    UnsupportedError
        For so many segments and positions that pairs of them have no number of 64 bits.
    """
    arrays = [one for one in inputs if is_one_level(one)]
    first = arrays[0]
    if all(are_alike(first, one, what) for one in arrays[1:]):
        same = [first._like(one.values) for one in arrays]
    else:
        same = _at_all_positions(arrays, what)
    found = iter(same)
    return [next(found) if is_one_level(one) else one for one in inputs]


def _at_all_positions(arrays: Sequence[NestedArray], what: str) -> list[NestedArray]:
    # A number for each segment and position; in ascending order they are one segment after the other.
    first, count = arrays[0], arrays[0].num_segments
    width = 1 + max(int(one.positions.max()) for one in arrays if one.num_values)
    if count * width >= 1 << 63:
        raise UnsupportedError(
            f"{what}: arrays of {count:,} segments whose positions differ and go up to {width - 1:,}: bring "
            "them to smaller positions, as by np.unique(positions, return_inverse=True)"
        )
    pairs: list[Any] = [one._spread(arange(count)) * width + one.positions for one in arrays]
    numbers: Any
    number_of_each: Any
    numbers, number_of_each = np.unique(np.concatenate(pairs), return_counts=True)
    moved = [
        _moved(one.values, np.searchsorted(numbers, own), numbers.size)
        for one, own in zip(arrays, pairs, strict=True)
    ]
    if what in _WHERE_BOTH:
        kept: Any = np.flatnonzero(number_of_each == len(arrays))
        numbers, moved = numbers[kept], [one[kept] for one in moved]
    structure = structure_from_counts(_number(numbers // width, count), what)
    return [placed(first, structure, one, numbers % width) for one in moved]
