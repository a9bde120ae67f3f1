"""A trace: decisions and measured times, to be looked at, repeated and decided upon again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from matnb.balance.codec import (
    Amount,
    AmountOrEndless,
    Limits,
    WrongFieldError,
    read_object,
    shortly,
    written,
)
from matnb.balance.decision import Decision, HistoryItem
from matnb.balance.situation import Profile, Situation
from matnb.blocks.layout import Cuts
from matnb.errors import FileFormatError

FORMAT, VERSION = "matnb balance trace", 1
MAX_CHARACTERS = 200_000_000


@dataclass(frozen=True)
class Times:
    """The block times of one round, which ends once every worker has reported.

    Attributes
    ----------
    iteration
        How many iterations were done.
    num_iterations
        Over how many the seconds are a mean.
    block_seconds
        Kernel seconds of each block in one iteration.
    loads
        The same for each worker, with its other work.
    iteration_seconds
        What an iteration took by the clock.
    num_remaining
        Iterations that were expected to follow.
    """

    iteration: int
    num_iterations: Annotated[int, Limits(1)]
    block_seconds: tuple[Amount, ...]
    loads: Mapping[int, Amount]
    iteration_seconds: Amount
    num_remaining: AmountOrEndless


@dataclass(frozen=True, eq=False)
class RecordedTimes:
    """Times that were measured while the cuts stayed as they were.

    Attributes
    ----------
    situation
        As it was at first; without seconds of blocks.
    times
        In order.
    """

    situation: Situation
    times: tuple[Times, ...]


@dataclass(frozen=True, eq=False)
class Trace:
    """The decisions that were kept, and the times measured for each stretch with the same cuts.

    Attributes
    ----------
    passed
        Decisions, the oldest first.
    recorded
        Times, for each stretch with the same cuts.
    num_dropped
        Decisions that were too old to be kept.

    Examples
    --------
    >>> Trace.from_json(Trace((), ()).to_json()).passed
    ()
    """

    passed: tuple[HistoryItem, ...]
    recorded: tuple[RecordedTimes, ...] = ()
    num_dropped: int = 0

    def to_json(self) -> str:
        """Return the trace as JSON, a line for each decision and each row of times; ASCII only.

        Every number is kept exactly. Seconds are in it; the time of day is not.
        """
        decisions = ",\n".join(_json(one, HistoryItem) for one in self.passed)
        stretches = []
        for one in self.recorded:
            rows = ",\n".join(_json(row, Times) for row in one.times)
            situation = _json(one.situation, Situation)
            stretches.append(f'{{"situation": {situation},\n"times": [\n{rows}\n]}}')
        return (
            f'{{"format": "{FORMAT}", "version": {VERSION}, "num_dropped": {self.num_dropped},\n'
            f'"decisions": [\n{decisions}\n],\n"recorded": [\n' + ",\n".join(stretches) + "\n]}\n"
        )

    @classmethod
    def from_json(cls, text: str, name: str = "the trace") -> Trace:
        """Return the trace that a text holds.

        Parameters
        ----------
        text
            What :meth:`to_json` gave.
        name
            Of the file it is from, for errors.

        Raises
        ------
        FileFormatError
            When it is not JSON, no trace, of another version, or holds what a trace cannot.
        """
        if len(text) > MAX_CHARACTERS:
            raise FileFormatError(name, f"{len(text)} characters; a trace has at most {MAX_CHARACTERS}")
        try:
            value: object = json.loads(text, parse_constant=_no_number)
        except json.JSONDecodeError as error:
            raise FileFormatError(
                name, f"not a trace, since it is not JSON: {error.msg}", error.lineno
            ) from None
        except ValueError as error:  # a number of thousands of digits, or a bare NaN
            raise FileFormatError(name, f"not a trace, since it is not JSON: {error}") from None
        except RecursionError:
            raise FileFormatError(name, "not a trace: lists are nested too deeply") from None
        if not isinstance(value, dict) or value.get("format") != FORMAT:
            raise FileFormatError(name, f'not a trace: a trace begins {{"format": "{FORMAT}", ...}}')
        if value.get("version") != VERSION:
            raise FileFormatError(
                name, f"a trace of version {value.get('version')!r:.40}; this matnb reads {VERSION}"
            )
        try:
            found = read_object(value, _TraceText, "", _check)
        except WrongFieldError as error:
            raise FileFormatError(name, f"not a trace: {error}") from None
        return cls(found.decisions, found.recorded, found.num_dropped)


@dataclass(frozen=True, eq=False)
class _TraceText:
    # The fields of a trace as files call them.
    decisions: tuple[HistoryItem, ...]
    recorded: tuple[RecordedTimes, ...]
    num_dropped: int


def _json(value: object, kind: type) -> str:
    return json.dumps(written(value, kind), allow_nan=False)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is not a number")


def _check(made: object, place: str) -> None:
    # What fields say together.
    match made:
        case Cuts(cuts, owners):
            rises = cuts == (0, 0) or all(low < high for low, high in pairwise(cuts))
            if len(cuts) < 2 or cuts[0] != 0 or not rises:
                words = f"is {shortly(list(cuts))}: they start at 0 and increase"
                raise WrongFieldError(f"{place}.cuts {words}")
            if len(owners) != len(cuts) - 1:
                raise WrongFieldError(f"{place} has {len(owners)} workers for {len(cuts) - 1} blocks")
        case Profile():
            places, entries = made.places.tolist(), made.entries.tolist()
            if not places or places[0] != 0 or any(low >= high for low, high in pairwise(places)):
                raise WrongFieldError(f"{place}.places is {shortly(places)}: they start at 0 and increase")
            if len(entries) != len(places) or any(low > high for low, high in pairwise(entries)):
                words = f"are {len(entries)} for {len(places)} places, and never decrease"
                raise WrongFieldError(f"{place}.entries {words}")
        case Decision():
            before, after = made.before.cuts[-1], made.after.cuts[-1]
            if before != after:
                raise WrongFieldError(f"{place} cuts {before} rows before and {after} after")
        case RecordedTimes():
            num_blocks = made.situation.cuts.num_blocks
            for number, row in enumerate(made.times):
                if len(row.block_seconds) != num_blocks:
                    words = f"is of {len(row.block_seconds)} blocks; there are {num_blocks}"
                    raise WrongFieldError(f"{place}.times[{number}] {words}")
