"""What tables take from frames and text keeps its meaning: indexes, decimals, durations, offsets."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, FileContentWarning, FileFormatError, OptionError
from matnb.io.durations import duration_texts, durations_of

pytestmark = pytest.mark.session("interpreter")


@pytest.mark.parametrize(
    ("index", "named"),
    [
        (pd.Index(["a", "b"]), {"index": ["a", "b"]}),
        (pd.Index([0.5, 1.5]), {"index": [0.5, 1.5]}),
        (
            pd.to_datetime(["2020-01-01", "2020-01-02"]),
            {"index": [datetime.datetime(2020, 1, day) for day in (1, 2)]},
        ),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), {"level_0": ["a", "b"], "level_1": [1, 2]}),
        (pd.Index(["a", "b"], name="who"), {"who": ["a", "b"]}),
        (pd.Index([7, 3], name="id"), {"id": [7, 3]}),
        (pd.RangeIndex(4, 8, 2), {}),
    ],
)
def test_the_index_of_a_frame_is_not_lost(index: pd.Index, named: dict[str, list[Any]]) -> None:
    table = mn.table(pd.DataFrame({"x": [1, 2]}, index=index))
    assert table.to_arrow().to_pydict() == {"x": [1, 2], **named}


def test_an_index_that_counts_rows_is_left_out_with_a_word() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 4]})
    for moved in (
        frame.loc[[3, 0, 1]],
        frame[frame.x.isin([1, 2, 4])],
        frame.set_index(pd.Index([5, 5, 5, 5])),
    ):
        with pytest.warns(FileContentWarning, match="reset_index"):
            assert mn.table(moved).columns == ("x",)
        assert mn.table(moved.reset_index(drop=True)).columns == ("x",)
        assert mn.table(moved.reset_index()).columns == ("index", "x")


def test_a_named_index_that_is_a_range_is_a_column() -> None:
    for start, stop, step in ((0, 3, 1), (5, 8, 1), (9, 3, -2)):
        frame = pd.DataFrame({"v": [1, 2, 3]}, index=pd.RangeIndex(start, stop, step, name="k"))
        pd.testing.assert_frame_equal(mn.table(frame).to_pandas()[["k", "v"]], frame.reset_index())


def test_an_index_is_kept_where_columns_are_taken_one_by_one() -> None:
    for column in (np.array([2**63 + 1, 5], object), pd.arrays.SparseArray([0, 7])):
        table = mn.table(pd.DataFrame({"v": column}, index=["a", "b"]))
        assert table["v"].compute().tolist() == np.asarray(column).tolist()
        assert table["index"].compute().tolist() == ["a", "b"]
        with pytest.warns(FileContentWarning, match="the index of the frame"):
            mn.table(pd.DataFrame({"v": column}, index=[7, 9]))


@pytest.mark.parametrize("names", [["a", "a"], [1, "1"]])
def test_columns_of_one_name_are_refused(names: list[Any]) -> None:
    with pytest.raises(DTypeError, match="2 columns named"):
        mn.table(pd.DataFrame([[1, 2]], columns=names))


def test_numbers_beyond_64_bits_are_no_column() -> None:
    for values in (np.ones(2, np.longdouble), mn.asarray([1j, 2]), np.array([1, 2j])):
        with pytest.raises(DTypeError, match="column 'x'"):
            mn.table({"x": values})


def test_times_in_descriptions_and_digits_in_texts_are_not_cut() -> None:
    shown = repr(
        mn.table(
            {
                "n": pd.to_timedelta([1, 10**15], unit="ns"),
                "w": pd.to_datetime([1, 10**15]).tz_localize("Asia/Kolkata"),
            }
        ).describe()
    )
    assert "1970-01-01 00:00:00.000000001+05:30" in shown
    assert "0.000000001s" in shown
    assert "9" * 40 in repr(mn.table({"id": ["9" * 40]}))
    assert "2020-01-01 10:00:00 a..." in repr(mn.table({"s": ["2020-01-01 10:00:00 and a long remark"]}))


def test_decimals() -> None:
    ids = [Decimal(1_577_836_800_000_000_001), None, Decimal(3)]
    table = mn.table({"x": ids})
    assert table.to_arrow().to_pydict() == {"x": [1_577_836_800_000_000_001, None, 3]}
    with pytest.warns(FileContentWarning, match="'x' are taken as floats"):
        assert mn.table({"x": [Decimal("1.5"), Decimal("2.25")]})["x"].compute().tolist() == [1.5, 2.25]
    with pytest.raises(DTypeError, match="'x' has whole numbers beyond 64 bits"):
        mn.table({"x": [Decimal(2**64)]})


def test_decimals_of_files(tmp_path: Path) -> None:
    for value in (2**40, 2**62 + 1, 2**64 - 1):
        pq.write_table(
            pa.table({"x": pa.array([Decimal(value), None], pa.decimal128(38, 0))}), tmp_path / "a.parquet"
        )
        assert mn.load(tmp_path / "a.parquet").to_arrow().to_pydict() == {"x": [value, None]}
    pq.write_table(
        pa.table({"x": pa.array([Decimal(2**70 + 1)], pa.decimal128(38, 0))}), tmp_path / "a.parquet"
    )
    with pytest.raises(FileFormatError, match="'x' has whole numbers beyond 64 bits"):
        mn.load(tmp_path / "a.parquet")
    found = mn.load(tmp_path / "a.parquet", dtype={"x": "text"})
    assert found["x"].compute().tolist() == [str(2**70 + 1)]


# Durations


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@settings(max_examples=40, deadline=None)
@example("ns", [3_125_000, 3_125_001, 10**9])
@given(st.sampled_from(["s", "ms", "us", "ns"]), st.lists(st.integers(-(2**63) + 1, 2**63 - 1), max_size=4))
def test_durations_are_written_and_read_as_pandas_does(unit: str, counts: list[int]) -> None:
    most = (2**63 - 1) // (UNITS[unit] // UNITS["us"] if unit in ("s", "ms") else 1)
    counts = [count % most * (1 if count > 0 else -1) for count in counts]
    texts = duration_texts(np.array([*counts, -(2**63)], np.int64), unit)
    assert texts[-1] is None
    small = [one for one in counts if abs(one) * UNITS[unit] < 2**62]
    assert duration_texts(np.array(small, np.int64), unit) == [str(pd.Timedelta(one, unit)) for one in small]
    again = durations_of(pa.array(texts, pa.string()))
    assert again is not None
    found = again.cast(pa.int64()).to_pylist()
    ratio = UNITS[unit] // (1 if again.type.unit == "ns" else UNITS["us"]) or 1
    if unit == "ns" and again.type.unit == "us":
        found = [None if one is None else one * 1000 for one in found]
    assert found == [*(one * ratio for one in counts), None]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1153, -5, "NaT", 0, 10**7], "m8[s]"),
        np.array([1_153_000_001, -1, "NaT"], "m8[us]"),
        np.array([1, -1, "NaT", 2**62], "m8[ns]"),
        np.array([86_400_000, 5], "m8[ms]"),
    ],
)
def test_durations_from_file_to_file(values: np.ndarray, tmp_path: Path) -> None:
    table = mn.table({"d": values, "n": np.arange(len(values))})
    for suffix in ("csv", "parquet", "feather"):
        mn.save(table, tmp_path / f"a.{suffix}")
        again = mn.load(tmp_path / f"a.{suffix}")["d"]
        assert again.word == "timedelta"
        np.testing.assert_array_equal(again.compute(), values)
    shown = [text.strip().rpartition("  ")[0].strip() for text in repr(table).splitlines()[3:]]
    assert [pd.Timedelta(one.replace("d", "D")) for one in shown if one] == [
        pd.Timedelta(one) for one in values if not np.isnat(one)
    ]


def test_no_number_or_time_is_cut_where_it_is_shown() -> None:
    shown = repr(mn.table({"d": np.array([1153], "m8[s]").astype("m8[us]"), "t": np.array([1], "M8[ns]")}))
    assert "19m 13s" in shown
    assert "1970-01-01 00:00:00.000000001" in shown
    assert "..." not in shown
    longest = mn.table({"d": np.array([-(2**63) + 1], "m8[ns]")}).describe()["d"].compute().tolist()
    assert longest[1] == "-106751d 23h 47m 16.854775807s"


def test_what_has_no_length_is_no_duration() -> None:
    column = mn.table({"d": np.array([1], "m8[s]"), "t": np.array(["2020-01-01"], "M8[s]")})
    for length in (np.timedelta64(1, "M"), np.timedelta64(1, "Y"), np.timedelta64(5)):
        with pytest.raises(DTypeError, match="no length in seconds"):
            column["t"] + length
        with pytest.raises(DTypeError, match="no length in seconds"):
            column["d"] == length  # noqa: B015


# Offsets in text files


@pytest.mark.parametrize("offset", ["+02:00", "-0330", "+05", "Z", "+00:00"])
def test_offsets_of_text_files_are_zones(offset: str, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(f"w,n\n2020-06-02 00:00:10{offset},1\n,2\n2020-07-02T10:00:00{offset},3\n")
    table = mn.load(path)
    expected = pd.to_datetime(
        pd.Series([f"2020-06-02 00:00:10{offset}", None, f"2020-07-02 10:00:00{offset}"])
    )
    assert table["w"].hour.compute()[[0, 2]].tolist() == [0, 10]
    assert table["w"].day.compute()[[0, 2]].tolist() == [2, 2]
    assert (table["w"] == expected[0]).compute().tolist() == [True, False, False]
    assert (table["w"].zone == "UTC") == (offset in ("Z", "+00:00"))
    assert "2020-06-02 00:00:10" in repr(table)


def test_several_offsets_of_a_text_file_are_told(tmp_path: Path) -> None:
    when = pd.Series(pd.date_range("2020-03-28", periods=60, freq="h", tz="Europe/Berlin"))
    mn.save(mn.table({"w": when}), tmp_path / "a.csv")
    with pytest.warns(FileContentWarning, match=r"'w' have the offsets \+01:00, \+02:00 and are read as UTC"):
        table = mn.load(tmp_path / "a.csv")
    assert table["w"].zone == "UTC"
    clocks = table["w"].to_zone("Europe/Berlin")
    assert clocks.hour.compute().tolist() == when.dt.hour.tolist()
    early = pd.Series(pd.to_datetime(["1880-06-01"])).dt.tz_localize(
        "Europe/Berlin"
    )  # an offset with seconds
    mn.save(mn.table({"w": early}), tmp_path / "b.csv")
    assert (mn.load(tmp_path / "b.csv")["w"] == early[0]).compute().all()


def test_labels_that_are_missing_are_counted() -> None:
    table = mn.table({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", None, "b", None], "z": [1, None, 0, 1]})
    X = table.to_matrix(["x"])
    for labels, count, first in (
        (table["y"], 2, 1),
        (table["z"], 1, 1),
        (np.array(["a", "b", np.nan, "b"], object), 1, 2),
    ):
        for model in (mn.learn.LogisticRegression(), mn.learn.SGDClassifier()):
            with pytest.raises(
                OptionError, match=rf"y\[{first}\] is missing \(.*\), as are {count} of 4 labels"
            ):
                model.fit(X, labels)
    kept = table.dropna(["y"])
    mn.learn.LogisticRegression().fit(kept.to_matrix(["x"]), kept["y"])


@pytest.mark.parametrize("unit", ["h", "m", "W", "ps"])
@pytest.mark.parametrize("stored", ["D", "s", "us"])
def test_columns_have_units_that_files_have_too(unit: str, stored: str, tmp_path: Path) -> None:
    days = np.array(["2020-01-01", "2020-03-05", "NaT"], f"M8[{stored}]")
    moment = np.datetime64("2020-01-01T05", "m" if unit == "ps" else unit)
    length = np.timedelta64(5, unit)
    t = mn.table({"d": days})
    made = {
        "less": (t["d"] - moment, days.astype("M8[us]") - moment.astype("M8[us]")),
        "later": (t["d"] + length, days.astype("M8[ns]") + length.astype("m8[ns]")),
        "back": (t["d"] - moment - length, days.astype("M8[ns]") - moment - length.astype("m8[ns]")),
        "each": (t["d"].to_unit("h"), days.astype("M8[h]").astype("M8[ns]")),
    }
    whole = mn.table({name: column for name, (column, _) in made.items()})
    mn.save(whole, tmp_path / "a.parquet")
    whole.describe(), whole.head(2), whole.to_pandas()
    for table in (whole, mn.load(tmp_path / "a.parquet")):
        for name, (_, expected) in made.items():
            found = table[name]
            assert found.unit in ("D", "s", "ms", "us", "ns")
            np.testing.assert_array_equal(found.compute().astype(expected.dtype), expected)
    ratio = (t["d"] - moment) / length
    expected = made["less"][1].astype("m8[s]").astype(float) / (length / np.timedelta64(1, "s"))
    expected[2] = np.nan
    np.testing.assert_allclose(ratio.compute(), expected)


def test_hours_of_a_zone_keep_it() -> None:
    series = pd.Series(["2020-06-01T22:30", None, "2020-10-25T01:59"], dtype="datetime64[us, UTC]")
    column = mn.table({"when": series.dt.tz_convert("Asia/Kolkata")})["when"]
    for unit in ("h", "m"):
        found = column.to_unit(unit)
        assert (found.zone, found.unit) == ("Asia/Kolkata", "s")
        rounded = series.dt.tz_convert("Asia/Kolkata").dt.floor("h" if unit == "h" else "min")
        assert pd.Series(found.compute()).dropna().tolist() == rounded.dropna().tolist()
