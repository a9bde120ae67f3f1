"""Values in JupyterLab: each repr shows what there is, a table its rows, and Tab completes columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lab import Lab, OpenNotebook
from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SETUP = """
import numpy as np
import scipy.sparse as sp
import matnb as mn
mn.start(workers=2, threads=1)
X = mn.asarray(np.arange(4000.0).reshape(200, 20) / 7, blocks=(4, 1)).persist()
S = mn.asarray(sp.random_array((300, 300), density=0.02, rng=0, format="csr"), blocks=(2, 2)).persist()
days = np.datetime64("2024-02-28") + np.arange(30)
t = mn.table({"zone": [f"Zone {i % 7}" for i in range(30)], "day": days, "fare": np.arange(30) / 4})
"""
CELLS = ("X", "S", "mn.ones((20_000, 300)) + 1", "X.sum().persist()", "t", 't["zone"].value_counts()')


def test_values_are_seen_in_light_and_dark_and_without_a_kernel(
    lab: Lab, window: BrowserContext, tmp_path: Path
) -> None:
    lab.write("reprs.ipynb", SETUP, *CELLS)
    with OpenNotebook(lab, window, "reprs.ipynb") as page:
        for place in range(len(CELLS) + 1):
            page.run_to_end(place)
        dense, sparse, waiting, scalar, table, counts = (page.text(place) for place in range(1, 7))
        assert dense.partition("\n")[2].startswith("[[0.")  # below the prompt
        assert " ... " in dense
        assert "worker 0" in dense
        assert "worker 1" in dense
        assert re.search(r"200 \S 20\b", dense)
        assert sparse.partition("\n")[2].startswith("(0, ")
        assert "nnz\t1,800" in sparse
        assert "not computed; run it in a %%distmat cell or call .compute()" in waiting
        assert "1142571.42" in scalar
        assert page.output(5).locator("thead th").all_inner_texts()[:3] == ["zone", "day", "fare"]
        assert "2024-02-28" in table
        assert "30 rows x 3 columns" in table
        assert "Zone 0" in counts
        page.photograph(tmp_path / "light.png", *range(1, 7))
        page.save()
        assert page.errors == []
    lab.end_kernels()
    with OpenNotebook(lab, window, "reprs.ipynb", dark=True) as page:
        assert [page.text(place) for place in range(1, 7)] == [dense, sparse, waiting, scalar, table, counts]
        page.photograph(tmp_path / "dark.png", *range(1, 7))
        assert page.errors == []
    lab.end_kernels()


def test_tab_completes_the_columns_of_a_table_and_the_functions_of_a_room(
    lab: Lab, window: BrowserContext
) -> None:
    lab.write("completion.ipynb", SETUP, "1 + 1", "1 + 1")
    with OpenNotebook(lab, window, "completion.ipynb") as page:
        page.run_to_end(0)
        items = page.page.locator(".jp-Completer-item")
        for place, text, wanted in (
            (1, 't["', {"zone", "day", "fare"}),
            (2, "mn.graph.b", {"bfs", "betweenness"}),
        ):
            page.cell(place).locator(".cm-content").click()
            page.page.keyboard.press("Control+A")
            page.page.keyboard.type(text)
            page.page.keyboard.press("Tab")
            items.first.wait_for()
            # each with the sign of its kind
            found = {word.strip("\"'") for one in items.all_inner_texts() for word in one.split("\n")}
            assert wanted <= found
            page.page.keyboard.press("Escape")
        assert page.errors == []
    lab.end_kernels()
