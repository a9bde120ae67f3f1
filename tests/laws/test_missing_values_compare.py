"""Comparisons follow one rule where a value is missing, in columns of every type: NumPy's of NaN and NaT."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError

BERLIN = "Europe/Berlin"
ZONED = pd.Series(pd.to_datetime(["2020-03-01T08:00", "2020-03-02T08:00", None, "2020-03-03T08:00"]))
# A column of four values, the third of which is missing, and one of its values.
COLUMNS: dict[str, tuple[Any, Any]] = {
    "floats": (np.array([1.0, 2.0, np.nan, 3.0]), 2.0),
    "integers": (pd.Series([1, 2, None, 3], dtype="Int64"), 2),
    "uint64": (pd.Series([2**63, 2**63 + 1, None, 2**63 + 2], dtype="UInt64"), 2**63 + 1),
    "booleans": (pd.Series([False, True, None, True], dtype="boolean"), True),
    "text": (["a", "b", None, "c"], "b"),
    "days": (np.array(["2020-03-01", "2020-03-02", "NaT", "2020-03-03"], "M8[D]"), "2020-03-02"),
    "times": (
        np.array(["2020-03-01T08", "2020-03-02T08", "NaT", "2020-03-03T08"], "M8[us]"),
        "2020-03-02T08",
    ),
    "zoned times": (ZONED.dt.tz_localize(BERLIN), "2020-03-02T08:00"),
    "durations": (np.array([1, 2, "NaT", 3], "m8[s]"), np.timedelta64(2, "s")),
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("compare", COMPARISONS)
def test_a_missing_value_compares_as_nan(kind: str, compare: Callable[[Any, Any], Any]) -> None:
    values, one = COLUMNS[kind]
    column = mn.table({"x": values})["x"]
    numbers = np.array([1.0, 2.0, np.nan, 2.0 if kind == "booleans" else 3.0])
    assert compare(column, one).compute().tolist() == compare(numbers, 2.0).tolist()
    assert compare(column, column).compute().tolist() == compare(numbers, numbers).tolist()
    moved = column[::-1]
    assert compare(column, moved).compute().tolist() == compare(numbers, numbers[::-1]).tolist()


@pytest.mark.parametrize("kind", COLUMNS)
def test_unequal_is_the_opposite_of_equal(kind: str) -> None:
    values, one = COLUMNS[kind]
    column = mn.table({"x": values})["x"]
    assert (column != one).compute().tolist() == (~(column == one)).compute().tolist()
    assert mn.table({"x": column})[column != one].shape == (2 if kind == "booleans" else 3, 1)


@pytest.mark.parametrize("kind", ["integers", "booleans", "text"])
@pytest.mark.parametrize("other", [None, np.nan, pd.NA])
def test_nothing_is_equal_to_what_is_missing(kind: str, other: object) -> None:
    column = mn.table({"x": COLUMNS[kind][0]})["x"]
    assert not (column == other).compute().any()
    assert (column != other).compute().all()


@pytest.mark.parametrize("kind", ["times", "zoned times", "durations"])
def test_what_is_missing_is_not_equal_to_anything(kind: str) -> None:
    column = mn.table({"x": COLUMNS[kind][0]})["x"]
    none = np.datetime64("NaT") if kind != "durations" else np.timedelta64("NaT")
    for other in (none, None, pd.NaT):
        assert not (column == other).compute().any()
        assert (column != other).compute().all()
    assert not (column == none).compute().any()
    assert (column != none).compute().all()
    assert not (column <= none).compute().any()


def test_errors_name_columns_by_their_type() -> None:
    table = mn.table({"s": ["a", None], "i": [1, 2], "w": np.array(["2020-01-01", "NaT"], "M8[us]")})
    missing = mn.table({"m": [1, None]})["m"]
    for compare, words in (
        (lambda: table["s"] == missing, "with a column of int64 or missing: give a string"),
        (lambda: table["w"] < table["s"], "a column of text is not a datetime, which"),
        (lambda: table["w"].to_zone("UTC"), "which has no zone: give the times one before mn.table"),
        (
            lambda: mn.table({"t": ["2020-01-01T10:00Z", "2020-01-02"]})["t"].to_datetime(),
            "without an offset",
        ),
    ):
        with pytest.raises(DTypeError, match=words) as told:
            compare()
        assert "\n" not in str(told.value)
