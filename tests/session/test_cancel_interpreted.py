"""What NumPy computes in this process is cancelled between two operations."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import matnb as mn
from matnb.errors import CellCancelled


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def cancelled_after(seconds: float, session: mn.session.Session, work: Callable[[], object]) -> float:
    """Cancel some work from another thread, and return how long it went on after that."""
    asked: list[float] = []

    def ask() -> None:
        begin = time.perf_counter()
        while not asked and time.perf_counter() - begin < 10:  # where nothing runs yet, it has to wait
            now = time.perf_counter()
            if session.cancel():
                asked.append(now)

    asking = threading.Timer(seconds, ask)
    late = threading.Timer(seconds + 15, signal.raise_signal, [signal.SIGINT])  # so that a failure ends
    asking.start()
    late.start()
    try:
        work()
    except CellCancelled:
        return time.perf_counter() - asked[0]
    except KeyboardInterrupt:
        pytest.fail("it was not cancelled")
    finally:
        for one in (late, asking):
            one.cancel()
            one.join()
    pytest.fail("it ended by itself")


def unrolled() -> mn.DistArray:
    x = a = mn.asarray(np.random.default_rng(0).random((400, 400)))
    for _ in range(5000):
        x = a @ x / 200
    return x


def endless() -> mn.DistArray:
    a = mn.asarray(np.full((50, 50), 0.02))
    return mn.iterate(lambda x: a @ x, mn.ones(50), max_iterations=10**8)[0]


def endless_count() -> mn.DistArray:
    a = mn.asarray(np.full((50, 50), 0.02))
    _, count = mn.iterate(
        lambda x: a @ x, mn.ones(50), until=lambda _, new: new.sum() < -1, max_iterations=10**8
    )
    return count


def endless_inside() -> mn.DistArray:
    def outer(x: mn.DistArray) -> mn.DistArray:
        return mn.iterate(lambda y: y * 0.5 + 1.0, x, max_iterations=10**8)[0]

    return mn.iterate(outer, mn.ones(50), max_iterations=3)[0]


@pytest.mark.parametrize("work", [unrolled, endless, endless_count, endless_inside])
def test_it_ends_soon_and_the_session_works_on(work: Callable[[], mn.DistArray]):
    session = mn.start(workers=1, threads=1, engine="interpret")
    array = work()
    assert cancelled_after(0.5, session, lambda: np.asarray(array)) < 2
    assert not session.cancel()
    assert float((mn.arange(10.0) + 1).sum()) == 55.0


def test_what_was_finished_is_kept():
    session = mn.start(workers=1, threads=1, engine="interpret")
    done = mn.asarray(np.random.default_rng(0).random((300, 300))) @ np.ones(300)
    endless_one = endless() + done[:50]
    cancelled_after(0.5, session, lambda: np.asarray(done.sum() + endless_one.sum()))
    assert any(done._expression is one for one in session._interpreter.known)
