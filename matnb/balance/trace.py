"""A trace: decisions and measured times, to be looked at, repeated and decided upon again."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from matnb.balance.decision import Decision, Gain, Passed
from matnb.balance.situation import Costs, Cuts, Profile, Situation
from matnb.errors import FileFormatError


@dataclass(frozen=True)
class Times:
    """What the blocks of some arrays took, as every worker had told it once more.

    Attributes
    ----------
    iteration
        How many iterations were done.
    num_iterations
        Over how many the seconds are a mean.
    block_seconds
        Kernel seconds of each block in one iteration.
    loads
        The same for each worker, with what it computes besides.
    iteration_seconds
        What an iteration took by the clock.
    num_remaining
        Iterations that were expected to follow.
    """

    iteration: int
    num_iterations: int
    block_seconds: tuple[float, ...]
    loads: Mapping[int, float]
    iteration_seconds: float
    num_remaining: float


@dataclass(frozen=True, eq=False)
class Recorded:
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
    """All that was decided, and what was measured meanwhile.

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

    passed: tuple[Passed, ...]
    recorded: tuple[Recorded, ...] = ()
    num_dropped: int = 0

    def to_json(self) -> str:
        """Return the trace as JSON, a line for each decision and each row of times; ASCII only.

        Every number is kept exactly. Seconds are in it; the time of day is not.
        """
        return write_trace(self.passed, self.recorded, self.num_dropped)

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
        return cls(*read_trace(text, name))


# The text of a trace: JSON of a named version, in which every number is exact and every field is checked.

FORMAT, VERSION = "matnb balance trace", 1
MAX_CHARACTERS = 200_000_000
_LARGEST = 2**63 - 1  # of a count: a row's number is an int64
T = TypeVar("T")
Parts = tuple[tuple[Passed, ...], tuple[Recorded, ...], int]


def write_trace(passed: Sequence[Passed], recorded: Sequence[Recorded], num_dropped: int) -> str:
    """Return the parts of a trace as JSON, a line for each decision and each row of times; ASCII only."""
    stretches = []
    for one in recorded:
        rows = ",\n".join(_json(_times(row)) for row in one.times)
        stretches.append(f'{{"situation": {_json(_situation(one.situation))},\n"times": [\n{rows}\n]}}')
    decisions = ",\n".join(_json(_passed(one)) for one in passed)
    return (
        f'{{"format": {_json(FORMAT)}, "version": {VERSION}, "num_dropped": {num_dropped},\n'
        f'"decisions": [\n{decisions}\n],\n"recorded": [\n' + ",\n".join(stretches) + "\n]}\n"
    )


def read_trace(text: str, name: str) -> Parts:
    """Return the parts of the trace that a text holds; ``name`` is that of its file, for errors.

    Raises
    ------
    FileFormatError
        When the text is not JSON, no trace, of another version, or holds what a trace cannot.
    """
    if len(text) > MAX_CHARACTERS:
        raise FileFormatError(name, f"{len(text)} characters; a trace has at most {MAX_CHARACTERS}")
    try:
        value: object = json.loads(text, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise FileFormatError(name, f"not JSON, and so no trace: {error.msg}", error.lineno) from None
    except ValueError as error:  # a number of thousands of digits, or a bare NaN
        raise FileFormatError(name, f"not JSON, and so no trace: {error}") from None
    except RecursionError:
        raise FileFormatError(name, "no trace: lists in lists, too deep to be read") from None
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise FileFormatError(name, f'no trace: a trace is {{"format": "{FORMAT}", ...}}')
    if value.get("version") != VERSION:
        raise FileFormatError(
            name, f"a trace of version {value.get('version')!r:.40}; this matnb reads {VERSION}"
        )
    try:
        trace = _Fields(value, "")
        return (
            trace.each("decisions", _read_passed),
            trace.each("recorded", _read_recorded),
            trace.count("num_dropped"),
        )
    except _WrongError as error:
        raise FileFormatError(name, f"no trace: {error}") from None


def _json(value: object) -> str:
    return json.dumps(value, allow_nan=False)


def _no_number(word: str) -> None:
    raise ValueError(f"{word} is no number")


# to JSON


def _number(value: float) -> float | str:
    # JSON has no word for these.
    return float(value) if math.isfinite(value) else str(float(value))


def _by_worker(loads: Mapping[int, float]) -> dict[str, float | str]:
    return {str(int(owner)): _number(load) for owner, load in loads.items()}


def _cuts(cuts: Cuts) -> dict[str, list[int]]:
    return {"cuts": list(map(int, cuts.cuts)), "owners": list(map(int, cuts.owners))}


def _passed(one: Passed) -> dict[str, object]:
    decision = one.decision
    return {
        "number": one.number,
        "num_repeats": one.num_repeats,
        "name": decision.name,
        "policy": decision.policy,
        "acts": bool(decision.acts),
        "reason": decision.reason,
        "iteration": int(decision.iteration),
        "before": _cuts(decision.before),
        "after": _cuts(decision.after),
        "strategy": decision.strategy,
        "loads_before": _by_worker(decision.loads_before),
        "loads_after": _by_worker(decision.loads_after),
        "in_entries": bool(decision.in_entries),
        "block_seconds": [_number(seconds) for seconds in decision.block_seconds],
        "saving_seconds": _number(decision.saving_seconds),
        "num_remaining": _number(decision.num_remaining),
        "cost_seconds": _number(decision.cost_seconds),
        "moved_bytes": int(decision.moved_bytes),
        "gain": None if one.gain is None else _gain(one.gain),
    }


def _gain(gain: Gain) -> dict[str, object]:
    return {
        "loads": _by_worker(gain.loads),
        "saving_seconds": _number(gain.saving_seconds),
        "cost_seconds": _number(gain.cost_seconds),
        "moved_bytes": int(gain.moved_bytes),
    }


def _situation(one: Situation) -> dict[str, object]:
    return {
        "name": one.name,
        "cuts": _cuts(one.cuts),
        "places": one.profile.places.tolist(),
        "entries": one.profile.entries.tolist(),
        "row_bytes": _number(one.row_bytes),
        "entry_bytes": _number(one.entry_bytes),
        "error": _number(one.error),
        "speeds": _by_worker(one.speeds),
        "threads": int(one.threads),
        "other_seconds": _by_worker(one.other_seconds),
        "entry_seconds": _number(one.entry_seconds),
        "row_seconds": _number(one.row_seconds),
        "apart_row_seconds": _number(one.apart_row_seconds),
        "iteration": int(one.iteration),
        "num_remaining": _number(one.num_remaining),
        "iteration_seconds": _number(one.iteration_seconds),
        "since_last": int(one.since_last),
        "fixed_seconds": _number(one.costs.fixed_seconds),
        "bytes_per_second": _number(one.costs.bytes_per_second),
        "can_split_rows": bool(one.can_split_rows),
    }


def _times(row: Times) -> dict[str, object]:
    return {
        "iteration": int(row.iteration),
        "num_iterations": int(row.num_iterations),
        "block_seconds": [_number(seconds) for seconds in row.block_seconds],
        "loads": _by_worker(row.loads),
        "iteration_seconds": _number(row.iteration_seconds),
        "num_remaining": _number(row.num_remaining),
    }


# from JSON


class _WrongError(Exception):
    """What a field holds cannot be; the message names field and value."""


class _Fields:
    """The fields of a JSON object, each checked when it is read."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise _WrongError(f"{place} is {_short(value)}, not an object")
        self._value, self._place = value, place

    def at(self, name: str) -> str:
        return f"{self._place}.{name}" if self._place else name

    def has(self, name: str) -> bool:
        return name in self._value

    def value(self, name: str) -> object:
        if name not in self._value:
            raise _WrongError(f"{self.at(name)} is missing")
        found: object = self._value[name]
        return found

    def text(self, name: str) -> str:
        found = self.value(name)
        if not isinstance(found, str):
            raise _WrongError(f"{self.at(name)} is {_short(found)}, not a text")
        return found

    def truth(self, name: str) -> bool:
        found = self.value(name)
        if not isinstance(found, bool):
            raise _WrongError(f"{self.at(name)} is {_short(found)}, not true or false")
        return found

    def number(self, name: str) -> float:
        return _read_number(self.value(name), self.at(name))

    def amount(self, name: str) -> float:
        return _read_amount(self.value(name), self.at(name))

    def amount_or_endless(self, name: str) -> float:
        return math.inf if self.value(name) == "inf" else self.amount(name)

    def count(self, name: str, least: int = 0) -> int:
        return _read_count(self.value(name), self.at(name), least)

    def items(self, name: str) -> list[object]:
        found = self.value(name)
        if not isinstance(found, list):
            raise _WrongError(f"{self.at(name)} is {_short(found)}, not a list")
        return found

    def each(self, name: str, read: Callable[[object, str], T]) -> tuple[T, ...]:
        return tuple(read(one, f"{self.at(name)}[{i}]") for i, one in enumerate(self.items(name)))

    def amounts(self, name: str) -> tuple[float, ...]:
        return self.each(name, _read_amount)

    def counts(self, name: str) -> tuple[int, ...]:
        return self.each(name, lambda one, place: _read_count(one, place, 0))

    def by_worker(self, name: str, read: Callable[[object, str], float]) -> dict[int, float]:
        found, place = self.value(name), self.at(name)
        if not isinstance(found, dict):
            raise _WrongError(f"{place} is {_short(found)}, not an object")
        for owner in found:
            if not (owner.isascii() and owner.isdigit() and len(owner) < 10):
                raise _WrongError(f"{place} has a worker {_short(owner)}, which is no number")
        return {int(owner): read(load, f"{place}.{owner}") for owner, load in found.items()}

    def cuts(self, name: str) -> Cuts:
        place = self.at(name)
        inner = _Fields(self.value(name), place)
        cuts, owners = inner.counts("cuts"), inner.counts("owners")
        rises = cuts == (0, 0) or all(a < b for a, b in pairwise(cuts))
        if len(cuts) < 2 or cuts[0] != 0 or not rises:
            raise _WrongError(f"{place}.cuts is {_short(list(cuts))}: they start at 0 and increase")
        if len(owners) != len(cuts) - 1:
            raise _WrongError(f"{place} has {len(owners)} owners for {len(cuts) - 1} blocks")
        return Cuts(cuts, owners)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _read_number(value: object, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _WrongError(f"{place} is {_short(value)}, not a number")
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise _WrongError(f"{place} is {_short(value)}, which is too large")
    return float(value)


def _read_amount(value: object, place: str) -> float:
    number = _read_number(value, place)
    if number < 0:
        raise _WrongError(f"{place} is {_short(value)}, which is below 0")
    return number


def _read_rate(value: object, place: str) -> float:
    number = _read_number(value, place)
    if number <= 0:
        raise _WrongError(f"{place} is {_short(value)}, which is not above 0")
    return number


def _read_count(value: object, place: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _LARGEST:
        raise _WrongError(f"{place} is {_short(value)}, not a whole number of at least {least}")
    return value


def _read_passed(value: object, place: str) -> Passed:
    one = _Fields(value, place)
    match one.text("strategy"):
        case "segmented" | "uniform" as strategy:
            pass
        case other:
            raise _WrongError(f"{place}.strategy is {_short(other)}, not 'segmented' or 'uniform'")
    decision = Decision(
        name=one.text("name"),
        policy=one.text("policy"),
        acts=one.truth("acts"),
        reason=one.text("reason"),
        before=one.cuts("before"),
        after=one.cuts("after"),
        strategy=strategy,
        loads_before=one.by_worker("loads_before", _read_amount),
        loads_after=one.by_worker("loads_after", _read_amount),
        block_seconds=one.amounts("block_seconds"),
        saving_seconds=one.number("saving_seconds"),
        num_remaining=one.amount_or_endless("num_remaining"),
        cost_seconds=one.amount("cost_seconds"),
        moved_bytes=one.count("moved_bytes"),
        iteration=one.count("iteration"),
        in_entries=one.truth("in_entries"),
    )
    if decision.before.cuts[-1] != decision.after.cuts[-1]:
        raise _WrongError(
            f"{place} cuts {decision.before.cuts[-1]} rows before and {decision.after.cuts[-1]} after"
        )
    gain = None if one.value("gain") is None else _read_gain(one.value("gain"), one.at("gain"))
    return Passed(one.count("number"), decision, gain, one.count("num_repeats", 1))


def _read_gain(value: object, place: str) -> Gain:
    one = _Fields(value, place)
    return Gain(
        one.by_worker("loads", _read_amount),
        math.nan if one.value("saving_seconds") == "nan" else one.number("saving_seconds"),
        one.amount("cost_seconds"),
        one.count("moved_bytes"),
    )


def _read_recorded(value: object, place: str) -> Recorded:
    one = _Fields(value, place)
    situation = _read_situation(one.value("situation"), one.at("situation"))
    times = one.each("times", _read_times)
    for number, row in enumerate(times):
        if len(row.block_seconds) != situation.cuts.num_blocks:
            raise _WrongError(
                f"{place}.times[{number}] is of {len(row.block_seconds)} blocks; "
                f"there are {situation.cuts.num_blocks}"
            )
    return Recorded(situation, times)


def _read_times(value: object, place: str) -> Times:
    one = _Fields(value, place)
    return Times(
        one.count("iteration"),
        one.count("num_iterations", 1),
        one.amounts("block_seconds"),
        one.by_worker("loads", _read_amount),
        one.amount("iteration_seconds"),
        one.amount_or_endless("num_remaining"),
    )


def _read_situation(value: object, place: str) -> Situation:
    one = _Fields(value, place)
    return Situation(
        name=one.text("name"),
        cuts=one.cuts("cuts"),
        profile=_read_profile(one, place),
        row_bytes=one.amount("row_bytes"),
        entry_bytes=one.amount("entry_bytes"),
        block_seconds=(),
        error=one.amount("error"),
        speeds=one.by_worker("speeds", _read_rate),
        threads=one.count("threads", 1),
        entry_seconds=one.amount("entry_seconds"),
        row_seconds=one.amount("row_seconds"),
        apart_row_seconds=one.amount("apart_row_seconds") if one.has("apart_row_seconds") else 0.0,
        iteration=one.count("iteration"),
        num_remaining=one.amount_or_endless("num_remaining"),
        iteration_seconds=one.amount("iteration_seconds"),
        costs=Costs(
            one.amount("fixed_seconds"), _read_rate(one.value("bytes_per_second"), one.at("bytes_per_second"))
        ),
        other_seconds=one.by_worker("other_seconds", _read_amount),
        since_last=one.count("since_last", -1),
        can_split_rows=one.truth("can_split_rows"),
    )


def _read_profile(one: _Fields, place: str) -> Profile:
    places, entries = one.counts("places"), one.counts("entries")
    if not places or places[0] != 0 or any(a >= b for a, b in pairwise(places)):
        raise _WrongError(f"{place}.places is {_short(list(places))}: they start at 0 and increase")
    if len(entries) != len(places) or any(a > b for a, b in pairwise(entries)):
        raise _WrongError(f"{place}.entries are {len(entries)} for {len(places)} places, and never decrease")
    return Profile(np.array(places, np.int64), np.array(entries, np.int64))
