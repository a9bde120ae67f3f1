"""Whole numbers of a table stay whole, of every width and with missing values, as pandas' nullable ones."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, MatnbError, OptionError

WIDTHS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
BIG = 1_577_836_800_000_000_000  # ids of nanoseconds, of which no double has the last digits

pytestmark = pytest.mark.session("two threads")


def nullable(values: list[int | None], dtype: str = "int64") -> pd.Series:
    """Return pandas' column of whole numbers of which some are missing."""
    return pd.Series(values, dtype=dtype.replace("u", "U").replace("int", "Int"))


def values_of(column: object) -> list[int | None]:
    """Return what a column has as Python's numbers, and None; floats are none."""
    found = mn.table({"x": column}).to_arrow().column("x").to_pylist()
    assert not any(isinstance(one, float) for one in found)
    return found


def of_pandas(column: pd.Series) -> list[Any]:
    return [None if pd.isna(one) else one for one in column.tolist()]


@pytest.fixture(scope="module")
def ids() -> mn.Table:
    return mn.table(
        {
            "id": nullable([BIG + 1, None, BIG + 3, BIG + 2, BIG + 1]),
            "r": nullable([BIG + 2, 5, None, BIG + 2, BIG + 1]),
            "k": ["a", "b", "a", "b", "a"],
        }
    )


def test_ids_with_a_blank_keep_their_digits(ids: mn.Table) -> None:
    c = ids["id"]
    assert int(c.max()) == BIG + 3
    assert int(c.min()) == int(np.nanmin(c)) == BIG + 1
    assert (c == ids["r"]).compute().tolist() == [False, False, False, True, True]
    assert of_pandas(ids.to_pandas()["id"]) == [BIG + 1, None, BIG + 3, BIG + 2, BIG + 1]
    assert ids.to_polars()["id"].to_list() == [BIG + 1, None, BIG + 3, BIG + 2, BIG + 1]
    filled = [BIG + 1, 0, BIG + 3, BIG + 2, BIG + 1]
    for found in (np.where(c.isna(), 0, c), np.where(~c.isna(), c, 0), c.fillna(0)):
        assert isinstance(found, mn.DistArray)
        assert found.compute().tolist() == filled
    assert c.compute().tolist() == [BIG + 1, None, BIG + 3, BIG + 2, BIG + 1]
    assert np.asarray(ids[["id", "r"]]).tolist()[0] == [BIG + 1, BIG + 2]
    assert int(c.sum()) == 4 * BIG + 7
    assert c.isin([BIG + 3, float(BIG + 3), None]).compute().tolist() == [False, True, True, False, False]
    assert ids["r"].isin(c).compute().tolist() == [True, False, True, True, True]
    assert values_of(np.unique(c)) == [BIG + 1, BIG + 2, BIG + 3, None]
    assert np.argsort(c).compute().tolist() == [0, 4, 3, 2, 1]
    assert values_of(np.sort(c)) == [BIG + 1, BIG + 1, BIG + 2, BIG + 3, None]
    assert values_of(np.concatenate([c, ids["r"]]))[5:] == [BIG + 2, 5, None, BIG + 2, BIG + 1]
    assert values_of(c - ids["r"]) == [-1, None, None, 0, 0]
    assert values_of(mn.asarray([1, 1, 1, 1, 1]) + c) == [BIG + 2, None, BIG + 4, BIG + 3, BIG + 2]
    assert values_of(np.flip(c))[1:3] == [BIG + 2, BIG + 3]
    assert values_of(np.diff(c)) == [None, None, -1, -1]


def test_groups_pivots_and_files_of_ids(ids: mn.Table, tmp_path: Path) -> None:
    greatest = ids.groupby("k")["id"].max().to_pandas()
    assert greatest["id"].tolist() == [BIG + 3, BIG + 2]
    assert ids.groupby("id").size()["id"].compute().tolist() == [BIG + 1, BIG + 2, BIG + 3]
    assert ids["id"].value_counts()["count"].compute().tolist() == [2, 1, 1]
    assert ids.pivot("id", "k").row_labels.tolist() == [BIG + 1, BIG + 2, BIG + 3]
    assert np.asarray(ids.pivot("k", "k", "id", combine="max")).tolist() == [[BIG + 3, 0], [0, BIG + 2]]
    for suffix in ("parquet", "feather", "arrow", "csv"):
        mn.save(ids, tmp_path / f"ids.{suffix}")
        again = mn.load(tmp_path / f"ids.{suffix}")
        assert values_of(again["id"]) == values_of(ids["id"])


def test_what_is_an_array_of_floats_refuses_what_no_float_is(ids: mn.Table) -> None:
    for call in (lambda: mn.asarray(ids["id"]), lambda: ids.to_matrix(["r"]), lambda: np.median(ids["id"])):
        with pytest.raises(OptionError, match=rf"{BIG + 1}|{BIG + 2}|{BIG + 3}.*fillna") as told:
            np.asarray(call())
        assert isinstance(told.value, MatnbError)
    small = mn.table({"id": nullable([2**53, None, -(2**53), 2**60, -(2**63)])})["id"]
    np.testing.assert_array_equal(np.asarray(small), [2.0**53, np.nan, -(2.0**53), 2.0**60, -(2.0**63)])
    np.testing.assert_array_equal(mn.asarray(small).compute(), np.asarray(small))


OPERATORS: list[Callable[[Any, Any], Any]] = [operator.add, operator.sub, operator.mul]
COMPARISONS = [operator.eq, operator.lt, operator.le, operator.gt, operator.ge]


@st.composite
def two_columns(draw: st.DrawFn) -> tuple[str, list[int | None], list[int | None]]:
    dtype = draw(st.sampled_from(WIDTHS))
    info = np.iinfo(dtype)
    numbers = st.one_of(st.integers(int(info.min), int(info.max)), st.integers(0, 3), st.none())
    length = draw(st.integers(1, 6))
    columns = st.lists(numbers, min_size=length, max_size=length)
    return dtype, draw(columns), draw(columns)


@settings(max_examples=12, deadline=None)
@given(two_columns())
def test_as_pandas_nullable_columns_of_every_width(
    columns: tuple[str, list[int | None], list[int | None]],
) -> None:
    dtype, left, right = columns
    one, other = nullable(left, dtype), nullable(right, dtype)
    table = mn.table({"x": one, "y": other})
    x, y = table["x"], table["y"]
    with np.errstate(all="ignore"):
        for operate in OPERATORS:
            assert values_of(operate(x, y)) == of_pandas(operate(one, other))
    for compare in COMPARISONS:
        expected = compare(one, other).fillna(False).tolist()
        assert compare(x, y).compute().tolist() == expected
    assert (x != y).compute().tolist() == (one != other).fillna(True).tolist()
    present = [number for number in left if number is not None]
    assert values_of(np.where(np.asarray(y == y), x, y)) == [
        first if second is not None else None for first, second in zip(left, right, strict=True)
    ]
    if present:
        for name in ("min", "max"):
            assert getattr(x, name)().compute() == getattr(np, name)(np.array(present, dtype))
        assert int(x.sum()) == int(np.sum(np.array(present, dtype)))
    assert of_pandas(table.to_pandas()["x"]) == left
    assert table.to_polars()["x"].to_list() == left
    wanted = sorted({*present})
    assert [one for one in values_of(np.unique(x)) if one is not None] == wanted


def test_what_isin_finds() -> None:
    column = mn.table({"v": [2, None, 3]})["v"]
    for values, expected in (
        ([2.5], [False, False, False]),
        ([2.0, 7], [True, False, False]),
        ([None], [False, True, False]),
        ([np.nan, 3], [False, True, True]),
        ([pd.NA, pd.NaT], [False, True, False]),
        ([2**70, -(2**70), np.inf], [False, False, False]),
        (np.array([3, 4]), [False, False, True]),
        ([], [False, False, False]),
    ):
        assert column.isin(values).compute().tolist() == expected
    with pytest.raises(DTypeError, match="'x' cannot be compared with a column of int64"):
        column.isin(["x"])
    with pytest.raises(OptionError, match="give a list"):
        column.isin("23")
    text = mn.table({"t": ["a", None, "b"]})["t"]
    assert text.isin(["a", np.nan]).compute().tolist() == [True, True, False]
    with pytest.raises(DTypeError, match=r"2\.5 cannot be compared with a column of text"):
        text.isin([2.5])
    days = mn.table({"d": np.array(["2020-01-01", "NaT"], "M8[D]")})["d"]
    assert days.isin(["2020-01-01"]).compute().tolist() == [True, False]
    assert days.isin(["2020-01-01T10:30", None]).compute().tolist() == [False, True]


def test_booleans_with_blanks_pick_rows() -> None:
    table = mn.table({"b": [True, None, False, True], "c": [None, None, True, False], "n": [1, 2, 3, 4]})
    b, c = table["b"], table["c"]
    frame = table.to_pandas()
    assert str(frame["b"].dtype) == "boolean"
    for found, expected in (
        (~b, ~frame.b),
        (b & c, frame.b & frame.c),
        (b | c, frame.b | frame.c),
        (b ^ c, frame.b ^ frame.c),
        (b & mn.asarray([True, True, False, False]), frame.b & np.array([True, True, False, False])),
        (b | True, frame.b | True),
        (np.logical_not(b), ~frame.b),
    ):
        assert values_of(found) == of_pandas(expected)
    assert table[b]["n"].compute().tolist() == [1, 4]
    assert table[~b]["n"].compute().tolist() == [3]
    assert table["n"][b].compute().tolist() == [1, 4]
    assert np.where(b, table["n"], 0).compute().tolist() == [1, 0, 0, 4]
    assert bool(b.any())
    assert not bool(b.all())
    assert int(b.sum()) == 2
    with pytest.raises(TypeError, match="ambiguous"):
        bool(b & c)
    with pytest.raises(DTypeError, match="'x' cannot be compared"):
        b == "x"  # noqa: B015
    with pytest.raises(DTypeError, match="picks no rows"):
        table["n"][mn.table({"x": [1, None, 3, 4]})["x"]]


@pytest.mark.parametrize("made", [pl.Categorical, pl.Enum(["a", "b"]), pl.String])
def test_categories_of_polars_with_a_null(made: Any) -> None:
    frame = pl.DataFrame({"c": pl.Series(["b", None, "a", "b"], dtype=made)})
    assert mn.table(frame)["c"].compute().tolist() == ["b", np.nan, "a", "b"]


def test_whole_numbers_beyond_int64() -> None:
    large = [2**64 - 1, None, 2**63]
    for given_ in (large, np.array(large, object), pd.Series(large, dtype=object)):
        assert values_of(mn.table({"m": given_})["m"]) == large
    assert values_of(mn.table(pd.DataFrame({"m": pd.Series(large, dtype=object)}))["m"]) == large
    for bad in ([2**64], [2**63, -1], [-(2**63) - 1]):
        with pytest.raises(
            OverflowError, match=r"column 'm' has -?\d+, and no integer type of 64 bits holds"
        ):
            mn.table({"m": bad})
    for mixed in ([1, "a"], ["a", 1], [1.5, "x", None]):
        with pytest.raises(DTypeError, match="column 'm' is not a column of a table"):
            mn.table(pd.DataFrame({"m": pd.Series(mixed, dtype=object), "n": range(len(mixed))}))


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (("int64", [1, BIG + 1]), ("uint64", [2**63 + 1]), "uint64"),
        (("int64", [-1]), ("uint64", [2**62 + 1]), "int64"),
        (("int64", [-1]), ("uint64", [2**63 + 1]), None),
        (("int64", [2**53]), ("float64", [0.5]), "float64"),
        (("int64", [BIG + 1]), ("float64", [0.5]), None),
        (("int8", [-1]), ("uint32", [2**32 - 1]), "int64"),
    ],
)
def test_files_of_two_integer_types(
    first: tuple[str, list[int]], second: tuple[str, list[float]], wanted: str | None, tmp_path: Path
) -> None:
    for number, (dtype, values) in enumerate((first, second)):
        pd.DataFrame({"x": np.array(values, dtype)}).to_parquet(tmp_path / f"{number}.parquet")
    if wanted is None:
        with pytest.raises(mn.errors.FileFormatError, match="'x'"):
            mn.load(tmp_path)
        return
    table = mn.load(tmp_path)
    assert table.dtypes["x"] == wanted
    assert table["x"].compute().tolist() == [*first[1], *second[1]]


@pytest.mark.parametrize(
    "values", [[-100, 120, None, 1], [BIG + 1, None, BIG + 3, BIG + 2], [None, 5, -5, None, 5], [7, None]]
)
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "mean", "std", "var", "nanmedian"])
def test_functions_of_numpy_skip_missing_values_as_methods_do(values: list[int | None], name: str) -> None:
    if name == "nanmedian" and BIG + 1 in values:
        return  # an array of floats would round them
    column = mn.table({"x": nullable(values, "int64")})["x"]
    there = np.array([one for one in values if one is not None])
    function = getattr(np, name)
    for found in (function(column), function(column, axis=0), function(column, 0)):
        assert found.compute() == function(there)
        assert found.dtype == function(there).dtype
    if name in ("std", "var") and len(there) > 1:
        np.testing.assert_allclose(function(column, ddof=1).compute(), function(there, ddof=1), rtol=1e-14)


@pytest.mark.parametrize("name", ["argmin", "argmax", "nanargmin", "nanargmax"])
def test_places_of_extremes_are_those_of_values_that_are_there(name: str) -> None:
    for values in ([None, 3, 1, None, 3], [BIG + 2, None, BIG + 1, BIG + 3], [-128, None, 127]):
        column = mn.table({"x": nullable(values)})["x"]
        there = [place for place, one in enumerate(values) if one is not None]
        expected = there[int(getattr(np, name)(np.array([values[place] for place in there])))]
        assert int(getattr(np, name)(column)) == expected


SOME = [[1, None, 3], [-100, 120, None, 7], [None, -5, None, -9], [5]]
OPTIONS: list[dict[str, Any]] = [
    {"keepdims": True},
    {"axis": 0},
    {"axis": -1, "keepdims": True},
    {"axis": (0,)},
]
OF_SUMS: list[dict[str, Any]] = [*OPTIONS, {"initial": 10}]


@pytest.mark.parametrize("values", SOME)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (name, options)
            for name in ("sum", "prod", "min", "max", "nansum", "nanmax")
            for options in OF_SUMS
        ),
        *(("sum", {"dtype": dtype}) for dtype in (np.int32, np.float64)),
        ("prod", {"dtype": np.int32}),
        *((name, options) for name in ("amin", "amax", "count_nonzero") for options in OPTIONS),
        *(
            (name, options)
            for name in ("any", "all", "mean", "std", "var", "nanmedian")
            for options in OPTIONS
        ),
        *((name, {"ddof": 1, "keepdims": True}) for name in ("std", "nanvar")),
        ("mean", {"axis": 0, "keepdims": True}),
    ],
)
def test_options_of_statistics_do_not_change_what_is_missing(
    name: str, options: dict[str, Any], values: list[int | None]
) -> None:
    function, there = getattr(np, name), np.array([one for one in values if one is not None])
    for column, known in (
        (mn.table({"x": nullable(values)})["x"], there),
        (mn.table({"x": [None if one is None else one > 0 for one in values]})["x"], there > 0),
    ):
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of variances of one value
            expected = function(known, **options)
        for found in (function(column, **options), function(a=column, **options)):
            assert found.shape == np.shape(expected)
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)
            assert found.dtype == np.asarray(expected).dtype


def test_options_of_statistics_without_a_value() -> None:
    empty = mn.table({"x": nullable([None, None])})["x"]
    assert np.isnan(np.asarray(np.max(empty, keepdims=True))).tolist() == [True]
    assert int(np.max(empty, initial=0)) == int(np.amax(empty, None, None, False, 0)) == 0
    assert int(np.min(empty, axis=0, initial=7)) == 7
    for name in ("sum", "prod", "min", "argmax", "mean", "any", "count_nonzero"):
        with pytest.raises(np.exceptions.AxisError):
            getattr(np, name)(mn.table({"x": [1, None]})["x"], axis=1)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
def test_places_of_extremes_keep_axes(name: str) -> None:
    column = mn.table({"x": nullable([None, 3, 1, None, 3])})["x"]
    function = getattr(np, name)
    expected = {"argmin": 2, "argmax": 1}[name]
    assert function(column, axis=0, keepdims=True).compute().tolist() == [expected]
    assert function(a=column).compute() == expected


@pytest.mark.parametrize(
    ("least", "most"), [(0, None), (None, 2), (None, None), (2, 2), (BIG + 2, None), (None, BIG + 1)]
)
def test_clipping_by_one_bound(least: int | None, most: int | None) -> None:
    for values in ([-1, None, 3], [BIG + 1, None, BIG + 3]):
        series = nullable(values)
        column = mn.table({"x": series})["x"]
        by_name = (np.clip(column, a_min=least, a_max=most), np.clip(column, min=least, max=most))
        for found in (np.clip(column, least, most), *by_name):
            assert values_of(found) == of_pandas(series.clip(least, most))


@pytest.mark.parametrize("values", [[1, None, 3, 10, 10], [BIG, BIG + 1, None, BIG + 3, BIG + 5], [None]])
def test_arrays_given_by_name_stay_whole(values: list[int | None]) -> None:
    series = nullable(values)
    x = mn.table({"x": series})["x"]
    assert values_of(np.flip(m=x)) == values[::-1]
    assert values_of(np.take(a=x, indices=[0])) == values[:1]
    assert values_of(np.tile(A=x, reps=2)) == 2 * values
    assert values_of(np.delete(arr=x, obj=0)) == values[1:]
    assert values_of(np.concatenate([x, x], axis=0)) == 2 * values
    for found in (np.sort(a=x), np.sort(x, axis=-1), np.sort(x, 0)):
        assert values_of(found) == of_pandas(series.sort_values())
    for found in (np.argsort(a=x), np.argsort(x, -1)):
        assert found.compute().tolist() == series.sort_values(kind="stable").index.tolist()
    assert values_of(np.unique(ar=x)) == of_pandas(series.drop_duplicates().sort_values())
    known = [one for one in values if one is not None][-1:]
    assert np.isin(x, known, invert=True).compute().tolist() == (~series.isin(known)).tolist()
    assert np.nonzero(a=x)[0].compute().tolist() == np.flatnonzero(series.fillna(0)).tolist()


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_differences_of_every_order(order: int) -> None:
    for values in ([1, None, 3, 10, 11, 11], [BIG, BIG + 2, BIG + 7, None], [5, 6, 8, 1]):
        expected = nullable(values)
        for _ in range(order):
            expected = expected.diff()[1:]
        column = mn.table({"x": nullable(values)})["x"]
        found = np.diff(column, order)
        assert values_of(found) == of_pandas(expected)
        assert values_of(np.diff(a=column, n=order, axis=0)) == of_pandas(expected)


@pytest.mark.parametrize("values", [[True, None, False, True], [False, True, True], [None, None]])
def test_differences_of_booleans_are_changes(values: list[bool | None]) -> None:
    series = pd.Series(values, dtype="boolean")
    found = np.diff(mn.table({"b": series})["b"])
    assert values_of(found) == of_pandas((series ^ series.shift())[1:])
    assert found.dtype == np.bool_


def test_connecting_columns_computes_neither(ids: mn.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    b = mn.table({"b": [True, None, False, True, None]})["b"]
    whole = mn.asarray(np.arange(5))

    def refused(*args: object, **options: object) -> None:
        raise AssertionError("computed before its time")

    for one in (type(b), mn.DistArray):
        monkeypatch.setattr(one, "compute", refused)
        monkeypatch.setattr(one, "__array__", refused)
    for other in (b, ids["id"] > 0, whole > 2, True):
        b & other
        b | other
        other ^ b
