"""What was made of a table is not for its rows in another order: pandas has an index there, tables none."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import FileContentWarning, ShapeError
from matnb.tables import row_orders

pytestmark = pytest.mark.session("two threads")


@pytest.fixture(scope="module")
def t() -> mn.Table:
    return mn.table(
        pd.DataFrame(
            {
                "id": [1, 2, 3, 4],
                "day": ["d", "b", "a", "c"],
                "cost": [10.0, 500.0, None, 900.0],
                "n": pd.array([1, None, 3, 4], "Int64"),
                "when": pd.date_range("2024-01-01", periods=4),
            }
        )
    )


@pytest.fixture(scope="module")
def u() -> mn.Table:
    return mn.table({"id": [4, 3, 2, 1], "w": [1.0, 2.0, 3.0, 4.0]})


MASKS: list[Callable[[mn.Table], Any]] = [
    lambda t: t["cost"] > 100,
    lambda t: t["day"] == "a",
    lambda t: t["n"] > 2,
    lambda t: t["when"] > "2024-01-02",
    lambda t: t["cost"].isna(),
    lambda t: ~(np.log(t["id"] + t["cost"]) > 2),
    lambda t: t["day"].isin(["a", "b"]) & (t["id"] > 1),
]
ORDERS: list[Callable[[mn.Table, mn.Table], mn.Table]] = [
    lambda t, u: t.sort_values("day"),
    lambda t, u: t.sort_values("day").sort_values("id"),
    lambda t, u: t.sort_values("day").with_columns(more=np.arange(4)),
    lambda t, u: t.nlargest(4, "id"),
    lambda t, u: t.sample(frac=1),
    lambda t, u: t.iloc[[3, 2, 1, 0]],
    lambda t, u: t.merge(u, on="id", how="right"),
    lambda t, u: t.merge(u, on="id", how="outer"),
]


@pytest.mark.parametrize("mask", MASKS)
def test_masks_of_before_are_refused(t: mn.Table, mask: Callable[[mn.Table], Any]) -> None:
    s = t.sort_values("day")
    with pytest.raises(ShapeError, match=r"another order.*s\[s\[") as caught:
        s[mask(t)]
    assert str(caught.value).startswith("the mask")
    assert len(s[mask(s)]) == len(t[mask(t)])


@pytest.mark.parametrize("put", ORDERS)
def test_whatever_puts_rows_in_another_order_is_known(
    t: mn.Table, u: mn.Table, put: Callable[[mn.Table, mn.Table], mn.Table]
) -> None:
    s = put(t, u)
    with pytest.raises(ShapeError, match="another order"):
        s[t["id"] > 2]
    assert sorted(s[s["id"] > 2]["id"].tolist()) == [3, 4]


@pytest.mark.parametrize(
    ("use", "what"),
    [
        (lambda s, t: s.with_columns(half=t["cost"] / 2), "column 'half'"),
        (lambda s, t: s.with_columns(word=np.where(t["cost"] > 100, "a", "b")), "column 'word'"),
        (lambda s, t: s.assign(word=t["day"].str.upper()), "column 'word'"),
        (lambda s, t: s.assign(more=t["id"].map({1: 2, 2: 3, 3: 4, 4: 5})), "column 'more'"),
        (lambda s, t: s.groupby(t["when"].dt.day).size(), "the key"),
    ],
)
def test_columns_and_keys_of_before_are_refused(t: mn.Table, use: Callable[..., Any], what: str) -> None:
    with pytest.raises(ShapeError, match=what):
        use(t.sort_values("day"), t)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda s, t, u: s[s["id"] > t["id"].mean()], [3, 4]),
        (lambda s, t, u: s[np.asarray(t["id"] > 2)], [4, 1]),
        (lambda s, t, u: t[t["id"] > 0][t["id"] > 2], [3, 4]),
        (lambda s, t, u: t.merge(u, on="id")[t["id"] > 2], [3, 4]),
        (lambda s, t, u: t.drop(columns="day")[t["id"] > 2], [3, 4]),
        (lambda s, t, u: s.with_columns(first=s["cost"].shift(1), n=np.arange(4)), [3, 2, 4, 1]),
        (lambda s, t, u: s.with_columns(c=t["cost"][np.argsort(t["day"].codes)]), [3, 2, 4, 1]),
    ],
)
def test_rows_in_one_order_go_together(
    t: mn.Table, u: mn.Table, use: Callable[..., mn.Table], expected: list[int]
) -> None:
    assert use(t.sort_values("day"), t, u)["id"].tolist() == expected


# Both ways, and between columns


@pytest.mark.parametrize(
    "use",
    [
        lambda t, s: t[s["cost"] > 100],
        lambda t, s: t.with_columns(z=s["cost"]),
        lambda t, s: t.with_columns(z=s["cost"].cumsum()),
        lambda t, s: t.with_columns(z=s["cost"].shift(1)),
        lambda t, s: t.with_columns(z=s["day"].map({"a": 1, "b": 2, "c": 3, "d": 4})),
        lambda t, s: t.with_columns(z=s.groupby("day")["cost"].shift(1)),
        lambda t, s: t.with_columns(z=s.groupby("day")["cost"].transform("sum")),
        lambda t, s: t.with_columns(z=s.groupby("day")["id"].cumsum()),
        lambda t, s: t.with_columns(z=s.groupby("day").cumcount()),
        lambda t, s: t.groupby(s["day"])["cost"].sum(),
        lambda t, s: t["cost"] - s["cost"],
        lambda t, s: t["cost"] > s["cost"] * 2,
        lambda t, s: np.minimum(t["cost"], s["cost"]),
        lambda t, s: np.where(t["id"] > 2, s["cost"], 0),
        lambda t, s: t["n"] + s["n"],
        lambda t, s: t["when"] - s["when"],
        lambda t, s: t["day"] == s["day"],
        lambda t, s: t["cost"].where(s["cost"] > 100),
        lambda t, s: s["cost"][t["id"] > 2],
        lambda t, s: t["cost"].corr(s["cost"]),
    ],
)
def test_rows_in_different_orders_are_not_combined(t: mn.Table, use: Callable[..., Any]) -> None:
    s = t.sort_values("day")
    with pytest.raises(ShapeError, match="order"):
        use(t, s)
    use(s, s)
    use(t, t)


@pytest.mark.parametrize(
    "use",
    [
        lambda t: t.sort_values("day")["id"] + t.sort_values("id", ascending=False)["id"],
        lambda t: t[t["id"] > 2]["id"] - t[t["id"] < 3]["id"],
        lambda t: t[t["id"] > 2].with_columns(z=t[t["id"] < 3]["cost"]),
    ],
)
def test_rows_in_two_other_orders_are_not_combined(t: mn.Table, use: Callable[..., Any]) -> None:
    with pytest.raises(ShapeError, match="order"):
        use(t)


def test_columns_of_one_order_are_combined(t: mn.Table) -> None:
    s = t.sort_values("day")
    assert s["id"].tolist() == (t.sort_values("day")["id"] + 0 * s["n"].fillna(0)).tolist()
    assert (t[["id", "day"]].sort_values("day")["id"] - s["id"]).tolist() == [0] * 4
    assert (s["id"] - np.asarray(t["id"])).tolist() == [2, 0, 1, -3]
    assert (t.dropna(subset=["id"])["id"] - t["id"]).tolist() == [0] * 4  # all rows are there
    assert np.concatenate([s["id"], t["id"]]).shape == (8,)
    assert mn.concat([s, t]).shape == (8, 5)
    assert s.merge(t, on="id").shape == (4, 9)
    numbered = t.with_columns(number=np.arange(4)).sort_values("day").with_columns(rank=np.arange(4))
    assert (numbered["rank"] * 10 + numbered["id"]).tolist() == [3, 12, 24, 31]
    assert numbered[numbered["rank"] > 2]["id"].tolist() == [1]
    summed = s.with_columns(total=s["id"].cumsum())
    assert (summed["total"] - summed["id"]).tolist() == [0, 3, 5, 9]


@pytest.mark.parametrize("index", [[3, 2, 1, 0], list("abcd"), range(1, 5)])
def test_a_series_with_an_index_is_told_to_go_by_position(t: mn.Table, index: Any) -> None:
    series = pd.Series([1.0, 2.0, 3.0, 4.0], index=index)
    with pytest.warns(FileContentWarning, match=r"'z'.*reset_index\(drop=True\)"):
        assert t.with_columns(z=series)["z"].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert t.with_columns(z=series.reset_index(drop=True))["z"].tolist() == [1.0, 2.0, 3.0, 4.0]


def test_rows_of_many_columns_are_followed_too() -> None:
    wide = mn.table({f"c{number}": [3.0 + number, 1.0, 2.0] for number in range(300)})
    s = wide.sort_values("c0")
    with pytest.raises(ShapeError, match="another order"):
        wide.with_columns(total=s["c1"].cumsum())
    with pytest.raises(ShapeError, match="another order"):
        s[wide["c7"] * 2 > 4]


# Results of groups with other keys


@pytest.fixture(scope="module")
def sales() -> mn.Table:
    return mn.table(
        {
            "year": [2024, 2023, 2024, 2023, 2024, 2023, 2022, 2022],
            "month": [1, 2, 2, 3, 3, 1, 1, 2],
            "city": ["a", "b", "c", "a", "b", "d", "x", "y"],
            "eur": [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0],
        }
    )


def of_year(t: Any, year: int, by: Any = "month") -> Any:
    return t[t["year"] == year].groupby(by)[["eur"]].sum()


COMBINATIONS: list[Callable[[mn.Table, mn.Table], Any]] = [
    lambda a, b: a - b,
    lambda a, b: a["eur"] - b["eur"],
    lambda a, b: a["eur"] > 2 * b["eur"],
    lambda a, b: np.where(a["eur"] > 20, b["eur"], 0.0),
    lambda a, b: a.assign(m=b["eur"]),
    lambda a, b: a.with_columns(m=b["eur"].cumsum()),
    lambda a, b: a[b["eur"] > 30],
    lambda a, b: a.groupby(b["eur"] > 30).size(),
    lambda a, b: a.nlargest(3, a.columns[0])["eur"] / b.nlargest(3, b.columns[0])["eur"],
    lambda a, b: a.tail(2)["eur"] - b.tail(2)["eur"],
    lambda a, b: (a / 2).assign(m=np.sqrt(b)["eur"]),
    lambda a, b: a.reset_index()["eur"] - b.reset_index()["eur"],
    lambda a, b: a.rename(columns={"eur": "x"})["x"] - b["eur"],
]


@pytest.mark.parametrize("combine", COMBINATIONS)
def test_results_of_groups_with_other_keys_are_not_combined(
    sales: mn.Table, combine: Callable[[mn.Table, mn.Table], Any]
) -> None:
    a, b = of_year(sales, 2024, "city"), of_year(sales, 2023, "city")
    assert a.shape == b.shape
    with pytest.raises(
        ShapeError, match=r'keys: a\.merge\(b, on="city", how="outer"\)|in diff|another order'
    ):
        combine(a, b)
    combine(a, a)
    equal = of_year(sales, 2024), of_year(sales, 2023)  # months 1 to 3
    combine(*equal)


def test_results_of_groups_with_equal_keys_are_combined_as_in_pandas(sales: mn.Table) -> None:
    frame = sales.to_pandas()
    for combine in COMBINATIONS[:2]:
        found = combine(of_year(sales, 2024), of_year(sales, 2023))
        expected = combine(of_year(frame, 2024), of_year(frame, 2023))
        values = found["eur"] if isinstance(found, mn.Table) else found
        assert values.tolist() == np.asarray(expected).ravel().tolist()
    g = sales.groupby("month")["eur"]
    assert (g.sum()["eur"] / g.count()["eur"]).tolist() == g.mean()["eur"].tolist()
    by_day = sales.assign(day=sales["month"] + 0).groupby("day")["eur"].sum()
    assert (by_day["eur"] - g.sum()["eur"]).tolist() == [0.0] * 3  # equal keys of other names
    assert (g.sum()["eur"] - g.sum().sort_values("month")["eur"]).tolist() == [0.0] * 3
    found, expected = (
        of_year(t, 2024, "city").merge(of_year(t, 2023, "city"), on="city", how="outer")
        for t in (sales, frame)
    )
    pd.testing.assert_frame_equal(found.to_pandas(), expected.reset_index(), check_dtype=False)
    both = [of_year(sales, year).merge(g.size(), on="month", how="left") for year in (2024, 2023)]
    assert (both[0]["eur"] - both[1]["eur"]).tolist() == [-50.0, 10.0, 10.0]


def test_rows_of_groups_are_not_those_of_the_table(sales: mn.Table) -> None:
    g = sales.groupby("city")["eur"].sum()  # b has two rows, a two
    ids = sales.assign(id=np.arange(8)[::-1]).groupby("id")["eur"].sum()
    assert len(ids) == len(sales)
    for use in (
        lambda: sales["eur"] - ids["eur"],
        lambda: sales.assign(total=ids["eur"]),
        lambda: ids[sales["eur"] > 20],
    ):
        with pytest.raises(ShapeError, match="order"):
            use()
    assert (g["eur"] * np.arange(len(g))).tolist()[1] == 70.0
    assert (sales["eur"] - sales.groupby("city")["eur"].transform("sum")).tolist()[0] == -40.0


def test_counts_are_combined_by_their_keys(sales: mn.Table) -> None:
    one, two = sales["city"].value_counts(), sales.head(6)["city"].value_counts()
    with pytest.raises(ShapeError, match=r'sub of tables with different keys: a\.merge\(b, on="city"'):
        one - two
    with pytest.raises(ShapeError, match="different keys"):
        sales["year"].value_counts() / sales["year"].value_counts(ascending=True)
    assert (one - one.copy())["count"].tolist() == [0] * 6
    pairs = sales.groupby(["year", "month"])[["eur"]].sum()
    with pytest.raises(ShapeError, match=r'on=\["year", "month"\]'):
        pairs - pairs.sort_values("eur", ascending=False)
    assert ((pairs - pairs.sort_values(["year", "month"]))["eur"] == 0).all()


def test_keys_do_not_keep_tables_alive(sales: mn.Table) -> None:
    gc.collect()
    before = len(row_orders._orders), len(row_orders._keys)
    for scale in range(3):
        g = sales.assign(key=sales["month"] * 10 + scale).groupby(["key", "year"])[["eur"]].sum()
        g = g.assign(key=g["eur"] + scale).sort_values("eur")[g.sort_values("eur")["eur"] > 1]
        del g
    gc.collect()
    after = len(row_orders._orders), len(row_orders._keys)
    assert after[0] <= before[0] + 8
    assert after[1] <= before[1] + 8


MADE_OF_NOTHING: dict[str, Callable[[], mn.DistArray]] = {
    "ones": lambda: mn.ones(6),
    "falses": lambda: mn.zeros(6, bool),
    "positions": lambda: mn.arange(6),
    "steps": lambda: mn.linspace(0.0, 1.0, 6),
}
FILLED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "ffill": (lambda s: s.ffill(), lambda s: s.ffill()),
    "bfill": (lambda s: s.bfill(), lambda s: s.bfill()),
    "shift": (lambda s: s["v"].shift(1), lambda s: s["v"].shift(1)),
    "drop_duplicates": (lambda s: s.drop_duplicates(), lambda s: s.drop_duplicates()),
    "ones": (lambda s: s.assign(z=mn.ones(6)), lambda s: s.assign(z=np.ones(6))),
    "positions": (lambda s: s.assign(z=mn.arange(6) * 2), lambda s: s.assign(z=np.arange(6) * 2)),
}


@pytest.mark.parametrize("what", MADE_OF_NOTHING)
@pytest.mark.parametrize("how", FILLED)
def test_constants_and_ranges_are_of_no_table(what: str, how: str) -> None:
    values = [3.0, 1.0, np.nan, 2.0, 2.5, 5.0]
    made = mn.table({"c": MADE_OF_NOTHING[what](), "v": mn.asarray(values)})
    frame = pd.DataFrame({"c": np.asarray(MADE_OF_NOTHING[what]()), "v": values})
    ours, theirs = FILLED[how]
    found, expected = ours(made.sort_values("v")), theirs(frame.sort_values("v"))
    found = found.to_pandas() if isinstance(found, mn.Table) else np.asarray(found)
    np.testing.assert_array_equal(np.asarray(found, float), np.asarray(expected, float))


def test_keys_that_are_different_ranges_are_not_equal() -> None:
    first = mn.table({"k": mn.arange(3), "v": mn.ones(3)}).groupby("k")[["v"]].sum()
    second = mn.table({"k": mn.arange(1, 4), "v": mn.ones(3)}).groupby("k")[["v"]].sum()
    with pytest.raises(ShapeError, match="different keys"):
        first - second
