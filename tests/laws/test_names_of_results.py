"""No result takes the place of a key: tables have all columns that they are made of, and pandas' values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError, OptionError

NAMES = ("g", "size", "count", "proportion", "statistic", "column", "g_count", "mean")
FRAME = pd.DataFrame({name: [1, 2, 1, 3, 3, 3] for name in NAMES})
FRAME["price"] = [90.0, 120.0, 150.0, 80.0, 200.0, 110.0]
FRAME["text"] = list("babaca")
FRAME["ts"] = pd.to_datetime(["2024-01-01", "2024-02-01", "2024-01-03"] * 2)

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize(
    ("ask", "meant", "names"),
    [
        (
            lambda t: t.groupby(["g", "size"]).size(),
            lambda f: f.groupby(["g", "size"]).size(),
            "g size size_",
        ),
        (lambda t: t.groupby("g")["g"].count(), lambda f: f.groupby("g")["g"].count(), "g g_count"),
        (lambda t: t.groupby(t["g"])["g"].max(), lambda f: f.groupby("g")["g"].max(), "g g_max"),
        (
            lambda t: t.groupby(t["text"])["text"].nunique(),
            lambda f: f.groupby("text")["text"].nunique(),
            "text text_nunique",
        ),
        (
            lambda t: t.groupby(t["price"] > 100)["price"].mean(),
            lambda f: f.groupby(f["price"] > 100)["price"].mean(),
            "price_key price",
        ),
        (
            lambda t: t.groupby([t["ts"].dt.month, "g"])["ts"].max(),
            lambda f: f.groupby([f["ts"].dt.month, "g"])["ts"].max(),
            "ts_key g ts",
        ),
        (
            lambda t: t.groupby("ts", freq="MS")["ts"].count(),
            lambda f: f.groupby(pd.Grouper(key="ts", freq="MS"))["ts"].count(),
            "ts ts_count",
        ),
        (
            lambda t: t.groupby(size=t["price"] > 100).size(),
            lambda f: f.groupby(f["price"] > 100).size(),
            "size size_",
        ),
        (
            lambda t: t.groupby(t["size"] % 2).size(),
            lambda f: f.groupby(f["size"] % 2).size(),
            "size_key size",
        ),
        (
            lambda t: t.groupby("g")[["g", "g_count"]].count(),
            lambda f: f.groupby("g")[["g", "g_count"]].count(),
            "g g_count_count g_count",
        ),
        (
            lambda t: t.groupby("mean")["price"].agg(["mean", "max"]),
            lambda f: f.groupby("mean")["price"].agg(["mean", "max"]),
            "mean mean_ max",
        ),
        (
            lambda t: t.groupby("g").agg({"g": "count", "price": "sum"}),
            lambda f: f.groupby("g").agg({"g": "count", "price": "sum"}),
            "g g_count price",
        ),
        (
            lambda t: t.groupby(t["price"] > 100).agg(price=("price", "sum")),
            lambda f: f.groupby(f["price"] > 100).agg(price=("price", "sum")),
            "price_key price",
        ),
        (
            lambda t: t.groupby([t["g"] % 2, t["g"] > 1, "g"]).size(),
            lambda f: f.groupby([f["g"] % 2, f["g"] > 1, "g"]).size(),
            "g_0 g_1 g size",
        ),
        (lambda t: t["count"].value_counts(), lambda f: f["count"].value_counts(), "count count_"),
        (lambda t: t.value_counts("count"), lambda f: f.value_counts("count"), "count count_"),
        (
            lambda t: t["proportion"].value_counts(normalize=True),
            lambda f: f["proportion"].value_counts(normalize=True),
            "proportion proportion_",
        ),
    ],
)  # fmt: skip
def test_results_beside_keys_of_their_names(
    ask: Callable[[Any], Any], meant: Callable[[Any], Any], names: str
) -> None:
    found, expected = ask(mn.table(FRAME)), meant(FRAME)
    assert found.columns == tuple(names.split())
    num_keys = len(found.columns) - (1 if expected.ndim == 1 else expected.shape[1])
    assert num_keys == expected.index.nlevels
    assert found._keys == found.columns[:num_keys]
    keys = [expected.index.get_level_values(place) for place in range(num_keys)]
    results = [one for _, one in pd.DataFrame(expected).items()]
    for name, one in zip(found.columns, [*keys, *results], strict=True):
        assert found[name].tolist() == one.tolist(), name


def test_statistics_of_columns_of_their_names() -> None:
    table = mn.table(FRAME)
    found, expected = table.describe(), FRAME[["statistic", "count"]].describe()
    assert found.columns == ("statistic_", *FRAME.columns)
    assert found["statistic_"][:8].tolist() == [*expected.index]
    for name in expected:
        assert np.allclose(np.asarray(found[name])[:8], expected[name])
    assert table[["column", "price"]].corr().columns == ("column_", "column", "price")
    texts = mn.table({"count": ["a", "b", "a"]}).describe()
    assert texts["count"].tolist()[-3:] == ["2", "a", "2"]


def test_tables_of_two_columns_of_one_name() -> None:
    frame = pd.DataFrame({"n": [5, 6]}, index=pd.RangeIndex(2, name="n"))
    assert mn.table(frame).columns == ("n", "n_")
    with pytest.raises(DTypeError, match="2 columns named '1'"):
        mn.table({1: [1, 2], "1": [3, 4]})
    table = mn.table(FRAME)
    with pytest.raises(OptionError, match="two keys would be called 'g': give it another name"):
        table.groupby("g", g=table["price"] > 100)
    with pytest.raises(OptionError, match="a result and a key would both be called 'g'"):
        table.groupby("g").agg(g=("price", "sum"))


ROWS_OF = {
    "all": lambda t: t,
    "filter": lambda t: t[t["price"] > 85],
    "filter of a filter": lambda t: (lambda some: some[some["g"] < 3])(t[t["price"] > 85]),
    "head": lambda t: t.head(4),
    "dropna": lambda t: t.dropna(),
    "sorted": lambda t: t.sort_values("price"),
    "distinct": lambda t: t.drop_duplicates(["g"]),
}


@pytest.mark.parametrize("rows", ROWS_OF)
def test_keys_that_were_made_are_called_alike_whichever_rows_there_are(rows: str) -> None:
    masked = FRAME.assign(some=pd.array([1, 2, 3, None, 5, 6], "Int64"))
    t = ROWS_OF[rows](mn.table(masked))
    made = t.groupby([t["ts"].dt.year, t["ts"].dt.month])["price"].sum()
    assert made.columns == ("ts", "ts_1", "price")
    for name, key in (
        ("ts", t["ts"].dt.floor("D")), ("some", t["some"] + 1), ("some", t["some"] > 2),
        ("g", t["g"] * 2 + t["g"] % 2), ("price", t["price"] > 100), ("text", t["text"].str.upper()),
    ):  # fmt: skip
        assert t.groupby(key).size().columns == (name, "size")
    assert t.groupby(t["g"] + t["price"])["price"].sum().columns == ("key", "price")
