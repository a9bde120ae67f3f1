"""History and plan in JupyterLab: a click goes from view to view, also in a notebook without a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab import Lab, OpenNotebook
from playwright.sync_api import BrowserContext, Locator

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """
import numpy as np
import matnb as mn
from matnb.balance.decision import Decision, Gain
from matnb.balance.history import History
from matnb.blocks.layout import Cuts
from matnb.session.history_view import HistoryView
from matnb.widgets.views import history_view
from matnb.widgets.views import plan_view
mn.start(workers=2, threads=1)
M = mn.asarray(np.random.default_rng(0).random((400, 30)))
picture = mn.visualize((M.T.T * 2.0)[100:200] + 1.0)
def view(count):
    history = History()
    for place in range(count):
        before, after = Cuts((0, 500, 1000), (0, 1)), Cuts((0, 100 + place, 1000), (0, 1))
        number = history.add(Decision(
            "A", "auto", place % 2 == 0, f"reason {place}: 1.5", before, after, "segmented",
            {0: 0.9, 1: 0.1}, {0: 0.5, 1: 0.5}, (), 0.4, 10, 0.1, 1000, place))
        if place % 2 == 0:
            history.gained(number, Gain({0: 0.5, 1: 0.5}, 0.4, 0.1, 1000))
    return HistoryView(history)
"""


def seen(output: Locator) -> list[str]:
    """Return the labels of the pictures that are seen."""
    pictures = output.locator("svg[aria-label]").all()
    return [str(one.get_attribute("aria-label")) for one in pictures if one.is_visible()]


def test_one_of_several_views_is_seen_and_a_click_shows_another(
    lab: Lab, window: BrowserContext, tmp_path: Path
):
    lab.write("views.ipynb", SETUP, "picture", "view(6)", "view(6)")
    with OpenNotebook(lab, window, "views.ipynb") as page:
        for place in range(4):
            page.run_to_end(place)
        assert seen(page.output(1)) == ["the plan"]
        page.output(1).get_by_text("recorded", exact=True).click()
        assert seen(page.output(1)) == ["what was recorded"]
        first, second = page.output(2), page.output(3)
        newest = seen(first)
        assert [one.split(" (")[0] for one in newest] == ["A repartitioned after iteration 4"]
        first.get_by_text("A, iteration 2: repartitioned", exact=True).click()
        assert [one.split(" (")[0] for one in seen(first)] == ["A repartitioned after iteration 2"]
        assert seen(second) == newest  # the same choice elsewhere is another one
        first.get_by_text("A, iteration 2: repartitioned", exact=True).press("Enter")
        assert len(seen(first)) == 1
        first.get_by_text("as a table").click()
        assert first.get_by_role("table").is_visible()
        page.photograph(tmp_path / "views.png", 1, 2)
        page.save()
        assert page.errors == []
    lab.end_kernels()
    with OpenNotebook(lab, window, "views.ipynb", dark=True) as page:
        assert seen(page.output(1)) == ["the plan"]
        page.output(1).get_by_text("optimized", exact=True).click()
        assert "expressions after all passes" in seen(page.output(1))[0]
        assert seen(page.output(3)) == newest
        page.photograph(tmp_path / "dark.png", 1, 2)
        assert page.errors == []
    lab.end_kernels()


def test_of_many_decisions_a_slider_goes_through_all_until_the_next_cell(
    lab: Lab, window: BrowserContext, tmp_path: Path
):
    lab.write("slider.ipynb", SETUP, "history_view(view(200));", "plan_view(picture);", "1 + 1")
    with OpenNotebook(lab, window, "slider.ipynb") as page:
        page.run_to_end(0)
        page.run_to_end(1)
        slider = page.output(1).get_by_role("slider")
        slider.wait_for()
        assert len(seen(page.output(1))) == 2
        slider.focus()
        slider.press("Home")
        page.output(1).get_by_text("A repartitioned before the first iteration (auto)").last.wait_for()
        page.output(1).get_by_text("1 of 200: A, start: repartitioned").wait_for()
        page.photograph(tmp_path / "slider.png", 1)
        page.run_to_end(2)
        page.output(1).get_by_role("slider").wait_for(state="detached")
        page.output(2).get_by_role("button", name="narrowing").click()
        page.wait_until(lambda: "expressions after narrowing" in seen(page.output(2)), 10)
        page.photograph(tmp_path / "buttons.png", 2)
        page.run_to_end(3)
        page.output(2).get_by_role("button").first.wait_for(state="detached")
        assert len(seen(page.output(1))) == len(seen(page.output(2))) == 1
        book = page.save()
        kinds = {kind for cell in book.cells for output in cell.outputs for kind in output.get("data", {})}
        assert not any("widget-view" in kind for kind in kinds)
        assert page.errors == []
    lab.end_kernels()
