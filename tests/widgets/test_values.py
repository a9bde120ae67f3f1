"""What a cell ends with is shown as the command shows it: live with a control, else as the cell's result."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from histories import view
from notebook_shell import Person
from waiting import wait_until

import matnb as mn
from matnb.magics import distmat
from matnb.widgets.output_area import VIEW


@pytest.fixture
def loaded(person: Person) -> Iterator[Person]:
    mn.load_ipython_extension(person.shell)
    yield person
    mn.unload_ipython_extension(person.shell)
    mn.stop()


def formats(person: Person, value: object) -> dict[str, str]:
    found, _ = person.shell.display_formatter.format(value)
    return dict(found)


def test_live_a_history_has_its_slider_from_the_command_and_as_a_value(
    loaded: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = view(200)
    monkeypatch.setattr(distmat, "history", lambda: found)
    loaded.shell.run_line_magic("distmat", "history")
    picture, control = loaded.outputs
    assert VIEW in control
    assert formats(loaded, found) == {}  # it has shown itself
    assert loaded.outputs[2] == picture == found.bundle(measured=True)
    assert VIEW in loaded.outputs[3]
    loaded.begin_cell()
    assert loaded.num_open == 0


@pytest.mark.parametrize("why", ["headless", "static", "terminal"])
def test_else_both_are_the_picture_alone(loaded: Person, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    if why == "headless":
        loaded.shell.kernel._allow_stdin = False
    elif why == "static":
        loaded.shell.run_line_magic("config", "DistMat.display = 'static'")
    else:
        loaded.shell.kernel = None
    found = view(200)
    monkeypatch.setattr(distmat, "history", lambda: found)
    loaded.shell.run_line_magic("distmat", "history")
    (output,) = loaded.shell.display_pub.outputs
    assert output["data"] == formats(loaded, found) == found.bundle(measured=why == "terminal")
    assert loaded.comms == []


def test_live_a_plan_is_gone_through_and_in_a_report_it_is_the_picture(loaded: Person) -> None:
    loaded.shell.user_ns["x"] = (mn.asarray(np.ones((400, 30))).T.T * 2.0)[100:200] + 1.0
    loaded.shell.run_line_magic("distmat", "explain x --picture")
    picture, control = loaded.outputs
    for name in ("recorded", "optimized", "plan"):
        assert f"/>{name}</label>" in picture["text/html"]
    assert VIEW in control
    loaded.begin_cell()
    loaded.shell.kernel._allow_stdin = False
    loaded.shell.run_line_magic("distmat", "explain x --picture")
    assert loaded.outputs[2] == picture
    assert len(loaded.outputs) == 3


def test_live_a_drawn_plan_has_measured_seconds_and_in_a_report_none(loaded: Person) -> None:
    loaded.shell.user_ns["x"] = (mn.ones((40, 3)) * 2.0).sum(axis=0)
    loaded.shell.user_ns["x"].persist()
    loaded.shell.run_line_magic("distmat", "explain x --picture")
    loaded.shell.kernel._allow_stdin = False
    loaded.shell.run_line_magic("distmat", "explain x --picture")
    live, static = (output["text/html"] for output in loaded.outputs if "<svg" in output["text/html"])
    assert re.search(r"\d m?s\b", live)
    assert not re.search(r"\d m?s\b", static)


def test_a_handle_s_line_says_that_the_work_has_ended_without_being_asked(loaded: Person) -> None:
    loaded.shell.run_cell("import matnb as mn").raise_error()
    loaded.shell.run_cell("%%distmat --nowait\nx = mn.ones(9) + 1\nx").raise_error()
    wait_until(lambda: loaded.outputs[0]["text/plain"].startswith("done in "))
    assert len(loaded.outputs) == 1
    assert "result" in loaded.outputs[0]["text/html"]


def test_in_a_report_a_handle_s_line_is_the_cell_s_result_and_stays(loaded: Person) -> None:
    loaded.shell.kernel._allow_stdin = False
    loaded.shell.run_cell("import matnb as mn").raise_error()
    loaded.shell.run_cell("%%distmat --nowait --out job\nx = mn.ones(9) + 1\nx").raise_error()
    job = loaded.shell.user_ns["job"]
    before = formats(loaded, job)
    job.result(20)
    assert formats(loaded, job) == before
    assert loaded.shell.display_pub.outputs == []


def test_unloaded_a_history_and_a_handle_show_themselves(loaded: Person) -> None:
    mn.unload_ipython_extension(loaded.shell)
    found = view(200)
    assert formats(loaded, found) == found.bundle(measured=True)
    assert loaded.outputs == []
