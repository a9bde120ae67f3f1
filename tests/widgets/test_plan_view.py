"""How something is computed, in a notebook: a picture that needs no widget, and buttons for each pass."""

from __future__ import annotations

from xml.etree import ElementTree

import ipywidgets
import pytest
from notebook_shell import Person

from matnb.pictures.facts import GraphFacts, NodeFacts, PanelFacts
from matnb.pictures.picture import Picture
from matnb.widgets.output_area import VIEW
from matnb.widgets.views import plan_view


def stage(name: str) -> GraphFacts:
    nodes = (NodeFacts("e0", f"given to {name}"), NodeFacts("e1", "sum(e0)", (), (0,), is_result=True))
    return GraphFacts(f"after {name}", (PanelFacts("", nodes),))


def picture(*passes: str) -> Picture:
    names = ("recorded", *passes, *(["optimized"] if passes else []), "plan")
    stages = tuple((name, stage(name)) for name in names)
    return Picture(stages[-1][1], stages, ("recorded", "optimized", "plan"), "what became of it")


@pytest.mark.parametrize("passes", [(), ("narrowing",)])
def test_what_the_picture_holds_needs_no_widget(person: Person, passes: tuple[str, ...]) -> None:
    found = picture(*passes)
    assert not plan_view(found).is_open
    assert person.outputs == [found.bundle()]
    assert person.comms == []
    names = [
        one.find("input").tail for one in ElementTree.fromstring(found.bundle()["text/html"]).iter("label")
    ]
    assert names == ["recorded", "optimized", "plan"] if passes else ["recorded", "plan"]


def test_buttons_show_what_each_pass_left(person: Person) -> None:
    found = picture("identities", "narrowing")
    shown = plan_view(found)
    frozen, control = person.outputs
    assert frozen == found.bundle()
    assert VIEW in control
    choice, drawing = shown._control.widget.children
    assert isinstance(choice, ipywidgets.ToggleButtons)
    assert choice.options == ("recorded", "identities", "narrowing", "optimized", "plan")
    assert (choice.value, drawing.value) == (None, "")  # the picture above shows one
    for name in choice.options:
        choice.value = name
        assert f"given to {name}" in drawing.value
        ElementTree.fromstring(drawing.value)
    person.end_cell()
    assert shown.is_open
    person.begin_cell()
    assert person.num_open == 0
    assert person.outputs == [frozen, {}]


def test_in_a_report_it_is_the_picture(person: Person) -> None:
    person.shell.kernel._allow_stdin = False
    found = picture("identities", "narrowing")
    plan_view(found)
    assert person.outputs == [found.bundle()]
    assert person.comms == []


def test_one_stage_alone_is_one_picture(person: Person) -> None:
    alone = Picture(stage("plan"))
    plan_view(alone)
    html = person.outputs[0]["text/html"]
    assert "<form" not in html
    assert "after plan" in html
    assert html.count("<svg") == 1
