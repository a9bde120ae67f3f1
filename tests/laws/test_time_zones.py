"""Times with a zone are instants that show what its clocks do, as in pandas, wherever they come from."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, FileContentWarning, OptionError, ShapeError
from matnb.tables.zones import instants_of, offsets_from_utc

# With summer time on either side of the equator and of zero, with half hours, changes at midnight and none.
ZONES = [
    *("Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"),
    *("Pacific/Apia", "Africa/Casablanca", "UTC", "+01:00", "-09:30", "Atlantic/Azores", "America/Havana"),
]
FIELDS = ["year", "month", "day", "hour", "minute", "second", "weekday"]
SECONDS = st.integers(-5_000_000_000, 7_000_000_000)  # 1811 to 2191

pytestmark = pytest.mark.session("interpreter")


def zoned(seconds: list[int | None], zone: str, unit: str = "us") -> pd.Series:
    """Return pandas' column of instants, given in seconds of UTC."""
    counts = [np.datetime64("NaT") if one is None else np.datetime64(one, "s") for one in seconds]
    return pd.Series(np.array(counts, f"M8[{unit}]")).dt.tz_localize("UTC").dt.tz_convert(zone)


def drawn(draw: st.DrawFn, zone: str) -> list[int]:
    # Instants at random, and some near a change of the clocks.
    near = st.integers(-8000, 8000)
    changes = [1_603_587_600, 1_585_443_600, 1_604_210_400, 1_582_945_200, 1_325_239_200, 1_570_287_600]
    return draw(
        st.lists(st.one_of(SECONDS, st.builds(int.__add__, st.sampled_from(changes), near)), max_size=6)
    )


@st.composite
def instants(draw: st.DrawFn) -> tuple[str, list[int | None]]:
    zone = draw(st.sampled_from(ZONES))
    return zone, [*drawn(draw, zone), None, 0]


def test_clocks_of_berlin() -> None:
    when = pd.Series(pd.to_datetime(["2020-06-02 00:00:10", None, "2021-01-01 00:30:00"])).dt.tz_localize(
        "Europe/Berlin"
    )
    table = mn.table(pd.DataFrame({"w": when, "n": [1, 2, 3]}))
    w = table["w"]
    assert w.hour.compute().tolist()[::2] == [0, 0]
    assert w.day.compute().tolist()[::2] == [2, 1]
    assert w.year.compute().tolist()[::2] == [2020, 2021]
    assert table.dtypes["w"] == w.dtype == "datetime64[us, Europe/Berlin]"
    shown = repr(table)
    assert "datetime64[us, Europe/Berlin]" in shown
    assert "2020-06-02 00:00:10+02:00" in shown
    assert "2021-01-01 00:30:00+01:00" in repr(w)
    assert (w >= "2020-06-02").compute().tolist() == [True, False, True]
    assert (w == "2020-06-01T22:00:10Z").compute().tolist() == [True, False, False]
    assert (w == when[0]).compute().tolist() == [True, False, False]
    days = mn.table({"d": w.truncate("day"), "n": table["n"]}).groupby("d").size()
    assert [str(one) for one in days["d"].compute()] == [
        "2020-06-02 00:00:00+02:00",
        "2021-01-01 00:00:00+01:00",
    ]
    assert table.groupby("n")["w"].max().dtypes["w"] == "datetime64[us, Europe/Berlin]"
    assert table.describe()["w"].compute().tolist()[3] == "2020-06-02 00:00:10+02:00"
    assert table.to_pandas()["w"].equals(when.astype(table.to_pandas()["w"].dtype))
    first = np.asarray(w)[0]
    assert first == datetime.datetime(2020, 6, 2, 0, 0, 10, tzinfo=ZoneInfo("Europe/Berlin"))
    with pytest.raises(DTypeError, match="has no zone"):
        np.asarray(w, "M8[us]")


@settings(max_examples=12, deadline=None)
@given(instants())
def test_fields_and_steps_are_those_of_pandas(given_: tuple[str, list[int | None]]) -> None:
    zone, seconds = given_
    frame = zoned(seconds, zone)
    column = mn.table({"w": frame})["w"]
    known = frame.notna().to_numpy()
    for name in FIELDS:
        wanted = getattr(frame.dt, "day_of_week" if name == "weekday" else name).to_numpy(float)
        np.testing.assert_array_equal(np.asarray(getattr(column, name)), wanted, err_msg=f"{zone} {name}")
    assert [
        one for one in np.asarray(column) if one is not None
    ] == frame.dropna().dt.to_pydatetime().tolist()
    plain = frame.dt.tz_localize(None)
    np.testing.assert_array_equal(np.asarray(column.to_zone(None)), plain.to_numpy().astype("M8[us]"))
    for unit, period in (("day", "D"), ("month", "M"), ("year", "Y"), ("hour", "h")):
        found = column.truncate(unit)
        clocks = found.to_zone(None).compute()[known].astype("M8[s]")
        start = plain.dropna().dt.to_period(period).dt.start_time.to_numpy().astype("M8[s]")
        # Where clocks leave the start out, or show an hour in part, it is the first that they show after.
        late = clocks - start
        assert (late >= np.timedelta64(0)).all()
        assert (late <= (np.timedelta64(24, "h") if unit != "hour" else np.timedelta64(59, "m"))).all()
        assert ((late == np.timedelta64(0)) | (late % np.timedelta64(15, "m") == np.timedelta64(0))).all()
        assert (found <= column).compute()[known].all()


@settings(max_examples=15, deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(ZONES), st.lists(SECONDS, min_size=1, max_size=5))
def test_two_zones_are_compared_and_subtracted_as_instants(one: str, other: str, seconds: list[int]) -> None:
    moved = [second + 3600 * place for place, second in enumerate(seconds)]
    left, right = zoned([*seconds], one), zoned([*moved], other, "ms")
    table = mn.table({"a": left, "b": right})
    took = (right - left).dt.total_seconds().to_numpy()
    np.testing.assert_array_equal(np.asarray((table["b"] - table["a"]).total_seconds()), took)
    assert (table["a"] == table["b"]).compute().tolist() == (left == right).tolist()
    assert (table["a"] < table["b"]).compute().tolist() == (left < right).tolist()
    assert (table["a"].to_zone(other) == table["a"]).compute().all()
    later = (table["a"] + np.timedelta64(90, "m")).compute().tolist()
    assert later == (left + pd.Timedelta(minutes=90)).dt.to_pydatetime().tolist()


def test_strings_are_times_of_the_zone_unless_they_have_an_offset() -> None:
    frame = zoned([1_590_000_000 + 1000 * place for place in range(5)], "America/New_York")
    column = mn.table({"w": frame})["w"]
    for text in ("2020-05-20 14:56:40", "2020-05-20T15:00", "2020-05-20", "2020"):
        limit = pd.Timestamp(text, tz="America/New_York")
        assert (column >= text).compute().tolist() == (frame >= limit).tolist()
        assert (column >= limit).compute().tolist() == (frame >= limit).tolist()
        assert (column >= limit.tz_convert("Asia/Tokyo").to_pydatetime()).compute().tolist() == (
            frame >= limit
        ).tolist()
    for text in ("2020-05-20T18:56:40Z", "2020-05-20 20:56:40+02:00", "2020-05-20T13:26:40-0530"):
        assert (column == text).compute().tolist() == (frame == pd.Timestamp(text)).tolist()
        assert column.isin([text]).compute().tolist() == (frame == pd.Timestamp(text)).tolist()
    plain = mn.table({"p": frame.dt.tz_localize(None)})["p"]
    for call in (
        lambda: plain == column,
        lambda: plain < "2020-01-01T00:00Z",
        lambda: plain - frame[0],
        lambda: column - plain,
    ):
        with pytest.raises(DTypeError, match="zone"):
            call()
    with pytest.raises(OptionError, match=r"time zone 'Europe/Berln'.*did you mean 'Europe/Berlin'"):
        column.to_zone("Europe/Berln")


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata", "-03:00", "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_zones_are_kept_from_file_to_file(zone: str, unit: str, tmp_path: Path) -> None:
    seconds = [1_590_000_000, None, 1_610_000_000]
    arrow = pa.table(
        {"w": pa.array(seconds, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp(unit, zone))}
    )
    hours = zoned(seconds, zone).dt.hour.tolist()
    made = [arrow, arrow.to_pandas(), {"w": arrow.column("w")}]
    if not zone.startswith("-"):
        made.append(pl.from_arrow(arrow))
    for data in made:
        table = mn.table(data)
        assert table["w"].zone in (zone, "UTC" if zone == "UTC" else zone)
        np.testing.assert_array_equal(np.asarray(table["w"].hour), hours)
    for suffix in ("parquet", "arrow", "feather"):
        mn.save(table, tmp_path / f"a.{suffix}")
        again = mn.load(tmp_path / f"a.{suffix}")
        assert again["w"].zone == table["w"].zone
        np.testing.assert_array_equal(np.asarray(again["w"].hour), hours)


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "Asia/Kolkata", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["us", "ns"])
@pytest.mark.filterwarnings("ignore::matnb.errors.FileContentWarning")  # Berlin's two offsets
def test_instants_come_back_from_csv(zone: str, unit: str, tmp_path: Path) -> None:
    times = zoned([1_590_000_000, None, 1_610_000_000, -2_000_000_000], zone, unit)
    times += pd.to_timedelta([1, 2, 999, 1001], unit=unit)
    mn.save(mn.table({"w": times, "v": [1, 2, 3, 4]}), tmp_path / "a.csv")
    again = mn.load(tmp_path / "a.csv").to_pandas()["w"]
    pd.testing.assert_series_equal(again.dt.tz_convert("UTC"), times.dt.tz_convert("UTC"), check_names=False)


def test_the_first_instant_in_nanoseconds_may_come_late(tmp_path: Path) -> None:
    lines = ["w", *["2024-01-01 10:00:00Z"] * 20_000, "2024-01-01 10:00:00.123456789+0100"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    last = mn.load(tmp_path / "a.csv").to_pandas()["w"].iloc[-1]
    assert last == pd.Timestamp("2024-01-01 09:00:00.123456789Z")


def test_tables_of_two_zones_in_two_files(tmp_path: Path) -> None:
    for number, zone in enumerate(("Europe/Berlin", "Asia/Tokyo")):
        mn.save(mn.table({"w": zoned([1_590_000_000 + number], zone)}), tmp_path / f"{number}.parquet")
    table = mn.load(tmp_path)
    assert table["w"].zone == "UTC"
    assert table["w"].second.compute().tolist() == [0, 1]
    mn.save(mn.table({"w": np.array(["2020-01-01"], "M8[us]")}), tmp_path / "2.parquet")
    with pytest.raises(mn.errors.FileFormatError, match="'w' holds datetime64"):
        mn.load(tmp_path)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "Australia/Lord_Howe"])
def test_rules_of_today_go_on_after_their_table_ends(zone: str) -> None:
    years = np.arange(2030, 9000, 171)
    clock = ZoneInfo(zone)
    times = [datetime.datetime(int(year), month, 15, 12, tzinfo=clock) for year in years for month in (1, 7)]
    counts = np.array([round(one.timestamp()) for one in times])
    expected = [one.utcoffset().total_seconds() for one in times]  # type: ignore[union-attr]
    for instants_ in (counts, mn.asarray(counts)):
        np.testing.assert_array_equal(np.asarray(offsets_from_utc(instants_, "s", zone)), expected)
    walls = counts + np.array(expected, np.int64)
    np.testing.assert_array_equal(instants_of(walls, "s", zone), counts)


# Around a change of the clocks of Berlin and New York, in minutes of the first.
CHANGES = {
    "Europe/Berlin": ["2024-03-31T01:00", "2024-10-27T01:30", "2024-10-27T02:10"],
    "America/New_York": ["2024-03-10T01:00", "2024-11-03T00:30", "2024-11-03T01:10"],
    "Australia/Lord_Howe": [
        "2024-04-07T01:00"
    ],  # set forward by half an hour, which pandas takes for a whole
}


@st.composite
def walls(draw: st.DrawFn) -> tuple[str, pd.Series]:
    zone = draw(st.sampled_from(sorted(CHANGES)))
    start = np.datetime64(draw(st.sampled_from(CHANGES[zone])))
    minutes = draw(st.lists(st.one_of(st.none(), st.integers(0, 130)), min_size=1, max_size=6))
    times = [np.datetime64("NaT") if one is None else start + np.timedelta64(one, "m") for one in minutes]
    return zone, pd.Series(np.array(times, f"M8[{draw(st.sampled_from(['s', 'us', 'ns']))}]"))


@settings(max_examples=60, deadline=None)
@given(
    walls(),
    st.sampled_from(["raise", "infer", "NaT", True, False, "rows"]),
    st.sampled_from(["raise", "shift_forward", "shift_backward", "NaT", datetime.timedelta(hours=1)]),
)
@example(
    (
        "Europe/Berlin",
        pd.Series(np.array(["2024-10-27T02:30", "2024-10-27T02:45", "2024-10-27T02:15"], "M8[s]")),
    ),
    "infer",
    "raise",
)
def test_a_zone_is_given_as_by_pandas(drawn: tuple[str, pd.Series], ambiguous: Any, nonexistent: Any) -> None:
    zone, times = drawn
    if ambiguous == "rows":
        ambiguous = np.arange(len(times)) % 2 == 0
    column = mn.table({"w": times})["w"]
    try:
        expected = times.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent=nonexistent)
    except ValueError as error:
        with pytest.raises(OptionError, match="set forward over" if "nonexist" in str(error) else "set back"):
            column.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent=nonexistent).compute()
    else:
        found = column.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent=nonexistent)
        assert found.zone == zone
        assert list(map(str, map(pd.Timestamp, found.compute()))) == list(map(str, expected))


def test_a_time_left_out_by_half_an_hour_is_shifted_as_by_arrow() -> None:
    times = pa.array([datetime.datetime(2024, 10, 6, 2, 10)], pa.timestamp("us"))
    column = mn.table({"w": times})["w"]
    for word, of_arrow in (("shift_forward", "latest"), ("shift_backward", "earliest")):
        found = column.dt.tz_localize("Australia/Lord_Howe", nonexistent=word).compute()[0]
        expected = pc.assume_timezone(times, "Australia/Lord_Howe", nonexistent=of_arrow)[0].as_py()
        assert abs(found - expected) < datetime.timedelta(milliseconds=2)


def test_what_a_zone_cannot_be_given() -> None:
    column = mn.table({"w": np.array(["2024-10-27T02:30", "2024-03-31T02:30"], "M8[s]")})["w"]
    for given_, match in (
        ({}, "2024-0.*nonexistent="),
        ({"nonexistent": "NaT"}, "2024-10-27 02:30:00 twice; .*ambiguous="),
        ({"nonexistent": "back"}, "nonexistent='back': choose"),
        ({"ambiguous": "first"}, "ambiguous='first': choose"),
        ({"ambiguous": [1, 0]}, "give booleans"),
    ):
        with pytest.raises(OptionError, match=match):
            column.dt.tz_localize("Europe/Berlin", **given_).compute()
    with pytest.raises(ShapeError, match="ambiguous="):
        column.dt.tz_localize("Europe/Berlin", ambiguous=[True])
    zoned_ = column.dt.tz_localize("UTC").dt.tz_convert("Europe/Berlin")
    for text, way in (("2024-10-27 02:30", "02:30:00+02:00"), ("2024-03-31T02:30", "03:00:00+02:00")):
        with pytest.raises(DTypeError, match=f"write an offset, as in .*{way[:8]}.{way[9:]}"):
            zoned_ > text  # noqa: B015
    assert (zoned_ > "2024-10-27 02:30+01:00").compute().tolist() == [True, False]


def test_a_time_that_clocks_leave_out_is_when_they_do_so() -> None:
    def at(*parts: Any) -> np.ndarray:
        return np.array([round(datetime.datetime(*parts, tzinfo=datetime.UTC).timestamp())])

    assert instants_of(at(2020, 3, 29, 2, 30), "s", "Europe/Berlin") == at(2020, 3, 29, 1, 0)
    assert instants_of(at(2020, 10, 25, 2, 30), "s", "Europe/Berlin") == at(2020, 10, 25, 0, 30)  # the first
    assert instants_of(at(2018, 11, 4, 0, 0), "s", "America/Sao_Paulo") == at(2018, 11, 4, 3, 0)


@pytest.mark.parametrize(
    "make", [list, lambda times: pd.Series(times, dtype=object), lambda times: np.array(times, object)]
)
def test_times_of_python_with_several_zones(make: Any) -> None:
    tokyo, berlin = (
        datetime.datetime(2020, 1, 1, tzinfo=ZoneInfo(zone)) for zone in ("Asia/Tokyo", "Europe/Berlin")
    )
    with pytest.warns(FileContentWarning, match="'w' have 2 zones"):
        column = mn.table({"w": make([tokyo, None, berlin])})["w"]
    assert column.zone == "UTC"
    assert (column == tokyo).compute().tolist() == [True, False, False]
    with pytest.raises(DTypeError, match="'w' has times with a zone and times without one"):
        mn.table({"w": make([tokyo, datetime.datetime(2020, 1, 1)])})
    with pytest.raises(DTypeError, match="'w' has times with a zone and times without one"):
        mn.table(pd.DataFrame({"w": pd.Series([tokyo, datetime.datetime(2020, 1, 1)], dtype=object)}))
    assert mn.table({"w": make([tokyo, tokyo])})["w"].zone == "Asia/Tokyo"


@pytest.mark.parametrize("written", ["+05:30", "+0530"])
@pytest.mark.parametrize("hours", ["-11", "+00", "+14"])
def test_an_offset_is_one_however_it_is_written(written: str, hours: str) -> None:
    column = mn.table({"w": zoned([1_590_000_000, None], "UTC")})["w"]
    one = column.to_zone(written)
    assert (one.zone, str(one.dtype)) == ("+05:30", "datetime64[us, +05:30]")
    found = [column.to_zone(zone) for zone in (hours, f"{hours}00", f"{hours}:00")]
    assert {one.zone for one in found} == {f"{hours}:00"}
    expected = (1_590_000_000 // 3600 + int(hours)) % 24
    assert [int(np.asarray(one.hour)[0]) for one in found] == [expected] * 3
