"""Loops of Python's as one node: where a cell wrote the same again and again over what it had made before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from matnb.blocks.creation import Full
from matnb.expr.closure_conversion import closed
from matnb.expr.control import Body, Cond, Final, Loop, Variable, keep_algorithms
from matnb.expr.kinds import kind_of
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Elementwise,
    Expr,
    Index,
    Literal,
    MatMul,
    Reduce,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import Either, topological
from matnb.lazy.handles import live_expressions, renew
from matnb.lazy.recording import Recording, keep_lines, resumed
from matnb.lazy.ufuncs import literal

FEWEST = 4  # repetitions that are worth a loop
_LONGEST = 512  # events in one repetition
_ROTATED = 64  # up to so many events, every way to begin a repetition is looked at
_STARTS = 2  # what does not change may be made in the first repetition
_DEEPEST = 16  # expressions between an event and what it is made from
_CHECKS = 6  # comparisons for each event, until looking is given up


class Inner(NamedTuple):
    """An expression that is not an event, by its kind and what it is made from."""

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


_MOST_TRIES = 16  # loops of one cell, and what is refused
_OLDEST = 2  # a state and the one before it can be read after a loop
_MOST_OLD = 3  # states of one array that are carried at once
_LIGHT = {Elementwise, Broadcast, Index, Transpose, Regrid, Literal, Create}  # a chain of these is fused


class _Refused(Exception):  # noqa: N818  not an error: it stays unrolled
    """What repeats cannot be a loop, or is better without."""


def rolled(
    roots: Collection[Expr],
    events: Iterable[Expr],
    known: Container[Expr] = (),
    live: Collection[Expr] = (),
) -> dict[Expr, Expr]:
    """Return what roots and live expressions become where their histories are loops; those that change.

    A part that repeats becomes a loop if a product or a reduction is in it, if it is repeated four times or
    more, and if nobody needs what the older repetitions made. The values stay what they are.

    Parameters
    ----------
    roots
        What is wanted.
    events
        What the cell wrote, in order, repeats included.
    known
        Expressions whose values exist already.
    live
        What handles stand for: older states among them are needed as well.
    """
    # What is written in every repetition alike does not change in the loop.
    sequence = [node for node, times in Counter(events).items() if times < FEWEST]
    become = {node: node for node in (*roots, *live)}
    tries = iter(range(_MOST_TRIES))
    while _may_repeat(sequence):
        wanted = {become[node] for node in roots}
        reached = set(topological(wanted, known))
        sequence = [node for node in sequence if node in reached and node not in known]
        if not _may_repeat(sequence):
            break
        sequence = _with_all_results(sequence)
        new = _first_loop(sequence, wanted, known, {become[node] for node in live}, tries)
        if new is None:
            break
        become = {node: new.get(now, now) for node, now in become.items()}
        sequence = list(dict.fromkeys(new.get(node, node) for node in sequence))
    return {node: now for node, now in become.items() if now is not node}


def _first_loop(
    sequence: Sequence[Expr],
    roots: Collection[Expr],
    known: Container[Expr],
    live: Collection[Expr],
    tries: Iterator[int],
) -> dict[Expr, Expr] | None:
    # What expressions become with one loop more.
    for found in repetitions(sequence, known, list(map(_is_heavy, sequence))):
        if all(isinstance(node, MatMul) and node.ndim > 1 for node in sequence[found.last : found.end]):
            continue  # powers of a matrix are best multiplied in another order
        if next(tries, None) is None:
            return None
        try:
            return _LoopRoller(found, roots, known, live).new
        except _Refused:
            continue
    return None


def _with_all_results(sequence: Sequence[Expr]) -> list[Expr]:
    # What is read of one loop or branch is an event of each like it, and comes next to it: so what is read
    # after the last repetition alone, such as how a solver ended, is of the repetition too.
    controls = [node for node in sequence if isinstance(node, Loop | Cond)]
    kinds = {node: kind_of(node) for node in controls}
    read: dict[Hashable, set[int]] = {kind: set() for kind in kinds.values()}
    for node in sequence:
        if isinstance(node, Final) and node.control in kinds:
            read[kinds[node.control]].add(node.place)
    complete: list[Expr] = []
    for node in sequence:
        if not isinstance(node, Final) or node.control not in kinds:
            complete.append(node)
        if node in kinds:
            complete.extend(Final(node, place) for place in sorted(read[kinds[node]]))
    return complete


def _may_repeat(sequence: Sequence[Expr]) -> bool:
    # Of each repetition one event is heavy, and these are alike.
    heavy = [node for node in sequence if _is_heavy(node)]
    if len(heavy) < FEWEST or max(Counter([(type(node), node.shape) for node in heavy]).values()) < FEWEST:
        return False  # most often, and what they have in common takes longer to find
    return max(Counter(map(kind_of, heavy)).values()) >= FEWEST


def _is_heavy(node: Expr) -> bool:
    # Chains of elementwise functions are one fused task as they are. A mean is a sum, not noted, divided.
    return type(node) not in _LIGHT or Reduce in map(type, node.operands)


class _LoopRoller:
    """One repetition made a loop, and what is made from it."""

    def __init__(
        self, found: Repetition, roots: Collection[Expr], known: Container[Expr], live: Collection[Expr]
    ) -> None:
        self._found, self._known = found, known
        self._places = {found.sequence[place]: place for place in range(found.begin, found.end)}
        self._old = self._carried()
        self._rest: set[int] = set()  # places of events that are made again from what the loop gives
        for node in self._outside(roots):
            if node in self._places:
                self._want(self._places[node])
        held = self._outside(live)
        for node in held:
            # A link of a chain is not given only because a handle is on it: nobody has asked for it.
            place = self._places.get(node, -1)
            if node in live and place >= 0 and (not node.shape or self._slot(place)[0] in self._old):
                self._want(place)
        states = [(slot, old) for slot, most in sorted(self._old.items()) for old in range(1, most + 1)]
        self._numbers = {state: number for number, state in enumerate(states)}
        self._loop = self._written(states)
        self._values: dict[int, Expr] = {}
        found_again: set[Expr] = set()
        for node in held:
            place = self._places.get(node, -1)
            if self._is_given(place) if place >= 0 else found_again.issuperset(self._below(node)):
                found_again.add(node)
        self.new = self._replaced([*roots, *found_again.intersection(live)])
        after = topological({self.new[one] for one in roots}, known)
        if any(node in self._places for node in after):
            raise _Refused
        keep_lines(self.new)
        keep_algorithms(self.new)

    def _slot(self, place: int) -> tuple[int, int]:
        # Which event of a repetition, and in the how manieth repetition from the end, counted from 1.
        found = self._found
        return (place - found.begin) % found.period, (found.end - 1 - place) // found.period + 1

    def _carried(self) -> dict[int, int]:
        # The events that later repetitions read, and how far back.
        found = self._found
        old: dict[int, int] = {}
        for place in range(found.last, found.end):
            reads = found.read_at(place)
            for back in places_read(reads):
                if place - back < found.last:
                    if reads == (back,) and isinstance(found.sequence[place], Final):
                        raise _Refused  # of a loop or branch only a number could go on
                    slot, age = self._slot(place - back)
                    old[slot] = max(old.get(slot, 0), age - 1)
        if max(old.values(), default=0) > _MOST_OLD:
            raise _Refused
        return old

    def _outside(self, nodes: Iterable[Expr]) -> list[Expr]:
        # What some expressions are made from, down to the events that are read from outside.
        order = topological(nodes, Either(self._known, self._places))
        for node in order:
            if isinstance(node, Final) and node.control in self._places and node not in self._places:
                raise _Refused
            if node in self._places:
                slot, age = self._slot(self._places[node])
                if age > max(_OLDEST, self._old.get(slot, 0)):
                    raise _Refused
        return order

    def _below(self, node: Expr) -> tuple[Expr, ...]:
        return () if node in self._known else node.operands

    def _want(self, place: int) -> None:
        # Makes the loop give what an event gives, or what it is made from.
        slot, age = self._slot(place)
        node = self._found.sequence[place]
        if place in self._rest:
            return
        if slot not in self._old and type(node) in _LIGHT and node.shape:
            self._rest.add(place)
            for back in places_read(self._found.read_at(place)):
                self._want(place - back)
            return
        if age > _MOST_OLD:
            raise _Refused
        self._old[slot] = max(self._old.get(slot, 0), age)

    def _is_given(self, place: int) -> bool:
        slot, age = self._slot(place)
        return place in self._rest or age <= self._old.get(slot, 0)

    # the loop

    def _written(self, states: Sequence[tuple[int, int]]) -> Loop:
        found = self._found
        sequence = found.sequence
        results = [sequence[found.last + slot - (old - 1) * found.period] for slot, old in states]
        own = {sequence[found.last + slot - old * found.period]: (slot, old) for slot, old in states}

        def variable(node: Expr) -> Variable | None:
            if node not in own:
                return None
            return Variable(self._numbers[own[node]], node.shape, node.dtype, node.sparse)

        inside = self._inside(results)
        inside.update(own)
        made, given, became = closed(results, inside.__contains__, variable, len(states) + 1)
        keep_lines(became)
        begins = [self._begin(slot, old) for slot, old in states]
        limit = literal(found.count, np.dtype(np.int64))
        return Loop((*begins, limit, *given), Body(made), len(states))

    def _inside(self, results: Sequence[Expr]) -> set[Expr]:
        # What the last repetition computes.
        found = self._found
        inside: set[Expr] = set()

        def enter(reads: Sequence[Read], nodes: Sequence[Expr], place: int) -> None:
            for read, node in zip(reads, nodes, strict=True):
                if isinstance(read, int):
                    if place - read >= found.last:
                        waiting.append(place - read)
                elif isinstance(read, Inner):
                    inside.add(node)
                    enter(read.parts, node.operands, place)

        waiting = [self._places[node] for node in results if self._places[node] >= found.last]
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place not in seen:
                seen.add(place)
                node = found.sequence[place]
                inside.add(node)
                enter(found.read_at(place), node.operands, place)
        return inside

    def _begin(self, slot: int, old: int) -> Expr:
        # What a state is before the first repetition; where no repetition reads that, anything of its kind.
        found = self._found
        for age in (old, *range(1, _MOST_OLD + 1)):
            begin = found.before.get(found.begin + slot - age * found.period)
            if begin is not None:
                return begin
        like = found.sequence[found.begin + slot]
        if like.sparse:
            raise _Refused
        return Create(Full(like.shape, np.zeros((), like.dtype).tobytes(), like.dtype))

    # what is made from it

    def _replaced(self, nodes: Iterable[Expr]) -> dict[Expr, Expr]:
        new: dict[Expr, Expr] = {}
        for node in topological(nodes, Either(self._known, self._places)):
            if node in self._places:
                new[node] = self._value(self._places[node])
            elif node in self._known:
                new[node] = node
            else:
                new[node] = node.with_operands(*(new[operand] for operand in node.operands))
        return new

    def _value(self, place: int) -> Expr:
        # What an event gives, after the loop.
        if place not in self._values:
            slot, age = self._slot(place)
            if place not in self._rest:
                value: Expr = Final(self._loop, self._numbers[slot, age])
            else:
                node = self._found.sequence[place]
                value = node.with_operands(*self._read(self._found.read_at(place), node.operands, place))
            self._values[place] = value
        return self._values[place]

    def _read(self, reads: Sequence[Read], nodes: Sequence[Expr], place: int) -> list[Expr]:
        values: list[Expr] = []
        for read, node in zip(reads, nodes, strict=True):
            match read:
                case int():
                    values.append(self._value(place - read))
                case Inner(_, parts):
                    values.append(node.with_operands(*self._read(parts, node.operands, place)))
                case _:
                    values.append(node)
        return values


_MOST_UNREAD = 20_000  # events that wait for a value that needs them


def roll(roots: Sequence[Expr], record: Recording | None, known: Container[Expr]) -> list[Expr]:
    """Return what is wanted with the cell's own loops as loops; handles stand for that from now on.

    Looked at are the events that no value has needed before, so a loop that asks for a value in every
    iteration costs the same in each.

    Parameters
    ----------
    roots
        What is wanted now.
    record
        Of the cell that asks, if one does. Outside of cells events are all that is below what is wanted.
    known
        Expressions whose values exist.
    """
    new: dict[Expr, Expr] = {}
    if record is None:
        # Nobody noted in which order they were written. What a repetition made comes before what reads it.
        events = [node for node in topological(roots, known) if node.operands]
        if _may_repeat([node for node in events if node not in known]):
            new = rolled(roots, events, known, live_expressions())
            renew(new)
        return [new.get(root, root) for root in roots]
    events = [*record.unread, *record.written[record.num_seen :]]
    record.num_seen = len(record.written)
    if len(events) >= FEWEST:
        with resumed(record):
            new = rolled(roots, events, known, live_expressions())
        if new:
            renew(new)
    needed = set(topological(roots, known))
    record.unread = [node for node in events if node not in needed][-_MOST_UNREAD:]
    return [new.get(root, root) for root in roots]
