"""Joins have the rows of pandas, in its order, for keys of every type, however the tables are cut."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.tables import joining, rows

WAYS = ["inner", "left", "right", "outer"]
DAY = datetime.datetime(2024, 3, 31)
# Of each kind what a number from 0 to 5 stands for, and the dtypes that a column of them may have in pandas.
KINDS: dict[str, tuple[list[Any], list[str]]] = {
    "integers": ([3, -1, 7, 2, 30_000, 5], ["int64", "int32", "int16"]),
    "wide integers": ([2**62, -(2**61), 3, 2**53 + 1, 2**53, 0], ["int64"]),
    "unsigned": ([2**63, 2**64 - 1, 3, 2**53 + 1, 2**53, 0], ["uint64"]),
    "floats": ([0.5, -0.0, float("nan"), 1e300, 2.0, float("inf")], ["float64"]),
    "masked": ([3, None, 2**62, 2**53 + 1, -1, 0], ["Int64"]),
    "booleans": ([True, False, True, False, True, False], ["bool"]),
    "text": (["b", "a", None, "", "ä", "東京"], ["str"]),
    "times": ([DAY, None, DAY.replace(hour=2), DAY.replace(year=1960), DAY, DAY], ["datetime64[us]"]),
}
NUMBERS = st.lists(st.integers(0, 5), max_size=9)

pytestmark = pytest.mark.session("two workers")


def column(kind: str, numbers: list[int], width: int) -> pd.Series:
    """Return a column of a kind, whose rows are drawn numbers."""
    values, dtypes = KINDS[kind]
    return pd.Series([values[number] for number in numbers], dtype=dtypes[width % len(dtypes)])


def cut(frame: pd.DataFrame, blocks: int) -> mn.Table:
    """Return a table of so many blocks."""
    made = {}
    for name, one in mn.table(frame).items():
        parts = max(1, min(blocks, len(one)))
        if isinstance(one, mn.MaskedColumn):
            arrays = [mn.asarray(np.asarray(part), blocks=parts) for part in (one.codes, one.missing)]
            made[name] = mn.MaskedColumn(*arrays)
        elif isinstance(one, mn.Column):
            made[name] = one._like(mn.asarray(np.asarray(one.codes), blocks=parts))
        else:
            made[name] = mn.asarray(np.asarray(one), blocks=parts)
    return mn.Table(made)


def values(one: pd.Series) -> list[object]:
    """Return values that compare, with None where they are missing."""
    return [None if pd.isna(value) else value for value in one.astype(object).tolist()]


def check(found: mn.Table, expected: pd.DataFrame) -> None:
    """Compare a table with pandas', value by value."""
    assert found.columns == tuple(expected.columns)
    frame = found.to_pandas()
    for name in expected:
        assert values(frame[name]) == values(expected[name]), name


@given(
    kind=st.sampled_from(list(KINDS)),
    left=NUMBERS,
    right=NUMBERS,
    widths=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    blocks=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    how=st.sampled_from(WAYS),
    is_large=st.booleans(),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_joins_have_the_rows_of_pandas(
    kind: str,
    left: list[int],
    right: list[int],
    widths: tuple[int, int],
    blocks: tuple[int, int],
    how: str,
    is_large: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = pd.DataFrame({"k": column(kind, left, widths[0]), "a": np.arange(len(left)), "s": 1.5})
    two = pd.DataFrame({"b": np.arange(len(right)) % 2 == 0, "k": column(kind, right, widths[1]), "s": "x"})
    with monkeypatch.context() as patch:
        if is_large:  # as where neither table is small
            patch.setattr(joining, "MOST_LOOKED_IN", 0)
            patch.setattr(rows, "MOST_TAKEN_BYTES", 0)
        found = cut(one, blocks[0]).merge(cut(two, blocks[1]), how=how, on="k")
        expected = one.merge(two, how=how, on="k")
        if how == "outer":  # pandas has missing times first, and missing keys of other kinds last
            expected = expected.sort_values("k", key=lambda keys: keys.isna(), kind="stable")
        check(found, expected)


@given(left=NUMBERS, right=NUMBERS, how=st.sampled_from(WAYS), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_joins_by_several_columns(left: list[int], right: list[int], how: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    frames = []
    for name, numbers in (("a", left), ("b", right)):
        others = random.integers(0, 3, len(numbers)).tolist()
        keys = {"k": column("text", numbers, 0), "j": column("masked", others, 0)}
        frames.append(pd.DataFrame({**keys, name: np.arange(len(numbers))}))
    one, two = frames
    found = cut(one, 2).merge(cut(two, 2), how=how, on=["k", "j"])
    check(found, one.merge(two, how=how, on=["k", "j"]))


@given(left=NUMBERS, right=NUMBERS, is_anti=st.booleans(), kind=st.sampled_from(list(KINDS)))
@settings(max_examples=30, deadline=None)
def test_semi_and_anti_joins_pick_rows(left: list[int], right: list[int], is_anti: bool, kind: str) -> None:
    one = pd.DataFrame({"k": column(kind, left, 0), "a": np.arange(len(left))})
    two = pd.DataFrame({"k": column(kind, right, 0), "a": np.arange(len(right))})
    found = cut(one, 2).merge(cut(two, 2), how="anti" if is_anti else "semi", on="k")
    # Each value of a row comes once, with how many rows of the other have it.
    sides = one.merge(two[["k"]].drop_duplicates(), how="left", on="k", indicator="side")["side"]
    check(found, one[(sides.to_numpy() == "both") != is_anti])


@pytest.mark.parametrize("first", ["wide integers", "unsigned", "floats", "masked", "integers"])
@pytest.mark.parametrize("second", ["wide integers", "unsigned", "floats", "masked", "integers"])
def test_numbers_of_two_types_meet_where_they_are_equal(first: str, second: str) -> None:
    one, two = KINDS[first][0], KINDS[second][0]
    tables = [
        mn.table({"k": column(kind, [0, 1, 2, 3, 4, 5], 0), "n": np.arange(6)}) for kind in (first, second)
    ]
    found = tables[0].merge(tables[1], on="k")
    pairs = list(zip(np.asarray(found["n_x"]).tolist(), np.asarray(found["n_y"]).tolist(), strict=True))
    # Python compares numbers of all types exactly.
    expected = [
        (a, b)
        for a in range(6)
        for b in range(6)
        if one[a] == two[b] or (bool(pd.isna(one[a])) and bool(pd.isna(two[b])))
    ]
    assert pairs == expected
