"""An interrupt that Python drops, as it does in a destructor, ends what runs all the same."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
from distributed import Future

import matnb as mn
from matnb.backend.cluster.cancellation import CancelScope, resend_dropped
from matnb.errors import CellCancelled
from matnb.events import Event, RunStarted

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Falls:
    """Is interrupted while it is cleared up, where Python prints what is raised, and goes on."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.fixture(autouse=True)
def _stopped() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    mn.stop()
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("engine", ["gang", "dask", "interpret"])
def test_a_loop_ends(engine: str) -> None:
    session = mn.start(workers=1, threads=2, engine=engine)
    a = mn.asarray(np.full((50, 50), 0.02), blocks=2)
    begin = []

    def listen(event: Event) -> None:
        if isinstance(event, RunStarted) and not begin:
            begin.append(time.monotonic())
            Falls()

    stop = session.subscribe(listen)
    if engine == "interpret":  # which tells no run
        begin.append(time.monotonic())
        a = mn.map_blocks(lambda block: (Falls(), block)[1], a, shape=a.shape, dtype="float64")
    with pytest.raises(CellCancelled):
        mn.iterate(lambda x: a @ x, mn.ones(50), max_iterations=10**8)[0].compute()
    assert time.monotonic() - begin[0] < 2
    stop()
    assert float((mn.ones(9) + 1).sum()) == 18


def test_it_is_obeyed_once_by_the_next_look_or_at_the_end() -> None:
    stopping = CancelScope()

    def heeds() -> None:
        with stopping.heeding():
            Falls()
            with pytest.raises(CellCancelled):
                stopping.check()
            stopping.check()
            Falls()

    with stopping.scope(), pytest.raises(CellCancelled):
        heeds()
    with stopping.heeding():
        stopping.check()


def test_one_that_is_raised_is_itself_and_nothing_more() -> None:
    stopping = CancelScope()
    with pytest.raises(KeyboardInterrupt) as raised, stopping.scope(), stopping.heeding():
        signal.raise_signal(signal.SIGINT)
    assert not isinstance(raised.value, CellCancelled)
    with stopping.scope(), stopping.heeding():
        stopping.check()


def test_cleaning_up_after_one_is_disturbed_by_none() -> None:
    stopping = CancelScope()

    def cleans_up() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            with stopping.undisturbed():
                stopping.check()
                signal.raise_signal(signal.SIGINT)
                assert stopping.ask()
                stopping.check()
                raise RuntimeError("cleaned up") from None

    with pytest.raises(RuntimeError, match="cleaned up"), stopping.scope(), stopping.heeding():
        cleans_up()


def test_other_threads_and_inner_ones_leave_it_alone() -> None:
    stopping = CancelScope()
    found: list[bool] = []

    def look() -> None:
        with stopping.heeding():
            stopping.check()
        found.append(True)

    with stopping.scope(), stopping.heeding():
        with stopping.heeding():
            Falls()
        other = threading.Thread(target=look)
        other.start()
        other.join()
        assert found == [True]
        with pytest.raises(CellCancelled):
            stopping.check()


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with CancelScope().heeding():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def interrupt_in(what: type, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the first call of a method interrupted."""
    free, calls = getattr(what, name), []

    def struck(one: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            signal.raise_signal(signal.SIGINT)
        free(one)

    monkeypatch.setattr(what, name, struck)


def interrupted_as_it_is_freed(kept: list[object]) -> None:
    """Let go of something, be interrupted meanwhile, and do for a while what a user's code does."""
    kept.clear()
    end = time.monotonic() + 10
    while time.monotonic() < end:
        time.sleep(0.01)


@pytest.mark.parametrize("what", ["future", "handle", "anything"])
def test_one_between_two_runs_reaches_the_users_code(
    what: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    session = mn.start(workers=1, threads=1)
    kept: list[object] = []
    if what == "future":
        kept.append(session.cluster.client.submit(abs, -1))
        interrupt_in(Future, "release", monkeypatch)
    elif what == "handle":
        kept.append(mn.ones(3))
        interrupt_in(mn.DistArray, "__del__", monkeypatch)
    else:
        kept.append(Falls())
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        interrupted_as_it_is_freed(kept)
    monkeypatch.undo()
    assert time.monotonic() - begin < 5
    assert float((mn.ones(9) + 1).sum()) == 18  # and once
    assert capfd.readouterr().err == ""


def test_who_hears_of_dropped_interrupts_goes_with_the_session() -> None:
    before = sys.unraisablehook
    end_first = resend_dropped()
    first = sys.unraisablehook
    end_second = resend_dropped()
    assert first is not before
    end_first()  # the second calls what is the first's
    assert sys.unraisablehook is not first
    end_second()
    assert sys.unraisablehook is first  # which hands on what it is told
    sys.unraisablehook = before
    with mn.start(workers=1, threads=1):
        assert sys.unraisablehook is not before
    assert sys.unraisablehook is before


def test_one_that_will_be_obeyed_is_not_shown_as_dropped(capfd: pytest.CaptureFixture[str]) -> None:
    shown: list[object] = []
    before, sys.unraisablehook = sys.unraisablehook, shown.append
    end = resend_dropped()
    try:
        stopping = CancelScope()
        with pytest.raises(CellCancelled), stopping.scope(), stopping.heeding():
            Falls()
    finally:
        end()
        sys.unraisablehook = before
    assert not shown


def test_one_that_comes_as_with_ends_waits_until_the_session_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = mn.start(workers=1, threads=1)
    close, closed = type(session.cluster).close, []

    def struck(cluster: object) -> None:
        signal.raise_signal(signal.SIGINT)
        close(cluster)
        closed.append(True)

    monkeypatch.setattr(type(session.cluster), "close", struck)
    with pytest.raises(CellCancelled, match="interrupted"), session:
        float(mn.ones(3).sum())
    assert closed == [True]
    assert mn.session.active_session() is None
    assert float(mn.ones(3).sum()) == 3
