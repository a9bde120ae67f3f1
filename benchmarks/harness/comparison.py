"""One claim: matnb and its peers on the same input, alternating, over several rounds."""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness.machine import print_load
from harness.processors import Stopwatch
from harness.record import RESULTS, Line, append
from harness.statistics import Ratio, best_of, duration, ratio_of, verdict

ROUNDS = 9
FEWEST_RECORDED = 5  # medians of fewer rounds are printed, not recorded
SETTLING_SECONDS = 0.05  # OpenMP's threads wait actively for some ten milliseconds after a call
OURS = "matnb"
LIMIT = "the limit"  # stands for a peer where a target is in seconds


@dataclass(frozen=True)
class Claim:
    """What is claimed.

    Attributes
    ----------
    name
        Short; the newest line of a name is what the document shows.
    work
        What is computed, on what.
    target
        The most that matnb may take for each second of the best peer; None where nothing is promised.
    """

    name: str
    work: str
    target: float | None = None


@dataclass(frozen=True)
class Contender:
    """One way to do the work.

    Attributes
    ----------
    run
        What is timed: from what ``prepare`` gave to the result.
    prepare
        Makes the input of a round, which is not timed; given the round's number, so that all contenders
        start from the same values and no result can come from memory.
    value
        Turns a result into what can be compared: a number, a NumPy array or a SciPy matrix.
    judged
        Whether the target is against it; else it is shown for information.
    tolerance
        How much of a value its result may differ by; more for what iterates to an end of its own, None for
        what computes something a little different.
    within
        Makes a context in which it runs, entered before the clock starts: how many threads it may use.
    """

    name: str
    run: Callable[[Any], Any]
    prepare: Callable[[int], Any] = lambda number: number
    value: Callable[[Any], Any] = lambda result: result
    judged: bool = True
    tolerance: float | None = 1e-9
    within: Callable[[], AbstractContextManager[Any]] = nullcontext


@dataclass(frozen=True)
class Times:
    """Wall seconds and the seconds of processors, of all processes, by contender and round."""

    wall: dict[str, list[float]]
    cpu: dict[str, list[float]]

    def __getitem__(self, name: str) -> list[float]:
        """Return the wall seconds of a contender."""
        return self.wall[name]

    def per_call(self, calls: int) -> Times:
        """Return what one of so many calls takes that were timed together."""
        return Times(*({name: [one / calls for one in each] for name, each in part.items()}
                       for part in (self.wall, self.cpu)))  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The times of a claim, by contender and round; matnb comes first."""

    claim: Claim
    seconds: Mapping[str, Sequence[float]]
    judged: Sequence[str]
    notes: Sequence[str] = field(default=())
    cpu_seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)

    @property
    def peer(self) -> str:
        """The best of the peers that count."""
        return best_of({name: self.seconds[name] for name in self.judged})

    @property
    def ratio(self) -> Ratio:
        """Matnb's time for each second of the best peer."""
        return ratio_of(self.seconds[OURS], self.seconds[self.peer])

    def text(self) -> str:
        """Return what is printed."""
        lines = [self.claim.work]
        for name, seconds in self.seconds.items():
            median = statistics.median(seconds)
            cpu = self.cpu_seconds.get(name)
            used = "" if cpu is None else f"{duration(statistics.median(cpu)):>9} CPU"
            ratio = "" if name == OURS else f"   matnb / it {ratio_of(self.seconds[OURS], seconds)}"
            mark = "" if name == OURS or name in self.judged else "   (information)"
            lines.append(f"  {name:<40} {duration(median):>9} {used:>13}{ratio}{mark}")
        lines += [f"  {note}" for note in self.notes]
        if not self.judged:
            return "\n".join(lines)
        target = "" if self.claim.target is None else f", target <= {self.claim.target:g}"
        outcome = verdict(self.ratio, self.claim.target)
        lines.append(f"  => {self.ratio.value:.2f} of {self.peer}{target}: {outcome}")
        return "\n".join(lines)

    def line(self, load: float, is_busy: bool = False) -> Line:
        """Return what is recorded."""
        return Line.now(
            claim=self.claim.name,
            work=self.claim.work,
            target=self.claim.target,
            seconds=_rounded(self.seconds),
            judged=tuple(self.judged),
            notes=tuple(self.notes),
            load=load,
            cpu_seconds=_rounded(self.cpu_seconds),
            is_busy=is_busy,
        )


def _rounded(seconds: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    return {name: tuple(round(one, 7) for one in each) for name, each in seconds.items()}


class Bench:
    """One run of a script: its number of rounds, the load it started under, and what it found.

    A script that names a ``scale`` can be tried at a smaller one, and one that asks :meth:`sized` on small
    inputs; neither is recorded.
    """

    def __init__(
        self, description: str | None, scale: int = 0, arguments: Sequence[str] | None = None
    ) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--rounds", type=int, default=ROUNDS, help="each contender runs once a round")
        if scale:
            parser.add_argument("--scale", type=int, default=scale, help="of the graph: 2^scale vertices")
        parser.add_argument("--trial", action="store_true", help="small inputs, where the script has them")
        parser.add_argument("--busy", action="store_true", help="mark what is found as of a busy machine")
        parser.add_argument("--alone", action="store_true", help="check the peers, but time matnb alone")
        parser.add_argument("--judged", action="store_true", help="leave out peers that are for information")
        parser.add_argument("--record", type=Path, help="append all that is found to this file instead")
        given = parser.parse_args(arguments)
        self.rounds: int = max(1, given.rounds)
        self.scale: int = given.scale if scale else 0
        self.is_small: bool = given.trial
        self.is_trial: bool = given.trial or given.alone or self.scale != scale
        self._is_alone: bool = given.alone
        self._is_judged: bool = given.judged
        self._record: Path | None = given.record
        self.load, is_busy = print_load()
        self.is_busy: bool = given.busy or is_busy

    def sized(self, full: int, small: int) -> int:
        """Return a size, or the small one for a trial."""
        return small if self.is_small else full

    def compare(
        self,
        claim: Claim,
        contenders: Sequence[Contender],
        notes: Callable[[], Sequence[str]] = lambda: (),
        *,
        calls: int = 1,
        limit: float | None = None,
    ) -> Comparison:
        """Check that the contenders agree, time them in turn, print, and append to the record.

        Parameters
        ----------
        claim
            What is claimed.
        contenders
            Matnb first.
        notes
            Asked after the last round for sentences to print and record.
        calls
            How many calls each contender makes in a round; the time of one is told.
        limit
            The most seconds that one call may take: then it is the peer that counts.
        """
        if self._is_judged:
            contenders = [contenders[0], *(one for one in contenders[1:] if one.judged)]
        check_agreement(contenders)
        taking_part = contenders[:1] if self._is_alone else contenders
        times = timed(taking_part, self.rounds, is_checked=True).per_call(calls)
        judged = [one.name for one in taking_part[1:] if one.judged and limit is None]
        if limit is not None:
            times.wall[LIMIT] = [limit] * self.rounds
            judged = [LIMIT]
        comparison = Comparison(claim, times.wall, judged, tuple(notes()), times.cpu)
        self.publish(comparison)
        return comparison

    def publish(self, comparison: Comparison) -> None:
        """Print a comparison, and append it to the record unless it has too few rounds or is a trial."""
        print(comparison.text(), flush=True)
        if self._record is not None:
            append(comparison.line(self.load, self.is_busy), self._record)
        elif not self.is_trial and min(map(len, comparison.seconds.values())) >= FEWEST_RECORDED:
            append(comparison.line(self.load, self.is_busy), RESULTS)


def timed(
    contenders: Sequence[Contender],
    rounds: int,
    stopwatch: Stopwatch | None = None,
    in_turn: bool = False,
    is_checked: bool = False,
) -> Times:
    """Return the times of each contender in each round, after one round that checks that all agree.

    ``in_turn`` runs each for a while before it is timed: kernels of some milliseconds pay for the contender
    before, whose threads wait actively and whose data fill the caches. ``is_checked`` tells that they were
    found to agree.
    """
    watch = stopwatch or Stopwatch()
    if not is_checked:
        check_agreement(contenders)
    times = Times({one.name: [] for one in contenders}, {one.name: [] for one in contenders})
    for number in range(1, rounds + 1):
        turn = contenders if number % 2 else tuple(reversed(contenders))
        for contender in turn:
            given = contender.prepare(number)
            gc.collect()
            settled = time.perf_counter() + SETTLING_SECONDS
            with contender.within():
                while in_turn and time.perf_counter() < settled:
                    contender.run(given)
                watch.start()
                result = contender.run(given)
                wall, cpu = watch.stop()
            times.wall[contender.name].append(wall)
            times.cpu[contender.name].append(cpu)
            del given, result
    return times


def check_agreement(contenders: Sequence[Contender]) -> None:
    """Run every contender once, which also compiles and imports, and refuse to time what differs."""
    first, *others = contenders
    expected = _value(first)
    for contender in others:
        found = _value(contender)
        if contender.tolerance is not None and not agree(expected, found, contender.tolerance):
            raise SystemExit(f"{first.name} and {contender.name} give different results: nothing was timed")


def _value(contender: Contender) -> Any:
    given = contender.prepare(0)
    with contender.within():
        result = contender.run(given)
    return contender.value(result)


def agree(one: Any, other: Any, tolerance: float = 1e-9) -> bool:
    """Tell whether two results have the same shape, pattern if sparse, and values but for a tolerance."""
    if sp.issparse(one) and sp.issparse(other):
        one, other = sp.csr_array(one), sp.csr_array(other)
        if one.shape != other.shape:
            return False
        one.sort_indices()
        other.sort_indices()
        same = one.nnz == other.nnz and np.array_equal(one.indices, other.indices)
        return same and np.array_equal(one.indptr, other.indptr) and agree(one.data, other.data, tolerance)
    one, other = np.asarray(one), np.asarray(other)
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=tolerance, atol=1e-3 * tolerance))
