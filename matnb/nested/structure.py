"""How values are divided into segments: offsets on the workers, and a summary of them in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from matnb.blocks.formats import block_from, to_numpy
from matnb.errors import DTypeError, LoopBodyError, ShapeError
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import evaluator
from matnb.nested.choices import StrategyChoice
from matnb.nested.segments import Cuts, Knots, Ranks, SegmentSpread

if TYPE_CHECKING:
    from matnb.nested.array import NestedArray
    from matnb.nested.deep import AnyNested

_NUM_SHARES = 256  # of the values: where each begins, the segments there are known
_BITS = 64


@dataclass(frozen=True, eq=False)
class Structure:
    """Where segments begin and end.

    Attributes
    ----------
    offsets
        int64, from 0 to the number of values; one more than there are segments.
    knots
        Some of them, which are known here.
    longest
        The length of the longest segment.
    histogram
        How many segments have no value, 1, 2 to 3, 4 to 7, and so on.
    cuts
        Where the values are cut.
    ranks
        Which of the workers has each block of them, in order; without any it follows from the cuts.
    choice
        Why they are cut so; None of values that no strategy was chosen for.
    """

    offsets: DistArray
    knots: Knots
    longest: int
    histogram: tuple[int, ...]
    cuts: Cuts = ()
    ranks: Ranks = ()
    choice: StrategyChoice | None = None

    @property
    def num_segments(self) -> int:
        """How many segments there are."""
        return self.knots.num_segments

    @property
    def num_values(self) -> int:
        """How many values they have together."""
        return self.knots.num_values

    @property
    def counts(self) -> DistArray:
        """The length of each segment, int64."""
        counts: DistArray = self.offsets[1:] - self.offsets[:-1]
        return counts

    def turned(self) -> Structure:
        """Return the structure of the segments, and of the values in each, from the last to the first."""
        knots = self.knots
        segments = tuple(self.num_segments - one for one in reversed(knots.segments))
        values = tuple(self.num_values - one for one in reversed(knots.values))
        cuts = tuple(self.num_values - one for one in reversed(self.cuts))
        offsets = handle_of(self.num_values - np.flip(self.offsets))
        return replace(
            self, offsets=offsets, knots=Knots(segments, values), cuts=cuts, ranks=self.ranks[::-1]
        )


def structure_from_counts(counts: object, what: str) -> Structure:
    """Return the structure of segments of given lengths.

    Parameters
    ----------
    counts
        Whole numbers, in one axis, here or on the workers.
    what
        Names them in errors.

    Raises
    ------
    ShapeError
        For other than one axis, or a negative length, with its place.
    DTypeError
        For other than whole numbers.
    LoopBodyError
        For what depends on the state of a loop.
    """
    if isinstance(counts, DistArray):
        _check(counts, what)
        return _summary(_after_zero(handle_of(np.cumsum(counts, dtype=np.int64))), what)
    given = np.asarray(_here(counts, what))
    _check(given, what)
    return _summary_here(np.concatenate(([0], np.cumsum(given, dtype=np.int64))), what)


def structure_from_offsets(offsets: object, what: str) -> Structure:
    """Return the structure of segments that begin and end at given places, the first at 0.

    Raises
    ------
    ShapeError, DTypeError, LoopBodyError
        As :func:`structure_from_counts`, and where the first offset is not 0.
    """
    if isinstance(offsets, DistArray):
        _check(offsets, what)
        if not offsets.shape[0]:
            raise ShapeError(f"{what}: offsets must not be empty: start with 0")
        return _summary(offsets.astype(np.int64), what)
    given = np.asarray(_here(offsets, what))
    _check(given, what)
    return _summary_here(given.astype(np.int64), what)


def _here(values: object, what: str) -> Any:
    _check_flat(values, what)
    if isinstance(values, list | tuple | range):
        return _array_of(values, what) if values else np.empty(0, np.int64)
    if np.isscalar(values):
        return np.asarray(values)
    return to_numpy(block_from(values))


def _check(values: DistArray | np.ndarray, what: str) -> None:
    if values.ndim != 1:
        raise ShapeError(f"{what} has shape {values.shape}: give whole numbers in one axis")
    if values.dtype.kind not in "iu":
        raise DTypeError(f"{what} has dtype {values.dtype}: give whole numbers")
    if isinstance(values, DistArray) and values.expression.free:
        raise LoopBodyError(
            f"{what} depends on the state of a loop, and shapes are fixed inside a loop's body: make the "
            "structure before the loop, and nested arrays of other values by N.with_values(values)"
        )


def _after_zero(ends: DistArray) -> DistArray:
    zero = asarray(np.zeros(1, np.int64))
    return handle_of(np.concatenate([zero, ends])) if ends.shape[0] else zero


def _summary(offsets: DistArray, what: str) -> Structure:
    # Two small questions: what lengths there are, then where segments begin that are worth knowing.
    evaluator().persist([offsets.expression])
    counts: DistArray = offsets[1:] - offsets[:-1]
    if not counts.shape[0]:
        return _summary_here(np.asarray(offsets.compute()), what)
    bits = np.ceil(np.log2(np.maximum(counts, 0) + 1.0)).astype(np.int64)
    facts: list[Any] = [offsets[0], counts.min(), counts.max(), offsets[-1]]
    both = np.concatenate([np.stack(facts), np.bincount(bits, minlength=_BITS)[:_BITS]])
    first, least, longest, total, *histogram = map(int, np.asarray(both))
    if least < 0:
        place = int(np.argmax(counts < 0))
        _refuse_negative(place, int(counts[place]), what)
    _check_ends(first, longest, total, what)
    wanted = _wanted(total)
    after = np.searchsorted(offsets, asarray(wanted)) if wanted.size else asarray(wanted)
    chosen = _chosen(np.asarray(after), counts.shape[0])
    values: np.ndarray = np.asarray(offsets[asarray(chosen)])
    return Structure(offsets, _knots(chosen, values), longest, _shortened(histogram))


def _summary_here(offsets: np.ndarray, what: str) -> Structure:
    if not offsets.size:
        raise ShapeError(f"{what}: offsets must not be empty: start with 0")
    counts = np.diff(offsets)
    if counts.size and counts.min() < 0:
        place = int(np.argmax(counts < 0))
        _refuse_negative(place, int(counts[place]), what)
    longest = int(counts.max(initial=0))
    _check_ends(int(offsets[0]), longest, int(offsets[-1]), what)
    chosen = _chosen(np.searchsorted(offsets, _wanted(int(offsets[-1]))), counts.size)
    bits = np.ceil(np.log2(counts + 1.0)).astype(np.int64)
    histogram = np.bincount(bits, minlength=1).tolist()
    return Structure(asarray(offsets), _knots(chosen, offsets[chosen]), longest, _shortened(histogram))


def _refuse_negative(place: int, count: int, what: str) -> None:
    raise ShapeError(f"{what}: segment {place} would have length {count}")


def _check_ends(first: int, longest: int, total: int, what: str) -> None:
    if first:
        raise ShapeError(f"{what} begins with {first}: the first segment begins at 0")
    if longest > total:
        raise ShapeError(
            f"{what} are for more values than 64 bits count: the longest segment has {longest:,}"
        )


def _wanted(total: int) -> np.ndarray:
    # Places of the values that divide them into equal shares.
    return np.unique(np.arange(1, _NUM_SHARES) * total // _NUM_SHARES)


def _chosen(after: np.ndarray, num_segments: int) -> np.ndarray:
    # The segments that begin at these places or next to them, on both sides.
    both = np.concatenate([[0, num_segments], after, after - 1])
    return np.unique(np.clip(both, 0, num_segments))


def _knots(segments: np.ndarray, values: np.ndarray) -> Knots:
    return Knots(tuple(segments.tolist()), tuple(values.tolist()))


def _shortened(histogram: Sequence[int]) -> tuple[int, ...]:
    last = max((place for place, count in enumerate(histogram) if count), default=0)
    return tuple(histogram[: last + 1])


def check_same(one: Structure, other: Structure, what: str) -> None:
    """Refuse two structures that differ.

    Raises
    ------
    ShapeError
        With the first segment that differs, and both lengths.
    """
    if one is other or one.offsets.expression is other.offsets.expression:
        return
    if one.num_segments != other.num_segments:
        raise ShapeError(
            f"{what}: {one.num_segments:,} and {other.num_segments:,} segments; give as many in both"
        )
    differ: Any = one.counts != other.counts
    if not one.num_segments or not bool(differ.any()):
        return
    place = int(np.argmax(differ))
    lengths = int(one.counts[place]), int(other.counts[place])
    raise ShapeError(f"{what}: segment {place} has length {lengths[0]} in one and {lengths[1]} in the other")


def is_nested(values: object) -> TypeGuard[AnyNested]:
    """Tell whether values are a nested array, of any depth."""
    return getattr(type(values), "_is_nested", False) is True


def is_one_level(values: object) -> TypeGuard[NestedArray]:
    """Tell whether values are a nested array of one level."""
    return getattr(type(values), "_is_one_level", False) is True


def _check_flat(values: object, what: str) -> None:
    if is_nested(values):
        raise ShapeError(f"{what}: a nested array where one level is wanted: N.flatten() leaves one out")


def _array_of(values: Sequence[Any], what: str) -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError:  # lists of unequal lengths
        raise ShapeError(f"{what}: lists in a list: give one axis, or mn.nested.from_lists(lists)") from None


def spread(structure: Structure, numbers: DistArray, cuts: Cuts, ranks: Ranks = ()) -> DistArray:
    """Return a number of each segment for each of its values, cut at some places, with ranks as of Regrid."""
    if not structure.num_values:
        return asarray(np.empty(0, numbers.dtype))
    offsets = structure.offsets.expression
    return wrap(SegmentSpread(numbers.expression, offsets, structure.knots, cuts, ranks))


def as_vector(values: object, what: str) -> DistArray:
    """Return values as a handle of one axis, of a dtype that segments may have.

    Raises
    ------
    ShapeError, DTypeError
        For other than one axis, and for what is no number of at most 64 bits, or complex of 128.
    """
    _check_flat(values, what)
    found = handle_of(_array_of(values, what) if isinstance(values, list | tuple) else values)
    if found.ndim != 1:
        raise ShapeError(f"{what} have shape {found.shape}: give one axis")
    check_dtype(found.dtype, what)
    return found


def check_dtype(dtype: np.dtype, what: str) -> None:
    """Refuse values of a dtype that segments do not have.

    Raises
    ------
    DTypeError
        For what is no number of at most 64 bits, or complex of 128; and for float16.
    """
    if dtype.kind not in "biufc" or dtype.itemsize > 8 * (1 + (dtype.kind == "c")):
        raise DTypeError(f"{what} have dtype {dtype}: give numbers or booleans of at most 64 bits")
    if dtype == np.float16:
        raise DTypeError(f"{what} have dtype float16: convert values to float32 or float64 first")
