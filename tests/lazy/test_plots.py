"""Pictures by matplotlib have the numbers of SciPy and NumPy, for any cuts."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from pictures.test_history import COUNTED, KEPT, REPARTITIONED, facts

import matnb as mn
from matnb.errors import DTypeError, ShapeError
from matnb.pictures.imbalance import imbalance
from matnb.pictures.plots import draw_history

pytestmark = pytest.mark.session("two workers")
RANDOM = np.random.default_rng(0)
MATRIX = sp.random_array((1000, 300), density=0.01, format="csr", rng=2)
SERIES = RANDOM.normal(size=(30_011, 2))


def density(ax):
    return ax.images[0].get_array().filled(0)


def expected_density(matrix, cells=(256, 256)):
    rows, columns = matrix.nonzero() if not sp.issparse(matrix) else matrix.tocoo().coords
    cells = tuple(map(min, cells, matrix.shape))
    places = rows.astype(int) * cells[0] // matrix.shape[0], columns.astype(int) * cells[1] // matrix.shape[1]
    counts, areas = np.zeros(cells), np.zeros(cells)
    np.add.at(counts, places, 1)
    sizes = [np.bincount(np.arange(n) * c // n) for n, c in zip(matrix.shape, cells, strict=True)]
    areas = np.outer(*sizes)
    return counts / areas


@given(st.lists(st.integers(1, 999), max_size=8, unique=True).map(sorted))
def test_spy_has_scipys_counts_for_any_cuts(cuts):
    A = mn.asarray(MATRIX, blocks=([0, *cuts, 1000], 2))
    assert (density(mn.spy(A, ax=Figure().subplots())) == expected_density(MATRIX)).all()


def test_parts_of_rows_are_put_together():
    tall = sp.random_array((600_000, 30), density=0.02, format="csr", rng=3)
    found = density(mn.spy(mn.asarray(tall, blocks=3), ax=Figure().subplots()))
    assert (found == expected_density(tall)).all()
    long = RANDOM.normal(size=1_000_000)
    drawn = mn.plot(mn.asarray(long, blocks=3), ax=Figure().subplots()).lines[0].get_ydata()
    assert (
        drawn == np.stack([one(long.reshape(2000, 500), axis=1) for one in (np.min, np.max)], 1).ravel()
    ).all()


def test_spy_of_small_dense_and_empty_matrices():
    dense = np.array([[0.0, -1.0, np.nan], [0.0, 0.0, 2.0]])
    ax = Figure().subplots()
    assert mn.spy(dense, ax=ax) is ax
    np.testing.assert_array_equal(density(ax), [[0, 1, 1], [0, 0, 1]])
    assert ax.images[0].get_extent() == [-0.5, 2.5, 1.5, -0.5]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # rows go down
    stored = sp.csr_array((np.array([0.0, 3.0]), ([0, 1], [0, 1])), shape=(2, 2))  # a zero that is stored
    np.testing.assert_array_equal(density(mn.spy(stored, ax=Figure().subplots())), np.eye(2))
    figure = Figure()
    assert not density(mn.spy(sp.csr_array((5, 6)), ax=figure.subplots())).any()
    figure.savefig("/dev/null", format="svg")
    for wrong in (np.ones(3), np.ones((2, 0))):
        with pytest.raises(ShapeError, match="spy"):
            mn.spy(wrong)


def test_entries_stay_on_the_workers(session):
    A = mn.asarray(sp.random_array((20_000, 20_000), density=1e-3, format="csr", rng=0), blocks=4)
    fetched = []
    with pytest.MonkeyPatch.context() as patch:
        gather = session._engine.blocks.gather
        patch.setattr(session._engine.blocks, "gather", lambda *one: fetched.append(one) or gather(*one))
        ax = mn.spy(A, ax=Figure().subplots())
    assert sum(getattr(one[0][0], "nbytes", 0) for one in fetched) <= 256 * 256 * 8
    assert density(ax).sum() > 0


@given(st.lists(st.integers(1, 30_010), max_size=6, unique=True).map(sorted), st.booleans())
def test_plot_has_the_least_and_greatest_of_each_pixel_for_any_cuts(cuts, is_one):
    values = SERIES[:, 0] if is_one else SERIES
    blocks = [[0, *cuts, 30_011], *([None] if values.ndim > 1 else [])]
    ax = mn.plot(mn.asarray(values, blocks=blocks), ax=Figure().subplots())
    lines = [values] if is_one else values.T
    assert len(ax.lines) == len(lines)
    pixels = np.arange(30_011) * 2000 // 30_011
    first = np.flatnonzero(np.diff(pixels, prepend=-1))
    for line, one in zip(ax.lines, lines, strict=True):
        drawn = line.get_ydata()
        assert (drawn[::2] == np.minimum.reduceat(one, first)).all()
        assert (drawn[1::2] == np.maximum.reduceat(one, first)).all()
        assert (line.get_xdata()[::2] == first).all()
        assert line.get_xdata()[-1] == 30_010


def test_plot_of_short_series_integers_and_nan():
    ax = mn.plot([3, 1, 2], ax=Figure().subplots())
    assert ax.lines[0].get_ydata().tolist() == [3, 1, 2]
    long = np.arange(8000)
    drawn = mn.plot(long, ax=Figure().subplots()).lines[0].get_ydata()
    assert (drawn == np.stack([long[::4], long[3::4]], 1).ravel()).all()
    holes = np.where(np.arange(8000) < 4, np.nan, 1.0)
    holes[5] = np.nan
    drawn = mn.plot(holes, ax=Figure().subplots()).lines[0].get_ydata()
    assert np.isnan(drawn).tolist() == [True, True] + [False] * 3998
    with pytest.raises(DTypeError, match="abs"):
        mn.plot(np.ones(3) * 1j)
    with pytest.raises(ShapeError, match="plot"):
        mn.plot(np.ones((2, 2, 2)))


def test_history_has_a_place_for_each_repartition():
    found = facts(COUNTED, KEPT, REPARTITIONED)
    figure = Figure()
    ax = draw_history(figure.subplots(), found)
    before, predicted, measured = (line.get_ydata().tolist() for line in ax.lines)
    shown = (COUNTED, REPARTITIONED)
    assert before == [imbalance(dict(one.before.loads)) for one in shown]
    assert predicted == [imbalance(dict(one.after.loads)) for one in shown]
    assert measured == [imbalance(dict(one.gained.loads)) for one in shown]
    assert [one.get_text() for one in ax.get_xticklabels()] == ["A, start", "A, x, iteration 12"]
    figure.savefig("/dev/null", format="svg")
    empty = mn.history().plot(ax=Figure().subplots())
    assert "no repartition" in empty.get_title()


def test_matplotlib_is_imported_when_something_is_drawn_alone():
    code = "import sys, matnb as mn; mn.history; mn.spy; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
