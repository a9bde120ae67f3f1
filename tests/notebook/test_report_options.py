"""Options of ``matnb report``: what was measured, traces recorded and replayed, PDF; and its two themes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import nbformat
import pytest
from kernels import book_of
from playwright.sync_api import sync_playwright

from matnb.balance.trace import Trace
from matnb.cli import main
from matnb.cli.page import page_of, page_to_print, pdf_of

pytestmark = pytest.mark.notebook

SKEWED = (
    "import matnb as mn\n%load_ext matnb\nmn.start(workers=2, threads=1);",
    "%%distmat\nA = mn.random.rmat(scale=16, seed=1, blocks=8)\n"
    "x, _ = mn.iterate(lambda x: 1e-3 * (A @ x) + 0.1, mn.ones(A.shape[0]), max_iterations=500)",
    "mn.history()",
)
SHOWS_SETTING = "import os\nprint('rebalance is', os.environ['MATNB_REBALANCE'])"


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MATNB_REBALANCE", raising=False)


def written(*cells: str) -> str:
    nbformat.write(book_of(*cells), "book.ipynb")
    return "book.ipynb"


@pytest.mark.slow
def test_a_recorded_trace_is_replayed_to_the_same_bytes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    book = written(*SKEWED)
    monkeypatch.setenv("MATNB_REBALANCE", "entries")  # which repartitions here for certain
    assert main(["report", book, "--trace", "record", "deep/cuts.json", "-o", "measured.html"]) == 0
    recut = [one for one in Trace.from_json(Path("deep/cuts.json").read_text()).passed if one.decision.acts]
    assert [one.decision.policy for one in recut] == ["entries"]
    monkeypatch.delenv("MATNB_REBALANCE")
    for page in ("one.html", "two.html"):
        assert main(["report", book, "--trace", "replay", "deep/cuts.json", "-o", page]) == 0
    assert Path("one.html").read_bytes() == Path("two.html").read_bytes()
    text = Path("one.html").read_text()
    assert "rebalance=replay: " in text
    assert "A repartitioned before the first iteration (replay): replayed" in re.sub("<[^>]+>", "", text)
    assert "What was measured" not in text
    assert "repeats the decisions of deep/cuts.json" in capsys.readouterr().err


@pytest.mark.slow
def test_what_was_measured_is_in_the_page_only_where_it_is_asked_for(tmp_path: Path) -> None:
    book = written(*SKEWED)
    assert main(["report", book, "-o", "plain.html"]) == 0
    assert main(["report", book, "-o", "timed.html", "--timings"]) == 0
    plain, timed = Path("plain.html").read_text(), Path("timed.html").read_text()
    head, _, section = timed.partition('<section class="matnb-measured')
    assert plain == head + "</main>\n" + timed.rpartition("</main>\n")[2]
    assert re.search(r"[\d.]+ m?s in all; the kernel had at most [\d.]+ MB", section)
    assert "2 workers x 1 thread, in this process" in section
    assert "A = mn.random.rmat(scale=16, seed=1, blocks=8)" in section
    assert re.search(r"worker 0 [\d,.]+[^<]*worker 1 ", section)  # loads, of each worker
    measured = json.loads(Path("timed.timings.json").read_text())
    assert measured["kernel_bytes"] > 10**7
    assert measured["seconds"] > 0


@pytest.mark.parametrize("case", ["alone", "beside", "set", "recorded"])
def test_who_decides_about_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    book, options = written(f"import matnb as mn\nmn.start();{SHOWS_SETTING}"), []
    trace = tmp_path / "book.trace.json"
    wanted = {"alone": "entries", "beside": str(trace), "set": "presto", "recorded": "auto"}[case]
    if case != "alone":
        trace.write_text(Trace(()).to_json())
    if case == "set":
        monkeypatch.setenv("MATNB_REBALANCE", "presto")
    if case == "recorded":
        options = ["--trace", "record", "new.json"]
    assert main(["report", book, "-o", "page.html", *options]) == 0
    assert f"rebalance is {wanted}\n" in Path("page.html").read_text()
    assert Path("new.json").exists() == (case == "recorded")


def test_a_notebook_that_ends_without_a_session_has_nothing_to_record(capsys: pytest.CaptureFixture) -> None:
    assert main(["report", written("1 + 1"), "--trace", "record", "new.json", "-o", "page.html"]) == 2
    assert "no session was running when the notebook ended" in capsys.readouterr().err
    assert not Path("new.json").exists()
    assert not Path("page.html").exists()


@pytest.mark.parametrize(
    "options",
    [
        ["-o", "book.ipynb"],
        ["-o", "other.ipynb"],
        ["-o", "./page.html", "--trace", "record", "page.html"],
        ["--trace", "record", "book.ipynb"],
    ],
)
def test_nothing_is_written_over(options: list[str], capsys: pytest.CaptureFixture) -> None:
    book = Path(written("1 / 0"))
    before = book.read_bytes()
    assert main(["report", str(book), *options]) == 2
    assert "would write over" in capsys.readouterr().err
    assert book.read_bytes() == before
    assert not Path("page.html").exists()


def test_a_folder_is_no_place_for_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["report", written("1 / 0"), "--trace", "record", str(tmp_path), "-o", "page.html"]) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "", "{}", "nonsense"])
def test_what_is_no_trace_is_told_before_anything_runs(
    content: str | None, capsys: pytest.CaptureFixture
) -> None:
    if content is not None:
        Path("cuts.json").write_text(content)
    assert main(["report", written("1 / 0"), "--trace", "replay", "cuts.json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "cuts.json" in line
    assert main(["report", "book.ipynb", "--trace", "repeat", "cuts.json"]) == 2
    assert "--trace record FILE or --trace replay FILE" in capsys.readouterr().err


@pytest.mark.browser
def test_a_pdf_is_printed_beside_the_page_and_is_the_same_every_time(chromium: str) -> None:
    book = written("print('printed')", "import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    assert main(["report", book, "--pdf", "-o", "page.html"]) == 0
    printed = Path("page.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert printed.count(b"/Type /Page\n") >= 1
    assert b"/CreationDate (D:19700101000000)" in printed
    assert b"Chrome" not in printed
    assert pdf_of(Path("page.html").read_text(), chromium) == printed


def test_without_a_browser_a_pdf_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    book = written("1 / 0")
    monkeypatch.delenv("MATNB_CHROMIUM", raising=False)
    monkeypatch.setenv("PATH", "")
    assert main(["report", book, "--pdf"]) == 2
    assert "apt install chromium" in capsys.readouterr().err
    monkeypatch.setenv("MATNB_CHROMIUM", "/no/such/browser")
    assert main(["report", book, "--pdf"]) == 2
    assert "MATNB_CHROMIUM='/no/such/browser': no such program exists" in capsys.readouterr().err


def test_a_browser_that_fails_fails_the_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setenv("MATNB_CHROMIUM", "/bin/false")
    assert main(["report", written("1"), "--pdf", "-o", "page.html"]) == 2
    assert "/bin/false did not print the page" in capsys.readouterr().err
    assert not Path("page.html").exists()


@pytest.mark.browser
def test_the_page_follows_the_theme_and_is_printed_light(tmp_path: Path, chromium: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(page_of(book_of("x = 1"), Path("book.ipynb")))
    looks = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for medium, theme in [("screen", "light"), ("screen", "dark"), ("print", "dark")]:
            tab = browser.new_context(color_scheme=theme, offline=True).new_page()
            tab.emulate_media(media=medium, color_scheme=theme)
            tab.goto(path.as_uri())
            looks[medium, theme] = [
                [int(word) for word in re.findall(r"\d+", tab.evaluate(f"getComputedStyle({which}"))][:3]
                for which in (
                    "document.body).backgroundColor",
                    "document.body).color",
                    "document.querySelector('.jp-InputArea-editor')).backgroundColor",
                )
            ]
        browser.close()
    for (medium, theme), (ground, ink, code) in looks.items():
        is_dark = (medium, theme) == ("screen", "dark")
        assert (sum(ground) < 150, sum(ink) > 600, sum(code) < 250) == (is_dark,) * 3, (medium, theme)


WIDE = """<table><tr>{}</tr></table><div style="overflow-x:auto"><table style="white-space:pre">
<tr>{}</tr></table></div>"""


@pytest.mark.browser
@pytest.mark.parametrize("num_columns", [3, 12, 25, 60])
def test_what_is_wider_than_a_sheet_is_whole_on_it(tmp_path: Path, chromium: str, num_columns: int) -> None:
    cells = [f"<td>column {place} is 1234567.{place}</td>" for place in range(num_columns)]
    book = book_of("1")
    book.cells[0].outputs = [
        nbformat.v4.new_output("display_data", {"text/html": WIDE.format("".join(cells), "".join(cells))}),
        nbformat.v4.new_output("stream", text="a word " * 4 * num_columns + "\n" + "x" * 20 * num_columns),
    ]
    path = tmp_path / "page.html"
    path.write_text(page_to_print(page_of(book, Path("book.ipynb"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_context(offline=True).new_page()
        tab.goto(path.as_uri())
        edge = tab.evaluate("document.body.getBoundingClientRect().right")
        assert edge == 739
        assert tab.evaluate("document.documentElement.scrollWidth") <= max(edge, tab.viewport_size["width"])
        rights = tab.evaluate(
            """[...document.querySelectorAll("td, pre")].map(one => {
              const range = document.createRange();
              range.selectNodeContents(one);
              return range.getBoundingClientRect().right;
            })"""
        )
        zooms = tab.evaluate("[...document.querySelectorAll('.jp-OutputArea-output')].map(x => x.style.zoom)")
        browser.close()
    assert len(rights) >= 2 * num_columns + 2
    assert max(rights) <= edge + 9  # a space at the end of a line hangs out
    assert all(0.35 <= float(zoom) <= 1 for zoom in zooms)
    assert (float(zooms[0]) == 1) == (num_columns == 3)


def test_the_code_of_a_cell_is_colored_below_its_magic() -> None:
    page = page_of(book_of("%%distmat --explain\nfor x in y: pass"), Path("book.ipynb"))
    assert '<span class="k">for</span>' in page
