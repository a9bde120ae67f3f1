"""What people type of habit with a table's columns: names, None, values, and tables in narrow terminals."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import matnb as mn
from matnb.errors import DTypeError, LostWriteWarning, UnsupportedError

pytestmark = pytest.mark.session("one thread")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "zone": ["b", "a", None, "a"],
            "fare": [1.5, None, -2.0, 3.0],
            "n": [1, 2, 3, 5],
            "people": pd.array([1, None, 3, 4], "Int64"),
            "when": pd.to_datetime(["2024-01-01 10:00:00", "2024-01-01 10:19:13", None, None]),
        }
    )


MADE: tuple[Callable[[pd.DataFrame], pd.Series], ...] = (
    lambda t: t["n"] > 2,
    lambda t: t["n"] % 2,
    lambda t: 2 * t["n"],
    lambda t: np.abs(t["fare"]),
    lambda t: np.round(t["fare"]),
    lambda t: t["fare"].fillna(0),
    lambda t: t["fare"].shift(1),
    lambda t: t["fare"][t["fare"] > 0],
    lambda t: t["n"] + t["fare"],
    lambda t: t["zone"].str.len(),
    lambda t: t["when"].dt.hour,
    lambda t: t["fare"].clip(0, 1),
)


@pytest.mark.parametrize("place", range(len(MADE)))
def test_what_is_made_of_one_column_has_its_name(frame: pd.DataFrame, place: int) -> None:
    found, expected = MADE[place](mn.table(frame)), MADE[place](frame)
    assert (found.name or None) == expected.name
    assert found.value_counts().columns[0] == (expected.name or "value")


def test_keys_of_groups_have_the_name_of_their_column(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    for key in (t["n"] % 2, np.where(t["n"] > 2, 1, 0), t["n"]):
        assert t.groupby(key)["fare"].mean().columns == ("n", "fare")


@pytest.mark.parametrize("name", ["zone", "fare", "n", "people", "when"])
def test_nothing_equals_none(frame: pd.DataFrame, name: str) -> None:
    column = mn.table(frame)[name]
    assert np.asarray(column == None).tolist() == (frame[name] == None).fillna(False).tolist()  # noqa: E711
    assert np.asarray(column != None).all()  # noqa: E711


def test_times_are_times_already(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    assert t["when"].to_datetime() is t["when"]
    with pytest.raises(DTypeError, match="timedelta"):
        (t["when"] - t["when"]).to_datetime()


def test_durations_of_records_are_read_as_those_of_columns(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    assert "19m 13s" in repr(t.with_columns(d=t["when"].diff())[["d", "n"]].mean())


def test_values_are_the_columns_when_called(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    assert len(t.values()) == 5
    assert "t.to_numpy()" in repr(t.values)
    for use in (np.asarray, mn.asarray, list, len, lambda values: values[0]):
        with pytest.raises(UnsupportedError, match=r"t\.to_numpy\(\)"):
            use(t.values)
    with pytest.raises(AttributeError, match=r"'shape'; t\.to_numpy\(\) is the array"):
        t.values.shape  # noqa: B018
    assert np.asarray(t.to_numpy()).shape == frame.values.shape


@pytest.mark.parametrize("name", ["zone", "when"])
def test_columns_that_are_no_numbers_say_how_they_are_grouped(frame: pd.DataFrame, name: str) -> None:
    t = mn.table(frame)
    with pytest.raises(DTypeError, match=rf"t\.groupby\('{name}'\) groups by it"):
        mn.groupby(t[name])
    assert len(t.groupby(name).size()) == 2
    assert np.asarray(mn.groupby(t[name].codes).keys).size == 3  # a missing one is a number too


def test_tables_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    t = mn.table({f"column {number}": np.arange(2.0) for number in range(15)})
    whole = repr(t)
    assert "column 7" in whole
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    for columns in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = repr(t).splitlines()
        assert max(map(len, lines)) <= columns
        assert lines[1].startswith("column 0")
        assert lines[1].endswith("column 14")
    monkeypatch.setenv("COLUMNS", "5")
    assert repr(t).splitlines()[1].split() == ["column", "0", "...", "column", "14"]
    monkeypatch.setenv("COLUMNS", "500")
    assert repr(t) == whole


def test_what_is_not_changed_is_written_as_it_runs(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    for key, given in (("new", "new=values"), ("new col", r"\*\*\{'new col': values\}")):
        with pytest.raises(UnsupportedError, match=rf"t\.with_columns\({given}\)"):
            t[key] = t["n"]
    assert "new col" in t.with_columns(**{"new col": t["n"]}).columns
    with pytest.raises(UnsupportedError, match=r"== 1, np\.datetime64\('2024-01-01'\)\), and"):
        t["when"][1] = np.datetime64("2024-01-01")
    with pytest.raises(UnsupportedError, match=r"x\.mask\(mask, value\), and"):
        t["zone"][t["n"] > 2] = "a long text that an error does not write as a whole"


@pytest.mark.parametrize("name", ["skew", "sem", "expanding", "ewm"])
def test_what_only_pandas_has_is_left_to_it(frame: pd.DataFrame, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"do it in pandas: x\.to_pandas\(\)\.{name}"):
        getattr(mn.table(frame)["fare"], name)


def test_options_of_pandas_statistics(frame: pd.DataFrame) -> None:
    x, expected = mn.table(frame)["fare"], frame["fare"]
    for least in (0, 3, 4):
        assert float(x.sum(min_count=least)) == pytest.approx(expected.sum(min_count=least), nan_ok=True)
    assert float(x.mean(numeric_only=True)) == expected.mean(numeric_only=True)


CONVERSIONS: list[Callable[[Any], Any]] = [
    lambda x: x.astype("f8"),
    lambda x: x.astype(np.float32),
    lambda x: x.reshape(-1),
    lambda x: x.transpose(),
    lambda x: x.T,
]


@pytest.mark.parametrize("convert", CONVERSIONS)
def test_a_converted_column_is_a_column(frame: pd.DataFrame, convert: Callable[[Any], Any]) -> None:
    x = convert(mn.table(frame)["fare"])
    assert x.name == "fare"
    assert float(x.mean()) == pytest.approx(frame["fare"].mean())


@pytest.mark.parametrize("dtype", ["Int64", str, "boolean"])
def test_a_column_of_another_type_has_the_name(frame: pd.DataFrame, dtype: Any) -> None:
    assert mn.table(frame)["n"].astype(dtype).name == "n"
    assert mn.table(frame)["n"].map(str).name == "n"


COPIES: list[Callable[[mn.Table], Any]] = [
    lambda t: t["fare"][1:].copy(),
    lambda t: t["fare"][1:].flatten(),
    lambda t: t["fare"][1:].astype("f8"),
    lambda t: np.copy(t["fare"][1:]),
    lambda t: t[1:]["fare"],
    lambda t: t.tail(3)["fare"],
]


@pytest.mark.parametrize("copied", COPIES)
def test_copies_and_columns_of_other_tables_are_changed_without_a_warning(
    frame: pd.DataFrame, copied: Callable[[mn.Table], Any]
) -> None:
    t = mn.table(frame)
    x = copied(t)
    x[0] = 7.0  # where the warning would be an error
    assert float(x[0]) == 7.0
    pd.testing.assert_series_equal(t["fare"].to_pandas(), frame["fare"])


def test_a_part_of_a_column_that_is_changed_is_told(frame: pd.DataFrame) -> None:
    t = mn.table(frame)
    x = t["fare"][1:]
    with pytest.warns(LostWriteWarning):
        x[0] = 7.0


def test_rows_of_a_column_are_taken_by_their_numbers(frame: pd.DataFrame) -> None:
    x = mn.table(frame)["zone"]
    with pytest.raises(AttributeError, match=r"write x\[\[3, 1\]\]"):
        x.take([3, 0])
    assert x[[3, 0]].tolist() == frame["zone"][[3, 0]].tolist()
