"""Groups of tables have pandas' results: methods by name, several at once, steps and parts of times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from laws.test_joins import KINDS, NUMBERS, column, cut, values
from matnb.errors import ColumnError, DTypeError, OptionError, ShapeError, UnsupportedError

OF_ALL = ["count", "min", "max", "first", "last", "nunique", "size"]
OF_NUMBERS = ["sum", "mean", "std", "var", "median"]
BERLIN = "Europe/Berlin"

pytestmark = pytest.mark.session("two workers")


def same(found: Any, expected: Any) -> bool:
    """Tell whether two values are equal, floats but for their last bits."""
    if found is None or expected is None:
        return found is expected
    if isinstance(expected, float) and not isinstance(found, str):
        return bool(np.isclose(float(found), expected, rtol=1e-9, atol=1e-9, equal_nan=True))
    return bool(found == expected)


def check(found: mn.Table, expected: pd.DataFrame) -> None:
    """Compare a table with a frame of pandas."""
    assert found.columns == tuple(expected.columns)
    frame = found.to_pandas()
    for name in expected:
        pairs = zip(values(frame[name]), values(expected[name]), strict=True)
        assert all(same(one, other) for one, other in pairs), (name, frame[name], expected[name])


@given(
    kind=st.sampled_from(list(KINDS)),
    key=st.sampled_from(["text", "masked", "times", "integers"]),
    numbers=NUMBERS,
    seed=st.integers(0, 99),
    blocks=st.integers(1, 3),
)
@settings(max_examples=40, deadline=None)
def test_several_results_of_each_group(
    kind: str, key: str, numbers: list[int], seed: int, blocks: int
) -> None:
    keys = np.random.default_rng(seed).integers(0, 6, len(numbers)).tolist()
    frame = pd.DataFrame({"k": column(key, keys, 0), "v": column(kind, numbers, 0)})
    methods = [one for one in OF_ALL if kind != "booleans" or one not in ("min", "max")]
    found = cut(frame, blocks).groupby("k").agg(**{one: ("v", one) for one in methods})
    expected = frame.groupby("k", as_index=False).agg(**{one: ("v", one) for one in methods})
    check(found, expected)


@given(numbers=NUMBERS, seed=st.integers(0, 99), kind=st.sampled_from(["integers", "masked", "plain"]))
@settings(max_examples=30, deadline=None)
def test_results_of_numbers(numbers: list[int], seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    given_values = pd.Series(random.normal(size=len(numbers))).where(random.random(len(numbers)) > 0.2)
    if kind != "plain":
        given_values = pd.Series([one % 4 if kind == "integers" or one < 5 else None for one in numbers])
        given_values = given_values.astype("int64" if kind == "integers" else "Int64")
    frame = pd.DataFrame(
        {"a": random.integers(0, 3, len(numbers)), "b": column("text", numbers, 0), "v": given_values}
    )
    found = cut(frame, 2).groupby(["a", "b"])["v"].agg(OF_NUMBERS)
    check(found, frame.groupby(["a", "b"], as_index=False)["v"].agg(OF_NUMBERS))
    quantile = cut(frame, 2).groupby("a")["v"].quantile(0.3)
    check(quantile, frame.groupby("a", as_index=False)["v"].quantile(0.3))


def test_forms_of_agg() -> None:
    frame = pd.DataFrame({"z": ["b", "a", "b", None], "f": [6.0, 9.0, 7.0, 1.0], "n": [1, 2, 3, 4]})
    groups = mn.table(frame).groupby("z")
    check(
        groups.agg({"f": "mean", "n": "sum"}),
        frame.groupby("z", as_index=False).agg({"f": "mean", "n": "sum"}),
    )
    check(groups["f"].agg("max"), frame.groupby("z", as_index=False)["f"].agg("max"))
    check(groups["f"].agg(low="min"), frame.groupby("z", as_index=False)["f"].agg(low="min"))
    assert groups.agg({"f": ["min", np.max]}).columns == ("z", "f_min", "f_max")
    assert groups[["f", "n"]].agg(["mean", len]).columns == ("z", "f_mean", "f_size", "n_mean", "n_size")
    assert groups.aggregate(["count"]).columns == ("z", "f_count", "n_count")


def test_a_groups_result_for_each_row() -> None:
    frame = pd.DataFrame({"z": ["b", "a", "b", None, "a"], "f": [6.0, 9.0, 8.0, 1.0, np.nan], "n": range(5)})
    groups = mn.table(frame).groupby("z")
    for name, method in (("f", "mean"), ("n", "max"), ("f", "count"), ("n", "first")):
        found = groups[name].transform(method)
        expected = frame.groupby("z")[name].transform(method)
        assert values(pd.Series(found.compute())) == values(expected)
    whole = mn.table(frame[["f", "n"]].assign(z=1)).groupby("z")["n"].transform("sum")
    assert whole.compute().tolist() == [10] * 5


@given(
    kind=st.sampled_from(list(KINDS)),
    numbers=NUMBERS,
    seed=st.integers(0, 99),
    blocks=st.integers(1, 3),
    is_forward=st.booleans(),
)
@settings(max_examples=40, deadline=None)
def test_missing_values_from_rows_of_the_group(
    kind: str, numbers: list[int], seed: int, blocks: int, is_forward: bool
) -> None:
    keys = np.random.default_rng(seed).integers(0, 4, len(numbers)).tolist()
    frame = pd.DataFrame({"k": column("text", keys, 0), "v": column(kind, numbers, 0)})
    fill = "ffill" if is_forward else "bfill"
    found = getattr(cut(frame, blocks).groupby("k"), fill)()
    expected = getattr(frame.groupby("k"), fill)()
    if expected["v"].dtype != frame["v"].dtype and frame["v"].dtype.kind in "iu":
        expected = expected.astype(object)  # whole numbers, which pandas rounds
        expected["v"] = frame["v"].astype(object).where(frame["k"].notna())
    check(found, expected)


def hours(zone: str | None) -> pd.DataFrame:
    """Return a row every 40 minutes for a year, with both changes of the clocks, and one without a time."""
    when = pd.Series(pd.date_range("2023-12-28", "2024-11-20", freq="40min")).astype("datetime64[us]")
    when[7] = None
    if zone is not None:
        when = when.dt.tz_localize("UTC").dt.tz_convert(zone)
    return pd.DataFrame({"when": when, "v": np.arange(len(when)) % 97})


@pytest.mark.parametrize("zone", [None, BERLIN, "America/New_York"])
@pytest.mark.parametrize("freq", ["D", "h", "W", "W-SAT", "MS", "QS", "YS", "30min"])
def test_steps_of_times(zone: str | None, freq: str) -> None:
    frame = hours(zone)
    table = mn.table(frame)
    found = table.groupby("when", freq=freq).agg(v=("v", "sum"), n=("v", "size"))
    walls = frame["when"].dt.tz_localize(None)
    if freq in ("h", "30min"):  # of an hour that clocks show twice both are told apart
        # which are instants of their own, as offsets are of whole hours
        instants = frame["when"] if zone is None else frame["when"].dt.tz_convert("UTC")
        instants = instants.dt.floor(freq)
        expected = frame.assign(when=instants if zone is None else instants.dt.tz_convert(zone))
    else:
        starts = {
            "W": lambda: walls.dt.to_period("W-SUN").dt.end_time.dt.floor("D"),
            "W-SAT": lambda: walls.dt.to_period("W-SAT").dt.end_time.dt.floor("D"),
            "MS": lambda: walls.dt.to_period("M").dt.start_time,
            "QS": lambda: walls.dt.to_period("Q").dt.start_time,
            "YS": lambda: walls.dt.to_period("Y").dt.start_time,
        }.get(freq, lambda: walls.dt.floor(freq))()
        expected = frame.assign(when=starts if zone is None else starts.dt.tz_localize(zone))
    check(found, expected.groupby("when", as_index=False).agg(v=("v", "sum"), n=("v", "size")))


@pytest.mark.parametrize("freq", ["7D", "5h"])
def test_steps_of_several_are_counted_from_the_first_day(freq: str) -> None:
    frame = hours(BERLIN)
    found = mn.table(frame).groupby("when", freq=freq).agg(v=("v", "sum"))
    check(found, frame.groupby(pd.Grouper(key="when", freq=freq)).agg(v=("v", "sum")).reset_index())


@pytest.mark.parametrize("zone", [None, BERLIN])
def test_parts_of_times(zone: str | None) -> None:
    frame = hours(zone)
    column = mn.table(frame)["when"]
    for name in ("year", "quarter", "month", "day", "hour", "minute", "second", "day_of_week", "day_of_year"):
        found = values(pd.Series(getattr(column.dt, name).compute()))
        assert found == values(getattr(frame["when"].dt, name)), name
    for name in ("day_name", "month_name"):
        assert values(pd.Series(getattr(column.dt, name)().compute())) == values(
            getattr(frame["when"].dt, name)()
        )
    days = pd.Series(column.dt.date.compute())
    assert values(days) == values(pd.to_datetime(frame["when"].dt.date))
    assert str(column.dt.date.dtype) == "datetime64[D]"


def test_groups_by_what_was_made_of_a_column() -> None:
    frame = hours(None)
    table = mn.table(frame)
    by_hour = table.groupby(table["when"].dt.hour)["v"].mean()
    check(by_hour, frame.groupby(frame["when"].dt.hour)["v"].mean().reset_index())
    two = table.groupby(day=table["when"].dt.date, hour=table["when"].hour).size()
    assert two.columns == ("day", "hour", "size")
    assert int(two["size"].sum()) == len(frame) - 1
    latest = table.groupby("when", freq="D").agg(latest=("when", "max"))
    check(latest, frame.groupby(frame["when"].dt.floor("D")).agg(latest=("when", "max")).reset_index())
    assert table.groupby(table["v"] > 40).size().columns == ("v", "size")
    assert table.groupby([table["v"] > 40, table["v"] % 2]).size().columns == ("v", "v_1", "size")
    assert table.groupby(table["v"] + table["when"].dt.hour).size().columns == ("key", "size")
    assert table.groupby("v", as_index=False).size().columns == ("v", "size")


def test_means_of_times_and_durations() -> None:
    frame = hours(None)
    table = mn.table({"when": frame["when"], "long": frame["when"] - frame["when"][0], "k": frame["v"] % 3})
    frame = table.to_pandas()
    for name in ("when", "long"):
        found = table.groupby("k")[name].agg(["mean", "median"]).to_pandas()
        expected = frame.groupby("k", as_index=False)[name].agg(["mean", "median"])
        for method in ("mean", "median"):
            assert (abs(found[method] - expected[method]) <= pd.Timedelta("2us")).all()


INFINITE = ([np.inf, np.inf], [-np.inf, -np.inf], [-np.inf, 1], [np.inf, np.nan, np.inf], [1e308, -1e308] * 2)


@pytest.mark.parametrize("values", INFINITE)
@pytest.mark.parametrize("method", ["median", "mean", "sum", "min", "max"])
def test_infinite_values_of_a_group(values: list[float], method: str) -> None:
    frame = pd.DataFrame({"k": ["a"] * len(values) + ["b"], "x": [*values, 2.0]})
    found = getattr(mn.table(frame).groupby("k")["x"], method)()
    wanted = getattr(frame.groupby("k")["x"], method)()
    np.testing.assert_array_equal(np.asarray(found["x"]), wanted.to_numpy())


def test_wrong_arguments_say_what_to_write() -> None:
    table = mn.table({"z": ["b", "a"], "f": [6.0, 9.0], "t": np.array(["2024-01-01", "2024-01-02"], "M8[D]")})
    groups = table.groupby("z")
    wrong: list[tuple[Any, type[Exception], str]] = [
        (lambda: groups.agg("meen"), OptionError, "'mean'"),
        (lambda: groups.agg({"g": "mean"}), ColumnError, "no column 'g'"),
        (lambda: groups.agg(x=("g", "mean")), ColumnError, "no column 'g'"),
        (lambda: groups.agg(x="mean"), OptionError, r'x=\("fare", "sum"\)'),
        (lambda: groups.agg({"f": lambda x: x.max()}), OptionError, "nested"),
        (lambda: groups.agg({"t": "sum"}), DTypeError, "numeric columns: 'f'"),
        (lambda: groups.agg(), OptionError, "give methods"),
        (lambda: groups.agg(["mean", "mean"]), OptionError, "twice"),
        (lambda: groups.agg(z=("f", "mean")), OptionError, "'z'"),
        (lambda: groups.transform("mean"), OptionError, "select one"),
        (lambda: groups["f"].quantile(2), OptionError, "from 0 to 1"),
        (lambda: table.groupby(), OptionError, "at least one column"),
        (lambda: table.groupby("z", freq="D"), DTypeError, "to be of times"),
        (lambda: table.groupby("t", freq="dday"), OptionError, 'such as "D"'),
        (lambda: table.groupby("t", freq="QS-FRI"), OptionError, "a month, as in"),
        (lambda: table.groupby("z", dropna=False), UnsupportedError, "fillna"),
        (lambda: table.groupby({"z": "f"}), OptionError, "hour=column"),
        (lambda: table.groupby(np.arange(3)), ShapeError, "3 rows where others have 2"),
        (lambda: table.resample("D"), AttributeError, 'freq="D"'),
        (lambda: table["t"].dt.to_period("M"), AttributeError, "dt.floor"),
    ]
    for use, error, words in wrong:
        with pytest.raises(error, match=words):
            use()
