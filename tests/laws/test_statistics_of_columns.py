"""Statistics of columns of each kind are those of pandas: missing values are skipped."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, OptionError

POOLS: dict[str, tuple[str, list[Any]]] = {
    "floats": ("float64", [1.5, -2.0, 0.0, 3.25, 1e6]),
    "single": ("float32", [1.5, -2.0, 0.0, 3.25]),
    "integers": ("Int64", [3, -1, 0, 2**40]),
    "small": ("Int8", [3, -1, 0, 100]),
    "booleans": ("boolean", [True, False]),
    "whole": ("int64", [3, -1, 0, 7]),
    "truths": ("bool", [True, False]),
}
COMPLETE = ("whole", "truths")
PLACES = ("argmin", "argmax", "idxmin", "idxmax")
STATISTICS = (
    *(
        "sum",
        "prod",
        "mean",
        "std",
        "var",
        "min",
        "max",
        "any",
        "all",
        "median",
        "count",
        "nunique",
    ),
    *("cumsum", "cumprod", "cummin", "cummax", *PLACES),
)
# What is made of a column of floats is a column: its missing values are skipped too.
MADE: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "an operator": lambda x: x * 2 + 1,
    "another column": lambda x: x / x.shift(1),
    "a ufunc": np.abs,
    "an index": lambda x: x[1:],
    "rows": lambda x: x[x != 3.25],
    "a method": lambda x: x.clip(0, 2),
    "another method": lambda x: x.where(x > 0),
    "differences": lambda x: x.diff(),
}
OF_NUMPY = (np.sum, np.prod, np.mean, np.std, np.var, np.min, np.max, np.cumsum, np.cumprod)

pytestmark = pytest.mark.session("two threads")


@st.composite
def series(draw: st.DrawFn, *kinds: str) -> pd.Series:
    kind = draw(st.sampled_from(kinds or tuple(POOLS)))
    dtype, pool = POOLS[kind]
    one = st.sampled_from(pool if kind in COMPLETE else [*pool, None])
    return pd.Series(draw(st.lists(one, max_size=8)), dtype=dtype)


def numbers(value: Any) -> list[Any]:
    """Return one value or several as floats, NaN where they are missing."""
    if isinstance(value, pd.Series):
        value = value.to_numpy(np.float64, na_value=np.nan)
    if value is pd.NA:
        value = np.nan
    return np.atleast_1d(np.asarray(value, np.float64)).tolist()  # type: ignore[no-any-return]


def check(find: Callable[[Any], Any], values: pd.Series, made: Callable[[Any], Any] = lambda x: x) -> None:
    column = made(mn.table({"x": values})["x"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expected = find(made(values))
        except (ValueError, TypeError):  # of no values
            with pytest.raises((ValueError, TypeError)):
                numbers(find(column))
            return
        found = numbers(find(column))
    assert found == pytest.approx(
        numbers(expected), rel=1e-6 if values.dtype == np.float32 else 1e-12, nan_ok=True
    )


@pytest.mark.parametrize("name", STATISTICS)
@given(values=series())
@settings(max_examples=20, deadline=None)
def test_of_values_that_are_there(name: str, values: pd.Series) -> None:
    check(lambda x: getattr(x, name)(), values)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "std", "var", "min", "max", "cumsum", "cummax"])
@given(values=series("floats", "integers", "whole"))
@settings(max_examples=10, deadline=None)
def test_of_all_values(name: str, values: pd.Series) -> None:
    if name.startswith("cum"):  # after a missing one nothing is known, which pandas has so for floats alone
        values = values.astype("float64")
    check(lambda x: getattr(x, name)(skipna=False), values)


@pytest.mark.parametrize("made", MADE)
@given(values=series("floats"), name=st.sampled_from(["sum", "mean", "std", "min", "any", "cumsum"]))
@settings(max_examples=15, deadline=None)
def test_of_what_is_made_of_a_column(made: str, values: pd.Series, name: str) -> None:
    check(lambda x: getattr(x, name)(), values, MADE[made])


@pytest.mark.parametrize("function", OF_NUMPY, ids=lambda one: one.__name__)
@given(values=series("floats", "whole"))
@settings(max_examples=10, deadline=None)
def test_of_numpys_functions(function: Callable[..., Any], values: pd.Series) -> None:
    check(function, values)
    if function in (np.std, np.var):
        check(lambda x: function(x, ddof=1), values)


@given(texts=st.lists(st.sampled_from(["1.5", "-2", "x", None]), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_of_numbers_that_were_text(texts: list[str | None]) -> None:
    found = mn.table({"x": pd.Series([*texts, "a"], dtype="str")})["x"].to_float(errors="coerce")
    expected = pd.to_numeric(pd.Series([*texts, "a"], dtype="str"), errors="coerce")
    for name in ("sum", "mean", "std", "max", "cumsum"):
        assert numbers(getattr(found, name)()) == pytest.approx(
            numbers(getattr(expected, name)()), nan_ok=True
        )


def test_numpys_rules_apply_to_arrays() -> None:
    values = np.array([1.0, np.nan, 3.0])
    array = mn.asarray(values)
    column = mn.table({"x": array})["x"]
    for one in (array, mn.asarray(column), mn.asarray(values), array * 2, column.__matnb_array__()):
        assert np.isnan(float(one.mean()))
    assert np.isnan(float(np.stack([column, column]).sum()))  # a matrix
    assert float(array[::2].std()) == 1.0
    assert float(column.std()) == pytest.approx(2**0.5)


def test_a_column_that_is_changed_is_known_to_miss_values() -> None:
    t = mn.table({"x": [1.0, 2.0, 6.0]})
    column = t["x"]
    assert float(column.mean()) == 3.0
    column[2] = np.nan
    assert float(column.mean()) == 1.5
    np.put(column, [0], [4.0])
    assert float(np.sum(column)) == 6.0
    assert np.clip(column, 0, 3, out=column) is column
    assert column.compute().tolist()[:2] == [3.0, 2.0]


OTHERS = {
    "times": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01", "2020-02-02"])),
    "zoned": pd.Series(pd.to_datetime(["2020-01-01", None, "2021-01-01"])).dt.tz_localize("Europe/Berlin"),
    "durations": pd.Series(pd.to_timedelta([1, None, 7, 3], unit="h")),
    "text": pd.Series(["b", None, "c", "a"]),
}


@pytest.mark.parametrize("kind", OTHERS)
@pytest.mark.parametrize("name", ["min", "max", "mean", "std", "sum", "median", "argmin", "argmax"])
def test_functions_and_methods_of_times_and_text_are_those_of_pandas(kind: str, name: str) -> None:
    values = OTHERS[kind]
    column = mn.table({"x": values})["x"]
    calls = [lambda x: getattr(x, name)()]
    calls += [] if name == "median" else [lambda x: getattr(np, name)(x)]  # NumPy has none of times
    calls += [] if "arg" in name else [lambda x: getattr(x, name)(skipna=False)]
    for call in calls:
        try:
            expected = call(values)
        except TypeError:
            with pytest.raises(DTypeError):
                call(column)
            continue
        if kind == "text" and name == "sum":
            continue  # which is one text of all
        found = call(column)
        if pd.isna(expected):
            assert pd.isna(found)
        elif isinstance(expected, str | int | np.integer):
            assert found == expected
        else:
            unit = type(expected)
            assert abs(unit(found) - expected) <= pd.Timedelta("1us")


def test_what_skips_missing_values_is_what_does_in_pandas() -> None:
    for values in (pd.Series([1.0, None, 4.0, 2.0]), pd.Series([1, None, 4, 2], dtype="Int64")):
        x = mn.table({"x": values})["x"]
        for name, arguments in (("median", ()), ("ptp", ()), ("percentile", (50,)), ("quantile", (0.5,))):
            assert np.isnan(getattr(np, name)(x, *arguments)), name
        assert float(x.median()) == float(np.nanmedian(x)) == values.median() == 2
        assert np.isnan(x.median(skipna=False))
        assert float(np.ptp(x.dropna())) == 3
    assert int(np.ptp(mn.table({"x": pd.array([2**60 + 1, 1], "Int64")})["x"])) == 2**60


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "float64", "int64", "bool", "m8[us]"])
@pytest.mark.parametrize("least", [0, 1, 4, 9])
def test_sums_of_too_few_values_are_missing(dtype: str, least: int) -> None:
    given = [1, 0, 1, 1] if dtype in ("int64", "bool") else [1, None, 1, 1]
    values = pd.Series(given, dtype=dtype)
    found, expected = mn.table({"x": values})["x"].sum(min_count=least), values.sum(min_count=least)
    assert pd.isna(np.asarray(found)[()]) if pd.isna(expected) else found == expected
    if not pd.isna(expected) and dtype in ("Int64", "int64"):
        assert np.asarray(found).dtype.kind == "i"


def test_columns_of_all_types_have_a_size() -> None:
    for values in (
        *OTHERS.values(),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.5]),
        pd.Series([True]),
    ):
        x = mn.table({"x": values})["x"]
        for name in ("size", "ndim", "shape", "empty"):
            assert getattr(x, name) == getattr(values, name), name
    with pytest.raises(OptionError, match="one axis"):
        mn.table({"x": OTHERS["times"]})["x"].max(axis=1)


@pytest.mark.parametrize("ask", ["t.corr('spearman')", "t['a b'].corr(t['b'], method='spearman')"])
def test_the_way_to_rank_correlations(ask: str) -> None:
    random = np.random.default_rng(4)
    frame = pd.DataFrame({"a b": random.integers(0, 9, 60) / 2, "b": random.normal(size=60)})
    frame = frame.mask(random.random(frame.shape) > 0.7)
    names = {"t": mn.table(frame)}
    with pytest.raises(OptionError) as caught:
        eval(ask, names)
    told = str(caught.value).split(": ", 1)[1]
    names["u"] = eval(told.split("with u = ")[1].split(", whose")[0], names)
    found = eval(told.split(" is Spearman's")[0], names)
    assert found == pytest.approx(frame["a b"].corr(frame["b"], method="spearman"))
