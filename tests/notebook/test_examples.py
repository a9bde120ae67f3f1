"""Every example notebook, run by every tool: whole, without a widget's placeholder, the same every time."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cached_property
from pathlib import Path

import nbformat
import papermill
import pytest
from kernels import (
    COMMUNITIES,
    FROM_DATAFRAMES,
    LOAD_BALANCING,
    NESTED,
    NOTHING_TWICE,
    NUMPY_WORDS,
    PAGERANK,
    PRESTO,
    PROJECT,
    RECOMMENDER,
    TAXI,
    TOPICS,
)

from matnb.cli import main
from matnb.cli.page import outside_loads, page_of, settle

pytestmark = pytest.mark.notebook

# What is set to make them quick; the pictures that each has at least, of matnb's and of Matplotlib's; what
# everybody who reads it has to find in it.
EXAMPLES = {
    PAGERANK: ({"top": 3}, 3, 1, "none in 12 digits"),
    COMMUNITIES: ({}, 2, 2, "communities of three or more"),
    TAXI: ({"num_trips": 20_000}, 1, 1, "Who pays by card tips"),
    LOAD_BALANCING: ({}, 3, 3, "the ranks are the same to the last bit: True"),
    NOTHING_TWICE: ({"num_stations": 60}, 4, 1, "values above 25 degrees"),
    NUMPY_WORDS: ({"num_trips": 20_000}, 4, 2, "more rows than I have fingers"),
    RECOMMENDER: ({}, 2, 1, "if all were guessed as the mean"),
    TOPICS: ({"num_documents": 6_000, "batch_size": 500}, 1, 1, "kitchen"),
    FROM_DATAFRAMES: ({"num_rentals": 20_000}, 1, 1, "for each kilometre"),
    PRESTO: ({"num_pages": 2_000}, 1, 1, "The factors have the same bits in both dialects: <strong>True"),
    NESTED: ({"num_trips": 10_000}, 8, 1, "an empty segment is a segment, too"),
}
PLACEHOLDERS = (
    "Loading widget",
    "widget-view",
    "VBox(",
    "HBox(",
    "HTML(value=",
    "IntSlider(",
    "<script",
    "https://",
    "http://",
    "Error displaying",
    "Traceback",
)
MOST_LINES = 25  # of a cell
_ADDRESS_OF_SVG = re.compile(r'xmlns(:\w+)?="http://www\.w3\.org/[^"]+"')


class Runs:
    """An example, run by each tool when that is asked for; every run has a hash seed of its own."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.given, *self.num_pictures, self.telling = EXAMPLES[path]
        self.name, self.folder = path.name, folder
        book = nbformat.read(path, as_version=4)
        place = next(i for i, cell in enumerate(book.cells) if "parameters" in cell.metadata.get("tags", []))
        lines = "\n".join(f"{name} = {value!r}" for name, value in self.given.items())
        book.cells[place].source += f"\n{lines}"
        for number, cell in enumerate(book.cells):
            cell["id"] = f"cell-{number}"  # as in a report
        nbformat.write(book, folder / path.name)
        trace = path.with_suffix(".trace.json")
        if trace.exists():
            shutil.copy(trace, folder)

    @cached_property
    def page(self) -> str:
        """Return a report, which was printed, too."""
        assert main(["report", self.name, "-o", "one.html", "--pdf"]) == 0
        return (self.folder / "one.html").read_text()

    @cached_property
    def converted(self) -> list[nbformat.NotebookNode]:
        """As nbconvert executes it, with the state of widgets stored and without."""
        books = []
        for number in range(2):
            stores = f"--ExecutePreprocessor.store_widget_state={number == 0}"
            command = [sys.executable, "-m", "nbconvert", "--execute", "--to", "notebook", stores]
            subprocess.run(
                [*command, "--output", f"done{number}.ipynb", self.name],
                check=True,
                capture_output=True,
                env={**os.environ, "PYTHONHASHSEED": str(number)},
            )
            books.append(nbformat.read(self.folder / f"done{number}.ipynb", as_version=4))
        return books

    @cached_property
    def milled(self) -> nbformat.NotebookNode:
        """As papermill executes it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONHASHSEED", "10")
            papermill.execute_notebook(self.name, "mill.ipynb", kernel_name="python3", progress_bar=False)
        return nbformat.read("mill.ipynb", as_version=4)


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda path: path.stem)
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(request.param, tmp_path_factory.mktemp(request.param.stem))


@pytest.fixture(autouse=True)
def _in_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "runs" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("runs").folder)
        monkeypatch.delenv("MATNB_REBALANCE", raising=False)
        monkeypatch.setenv("PYTHONPATH", str(PROJECT))


def told_in(text: str) -> list[str]:
    """Return what a page that is whole does not tell."""
    text = _ADDRESS_OF_SVG.sub("", text)  # names a language, and is never fetched
    return [word for word in PLACEHOLDERS if word in text]


def check_whole(page: str, runs: Runs) -> None:
    assert told_in(page) == []
    assert outside_loads(page) == []
    num_ours, num_figures = runs.num_pictures
    assert page.count("<svg") >= num_ours
    assert page.count('src="data:image/png;base64,') == num_figures
    assert runs.telling in page


def outputs_of(book: nbformat.NotebookNode) -> list[list[dict[str, object]]]:
    """Return what each code cell shows, without what is only noted beside it, such as seconds."""
    settle(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    noted = ("execution_count", "metadata")
    return [[{key: one[key] for key in one if key not in noted} for one in cell.outputs] for cell in code]


@pytest.mark.slow
def test_a_report_is_whole_and_printed(runs: Runs) -> None:
    check_whole(runs.page, runs)
    printed = (runs.folder / "one.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert printed.rstrip().endswith(b"%%EOF")
    assert len(printed) > 50_000
    assert len(re.findall(rb"/Type ?/Page\b", printed)) >= 2


@pytest.mark.slow
def test_nbconvert_gives_the_outputs_of_the_report_with_widget_state_and_without(runs: Runs) -> None:
    for book in runs.converted:
        assert "widgets" not in book.metadata
        kinds = {
            kind for cell in book.cells for one in cell.get("outputs", []) for kind in one.get("data", {})
        }
        assert not [kind for kind in kinds if "widget" in kind or "javascript" in kind]
        assert told_in(repr([cell.get("outputs") for cell in book.cells])) == []
    told = [outputs_of(book) for book in runs.converted]
    assert told[0] == told[1]
    page = page_of(runs.converted[0], Path(runs.name))
    check_whole(page, runs)
    assert page == runs.page  # to the byte, from another process


@pytest.mark.slow
def test_papermill_gives_the_outputs_of_nbconvert(runs: Runs) -> None:
    assert "widgets" not in runs.milled.metadata
    assert told_in(repr([cell.get("outputs") for cell in runs.milled.cells])) == []
    assert outputs_of(runs.milled) == outputs_of(runs.converted[0])


@pytest.mark.slow
def test_it_leaves_no_file_behind_that_it_made_up(runs: Runs) -> None:
    assert runs.page
    assert not list(runs.folder.glob("made_up*"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_stored_without_outputs_and_begins_with_a_title(path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert book.cells[0].source.startswith("# ")
    assert len({cell.id for cell in book.cells}) == len(book.cells)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    assert max(len(cell.source.splitlines()) for cell in code) <= MOST_LINES
    assert max(len(line) for cell in code for line in cell.source.splitlines()) <= 120


def test_every_example_is_run_here() -> None:
    assert sorted(EXAMPLES) == sorted((PROJECT / "example_notebooks").glob("*.ipynb"))
