"""The line about work in the background changes by itself, from the thread that does the work."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from xml.etree import ElementTree

import pytest
from notebook_shell import Person
from waiting import wait_until

from matnb.backend.cluster.cancellation import CancelScope
from matnb.errors import CellCancelled
from matnb.session.background import Background, Later
from matnb.widgets.views import later_view


def gated() -> tuple[Later, threading.Event]:
    gate = threading.Event()
    return Later(["x"], 7, lambda: gate.wait(20)), gate


def texts(person: Person) -> list[str]:
    return [output["data"]["text/plain"] for output in person.shell.display_pub.outputs]


def test_it_says_that_work_waits_runs_and_is_done_in_one_place(person: Person) -> None:
    first, first_gate = gated()
    second, second_gate = gated()
    background = Background(CancelScope())
    background.add(first)
    background.add(second)
    wait_until(lambda: first.state == "running")
    later_view(second, person.shell)
    assert texts(person) == ["waiting in the background: 1 result, x; cancel() takes it back"]
    first_gate.set()
    wait_until(lambda: len(texts(person)) == 2)
    assert texts(person)[1] == "running in the background: 1 result, x; cancel() ends it"
    second_gate.set()
    wait_until(lambda: len(texts(person)) == 3)
    assert texts(person)[2].startswith("done in ")
    (seen,) = person.outputs
    assert ElementTree.fromstring(seen["text/html"]).text == seen["text/plain"] == texts(person)[2]
    assert person.comms == []


def test_what_is_cancelled_before_it_begins_says_so(person: Person) -> None:
    later, _ = gated()
    later_view(later, person.shell)
    later.cancel()
    (seen,) = person.outputs
    assert seen["text/plain"].startswith("cancelled: 1 result, x; CellCancelled")


def test_what_has_ended_is_shown_once_and_followed_no_more(person: Person) -> None:
    later, gate = gated()
    gate.set()
    later.run(CancelScope())
    later_view(later, person.shell)
    assert len(texts(person)) == 1
    assert texts(person)[0].startswith("done in ")
    assert later._listeners == []


def test_work_that_ends_while_it_is_being_shown_is_not_missed(person: Person) -> None:
    class Hasty(Later):
        def follow(self, listener: Callable[[], None]) -> None:
            self.run(CancelScope())
            super().follow(listener)

    later_view(Hasty(["x"], 7, lambda: None), person.shell)
    assert texts(person)[-1].startswith("done in ")


def test_two_lines_of_the_same_work_both_change(person: Person) -> None:
    later, gate = gated()
    later_view(later, person.shell)
    later_view(later, person.shell)
    gate.set()
    later.run(CancelScope())
    assert all(one["text/plain"].startswith("done in ") for one in person.outputs)
    assert len(person.outputs) == 2


def test_the_change_belongs_to_the_cell_that_showed_it(person: Person) -> None:
    cell: ContextVar[str] = ContextVar("cell")
    cell.set("the first")
    found: list[str | None] = []
    publish = person.shell.display_pub.publish

    def noting(*arguments: object, **options: object) -> None:
        found.append(cell.get(None))
        publish(*arguments, **options)

    person.shell.display_pub.publish = noting
    later, gate = gated()
    later_view(later, person.shell)
    cell.set("another")
    thread = threading.Thread(target=later.run, args=(CancelScope(),))
    thread.start()
    gate.set()
    thread.join()
    assert found == ["the first"] * 3


def test_a_kernel_that_shows_nothing_any_more_does_not_disturb_the_work(
    person: Person, capfd: pytest.CaptureFixture[str]
) -> None:
    later, gate = gated()
    later_view(later, person.shell)

    def closed(*_: object, **__: object) -> None:
        raise OSError("closed")

    person.shell.display_pub.publish = closed
    awake: list[str] = []
    later.follow(lambda: awake.append(later.state))
    gate.set()
    background = Background(CancelScope())
    background.add(later)
    assert later.result(20) == 7
    wait_until(lambda: awake == ["running", "done"])
    assert capfd.readouterr().err == ""


def test_an_error_is_told(person: Person) -> None:
    def fails() -> None:
        raise ValueError("<script>")

    later = Later(["x"], None, fails)
    later_view(later, person.shell)
    later.run(CancelScope())
    (seen,) = person.outputs
    assert "ValueError: <script>" in seen["text/plain"]
    assert "<script" not in seen["text/html"]
    with pytest.raises(ValueError, match="script"):
        later.result()
    assert not isinstance(later._error, CellCancelled)
