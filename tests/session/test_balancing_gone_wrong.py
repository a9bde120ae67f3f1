"""What the session's balancer does where a repartition cannot be, or must be taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from fixed_policy import NUM_ROWS, A, Stubborn, looped, sessions, small

import matnb as mn
from matnb.balance.decision import Decision
from matnb.balance.situation import Situation
from matnb.blocks.layout import Cuts
from matnb.errors import TooLargeError

__all__ = ["sessions", "small"]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("wanted", [(0, 900), (0, 900, 900, NUM_ROWS), (5, NUM_ROWS), (0, 700, NUM_ROWS)])
def test_cuts_of_a_person_that_cannot_be_are_refused(
    sessions: Callable[..., mn.session.Session], wanted: tuple[int, ...]
) -> None:
    class Wrong(Stubborn):
        def decide(self, situation: Situation) -> Decision:
            found = super().decide(situation)
            owners = (7,) * found.after.num_blocks  # there is no such worker
            return replace(found, after=Cuts(found.after.cuts, owners)) if found.acts else found

    sessions(rebalance=Wrong({3: wanted}))
    array = mn.asarray(A, blocks=2)
    found = looped(array)
    reasons = [one.decision.reason.split(":")[0] for one in mn.history()]
    assert "no owners" in reasons if wanted == (0, 700, NUM_ROWS) else "no cuts" in reasons
    assert not any(one.decision.acts for one in mn.history())
    mn.stop()
    sessions(rebalance="off")
    np.testing.assert_array_equal(found, looped(mn.asarray(A, blocks=2)))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("iteration", [0, 3])
def test_a_loop_that_does_not_fit_after_a_re_cut_gets_its_cuts_back(
    sessions: Callable[..., mn.session.Session], monkeypatch: pytest.MonkeyPatch, iteration: int
) -> None:
    session = sessions(rebalance=Stubborn({iteration: (0, 50, NUM_ROWS)}))
    array = mn.asarray(A, blocks=2).persist()
    planner = session._runner.planner
    check, num_failed = planner.check_peaks, 0

    def checked(*given: object) -> None:
        nonlocal num_failed
        if array.layout.grid.cuts[0] == (0, 50, NUM_ROWS):
            num_failed += 1
            raise TooLargeError("too much for worker 1")
        check(*given)

    monkeypatch.setattr(planner, "check_peaks", checked)
    found = looped(array)
    assert num_failed == 1
    assert array.layout.grid.cuts[0] == (0, NUM_ROWS // 2, NUM_ROWS)
    assert any(one.decision.reason.startswith("no room: ") for one in mn.history())
    mn.stop()
    sessions(rebalance="off")
    np.testing.assert_array_equal(found, looped(mn.asarray(A, blocks=2)))


@pytest.mark.usefixtures("small")
def test_before_another_loop_it_is_known_how_much_was_measured(
    sessions: Callable[..., mn.session.Session],
) -> None:
    policy = Stubborn({})
    sessions(rebalance=policy)
    a = mn.asarray(A, blocks=4).persist()
    looped(a, 300)
    policy.seen.clear()
    looped(a, 301)
    (first, *_) = policy.seen
    assert first.iteration == 0
    assert len(first.block_seconds) == 4
    assert first.since_last > 0
