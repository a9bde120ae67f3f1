"""Work in the background in JupyterLab: its line says by itself that it has ended, and is kept."""

from __future__ import annotations

import pytest
from lab import Lab, OpenNotebook
from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = "%load_ext matnb\nimport matnb as mn\nmn.start(workers=1, threads=1)\nstep = lambda x: x * 1.0001 + 1"
LATER = "%%distmat --nowait --out {0}\nx = mn.iterate(step, mn.ones(50) * {1}, max_iterations={2})[0]"


def test_the_line_changes_when_the_work_ends_and_is_there_without_a_kernel(
    lab: Lab, window: BrowserContext
) -> None:
    lab.write(
        "later.ipynb",
        SETUP,
        LATER.format("first", 1, 5000) + "\n",
        "first",
        LATER.format("second", 2, 10**8),
        "second",
        "second.cancel()",
        "1 + 1",
    )
    with OpenNotebook(lab, window, "later.ipynb") as page:
        for place in range(5):
            page.run_to_end(place)
        page.wait_until(lambda: "done in " in page.text(2), 60)
        page.wait_until(lambda: "running in the background: 1 result, x" in page.text(4), 20)
        page.run_to_end(5)
        page.wait_until(lambda: "cancelled after " in page.text(4), 20)
        page.run_to_end(6)
        texts = [page.text(2), page.text(4)]
        book = page.save()
        assert all(len(book.cells[place].outputs) == 1 for place in (2, 4))
        assert [output for cell in book.cells for output in cell.outputs if output.get("name")] == []
        assert page.errors == []
    lab.end_kernels()
    with OpenNotebook(lab, window, "later.ipynb") as page:
        assert [page.text(2), page.text(4)] == texts
        assert page.errors == []
    lab.end_kernels()
