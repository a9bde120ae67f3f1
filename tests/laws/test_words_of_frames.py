"""What people type into pandas' frames is there on tables, and gives what pandas gives."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

import matnb as mn
from matnb.errors import ArgumentError, FileContentWarning, LostWriteWarning, MatnbError

pytestmark = pytest.mark.session("two threads")


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", None]),
        st.one_of(st.integers(-5, 5).map(float), st.just(np.nan)),
        st.integers(-3, 3),
        st.sampled_from(["u", "v", None]),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


def frame_of(rows: list[Any]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["zone", "tip", "k", "text"])
    text = pd.Series(["a"]).dtype
    return frame.astype({"zone": text, "text": text, "tip": float, "k": "int64"})


def values(one: Any) -> list[Any]:
    found = one.tolist() if hasattr(one, "tolist") else list(one)
    return [None if pd.isna(each) else each for each in found]


def same(made: Any, wanted: Any) -> None:
    if isinstance(wanted, pd.DataFrame):
        assert list(made.columns) == list(wanted.columns)
        for name in wanted.columns:
            assert values(made[name]) == values(wanted[name])
    else:
        assert values(made) == values(wanted)


# Groups


@settings(max_examples=6)
@given(ROWS)
def test_groups_are_gone_through_as_in_pandas(rows: list[Any]) -> None:
    frame = frame_of(rows)
    t = mn.table(frame)
    for by in ("zone", ["zone"], ["zone", "k"]):
        ours, theirs = list(t.groupby(by)), list(frame.groupby(by))
        keys = [key[0] if isinstance(by, list) and len(by) == 1 else key for key, _ in theirs]
        assert [key for key, _ in ours] == keys
        for (_, made), (key, wanted) in zip(ours, theirs, strict=True):
            same(made, wanted)
            same(t.groupby(by).get_group(key), wanted)
        assert len(t.groupby(by)) == t.groupby(by).ngroups == len(theirs)


@settings(max_examples=6)
@given(ROWS, st.sampled_from([-2, -1, 1, 3]))
def test_groups_give_a_value_for_each_row_as_in_pandas(rows: list[Any], periods: int) -> None:
    frame = frame_of(rows)
    ours, theirs = mn.table(frame).groupby("zone"), frame.groupby("zone")
    for name in ("cumsum", "cumprod", "cummin", "cummax", "rank"):
        for column in ("tip", "k"):
            same(getattr(ours[column], name)(), getattr(theirs[column], name)())
    for column in ("tip", "k", "text"):
        same(ours[column].shift(periods), theirs[column].shift(periods))
    same(ours["tip"].diff(), theirs["tip"].diff())
    there = frame["zone"].notna()
    same(ours.cumcount(), theirs.cumcount().where(there))
    for n in (0, 1, 2):
        same(ours.head(n), theirs.head(n))
        same(ours.tail(n), theirs.tail(n))


# Columns of one value, and columns that conditions choose


@pytest.mark.parametrize(
    "value",
    ["x", 1, 2.5, True, np.float32(2), np.nan, datetime.date(2024, 1, 2), pd.Timestamp("2024-01-02 03:04"),
     np.timedelta64(5, "s"), datetime.timedelta(hours=1)],
)  # fmt: skip
def test_one_value_is_in_every_row(value: Any) -> None:
    t = mn.table({"a": [1, 2, 3]})
    wanted = mn.table({"c": [value] * 3})["c"]
    for made in (t.with_columns(c=value), t.assign(c=value), mn.table({"a": [1, 2, 3], "c": value})):
        assert made.dtypes["c"] == wanted.dtype
        same(made["c"], wanted)


def test_a_statistic_is_in_every_row() -> None:
    t = mn.table({"a": [1.0, 2.0, 6.0]})
    assert t.with_columns(m=t["a"].mean())["m"].tolist() == [3.0] * 3
    assert values(t.with_columns(m=None)["m"]) == [None] * 3


TEXTS: dict[str, Callable[[Any], Any]] = {
    "a text": lambda t: "hi", "another": lambda t: "lo", "a column": lambda t: t["zone"],
    "another column": lambda t: t["text"], "none": lambda t: None,
}  # fmt: skip


@settings(max_examples=6)
@given(ROWS, st.sampled_from([*TEXTS]), st.sampled_from([*TEXTS]), st.sampled_from([*TEXTS]))
def test_conditions_choose_texts(rows: list[Any], one: str, two: str, three: str) -> None:
    frame = frame_of(rows)
    t = mn.table(frame)

    def texts(name: str) -> list[Any]:
        found = TEXTS[name](frame)
        return values(found) if isinstance(found, pd.Series) else [found] * len(frame)

    chosen = [a if k > 0 else b for k, a, b in zip(frame["k"], texts(one), texts(two), strict=True)]
    if {one, two} != {"none"}:
        assert values(np.where(t["k"] > 0, TEXTS[one](t), TEXTS[two](t))) == chosen
    if {one, two, three} != {"none"}:
        chosen = [
            a if k > 1 else b if k > 0 else c
            for k, a, b, c in zip(frame["k"], texts(one), texts(two), texts(three), strict=True)
        ]
        choices = [TEXTS[one](t), TEXTS[two](t)]
        assert values(np.select([t["k"] > 1, t["k"] > 0], choices, TEXTS[three](t))) == chosen


def test_conditions_choose_times_and_nothing_of_several_kinds() -> None:
    t = mn.table({"k": [1, 2], "when": pd.to_datetime(["2024-01-01", None])})
    made = np.where(t["k"] > 1, np.datetime64("2020-01-01"), t["when"])
    assert made.compute().astype("M8[D]").astype(str).tolist() == ["2024-01-01", "2020-01-01"]
    for choices in (("a", 3), (3, "a"), (t["when"], "a")):
        with pytest.raises(MatnbError):
            np.where(t["k"] > 1, *choices)
    assert np.where(t["k"] > 1, 1, 0).tolist() == [0, 1]


# Sums of texts, tables with a value


@settings(max_examples=6)
@given(ROWS)
def test_texts_are_added_as_in_pandas(rows: list[Any]) -> None:
    frame = frame_of(rows)
    t = mn.table(frame)
    same(t["zone"] + "-" + t["text"], frame["zone"] + "-" + frame["text"])
    same("<" + t["zone"], "<" + frame["zone"])
    numbers, texts = t[["tip", "k"]], frame[["tip", "k"]]
    same(numbers * 2 + numbers, texts * 2 + texts)
    same(1 - numbers, 1 - texts)
    same(numbers > 0, texts > 0)


def test_sums_of_other_kinds_say_the_way() -> None:
    t = mn.table({"zone": ["a"], "k": [1]})
    with pytest.raises(MatnbError, match=r"x\.astype\(str\)"):
        t["zone"] + t["k"]
    assert (t["zone"] + t["k"].astype(str)).tolist() == ["a1"]
    with pytest.raises(MatnbError, match="select the same"):
        t[["k"]] + t[["zone"]]


# Nothing is changed in place, and the way that is said does it


def test_assignments_say_what_does_it() -> None:
    t = mn.table({"zone": ["a", "b"], "k": [1, 2]})
    mask = t["k"] > 1
    for assign in (
        lambda: t.loc.__setitem__((mask, "zone"), "Neu"),
        lambda: t.iloc.__setitem__((1, 0), "Neu"),
        lambda: t.at.__setitem__((1, "zone"), "Neu"),
        lambda: t["zone"].__setitem__(mask, "Neu"),
        lambda: t["zone"].__setitem__(1, "Neu"),
    ):
        with pytest.raises(MatnbError, match="is not changed: write") as told:
            assign()
        code = str(told.value).partition("write ")[2].replace(", and ", "; ")
        names = {"t": t, "x": t["zone"], "mask": mask, "np": np}
        exec(code, names)
        assert names["t"]["zone"].tolist() == ["a", "Neu"], code
    with pytest.raises(MatnbError, match="with_columns"):
        t.zone = "x"
    assert (t.at[1, "zone"], t.iat[1, 1]) == ("b", 2)


def assigned(t: Any) -> None:
    q = t["q"]
    q[q > 1] = 0


def in_place(t: Any) -> None:
    q = t["q"]
    q -= q.mean()


def sorted_in_place(t: Any) -> None:
    q = t["q"]
    q.sort()


def into(t: Any) -> None:
    q = t["q"]
    np.clip(q, 0, 2, out=q)


def of_a_dict(t: Any) -> None:
    q = dict(t.items())["q"]
    q[0] = 0


def of_values(t: Any) -> None:
    (q,) = t.values()
    q[0] = 0


def of_a_copy(t: Any) -> None:
    q = t.copy()["q"]
    q[0] = 0


@pytest.mark.parametrize(
    "change", [assigned, in_place, sorted_in_place, into, of_a_dict, of_values, of_a_copy]
)
@pytest.mark.parametrize("values", [[3.0, 1.0, 2.0], [True, False, True]])
def test_columns_are_changed_as_copies_of_those_of_a_table(
    change: Callable[[Any], object], values: list[float]
) -> None:
    if values[0] is True and change not in (assigned, sorted_in_place):
        pytest.skip("they are given numbers")
    t, frame = mn.table({"q": values}), pd.DataFrame({"q": values})
    taken = t.head(2)
    change(t)
    if change not in (sorted_in_place, into, of_values):
        change(frame)
    assert t["q"].tolist() == frame["q"].tolist() == values
    assert taken["q"].tolist() == values[:2]


def test_a_change_of_a_column_that_nothing_refers_to_is_told() -> None:
    t = mn.table({"q": [3.0, 1.0], "two words": [1.0, 2.0]})
    with pytest.warns(LostWriteWarning, match=r"c = t\['q'\]; c\[0\] = 4; t = t\.with_columns\(q=c\)"):
        t["q"][0] = np.nan
    with pytest.warns(LostWriteWarning, match=r"c = t\['two words'\]"):
        t["two words"].fill(7)
    for _ in range(2):
        with pytest.raises(MatnbError, match=r"not changed: write t = t\.with_columns\(q=values\)"):
            t["q"] *= 1.19
    assert (t["q"].tolist(), t["two words"].tolist()) == ([3.0, 1.0], [1.0, 2.0])
    c = t["q"]
    c[0] = 4
    assert t.with_columns(q=c)["q"].tolist() == [4.0, 1.0]  # the way


# Options of pandas, and times of numbers


@settings(max_examples=6)
@given(ROWS, st.integers(0, 4))
def test_rows_are_dropped_as_in_pandas(rows: list[Any], thresh: int) -> None:
    frame = frame_of(rows)
    t = mn.table(frame)
    same(t.dropna(how="any"), frame.dropna(how="any"))
    same(t[["tip", "zone"]].dropna(how="all"), frame[["tip", "zone"]].dropna(how="all"))
    same(t.dropna(thresh=thresh), frame.dropna(thresh=thresh))
    assert t.describe(include="number").columns[1:] == ("tip", "k")
    assert t.describe(include="all").columns[1:] == t.columns


@settings(max_examples=12)
@given(ROWS, st.sampled_from(["mean", "min", "max", "first", "last", "median", "std", "nunique", "count"]))
def test_pivots_are_those_of_pandas(rows: list[Any], combine: str) -> None:
    frame = frame_of(rows).dropna(subset=["zone", "text"]).reset_index(drop=True)
    if frame["tip"].isna().all():
        return
    made = mn.table(frame).pivot("zone", "text", "tip", combine=combine)
    wanted = frame.pivot_table(index="zone", columns="text", values="tip", aggfunc=combine)
    pairs = set(zip(frame["zone"], frame["text"], strict=True))
    assert made.row_labels.tolist() == wanted.index.tolist()
    assert made.column_labels.tolist() == wanted.columns.tolist()
    for (row, column), found in np.ndenumerate(np.asarray(made)):
        pair = wanted.index[row], wanted.columns[column]
        np.testing.assert_allclose(found, wanted.loc[pair] if pair in pairs else 0)


def test_elements_of_missing_values_alone_are_nan_and_whole_numbers_stay_so() -> None:
    rows = {"a": ["x", "x", "y", "z"], "b": [1, 2, 1, 3]}
    some = pd.array([None, 2, 3, None], "Int64")
    P = mn.table({**rows, "v": some}).pivot("a", "b", "v", combine="max")
    np.testing.assert_array_equal(np.asarray(P), [[np.nan, 2], [3, 0]])
    assert P.row_labels.tolist() == ["x", "y"]
    assert np.asarray(mn.table({**rows, "v": some}).pivot("a", "b", "v")).tolist() == [[0, 2], [3, 0]]
    large = pd.array([2**60 + 1, 2, 3, None], "Int64")
    assert (
        int(np.asarray(mn.table({**rows, "v": large}).pivot("a", "b", "v", combine="min"))[0, 0]) == 2**60 + 1
    )
    with pytest.raises(ArgumentError, match="elements without rows are 0"):
        mn.table(rows).pivot("a", "b", fill_value=0)


def test_groupers_and_bins_of_pandas_are_told_as_groups() -> None:
    frame = pd.DataFrame(
        {"at": pd.date_range("2024-01-01", periods=5, freq="10h"), "fare": [1.0, 5, 2, 9, 7]}
    )
    t, bins = mn.table(frame), [0, 2, 5, 10]
    cut = pd.cut(frame["fare"], bins)
    wanted = frame.groupby(pd.Grouper(key="at", freq="D"))["fare"].sum()
    for by, sums in (
        (pd.Grouper(key="at", freq="D"), wanted),
        (cut, frame.groupby(cut, observed=True)["fare"].sum()),
        (pd.Categorical(cut), frame.groupby(cut, observed=True)["fare"].sum()),
    ):
        with pytest.raises(MatnbError, match="write t") as told:
            t.groupby(by)
        way = re.search(r"t\.groupby\(.*?\)(?=, w)", str(told.value))
        assert way is not None
        assert eval(way[0], {"t": t, "np": np, "bins": bins})["fare"].sum()["fare"].tolist() == sums.tolist()


def test_what_grouper_says_of_steps_without_rows() -> None:
    days = pd.to_datetime(["2024-01-01", "2024-01-04", "2024-01-04"])
    frame = pd.DataFrame({"at": days, "fare": [1.0, 2.0, 3.0]})
    t = mn.table(frame)
    with pytest.raises(MatnbError, match="without steps that no row has") as told:
        t.groupby(pd.Grouper(key="at", freq="D"))
    found = re.search(r"t\.groupby\(.*?\)(?=, w)", str(told.value))
    rest = re.search(r"to_pandas\(\).*asfreq\(.*?\)", str(told.value))
    assert found is not None
    assert rest is not None
    made = eval(f"{found[0]}['fare'].mean().{rest[0]}", {"t": t})
    wanted = frame.groupby(pd.Grouper(key="at", freq="D"))[["fare"]].mean()
    pd.testing.assert_frame_equal(made, wanted, check_index_type=False, check_column_type=False)


ORDER = ["S", "M", "L"]
SIZES = pd.Categorical(["L", None, "S", "M"], ORDER, ordered=True)


@pytest.mark.parametrize(
    "sizes",
    [
        pd.DataFrame({"size": SIZES}),
        {"size": SIZES},
        pa.table({"size": pa.array(pd.Series(SIZES))}),
        pl.DataFrame({"size": pl.Series(["L", None, "S", "M"], dtype=pl.Enum(ORDER))}),
        {"size": pl.Series(["L", None, "S", "M"], dtype=pl.Enum(ORDER))},
    ],
    ids=["frame", "categorical", "arrow", "polars", "series"],
)
def test_categories_that_lose_their_order_are_told(sizes: Any) -> None:
    with pytest.warns(FileContentWarning, match="loses the order S < M < L") as told:
        t = mn.table(sizes)
    way = re.search(r"t\.with_columns\(.*?\}\)\)", str(told[0].message))
    assert way is not None
    made = eval(way[0], {"t": t})
    assert values(made.sort_values("order")["size"]) == [*ORDER, None]
    assert values(made["order"]) == [one if one >= 0 else None for one in SIZES.codes.tolist()]


def test_orders_of_categories_in_files_are_told(tmp_path: Path) -> None:
    for name in ("t.parquet", "t.feather"):
        getattr(pd.DataFrame({"size": SIZES}), f"to_{name[2:]}")(tmp_path / name)
        with pytest.warns(FileContentWarning, match="categories of 'size' have an order"):
            mn.load(tmp_path / name)


@pytest.mark.filterwarnings("error")
def test_categories_without_an_order_or_in_that_of_their_values_are_not() -> None:
    mn.table({"a": pd.Categorical(["y", "x"], ["y", "x"]), "b": pd.Categorical([1, 2], [1, 2], ordered=True)})
    mn.table({"a": pl.Series(["y", "x"], dtype=pl.Categorical), "b": pl.Series([None, 2.5])})


def test_rows_by_texts_are_had_as_the_error_says() -> None:
    frame = pd.DataFrame({"k": [1, 2, 3], "zone": ["b", "a", "c"], "tip": [2.0, 3.0, 5.0]})
    for t in (mn.table(frame), mn.table(frame).groupby("zone")["tip"].sum()):
        for labels in (["c", "b"], np.array(["c", "b"])):
            with pytest.raises(MatnbError, match="have no labels") as told:
                t.loc[labels]
            ways = re.findall(r"t[\[.]\S*\[.*?labels[\])]+", str(told.value).partition("; ")[2])
            masked, ordered = (eval(way, {"t": t, "labels": labels}) for way in ways)
            assert masked["tip"].tolist() == [one for one in t["tip"].tolist() if one != 3.0]
            assert ordered["tip"].tolist() == [5.0, 2.0]


@pytest.mark.parametrize("numbers", [[20240401, 20231231], [20240401, None], [20240401.0, np.nan]])
def test_numbers_are_times_as_in_pandas(numbers: list[Any]) -> None:
    t = mn.table({"x": numbers})
    wanted = ["NaT" if pd.isna(one) else str(pd.to_datetime(str(int(one))).date()) for one in numbers]
    assert t["x"].to_datetime("%Y%m%d").compute().astype(str).tolist() == wanted
    for unit in ("s", "ms", "us", "ns"):
        made = t["x"].to_datetime(unit=unit).compute().astype("M8[ns]")
        there = pd.to_datetime(pd.Series(numbers), unit=unit).to_numpy().astype("M8[ns]")
        assert (made.astype("i8") == there.astype("i8")).all()


def test_a_list_of_forms_reads_several() -> None:
    t = mn.table({"day": ["2024-01-02", "03.04.2024", None]})
    made = t["day"].to_datetime(["%Y-%m-%d", "%d.%m.%Y"]).compute()
    assert made.astype(str).tolist() == ["2024-01-02", "2024-04-03", "NaT"]
    with pytest.raises(MatnbError, match=r'to_datetime\("%d.%m.%Y"\) reads it'):
        t["day"].to_datetime("%Y-%m-%d")


@pytest.mark.parametrize("mark", "/-")
def test_days_that_may_be_months_are_told_both_ways(mark: str) -> None:
    days = [f"0{place}{mark}0{place + 1}{mark}2024" for place in (1, 3, 5)]
    with pytest.raises(MatnbError) as caught:
        mn.table({"day": days})["day"].to_datetime()
    forms = re.findall(r'to_datetime\("(.*?)"\)', str(caught.value))
    assert [f"%d{mark}%m{mark}%Y", f"%m{mark}%d{mark}%Y"] == forms
    made = mn.table({"day": days})["day"].to_datetime(forms[1]).to_numpy()
    assert (made == pd.to_datetime(pd.Series(days)).to_numpy()).all(), "the second is as pandas reads it"
    with pytest.raises(MatnbError, match=f'"%d{mark}%m{mark}%Y"') as caught:
        mn.table({"day": [*days, f"25{mark}12{mark}2024"]})["day"].to_datetime()
    assert "%m/%d" not in str(caught.value)


def test_results_of_groups_are_drawn() -> None:
    days = pd.to_datetime(["2024-01-01", "2024-01-03"])
    t = mn.table({"when": days, "zone": ["a", "b"], "tip": [1.0, 2.0]})
    axes = mn.plot(t.groupby("when", freq="D")["tip"].sum(), ax=Figure().subplots())
    assert axes.lines[0].get_ydata().tolist() == [1.0, 2.0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("when", "tip")
    assert len(mn.plot(t.groupby("zone")["tip"].sum(), ax=Figure().subplots()).patches) == 2


def test_counts_are_drawn_over_their_values() -> None:
    t = mn.table({"k": [7, 5, 7, 2, 7, 5], "f": [1.5, 0.5, 1.5, 1.5, 0.5, 1.5], "b": [True] * 5 + [False]})
    for name in t.columns:
        wanted = t.to_pandas()[name].value_counts()
        found = t[name].value_counts()
        for counts in (found, t.value_counts(name), found.sort_values(found.columns[0])):
            axes = mn.plot(counts, ax=Figure().subplots())
            drawn = {one.get_x() + one.get_width() / 2: one.get_height() for one in axes.patches}
            over = dict(enumerate(counts["count"].tolist())) if name == "b" else wanted.to_dict()
            assert drawn == pytest.approx(over)
            assert (axes.get_xlabel(), axes.get_ylabel()) == counts.columns
    days = mn.table({"when": pd.to_datetime(["2024-01-03", "2024-01-01", "2024-01-03"])})
    (line,) = mn.plot(days["when"].value_counts(), ax=Figure().subplots()).lines
    assert line.get_ydata().tolist() == [1, 2]


@pytest.mark.parametrize("name", ["fare", "count", "zone", "some", "when"])
def test_arguments_that_no_column_takes_are_answered_alike(name: str) -> None:
    x = mn.table(
        {
            "fare": [1.5, np.nan], "count": [1, 2], "zone": ["a", None], "some": [1, None],
            "when": np.array(["2020", "NaT"], "M8[s]"),
        }
    )[name]  # fmt: skip
    changes = (x.fillna, x.dropna, x.ffill, x.replace, x.where, x.mask)
    for change, values in zip(changes, ((0,), (), (), (1, 2), (x == x,), (x == x,)), strict=True):
        with pytest.raises(ArgumentError, match=r"'inplace': write x = \.\.\. with the result"):
            change(*values, inplace=True)
    with pytest.raises(ArgumentError, match=r"'bins': write np\.histogram"):
        x.value_counts(bins=2)
    with pytest.raises(MatnbError, match="inplace"):
        x.clip(None, None, inplace=True)


def test_functions_of_the_table_make_columns() -> None:
    frame = pd.DataFrame({"k": [1, 2]})
    made = mn.table(frame).with_columns(x=lambda t: t["k"] * 2, y=lambda t: t["x"] + 1, z=3)
    wanted = frame.assign(x=lambda t: t["k"] * 2, y=lambda t: t["x"] + 1, z=3)
    pd.testing.assert_frame_equal(made.to_pandas(), wanted)


@pytest.mark.parametrize(
    "operation",
    [
        lambda t: -t,
        abs,
        lambda t: ~t.isna(),
        lambda t: (t > 1) & (t < 3),
        lambda t: t == 2,
        lambda t: t != 2,
        lambda t: (t > 2) | t.isna(),
        lambda t: (t > 2) ^ (t > 1),
    ],
)
def test_operators_go_column_by_column(operation: Callable[[Any], Any]) -> None:
    frame = pd.DataFrame({"a": [1.5, None, -3.0], "b": [1, 2, 3]})
    pd.testing.assert_frame_equal(operation(mn.table(frame)).to_pandas(), operation(frame))
