"""The pictures of the README, photographed in chromium: reports, a run, and a simulated cluster."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from IPython.core.interactiveshell import InteractiveShell
from playwright.sync_api import sync_playwright

import matnb as mn
from matnb.cli import main as matnb
from matnb.cli.page import find_browser

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "example_notebooks"


class Picture(NamedTuple):
    """One part of a report.

    Attributes
    ----------
    notebook
        Its name without the ending.
    cell
        What is in the code cell that is shown with its outputs, as a regular expression.
    """

    notebook: str
    cell: str


PICTURES = {
    "cell": Picture("01_pagerank", r"share = damping"),
    "communities": Picture("02_communities", r"order = np\.lexsort"),
    "figure_13": Picture("04_load_balancing", r"colors = \[blue, orange\]"),
}
OUTPUTS_ALONE = {"communities", "figure_13"}
ALIKE = {"communities", "figure_13"}  # Matplotlib's have a white ground in both themes

# A report repeats recorded decisions and shows no seconds, so the history comes from cells that run here.
MEASURED_CELLS = [
    """
A = mn.random.rmat(scale=18, seed=1, blocks=8)
A.persist()
""",
    """
x, steps = mn.iterate(lambda x: 1e-3 * (A @ x) + 0.1, mn.ones(A.shape[0]), max_iterations=400)
x
""",
]
PAGE = """<!doctype html><meta name="color-scheme" content="light dark">
<style>
body { margin: 0; padding: 12px; font: 14px system-ui, sans-serif; background: #fff; color: #111; }
@media (prefers-color-scheme: dark) { body { background: #111; color: #e6e6e6; } }
</style>
"""


def main() -> int:
    """Run the notebooks and write the pictures beside this file, or into another folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=HERE, help="where the pictures go")
    folder: Path = parser.parse_args().folder.resolve()
    browser = find_browser()
    with tempfile.TemporaryDirectory() as reports, sync_playwright() as playwright:
        os.chdir(reports)
        for notebook in sorted({one.notebook for one in PICTURES.values()}):
            if matnb(["report", str(EXAMPLES / f"{notebook}.ipynb"), "-o", f"{notebook}.html"]):
                return 1
        Path("history.html").write_text(measured_history(), encoding="utf-8")
        Path("simulation.html").write_text(simulated_step(), encoding="utf-8")
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = playwright.chromium.launch(executable_path=browser, args=sandbox)
        for theme in ("light", "dark"):
            context = chromium.new_context(
                color_scheme=theme,
                offline=True,
                viewport={"width": 860, "height": 900},
                device_scale_factor=1.5,
            )
            for name, picture in PICTURES.items():
                if theme == "dark" and name in ALIKE:
                    continue
                tab = context.new_page()
                tab.goto(Path(reports, f"{picture.notebook}.html").as_uri())
                code = tab.locator(".jp-InputArea", has_text=re.compile(picture.cell))
                cell = tab.locator(".jp-CodeCell", has=code).first
                if name in OUTPUTS_ALONE:
                    cell = cell.locator(".jp-Cell-outputWrapper")
                cell.screenshot(path=folder / f"{name}_{theme}.png")
                tab.close()
            for name in ("history", "simulation"):
                tab = context.new_page()
                tab.goto(Path(reports, f"{name}.html").as_uri())
                tab.locator("body").screenshot(path=folder / f"{name}_{theme}.png")
        chromium.close()
        os.chdir(HERE)  # IPython looks at the folder when it ends
    return 0


def measured_history() -> str:
    """Return a page with the history of a loop that runs here, in two processes, by measured times."""
    shell = InteractiveShell.instance()
    shell.push({"mn": mn})
    shell.run_line_magic("load_ext", "matnb")
    with mn.start(workers=2, processes=True):
        for cell in MEASURED_CELLS:
            shell.run_cell(f"%%distmat{cell}").raise_error()
        return PAGE + mn.history().bundle(measured=True)["text/html"]


def simulated_step() -> str:
    """Return a page with a Newton step of logistic regression, as sixteen machines would take it."""
    X = mn.random.default_rng(0).random((2**26, 256))
    y, w = mn.random.default_rng(1).random(2**26), mn.zeros(256)
    p = 1 / (1 + np.exp(-(X @ w)))
    step = mn.concatenate([X.T @ (X * (p * (1 - p))[:, None]), (X.T @ (p - y))[:, None]], axis=1)
    cluster = mn.Cluster(nodes=16, workers=32, memory="512GB", bandwidth="20Gbps", latency="50us")
    with mn.start():
        return PAGE + mn.simulate(step, cluster=cluster)._repr_mimebundle_()["text/html"]


if __name__ == "__main__":
    sys.exit(main())
