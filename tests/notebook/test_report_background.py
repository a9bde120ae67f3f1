"""A report waits for work in the background, and fails with it where nobody asked for its result."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from kernels import book_of

from matnb.cli import main

pytestmark = pytest.mark.notebook

SETUP = "%load_ext matnb\nimport matnb as mn, numpy as np, os, time\nz = np.array([[1.0, 2], [2, 4]])"
FAILS = "%%distmat --nowait --out job\nw = np.linalg.inv(mn.asarray(z))\nw"
ASKS = "try:\n    job.result()\nexcept np.linalg.LinAlgError:\n    print('seen')"
WORKS = """%%distmat --nowait --out job
x, n = mn.iterate(lambda x: x * 0.5 + 1, mn.ones(50), max_iterations=3000)
x"""


def report(folder: Path, *cells: str) -> int:
    nbformat.write(book_of(*cells), folder / "book.ipynb")
    return main(["report", str(folder / "book.ipynb"), "-o", str(folder / "page.html")])


def test_what_failed_unseen_fails_the_report_which_names_its_cell(tmp_path, capsys):
    assert report(tmp_path, SETUP, "", FAILS, "1 + 1") == 1
    told = capsys.readouterr().err
    assert "SingularError in Cell In[2], line 2\n" in told
    assert told.endswith("the background work of cell 2 of 3 failed; nothing was written\n")
    assert not (tmp_path / "page.html").exists()


def test_what_was_asked_for_fails_it_not(tmp_path):
    assert report(tmp_path, SETUP, FAILS, ASKS) == 0
    assert "seen" in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_the_page_does_not_depend_on_the_time(tmp_path):
    pages = []
    for seconds in (0, 1):
        sleeps = "time.sleep(float(os.environ['TEST_SECONDS']))"
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TEST_SECONDS", str(seconds))
            assert report(tmp_path, SETUP, WORKS, sleeps, "%distmat status", "mn.monitor()", "job") == 0
        pages.append((tmp_path / "page.html").read_bytes())
        assert b"done: 2 results, x, n<" in pages[-1]
    assert pages[0] == pages[1]
    assert b" kept, " in pages[0]
