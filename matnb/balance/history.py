"""The history of balancing: decisions, acted upon or refused, what they gained, and times meanwhile."""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from matnb.balance.decision import Decision, Gain, HistoryItem
from matnb.balance.situation import Situation
from matnb.balance.trace import RecordedTimes, Times, Trace

MOST_ROUNDS = 5000  # of times that are kept
MOST_STRETCHES = 200  # with the same cuts, to which they belong
_NUMBERS = re.compile(r"[\d.,]+(?:e[+-]?\d+)?")


class History:
    """Every decision of a session, the newest ``limit`` of them; may be read by any thread.

    Parameters
    ----------
    limit
        When there are more, those that were refused go first.
    most_rounds
        The same for times.
    """

    def __init__(self, limit: int = 1000, most_rounds: int = MOST_ROUNDS) -> None:
        self._limit, self._most_rounds = limit, most_rounds
        self._lock = threading.Lock()
        self._passed: dict[int, HistoryItem] = {}
        self._next = 0
        self._num_dropped = 0
        self._stretches: deque[_Stretch] = deque()
        self._open: dict[str, _Stretch] = {}

    def add(self, decision: Decision) -> int:
        """Take a decision, and return its number.

        A refusal of the same arrays as the last one, for a reason that differs in its numbers only, takes
        that one's place and number.
        """
        with self._lock:
            last = self._last(decision.name)
            if last is not None and _is_repeat(last.decision, decision):
                self._passed[last.number] = replace(last, decision=decision, num_repeats=last.num_repeats + 1)
                return last.number
            number = self._next
            self._next += 1
            self._passed[number] = HistoryItem(number, decision)
            if len(self._passed) > self._limit:
                refused = (n for n, one in self._passed.items() if not one.decision.acts and n != number)
                del self._passed[next(refused, next(iter(self._passed)))]
                self._num_dropped += 1
            return number

    def gained(self, number: int, gain: Gain) -> None:
        """Fill in what a decision gained; one that fell out of the history is passed over."""
        with self._lock:
            if number in self._passed:
                self._passed[number] = replace(self._passed[number], gain=gain)

    def measured(
        self, situation: Situation, owner: int, num_iterations: int, seconds: Mapping[int, float]
    ) -> None:
        """Record what one worker measured, so that policies can be tried on it later.

        Parameters
        ----------
        situation
            Of these arrays now; its seconds of blocks are not looked at.
        owner
            The worker.
        num_iterations
            Over how many iterations the seconds were taken.
        seconds
            By the number of the block, the sum over these iterations.
        """
        with self._lock:
            stretch = self._open.get(situation.name)
            if stretch is None or not stretch.goes_on(situation):
                stretch = self._open[situation.name] = _Stretch(situation)
                self._stretches.append(stretch)
            stretch.add(situation, owner, num_iterations, seconds)
            while sum(len(one.times) for one in self._stretches) > self._most_rounds:
                if self._stretches[0].times:
                    self._stretches[0].drop_oldest()
                else:
                    self._drop_stretch()
            while len(self._stretches) > MOST_STRETCHES:
                self._drop_stretch()

    @property
    def passed(self) -> tuple[HistoryItem, ...]:
        """The decisions that are kept, the oldest first."""
        with self._lock:
            return tuple(self._passed.values())

    @property
    def num_dropped(self) -> int:
        """Decisions that were too old to be kept."""
        return self._num_dropped

    def last(self, name: str | None = None) -> HistoryItem | None:
        """Return the newest decision, of all or of the arrays with a name."""
        with self._lock:
            return self._last(name)

    def trace(self) -> Trace:
        """Return all that is kept."""
        with self._lock:
            recorded = tuple(one.recorded() for one in self._stretches if one.times)
            return Trace(tuple(self._passed.values()), recorded, self._num_dropped)

    def clear(self) -> None:
        """Forget everything; numbers go on."""
        with self._lock:
            self._passed.clear()
            self._stretches.clear()
            self._open.clear()
            self._num_dropped = 0

    def __len__(self) -> int:
        return len(self._passed)

    def __iter__(self) -> Iterator[HistoryItem]:
        return iter(self.passed)

    def _drop_stretch(self) -> None:
        oldest = self._stretches.popleft()
        if self._open.get(oldest.situation.name) is oldest:
            del self._open[oldest.situation.name]

    def _last(self, name: str | None) -> HistoryItem | None:
        newest = reversed(self._passed.values())
        return next((one for one in newest if name is None or one.decision.name == name), None)


def _is_repeat(last: Decision, new: Decision) -> bool:
    return (
        not (last.acts or new.acts)
        and last.policy == new.policy
        and last.before == new.before
        and _kind(last.reason) == _kind(new.reason)
    )


def _kind(reason: str) -> str:
    return _NUMBERS.sub("#", reason.partition(":")[0])


class _Stretch:
    """Times that are measured while the cuts stay as they are."""

    def __init__(self, situation: Situation) -> None:
        self.situation = replace(situation, block_seconds=())
        self.times: deque[Times] = deque()
        self._begin_round()

    def goes_on(self, situation: Situation) -> bool:
        """Whether these are still the same rows, cut alike."""
        old, new = self.situation.profile, situation.profile
        return situation.cuts == self.situation.cuts and (
            old is new
            or (np.array_equal(old.places, new.places) and np.array_equal(old.entries, new.entries))
        )

    def add(
        self, situation: Situation, owner: int, num_iterations: int, seconds: Mapping[int, float]
    ) -> None:
        if num_iterations < 1:
            return
        self._seconds[owner] = {block: one / num_iterations for block, one in seconds.items()}
        self._counts[owner] = num_iterations
        cuts = self.situation.cuts
        told = {block for one in self._seconds.values() for block in one}
        if len(told) < cuts.num_blocks or not set(cuts.owners) <= self._counts.keys():
            return
        # Workers that share a heavy row each tell of their part of its block.
        blocks = [0.0] * cuts.num_blocks
        loads = dict.fromkeys(situation.speeds, 0.0) | dict(situation.other_seconds)
        for one, parts in self._seconds.items():
            for block, part in parts.items():
                blocks[block] += part
                loads[one] = loads.get(one, 0.0) + part
        self.times.append(
            Times(
                situation.iteration,
                min(self._counts.values()),
                tuple(blocks),
                loads,
                situation.iteration_seconds,
                situation.num_remaining,
            )
        )
        self._begin_round()

    def drop_oldest(self) -> None:
        self.times.popleft()

    def recorded(self) -> RecordedTimes:
        return RecordedTimes(self.situation, tuple(self.times))

    def _begin_round(self) -> None:
        self._seconds: dict[int, dict[int, float]] = {}  # by worker and block
        self._counts: dict[int, int] = {}
