"""Tables in the order of columns, and tables one after the other, have the rows of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from laws.test_joins import KINDS, NUMBERS, check, column, cut, values
from matnb.errors import ColumnError, DTypeError, OptionError, UnsupportedError

pytestmark = pytest.mark.session("two workers")

KIND = st.sampled_from(list(KINDS))


@given(
    kind=KIND,
    numbers=NUMBERS,
    blocks=st.integers(1, 3),
    is_ascending=st.booleans(),
    position=st.sampled_from(["first", "last"]),
)
@settings(max_examples=80, deadline=None)
def test_rows_are_in_the_order_of_a_column(
    kind: str, numbers: list[int], blocks: int, is_ascending: bool, position: str
) -> None:
    frame = pd.DataFrame({"k": column(kind, numbers, 0), "n": np.arange(len(numbers))})
    found = cut(frame, blocks).sort_values("k", ascending=is_ascending, na_position=position)
    check(found, frame.sort_values("k", ascending=is_ascending, na_position=position, kind="stable"))


@given(numbers=NUMBERS, directions=st.tuples(st.booleans(), st.booleans()), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_rows_are_in_the_order_of_several_columns(
    numbers: list[int], directions: tuple[bool, bool], seed: int
) -> None:
    others = np.random.default_rng(seed).integers(0, 4, len(numbers)).tolist()
    keys = {"k": column("text", numbers, 0), "j": column("floats", others, 0)}
    frame = pd.DataFrame({**keys, "n": np.arange(len(numbers))})
    found = cut(frame, 2).sort_values(["j", "k"], ascending=list(directions))
    check(found, frame.sort_values(["j", "k"], ascending=list(directions)))


@given(kind=KIND, numbers=NUMBERS, count=st.integers(0, 12), is_largest=st.booleans())
@settings(max_examples=60, deadline=None)
def test_first_rows_are_those_of_the_sorted_table(
    kind: str, numbers: list[int], count: int, is_largest: bool
) -> None:
    frame = pd.DataFrame({"k": column(kind, numbers, 0), "n": np.arange(len(numbers))})
    table = cut(frame, 2)
    found = table.nlargest(count, "k") if is_largest else table.nsmallest(count, ["k"])
    check(found, frame.sort_values("k", ascending=not is_largest, kind="stable").head(count))


@given(kinds=st.tuples(KIND, KIND), lists=st.tuples(NUMBERS, NUMBERS, NUMBERS), blocks=st.integers(1, 3))
@settings(max_examples=60, deadline=None)
def test_tables_one_after_the_other(
    kinds: tuple[str, str], lists: tuple[list[int], list[int], list[int]], blocks: int
) -> None:
    frames = [
        pd.DataFrame({kind: column(kind, numbers, 0), "n": np.arange(len(numbers))})
        for kind, numbers in zip((*kinds, kinds[0]), lists, strict=True)
    ]
    found = mn.concat([cut(one, blocks) for one in frames])
    assert set(found.columns) == {*kinds, "n"}
    for name in found.columns:
        expected: list[object] = []
        for frame in frames:
            expected += values(frame[name]) if name in frame else [None] * len(frame)
        assert values(found[[name]].to_pandas()[name]) == expected


def test_columns_in_common_alone() -> None:
    one, two = mn.table({"a": [1, 2], "b": ["x", "y"]}), mn.table({"b": ["z"], "c": [0.5]})
    found = mn.concat([one, two], join="inner")
    assert found.columns == ("b",)
    assert np.asarray(found["b"]).tolist() == ["x", "y", "z"]


@pytest.mark.parametrize(
    ("parts", "dtype"),
    [
        ([[1, 2], [0.5]], "float64"),
        ([np.array([1], "int8"), np.array([300], "int16")], "int16"),
        ([np.array(["2024-01-01"], "M8[D]"), np.array(["2024-01-01T01"], "M8[s]")], "datetime64[s]"),
        ([np.array([1], "m8[s]"), np.array([1], "m8[us]")], "timedelta64[us]"),
        ([[True], [False]], "bool"),
    ],
)
def test_types_that_columns_have_in_common(parts: list[object], dtype: str) -> None:
    found = mn.concat([mn.table({"x": one}) for one in parts])
    assert found.dtypes["x"] == np.dtype(dtype)
    expected = pd.concat([pd.Series(np.asarray(one)) for one in parts])
    assert values(found.to_pandas()["x"]) == values(expected)


def test_columns_and_arrays_one_after_the_other() -> None:
    one, two = mn.table({"z": ["b", None]})["z"], mn.table({"z": ["a"]})["z"]
    assert np.asarray(mn.concat([one, two])).tolist() == ["b", np.nan, "a"]
    assert mn.concat([mn.ones((2, 3)), np.zeros((2, 1))], axis=1).shape == (2, 4)


def test_wrong_arguments_say_what_to_write() -> None:
    one = mn.table({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(DTypeError, match="column 'x' is int64 in one table and text in another"):
        mn.concat([one, mn.table({"x": ["a"]})])
    with pytest.raises(DTypeError, match="int64 and uint64"):
        mn.concat([one, mn.table({"x": np.array([2**63], "uint64")})])
    with pytest.raises(DTypeError, match=r"mn\.table"):
        mn.concat([one, [1, 2]])
    with pytest.raises(UnsupportedError, match="with_columns"):
        mn.concat([one, one], axis=1)
    with pytest.raises(OptionError, match="list of tables"):
        mn.concat(one)
    with pytest.raises(OptionError, match="'inner'"):
        mn.concat([one, one], join="left")
    with pytest.raises(ColumnError, match="'x'"):
        one.sort_values("xx")
    with pytest.raises(OptionError, match="2 directions for 1 column"):
        one.sort_values("x", ascending=[True, False])
    with pytest.raises(OptionError, match="'first' or 'last'"):
        one.sort_values("x", na_position="top")
    with pytest.raises(OptionError, match="from 0 on"):
        one.nlargest(-1, "x")
    with pytest.raises(OptionError, match="only 'first'"):
        one.nsmallest(1, "x", keep="all")
