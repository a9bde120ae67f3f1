"""How nested arrays were cut, in words and as rows: what was predicted of both strategies, and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.facts import HistorySection
from matnb.pictures.quantities import count_text, plural_text, seconds_text

HEAD = ("segments", "values", "longest", "strategy", "segmented", "uniform", "measured", "reason")
LEGEND = (
    "segmented, uniform: predicted for a reduction, seconds of the busiest slot + between rounds; measured: "
    "its seconds in the first one"
)


def strategies_section(strategies: Sequence[StrategyFacts]) -> HistorySection | None:
    """Return how nested arrays were cut as a part of the history; None where there is none."""
    if not strategies:
        return None
    rows, sentences = tuple(map(row, strategies)), tuple(map(strategy_text, strategies))
    return HistorySection("nested arrays as a table", "nested array", LEGEND, HEAD, rows, sentences)


@dataclass(frozen=True)
class StrategyFacts:
    """Facts of how a nested array was cut.

    Parameters
    ----------
    num_segments, num_values, longest, strategy, reason
        As of the choice.
    segmented, uniform
        What a reduction was predicted to take: of the busiest slot, and what lies between its rounds.
    measured_seconds
        Of the busiest slot in the first reduction, or None.
    is_compiled
        Whether machine code was made or read meanwhile.
    num_times
        How often it was chosen.
    """

    num_segments: int
    num_values: int
    longest: int
    strategy: str
    reason: str
    segmented: tuple[float, float]
    uniform: tuple[float, float]
    measured_seconds: float | None = None
    is_compiled: bool = False
    num_times: int = 1


def strategy_text(one: StrategyFacts) -> str:
    """Return how an array was cut in a sentence."""
    array = f"{plural_text(one.num_segments, 'segment')} of {plural_text(one.num_values, 'value')}"
    words = [f"predicted: segmented {cost_text(one.segmented)}, uniform {cost_text(one.uniform)}"]
    words += [f"measured: {measured_text(one)}"] if one.measured_seconds is not None else []
    of = f"the longest of {count_text(one.longest)}"
    return f"{array}, {of}, {one.strategy}: {'; '.join([one.reason, *words])}"


def row(one: StrategyFacts) -> tuple[str, ...]:
    """Return the cells of an array's table row, in the order of ``HEAD``."""
    times = f" {count_text(one.num_times)}x" if one.num_times > 1 else ""
    return (
        count_text(one.num_segments),
        count_text(one.num_values),
        count_text(one.longest),
        f"{one.strategy}{times}",
        cost_text(one.segmented),
        cost_text(one.uniform),
        measured_text(one),
        one.reason,
    )


def cost_text(cost: tuple[float, float]) -> str:
    """Return the busiest slot's seconds, plus those between two rounds if there are two."""
    work, between = cost
    return f"{seconds_text(work)} + {seconds_text(between)}" if between else seconds_text(work)


def measured_text(one: StrategyFacts) -> str:
    """Return what the first reduction took; nothing where there was none."""
    if one.measured_seconds is None:
        return ""
    code = ", with machine code made" if one.is_compiled else ""
    return f"{seconds_text(one.measured_seconds)}{code}"
