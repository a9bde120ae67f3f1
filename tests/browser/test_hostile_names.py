"""Names of files, columns and variables that were made to do harm: JupyterLab shows them and runs none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lab import Lab, OpenNotebook
from malicious_names import COLUMNS, HARM, LONG, QUOTED, RIGHT_TO_LEFT
from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CELLS = (
    "import matnb as mn\n%load_ext matnb\nmn.start(workers=2, threads=1);",
    f"t = mn.load({HARM + '.csv'!r}, columns={[*COLUMNS, LONG]!r})\nt",
    f"t[{COLUMNS[0]!r}]",
    "mn.monitor()",
    f"%%distmat\n{RIGHT_TO_LEFT} = t[{COLUMNS[0]!r}] + t[{COLUMNS[2]!r}]\n"
    f"{LONG} = {RIGHT_TO_LEFT} * 2\n{LONG}",
    f"%distmat explain {RIGHT_TO_LEFT}",
    "%distmat memo",
    f"mn.visualize({RIGHT_TO_LEFT})",
    f"A = mn.load({HARM + '.txt'!r}, kind='edges', blocks=2)\nA",
    f"%%distmat\n{RIGHT_TO_LEFT}2 = A @ A\n{RIGHT_TO_LEFT}2",
    "mn.history()",
    f"t[{HARM!r}]",
    f"mn.load({QUOTED + HARM!r})",
)
SUSPECTS = "script, img, iframe, object, [onload], [onerror], [onclick]"


@pytest.fixture(scope="module")
def page(
    lab: Lab, window: BrowserContext, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenNotebook]:
    """Run a notebook that shows such names, each cell, and open it again."""
    heads = ",".join('"' + name.replace('"', '""') + '"' for name in [*COLUMNS, LONG])
    rows = "".join(f"{i},{i + 1},{i + 2},{i + 3},{i + 4}\n" for i in range(6))
    (lab.notebooks / f"{HARM}.csv").write_text(f"{heads}\n{rows}", encoding="utf-8")
    (lab.notebooks / f"{HARM}.txt").write_text("1 2\n2 3\n3 1\n")
    lab.write("hostile.ipynb", *CELLS)
    with OpenNotebook(lab, window, "hostile.ipynb") as page:
        for place in range(len(CELLS)):
            page.run_to_end(place)
        yield page
    lab.end_kernels()


def test_they_are_shown_and_nothing_of_them_runs(page: OpenNotebook, tmp_path: Path) -> None:
    page.photograph(tmp_path / "hostile.png")
    texts = [page.text(place) for place in range(len(CELLS))]
    for name in [HARM, QUOTED, *COLUMNS, RIGHT_TO_LEFT]:
        assert any(name in text for text in texts), name
    assert any("x" * 40 in text for text in texts)
    assert page.page.evaluate("typeof window.harmed") == "undefined"
    assert page.page.locator(".jp-OutputArea-output").locator(SUSPECTS).count() == 0
    assert page.errors == []
    assert page.page.locator(".jp-Notebook").evaluate("one => one.scrollWidth <= one.clientWidth + 1")


def test_they_do_no_harm_when_the_notebook_is_opened_again(page: OpenNotebook, window: BrowserContext):
    page.save()
    pictures = page.pictures()
    assert len(pictures) > 3
    with OpenNotebook(page.lab, window, page.path.name, dark=True) as again:
        again.wait_until(lambda: again.pictures() == pictures, 20)
        assert again.page.evaluate("typeof window.harmed") == "undefined"
        assert again.page.locator(".jp-OutputArea-output").locator(SUSPECTS).count() == 0
        assert again.errors == []
