"""Groups as pictures: bars beside each other and lines of their own, with pandas' numbers, or a refusal."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import matnb as mn
from matnb.errors import TooLargeError, UnsupportedError

draws = np.random.default_rng(0)
ROWS = 3000
FRAME = pd.DataFrame(
    {
        "channel": draws.choice(["web", "store", "phone"], ROWS),
        "status": draws.choice(["paid", "open", "refunded"], ROWS),
        "city": draws.choice([f"c{number}" for number in range(25)], ROWS),
        "month": draws.integers(1, 13, ROWS),
        "is_new": draws.random(ROWS) < 0.5,
        "quantity": draws.integers(1, 9, ROWS),
        "price": draws.random(ROWS),
        "day": np.datetime64("2024-01-01") + draws.integers(0, 60, ROWS),
    }
)


@pytest.fixture(scope="module")
def table() -> Iterator[mn.Table]:
    with mn.start(engine="interpret"):
        yield mn.table(FRAME)
    mn.stop()


def drawn(table: Any) -> Any:
    return mn.plot(table, ax=Figure().subplots())


def bars(axes: Any) -> dict[str, dict[str, float]]:
    """Return the heights of bars by their color's name and the label that is nearest; no two overlap."""
    labels = [one.get_text() for one in axes.get_xticklabels()]
    found: dict[str, dict[str, float]] = {}
    spans = []
    for one in axes.containers:
        mine = found[one.get_label()] = {}
        for bar in one.patches:
            mine[labels[round(bar.get_x() + bar.get_width() / 2)]] = bar.get_height()
            spans.append((bar.get_x(), bar.get_x() + bar.get_width()))
    spans.sort()
    assert all(one[1] <= other[0] + 1e-9 for one, other in itertools.pairwise(spans))
    return found


@pytest.mark.parametrize(
    "keys", [["channel", "status"], ["is_new", "status"], ["channel", "month"], ["channel", "is_new"]]
)
def test_bars_of_two_keys_are_beside_each_other(table: mn.Table, keys: list[str]) -> None:
    axes = drawn(table.groupby(keys)["quantity"].sum())
    wanted = FRAME.groupby(keys)["quantity"].sum().unstack()
    wanted.index, wanted.columns = wanted.index.map(str), wanted.columns.map(str)
    assert bars(axes) == wanted.to_dict()
    assert axes.get_legend().get_title().get_text() == keys[1]
    assert (axes.get_xlabel(), axes.get_ylabel()) == (keys[0], "quantity")
    assert len({one.patches[0].get_facecolor() for one in axes.containers}) == len(wanted.columns)


def test_groups_that_were_sorted_or_chosen_are_drawn_as_well(table: mn.Table) -> None:
    sums = table.groupby(["channel", "status"])["quantity"].sum()
    wanted = FRAME.groupby(["channel", "status"])["quantity"].sum()
    for made, theirs in (
        (sums.sort_values("quantity"), wanted),
        (sums[sums["quantity"] > 1500], wanted[wanted > 1500]),
    ):
        found = {
            (one, other): height for other, its in bars(drawn(made)).items() for one, height in its.items()
        }
        assert found == theirs.to_dict()


def test_columns_of_groups_are_beside_each_other(table: mn.Table) -> None:
    wanted = FRAME.groupby("channel")[["quantity", "price"]].sum()
    found = bars(drawn(table.groupby("channel")[["quantity", "price"]].sum()))
    assert found["quantity"] == wanted["quantity"].to_dict()
    assert found["price"] == pytest.approx(wanted["price"].to_dict())


@pytest.mark.parametrize("key", ["month", "day"])
def test_each_value_of_a_second_key_has_a_line(table: mn.Table, key: str) -> None:
    axes = drawn(table.groupby([key, "channel"])["quantity"].sum())
    wanted = FRAME.groupby([key, "channel"])["quantity"].sum()
    assert [one.get_label() for one in axes.lines] == sorted(set(FRAME["channel"]))
    for line in axes.lines:
        theirs = wanted.xs(line.get_label(), level="channel")
        assert line.get_xdata().tolist() == theirs.index.to_numpy(line.get_xdata().dtype).tolist()
        assert line.get_ydata().tolist() == theirs.tolist()


def test_rows_of_one_text_have_a_bar_each(table: mn.Table) -> None:
    few = table[["channel", "quantity"]].head(9)
    axes = drawn(few)
    assert [bar.get_height() for bar in axes.patches] == FRAME["quantity"].head(9).tolist()
    assert [one.get_text() for one in axes.get_xticklabels()] == FRAME["channel"].head(9).tolist()
    assert len({bar.get_x() for bar in axes.patches}) == 9


def test_what_cannot_be_drawn_is_refused_with_the_way(table: mn.Table) -> None:
    begin = time.perf_counter()
    with pytest.raises(TooLargeError, match=r"3,000 rows, and 500 at most.*groupby\('channel'\)"):
        drawn(table[["channel", "quantity"]])
    assert time.perf_counter() - begin < 1
    with pytest.raises(UnsupportedError, match=r"are by 3: mn.plot\(t.groupby\(\['channel', 'status'\]\)"):
        drawn(table.groupby(["channel", "status", "month"])["quantity"].sum())
    with pytest.raises(UnsupportedError, match=r"quantity, price: choose one before"):
        drawn(table.groupby(["channel", "status"])[["quantity", "price"]].sum())
    with pytest.raises(TooLargeError, match=r"25 values of 'city', and 20 at most"):
        drawn(table.groupby(["channel", "city"])["quantity"].sum())
