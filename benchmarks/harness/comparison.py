"""One claim: matnb and its peers on the same input, alternating, over several rounds."""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from harness.machine import print_load
from harness.record import Line, append
from harness.statistics import Ratio, best_of, duration, ratio_of, verdict

ROUNDS = 9
FEWEST_RECORDED = 5  # medians of fewer rounds are printed, not recorded
SETTLING_SECONDS = 0.05  # OpenMP's threads wait actively for some ten milliseconds after a call
OURS = "matnb"


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
    """

    name: str
    run: Callable[[Any], Any]
    prepare: Callable[[int], Any] = lambda number: number
    value: Callable[[Any], Any] = lambda result: result
    judged: bool = True
    tolerance: float | None = 1e-9


@dataclass(frozen=True)
class Comparison:
    """The times of a claim, by contender and round; matnb comes first."""

    claim: Claim
    seconds: Mapping[str, Sequence[float]]
    judged: Sequence[str]
    notes: Sequence[str] = field(default=())

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
            ratio = "" if name == OURS else f"   matnb / it {ratio_of(self.seconds[OURS], seconds)}"
            mark = "" if name == OURS or name in self.judged else "   (information)"
            lines.append(f"  {name:<34} {duration(median):>9}{ratio}{mark}")
        lines += [f"  {note}" for note in self.notes]
        target = "" if self.claim.target is None else f", target <= {self.claim.target:g}"
        outcome = verdict(self.ratio, self.claim.target)
        lines.append(f"  => {self.ratio.value:.2f} of {self.peer}{target}: {outcome}")
        return "\n".join(lines)

    def line(self, load: float) -> Line:
        """Return what is recorded."""
        return Line.now(
            claim=self.claim.name,
            work=self.claim.work,
            target=self.claim.target,
            seconds={name: tuple(round(one, 7) for one in each) for name, each in self.seconds.items()},
            judged=tuple(self.judged),
            notes=tuple(self.notes),
            load=load,
        )


class Bench:
    """One run of a script: its number of rounds, the load it started under, and what it found.

    A script that names a ``scale`` can be tried at a smaller one, which is not recorded.
    """

    def __init__(self, description: str | None, scale: int = 0) -> None:
        parser = argparse.ArgumentParser(description=description)
        parser.add_argument("--rounds", type=int, default=ROUNDS, help="each contender runs once a round")
        if scale:
            parser.add_argument("--scale", type=int, default=scale, help="of the graph: 2^scale vertices")
        given = parser.parse_args()
        self.rounds: int = max(1, given.rounds)
        self.scale: int = given.scale if scale else 0
        self.is_trial = self.scale != scale
        self.load = print_load()

    def compare(
        self, claim: Claim, contenders: Sequence[Contender], notes: Callable[[], Sequence[str]] = lambda: ()
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
        """
        seconds = timed(contenders, self.rounds)
        judged = [one.name for one in contenders[1:] if one.judged]
        comparison = Comparison(claim, seconds, judged, tuple(notes()))
        self.publish(comparison)
        return comparison

    def publish(self, comparison: Comparison) -> None:
        """Print a comparison, and append it to the record unless it has too few rounds or is a trial."""
        print(comparison.text(), flush=True)
        if not self.is_trial and min(map(len, comparison.seconds.values())) >= FEWEST_RECORDED:
            append(comparison.line(self.load))


def timed(
    contenders: Sequence[Contender],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
    in_turn: bool = False,
) -> dict[str, list[float]]:
    """Return the seconds of each contender in each round, after one round that checks that all agree.

    ``in_turn`` runs each for a while before it is timed: kernels of some milliseconds pay for the contender
    before, whose threads wait actively and whose data fill the caches.
    """
    check_agreement(contenders)
    seconds: dict[str, list[float]] = {one.name: [] for one in contenders}
    for number in range(1, rounds + 1):
        turn = contenders if number % 2 else tuple(reversed(contenders))
        for contender in turn:
            given = contender.prepare(number)
            gc.collect()
            settled = time.perf_counter() + SETTLING_SECONDS
            while in_turn and time.perf_counter() < settled:
                contender.run(given)
            begin = clock()
            result = contender.run(given)
            seconds[contender.name].append(clock() - begin)
            del given, result
    return seconds


def check_agreement(contenders: Sequence[Contender]) -> None:
    """Run every contender once, which also compiles and imports, and refuse to time what differs."""
    first, *others = contenders
    expected = first.value(first.run(first.prepare(0)))
    for contender in others:
        found = contender.value(contender.run(contender.prepare(0)))
        if contender.tolerance is not None and not agree(expected, found, contender.tolerance):
            raise SystemExit(f"{first.name} and {contender.name} give different results: nothing was timed")


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
