"""Columns do what pandas' Series do: missing, empty and equal values, other alphabets, several blocks."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn

POOLS: dict[str, tuple[str, list[Any]]] = {
    "floats": ("float64", [1.5, -2.0, 0.0, 3.25, 1e300]),
    "integers": ("Int64", [3, -1, 0, 2**62]),
    "whole": ("int64", [3, -1, 0, 7]),
    "booleans": ("boolean", [True, False]),
    "text": ("str", ["b", "a", "", "Ärger", "東京", "a b"]),
    "times": ("datetime64[us]", [pd.Timestamp(f"20{year}-03-01T08:00:01") for year in (10, 11, 24)]),
    "durations": ("timedelta64[us]", [pd.Timedelta(seconds) for seconds in ("1s", "-3s", "2h")]),
}

pytestmark = pytest.mark.session("two threads")


@st.composite
def series(draw: st.DrawFn, *kinds: str, least: int = 0) -> tuple[str, pd.Series]:
    kind = draw(st.sampled_from(kinds or tuple(POOLS)))
    dtype, pool = POOLS[kind]
    one = st.sampled_from(pool if kind == "whole" else [*pool, None])
    return kind, pd.Series(draw(st.lists(one, min_size=least, max_size=9)), dtype=dtype)


def column_of(values: pd.Series, pieces: int = 1) -> Any:
    found = mn.table({"x": values})["x"]
    if isinstance(found, mn.DistArray):
        return mn.repartition(found, n=pieces) if pieces > 1 else found
    if pieces > 1:
        found.codes = mn.repartition(found.codes, n=pieces)
    return found


def plain(value: Any) -> Any:
    """Return values as Python's, None for missing ones."""
    if isinstance(value, mn.Column) and not len(value):
        return []
    values = value if isinstance(value, list | pd.Series) else np.asarray(value)
    if not isinstance(values, list) and values.dtype.kind not in "mM":
        values = values.tolist()
    return [scalar(one) for one in values]


def scalar(one: Any) -> Any:
    one = np.asarray(one)[()] if isinstance(one, mn.DistArray) else one
    if one is None or one is pd.NA or one != one:
        return None
    if isinstance(one, np.datetime64 | np.timedelta64):
        kind = "M8[us]" if isinstance(one, np.datetime64) else "m8[us]"
        return one.astype(kind).item()
    if isinstance(one, pd.Timestamp):
        return one.to_pydatetime()
    if isinstance(one, pd.Timedelta):
        return one.to_pytimedelta()
    return one.item() if isinstance(one, np.generic) else one


def value_of(kind: str) -> Any:
    return POOLS[kind][1][0]


# What is typed with a column, and what pandas makes of it where that is written otherwise.
ALIKE: dict[str, Callable[[Any, Any], Any]] = {
    "isna": lambda x, v: x.isna(),
    "notnull": lambda x, v: x.notnull(),
    "fillna": lambda x, v: x.fillna(v),
    "ffill": lambda x, v: x.ffill(),
    "bfill": lambda x, v: x.bfill(),
    "dropna": lambda x, v: x.dropna(),
    "where": lambda x, v: x.where(x.isin([v])),
    "mask": lambda x, v: x.mask(x.isin([v])),
    "isin": lambda x, v: x.isin([v]),
    "shift": lambda x, v: x.shift(),
    "shift up": lambda x, v: x.shift(-2),
    "shift out": lambda x, v: x.shift(20),
    "unique": lambda x, v: list(x.unique()),
    "nunique": lambda x, v: [x.nunique(), x.nunique(dropna=False)],
    "count": lambda x, v: [x.count()],
    "duplicated": lambda x, v: x.duplicated(),
    "duplicated, last": lambda x, v: x.duplicated(keep="last"),
    "duplicated, all": lambda x, v: x.duplicated(keep=False),
    "head": lambda x, v: x.head(3),
    "tail": lambda x, v: x.tail(3),
    "map a dict": lambda x, v: x.map({v: "one"}),
}


@pytest.mark.parametrize("name", ALIKE)
@given(drawn=series(), pieces=st.sampled_from([1, 3]))
@settings(max_examples=12, deadline=None)
def test_what_pandas_does(name: str, drawn: tuple[str, pd.Series], pieces: int) -> None:
    kind, values = drawn
    found = ALIKE[name](column_of(values, pieces if len(values) > 3 else 1), value_of(kind))
    expected = ALIKE[name](values, value_of(kind))
    assert plain(found) == plain(expected)


@given(
    drawn=series(),
    pieces=st.sampled_from([1, 3]),
    ascending=st.booleans(),
    method=st.sampled_from(["average", "min", "max", "first", "dense"]),
    pct=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_orders(drawn: tuple[str, pd.Series], pieces: int, ascending: bool, method: Any, pct: bool) -> None:
    _, values = drawn
    x = column_of(values, pieces if len(values) > 3 else 1)
    options: dict[str, Any] = {"method": method, "ascending": ascending, "pct": pct}
    np.testing.assert_allclose(np.asarray(x.rank(**options)), values.rank(**options).to_numpy(float))
    for place in ("first", "last"):
        expected = values.sort_values(ascending=ascending, na_position=place, kind="stable")
        assert plain(x.sort_values(ascending=ascending, na_position=place)) == plain(expected)
    expected = values.sort_values(ascending=ascending, kind="stable").head(3)
    assert plain(x.nsmallest(3) if ascending else x.nlargest(3)) == plain(expected)


@given(drawn=series("floats", "integers", "whole", "times", "durations"))
@settings(max_examples=15, deadline=None)
def test_differences(drawn: tuple[str, pd.Series]) -> None:
    _, values = drawn
    assert plain(column_of(values).diff()) == plain(values.diff())


@given(drawn=series("floats", "integers", "whole", "text", "times", "durations"), data=st.data())
@settings(max_examples=30, deadline=None)
def test_between_and_clip(drawn: tuple[str, pd.Series], data: st.DataObject) -> None:
    kind, values = drawn
    low, high = sorted(data.draw(st.lists(st.sampled_from(POOLS[kind][1]), min_size=2, max_size=2)))
    inclusive = data.draw(st.sampled_from(["both", "neither", "left", "right"]))
    x = column_of(values)
    expected = values.between(low, high, inclusive=inclusive)
    assert plain(x.between(low, high, inclusive=inclusive)) == plain(expected.fillna(False))
    if kind != "text":
        assert plain(x.clip(lower=low, upper=high)) == plain(values.clip(low, high))


@given(drawn=series(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_replace(drawn: tuple[str, pd.Series], data: st.DataObject) -> None:
    kind, values = drawn
    pool = POOLS[kind][1]
    instead = data.draw(st.dictionaries(st.sampled_from(pool), st.sampled_from(pool), max_size=3))
    # In one step: what takes the place of a value is not replaced again.
    expected = [instead.get(one, one) for one in plain(values)]
    assert plain(column_of(values).replace(instead)) == [scalar(one) for one in expected]


@given(drawn=series("floats", "integers", "whole", "text", "times", "durations", least=1))
@settings(max_examples=30, deadline=None)
def test_least_and_greatest(drawn: tuple[str, pd.Series]) -> None:
    _, values = drawn
    x, there = column_of(values), values.dropna()
    if not len(there):
        with pytest.raises(mn.MatnbError):
            x.idxmax()
        return
    assert [int(x.idxmax()), int(x.idxmin())] == [
        plain(values).index(scalar(there.max())),
        plain(values).index(scalar(there.min())),
    ]
    if not isinstance(x, mn.DistArray):  # whose own are NumPy's
        assert plain([x.min(), x.max()]) == plain([there.min(), there.max()])


@given(drawn=series("floats", "integers", "whole", "times", "durations", least=1), q=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_statistics_skip_missing_values(drawn: tuple[str, pd.Series], q: float) -> None:
    kind, values = drawn
    x = column_of(values.where(values < value_of(kind)) if kind == "integers" else values)
    expected = values.where(values < value_of(kind)) if kind == "integers" else values
    found = [x.median(), x.quantile(q)]
    wanted = [expected.median(), expected.quantile(q)]
    if kind in ("times", "durations"):
        found += [x.mean(), x.std()]
        wanted += [expected.mean(), expected.std()]
    for one, other in zip(plain(found), plain(wanted), strict=True):
        if isinstance(other, datetime.datetime | datetime.timedelta):
            assert abs(one - other) <= datetime.timedelta(microseconds=1)
        else:
            assert (one is None and other is None) or one == pytest.approx(other, rel=1e-12)


@given(drawn=series(), normalize=st.booleans(), dropna=st.booleans(), ascending=st.booleans())
@settings(max_examples=30, deadline=None)
def test_value_counts(drawn: tuple[str, pd.Series], normalize: bool, dropna: bool, ascending: bool) -> None:
    _, values = drawn
    found = column_of(values).value_counts(normalize=normalize, dropna=dropna, ascending=ascending)
    expected = values.value_counts(normalize=normalize, dropna=dropna)
    counts = plain(found["proportion" if normalize else "count"])
    assert counts == pytest.approx(sorted(expected.tolist(), reverse=not ascending))
    keys = plain(found[found.columns[0]])
    assert dict(zip(keys, counts, strict=True)) == pytest.approx(
        dict(zip(plain(list(expected.index)), expected.tolist(), strict=True))
    )
    if dropna:
        assert plain(column_of(values).mode()) == plain(values.mode())


TIMES = st.datetimes(datetime.datetime(1600, 1, 1), datetime.datetime(2600, 1, 1))
PARTS = (
    *("year", "month", "day", "hour", "minute", "second", "microsecond", "day_of_week"),
    *("day_of_year", "quarter", "days_in_month", "is_month_start", "is_month_end", "is_leap_year"),
)


@given(
    values=st.lists(TIMES | st.none(), min_size=1, max_size=5), zone=st.sampled_from([None, "Europe/Berlin"])
)
@settings(max_examples=25, deadline=None)
def test_parts_of_times(values: list[datetime.datetime | None], zone: str | None) -> None:
    times = pd.Series(values, dtype="datetime64[us]")
    times = times if zone is None else times.dt.tz_localize("UTC").dt.tz_convert(zone)
    x = column_of(times)
    for name in PARTS:
        found, expected = getattr(x.dt, name), getattr(times.dt, name)
        assert plain(found) == plain(expected), name
    for name in ("month_name", "day_name"):
        assert plain(getattr(x.dt, name)()) == plain(getattr(times.dt, name)()), name
    weeks = times.dt.isocalendar()
    for name in weeks:
        assert plain(x.dt.isocalendar()[name]) == plain(weeks[name]), name
    if zone is None:
        assert plain(x.dt.date) == plain(times.dt.normalize()) or plain(x.dt.date) == [
            None if one is None else one.date() for one in values
        ]
        for frequency in ("D", "h", "min", "s"):
            assert plain(x.dt.floor(frequency)) == plain(times.dt.floor(frequency))
        assert plain(x.dt.strftime("%Y-%m")) == plain(times.dt.strftime("%Y-%m"))
    else:
        assert plain(x.dt.tz_convert("Asia/Tokyo").dt.hour) == plain(
            times.dt.tz_convert("Asia/Tokyo").dt.hour
        )


@given(
    values=st.lists(st.datetimes(datetime.datetime(1990, 1, 1), datetime.datetime(2030, 1, 1)), max_size=5)
)
@settings(max_examples=15, deadline=None)
def test_times_get_a_zone(values: list[datetime.datetime]) -> None:
    times = pd.Series(values, dtype="datetime64[us]")
    given = {"ambiguous": np.ones(len(times), bool), "nonexistent": "shift_forward"}
    expected = times.dt.tz_localize("America/New_York", **given)
    found = column_of(times).dt.tz_localize("America/New_York", **given).dt.tz_convert(None)
    assert plain(found) == plain(expected.dt.tz_convert(None))


@given(drawn=series("durations"))
@settings(max_examples=15, deadline=None)
def test_parts_of_durations(drawn: tuple[str, pd.Series]) -> None:
    _, values = drawn
    x = column_of(values)
    for name in ("days", "seconds"):
        assert plain(getattr(x.dt, name)) == plain(getattr(values.dt, name))
    assert plain(x.dt.total_seconds()) == plain(values.dt.total_seconds())
    assert plain(x.abs()) == plain(values.abs())


TEXTS = st.text(st.sampled_from("aBc ß,İé東1٣-\n\x1f.x"), max_size=6)
OF_TEXTS: dict[str, Callable[[Any], Any]] = {
    **{
        name: lambda s, name=name: getattr(s, name)()
        for name in (
            *("lower", "upper", "title", "capitalize", "swapcase", "casefold", "strip", "lstrip", "rstrip"),
            *("isdigit", "isnumeric", "isdecimal", "isalpha", "isalnum", "isspace", "islower", "isupper"),
            *("istitle", "len"),
        )
    },
    "strip some": lambda s: s.strip("a."),
    "removeprefix": lambda s: s.removeprefix("a"),
    "removesuffix": lambda s: s.removesuffix("c"),
    "pad": lambda s: s.pad(5, "both", "*"),
    "zfill": lambda s: s.zfill(4),
    "slice": lambda s: s.slice(1, -1),
    "item": lambda s: s[1],
    "part": lambda s: s[-2:],
    "repeat": lambda s: s.repeat(2),
    "replace": lambda s: s.replace("a", "é", regex=False),
    "replace once": lambda s: s.replace("a", "", n=1, regex=False),
    "replace pattern": lambda s: s.replace(r"(\w)\W", r"<\1>", regex=True),
    "contains": lambda s: s.contains("a.c"),
    "contains text": lambda s: s.contains(".", regex=False),
    "contains class": lambda s: s.contains(r"\w\d|[^a]$"),
    "contains case": lambda s: s.contains("b", case=False),
    "match": lambda s: s.match(r"[aB]+"),
    "fullmatch": lambda s: s.fullmatch(r"\w*"),
    "startswith": lambda s: s.startswith("a"),
    "startswith one of": lambda s: s.startswith(("a", "ß")),
    "endswith": lambda s: s.endswith("c"),
    "count": lambda s: s.count("a|c"),
    "find": lambda s: s.find("c"),
    "rfind": lambda s: s.rfind("c"),
    "split": lambda s: s.split(",").str[0],
    "split at space": lambda s: s.split().str[1],
    "split at pattern": lambda s: s.split(r"[,.]", regex=True).str[-1],
    "split once": lambda s: s.split(",", n=1).str.get(1),
    "rsplit": lambda s: s.rsplit(",", n=1).str[0],
    "parts": lambda s: s.split(",").str.len(),
    "extract": lambda s: s.extract(r"([a-z]+)", expand=False),
}


@pytest.mark.parametrize("name", OF_TEXTS)
@given(values=st.lists(TEXTS | st.none(), max_size=6))
@settings(max_examples=15, deadline=None)
def test_texts(name: str, values: list[str | None]) -> None:
    expected = OF_TEXTS[name](pd.Series(values, dtype="str").str) if any(values) else None
    found = OF_TEXTS[name](column_of(pd.Series(values, dtype="str")).str)
    if expected is not None:
        assert plain(found) == plain(expected)
    else:
        assert len(found) == len(values)


@given(values=st.lists(st.tuples(TEXTS | st.none(), TEXTS | st.none()), min_size=1, max_size=6))
@settings(max_examples=15, deadline=None)
def test_texts_of_two_columns(values: list[tuple[str | None, str | None]]) -> None:
    one, two = (pd.Series(list(part), dtype="str") for part in zip(*values, strict=True))
    x, y = column_of(one), column_of(two)
    assert plain(x.str.cat(y, sep="-")) == plain(one.str.cat(two, sep="-"))
    assert plain(x.str.cat(y, na_rep="?")) == plain(one.str.cat(two, na_rep="?"))
    assert plain(x.fillna(y)) == plain(one.fillna(two))


def test_what_is_done_to_texts_is_done_once_for_each_distinct_one() -> None:
    called: list[str] = []
    t = mn.table({"x": ["a", "b"] * 500})
    t["x"].map(lambda text: called.append(text) or text.upper())
    assert called == ["a", "b"]
    assert len(t["x"].str.lower().labels) == 2


NAMED = (
    "s.str.lower()", 's.str.split(" ").str[0]', "s.str[0]", 's.str.replace("a", "c")',
    "s.str.strip().str.title()", "s.str.cat(s)", 'w.dt.floor("D")', "w.dt.day_name()", 'w.dt.strftime("%Y")',
    'w.dt.tz_localize("UTC")', "w.dt.normalize()", "m.dt.year", "m.dt.quarter",
)  # fmt: skip


@pytest.mark.parametrize("made", NAMED)
def test_what_accessors_return_has_the_name_of_the_column(made: str) -> None:
    frame = pd.DataFrame(
        {
            "s": ["a b", "b c"],
            "w": pd.to_datetime(["2020-01-01", "2020-02-02"]),
            "m": pd.to_datetime(["2020-01-01", None]),
        }
    )
    t = mn.table(frame)
    found, expected = (eval(made, {name: one[name] for name in frame}) for one in (t, frame))
    assert found.name == expected.name


@settings(max_examples=40, deadline=None)
@given(series())
def test_a_column_to_pandas_is_that_of_its_table(drawn: tuple[str, pd.Series]) -> None:
    t = mn.table({"fare": drawn[1]})
    pd.testing.assert_series_equal(t["fare"].to_pandas(), t.to_pandas()["fare"])


def test_a_column_to_pandas_has_the_name_of_the_column() -> None:
    t = mn.table({"fare": [6.0, None], "zone": ["a", "b"]})
    doubled = t["fare"] * 2
    pd.testing.assert_series_equal(doubled.to_pandas(), t.to_pandas()["fare"] * 2)
    assert (t["fare"] * t["fare"]).to_pandas().name is None  # of two columns
    assert (t["fare"] > 1).to_pandas().tolist() == [True, False]
    assert t["zone"].str.upper().to_pandas().tolist() == ["A", "B"]
