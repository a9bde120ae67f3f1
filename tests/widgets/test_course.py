"""How what ran last went: how far it came, how it ended, how evenly it was shared."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from notebook_shell import Person, num_drawing
from waiting import wait_until

import matnb as mn
from matnb.errors import CellCancelled
from matnb.events import (
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    TasksFinished,
    TaskTimed,
)
from matnb.session import Session
from matnb.widgets import monitor as monitors
from matnb.widgets.monitor import close_monitor
from matnb.widgets.monitor_state import Course

RAN = RunFinished("1", 3, 0, 1, 5, 1000, 0, 0, 1.0, 0.1)


def course_of(*events: object) -> Course:
    found = Course()
    for event in events:
        found.take(event)
    return found


def timed(worker: int, seconds: float, compiled: bool = False) -> TasksFinished:
    return TasksFinished("1", worker, (TaskTimed("a", "product", worker, seconds, 1, 1, 8, compiled),))


def test_a_loop_took_its_seconds_by_its_iterations_not_what_the_last_one_took() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    found = course_of(
        RunStarted("1", 7, 0), LoopAdvanced("1", 39, 0.9, 50.0), loop, RunStarted("2", 0, 0), RAN
    )
    assert (found.iteration, found.most_iterations, found.iteration_seconds) == (40, 50.0, 0.05)
    assert (found.outcome, found.is_running) == ("", False)


def test_it_runs_from_the_first_event_to_the_last() -> None:
    loop = LoopFinished("1", "gang", "", 1, 7, 2, 10, (), 0, 2.0)
    found = Course()
    running = [found.is_running]
    for event in (LoopAdvanced("1", 0, 0.9, 50.0), loop, RunStarted("2", 1, 0), RAN):
        found.take(event)
        running.append(found.is_running)
    assert running == [False, True, False, True, False]
    assert found.iteration_seconds == 2.0
    nothing = course_of(LoopFinished("1", "gang", "", 0, 7, 2, 10, (), 0, 0.5))
    assert (nothing.iteration, nothing.iteration_seconds) == (0, 0.5)


def test_what_was_stopped_after_a_loop_is_not_told_as_the_loop() -> None:
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 2.0)
    found = course_of(LoopAdvanced("1", 39, 0.9, 50.0), loop, RunStarted("2", 1, 0), RunStopped("2", True))
    assert (found.iteration, found.outcome) == (-1, "cancelled")
    found = course_of(LoopAdvanced("1", 39, 0.9, 50.0), RunStopped("1"))
    assert (found.iteration, found.outcome, found.iteration_seconds) == (39, "failed", 0.0)


def test_the_imbalance_is_of_all_kernel_seconds_of_all_workers() -> None:
    found = course_of(timed(0, 3.0), timed(1, 1.0), timed(0, 1.0), timed(1, 90.0, compiled=True))
    assert found.imbalance([0, 1]) == pytest.approx(4.0 / 2.5)
    assert found.imbalance([0, 1, 2, 3]) == pytest.approx(4.0 / 1.25)
    found.begin()
    assert found.imbalance([0, 1]) == 0.0


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
    assert texts(person)[0].startswith("nothing has run yet\n2 workers, no re-cut\n")


def test_what_runs_in_the_background_is_followed_after_its_cell(person: Person, session: Session) -> None:
    found = mn.monitor()
    person.begin_cell()
    session._emit(RunStarted("1", 3, 0))  # one without a loop tells nothing more until its end
    person.end_cell()
    wait_until(lambda: found.is_open)
    first = texts(person)
    wait_until(lambda: texts(person) != first)  # it goes on changing
    assert "running" in texts(person)[0]
    person.begin_cell()
    person.end_cell()  # of a cell that computes nothing
    assert found.is_open
    session._emit(RAN)
    wait_until(lambda: not found.is_open)
    wait_until(lambda: not num_drawing())
    assert texts(person)[0].startswith("ended\n")
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
    assert re.match(r"cancelled after iteration [\d,]+ of 100,000,000\n2 workers, ", texts(person)[0])
    person.begin_cell()
    with pytest.raises(ValueError, match="no"):
        mn.map_blocks(raises, mn.ones(5), shape=(5,), dtype="float64").compute()
    person.end_cell()
    assert texts(person)[0].startswith("failed\n")
    assert found._failed is None


def raises(block: object) -> object:
    raise ValueError("no")


def test_closed_while_a_cell_runs_it_says_so(person: Person, session: Session) -> None:
    found = mn.monitor()
    session._emit(LoopAdvanced("1", 17, 0.1, 100.0))
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
    (monitor,) = [text for text in texts(person) if "re-cut" in text]
    for pattern in (r"imbalance (\d+\.\d+)", r"([\d.]+ m?s) each"):
        assert re.search(pattern, monitor)[1] == re.search(pattern, summary)[1]
