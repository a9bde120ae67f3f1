"""06_numpy_words gives what NumPy and pandas do, and its report is whole."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from kernels import NUMPY_WORDS, with_parameters

from matnb.cli import main
from matnb.cli.page import outside_loads

pytestmark = pytest.mark.notebook

SAVED = """
values = dict(
    keys=by_hour.keys, trips=trips_by_hour, fare=fare_by_hour, share=share_by_hour, top_fares=top_fares,
    median=median, ninetieth=ninetieth, counts=counts, table=table, A=A.to_scipy().toarray(), popular=popular,
    among=among.to_scipy().toarray(), spread=spread,
)
np.savez(values_path, **{name: np.asarray(value) for name, value in values.items()})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a report of the notebook, its table, and the values of its names."""
    folder = tmp_path_factory.mktemp("numpy_words")
    given = f"num_trips = 20_000\nvalues_path = {str(folder / 'values.npz')!r}"
    book = with_parameters(NUMPY_WORDS, given, SAVED)
    place = next(i for i, cell in enumerate(book.cells) if cell.source == "Path(path).unlink()")
    copy = f"import shutil\nshutil.copy(path, {str(folder / 'trips.csv')!r})"
    book.cells.insert(place, nbformat.v4.new_code_cell(copy))
    nbformat.write(book, folder / "few.ipynb")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # where it makes up its table
        assert main(["report", "few.ipynb", "-o", "page.html"]) == 0
    return folder


@pytest.mark.slow
def test_the_report_is_whole(folder: Path) -> None:
    text = (folder / "page.html").read_text()
    assert outside_loads(text) == []
    assert text.count('src="data:image/png;base64,') == 2
    shown = unescape(text)
    heads = re.search(r"<thead>.*?</thead>", text, re.DOTALL)
    assert re.findall(r">(\w+)<", heads[0])[:5] == ["hour", "start", "end", "fare", "tip"]
    assert "wrong raised ValueError: more rows than I have fingers" in shown
    assert text.count("Traceback") == 0


@pytest.mark.slow
def test_it_computes_what_numpy_and_pandas_do(folder: Path) -> None:
    found = np.load(folder / "values.npz")
    trips = pd.read_csv(folder / "trips.csv")
    trips = trips[(trips.fare > 0) & trips.tip.notna()]
    hours = trips.assign(share=trips.tip / trips.fare).groupby("hour")
    np.testing.assert_array_equal(found["keys"], sorted(set(trips.hour)))
    np.testing.assert_array_equal(found["trips"], hours.size())
    np.testing.assert_allclose(found["fare"], hours.fare.mean(), rtol=1e-12)
    np.testing.assert_allclose(found["share"], hours.share.mean(), rtol=1e-12)
    np.testing.assert_array_equal(found["top_fares"], np.sort(trips.fare)[::-1][:5])
    assert [found["median"], found["ninetieth"]] == pytest.approx(
        np.quantile(trips.fare, [0.5, 0.9]).tolist()
    )
    np.testing.assert_array_equal(found["counts"], np.histogram(trips.fare, bins=80, range=(0, 40))[0])
    table = np.zeros((200, 24))
    np.add.at(table, (trips.start, trips.hour), 1)
    np.testing.assert_array_equal(found["table"], table)
    pairs = np.zeros((200, 200))
    np.add.at(pairs, (trips.start, trips.end), 1)
    pairs[np.arange(200), np.arange(200)] = 0
    pairs[pairs < 5] = 0
    np.testing.assert_array_equal(found["A"], pairs)
    popular = np.argsort(pairs.sum(axis=1))[::-1][:10]
    np.testing.assert_array_equal(pairs.sum(axis=1)[found["popular"]], pairs.sum(axis=1)[popular])
    np.testing.assert_array_equal(found["among"], pairs[found["popular"]][:, found["popular"]])
    with np.errstate(invalid="ignore"):  # a zone where no trip starts, if few are made
        shares = table / table.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        np.testing.assert_allclose(found["spread"], -np.nansum(shares * np.log2(shares), axis=1), atol=1e-12)


def test_it_is_committed_without_outputs() -> None:
    book = nbformat.read(NUMPY_WORDS, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
