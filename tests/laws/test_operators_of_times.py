"""Operators of columns of times and durations are those of a Series, from either side."""

import datetime
import operator

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError

WHEN = pd.Series(["2020-01-01T10:00", "2021-05-05T12:30:15", None], dtype="M8[us]")
FRAME = pd.DataFrame(
    {
        "when": WHEN,
        "since": WHEN - np.datetime64("2020-06-01"),
        "short": pd.Series([3_600, None, -7], dtype="m8[s]"),
        "zoned": WHEN.dt.tz_localize("Europe/Berlin"),
        "count": [7, -2, 3],
        "share": [1.5, np.nan, -0.5],
    }
)
OTHERS = {
    "Timestamp": pd.Timestamp("2020-06-01 12:00"),
    "datetime64": np.datetime64("2020-06-01"),
    "datetime": datetime.datetime(2020, 6, 1, 8),
    "zoned Timestamp": pd.Timestamp("2020-06-01 12:00", tz="America/New_York"),
    "Timedelta": pd.Timedelta("90min"),
    "nanoseconds": pd.Timedelta(1, "ns"),
    "timedelta64": np.timedelta64(2, "D"),
    "timedelta": datetime.timedelta(hours=-3),
    "int": -3,
    "float": 2.5,
    "NumPy's int": np.int64(2),
    "zero": 0,
    "bool": True,
    "array of durations": np.array([5, -7, 4], "m8[s]"),
    "array of times": WHEN.to_numpy(),
    "array of numbers": np.array([2, 3, 0]),
    "Series": pd.Series([5, None, 4], dtype="m8[s]"),
    "Int64": pd.Series([5, None, 4], dtype="Int64"),
}
MADE = {
    "the last time": lambda t: t["when"].max(),
    "the longest": lambda t: t["since"].max(),
    "a count": lambda t: t["count"].max(),
    **{f"column {name!r}": lambda t, name=name: t[name] for name in FRAME},
}
OTHER = {**{name: lambda t, one=one: one for name, one in OTHERS.items()}, **MADE}
ORDER = [operator.lt, operator.le, operator.gt, operator.ge]
OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    *ORDER,
]
# matnb compares a time without a zone with times of a zone as clocks there show it; pandas has remainders by
# numbers of ticks, and compares durations with an Int64 of them.
OWN = [(name, two) for name in ("zoned",) for two in ("Timestamp", "datetime64", "datetime", "the last time")]

pytestmark = pytest.mark.session("interpreter")


def plain(found):
    """Return values as pandas' scalars, None for missing ones."""
    values = pd.Series(found.compute() if hasattr(found, "compute") else found)
    return [None if pd.isna(one) else one for one in values]


def outcome(function):
    """Return the values that a function gives, or TypeError where it raises one."""
    try:
        return plain(function())
    except TypeError as error:
        return error


def is_own(operate, name, other):
    """Tell whether matnb has its own law."""
    is_of_ticks = other in NUMBERS if operate is operator.mod else other == "Int64" and operate in ORDER
    return (name, other) in OWN or is_of_ticks


NUMBERS = ("int", "float", "NumPy's int", "zero", "array of numbers", "Int64", "a count")
NUMBERS += ("column 'count'", "column 'share'")


@pytest.mark.parametrize("operate", OPERATORS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", ["when", "since", "short", "zoned"])
def test_operators_are_those_of_a_series(name, operate):
    table = mn.table(FRAME)
    for other, make in OTHER.items():
        if is_own(operate, name, other):
            continue
        for turned in (lambda a, b: operate(a, b), lambda a, b: operate(b, a)):
            found = outcome(lambda turned=turned, make=make: turned(table[name], make(table)))
            wanted = outcome(lambda turned=turned, make=make: turned(FRAME[name], make(FRAME)))
            if isinstance(wanted, TypeError):
                assert isinstance(found, DTypeError), (other, found)
            else:
                assert found == wanted, other


@pytest.mark.parametrize("operate", [operator.neg, operator.pos, abs, lambda x: x.abs()])
@pytest.mark.parametrize("name", ["since", "short"])
def test_signs_of_durations(name, operate):
    assert plain(operate(mn.table(FRAME)[name])) == plain(operate(FRAME[name]))
    with pytest.raises(DTypeError, match="needs a column of timedeltas"):
        operate(mn.table(FRAME)["when"])


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_divmod_and_exact_numbers_of_durations(unit):
    lengths = pd.Series([2**60 + 1, -(2**60) - 1, None], dtype=f"m8[{unit}]")
    x = mn.table({"x": lengths})["x"]
    assert plain(x // 3) == plain(x / 3) == plain(lengths // 3)
    step, lengths = np.timedelta64(7, unit), lengths[:2]  # pandas' shares are floats beside a missing value
    x = x[:2]
    for found, wanted in ((divmod(x, step), divmod(lengths, step)), (divmod(step, x), divmod(step, lengths))):
        assert list(map(plain, found)) == list(map(plain, wanted))
    assert plain(-(x - step) + step) == plain(-(lengths - step) + step)


def test_days_have_halves():
    days = mn.table({"x": np.array([1, 3], "m8[D]")})["x"]
    assert plain(days / 2) == plain(days * 0.5) == [pd.Timedelta("12h"), pd.Timedelta("36h")]


def test_lengths_differ():
    t = mn.table(FRAME)
    for wrong in (
        lambda: t["since"] * np.arange(2),
        lambda: t["when"] - WHEN[:2],
        lambda: t["when"] < WHEN[:2],
    ):
        with pytest.raises(ValueError, match="2 rows where others have 3"):
            wrong()
