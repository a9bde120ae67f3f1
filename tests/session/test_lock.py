"""A thread that waits for a session that another uses: told for what, and cancelled or interrupted soon."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from waiting import wait_until

import matnb as mn
from matnb.backend.cluster.cancellation import CancelScope
from matnb.errors import CellCancelled
from matnb.events import SessionAwaited
from matnb.lazy.recording import Recording
from matnb.session.background import Later
from matnb.session.session import SessionLock


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def endless() -> mn.DistArray:
    a = mn.asarray(np.full((50, 50), 0.02), blocks=2)
    return mn.iterate(lambda x: a @ x, mn.ones(50), max_iterations=10**8)[0]


def in_background(session: mn.session.Session, array: mn.DistArray, cell: int | None = None) -> Later:
    return session.later({"x": array.expression}, Recording("cell"), (), array, cell)


@pytest.fixture
def session() -> mn.session.Session:
    return mn.start(workers=1, threads=1)


@pytest.fixture
def busy(session: mn.session.Session) -> Iterator[threading.Thread]:
    """Let another thread use the session for long."""

    def work() -> None:
        with pytest.raises(CellCancelled):
            endless().compute()

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: session._lock._owner == thread.ident)
    yield thread
    session.cancel()
    thread.join(20)


def test_work_that_waits_for_another_thread_says_so_and_is_taken_back(session, busy):
    later = in_background(session, mn.ones(5) + 1)
    wait_until(lambda: later._thread is not None)
    assert later.state == "waiting"
    assert "waiting in the background" in repr(later)
    begin = time.perf_counter()
    assert later.cancel()
    with pytest.raises(CellCancelled, match="before it was begun"):
        later.result(2)
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "matnb-later"])
    assert time.perf_counter() - begin < 2
    assert busy.is_alive()


def test_who_waits_in_a_cell_is_cancelled_with_the_rest(session, busy):
    threading.Timer(0.5, session.cancel).start()
    begin = time.perf_counter()
    with pytest.raises(CellCancelled), session.stoppable():
        (mn.ones(5) + 1).compute()
    assert 0.4 < time.perf_counter() - begin < 2.5


def test_who_waits_for_the_background_is_told_what_for_and_an_interrupt_leaves_it(session):
    told: list[SessionAwaited] = []
    session.subscribe(lambda event: told.append(event) if isinstance(event, SessionAwaited) else None)
    later = in_background(session, endless(), 3)
    wait_until(lambda: later.state == "running")
    timer = threading.Timer(0.9, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    words = r"waiting for the background work of x; nothing was cancelled; cancel\(\) of its handle ends it"
    with pytest.raises(CellCancelled, match=words):
        (mn.ones(5) + 1).compute()
    timer.join()
    assert told == [SessionAwaited(("x",), 3), SessionAwaited(is_over=True)]
    assert later.state == "running"
    assert later.cancel()
    assert "being cancelled" in repr(later) or later.done
    with pytest.raises(CellCancelled):
        later.result(10)
    assert float((mn.ones(5) + 1).sum()) == 10


def test_a_short_waiting_is_not_told(session):
    told: list[SessionAwaited] = []
    session.subscribe(lambda event: told.append(event) if isinstance(event, SessionAwaited) else None)
    held = threading.Event()

    def hold() -> None:
        with session._lock:
            held.set()
            time.sleep(0.15)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)
    assert float((mn.ones(5) + 2).sum()) == 15
    thread.join()
    assert told == []


def test_an_interrupt_when_the_waiting_ends_leaves_the_lock_to_others():
    def tell(event: SessionAwaited) -> None:
        if event.is_over:
            raise KeyboardInterrupt
        leave.set()

    lock = SessionLock(CancelScope(), tell, lambda owner: (("x",), 3))
    held, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            leave.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(30)
    with pytest.raises(CellCancelled, match="background work of x"), lock:
        pytest.fail("it was interrupted before")
    thread.join(30)
    taken: list[bool] = []
    other = threading.Thread(target=lambda: taken.append(lock._lock.acquire(timeout=1)))
    other.start()
    other.join(30)
    assert taken == [True]
