"""The report of the main job: whole, the same every time, and right in a browser without a network."""

from __future__ import annotations

import json
import re
from pathlib import Path

import papermill
import pytest
from kernels import PAGERANK, texts
from playwright.sync_api import sync_playwright

from matnb.cli import main
from matnb.cli.page import outside_loads

pytestmark = pytest.mark.notebook


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a small edge list with sparse ids and a dangling page."""
    path = tmp_path_factory.mktemp("graph") / "links <b>&.txt"
    edges = [(7 * i, 7 * (i * i % 97)) for i in range(1, 97)] + [(7 * i, 7) for i in range(2, 60, 3)]
    path.write_text("# from to\n" + "".join(f"{a}\t{b}\n" for a, b in edges))
    return path


@pytest.fixture(scope="module")
def page(links: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report of that graph."""
    path = tmp_path_factory.mktemp("report") / "pagerank.html"
    assert main(["report", str(PAGERANK), "-p", "graph", str(links), "-p", "top", "5", "-o", str(path)]) == 0
    return path


def test_two_reports_are_byte_identical(links, page, tmp_path):
    again = tmp_path / "again.html"
    assert main(["report", str(PAGERANK), "-p", "graph", str(links), "-p", "top", "5", "-o", str(again)]) == 0
    assert again.read_bytes() == page.read_bytes()


def test_the_report_is_whole(page):
    text = page.read_text()
    assert outside_loads(text) == []
    assert "http://" not in text
    assert "https://" not in text
    assert "<script" not in text
    assert text.count("Block map of") == 3  # the matrix, and the ranks twice
    assert text.count('src="data:image/png;base64,') == 1
    assert "Traceback" not in text


def test_what_was_measured_lies_beside_it(page):
    measured = json.loads(page.with_suffix(".timings.json").read_text())
    runs = [run for cell in measured["cells"] for run in cell["runs"]]
    assert len(runs) == 3
    assert all(run["seconds"] > 0 for run in runs)


def test_papermill_runs_it_too(links, tmp_path):
    given = {"graph": str(links), "tolerance": 1e-3}
    output = tmp_path / "out.ipynb"
    book = papermill.execute_notebook(
        PAGERANK, output, given, kernel_name="python3", progress_bar=False, cwd=tmp_path
    )
    assert sum(re.match(r"\d+ tasks?\b", text) is not None for text in texts(book)) == 3


@pytest.mark.browser
def test_the_report_looks_right_in_a_browser_without_a_network(page, chromium, tmp_path):
    asked, complaints = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1100, "height": 900}, offline=True)
        tab = context.new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(page.as_uri())
        picture = tab.locator("img").first
        assert picture.evaluate("image => image.complete && image.naturalWidth > 300")
        block_map = tab.locator("svg[role=img]").first.bounding_box()
        assert block_map["width"] > 100
        assert block_map["height"] > 100
        assert tab.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        summary = tab.locator("details > summary").first
        plan = tab.locator("details > pre").first
        assert not plan.is_visible()
        summary.click()
        assert plan.is_visible()
        shot = tab.screenshot(path=tmp_path / "report.png", full_page=True)
        browser.close()
    assert len(shot) > 50_000
    assert complaints == []
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]
