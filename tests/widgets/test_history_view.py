"""The history in a notebook: a picture that needs no widget, and a slider only where it cannot hold all."""

from __future__ import annotations

from xml.etree import ElementTree

import ipywidgets
import pytest
from histories import AFTER, BEFORE, decided, view
from ipywidgets.widgets import widget
from notebook_shell import Person

from matnb.balance.history import History
from matnb.session.history_view import HistoryView
from matnb.widgets import views
from matnb.widgets.output_area import VIEW, freeze_open
from matnb.widgets.views import history_view, slider


def picture_of(box: ipywidgets.Widget) -> ipywidgets.HTML:
    return box.children[1]


def slider_of(box: ipywidgets.Widget) -> ipywidgets.IntSlider:
    return box.children[0].children[1]


def readout_of(box: ipywidgets.Widget) -> str:
    return "".join(ElementTree.fromstring(box.children[0].children[2].value).itertext())


def test_cuts_that_were_refused_are_among_the_facts() -> None:
    kept = view(2).facts().decisions[1]
    assert (kept.before.cuts, kept.after.cuts) == (BEFORE.cuts, AFTER.cuts)
    assert dict(kept.after.loads) == {0: 0.5, 1: 0.5}
    assert not kept.acts


def test_few_decisions_need_no_widget(person: Person) -> None:
    found = view(8)
    shown = history_view(found)
    assert person.outputs == [found.bundle(measured=True)]
    assert person.comms == []
    assert not shown.is_open


def test_of_many_a_slider_goes_through_all(person: Person) -> None:
    found = view(200)
    shown = history_view(found)
    picture, control = person.outputs
    assert picture == found.bundle(measured=True)
    assert VIEW in control
    assert shown.is_open
    box = shown._control.widget
    assert (slider_of(box).min, slider_of(box).max, slider_of(box).value) == (0, 199, 198)
    assert "A repartitioned after iteration 198 (auto)" in picture_of(box).value
    assert readout_of(box) == "199 of 200: A, iteration 198: repartitioned"
    for place in (0, 7, 199):
        slider_of(box).value = place
        drawing = picture_of(box).value
        assert f"reason {place}: 1.5" in drawing
        assert ("<b>A kept" in drawing) == (place % 2 == 1)
        ElementTree.fromstring(drawing)
        outcome = "refused" if place % 2 else "repartitioned"
        when = f"iteration {place}" if place else "start"
        assert readout_of(box) == f"{place + 1} of 200: A, {when}: {outcome}"
    assert not slider_of(box).readout
    assert found.bundle(measured=True) == picture  # what stays is not what was last looked at


def test_the_slider_outlives_its_cell_and_goes_with_the_next_one(person: Person) -> None:
    before = set(widget._instances)
    hooks = {name: list(ones) for name, ones in person.shell.events.callbacks.items()}
    found = view(200)
    history_view(found)
    person.end_cell()
    assert person.num_open > 0
    person.begin_cell()
    assert person.num_open == 0
    assert person.outputs == [found.bundle(measured=True), {}]
    assert set(widget._instances) == before
    assert {name: list(ones) for name, ones in person.shell.events.callbacks.items()} == hooks


def test_a_second_slider_takes_the_first_one_s_place(person: Person) -> None:
    first = history_view(view(200))
    second = history_view(view(201))
    assert (first.is_open, second.is_open) == (False, True)
    second.close()
    second.close()
    assert person.num_open == 0
    assert views._browsing is None


def test_at_the_kernel_s_exit_it_goes(person: Person) -> None:
    history_view(view(200))
    freeze_open()
    assert person.num_open == 0
    person.begin_cell()


@pytest.mark.parametrize("why", ["headless", "static"])
def test_in_a_report_there_is_no_widget_and_nothing_measured(
    person: Person, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "headless":
        person.shell.kernel._allow_stdin = False
    else:
        monkeypatch.setenv("MATNB_DISPLAY", "static")
    found = view(200)
    history_view(found)
    assert person.outputs == [found.bundle(measured=False)]
    assert person.comms == []
    assert "ms" not in person.outputs[0]["text/plain"]


def test_plain_ipython_shows_text(person: Person) -> None:
    person.shell.kernel = None
    history_view(view(200))
    (output,) = person.shell.display_pub.outputs
    assert output["data"]["text/plain"].startswith("rebalance=auto: 200 decisions, 100 to repartition")
    assert person.comms == []


def test_in_a_script_nothing_is_shown(person: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matnb.widgets.output_area.current_shell", lambda: None)
    assert not history_view(view(200)).is_open
    assert person.shell.display_pub.outputs == []


def test_the_slider_begins_with_the_newest_even_where_all_were_refused(person: Person) -> None:
    history = History()
    for iteration in range(3):
        history.add(decided(iteration, acts=False))
        history.add(decided(iteration + 1, acts=True))
    refused = HistoryView(history).facts()
    box = slider(type(refused)(tuple(one for one in refused.decisions if not one.acts)))
    assert slider_of(box).value == slider_of(box).max == 2
    box.close()
