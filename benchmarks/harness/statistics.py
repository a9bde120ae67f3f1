"""What is told of repeated times: medians, the ratio of two contenders, its spread, and the verdict."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

TIE = 1.2  # two contenders whose times lie closer than this are called tied


@dataclass(frozen=True)
class Ratio:
    """How long one contender takes for each second of another: of the medians, and its spread over rounds.

    ``low`` and ``high`` are the quartiles of the ratios of single rounds.
    """

    value: float
    low: float
    high: float

    @property
    def is_tie(self) -> bool:
        """Tell whether the gap is too small to be called one."""
        return 1 / TIE < self.value < TIE

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def ratio_of(mine: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Return the ratio of two contenders' medians, and the quartiles of the rounds' ratios around it."""
    if not mine or len(mine) != len(theirs):
        raise ValueError(f"{len(mine)} and {len(theirs)} rounds: give as many of both, and at least one")
    each = [one / other for one, other in zip(mine, theirs, strict=True)]
    low, high = quartiles(each)
    value = statistics.median(mine) / statistics.median(theirs)
    return Ratio(value, min(low, value), max(high, value))


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the lower and the upper quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def best_of(seconds: Mapping[str, Sequence[float]]) -> str:
    """Return the name of the contender with the least median."""
    return min(seconds, key=lambda name: statistics.median(seconds[name]))


def verdict(ratio: Ratio, target: float | None) -> str:
    """Say whether a ratio meets its target; without a target, who is faster; and whether it is a tie."""
    if target is None:
        return "tie" if ratio.is_tie else "faster" if ratio.value < 1 else "slower"
    outcome = "holds" if ratio.value <= target else "missed"
    return f"{outcome}, a tie" if ratio.is_tie else outcome


def duration(seconds: float) -> str:
    """Return a time with three digits in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale or unit == "us":
            number = seconds / scale
            return f"{number:.{0 if number >= 100 else 1 if number >= 10 else 2}f} {unit}"
    raise AssertionError("the last unit takes every time")
