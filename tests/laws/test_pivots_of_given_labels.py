"""A pivot of given labels is pandas's, reindexed to these; and so zeros and ones of a column's values are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, OptionError
from matnb.tables.pandas_names import ONE_HOT

POOLS: dict[str, list[Any]] = {
    "text": ["b", "a", "", "Ärger", "東京"],
    "whole": [3, -1, 0, 2**62],
    "floats": [1.5, -2.0, 0.0],
    "times": [pd.Timestamp(f"20{year}-03-01T08:00:01") for year in (10, 11, 24)],
}
OTHERS = {"text": ["zz"], "whole": [5], "floats": [7.25], "times": [pd.Timestamp("1999-01-01")]}
DTYPES = {"text": "str", "whole": "Int64", "floats": "float64", "times": "datetime64[us]"}

pytestmark = pytest.mark.session("two workers")


@st.composite
def frames(draw: st.DrawFn) -> tuple[pd.DataFrame, list[list[Any] | None]]:
    length, columns, labels = draw(st.integers(1, 8)), {}, []
    for name in ("row", "column"):
        kind = draw(st.sampled_from(sorted(POOLS)))
        one = st.sampled_from([*POOLS[kind], None])
        values = draw(st.lists(one, min_size=length, max_size=length))
        columns[name] = pd.Series(values, dtype=DTYPES[kind])
        pool = st.lists(st.sampled_from(POOLS[kind] + OTHERS[kind]), unique=True)
        labels.append(draw(st.none() | pool))
    columns["value"] = pd.Series(draw(st.lists(st.integers(-9, 9), min_size=length, max_size=length)))
    return pd.DataFrame(columns), labels


@settings(max_examples=40, deadline=None)
@given(frames(), st.sampled_from(["sum", "max", "mean"]))
def test_it_is_the_pivot_of_pandas_reindexed(drawn: Any, combine: str) -> None:
    frame, (rows, columns) = drawn
    ours = mn.table(frame).pivot("row", "column", "value", combine, row_labels=rows, column_labels=columns)
    there = frame.dropna()
    row_labels = sorted(there["row"].unique()) if rows is None else rows
    column_labels = sorted(there["column"].unique()) if columns is None else columns
    expected = np.zeros((len(row_labels), len(column_labels)))
    for (row, column), values in there.groupby(["row", "column"])["value"]:
        if row in row_labels and column in column_labels:
            expected[row_labels.index(row), column_labels.index(column)] = values.agg(combine)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(np.asarray(ours), expected)
    for found, wanted in ((ours.row_labels, row_labels), (ours.column_labels, column_labels)):
        assert list(pd.Series(found)) == list(pd.Series(wanted, dtype=pd.Series(found).dtype))


def test_parts_to_learn_from_and_to_test_with_have_one_shape() -> None:
    t = mn.table({"user": ["a", "b", "a", "c"], "film": [7, 7, 9, 8], "stars": [5.0, 3.0, 4.0, 1.0]})
    train, test = t.head(3), t.tail(2)
    P = train.pivot("user", "film", "stars")
    Q = test.pivot("user", "film", "stars", row_labels=P.row_labels, column_labels=P.column_labels)
    assert (P + Q).shape == P.shape  # which two pivots of other labels are refused
    np.testing.assert_array_equal(np.asarray(Q), [[0, 4], [0, 0]])


@pytest.mark.parametrize("values", [["b", "a", None, "b"], [2.5, None, 1.0, 2.5], [3, 3, 3, 3], [None, None]])
def test_what_is_advised_for_dummies_is_pandas_s(values: list[Any]) -> None:
    t = mn.table({"zone": pd.Series(values, dtype=None if any(values) else "str")})
    found = eval(ONE_HOT, {"t": t, "np": np})
    expected = pd.get_dummies(pd.Series(values))
    assert found.sparse
    np.testing.assert_array_equal(np.asarray(found), expected.to_numpy().astype(int))
    assert list(found.column_labels) == list(expected.columns)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"row_labels": ["a", None]}, "row_labels has a missing value"),
        ({"row_labels": ["a", "a"]}, "row_labels has a label twice"),
        ({"row_labels": [1]}, "row_labels has other values than a column of text can have"),
        ({"row_labels": "ab"}, "row_labels='ab' is one text"),
        ({"column_labels": [0.5]}, "column_labels has other values than a column of int64 can have"),
        ({"column_labels": ["x"]}, "column_labels has other values than a column of int64 can have"),
    ],
)
def test_labels_that_cannot_be_are_refused(labels: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        mn.table({"r": ["a", "b"], "c": [1, 2]}).pivot("r", "c", **labels)


def test_text_in_a_matrix_says_how_it_becomes_columns() -> None:
    t = mn.table({"device": ["a", None, "b"], "x": [1.0, 2.0, 3.0]})
    with pytest.raises(DTypeError, match="sparse, a column for each value") as raised:
        t.to_matrix(["x", "device"])
    code = str(raised.value).partition("columns, and ")[2].partition(" is sparse")[0]
    assert eval(code, {"t": t, "np": np}).shape == (3, 2)
