"""Listeners hear every event, with samples or without; what one raises stops nothing, and is told once."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from ways import WAYS, going

import matnb as mn
from matnb.errors import CellCancelled, FileFormatError
from matnb.events import Event, RunFinished, RunStarted, RunStopped, SessionStopped, TasksFinished
from matnb.session import Session
from matnb.session.listeners import Listeners

WORDS = "a listener to events raised ZeroDivisionError"


@pytest.fixture(params=WAYS)
def session(request: pytest.FixtureRequest) -> Iterator[Session]:
    """Return a session of one worker, whose runs go each way."""
    with going(request.param) as options, mn.start(workers=1, threads=1, **options) as found:
        yield found


def on_a_thread(work: object) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def fails(event: Event) -> None:
    raise ZeroDivisionError


def test_no_event_is_missed_while_a_listener_changes_whether_it_wants_samples() -> None:
    listeners = Listeners(lambda wanted: None)
    heard: list[Event] = []
    entry = listeners.add(heard.append)
    num_told, is_over = 0, threading.Event()

    def tell() -> None:
        nonlocal num_told
        while not is_over.is_set():
            listeners.tell(SessionStopped())
            num_told += 1

    thread = threading.Thread(target=tell)
    thread.start()
    for number in range(2000):
        entry.want_samples(number % 2 == 0)
    is_over.set()
    thread.join()
    assert num_told > 100
    assert len(heard) == num_told


def test_samples_are_asked_for_while_somebody_wants_them() -> None:
    asked: list[bool] = []
    listeners = Listeners(asked.append)
    first, second = listeners.add(id), listeners.add(id, samples=True)
    assert asked == [True]
    first.want_samples(True)
    second()
    assert asked == [True]
    heard = len(asked)
    first.want_samples(False)
    first.want_samples(False)
    assert asked == [True, False]
    first()
    first()
    first.want_samples(True)  # it hears nothing any more
    assert len(asked) == heard + 1


def test_what_is_still_to_be_told_is_heard_by_the_last_that_wants_samples() -> None:
    heard: list[Event] = []
    listeners = Listeners(lambda wanted: None if wanted else listeners.tell_sample(SessionStopped()))
    entry = listeners.add(heard.append, samples=True)
    entry.want_samples(False)
    assert heard == [SessionStopped()]
    listeners.tell_sample(SessionStopped())
    assert len(heard) == 1


def test_the_first_sample_of_all_is_heard_and_the_last_that_is_taken_away_ends_them() -> None:
    heard: list[Event] = []
    asked: list[bool] = []

    def sampling(wanted: bool) -> None:
        asked.append(wanted)
        listeners.tell_sample(SessionStopped())

    listeners = Listeners(sampling)
    without: list[Event] = []
    listeners.add(without.append)
    entry = listeners.add(heard.append, samples=True)
    assert heard == [SessionStopped()]
    entry()
    assert asked == [True, False]
    assert without == []


def test_what_a_listener_raised_is_told_at_the_line_that_ends_it() -> None:
    listeners = Listeners(lambda wanted: None)
    entry = listeners.add(fails)
    on_a_thread(lambda: listeners.tell(SessionStopped()))
    with pytest.warns(UserWarning, match=WORDS) as seen:
        entry()
    assert seen[0].filename == __file__


def test_no_thread_warns_of_an_error_but_the_next_event_of_the_main_thread(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(
        warnings, "showwarning", lambda *_, **__: seen.append(threading.current_thread().name)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        session.subscribe(fails)
        on_a_thread(lambda: float((mn.ones(5) + 1).sum()))
        assert seen == []
        float((mn.ones(6) + 1).sum())
    assert set(seen) == {threading.main_thread().name}


def test_a_run_goes_on_where_warnings_are_errors_and_the_error_is_told_at_the_end(session: Session) -> None:
    entry = session.subscribe(fails)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float((mn.ones(5) + 1).sum()) == 10.0
        with pytest.raises(UserWarning, match=WORDS):
            entry()
        assert float((mn.ones(7) + 1).sum()) == 14.0
        entry()


def test_reading_files_tells_that_it_runs_and_how_it_ends(session: Session, tmp_path) -> None:
    heard: list[Event] = []
    session.subscribe(heard.append)
    path = tmp_path / "numbers.csv"
    np.savetxt(path, np.ones((2000, 2)), delimiter=",", header="a,b", comments="")
    mn.load(path)
    kinds = [type(one) for one in heard]
    assert kinds[:3] == [RunStarted, TasksFinished, RunFinished]
    assert kinds == kinds[:3] * (len(kinds) // 3)  # types are looked at, then values are read
    assert heard[-1].seconds > 0.0
    heard.clear()
    path.write_text("a,b\n" + "1,2\n" * 30_000 + "3\n")  # not seen at its beginning
    with pytest.raises(FileFormatError, match="line 30002"):
        mn.load(path)
    assert [type(one) for one in heard] == [RunStarted, RunStopped]


def test_a_run_that_is_cancelled_is_told_from_one_that_failed(session: Session) -> None:
    heard: list[Event] = []
    session.subscribe(heard.append)

    def bad(block: np.ndarray) -> np.ndarray:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        mn.map_blocks(bad, mn.ones(5), shape=(5,), dtype="float64").compute()
    assert heard[-1] == RunStopped(heard[-1].run)
    timer = threading.Timer(1.0, session.cancel)
    timer.start()
    A = mn.asarray(np.full((300, 300), 1 / 300))
    with pytest.raises(CellCancelled):
        mn.iterate(lambda x: A @ x, mn.ones(300), max_iterations=10**8)[0].compute()
    assert heard[-1] == RunStopped(heard[-1].run, is_cancelled=True)
