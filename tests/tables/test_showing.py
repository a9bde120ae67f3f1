"""Rows that a table shows: fetched where they are not there, unless that takes long; nothing shown raises."""

from __future__ import annotations

import re
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import matnb as mn
from matnb.io.durations import PER_SECOND
from matnb.session import current
from matnb.tables import showing
from matnb.tables.showing import duration_text

N = 60

pytestmark = pytest.mark.session("two workers")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "zone": np.where(np.arange(N) % 3 == 0, "JFK", "LGA"),
            "fare": np.arange(N) / 4,
            "people": pd.array([None if one % 7 == 0 else one for one in range(N)], "Int64"),
            "ride": pd.to_timedelta(np.arange(N) * 61, unit="s"),
            "at": pd.date_range("2024-03-31", periods=N, freq="h", tz="Europe/Berlin"),
        }
    )


def rows_of(text: str) -> list[str]:
    """Return the first words of the rows of a table's text."""
    return [line.split()[0] for line in text.splitlines()[3:]]


@pytest.mark.parametrize(
    "derive",
    [
        lambda t: t[t["fare"] > 3],
        lambda t: t[30:],
        lambda t: t[["zone", "ride"]],
        lambda t: t.with_columns(twice=t["fare"] * 2),
        lambda t: t.dropna(),
        lambda t: t[t["fare"] > 3][["zone"]].with_columns(n=np.arange(47)),
        lambda t: t[t["fare"] < 0],
        lambda t: mn.concat([t, t]),
        lambda t: mn.concat([t, t]).head(61),
    ],
)
def test_whatever_is_made_of_a_table_shows_its_rows(frame: pd.DataFrame, derive: object) -> None:
    made = derive(mn.table(frame))  # type: ignore[operator]  # a function
    zones = np.asarray(made["zone"]).tolist()
    wanted = zones if len(zones) <= 60 else [*zones[:5], "...", *zones[-5:]]
    bundle = made._repr_mimebundle_()
    assert rows_of(bundle["text/plain"]) == wanted
    assert rows_of(repr(derive(mn.table(frame)))) == wanted  # type: ignore[operator]
    assert bundle["text/html"].count("<tr>") == len(wanted) + 2
    assert "not computed" not in str(bundle)


def test_columns_show_their_values(frame: pd.DataFrame) -> None:
    late = mn.table(frame)
    late = late[late["fare"] > 14]
    assert repr(late["zone"]) == "'JFK', 'LGA', 'LGA'\ncolumn 'zone' of 3 x text"
    assert repr(late["people"]).startswith("57, 58, 59\n")
    assert repr(late["ride"]).startswith("57m 57s, 58m 58s, 59m 59s\n")
    assert repr(late["at"]).startswith("2024-04-02 10:00:00+02:00, ")
    assert repr(late[late["fare"] > 99]["zone"]) == "column 'zone' of 0 x text"


def test_what_takes_long_is_not_computed_unasked(
    frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mn.table(frame)
    (halved, *_) = mn.iterate(lambda x: x / 2, table["fare"], max_iterations=3)
    looped = table.with_columns(halved=halved)
    assert "rows not computed, since a loop runs for them: head() shows some" in repr(looped)
    assert "since a loop runs" in looped._repr_mimebundle_()["text/html"]
    assert not looped["halved"].facts().stored
    assert rows_of(repr(looped.head()))[0] == "JFK"
    halved.persist()
    assert rows_of(repr(table.with_columns(halved=halved)))[0] == "JFK"

    monkeypatch.setattr(showing, "_TOLD_BYTES", 100)
    other = table[table["fare"] > 2]
    assert repr(other).splitlines()[-1].endswith("were gone through for these rows")
    assert repr(other) == repr(other)
    monkeypatch.setattr(showing, "MOST_BYTES", 200)
    large = table[table["fare"] > 1]
    assert "are gone through for them: head() shows some" in repr(large)
    assert "are gone through for them" in repr(large["zone"])


def test_the_bytes_of_products_count_their_terms() -> None:
    thin, thick = (mn.ones((100, inner)) @ mn.ones((inner, 100)) for inner in (1, 1000))
    assert showing.work_bytes([thick.expression]) > 10 * showing.work_bytes([thin.expression])
    assert showing.work_bytes([thick.persist().expression]) == 0


def test_nothing_that_is_shown_raises(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: mn.Table) -> None:
        raise ZeroDivisionError("division by zero\nand more")

    table = mn.table(frame)
    later = table[table["fare"] > 1]
    monkeypatch.setattr(mn.Table, "_look", fail)
    assert repr(later).splitlines()[-1] == "rows not computed: division by zero"
    assert repr(later["zone"]) == "column 'zone' of 55 x text; rows not computed: division by zero"
    assert "division by zero" in later._repr_mimebundle_()["text/html"]
    assert repr(mn.Table({})).startswith("0 rows x 0 columns")


def test_what_is_shown_starts_no_session(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    table = mn.table(frame)
    made = table[table["fare"] > 1]
    monkeypatch.setattr(current._process, "session", None)
    assert "rows not computed, since no session is running: head() shows some" in repr(made)
    monkeypatch.undo()
    assert rows_of(repr(made))[0] == "LGA"


def test_pivots_are_seen_under_their_labels(frame: pd.DataFrame) -> None:
    table = mn.table(frame).with_columns(hour=mn.table(frame)["at"].hour)
    flows = table.pivot("zone", "hour", "fare")
    assert flows.rows.tolist() == flows.row_labels.tolist() == ["JFK", "LGA"]
    assert flows.columns.tolist() == list(range(24))
    lines = repr(flows).splitlines()
    ends = [*range(6), *range(18, 24)]
    assert lines[0].split() == [*map(str, ends[:6]), "...", *map(str, ends[6:])]
    wanted = frame.pivot_table("fare", "zone", frame["at"].dt.hour, "sum", fill_value=0.0).to_numpy()[:, ends]
    assert [line.split()[0] for line in lines[1:3]] == ["JFK", "LGA"]
    assert [line.split()[7] for line in lines[1:3]] == ["..."] * 2
    found = [[float(one) for one in line.split()[1:] if one != "..."] for line in lines[1:3]]
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    html = flows.persist()._repr_mimebundle_()["text/html"]
    assert ">JFK</th>" in html
    assert html.count("<td") > 24
    turned = repr(table.pivot("at", "ride").T).splitlines()
    assert turned[0].split("  ")[-1].strip() == str(frame["at"].iloc[-1])
    assert [line.split("  ")[0] for line in turned[1:3]] == ["0s", "1m 1s"]
    assert turned[5].split() == ["..."] * 14
    assert turned[9].split("  ")[0] == "59m 59s"
    few = table.pivot("zone", "hour", "fare")[:, 6:18]  # all of them fit
    assert repr(few).splitlines()[0].split() == [*map(str, range(6, 18))]
    assert repr(table[table["fare"] < 0].pivot("zone", "hour")).startswith("DistArray 0 x 0")


def test_a_column_has_a_row_for_each_value(frame: pd.DataFrame) -> None:
    table = mn.table(frame)
    for name, column in table.items():
        if isinstance(column, mn.Column):
            html = column._repr_html_()
            assert html == table[[name]]._repr_mimebundle_()["text/html"]
            assert html.count("<tr>") > 10
    assert "<th" in table["zone"].str.upper()._repr_html_()


SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


@given(
    st.sampled_from(["D", "s", "ms", "us", "ns"]),
    st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-99999, 99999),
)
def test_the_parts_of_a_duration_add_up(unit: str, count: int) -> None:
    text = duration_text(count, unit)
    parts = re.fullmatch(r"(-?)((?:\d+(?:\.\d+)?[dhms] ?)+)", text)
    assert parts is not None
    total = sum(Fraction(one[:-1]) * SECONDS[one[-1]] for one in parts[2].split())
    assert (-total if parts[1] else total) == count * Fraction(
        86_400 if unit == "D" else 1, PER_SECOND.get(unit, 1)
    )
    fields = [one[-1] for one in parts[2].split()]
    assert "dhms".find("".join(fields)) >= 0  # each unit once, from coarse to fine, none left out between
    assert all(Fraction(one[:-1]) < 60 for one in parts[2].split()[1:])
