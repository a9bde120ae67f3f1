"""Names that a file or a user made up to do harm are shown in a report, and never run."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest
from kernels import book_of
from malicious_names import COLUMNS, HARM, LONG, QUOTED, RIGHT_TO_LEFT
from playwright.sync_api import sync_playwright

from matnb.cli import main

pytestmark = pytest.mark.notebook


CELLS = (
    "import numpy as np\nimport matnb as mn\n%load_ext matnb\n%config DistMat.display = 'static'",
    f"t = mn.load({HARM + '.csv'!r}, columns={[*COLUMNS, LONG]!r})\nt",
    f"t[{COLUMNS[0]!r}]",
    f"%%distmat\n{RIGHT_TO_LEFT} = t[{COLUMNS[0]!r}] + t[{COLUMNS[2]!r}]\n"
    f"{LONG} = {RIGHT_TO_LEFT} * 2\n{LONG}",
    f"%distmat explain {RIGHT_TO_LEFT}",
    "%distmat memo",
    f"mn.visualize({RIGHT_TO_LEFT}, stage='recorded')",
    f"A = mn.load({HARM + '.txt'!r}, kind='edges')\nA",
    f"%%distmat\n{RIGHT_TO_LEFT}2 = A @ A\n{RIGHT_TO_LEFT}2",
    "mn.history()",
    "%distmat stamp",
    "%distmat doctor",
    "mn.monitor()",
    f"%%distmat --nowait\n{LONG}3 = {RIGHT_TO_LEFT} + 3\n{{{HARM!r}: {LONG}3}}",
    f"print({QUOTED!r})\n{QUOTED!r}",
)
FAILING = (
    f"t[{HARM!r}]",
    f"mn.load({QUOTED + HARM!r})",
    f"%%distmat --keep {HARM.replace(' ', '')}\n1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with hostile files, and the report of a notebook, itself so called, that reads them."""
    folder = tmp_path_factory.mktemp("hostile")
    heads = ",".join('"' + name.replace('"', '""') + '"' for name in [*COLUMNS, LONG])
    rows = "".join(f"{i},{i + 1},{i + 2},{i + 3},{i + 4}\n" for i in range(6))
    (folder / f"{HARM}.csv").write_text(f"{heads}\n{rows}", encoding="utf-8")
    (folder / f"{HARM}.txt").write_text("1 2\n2 3\n3 1\n")
    book = book_of(*CELLS, *FAILING)
    for cell in book.cells[len(CELLS) :]:
        cell.metadata["tags"] = ["raises-exception"]
    nbformat.write(book, folder / f"{HARM}.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["report", f"{HARM}.ipynb", "-o", "page.html", "--timings"]) == 0
    return folder


class _Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attributes}


def test_no_name_became_an_element(folder: Path) -> None:
    found = _Elements((folder / "page.html").read_text())
    assert {"svg", "table", "main"} <= found.tags  # it was read to its end
    assert not found.tags & {"script", "img", "iframe", "object"}
    assert not [name for name in found.attributes if name.startswith("on")]


def test_the_page_has_a_stamp_a_diagnosis_a_monitor_and_a_handle_with_short_names(folder: Path) -> None:
    page = (folder / "page.html").read_text()
    for words in ("done: 1 result, ", "BLAS", "busy"):
        assert words in page, words
    line = page[page.index("done: 1 result, ") :].split("<", 1)[0]
    assert len(line) < 300


@pytest.mark.browser
def test_nothing_runs_in_a_browser(folder: Path, chromium: str) -> None:
    asked, complaints = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": 1000, "height": 900}, offline=True).new_page()
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("dialog", lambda dialog: complaints.append(dialog.message))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        page = (folder / "page.html").as_uri()
        tab.goto(page)
        assert tab.evaluate("typeof window.harmed") == "undefined"
        assert tab.title() == HARM
        assert tab.evaluate("document.querySelectorAll('script, img, iframe, object').length") == 0
        assert tab.evaluate("document.querySelectorAll('[onload], [onerror], [onclick]').length") == 0
        outputs = tab.locator(".jp-OutputArea-output").all_inner_texts()
        for name in [HARM, QUOTED, *COLUMNS, RIGHT_TO_LEFT, LONG]:
            assert any(name in text for text in outputs), name
        assert tab.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth + 1"
        )
        browser.close()
    assert complaints == []
    assert asked == [page]
