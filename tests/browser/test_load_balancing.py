"""The notebook of load balancing as a user runs it in JupyterLab, and finds it again."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from kernels import PROJECT
from lab import Lab, OpenNotebook
from playwright.sync_api import BrowserContext

SHIPPED = PROJECT / "example_notebooks" / "04_load_balancing.ipynb"
pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
]


class Run:
    """The notebook, run to its end; the monitor's pictures that were seen meanwhile."""

    def __init__(self, page: OpenNotebook, place: int) -> None:
        self.page, self.monitor = page, place
        self.seen: set[str] = set()
        page.run_all()
        page.wait_until(lambda: not page.is_done, 20)
        page.wait_until(self._is_done, 180)

    def _is_done(self) -> bool:
        self.seen.add(" ".join(self.page.pictures(self.monitor)))
        return self.page.is_done


def place_of(path: Path, text: str) -> int:
    """Return which cell of code begins with some text."""
    cells = json.loads(path.read_text())["cells"]
    code = {place: "".join(cell["source"]) for place, cell in enumerate(cells) if cell["cell_type"] == "code"}
    return next(place for place, source in code.items() if source.startswith(text))


@pytest.fixture(scope="module")
def run(lab: Lab, window: BrowserContext) -> Iterator[Run]:
    """Run the notebook as it is shipped."""
    for path in SHIPPED.parent.glob("04_*"):
        shutil.copy(path, lab.notebooks)
    with OpenNotebook(lab, window, SHIPPED.name) as page:
        yield Run(page, place_of(page.path, "mn.monitor"))
    lab.end_kernels()


def test_the_monitor_changes_while_cells_run(run: Run) -> None:
    assert len(run.seen - {""}) >= 5


def test_every_cell_ends_without_an_error_in_the_page_or_the_notebook(run: Run) -> None:
    book = run.page.save()
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    assert [output.evalue for output in outputs if output.output_type == "error"] == []
    assert run.page.errors == []


def test_the_history_shows_the_cuts_before_and_after(run: Run) -> None:
    place = place_of(run.page.path, "mn.history()")
    assert "repartition" in run.page.text(place)
    assert len(run.page.pictures(place)) >= 1
    (output,) = (one for one in run.page.save().cells[place].outputs if one.data)  # a slider leaves nothing
    before = re.findall("^  before (.*)", output.data["text/plain"], re.MULTILINE)
    after = re.findall("^  after +(.*)", output.data["text/plain"], re.MULTILINE)
    assert len(before) >= 1
    assert after != before


def test_every_picture_is_there_when_it_is_opened_again_without_its_kernel(
    run: Run, window: BrowserContext, tmp_path: Path
) -> None:
    before = run.page.pictures()
    assert len(before) >= 6
    run.page.photograph(tmp_path / "light.png", *range(len(run.page.save().cells)))
    book = run.page.save()
    assert all(
        "widget-view" not in kind
        for cell in book.cells if cell.cell_type == "code"
        for output in cell.outputs
        for kind in output.get("data", {})
    )  # fmt: skip
    run.page.lab.end_kernels()
    with OpenNotebook(run.page.lab, window, SHIPPED.name, dark=True) as again:
        again.wait_until(lambda: again.pictures() == before, 20)
        again.photograph(tmp_path / "dark.png", *range(len(book.cells)))
        assert again.errors == []
