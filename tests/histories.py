"""Histories of balancing, made up: every second decision was acted upon."""

from __future__ import annotations

from matnb.balance.decision import Decision, Gain
from matnb.balance.history import History
from matnb.blocks.layout import Cuts
from matnb.session.history_view import HistoryView

BEFORE, AFTER = Cuts((0, 500, 1000), (0, 1)), Cuts((0, 100, 1000), (0, 1))


def decided(iteration: int, acts: bool) -> Decision:
    """Return a decision about A."""
    return Decision(
        name="A", policy="auto", acts=acts, reason=f"reason {iteration}: 1.5", before=BEFORE, after=AFTER,
        strategy="segmented", loads_before={0: 0.9, 1: 0.1}, loads_after={0: 0.5, 1: 0.5}, block_seconds=(),
        saving_seconds=0.4, num_remaining=10, cost_seconds=0.1, moved_bytes=1000, iteration=iteration,
    )  # fmt: skip


def view(count: int) -> HistoryView:
    """Return so many of them, with what the ones acted upon brought."""
    history = History()
    for iteration in range(count):
        number = history.add(decided(iteration, iteration % 2 == 0))
        if iteration % 2 == 0:
            history.gained(number, Gain({0: 0.5, 1: 0.5}, 0.4, 0.1, 1000))
    return HistoryView(history)
