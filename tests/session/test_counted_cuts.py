"""Where last bits may follow the cuts, these follow from counts; what moves them back is told, done once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

import numpy as np
import pytest
from fixed_policy import NUM_ROWS, A, B, Stubborn, looped, rng, sessions, small, told
from situations import situation_of

import matnb as mn
from matnb.balance import policy
from matnb.balance.history import History
from matnb.balance.policy import Off
from matnb.balance.situation import Costs
from matnb.blocks.layout import Cuts
from matnb.errors import TooLargeError
from matnb.events import BlocksMoved, Event, LoopAdvanced, Rebalanced
from matnb.session import groups
from matnb.session.repartitioner import Repartitioner

__all__ = ["sessions", "small"]

pytestmark = pytest.mark.usefixtures("small")
W = rng.random((NUM_ROWS, 20))
BY_TIME = (0, 100, NUM_ROWS)


def by_parts(w: mn.DistArray, y: mn.DistArray) -> np.ndarray:
    # A product of dense arrays adds its blocks' shares: the last bits follow the cuts.
    return (w.T @ y).compute()


def test_between_cells_cuts_do_not_go_to_and_fro(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance=Stubborn({1: BY_TIME}, name="auto"), memo="off")
    events = told(session)
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
    first = a.layout.grid.cuts[0]
    by_parts(w, a @ B)
    for turn in (1, 2):
        assert a.layout.grid.cuts[0] == first
        (a @ (B + turn)).compute()
    assert a.layout.grid.cuts[0] == BY_TIME
    for turn in range(4, 7):
        by_parts(w, a @ (B + turn))
        assert a.layout.grid.cuts[0] == first
        (a @ (B - turn)).compute()
    acted = [one.decision for one in session.history if one.decision.acts]
    assert [(one.policy, one.after.cuts) for one in acted] == [("auto", BY_TIME), ("bits", first)]
    assert [one.policy for one in events if isinstance(one, Rebalanced) and one.acted] == ["auto", "bits"]
    assert sum(isinstance(one, BlocksMoved) for one in events) == 2


@pytest.mark.parametrize("how", ["made", "aligned", "looped"])
def test_what_lies_as_an_array_that_times_cut_is_cut_by_counts_too(
    sessions: Callable[..., mn.session.Session], how: str
) -> None:
    def found() -> tuple[np.ndarray, mn.DistArray, mn.DistArray]:
        a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
        looped(a, 20)
        y = a @ mn.asarray(B)
        if how == "aligned":
            y = mn.asarray(A @ B, blocks=3).persist()
            mn.align(a, y)
        if how == "looped":
            y = mn.iterate(lambda x: a @ x / 10, mn.asarray(B, blocks=4), max_iterations=3)[0]
        y.persist()
        return by_parts(w, y), a, y

    sessions(rebalance="off", engine="dask")
    expected, a, _ = found()
    first = a.layout.grid.cuts[0]
    sessions(rebalance=Stubborn({5: BY_TIME}), engine="dask")
    value, a, y = found()
    np.testing.assert_array_equal(value, expected)
    assert a.layout.grid.cuts[0] == (first if how == "aligned" else BY_TIME)
    assert y.layout.grid.cuts[0] == first


def test_counts_decide_alike_whatever_was_measured(sessions: Callable[..., mn.session.Session]) -> None:
    stubborn = Stubborn({3: BY_TIME})
    sessions(rebalance=stubborn, memo="off", engine="dask")
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()

    def loop() -> None:
        step = lambda x: a @ (w @ (w.T @ x)) / 10_000  # noqa: E731
        mn.iterate(step, mn.asarray(B, blocks=4), max_iterations=3)[0].compute()

    def seen() -> dict[str, object]:
        stubborn.seen.clear()
        loop()
        named = {one.name: getattr(stubborn.seen[0], one.name) for one in fields(stubborn.seen[0])}
        profile = named.pop("profile")
        named.pop("name")  # what is given again is another array, with the memo off
        return {**named, "places": profile.places.tolist(), "entries": profile.entries.tolist()}

    expected = seen()
    looped(a, 20)
    looped(a, 20)  # from cuts by times on, whose costs were learned
    assert a.layout.grid.cuts[0] == BY_TIME
    assert seen() == expected


def test_where_owners_are_gone_counts_spread_the_parts_anew(
    sessions: Callable[..., mn.session.Session],
) -> None:
    session = sessions(rebalance="auto")
    w = mn.asarray(W, blocks=2).persist()
    balancer = session._runner.balancer
    balancer.layouts.follow_times(session._store.entry(w.expression), Cuts((0, 7, 30, NUM_ROWS), (0, 4, 9)))
    by_parts(w, mn.asarray(B))
    assert w.layout.grid.cuts[0] == (0, 7, 30, NUM_ROWS)
    assert set(w.layout.owners) == {0, 1}


def test_parts_that_a_person_wants_stay(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance=Stubborn({}), engine="dask")
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
    looped(a, 20)
    mn.repartition(a, 3)
    (asked,) = [one.decision for one in session.history if one.decision.acts]
    assert asked.block_seconds  # measured times had a say
    by_parts(w, a @ B)
    assert a.layout.grid.cuts[0] == asked.after.cuts


def test_present_cuts_that_a_person_wants_stay(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance=Stubborn({5: BY_TIME}), engine="dask")
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
    looped(a, 20)
    mn.repartition(a, cuts=BY_TIME)
    by_parts(w, a @ B)
    assert a.layout.grid.cuts[0] == BY_TIME
    assert [one.decision.policy for one in session.history if one.decision.acts] == ["stubborn"]


def test_without_room_for_the_cuts_that_counts_gave_it_is_told_how_to_keep_these(
    sessions: Callable[..., mn.session.Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sessions(rebalance=Stubborn({5: BY_TIME}), engine="dask", memo="off")
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
    looped(a, 20)
    y = (a @ B).persist()

    def full(*asked: object) -> None:
        raise TooLargeError("it does not fit")

    with monkeypatch.context() as patch:
        patch.setattr(session._runner.balancer.layouts, "change_rows", full)
        with pytest.raises(TooLargeError, match=r"it does not fit\. mn\.repartition\(x, cuts="):
            by_parts(w, y)
        assert y.layout.grid.cuts[0] == BY_TIME
        for one in (a, y):
            mn.repartition(one, cuts=one.layout.grid.cuts)
        by_parts(w, y)


def test_cuts_that_stay_keep_their_owners(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance="off", workers=2)
    a = mn.asarray(A, blocks=[[0, 100, 300, NUM_ROWS], None]).persist()
    (entry,) = (one for one, node in session._store.named().items() if node.sparse)
    uneven = Cuts(a.layout.grid.cuts[0], (0, 1, 1))
    session._runner.balancer.layouts.change_rows("A", {a.expression: entry}, uneven)
    assert a.layout.owners == (0, 1, 1)
    mn.repartition(a, cuts=a.layout.grid.cuts)
    assert a.layout.owners == (0, 1, 1)


def test_refusals_are_told_though_the_history_is_full(sessions: Callable[..., mn.session.Session]) -> None:
    session = sessions(rebalance="auto")
    events = told(session)
    decider = session._runner.balancer.decider
    decider.history = History(limit=2)
    for name in ("A", "A", "B", "C", "D", "D"):
        decider.note_refusal(Off().decide(situation_of([1, 2], (0, 1, 2), name=name)))
    assert [one.name for one in events if isinstance(one, Rebalanced)] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(("rebalance", "by_parts"), [("off", False), ("entries", False), ("auto", True)])
def test_workers_that_come_are_used_by_loops_that_do_not_follow_times(
    sessions: Callable[..., mn.session.Session],
    monkeypatch: pytest.MonkeyPatch,
    rebalance: str,
    by_parts: bool,
) -> None:
    session = sessions(rebalance=rebalance, engine="dask")
    planner = session._runner.planner
    workers, is_alone = planner.workers, True

    def come(event: Event) -> None:
        nonlocal is_alone
        is_alone = is_alone and not (isinstance(event, LoopAdvanced) and event.iterations >= 3)

    monkeypatch.setattr(
        planner, "workers", lambda: replace(workers(), numbers=(0, 1)[: 2 - is_alone], machines=())
    )
    monkeypatch.setattr(planner, "have_come", lambda numbers: not (is_alone or 1 in numbers))
    monkeypatch.setattr(policy, "FIXED_COSTS", Costs(0.0, 1e15))
    session.subscribe(come)
    balancer, pauses = session._runner.balancer, []
    repartition = balancer.repartition_paused
    monkeypatch.setattr(
        balancer, "repartition_paused", lambda *given: (pauses.append(given), repartition(*given))[1]
    )
    a, w = mn.asarray(A, blocks=4).persist(), mn.asarray(W, blocks=4).persist()
    step = (lambda x: a @ (w @ (w.T @ x)) / 10_000) if by_parts else (lambda x: a @ x / 10)
    mn.iterate(step, mn.asarray(B, blocks=4), max_iterations=12)[0].compute()
    assert not is_alone
    assert len(pauses) == (rebalance != "off")
    assert set(a.layout.owners) == ({0} if rebalance == "off" else {0, 1})
    acted = [one.decision for one in session.history if one.decision.acts and one.decision.iteration]
    assert [one.policy for one in acted] == ([] if rebalance == "off" else ["workers"])


@pytest.mark.parametrize(("costs", "is_looked_at"), [(Costs(100.0, 1e15), False), (Costs(0.0, 1e15), True)])
def test_where_entries_are_is_looked_up_only_for_loops_that_cuts_may_pay_for(
    sessions: Callable[..., mn.session.Session],
    monkeypatch: pytest.MonkeyPatch,
    costs: Costs,
    is_looked_at: bool,
) -> None:
    looks: list[object] = []
    profile = Repartitioner.profile
    monkeypatch.setattr(Repartitioner, "profile", lambda *given: (looks.append(given[1]), profile(*given))[1])
    monkeypatch.setattr(groups, "FIXED_COSTS", costs)
    session = sessions(rebalance="auto", engine="dask")
    a = mn.asarray(A, blocks=([0, 500, 1000, 1500, NUM_ROWS], [0, NUM_ROWS])).persist()  # uneven
    mn.iterate(lambda x: a @ x / 10, mn.asarray(B, blocks=4), max_iterations=20)[0].compute()
    assert bool(looks) == is_looked_at
    assert session.history  # either way it stands there with its reason
