"""One output: a widget while somebody watches, then what stays, and no comm left."""

from __future__ import annotations

import threading
import time

import ipywidgets
import pytest
from ipywidgets.widgets import widget
from notebook_shell import Person
from waiting import wait_until

from matnb.widgets import output_area
from matnb.widgets.output_area import VIEW, LiveDisplay, freeze_open, is_live, shows_measured

PICTURE = {"text/plain": "a picture", "text/html": "<b>a picture</b>"}


def slider() -> ipywidgets.Widget:
    return ipywidgets.VBox([ipywidgets.HTML("now"), ipywidgets.Button()])


def shown(**options: object) -> LiveDisplay:
    return LiveDisplay(lambda: PICTURE, slider, **options)


def test_it_is_a_widget_until_it_is_frozen(person: Person) -> None:
    one = shown()
    (output,) = person.outputs
    assert output[VIEW]["model_id"] == one.widget.model_id
    assert output["text/html"] == PICTURE["text/html"]  # for what speaks no widgets
    assert person.num_open == len(person.comms) > 3
    person.end_cell()
    assert one.is_open
    one.freeze()
    assert person.outputs == [PICTURE]
    assert person.num_open == 0
    assert not one.is_open
    one.freeze()
    assert len(person.shell.display_pub.outputs) == 2


def test_it_comes_to_life_again_in_its_place(person: Person) -> None:
    one = shown()
    one.freeze()
    one.thaw()
    one.thaw()
    assert len(person.outputs) == 1
    assert VIEW in person.outputs[0]
    one.freeze()
    assert person.outputs == [PICTURE]
    assert person.num_open == 0


def test_a_page_has_the_time_to_make_a_widget_before_it_is_taken_away(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_area, "SETTLE_SECONDS", 0.3)
    one = shown()
    one.freeze(is_patient=True)
    assert one.is_open
    one.thaw()  # whoever wants it again keeps it
    time.sleep(0.4)
    assert one.is_open
    one.freeze(is_patient=True)  # it has been there for long enough
    assert not one.is_open
    other = shown()
    other.freeze(is_patient=True)
    assert other.is_open
    wait_until(lambda: not other.is_open)
    assert person.outputs == [PICTURE, PICTURE]
    assert person.num_open == 0
    monkeypatch.setattr(person.shell.kernel, "_allow_stdin", False)
    monkeypatch.setattr(output_area, "is_live", lambda shell: True)
    third = shown()
    third.freeze(is_patient=True)  # a program has no page
    assert not third.is_open


def test_at_the_end_nothing_is_open(person: Person) -> None:
    one, other = shown(), shown()
    assert one.is_open
    freeze_open()
    assert not one.is_open
    assert not other.is_open
    assert person.num_open == 0


def test_nothing_of_it_is_left_with_ipython_or_ipywidgets(person: Person) -> None:
    before = set(widget._instances)
    for _ in range(20):
        shown().freeze()
    assert output_area._open == set()
    assert set(widget._instances) == before


def test_the_same_forms_are_not_sent_twice(person: Person) -> None:
    one = LiveDisplay(lambda: PICTURE)
    one.update(PICTURE)
    one.update(dict(PICTURE))
    assert len(person.shell.display_pub.outputs) == 1
    one.update({"text/plain": "other"})
    assert person.outputs == [{"text/plain": "other"}]


def test_an_open_widget_is_not_painted_over(person: Person) -> None:
    one = shown()
    one.update({"text/plain": "other"})
    assert VIEW in person.outputs[0]


@pytest.mark.parametrize("why", ["headless", "static", "no ipywidgets"])
def test_where_nobody_watches_no_widget_is_made(
    person: Person, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    match why:
        case "headless":
            person.shell.kernel._allow_stdin = False
        case "static":
            monkeypatch.setenv("MATNB_DISPLAY", "static")
        case "no ipywidgets":
            monkeypatch.setitem(output_area.sys.modules, "ipywidgets", None)
    one = shown()
    one.thaw()
    person.end_cell()
    assert person.outputs == [PICTURE]
    assert person.comms == []


def test_the_setting_of_the_magics_is_what_counts(person: Person) -> None:
    class DistMat:
        display = "static"

    person.shell.configurables.append(DistMat)  # not one of them by its class's name
    assert is_live(person.shell)
    person.shell.configurables[-1] = DistMat()
    assert not shows_measured(person.shell)
    assert not is_live(person.shell)
    person.shell.configurables[-1].display = "live"
    person.shell.kernel._allow_stdin = False
    assert shows_measured(person.shell)  # a report that asks for them
    assert not is_live(person.shell)


def test_without_a_kernel_nothing_is_shown(person: Person) -> None:
    del person.shell.kernel
    one = shown()
    one.update(PICTURE)
    one.thaw()
    one.freeze()
    assert person.shell.display_pub.outputs == []
    assert person.comms == []


def test_threads_may_thaw_and_freeze_at_once(person: Person) -> None:
    one = shown()

    def work() -> None:
        for _ in range(50):
            one.thaw()
            one.freeze()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert person.num_open == 0
    assert person.outputs == [PICTURE]
