"""Times in steps have pandas' bins and labels, of its Grouper and of dt.floor."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn

BERLIN = "Europe/Berlin"

pytestmark = pytest.mark.session("interpreter")

LETTERS = ["D", "h", "min", "s", "ms", "W", "MS", "ME", "QS", "QE", "YS", "YE"]
ANCHORED = ["W-SAT", "W-WED", "QE-FEB", "QS-FEB", "YE-MAR", "YS-APR"]


@given(
    freq=st.builds(
        "{}{}".format, st.sampled_from([1, 2, 3, 5, 7, 24, 36]), st.sampled_from(LETTERS + ANCHORED)
    ),
    start=st.datetimes(datetime.datetime(2019, 1, 1), datetime.datetime(2025, 1, 1)),
    parts=st.lists(st.floats(0, 1), min_size=1, max_size=6),
    unit=st.sampled_from(["ms", "us", "ns"]),
    zone=st.sampled_from([None, None, BERLIN, "Asia/Kolkata"]),
)
@example(freq="2W", start=datetime.datetime(2023, 1, 1), parts=[0, 0.01, 0.5], unit="us", zone=None)
@example(freq="5h", start=datetime.datetime(2023, 1, 1, 7), parts=[0, 0.5, 1], unit="us", zone=BERLIN)
@settings(max_examples=25, deadline=None)
def test_bins_are_those_of_a_grouper(
    freq: str, start: datetime.datetime, parts: list[float], unit: str, zone: str | None
) -> None:
    seconds = {"s": 3600, "min": 10**5, "ms": 1}.get(freq.lstrip("0123456789"), 6 * 10**7)
    when = pd.Series([start + datetime.timedelta(seconds=seconds * part) for part in [0, *parts]])
    when = when.astype(f"datetime64[{unit}]")
    when = when if zone is None else when.dt.tz_localize("UTC").dt.tz_convert(zone)
    frame = pd.DataFrame({"when": when, "v": np.arange(len(when))})
    found = mn.table(frame).groupby("when", freq=freq).agg(v=("v", "sum"), n=("v", "size"))
    expected = frame.groupby(pd.Grouper(key="when", freq=freq)).agg(v=("v", "sum"), n=("v", "size"))
    expected = expected[expected["n"] > 0]
    assert list(map(pd.Timestamp, found["when"].compute())) == expected.index.tolist()
    assert [found[name].compute().tolist() for name in ("v", "n")] == [
        expected["v"].tolist(),
        expected["n"].tolist(),
    ]


@given(
    freq=st.builds("{}{}".format, st.sampled_from([1, 2, 3, 5, 7, 24, 2000]), st.sampled_from(LETTERS[:5])),
    when=st.lists(st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2025, 1, 1)), min_size=1),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
)
@settings(max_examples=20, deadline=None)
def test_times_are_rounded_down_as_by_pandas(freq: str, when: list[datetime.datetime], unit: str) -> None:
    times = pd.Series(np.array(when, f"M8[{unit}]"))
    found = mn.table({"when": times})["when"].dt.floor(freq).compute()
    assert found.astype("M8[ns]").tolist() == times.astype("M8[ns]").dt.floor(freq).to_numpy().tolist()
    days = mn.table({"when": times.to_numpy().astype("M8[D]")})["when"].dt.floor("48h").compute()
    assert pd.Series(days).astype("M8[ns]").tolist() == times.astype("M8[ns]").dt.floor("48h").tolist()


def test_ends_of_months_quarters_and_years() -> None:
    table = mn.table({"at": np.array(["2023-01-31T23:59", "2023-05-02", "2024-02-10"], "M8[s]")})
    for freq, last in (
        ("ME", ["2023-01-31", "2023-05-31", "2024-02-29"]),
        ("Q", ["2023-03-31", "2023-06-30", "2024-03-31"]),
        ("YE", ["2023-12-31", "2024-12-31"]),
        ("month", ["2023-01-01", "2023-05-01", "2024-02-01"]),
    ):
        found = table.groupby("at", freq=freq).size()["at"].compute()
        assert found.astype("M8[D]").astype(str).tolist() == last
