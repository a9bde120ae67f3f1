"""05_nothing_twice counts what it tells of, gives NumPy's numbers, and has the same report every time."""

from __future__ import annotations

from html import unescape
from pathlib import Path

import nbformat
import numpy as np
import pytest
from kernels import NOTHING_TWICE, with_parameters

from matnb.cli import main
from matnb.cli.page import outside_loads

pytestmark = pytest.mark.notebook

SAVED = """
values = dict(
    T=T, low=low, high=high, mean=mean, spread=spread, shown=shown, before=before, after=after,
    num_hot=hot.size, mean_hot=mean_hot, pattern=pattern, product=product,
)
np.savez(values_path, **{name: np.asarray(value) for name, value in values.items()})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two reports of the notebook, and the values of its names."""
    folder = tmp_path_factory.mktemp("nothing_twice")
    given = f"num_stations = 60\nvalues_path = {str(folder / 'values.npz')!r}"
    nbformat.write(with_parameters(NOTHING_TWICE, given, SAVED), folder / "few.ipynb")
    for page in ("one.html", "two.html"):
        assert main(["report", str(folder / "few.ipynb"), "-o", str(folder / page)]) == 0
    return folder


@pytest.mark.slow
def test_two_reports_are_byte_identical_and_whole(folder: Path) -> None:
    text = (folder / "one.html").read_text()
    assert (folder / "two.html").read_bytes() == text.encode()
    assert outside_loads(text) == []
    assert "<script" not in text
    assert "Traceback" not in text
    assert text.count('src="data:image/png;base64,') == 1


@pytest.mark.slow
def test_it_counts_what_it_tells_of(folder: Path) -> None:
    lines = unescape((folder / "one.html").read_text().replace("<", "\n<").replace(">", ">\n")).splitlines()
    _, common, one_pass, again, _, loop = (line for line in lines if " operations recorded" in line)
    assert common.startswith("3 operations recorded (1 merged with equal ones); 2 operations run in ")
    assert "; 1 array made; " in common
    assert one_pass.startswith("5 operations recorded (1 merged with equal ones); ")
    assert "; 0 arrays made; " in one_pass
    assert again == (
        "4 operations recorded; 0 operations run in 0 tasks; 0 arrays made; 4 results reused; "
        "0 B moved between workers; memory: 0 B projected"
    )
    assert "(29 merged with equal ones)" in loop
    assert any(line.startswith("loop: 30 iterations of a program of ") for line in lines)
    assert any("reduce min max sum deviation" in one and "4 reductions in one pass" in one for one in lines)
    pictures = [
        place for place, line in enumerate(lines) if line in ("what was recorded", "expressions after chains")
    ]
    recorded, ordered = (lines[place:] for place in pictures)
    end = ordered.index("A loop that is one expression")
    assert "(365, 365) float64" in recorded[: pictures[1] - pictures[0]]
    assert "(365, 365) float64" not in ordered[:end]
    assert {"T", "doubled", "low, lowest", "spread", "pattern"} <= set(lines)


@pytest.mark.slow
def test_it_computes_what_numpy_does(folder: Path) -> None:
    found = np.load(folder / "values.npz")
    T = found["T"]
    shown = np.maximum(T, -10.0)
    shown[:, ::7] += 0.5
    shown[0] = shown[0].mean()
    np.testing.assert_allclose(found["shown"], shown, rtol=1e-12)
    for name, wanted in {
        "low": T.min(), "high": T.max(), "mean": T.mean(), "spread": T.std(), "before": T[:, :7].min(),
        "after": shown[:, :7].min(), "num_hot": (shown > 25).sum(), "mean_hot": shown[shown > 25].mean(),
    }.items():  # fmt: skip
        assert found[name] == pytest.approx(wanted), name
    anomaly = T - T.mean(axis=1, keepdims=True)
    _, _, courses = np.linalg.svd(anomaly)
    np.testing.assert_allclose(abs(found["pattern"]), abs(courses[0]), atol=1e-9)
    np.testing.assert_allclose(found["product"], anomaly.T @ anomaly @ np.ones(365), atol=1e-8)


def test_it_is_committed_without_outputs() -> None:
    book = nbformat.read(NOTHING_TWICE, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
