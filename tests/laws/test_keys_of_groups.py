"""Keys of groups are what pandas has in the index: computing with the whole table leaves them alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError
from matnb.tables.summaries import Record

pytestmark = pytest.mark.session("interpreter")

FRAME = pd.DataFrame(
    {
        "year": [2023, 2024, 2023, 2024, 2025, 2025],
        "month": [1, 1, 2, 2, 1, 1],
        "city": ["a", "b", "a", "a", "b", "b"],
        "eur": [100.0, -50.25, 50.0, None, 40.0, 40.0],
        "n": [1, 2, 3, 4, 5, 6],
    }
)
GROUPED: list[Callable[[Any], Any]] = [
    lambda t: t.groupby("year")[["eur", "n"]].sum(),
    lambda t: t.groupby(["year", "month"])[["n"]].sum(),
    lambda t: t.groupby("year")[["eur"]].agg("mean"),
    lambda t: t.groupby("city")[["eur", "n"]].mean(),
    lambda t: t.groupby("month")[["n"]].count(),
    lambda t: t.groupby("year")[["eur", "n"]].sum().sort_values("n", ascending=False),
    lambda t: t.groupby("year")[["eur", "n"]].sum().head(2),
    lambda t: t.groupby("year")[["eur", "n"]].sum().iloc[[1, 0]],
    lambda t: t.groupby("year")[["eur", "n"]].sum().assign(half=lambda g: g["n"] / 2),
    lambda t: t.groupby("year")[["eur", "n"]].sum().rename(columns={"eur": "euro"}),
    lambda t: t.groupby("year")[["eur", "n"]].sum().nlargest(2, "n"),
    lambda t: (lambda g: g[g["n"] > 4])(t.groupby("year")[["eur", "n"]].sum()),
]
COMPUTED: list[Callable[[Any], Any]] = [
    lambda g: g / 1000,
    lambda g: 100 * g + 1,
    lambda g: -g,
    lambda g: abs(g),
    lambda g: g.abs(),
    lambda g: g.round(1),
    lambda g: g > 5,
    lambda g: ~(g > 5),
    lambda g: g == 2,
    lambda g: g + g,
    lambda g: g.isna(),
    lambda g: g.notna(),
    lambda g: g.fillna(2023),
    lambda g: g.ffill(),
    lambda g: g.isin([2023, 4]),
    lambda g: g.clip(2, 100),
    lambda g: g.astype(float),
    lambda g: g.replace(2, 7),
    lambda g: g.drop_duplicates(),
    lambda g: g.dropna(),
    lambda g: np.sqrt(np.abs(g)),
    lambda g: np.add(g, 1),
    lambda g: np.round(g / 3, 1),
    lambda g: np.maximum(3, g),
    lambda g: np.float64(3) * g,
    lambda g: np.int64(3) - g,
    lambda g: g / g[g.columns[-1]].sum(),
    lambda g: g[g.columns[-1]].max() - g,
]
REDUCED: list[Callable[[Any], Any]] = [
    lambda g: g.sum(),
    lambda g: g.mean(),
    lambda g: g.median(),
    lambda g: g.std(),
    lambda g: g.var(),
    lambda g: g.min(),
    lambda g: g.max(),
    lambda g: g.count(),
    lambda g: g.nunique(),
    lambda g: g.quantile(0.5),
    lambda g: (g > 5).any(),
    lambda g: (g > 5).all(),
    lambda g: (g > 5).sum(),
    lambda g: g.isna().sum(),
]


def _frame_of(found: Any) -> pd.DataFrame:
    # What matnb has as columns, and pandas partly in the index.
    if isinstance(found, mn.Table):
        return found.to_pandas()
    return found if found.index.names == [None] else found.reset_index()


def _same(found: Any, expected: Any) -> None:
    made, wanted = _frame_of(found), _frame_of(expected)
    pd.testing.assert_frame_equal(made, wanted, check_dtype=False)


@pytest.mark.parametrize("group", GROUPED)
@pytest.mark.parametrize("compute", COMPUTED)
def test_what_is_computed_with_all_values_leaves_keys(
    group: Callable[[Any], Any], compute: Callable[[Any], Any]
) -> None:
    _same(compute(group(mn.table(FRAME))), compute(group(FRAME)))


@pytest.mark.parametrize("group", GROUPED)
@pytest.mark.parametrize("reduce", REDUCED)
def test_statistics_of_all_columns_leave_keys_out(
    group: Callable[[Any], Any], reduce: Callable[[Any], Any]
) -> None:
    found, expected = reduce(group(mn.table(FRAME))), reduce(group(FRAME))
    assert isinstance(found, Record)
    assert list(found) == list(expected.index)
    np.testing.assert_allclose(np.asarray(found, float), expected.to_numpy(float))


@pytest.mark.parametrize("group", GROUPED)
def test_statistics_of_rows_and_pairs_leave_keys_out(group: Callable[[Any], Any]) -> None:
    made, frame = group(mn.table(FRAME)), group(FRAME)
    np.testing.assert_allclose(np.asarray(made.mean(axis=1)), frame.mean(axis=1))
    assert made.duplicated().tolist() == frame.duplicated().tolist()
    for found, expected in (
        (made.corr(), frame.corr()),
        (made.cov() * 2, frame.cov() * 2),
        (made.describe().round(1), frame.describe().round(1)),
    ):
        _same(found.drop(columns=found.columns[0]), expected.reset_index(drop=True))
        assert found[found.columns[0]].tolist() == list(expected.index)


def test_counts_have_keys_too() -> None:
    t = mn.table(FRAME)
    for found, expected in (
        (t["year"].value_counts() / len(t), FRAME["year"].value_counts() / len(FRAME)),
        (t["year"].value_counts(normalize=True) * 100, FRAME["year"].value_counts(normalize=True) * 100),
        (t.value_counts("month") * 2, FRAME["month"].value_counts() * 2),
        (t.groupby("year").size() * 10, (FRAME.groupby("year").size() * 10).rename("size")),
        (t.groupby("year").size().value_counts(), FRAME.groupby("year").size().rename("size").value_counts()),
    ):
        _same(found, expected)
    by_year = t.groupby(["year", "month"])[["n"]].sum().groupby("year").sum()
    _same(by_year, FRAME.groupby(["year", "month"])[["n"]].sum().groupby("year").sum())


def test_keys_go_with_tables_that_are_joined() -> None:
    def by_month(t: Any, year: int) -> Any:
        return t[t["year"] == year].groupby("month")[["n"]].sum()

    made, frame = mn.table(FRAME), FRAME
    joined = [
        by_month(t, 2023).merge(by_month(t, 2024), on="month", how="outer", suffixes=("_a", "_b")) / 10
        for t in (made, frame)
    ]
    _same(*joined)
    _same(mn.concat([by_month(made, 2023), by_month(made, 2025)]) * 10,
          pd.concat([by_month(frame, 2023), by_month(frame, 2025)]) * 10)  # fmt: skip
    names = {"month": [1, 2], "season": [3, 4]}
    _same(by_month(made, 2023).merge(mn.table(names), on="month") * 10,
          by_month(frame, 2023).merge(pd.DataFrame(names), on="month") * 10)  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda t: t.groupby("year", as_index=False)[["n"]].sum() * 2,
        lambda t: t.groupby("year")[["n"]].sum().reset_index() * 2,
        lambda t: t.groupby("year")[["n"]].sum().reset_index()[["year"]] * 2,
    ],
)
def test_keys_may_be_columns_as_any_other(make: Callable[[Any], Any]) -> None:
    _same(make(mn.table(FRAME)), make(FRAME))


def test_keys_are_values_where_they_are_named() -> None:
    g = mn.table(FRAME).groupby("year")[["n"]].sum()
    assert g["year"].max() == 2025
    assert (g[["year"]] + 1)["year"].tolist() == [2024, 2025, 2026]
    assert g.astype({"year": str})["year"].tolist() == ["2023", "2024", "2025"]
    assert g.to_numpy().shape == g.shape == (3, 2)
    assert (g.rename(columns={"year": "y"}) / 2)["y"].tolist() == [2023, 2024, 2025]
    with pytest.raises(DTypeError, match=r"column 'city'.*t\['n'\] selects"):
        mn.table(FRAME)[["city", "n"]] / 2


@pytest.mark.parametrize("group", GROUPED)
def test_rows_have_keys_that_are_left_alone(group: Callable[[Any], Any]) -> None:
    made, frame = group(mn.table(FRAME)), group(FRAME)
    row, expected = made.iloc[0], frame.iloc[0]
    for compute in (lambda row: row / 10, lambda row: 1 - row, lambda row: row.round(1) + row):
        found = compute(row)
        assert list(found) == list(row)
        assert {name: found[name] for name in expected.index} == dict(compute(expected))
        assert all(found[name] == row[name] for name in row if name not in expected.index)
    for reduce in (lambda row: row.sum(), lambda row: row.max(), lambda row: (row > 1).any()):
        assert reduce(row) == reduce(expected)


def test_groups_without_a_column_beside_the_keys_say_so() -> None:
    g = mn.table(FRAME).groupby("year")[["n"]].sum()
    with pytest.raises(DTypeError, match=r"sum of no column: there is none beside the keys; size\(\) counts"):
        g.groupby("n").sum()
    assert g.groupby("n").size()["size"].tolist() == [1, 1, 1]
