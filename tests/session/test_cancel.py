"""Another thread cancels what runs: the running thread hears of it soon, and the session works on."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from watching import long_work, tasks_on_scheduler

import matnb as mn
from matnb.backend.cluster.cancellation import CancelScope
from matnb.errors import CellCancelled


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    yield
    mn.stop()


def endless() -> mn.DistArray:
    a = mn.asarray(np.full((50, 50), 0.02), blocks=2)
    return mn.iterate(lambda x: a @ x, mn.ones(50), max_iterations=10**8)[0]


def cancelled_after(seconds: float, session: mn.session.Session, work: Callable[[], object]) -> float:
    """Cancel some work from another thread, and return how long it went on after that."""
    asked: list[float] = []

    def ask() -> None:
        time.sleep(seconds)
        begin = time.perf_counter()
        while not asked and time.perf_counter() - begin < 10:  # where nothing runs yet, it has to wait
            now = time.perf_counter()
            if session.cancel():
                asked.append(now)

    asking = threading.Thread(target=ask)
    late = threading.Timer(seconds + 10, signal.raise_signal, [signal.SIGINT])  # so that a failure ends
    asking.start()
    late.start()
    try:
        with pytest.raises(CellCancelled):
            work()
        return time.perf_counter() - asked[0]
    finally:
        late.cancel()
        late.join()
        asking.join()


numbers = itertools.count(1)


def works(session: mn.session.Session) -> bool:
    new = next(numbers)  # so that no memo knows the value
    return float((mn.arange(10.0, blocks=2) + new).sum()) == 45 + 10 * new


@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_loop_is_cancelled_and_the_session_works_on(engine):
    session = mn.start(workers=2, threads=1, engine=engine)
    assert cancelled_after(0.5, session, lambda: endless().compute()) < 2
    assert works(session)


@pytest.mark.parametrize("engine", ["auto", "dask"])
def test_a_run_of_tasks_is_cancelled_and_leaves_none_on_the_scheduler(engine):
    session = mn.start(workers=1, threads=2, engine=engine)
    work = long_work()
    assert cancelled_after(0.3, session, lambda: work.compute()) < 2
    assert works(session)
    end = time.monotonic() + 20
    while tasks_on_scheduler(session) > 6 and time.monotonic() < end:
        time.sleep(0.05)
    assert tasks_on_scheduler(session) <= 6


@pytest.mark.cluster
@pytest.mark.parametrize("engine", ["gang", "dask"])
def test_a_loop_on_worker_processes_is_cancelled(engine):
    session = mn.start(workers=2, threads=1, processes=True, engine=engine)
    assert cancelled_after(1.0, session, lambda: endless().compute()) < 2
    assert works(session)


def test_nothing_happens_where_nothing_runs():
    session = mn.start(workers=1, threads=1)
    assert not session.cancel()
    assert works(session)
    assert not session.cancel()
    assert works(session)


def test_who_waits_for_the_other_thread_is_not_cancelled():
    session = mn.start(workers=1, threads=2)
    found: list[float] = []
    other = threading.Thread(target=lambda: found.append(float(mn.ones(5).sum() + 1)))

    def work() -> None:
        threading.Timer(0.2, other.start).start()
        endless().compute()

    assert cancelled_after(0.7, session, work) < 2
    other.join(10)
    assert found == [6.0]


def test_a_wish_reaches_a_cell_between_two_runs():
    session = mn.start(workers=1, threads=1)
    with session.stoppable():
        assert session.cancel()
        with pytest.raises(CellCancelled):
            works(session)
        assert works(session)  # once for each wish


@pytest.mark.parametrize("count", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_many_starts_and_cancels_leave_nothing(count):
    session = mn.start(workers=1, threads=2)
    threads = threading.active_count()
    longest = 0.0
    for number in range(count):
        longest = max(longest, cancelled_after(0.002 * (number % 10) + 0.01, session, endless().compute))
    assert longest < 2
    assert works(session)
    assert threading.active_count() <= threads + 2
    end = time.monotonic() + 20
    while tasks_on_scheduler(session) > 6 and time.monotonic() < end:
        time.sleep(0.05)
    assert tasks_on_scheduler(session) <= 6


def test_a_second_wish_does_not_disturb_the_cleaning_up():
    stopping = CancelScope()
    assert not stopping.ask()
    with stopping.scope():
        with stopping.scope():
            assert stopping.ask()
            with pytest.raises(CellCancelled):
                stopping.check()
            assert stopping.ask()
            stopping.check()
        assert stopping.ask()
        with pytest.raises(CellCancelled):
            stopping.check()
    stopping.check()
    assert not stopping.ask()


def test_a_wish_that_comes_last_is_obeyed_at_the_end_of_its_scope():
    stopping = CancelScope()

    def ends(error: Exception | None = None) -> None:
        with stopping.scope():
            assert stopping.ask()
            if error is not None:
                raise error

    with pytest.raises(CellCancelled):
        ends()
    assert not stopping.ask()
    with stopping.scope():
        with pytest.raises(CellCancelled):
            ends()
        stopping.check()
    with pytest.raises(ValueError, match="mine"):
        ends(ValueError("mine"))
    assert not stopping.ask()


def test_a_scope_around_a_persons_code_is_for_the_wishes_of_others():
    stopping, here = CancelScope(), threading.get_ident()
    with stopping.scope(around=True):
        assert not stopping.ask()
        with stopping.scope():
            assert stopping.ask()
            with pytest.raises(CellCancelled):
                stopping.check()
        assert stopping.ask(here)
        assert stopping.is_asked(here)
        with pytest.raises(CellCancelled):
            stopping.check()
    assert not stopping.is_asked(here)


def test_a_wish_is_obeyed_by_a_value_that_is_remembered():
    session = mn.start(workers=1, threads=1)
    known = mn.ones(3) + 1
    known.compute()
    with session.stoppable():
        assert session.cancel()
        with pytest.raises(CellCancelled):
            known.compute()
        assert float(known.sum()) == 6
