"""The load monitor lives while something runs, leaves a picture, and nothing else."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from IPython.terminal.interactiveshell import TerminalInteractiveShell
from ipywidgets.widgets import widget
from notebook_shell import Person, num_drawing
from watched_kernel import VIEW

import matnb as mn
from matnb.events import (
    Event,
    LoopAdvanced,
    LoopFinished,
    Rebalanced,
    RunFinished,
    RunStarted,
    WorkerSample,
    WorkersBusy,
    WorkersSampled,
)
from matnb.widgets import monitor as monitors
from matnb.widgets.monitor import Monitor, close_monitor

PROJECT = Path(__file__).parents[2]


class Heard:
    """A subscription."""

    def __init__(self, every: list[Heard], listener: object, samples: bool) -> None:
        self.every, self.listener, self.samples = every, listener, samples
        every.append(self)

    def __call__(self) -> None:
        self.every.remove(self)

    def want_samples(self, samples: bool) -> None:
        self.samples = samples


class Quick:
    """A session that only tells what a test says."""

    ended = False
    cluster = type("DaskCluster", (), {"alive": lambda self: (0,)})()

    def __init__(self) -> None:
        self.listeners: list[Heard] = []
        self.num_cancelled = 0

    def subscribe(self, listener: object, samples: bool = False) -> object:
        return Heard(self.listeners, listener, samples)

    def tell(self, *events: Event) -> None:
        for event in events:
            for one in list(self.listeners):
                one.listener(event)

    def cancel(self) -> None:
        self.num_cancelled += 1


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Quick]:
    """Return a session, and let the monitor look soon and often."""
    found = Quick()

    def follow(follower: object) -> object:
        follower(found)
        return lambda: None

    monkeypatch.setattr(monitors, "follow_sessions", follow)
    monkeypatch.setattr(monitors, "FIRST_SECONDS", 0.02)
    monkeypatch.setattr(monitors, "BETWEEN_SECONDS", 0.01)
    monkeypatch.setattr(monitors, "LINGER_SECONDS", 0.05)
    monkeypatch.setattr(monitors, "CLOSE_SECONDS", 0.0)
    monkeypatch.setattr(monitors, "_SPARED", 0.0)
    yield found
    close_monitor()
    assert found.listeners == []


def busy(iteration: int = 1) -> list[Event]:
    sample = WorkerSample(0, 10**9 + iteration, 4 * 10**9, 0, 1, 0, 0)
    return [
        LoopAdvanced("1", iteration, 0.01, 1000.0),
        WorkersBusy(0, 0.01, (("product", 0.005),)),
        WorkersSampled((sample,)),
    ]


def ran() -> RunFinished:
    return RunFinished("1", 3, 0, 1, 5, 1000, 0, 0, 1.0, 0.1)


def until(condition: object, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def picture(person: Person, place: int = -1) -> str:
    return str(person.pictures[place]["text/html"])


def has_buttons(person: Person) -> bool:
    return any(VIEW in one for one in person.outputs)


def test_without_buttons_it_makes_no_widget_however_long_something_runs(
    person: Person, session: Quick
) -> None:
    mn.monitor()
    session.tell(RunStarted("1", 3, 0), *busy())
    until(lambda: "iteration 1 of 1,000" in picture(person))
    session.tell(*busy(17))
    until(lambda: "iteration 17 of 1,000" in picture(person))
    # What a notebook saved now would hold: when it was, and no widget.
    assert [sorted(one) for one in person.outputs] == [["text/html", "text/plain"]]
    assert re.match(r"at \d\d:\d\d:\d\d: iteration 17 of 1,000", person.pictures[0]["text/plain"])
    assert person.comms == []
    session.tell(ran())
    person.end_cell()
    until(lambda: not num_drawing())


def test_buttons_are_there_while_something_runs_and_a_picture_after(person: Person, session: Quick) -> None:
    found = mn.monitor(buttons=True)
    assert list(person.outputs[0]) == ["text/plain", "text/html"]
    session.tell(RunStarted("1", 3, 0), *busy())
    until(lambda: has_buttons(person) and "iteration 1 of 1,000" in picture(person))
    session.tell(*busy(17))
    until(lambda: "iteration 17 of 1,000" in picture(person))
    session.tell(LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 1.5), ran())
    person.end_cell()
    assert list(person.outputs[0]) == ["text/plain", "text/html"]
    # What was seen last while something ran, and how far it came.
    ended = (
        r"at \S+ ended after iteration 40 of 1,000, 37.5 ms each\n"
        r"1 worker, \d+ % busy at the end, no repartition\n"
    )
    assert re.match(ended, person.pictures[0]["text/plain"])
    assert "product" in person.pictures[0]["text/plain"]
    assert person.num_open == 0
    until(lambda: not num_drawing())
    assert [one.samples for one in session.listeners] == [False]
    found.close()


def test_it_comes_to_life_in_the_next_cell_that_computes(person: Person, session: Quick) -> None:
    mn.monitor(buttons=True)
    person.end_cell()
    person.begin_cell()
    person.end_cell()  # one that computes nothing
    assert person.comms == []
    assert len(person.shell.display_pub.outputs) == 2
    person.begin_cell()
    session.tell(RunStarted("1", 3, 0), *busy())
    until(lambda: has_buttons(person))
    assert [one.samples for one in session.listeners] == [True]
    session.tell(ran())
    person.end_cell()
    assert len(person.pictures) == 1
    assert person.num_open == 0


def test_a_quick_cell_makes_no_widget_but_changes_the_picture(
    person: Person, session: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "FIRST_SECONDS", 60.0)
    mn.monitor(buttons=True)
    person.end_cell()
    for number in range(3):
        person.begin_cell()
        session.tell(RunStarted(str(number), 3, 0), *busy(), ran())
        person.end_cell()
    assert person.comms == []
    assert "1 GB of 4 GB" in person.pictures[0]["text/html"]
    until(lambda: not num_drawing())


def test_what_runs_after_its_cell_is_shown_until_it_ends(person: Person, session: Quick) -> None:
    mn.monitor(buttons=True)
    person.end_cell()
    session.tell(*busy())  # as after --nowait
    until(lambda: has_buttons(person))
    session.tell(ran())
    until(lambda: not has_buttons(person))
    until(lambda: not num_drawing())
    assert person.num_open == 0


def test_the_buttons_cancel_close_and_show_the_table(person: Person, session: Quick) -> None:
    found = mn.monitor(buttons=True)
    session.tell(*busy())
    until(lambda: found.is_open)
    until(lambda: found._buttons.is_open)
    cancel, table, close = found._buttons.widget.children
    table.click()
    until(lambda: "<table" in picture(person))
    table.click()
    until(lambda: "<table" not in picture(person))
    cancel.click()
    assert session.num_cancelled == 1
    assert cancel.disabled
    close.click()
    until(lambda: found.is_closed)
    until(lambda: not num_drawing())
    assert not has_buttons(person)
    assert session.listeners == []
    assert mn.monitor() is not found
    with pytest.raises(TypeError, match="positional"):
        mn.monitor(True)


def test_a_second_one_takes_the_place_of_the_first(person: Person, session: Quick) -> None:
    first = mn.monitor(buttons=True)
    session.tell(*busy())
    until(lambda: has_buttons(person))
    person.begin_cell()
    assert mn.monitor(buttons=True) is first
    assert VIEW not in str(person.outputs)
    assert "see the newer monitor" in picture(person, 0)
    session.tell(*busy(2))
    until(lambda: VIEW in person.outputs[3])
    assert person.num_open < len(person.comms)
    assert num_drawing() == 1
    session.tell(ran())
    person.end_cell()
    assert person.num_open == 0


def test_as_the_last_value_of_its_cell_it_is_not_shown_twice(person: Person, session: Quick) -> None:
    found = mn.monitor()
    formatter = person.shell.display_formatter
    assert formatter.format(found) == ({}, {})
    assert len(person.pictures) == 1
    person.begin_cell()
    assert formatter.format(found) == ({}, {})
    assert len(person.pictures) == 2
    found.close()
    data, _ = formatter.format(found)
    assert "text/html" in data


def test_one_picture_that_takes_long_does_not_hold_up_the_next(
    person: Person, session: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "BETWEEN_SECONDS", 600.0)  # the test itself is the one who looks
    found = mn.monitor()
    session.tell(*busy(0))
    time.sleep(0.03)
    for number in range(3):
        session.tell(*busy(number))
        assert found._look()

    def slowly(*arguments: object, **options: object) -> str:
        begin = time.thread_time()
        while time.thread_time() - begin < 0.2:
            pass
        return "<b>slow</b>"

    with monkeypatch.context() as patch:
        patch.setattr(monitors, "monitor_html", slowly)
        found._look()
        assert found._drawing_seconds < 0.1
        found._look()
        assert found._drawing_seconds >= 0.2


@pytest.mark.slow
def test_ten_thousand_updates_leave_no_comm_thread_or_memory(
    person: Person, session: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitors, "BETWEEN_SECONDS", 600.0)  # the test itself is the one who looks
    found = mn.monitor()
    session.tell(*busy(0))
    time.sleep(0.03)
    assert found._look()
    assert found.is_open
    num_comms = len(person.comms)
    pictures: set[int] = set()

    def update(first: int, last: int) -> int:
        for iteration in range(first, last):
            session.tell(*busy(iteration))
            assert found._look()
            pictures.add(hash(picture(person)))
            del person.shell.display_pub.outputs[:-2]  # it keeps all that was shown
        gc.collect()
        return len(gc.get_objects())

    # The first until the feed has all that it ever keeps; a leak is in each of the others.
    held = [update(first, first + 5000) for first in (1, 5001, 10_001, 15_001, 20_001)]
    assert len(pictures) > 24_900
    assert min(after - before for before, after in pairwise(held[1:])) < 1000
    assert len(person.comms) == person.num_open == num_comms
    assert num_drawing() == 1
    session.tell(ran())
    person.end_cell()
    assert person.num_open == 0


def test_many_cells_leave_nothing_open(person: Person, session: Quick) -> None:
    mn.monitor(buttons=True)
    instances = set(widget._instances)
    for number in range(10):
        person.begin_cell()
        num_comms = len(person.comms)
        session.tell(RunStarted(str(number), 3, 0), *busy(number))
        until(lambda before=num_comms: len(person.comms) > before)
        session.tell(ran())
        person.end_cell()
    assert person.num_open == 0
    assert set(widget._instances) == instances
    assert len(session.listeners) == 1


def test_a_failing_picture_stops_the_monitor_and_is_told_at_the_cells_end(
    person: Person, session: Quick, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = mn.monitor()
    monkeypatch.setattr(Monitor, "_look", lambda self: 1 / 0)
    session.tell(*busy())
    until(lambda: found._failed is not None and not num_drawing())
    with pytest.warns(UserWarning, match="the load monitor stopped: ZeroDivisionError"):
        found._cell_ended()
    assert capfd.readouterr() == ("", "")


def test_a_report_is_told_counts_only(
    person: Person, session: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    person.shell.kernel._allow_stdin = False
    monkeypatch.setattr(session.cluster, "alive", lambda: (0, 1))
    mn.monitor()
    recut = Rebalanced("A", "entries", "uneven", True, True, 1.8, 1.0, 0, 0.01, 10)
    loop = LoopFinished("1", "gang", "", 40, 7, 2, 10, (), 0, 1.5)
    session.tell(RunStarted("1", 3, 0), *busy(), recut, loop, ran())
    session.tell(Rebalanced("A", "auto", "uneven", True, False, 1.8, 1.0, 3, 0.01, 10))
    person.end_cell()
    assert person.pictures[0]["text/plain"].splitlines() == [
        "load monitor: 2 workers, 1 run, 5 tasks, 1 kB moved, 1 loop of 40 iterations together, "
        "1 repartition",
        "Loads, memory and seconds are shown live.",
    ]
    assert person.comms == []
    assert num_drawing() == 0
    assert [one.samples for one in session.listeners] == [False]
    monkeypatch.setenv("MATNB_DISPLAY", "live")  # a report with timings
    mn.monitor()
    session.tell(*busy())
    person.end_cell()
    assert "1 GB of 4 GB" in person.pictures[1]["text/plain"]
    assert person.comms == []


# without a notebook


def test_plain_ipython_prints_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not hasattr(TerminalInteractiveShell, "kernel")
    with mn.start(workers=2, threads=1), mn.monitor() as found:
        A = mn.asarray(np.random.default_rng(0).random((600, 600)))
        x, _ = mn.iterate(lambda x: A @ x / 300, mn.ones(600), max_iterations=3000)
        x.persist()
        lines = str(found).splitlines()
    assert lines[1].startswith("2 workers, ")
    assert [line.split()[0] for line in lines[2:]] == ["worker", "0", "1"]
    assert "product" in "\n".join(lines)


SCRIPT = """
import sys
sys.modules["IPython"] = sys.modules["ipywidgets"] = None
import matnb as mn
shown = mn.monitor()
print(float(mn.ones(10).sum()))
print(shown)
shown.close()
mn.stop()
"""


def test_a_script_without_ipython_or_ipywidgets_prints_it() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT], capture_output=True, text=True, cwd=PROJECT, check=True
    )
    assert done.stderr == ""
    assert re.match(r"10.0\nat \d\d:\d\d:\d\d: nothing runs now\n1 worker, ", done.stdout)
