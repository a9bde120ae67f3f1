"""An interrupt that Python drops, as it does in a destructor, ends what runs all the same."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

import matnb as mn
from matnb.backend.cancellation import Stopping
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
        a = mn.map_blocks(lambda block: (listen(RunStarted("1", 1, 0)), block)[1], a, dtype="float64")
    with pytest.raises(CellCancelled):
        mn.iterate(lambda x: a @ x, mn.ones(50), max_iterations=10**8)[0].compute()
    assert time.monotonic() - begin[0] < 2
    stop()
    assert float((mn.ones(9) + 1).sum()) == 18


def test_it_is_obeyed_once_by_the_next_look_or_at_the_end() -> None:
    stopping = Stopping()

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
    stopping = Stopping()
    with pytest.raises(KeyboardInterrupt) as raised, stopping.scope(), stopping.heeding():
        signal.raise_signal(signal.SIGINT)
    assert not isinstance(raised.value, CellCancelled)
    with stopping.scope(), stopping.heeding():
        stopping.check()


def test_cleaning_up_after_one_is_disturbed_by_none() -> None:
    stopping = Stopping()

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
    stopping = Stopping()
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
        with Stopping().heeding():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
