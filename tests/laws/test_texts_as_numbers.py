"""Texts of a column as numbers and times: each is its value, and what is none is named or missing."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, FileContentWarning, OptionError, UnsupportedError
from matnb.tables import conversions

SMALL = settings(max_examples=12)
MISSING = st.sampled_from([None, "", "NA", "n/a", " "])


pytestmark = pytest.mark.session("two threads")


def column(texts: list[Any]) -> Any:
    return mn.table({"x": [*texts, "end of text"]})["x"][
        : len(texts)
    ]  # of which a label is left that is no number


MONEY = st.sampled_from(["{}", " {} ", "${}", "€ {}", "{} €", "+{}", "£{}", "₹{}"])


@SMALL
@given(
    st.lists(
        st.one_of(MISSING, st.tuples(MONEY, st.floats(0, 1e9).map(lambda one: round(one, 2)))),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from([(".", None), (".", ","), (",", "."), (",", " ")]),
)
def test_numbers_with_signs_of_currencies(drawn: list[Any], marks: tuple[str, str | None]) -> None:
    decimal, thousands = marks

    def written(number: float) -> str:
        return f"{number:,.2f}".translate(str.maketrans({",": thousands or "", ".": decimal}))

    texts = [one if one is None or isinstance(one, str) else one[0].format(written(one[1])) for one in drawn]
    expected = [np.nan if one is None or isinstance(one, str) else one[1] for one in drawn]
    found = column(texts).to_float(decimal=decimal, thousands=thousands).compute()
    np.testing.assert_array_equal(found, expected)


@SMALL
@given(st.lists(st.tuples(st.decimals(-1000, 1000, places=3), st.booleans()), min_size=1, max_size=6))
def test_percents_are_rounded_once(drawn: list[Any]) -> None:
    texts = [f"{number}%" if is_percent else f"{number}" for number, is_percent in drawn]
    expected = [float(number / 100 if is_percent else number) for number, is_percent in drawn]
    assert column(texts).to_float(decimal=".").compute().tolist() == expected


@SMALL
@given(st.lists(st.one_of(MISSING, st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=6), st.booleans())
def test_whole_numbers_keep_every_digit(drawn: list[Any], is_large: bool) -> None:
    numbers = [one + 2**63 if isinstance(one, int) and is_large else one for one in drawn]
    made = column([str(one) if isinstance(one, int) else one for one in numbers]).to_int()
    codes, gone = (
        (made.codes, made.missing) if hasattr(made, "missing") else (made, np.zeros(len(numbers), bool))
    )
    gone = np.asarray(gone.compute() if hasattr(gone, "compute") else gone)
    assert gone.tolist() == [not isinstance(one, int) for one in numbers]
    assert [value for value, none in zip(codes.compute().tolist(), gone, strict=True) if not none] == [
        one for one in numbers if isinstance(one, int)
    ]


@pytest.mark.parametrize(
    ("texts", "name", "options"),
    [
        (["1", "abc"], "to_float", {}),
        (["1,5"], "to_float", {}),
        (["1,5"], "to_float", {"thousands": ","}),
        (["1.5"], "to_float", {"decimal": ","}),
        (["1.5"], "to_int", {}),
        (["50%"], "to_int", {}),
        (["-1", "18446744073709551615"], "to_int", {}),
        (["99999999999999999999"], "to_int", {}),
        (["0x10"], "to_int", {}),
        (["1_000"], "to_float", {}),
        (["31.02.2020"], "to_datetime", {"format": "%d.%m.%Y"}),
        (["2020-13-01"], "to_datetime", {}),
        (["31.12.2020"], "to_datetime", {}),
    ],
)
def test_what_is_none_is_named_or_missing(texts: list[str], name: str, options: dict[str, Any]) -> None:
    with pytest.raises(DTypeError, match=rf"column has 1 value that is not .*such as '{texts[-1]}';.*coerce"):
        getattr(column(texts), name)(**options)
    made = getattr(column(texts), name)(**options, errors="coerce")
    gone = made.missing.compute() if hasattr(made, "missing") else np.isnan(made.compute())
    assert gone.tolist() == [*[False] * (len(texts) - 1), True]
    with pytest.raises(OptionError, match="errors='ignore'"):
        getattr(column(texts), name)(**options, errors="ignore")


def test_infinite_numbers_are_pandas() -> None:
    texts = ["inf", "-inf", "+inf", "Infinity", "-INFINITY", "1e400", "2"]
    assert column(texts).to_float().compute().tolist() == pd.to_numeric(pd.Series(texts)).tolist()
    assert np.isnan(column(["infinit", "in", "inf1"]).to_float(errors="coerce").compute()).all()
    with pytest.raises(DTypeError, match="such as 'inf'"):
        column(["inf"]).to_int()


def test_code_that_reads_numbers_runs_again_on_them() -> None:
    t = mn.table(
        {"x": ["$1.5", None], "n": ["7", None], "k": ["1", "2"], "day": ["2024-01-02", "2024-02-01"]}
    )
    for _ in range(2):
        t = t.assign(
            x=t["x"].to_float(decimal="."), n=t["n"].to_int(thousands=","), k=t["k"].to_int(),
            day=t["day"].to_datetime(),
        )  # fmt: skip
    wanted = pd.DataFrame({"x": [1.5, np.nan], "n": [7, pd.NA], "k": [1, 2]}).astype({"n": "Int64"})
    pd.testing.assert_frame_equal(t[["x", "n", "k"]].to_pandas(), wanted)
    assert t["day"].compute().astype(str).tolist() == ["2024-01-02", "2024-02-01"]
    assert t["k"].to_float().compute().dtype == t["n"].to_float(errors="coerce").compute().dtype == np.float64
    assert (t["k"] > 1).to_int().compute().tolist() == [0, 1]
    with pytest.raises(DTypeError, match=r'x.astype\("int64"\)'):
        t["x"].to_int()


FORMATS = [
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%Y%m%d",
    "%d.%m.%Y %H:%M:%S",
    "%d %b %Y %I:%M:%S.%f %p",
    "%Y-%m-%dT%H:%M:%S",
]


@SMALL
@given(
    st.lists(
        st.one_of(st.none(), st.just("n/a"), st.datetimes(datetime.datetime(1000, 1, 1))),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(FORMATS),
)
def test_times_of_a_form(drawn: list[Any], form: str) -> None:
    texts = [one if one is None or isinstance(one, str) else one.strftime(form) for one in drawn]
    expected = [
        np.datetime64("NaT")
        if one is None or one == "n/a"
        else np.datetime64(datetime.datetime.strptime(one, form))
        for one in texts
    ]
    found = column(texts).to_datetime(form)
    assert found.dtype == np.dtype("M8[us]" if "%H" in form or "%I" in form else "M8[D]")
    np.testing.assert_array_equal(found.compute().astype("M8[us]"), np.array(expected, "M8[us]"))


def test_times_of_iso_8601_and_zones() -> None:
    assert column(["2020-01-01", "2020-02-29", None]).to_datetime().compute().astype(str).tolist() == [
        "2020-01-01",
        "2020-02-29",
        "NaT",
    ]
    assert column(["2020-01-01", "2020-01-01T10:11:12.5"]).to_datetime().dtype == np.dtype("M8[us]")
    nano = column(["2020-01-01 10:11:12.123456789"]).to_datetime().compute()
    assert nano[0] == np.datetime64("2020-01-01T10:11:12.123456789")
    with pytest.raises(UnsupportedError, match="zones"):
        column(["1.1.2020 +0100"]).to_datetime("%d.%m.%Y %z")


def as_numpy_reads(text: str) -> np.datetime64:
    try:
        return np.datetime64(text.replace(" ", "T", 1), "us")
    except ValueError:
        return np.datetime64("NaT")


CLOCKS = (
    "",
    "T10",
    " 23:59",
    "T24:00",
    "T10:60",
    "T10:11:12",
    "T10:11:60",
    " 10:11:12.5",
    "T10:11:12.123456",
)


@given(st.integers(0, 9999), st.sampled_from([*range(0, 10000, 100)]), st.sampled_from(CLOCKS))
@settings(max_examples=30, deadline=None)
def test_texts_are_times_of_days_that_there_are(year: int, century: int, clock: str) -> None:
    days = [f"{one:04}-{month:02}-{day:02}" for one in (year, century) for month in (0, 2, 4, 7, 12, 13)
            for day in (0, 1, 9, 19, 28, 29, 30, 31, 32)]  # fmt: skip
    texts = [*(day + clock for day in days), "unknown"]
    found = column(texts).to_datetime(errors="coerce").compute()
    assert np.array_equal(found.astype("M8[us]"), [*map(as_numpy_reads, texts)], equal_nan=True)


def test_texts_that_are_no_times_are_not_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    values_in = conversions.values_in
    monkeypatch.setattr(conversions, "values_in", lambda *given: read.append(given[1]) or values_in(*given))
    numbers = range(2000)
    mixed = [*(f"{1900 + one}-01-01" for one in range(99)), *(f"{one % 28 + 1}.12.{one}" for one in numbers)]
    found = column(mixed).to_datetime(errors="coerce")
    assert found.missing.compute().sum() == len(numbers)
    with pytest.raises(DTypeError, match="has 2,000 values that are not a time"):
        column(mixed).to_datetime()
    assert len(read) < 20


def test_fractions_of_seconds_beside_days_of_long_ago() -> None:
    texts = ["1600-01-01", "2024-01-01T10:11:12.123456000", "2024-01-01T10:11:12.123456789"]
    found = column(texts).to_datetime(errors="coerce").compute()
    expected = [*(np.datetime64(one, "us") for one in texts[:2]), np.datetime64("NaT")]
    assert np.array_equal(found, np.array(expected), equal_nan=True)


def test_rows_that_are_left_out_need_not_be_numbers() -> None:
    t = mn.table({"x": ["1", "two", "3"], "n": [1, 2, 3]})
    assert t[t["n"] != 2]["x"].to_int().compute().tolist() == [1, 3]
    with pytest.raises(DTypeError, match="two"):
        t["x"].to_int()


@pytest.mark.parametrize("length", [0, 1, 30, 400])
def test_zeros_in_front_are_no_digits_of_a_number(length: int) -> None:
    zeros = "0" * length
    for numbers, others in (([7, -3], []), ([2**64 - 1, 0], []), ([5], [str(2**64)])):
        texts = [f"{'-' if one < 0 else ''}{zeros}{abs(one)}" for one in numbers]
        found = column([*texts, *others]).to_int(errors="coerce").compute()
        assert found.tolist()[: len(numbers)] == numbers


@pytest.mark.parametrize(
    "last", ["2020-01-02", "2020-01-01 10:11", "2020-01-01T10:11:12.123456789", None, "x"]
)
def test_a_label_that_is_no_time_changes_no_other(last: str | None) -> None:
    texts = ["2020-01-01", "1999-12-31", last]
    for more in ([], ["no time"], ["2020-13-01"], ["20.5.2020"]):
        found = column([*texts, *more]).to_datetime(errors="coerce")
        known = [None if one == "x" else one for one in texts]
        expected = np.array([np.datetime64(one or "NaT") for one in known]).astype(found.dtype)
        np.testing.assert_array_equal(found.compute()[:3], expected)
        assert np.isnat(found.compute()[3:]).all()


@pytest.mark.parametrize("text", ["1,2,3", "12,5", "1,2345", ",123"])
def test_marks_between_thousands_that_are_elsewhere_make_text(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n;x\n" + f"{text};1,234\n" * 30)
    table = mn.load(tmp_path / "a.csv", delimiter=";", thousands=",")
    assert table["n"].compute().tolist() == [text] * 30
    assert table["x"].compute().tolist() == [1234] * 30
    assert np.isnan(column([text]).to_float(thousands=",", errors="coerce").compute()).all()


@SMALL
@given(
    st.lists(
        st.tuples(st.sampled_from(["({})", "$({})", "($ {})", "-{}", "\u2212{}"]), st.integers(1, 10**7)),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([",", " ", "\u00a0", "'"]),
)
def test_numbers_in_brackets_are_negative(drawn: list[Any], mark: str) -> None:
    x = column([form.format(f"{number:,}".replace(",", mark)) for form, number in drawn])
    thousands = " " if mark.isspace() else mark
    expected = [-number for _, number in drawn]
    assert x.to_float(thousands=thousands).compute().tolist() == expected
    assert x.to_int(thousands=thousands).compute().tolist() == expected


@pytest.mark.parametrize("text", ["()", "(", "(5", "5)", "(-5)", "(a)", "((5))"])
def test_other_brackets_make_no_number(text: str) -> None:
    with pytest.raises(DTypeError):
        column([text]).to_float()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$1,299.50", 'thousands="," reads'),
        ("3,5", 'decimal=","'),
        ("1.234,50", 'decimal=","'),
        ("1 234,5", 'thousands=" " and decimal=","'),
        ("USD 5", 'x.str.replace("USD ", "")'),
    ],
)
def test_what_reads_a_number_is_said(text: str, words: str) -> None:
    with pytest.raises(DTypeError, match=re.escape(words)):
        column([text]).to_float()


def test_texts_with_offsets_have_a_zone() -> None:
    x = column(["2020-06-01T10:00:00Z", "2020-06-01T12:00:00+00:00", None]).to_datetime()
    assert x.zone == "UTC"
    assert x.hour.compute().tolist()[:2] == [10, 12]
    y = column(["2020-06-01 10:00:00+02:00"]).to_datetime()
    assert (y.zone, int(y.hour.compute()[0]), int(y.to_zone("UTC").hour.compute()[0])) == ("+02:00", 10, 8)


@pytest.mark.parametrize("texts", [["1.200 €", "3.500 €"], ["-1.000", "7", None], ["(12.345)", "999"]])
def test_points_that_may_be_between_thousands_are_told(texts: list[Any]) -> None:
    x = column(texts)
    for read in (x.to_float, lambda: x.astype(float)):
        with pytest.warns(FileContentWarning, match=r"may have points.*to_float\(thousands=\".\"\) reads"):
            read()
    bare = [0 if text is None else int(re.sub(r"[^\d]", "", text)) for text in texts]
    found = np.abs(np.nan_to_num(x.to_float(thousands=".").compute()))
    assert found.tolist() == bare
    whole = x.to_int(thousands=".")
    assert np.abs(np.asarray(whole.fillna(0))).tolist() == bare
    x.to_float(decimal=".")  # without a warning, which would be an error


def test_whole_numbers_of_points_are_told_and_other_points_are_not() -> None:
    with pytest.warns(FileContentWarning, match="1.000.*read as 1.0"):
        assert column(["1.000"]).to_int().compute().tolist() == [1]
    with pytest.raises(DTypeError, match=r'thousands="\." reads'):
        column(["1.234"]).to_int()
    for text in ("0.125", "1.25", "1234.567", "1.2345"):
        assert column([text, "1.200"]).to_float().compute().tolist() == [float(text), 1.2]
