"""Sums of columns of every width have NumPy's dtype for sums, and their quantiles are of float64."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import matnb as mn

WIDTHS = [
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
    "float32",
    "float64",
]
ROWS, COLUMNS = np.array([0, 0, 1, 1, 2, 0]), np.array([5, 5, 6, 6, 5, 5])

pytestmark = pytest.mark.session("two threads")


def extremes(dtype: str) -> np.ndarray:
    """Return six values, some of which are the largest and the least of a dtype."""
    if dtype == "bool":
        return np.array([True, True, False, True, True, True])
    if dtype.startswith("float"):
        return np.array([1.5, 2.5, -3.0, 4.0, 0.0, 7.0], dtype)
    info = np.iinfo(dtype)
    return np.array([info.max, info.max - 1, info.min, 7, info.max // 3, 3], dtype)


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("missing", [None, 1, 4])
def test_pivots_of_every_width(dtype: str, missing: int | None) -> None:
    values = extremes(dtype)
    there = np.arange(6) != (-1 if missing is None else missing)
    column: object
    if missing is None:
        column = values
    elif dtype.startswith("float"):
        column = np.where(there, values, np.nan).astype(dtype)
    else:
        words = {"bool": "boolean"}
        word = words.get(dtype, dtype.replace("u", "U").replace("int", "Int"))
        column = pd.Series(
            [one if is_one else None for one, is_one in zip(values, there, strict=True)], dtype=word
        )
    table = mn.table({"a": ROWS, "b": COLUMNS, "v": column})
    places = [tuple(one) for one in np.column_stack([ROWS, COLUMNS])[there].tolist()]
    for combine, function in (("sum", np.sum), ("min", np.min), ("max", np.max)):
        pivot = table.pivot("a", "b", "v", combine=combine)
        kept = values[there]
        assert pivot.dtype == function(kept).dtype
        dense = np.asarray(pivot)
        for row, label in enumerate(pivot.row_labels.tolist()):
            for place, other in enumerate(pivot.column_labels.tolist()):
                own = kept[[one == (label, other) for one in places]]
                with np.errstate(over="ignore"):
                    assert dense[row, place] == (function(own) if own.size else 0)


def test_small_integers_are_added_in_wide_ones() -> None:
    for dtype, expected in (("int8", 200), ("uint8", 200), ("int16", 200), ("bool", 2)):
        value = 1 if dtype == "bool" else 100
        table = mn.table({"a": ["x", "x"], "b": [1, 1], "v": np.full(2, value, dtype)})
        assert np.asarray(table.pivot("a", "b", "v")).tolist() == [[expected]]
        assert int(table["v"].sum()) == int(table.groupby("a")["v"].sum()["v"][0]) == expected


@pytest.mark.parametrize("dtype", WIDTHS[:8])
def test_described_quantiles_are_inside_the_data(dtype: str) -> None:
    info = np.iinfo(dtype)
    values = np.array([info.min // 5 * 4, info.max], dtype)  # quartiles lie between the two
    column = pd.Series([*values, None], dtype=dtype.replace("u", "U").replace("int", "Int"))
    for given in (values, column):
        found = mn.table({"v": given}).describe()["v"].compute()
        expected = pd.Series(values.astype(np.float64)).describe().to_numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", WIDTHS[:8])
def test_groups_of_every_width_with_missing_values(dtype: str) -> None:
    values = [*extremes(dtype).tolist(), None, None]
    column = pd.Series(values, dtype=dtype.replace("u", "U").replace("int", "Int"))
    keys = [*ROWS.tolist(), 2, 9]
    frame = pd.DataFrame({"k": keys, "v": column})
    groups, expected = mn.table(frame).groupby("k")["v"], frame.groupby("k")["v"]
    for name in ("count", "min", "max", "first", "last", "nunique"):
        found = getattr(groups, name)().to_arrow().column("v").to_pylist()
        assert found == [None if pd.isna(one) else int(one) for one in getattr(expected, name)()], name
    wide = np.sum(np.empty(0, dtype)).dtype
    sums = [
        np.sum(np.array([v for k, v in zip(keys, values, strict=True) if k == key and v is not None], dtype))
        for key in (0, 1, 2, 9)
    ]
    found = groups.sum().to_arrow().column("v")
    assert found.to_pylist() == [int(one) for one in sums]
    assert str(found.type) == wide.name


@pytest.mark.parametrize("method", ["min", "max", "first", "last"])
def test_groups_of_booleans_with_missing_values_are_booleans(method: str) -> None:
    values = pd.array([True, None, False, True, None], "boolean")
    frame = pd.DataFrame({"k": [1, 1, 2, 2, 3], "b": values})
    found = getattr(mn.table(frame).groupby("k")["b"], method)().to_pandas()["b"]
    expected = getattr(frame.groupby("k")["b"], method)()
    assert found.dtype == "boolean"
    assert [None if pd.isna(one) else bool(one) for one in found] == [
        None if pd.isna(one) else bool(one) for one in expected
    ]
