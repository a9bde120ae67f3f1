"""Liveness analysis: which slots are still read before and after each action of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from matnb.program.plan import Slot
from matnb.program.program import Action, Batch, Branch, Iterate, Program, Registers

Lives: TypeAlias = frozenset[Slot]
Sends: TypeAlias = dict[Slot, tuple[int, ...]]  # register -> the members that are sent it by its owner
_NONE: Lives = frozenset()


@dataclass(frozen=True)
class PartialRead:
    """An array of another member of which a batch reads only the elements or rows that sparse blocks touch.

    Attributes
    ----------
    name
        Its register.
    owner, reader
        Who has it, and who reads it.
    lefts
        The registers with the sparse blocks, and which of their columns meets the first element or row.
    length
        Number of elements or rows where a join tells it, else None: all columns.
    """

    name: Slot
    owner: int
    reader: int
    lefts: tuple[tuple[Slot, int], ...]
    length: int | None


@dataclass(eq=False)
class BatchPlace:
    """A batch in its place.

    Attributes
    ----------
    batch
        What runs.
    live
        Registers that are read afterwards.
    sends
        What is sent while it runs.
    """

    batch: Batch
    live: Lives = _NONE
    sends: Sends = field(default_factory=dict)

    @property
    def made(self) -> Lives:
        """The registers that change."""
        return frozenset(task.key for task in self.batch.tasks)


@dataclass(eq=False)
class RepeatPlace:
    """A loop in its place.

    Attributes
    ----------
    repeat, body
        What runs.
    entered, boundary, begun, ended, live
        Registers that are live before it, between iterations, as the body begins, as it ends, and afterwards.
    sends
        What is sent once, before the first iteration: what stays the same, and is read by other members.
    wanted
        Of what arrays elements or rows are sent instead of the whole, with the batch that reads them.
    """

    repeat: Iterate
    body: list[Place]
    entered: Lives = _NONE
    boundary: Lives = _NONE
    begun: Lives = _NONE
    ended: Lives = _NONE
    live: Lives = _NONE
    sends: Sends = field(default_factory=dict)
    wanted: list[tuple[BatchPlace, PartialRead]] = field(default_factory=list)

    @property
    def made(self) -> Lives:
        """The registers that change."""
        names = {name for block in self.repeat.state for name in block}
        return frozenset(names | {self.repeat.iteration, self.repeat.taken}).union(
            *(place.made for place in self.body)
        )


@dataclass(eq=False)
class BranchPlace:
    """A branch in its place, with what is live before it, where both ways begin and end, and after it."""

    branch: Branch
    then: list[Place]
    otherwise: list[Place]
    entered: Lives = _NONE
    then_begun: Lives = _NONE
    then_ended: Lives = _NONE
    otherwise_begun: Lives = _NONE
    otherwise_ended: Lives = _NONE
    live: Lives = _NONE

    @property
    def made(self) -> Lives:
        """The registers that change."""
        return frozenset(self.branch.results).union(*(place.made for place in (*self.then, *self.otherwise)))


Place: TypeAlias = BatchPlace | RepeatPlace | BranchPlace


def outline(program: Program) -> list[Place]:
    """Return a program's actions in their places, with what is live around each."""
    places = _placed(program.actions)
    _spread(places, frozenset(program.results), True)
    return places


def batches(places: Sequence[Place]) -> Iterator[BatchPlace]:
    """Yield the batches of some places, and of all places within."""
    for place in places:
        match place:
            case BatchPlace():
                yield place
            case RepeatPlace():
                yield from batches(place.body)
            case BranchPlace():
                yield from batches((*place.then, *place.otherwise))


def renamings(places: Sequence[Place]) -> Iterator[tuple[Slot, Slot]]:
    """Yield each register that may become another one by its name alone, and that other one."""
    for place in places:
        match place:
            case RepeatPlace(repeat, body):
                for old, new in zip(flat(repeat.after), flat(repeat.state), strict=True):
                    yield old, new
                for old, new in zip(flat(repeat.first), flat(repeat.state), strict=True):
                    yield old, new
                yield from renamings(body)
            case BranchPlace(branch, then, otherwise):
                yield from zip(branch.from_then, branch.results, strict=True)
                yield from zip(branch.from_otherwise, branch.results, strict=True)
                yield from renamings((*then, *otherwise))


def flat(arrays: Sequence[Registers]) -> list[Slot]:
    """Return the registers of some arrays, one after the other."""
    return [name for array in arrays for name in array]


def _placed(actions: Sequence[Action]) -> list[Place]:
    places: list[Place] = []
    for action in actions:
        match action:
            case Batch():
                places.append(BatchPlace(action))
            case Iterate():
                places.append(RepeatPlace(action, _placed(action.body)))
            case Branch():
                places.append(BranchPlace(action, _placed(action.then), _placed(action.otherwise)))
    return places


def _spread(places: Sequence[Place], live: Lives, is_outermost: bool = False) -> Lives:
    # From the end to the beginning: what is live before the places, from what is live after them.
    for place in reversed(places):
        place.live = live
        match place:
            case BatchPlace(batch):
                read = {name for task in batch.tasks for name in task.inputs}
                live = (live | read) - place.made
            case RepeatPlace():
                live = _spread_repeat(place, is_outermost)
            case BranchPlace():
                live = _spread_branch(place)
    return live


def _spread_repeat(place: RepeatPlace, is_outermost: bool) -> Lives:
    repeat = place.repeat
    state, first, after = flat(repeat.state), flat(repeat.first), flat(repeat.after)
    until = _NONE if repeat.until is None else frozenset([repeat.until])
    # The state of an outermost loop is kept from time to time, all of it.
    boundary = (place.live - {repeat.taken}) | (frozenset(state) if is_outermost else _NONE)
    while True:  # what an iteration reads has to outlive the one before
        kept = {old for old, name in zip(after, state, strict=True) if name in boundary}
        place.ended = (boundary - set(state)) | kept | until
        place.begun = _spread(place.body, place.ended)
        wider = boundary | (place.begun - {repeat.iteration})
        if wider == boundary:
            break
        boundary = wider
    place.boundary = boundary
    begins = {old for old, name in zip(first, state, strict=True) if name in boundary}
    place.entered = (boundary - set(state)) | begins | {repeat.limit}
    return place.entered


def _spread_branch(place: BranchPlace) -> Lives:
    branch, wanted = place.branch, place.live
    ends = []
    for sources in (branch.from_then, branch.from_otherwise):
        kept = {old for old, name in zip(sources, branch.results, strict=True) if name in wanted}
        ends.append((wanted - set(branch.results)) | kept)
    place.then_ended, place.otherwise_ended = ends
    place.then_begun = _spread(place.then, place.then_ended)
    place.otherwise_begun = _spread(place.otherwise, place.otherwise_ended)
    place.entered = place.then_begun | place.otherwise_begun | {branch.predicate}
    return place.entered
