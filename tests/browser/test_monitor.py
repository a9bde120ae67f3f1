"""The load monitor in JupyterLab: it changes while a cell runs, stops what runs, and its picture stays."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import WIDGETS, Lab, OpenNotebook
from playwright.sync_api import BrowserContext

from matnb.widgets.monitor import CLOSE_SECONDS

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
]

SETUP = """
%load_ext matnb
import numpy as np
import matnb as mn
mn.start(workers=2, threads=1, processes=PROCESSES)
A = mn.asarray(np.random.default_rng(0).random((1000, 1000)), blocks=4).persist()
def turn(num_iterations):
    return mn.iterate(lambda x: A @ x / 500, mn.ones(1000), max_iterations=num_iterations)[0]
"""
ENDLESS = """
%%distmat
x = turn(10**8)
x
"""
SHORT = """
%%distmat
y = mn.iterate(lambda x: A @ (x / 500), mn.ones((1000, 100)), max_iterations=1500)[0]
y
"""
VIEW = "application/vnd.jupyter.widget-view+json"
AFTER = "float((mn.ones(10) * 2).sum())"


@pytest.fixture
def page(lab: Lab, window: BrowserContext, request: pytest.FixtureRequest):
    """Open a notebook whose first cell has been run and whose second shows the monitor; end its kernel."""
    name = f"{request.node.originalname}.ipynb"
    setup = SETUP.replace("PROCESSES", str(request.getfixturevalue("processes")))
    lab.write(name, setup, "mn.monitor(buttons=True)", ENDLESS, AFTER)
    with OpenNotebook(lab, window, name) as page:
        page.run_to_end(0)
        page.run_to_end(1)
        yield page
    lab.end_kernels()


def worked(page: OpenNotebook, milliseconds: int) -> float:
    """Return how many processors the kernel and its workers use for a moment."""
    before = page.lab.working_seconds()
    page.page.wait_for_timeout(milliseconds)
    return (page.lab.working_seconds() - before) * 1000 / milliseconds


def stopped_within(page: OpenNotebook, place: int) -> float:
    """Return how many seconds after now the cell has ended and the workers' processes rest."""
    begin = time.monotonic()
    page.output(place).get_by_text("CellCancelled").first.wait_for(timeout=10_000)
    while True:
        rest = time.monotonic()
        if worked(page, 250) < 0.2:
            return rest - begin
        assert rest - begin < 20, "the workers work on"


@pytest.mark.parametrize(
    ("way", "processes"),
    [
        ("the monitor's button", True),
        ("the toolbar's square", False),
        ("the toolbar's square", True),
    ],
)
def test_what_runs_is_stopped_within_two_seconds_by(
    page: OpenNotebook, way: str, processes: bool, tmp_path: Path
):
    page.run(2)
    cancel = page.output(1).get_by_role("button", name="Cancel")
    cancel.wait_for()
    page.wait_until(lambda: worked(page, 1000) > 0.3, 30)
    page.photograph(tmp_path / "running.png")
    buttons = page.output(1).get_by_role("button")  # that are seen
    assert buttons.all_inner_texts() == ["Cancel", "Table", "Close"]
    if way == "the monitor's button":
        cancel.click()
    else:
        page.press_interrupt()
    assert stopped_within(page, 2) < 2
    page.wait_until(lambda: page.is_done, 10)
    page.run_to_end(3)
    assert page.output(3).inner_text().strip().endswith("20.0")
    assert page.errors == []


@pytest.mark.parametrize("stored", [False, True], ids=["widget state not stored", "widget state stored"])
def test_it_changes_while_a_cell_runs_and_stays_when_the_notebook_is_opened_again(
    lab: Lab, window: BrowserContext, stored: bool, tmp_path: Path
):
    lab.set(WIDGETS, {"saveState": stored})
    name = f"watched-{stored}.ipynb"
    lab.write(name, SETUP.replace("PROCESSES", "True"), "mn.monitor(buttons=True)", SHORT)
    with OpenNotebook(lab, window, name) as page:
        page.run_to_end(0)
        page.run_to_end(1)
        page.run(2)
        page.wait_until(lambda: not page.is_done, 10)
        seen: set[tuple[str, ...]] = set()
        heights = []
        while not page.is_done:
            seen.add(tuple(page.pictures(1)))
            heights.append(page.output(1).bounding_box()["height"])
            page.page.wait_for_timeout(50)
        assert len(seen) >= 5
        page.wait_until(lambda: page.is_done, 30)
        page.photograph(tmp_path / "ended.png")
        heights.append(page.output(1).bounding_box()["height"])
        assert max(heights) - min(heights) < 12  # what is below does not jump
        frozen = page.pictures(1)
        assert len(frozen) >= 1
        assert page.output(1).get_by_role("button").count() == 0
        book = page.save()
        assert all("widget-view" not in kind for output in book.cells[1].outputs for kind in output.data)
        assert len(str(book.cells[1].outputs)) < 100_000
        assert page.errors == []
    lab.end_kernels()
    with OpenNotebook(lab, window, name, dark=True) as page:
        assert page.pictures(1) == frozen
        page.photograph(tmp_path / "reopened.png")
        assert page.errors == []
    lab.end_kernels()


@pytest.mark.parametrize("stored", [False, True], ids=["widget state not stored", "widget state stored"])
def test_saved_while_a_cell_runs_it_is_a_picture_when_the_notebook_is_opened_without_its_kernel(
    lab: Lab, window: BrowserContext, stored: bool, tmp_path: Path
):
    lab.set(WIDGETS, {"saveState": stored})
    name = f"saved-{stored}.ipynb"
    lab.write(name, SETUP.replace("PROCESSES", "False"), "mn.monitor()", ENDLESS)
    with OpenNotebook(lab, window, name) as page:
        page.run_to_end(0)
        page.run_to_end(1)
        page.run(2)
        page.wait_until(lambda: re.search("iteration [1-9]", page.text(1)), 20)
        book = page.save()
        # What was saved is what is on the disk when the kernel is gone, whatever the page learns after that.
        saved = page.path.read_bytes()
        assert page.errors == []
    lab.end_kernels()
    page.path.write_bytes(saved)
    (output,) = book.cells[1].outputs
    assert set(output.data) == {"text/plain", "text/html"}
    with OpenNotebook(lab, window, name, dark=True) as again:
        assert len(again.pictures(1)) >= 1
        assert re.match(r"at \d\d:\d\d:\d\d: iteration [\d,]+ of 100,000,000, ", again.text(1))
        assert "nothing runs" not in again.text(1)
        assert "Error displaying widget" not in again.page.content()
        again.photograph(tmp_path / "reopened.png")
        assert again.errors == []
    lab.end_kernels()


def test_saved_while_its_buttons_are_shown_it_is_a_picture_and_no_error(
    lab: Lab, window: BrowserContext, tmp_path: Path
):
    lab.set(WIDGETS, {"saveState": False})
    name = "saved-buttons.ipynb"
    lab.write(name, SETUP.replace("PROCESSES", "False"), "mn.monitor(buttons=True)", ENDLESS)
    with OpenNotebook(lab, window, name) as page:
        page.run_to_end(0)
        page.run_to_end(1)
        page.run(2)
        page.output(1).get_by_role("button", name="Cancel").wait_for()
        page.wait_until(lambda: re.search("iteration [1-9]", page.text(1)), 20)
        page.save()
        saved = page.path.read_bytes()
    lab.end_kernels()
    page.path.write_bytes(saved)
    with OpenNotebook(lab, window, name) as again:
        lost = again.output(1).get_by_text("model not found")
        lost.wait_for(state="attached")
        assert not lost.is_visible()
        assert len(again.pictures(1)) >= 1
        assert re.match(r"at \d\d:\d\d:\d\d: iteration [\d,]+ of 100,000,000, ", again.text(1))
        again.photograph(tmp_path / "reopened.png")
    lab.end_kernels()


@pytest.fixture
def watched(lab: Lab, window: BrowserContext, request: pytest.FixtureRequest) -> Iterator[OpenNotebook]:
    """Open a notebook whose monitor is live and has buttons, saved while its cell runs; end its kernel."""
    name = f"{request.node.originalname}.ipynb"
    lab.write(name, SETUP.replace("PROCESSES", "False"), "mn.monitor(buttons=True)", ENDLESS)
    with OpenNotebook(lab, window, name) as page:
        page.run_to_end(0)
        page.run_to_end(1)
        assert page.output(1).locator(".jp-OutputArea-child").count() == 1  # the buttons' place is nothing
        page.run(2)
        page.output(1).get_by_role("button", name="Cancel").wait_for()
        page.wait_until(lambda: re.search("iteration [1-9]", page.text(1)), 20)
        kinds = [set(output.data) for output in page.save().cells[1].outputs]
        assert kinds == [{"text/plain", "text/html"}, {VIEW}]
        assert page.errors == []
        yield page
    lab.end_kernels()


def own_errors(page: OpenNotebook) -> list[str]:
    """Return the page's errors but for what it asked when it was left."""
    return [one for one in page.errors if "net::ERR_ABORTED" not in one and one != "dialog: "]


def test_its_picture_is_there_when_the_page_is_loaded_again_while_the_cell_runs(
    watched: OpenNotebook, tmp_path: Path
):
    before = len(watched.pictures(1))
    watched.page.once("dialog", lambda dialog: dialog.accept())  # the picture has changed since it was saved
    watched.page.reload()
    watched.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    watched.wait_until(lambda: len(watched.pictures(1)) == before, 20)
    assert worked(watched, 1000) > 0.3  # the cell runs on
    watched.photograph(tmp_path / "reloaded.png")
    assert re.match(r"at \d\d:\d\d:\d\d: iteration [\d,]+ of 100,000,000, ", watched.text(1))
    assert own_errors(watched) == []
    watched.press_interrupt()
    watched.page.wait_for_timeout(2500)
    assert len(watched.pictures(1)) == before
    # The page asks for the buttons once the kernel is free, and gets no news of their place: they go when
    # they are closed.
    watched.wait_until(lambda: watched.output(1).get_by_role("button").count() == 0, CLOSE_SECONDS + 20)
    watched.page.wait_for_timeout(2000)
    assert own_errors(watched) == []


def test_its_picture_is_there_when_the_kernel_is_restarted_while_the_cell_runs(
    watched: OpenNotebook, window: BrowserContext, tmp_path: Path
):
    before = len(watched.pictures(1))
    watched.choose("Kernel", "Restart Kernel\N{HORIZONTAL ELLIPSIS}")
    watched.page.locator(".jp-Dialog .jp-mod-accept").click()
    watched.page.wait_for_timeout(1000)
    watched.wait_until(lambda: watched.is_done and watched.status == "idle", 60)
    assert len(watched.pictures(1)) == before
    watched.wait_until(lambda: watched.output(1).get_by_role("button").count() == 0, 10)  # they do nothing
    book = watched.save()
    picture = book.cells[1].outputs[0].data
    assert set(picture) == {"text/plain", "text/html"}
    assert re.match(r"at \d\d:\d\d:\d\d: iteration ", picture["text/plain"])
    assert watched.errors == []
    name = watched.path.name
    watched.lab.end_kernels()
    with OpenNotebook(watched.lab, window, name, dark=True) as again:
        assert len(again.pictures(1)) == before
        again.photograph(tmp_path / "reopened.png")
        # In place of the buttons; what is drawn is not touched.
        assert len(again.errors) <= 1
        assert all("widget model not found" in one for one in again.errors)
