"""Tables given to libraries that draw frames: seaborn, Altair and Plotly see the columns of pandas' frame."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import matnb as mn
from matnb.errors import TooLargeError

ROWS = 200


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    draws = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "fare": draws.exponential(9, ROWS).round(2),
            "tip": np.where(draws.random(ROWS) < 0.1, np.nan, draws.random(ROWS)),
            "zone": draws.choice(["Köln", "SoHo", "Astoria"], ROWS),
            "pickup": pd.Timestamp("2024-01-01") + pd.to_timedelta(draws.integers(0, 10**6, ROWS), unit="s"),
        }
    )


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> Iterator[mn.Table]:
    with mn.start(processes=False):
        yield mn.table(frame)


def test_seaborn_draws_correlations_and_pivots(table: mn.Table, frame: pd.DataFrame) -> None:
    seaborn = pytest.importorskip("seaborn")
    t, frame = table.with_columns(k=np.arange(ROWS) % 3), frame.assign(k=np.arange(ROWS) % 3)
    pivot = frame.pivot_table("fare", "zone", "k", "sum", fill_value=0.0)
    for found, expected in (
        (t.corr(numeric_only=True).to_pandas().set_index("column"), frame.corr(numeric_only=True)),
        (t.pivot("zone", "k", "fare").to_pandas(), pivot),
    ):
        axes = Figure().subplots()
        seaborn.heatmap(found, ax=axes, cbar=False)
        np.testing.assert_allclose(axes.collections[0].get_array(), expected.to_numpy())
        assert [one.get_text() for one in axes.get_yticklabels()] == [*map(str, expected.index)]
        assert [one.get_text() for one in axes.get_xticklabels()] == [*map(str, expected.columns)]


@pytest.mark.filterwarnings("ignore:vert")  # of seaborn's own call
def test_seaborn_draws_columns_by_name(table: mn.Table, frame: pd.DataFrame) -> None:
    seaborn = pytest.importorskip("seaborn")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn = []
    for data in (table, frame):
        _, axes = pyplot.subplots()
        seaborn.scatterplot(data=data, x="fare", y="tip", hue="zone", ax=axes)
        drawn.append(axes.collections[0].get_offsets())
        pyplot.close("all")
    np.testing.assert_array_equal(*drawn)
    for kind, y in (("boxplot", "tip"), ("barplot", "fare"), ("lineplot", "fare")):
        getattr(seaborn, kind)(data=table, x="zone", y=y)
        pyplot.close("all")
    seaborn.histplot(table, x="pickup")
    pyplot.close("all")


def test_seaborn_fits_a_line_to_arrays(table: mn.Table) -> None:
    seaborn = pytest.importorskip("seaborn")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    seaborn.regplot(x=table["fare"], y=table["fare"] * 2, n_boot=5)
    (line,) = pyplot.gca().lines
    np.testing.assert_allclose(line.get_ydata(), 2 * line.get_xdata())
    pyplot.close("all")


def test_altair_infers_types_and_holds_the_rows(table: mn.Table, frame: pd.DataFrame) -> None:
    altair = pytest.importorskip("altair")

    def told(data: object) -> dict[str, object]:
        return altair.Chart(data).mark_point().encode(x="fare", y="pickup", color="zone").to_dict()

    ours, theirs = told(table), told(frame)
    assert ours["encoding"] == theirs["encoding"]
    (rows,), (others,) = ours["datasets"].values(), theirs["datasets"].values()
    assert [(one["fare"], one["zone"]) for one in rows] == [(one["fare"], one["zone"]) for one in others]


def test_plotly_draws_columns_by_name(table: mn.Table, frame: pd.DataFrame) -> None:
    express = pytest.importorskip("plotly.express")
    drawn = [express.scatter(data, x="fare", y="tip", color="zone") for data in (table, frame)]
    assert [one.name for one in drawn[0].data] == [one.name for one in drawn[1].data]
    for ours, theirs in zip(drawn[0].data, drawn[1].data, strict=True):
        np.testing.assert_array_equal(np.asarray(ours.x, float), np.asarray(theirs.x, float))
        np.testing.assert_array_equal(np.asarray(ours.y, float), np.asarray(theirs.y, float))


def test_hvplot_is_told_the_way(table: mn.Table) -> None:
    with pytest.raises(AttributeError, match=r"to_pandas\(\)\.hvplot"):
        table.hvplot  # noqa: B018  the error is what is looked at


def test_frames_stay_within_the_compute_limit(frame: pd.DataFrame) -> None:
    with mn.start(processes=False, compute_limit="1kB"):
        table = mn.table(frame)
        for ask in (table.__dataframe__, table.__arrow_c_stream__, table.__narwhals_dataframe__):
            with pytest.raises(TooLargeError):
                ask()
