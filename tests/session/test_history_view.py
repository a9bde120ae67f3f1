"""What is told of a replayed history where everything has to repeat."""

from __future__ import annotations

from dataclasses import replace

import pytest

from matnb.balance.decision import Decision
from matnb.balance.history import History
from matnb.blocks.layout import Cuts
from matnb.session.history_view import HistoryView

RECUT = Decision(
    "A", "replay", True, "replayed: uneven: 1.5", Cuts((0, 50, 100), (0, 1)), Cuts((0, 20, 100), (0, 1)),
    "segmented", {0: 3.0, 1: 1.0}, {0: 2.0, 1: 2.0}, (), 1.0, 10.0, 0.5, 800, 6,
)  # fmt: skip


def view(*decisions: Decision) -> HistoryView:
    history = History()
    for one in decisions:
        history.add(one)
    return HistoryView(history, "replay")


@pytest.mark.parametrize("measured", [False, True])
def test_a_replayed_re_cut_is_told_with_its_iteration_which_is_that_of_the_trace(measured: bool) -> None:
    told = view(RECUT).bundle(measured)
    assert "A repartitioned after iteration 6 (replay)" in told["text/html"]
    at_first = view(replace(RECUT, iteration=0)).bundle(measured)["text/html"]
    assert "A repartitioned before the first iteration (replay)" in at_first
    assert told["text/plain"] != view(replace(RECUT, iteration=8)).bundle(measured)["text/plain"]


def test_it_is_shown_where_one_asks_for_it_in_a_script_too(capsys: pytest.CaptureFixture[str]) -> None:
    HistoryView().show()
    assert capsys.readouterr().out == "rebalance=auto: no decision yet\n"
