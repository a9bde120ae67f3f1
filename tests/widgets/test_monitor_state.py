"""How what ran last went: how far it came, how it ended, how evenly it was shared."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from notebook_shell import Person, num_drawing
from waiting import wait_until

import matnb as mn
from matnb.errors import CellCancelled
from matnb.events import (
    BatchesFinished,
    BatchSpan,
    LoopAdvanced,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
    WorkersBusy,
)
from matnb.session import Session
from matnb.widgets import monitor as monitors
from matnb.widgets.monitor import close_monitor
from matnb.widgets.monitor_pictures import MonitorCounts, monitor_html
from matnb.widgets.monitor_rows import BatchProgress, MonitorFacts, progress_of, state_text
from matnb.widgets.monitor_state import (
    CellBegan,
    CellEnded,
    Feed,
    Happening,
    LoopState,
    MonitorState,
    PictureEnded,
    reduce,
)

RAN = RunFinished("1", 3, 0, 1, 5, 1000, 0, 0, 1.0, 0.1)


def state_of(*happenings: Happening, begin: MonitorState | None = None) -> MonitorState:
    found = begin or MonitorState()
    for when, one in enumerate(happenings):
        found = reduce(found, float(when), one)
    return found


def timed(worker: int, seconds: float, compiled: bool = False) -> TasksFinished:
    return TasksFinished("1", worker, (TaskTimed("a", "product", worker, seconds, 1, 1, 8, compiled),))


def test_a_loop_took_its_seconds_by_its_iterations_not_what_the_last_one_took() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    found = state_of(
        RunStarted("1", 7, 0), LoopAdvanced("1", 39, 0.9, 50.0), loop, RunStarted("2", 0, 0), RAN
    )
    assert found.last_loop == LoopState(40, 50.0, 0.05)
    assert (found.outcome, found.is_running) == ("", False)


def test_it_runs_from_the_first_event_to_the_last() -> None:
    loop = LoopFinished("1", "gang", "", 1, 7, 2, 10, (), 0, 2.0)
    events = (LoopAdvanced("1", 0, 0.9, 50.0), loop, RunStarted("2", 1, 0), RAN)
    running = [state_of(*events[:number]).is_running for number in range(5)]
    assert running == [False, True, False, True, False]
    assert state_of(*events).last_loop.seconds == 2.0
    nothing = state_of(LoopFinished("1", "gang", "", 0, 7, 2, 10, (), 0, 0.5))
    assert (nothing.last_loop.iteration, nothing.last_loop.seconds) == (0, 0.5)


def test_what_was_stopped_after_a_loop_is_not_told_as_the_loop() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    found = state_of(LoopAdvanced("1", 39, 0.9, 50.0), loop, RunStarted("2", 1, 0), RunStopped("2", True))
    assert (found.last_loop.iteration, found.outcome) == (-1, "cancelled")
    found = state_of(LoopAdvanced("1", 39, 0.9, 50.0), RunStopped("1"))
    assert (found.last_loop, found.outcome) == (LoopState(39, 50.0), "failed")


SPAN = BatchSpan(1, 3, 100, 980, 10, 1080, 10_800, -116.0, 0.4132, 0.4207, 0.125)


def test_batches_of_a_learner_are_told_until_it_ends() -> None:
    now = [0.0]
    feed = Feed(clock=lambda: now[0])
    feed.hear(LoopAdvanced("1", 20, 0.01, 880.0, batches=SPAN))
    now[0] = 4.0
    feed.hear(LoopAdvanced("1", 120, 0.01, 880.0, batches=SPAN))
    words = "batch 220 of 980, pass 2 of 3, 100 rows/s, 12 % waiting for data, loss .4132 (held-out .4207)"
    facts = feed.facts()
    assert state_text(facts) == f"{words}, 2 min 54 s left"
    assert progress_of(facts) == pytest.approx((980 + 220) / (3 * 980))
    feed.hear(LoopFinished("1", "gang", "", 880, 7, 2, 10, (), 0, 2.0))
    feed.hear(LoopAdvanced("2", 0, 0.0, 5.0))  # the loss on rows that are held out
    assert state_text(feed.facts()).startswith("batch 980 of 980, pass 2 of 3, ")
    feed.hear(LoopFinished("2", "gang", "", 5, 7, 2, 10, (), 0, 2.0))
    feed.hear(BatchesFinished())
    assert feed.facts().batches is None
    ended = r"at \S+ ended after batch 980 of 980, pass 2 of 3, \d+ rows/s, 12 % waiting for data, loss .+"
    assert re.fullmatch(ended, state_text(feed.last_facts(None, False)))
    feed.hear(LoopAdvanced("3", 4, 0.5, 8.0))
    assert state_text(feed.facts()) == "iteration 4 of 8, 500 ms each now, 2 s left"
    assert feed.last_facts(None, False).batches is None


def test_a_learner_that_fails_is_told_with_its_batch_and_what_fails_after_it_is_not() -> None:
    going = [LoopAdvanced("1", 7, 0.01, 880.0, batches=SPAN), RunStopped("1", True), BatchesFinished()]
    found = state_of(*going)
    assert (found.batches.iterations, found.outcome, found.is_in_batches) == (7, "cancelled", False)
    assert state_of(RunStarted("2", 1, 0), RunStopped("2"), begin=found).batches is None
    unknown = MonitorFacts(batches=BatchProgress(BatchSpan(0, 1, 0, None, 5, 0, 0, 0.0), 2, 1.0))
    assert progress_of(unknown) is None


def test_a_learner_is_seen_in_its_cell(session: Session) -> None:
    heard: list[str] = []
    feed = Feed()

    def hear(event: object) -> None:
        feed.hear(event)
        heard.append(state_text(feed.facts()))

    X = np.random.default_rng(0).normal(size=(100, 8))
    end = session.subscribe(hear)
    learner = mn.learn.Learner(mn.learn.models.GeneralizedLinear(), optimizer=mn.learn.SGD(0.1))
    learner.fit(X, X.sum(axis=1), epochs=2, batch_size=10)
    end()
    assert any(one.startswith("batch 0 of 10, pass 1 of 2") for one in heard)
    last = feed.last_facts(None, False)
    assert re.match(r"at \S+ ended after batch 10 of 10, pass 2 of 2, ", state_text(last))
    assert "ended after batch 10 of 10" in monitor_html(last)


def test_the_imbalance_is_of_all_kernel_seconds_of_all_workers() -> None:
    feed = Feed()
    feed.hear(WorkersBusy(1, 0.1, ()))
    assert feed.last_facts(None, False).imbalance_of_all == 0.0
    events = (timed(0, 3.0), timed(1, 1.0), timed(0, 1.0), timed(1, 90.0, compiled=True))
    for event in events:
        feed.hear(event)
    assert feed.last_facts(None, False).imbalance_of_all == pytest.approx(4.0 / 2.5)
    for idle in (2, 3):
        feed.hear(WorkersBusy(idle, 0.1, ()))
    assert feed.last_facts(None, False).imbalance_of_all == pytest.approx(4.0 / 1.25)
    feed.hear(RunStarted("1", 1, 0))  # something new begins
    assert feed.state.kernel_seconds == {}


def test_what_ran_is_forgotten_when_something_begins_and_not_when_it_goes_on() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    first = state_of(CellBegan(), RunStarted("1", 1, 0), RAN, LoopAdvanced("2", 1, 0.1), loop)
    assert (first.since, first.ran_at) == (1.0, 4.0)
    assert state_of(RunStarted("3", 1, 0), begin=first).last_loop.iteration == 40
    over = state_of(CellEnded(), begin=first)
    assert (over.since, over.last_loop.iteration) == (None, 40)  # a picture of it stays
    assert state_of(RunStarted("3", 1, 0), begin=over).last_loop.iteration == -1


def test_what_runs_in_the_background_goes_on_after_its_cell() -> None:
    running = state_of(CellBegan(), RunStarted("1", 1, 0), CellEnded(), PictureEnded())
    assert running.since == 1.0
    ended = state_of(RAN, begin=running)
    assert ended.since == 1.0  # the next run is of the same work
    assert state_of(PictureEnded(), begin=ended).since is None


def test_counts_are_of_what_ended_and_a_branch_is_no_loop() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    repartitions = [Rebalanced("A", policy, "", acted, False, 2.0, 1.1, 40, 0.1, 100)
              for policy, acted in (("entries", True), ("auto", True), ("entries", False))]  # fmt: skip
    found = state_of(RAN, RAN, loop, replace(loop, is_branch=True), *repartitions)
    assert found.counts == MonitorCounts(0, 2, 10, 2000, 1, 40, 1)
    assert found.num_repartitions == 2


# in a notebook


@pytest.fixture
def session(person: Person, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """Return a session of two workers; the monitor looks soon."""
    monkeypatch.setattr(monitors, "FIRST_SECONDS", 0.1)
    monkeypatch.setattr(monitors, "BETWEEN_SECONDS", 0.02)
    monkeypatch.setattr(monitors, "LINGER_SECONDS", 0.1)
    monkeypatch.setattr(monitors, "CLOSE_SECONDS", 0.0)
    with mn.start(workers=2, threads=1) as found:
        yield found
        close_monitor()


def endless() -> object:
    A = mn.asarray(np.full((500, 500), 1 / 500), blocks=2)
    return mn.iterate(lambda x: A @ x, mn.ones(500), max_iterations=10**8)[0]


def texts(person: Person) -> list[str]:
    return [one["text/plain"] for one in person.pictures]


def test_before_anything_ran_it_tells_the_sessions_workers(person: Person, session: Session) -> None:
    mn.monitor()
    assert re.match(r"at [\d:]{8}: nothing has run yet\n2 workers, no repartition\n", texts(person)[0])


def test_what_runs_in_the_background_is_followed_after_its_cell(person: Person, session: Session) -> None:
    found = mn.monitor()
    person.begin_cell()
    session.tell(RunStarted("1", 3, 0))  # one without a loop tells nothing more until its end
    person.end_cell()
    wait_until(lambda: found.is_open)
    first = texts(person)
    wait_until(lambda: texts(person) != first)  # it goes on changing
    assert "3 tasks" in texts(person)[0]
    person.begin_cell()
    person.end_cell()  # of a cell that computes nothing
    assert found.is_open
    session.tell(RAN)
    wait_until(lambda: not found.is_open)
    wait_until(lambda: not num_drawing())
    assert re.match(r"at \S+ ended\n", texts(person)[0])
    assert person.num_open == 0


def test_a_cancelled_loop_is_told_as_cancelled(person: Person, session: Session) -> None:
    found = mn.monitor()

    def ask() -> None:
        wait_until(lambda: re.search("iteration [1-9]", texts(person)[0]), 20.0)
        session.cancel()

    asking = threading.Thread(target=ask)
    asking.start()
    with pytest.raises(CellCancelled):
        endless().compute()
    asking.join()
    person.end_cell()
    assert re.match(r"at \S+ cancelled after iteration [\d,]+ of 100,000,000\n2 workers, ", texts(person)[0])
    person.begin_cell()
    with pytest.raises(ValueError, match="no"):
        mn.map_blocks(raises, mn.ones(5), shape=(5,), dtype="float64").compute()
    person.end_cell()
    assert re.match(r"at \S+ failed\n", texts(person)[0])
    assert found._failed is None


def raises(block: object) -> object:
    raise ValueError("no")


def test_closed_while_a_cell_runs_it_says_so(person: Person, session: Session) -> None:
    found = mn.monitor()
    session.tell(LoopAdvanced("1", 17, 0.1, 100.0))
    wait_until(lambda: found.is_open)
    found.close()
    assert texts(person)[0].startswith("closed while running after iteration 17 of 100, 100 ms each\n")
    assert person.num_open == 0


def test_a_report_asks_nobody_how_many_workers_there_are(
    person: Person, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MATNB_DISPLAY", "static")
    found = mn.monitor()
    monkeypatch.setattr(session.cluster, "alive", lambda: ())  # all were lost
    monkeypatch.setattr(session.cluster, "refresh", raises)
    begin = time.monotonic()
    assert found.bundle()["text/plain"].startswith("load monitor: ")
    assert time.monotonic() - begin < 1.0


def test_at_its_end_it_says_what_the_cell_says(person: Person, session: Session) -> None:
    person.shell.run_line_magic("load_ext", "matnb")
    mn.monitor()
    person.end_cell()
    A = mn.asarray(np.random.default_rng(0).random((2000, 2000)), blocks=4)
    person.shell.push({"A": A, "mn": mn})
    person.begin_cell()
    person.shell.run_cell(
        "%%distmat\nx, _ = mn.iterate(lambda x: A @ x / 900, mn.ones(2000), max_iterations=200)\nx"
    )
    person.end_cell()
    summary = next(text for text in map(str, person.outputs) if "operations recorded" in text)
    (monitor,) = [text for text in texts(person) if "repartition" in text]
    for pattern in (r"imbalance (?:of the workers )?(\d+\.\d+)", r"([\d.]+ m?s) each"):
        assert re.search(pattern, monitor)[1] == re.search(pattern, summary)[1]
