"""Finds where a cell wrote the same expressions again and again, each time over what it had made before."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from matnb.expr.control import Body
from matnb.expr.interning import form_of
from matnb.expr.nodes import Expr

FEWEST = 4  # repetitions that are worth a loop
_LONGEST = 512  # events in one repetition
_ROTATED = 64  # up to so many events, every way to begin a repetition is looked at
_STARTS = 2  # what does not change may be made in the first repetition
_DEEPEST = 16  # expressions between an event and what it is made from
_CHECKS = 6  # comparisons for each event, until looking is given up


class Inner(NamedTuple):
    """An expression that is no event, by its kind and what it is made from."""

    kind: Hashable
    parts: tuple[Read, ...]


# What an event reads: the event so many places before it, the same expression every time, or an inner one.
Read: TypeAlias = "int | Expr | Inner"


@dataclass(frozen=True, eq=False)
class Repetition:
    """Events that repeat.

    Attributes
    ----------
    sequence
        Of which it is a part.
    period
        The number of events of one repetition.
    begin, end
        Its places in the sequence: whole repetitions.
    reads
        What each event of one repetition reads, operand by operand.
    before
        What the first repetitions read where later ones read an event, by the place that it would have.
    """

    sequence: Sequence[Expr]
    period: int
    begin: int
    end: int
    reads: tuple[tuple[Read, ...], ...]
    before: dict[int, Expr]

    @property
    def count(self) -> int:
        """How often they are repeated."""
        return (self.end - self.begin) // self.period

    @property
    def last(self) -> int:
        """The place of the first event of the last repetition."""
        return self.end - self.period

    def read_at(self, place: int) -> tuple[Read, ...]:
        """Return what the event at a place reads."""
        return self.reads[(place - self.begin) % self.period]


def repetitions(
    sequence: Sequence[Expr], known: Container[Expr], needed: Sequence[bool]
) -> Iterator[Repetition]:
    """Yield what repeats in a sequence of distinct events, the shortest repetitions first.

    Parameters
    ----------
    sequence
        The events, in order.
    known
        Expressions below which nothing is looked at.
    needed
        For each event whether it is of those of which one must be in each repetition.
    """
    return _Finder(sequence, known).found(np.array(needed, bool))


def kind_of(node: Expr) -> Hashable:
    """Return what two expressions have in common that differ at most in what they are made from."""
    values = tuple(_plain(getattr(node, name)) for name in form_of(type(node)).parameter_names)
    return type(node), values, node.shape, node.dtype, node.sparse, len(node.operands)


def _plain(value: object) -> Hashable:
    # 1, 1.0 and True are equal, as 0.0 and -0.0 are, and slices have no hash.
    match value:
        case Body():
            return value.digest
        case tuple():
            return tuple(map(_plain, value))
        case slice():
            return slice, value.start, value.stop, value.step
        case bool() | int() | float() | complex():
            return type(value), repr(value)
    assert isinstance(value, Hashable)
    return value


def places_read(reads: Sequence[Read]) -> Iterator[int]:
    """Yield how far back the events are that are read."""
    for read in reads:
        if isinstance(read, int):
            yield read
        elif isinstance(read, Inner):
            yield from places_read(read.parts)


class _Finder:
    def __init__(self, sequence: Sequence[Expr], known: Container[Expr]) -> None:
        self._sequence, self._known = sequence, known
        self._places = {node: place for place, node in enumerate(sequence)}
        self._checks = _CHECKS * len(sequence)

    def found(self, needed: np.ndarray) -> Iterator[Repetition]:
        numbers: dict[Hashable, int] = {}
        kinds = np.array([numbers.setdefault(kind_of(node), len(numbers)) for node in self._sequence])
        for period in range(1, min(len(kinds) // FEWEST, _LONGEST) + 1):
            alike = kinds[period:] == kinds[:-period]
            fewest = (FEWEST - 1) * period
            if np.count_nonzero(alike) < fewest:
                continue
            for begin, end in _stretches(alike):
                if end - begin >= fewest and needed[begin : begin + period].any():
                    yield from self._within(period, begin, end + period)
                if self._checks < 0:
                    return

    def _within(self, period: int, begin: int, end: int) -> Iterator[Repetition]:
        # Kinds repeat from begin to end; where do events also read alike?
        reads: dict[int, tuple[Read, ...]] = {}
        first = begin + period
        for place in range(begin + period, end):
            read = self._reads(place, period)
            if read is None or (place - period >= first and reads[place - period] != read):
                yield from self._rotated(period, begin, first, place, reads)
                first = place + 1 if read is None else place - period + 1
            if read is not None:
                reads[place] = read
        yield from self._rotated(period, begin, first, end, reads)

    def _reads(self, place: int, period: int) -> tuple[Read, ...] | None:
        # What an event and the one a period before both read.
        self._checks -= 1
        if self._checks < 0:
            return None
        past, now = self._sequence[place - period], self._sequence[place]
        return self._parts(past, now, place, period, 0)

    def _parts(self, past: Expr, now: Expr, place: int, period: int, depth: int) -> tuple[Read, ...] | None:
        parts: list[Read] = []
        for one, other in zip(past.operands, now.operands, strict=True):
            read = self._read(one, other, place, period, depth)
            if read is None:
                return None
            parts.append(read)
        return tuple(parts)

    def _read(self, past: Expr, now: Expr, place: int, period: int, depth: int) -> Read | None:
        if past is now:
            return now
        at = self._places.get(now)
        if at is not None:
            # An event that reads a later one comes from a sequence out of order.
            back = place - at
            within = 0 < back <= place - period
            return back if within and self._sequence[at - period] is past else None
        if past in self._places or now in self._known or past in self._known or depth >= _DEEPEST:
            return None
        kind = kind_of(now)
        if not now.operands or kind != kind_of(past):
            return None
        parts = self._parts(past, now, place, period, depth + 1)
        return None if parts is None else Inner(kind, parts)

    def _rotated(
        self, period: int, begin: int, first: int, end: int, reads: dict[int, tuple[Read, ...]]
    ) -> Iterator[Repetition]:
        # From first on every event reads as the one a period before; where to end a repetition is free.
        spare = end - first - period
        if spare < 0:
            return
        ways = range(min(period - 1, spare) + 1) if period <= _ROTATED else range(1)
        for left in sorted(ways, key=lambda one: (_num_carried(reads, period, end - one), one)):
            stop = end - left
            repeated = tuple(reads[place] for place in range(stop - period, stop))
            found = 0
            for start in range(stop - (stop - begin) // period * period, stop - FEWEST * period + 1, period):
                before = self._before(period, start, stop, first, repeated)
                if before is not None:
                    yield Repetition(self._sequence, period, start, stop, repeated, before)
                    found += 1
                if found == _STARTS:
                    break

    def _before(
        self, period: int, begin: int, end: int, first: int, reads: Sequence[tuple[Read, ...]]
    ) -> dict[int, Expr] | None:
        # What repetitions from a place on read from before it; None where they do not read alike.
        before: dict[int, Expr] = {}
        far = max((back for one in reads for back in places_read(one)), default=0)
        for place in range(begin, min(end, max(first, begin + far))):
            node, read = self._sequence[place], reads[(place - begin) % period]
            if not self._all_match(read, node.operands, place, period, begin, before):
                return None
        return before

    def _all_match(
        self,
        reads: Sequence[Read],
        nodes: Sequence[Expr],
        place: int,
        period: int,
        begin: int,
        before: dict[int, Expr],
    ) -> bool:
        return len(reads) == len(nodes) and all(
            self._matches(read, node, place, period, begin, before)
            for read, node in zip(reads, nodes, strict=True)
        )

    def _matches(
        self, read: Read, node: Expr, place: int, period: int, begin: int, before: dict[int, Expr]
    ) -> bool:
        match read:
            case int():
                at = place - read
                if at >= begin:
                    return self._sequence[at] is node
                later = self._sequence[at + period * -((at - begin) // period)]
                is_alike = (node.shape, node.dtype, node.sparse) == (later.shape, later.dtype, later.sparse)
                return is_alike and before.setdefault(at, node) is node
            case Inner(kind, parts):
                return (
                    node not in self._known
                    and kind_of(node) == kind
                    and self._all_match(parts, node.operands, place, period, begin, before)
                )
        return read is node


def _stretches(flags: np.ndarray) -> Iterator[tuple[int, int]]:
    # Where flags are true: from, to.
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.view(np.int8), [0]))))
    yield from zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)


def _num_carried(reads: dict[int, tuple[Read, ...]], period: int, end: int) -> int:
    # Arrays that go from one repetition to the next when one ends at a place.
    begin = end - period
    return len(
        {
            place - back
            for place in range(begin, end)
            for back in places_read(reads[place])
            if place - back < begin
        }
    )
