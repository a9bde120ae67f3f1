"""Columns of floats become whole numbers as pandas' do: exactly, or not at all."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import OptionError

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint64")


pytestmark = pytest.mark.session("two threads")


NUMBERS = st.lists(
    st.one_of(st.floats(-300, 300), st.sampled_from([np.nan, np.inf, 1e20, -1.0, 127.9, 2.0**63])),
    min_size=1, max_size=6,
)  # fmt: skip


@settings(max_examples=15)
@given(NUMBERS, st.sampled_from(WHOLE))
def test_floats_of_a_column_are_whole_numbers_or_refused(values: list[float], dtype: str) -> None:
    info, cut = np.iinfo(dtype), [int(one) if np.isfinite(one) else None for one in values]
    fit = all(one is not None and info.min <= one <= info.max for one in cut)
    column = mn.table({"x": values})["x"].astype(dtype)
    if fit:
        assert np.asarray(column).tolist() == cut
        assert np.asarray(column).dtype == dtype
    else:
        with pytest.raises(OptionError, match=r"missing|beyond"):
            np.asarray(column)


@settings(max_examples=15)
@given(st.lists(st.one_of(st.integers(-100, 100).map(float), st.just(np.nan)), min_size=1, max_size=6))
def test_pandas_types_of_missing_values_keep_them(values: list[float]) -> None:
    frame = pd.DataFrame({"x": values})
    for dtype in ("Int8", "Int64", "Float64", pd.Int32Dtype(), "string"):
        made = mn.table(frame).astype({"x": dtype}).to_pandas()["x"]
        assert [None if pd.isna(one) else one for one in made] == [
            None if pd.isna(one) else one for one in frame["x"].astype(dtype)
        ]


def test_what_is_made_of_a_column_is_one() -> None:
    t = mn.table({"x": [1.5, None, 3.0], "k": [1, 2, 3]})
    for one in (t["x"] * 2, np.floor(t["x"]), t.dropna(["k"])["x"].round(), t["x"] + t["k"]):
        with pytest.raises(OptionError, match=r"fillna\(0\) .* x\.astype\('Int64'\)"):
            one.astype(int).sum().compute()
    assert t["x"].fillna(0).astype(int).sum() == 4
    with pytest.raises(OptionError, match="has a fraction"):
        t["x"].astype("Int64").sum().compute()


def test_arrays_are_cast_as_numpy_does() -> None:
    values = np.array([1.7, np.nan, -3.0])
    with np.errstate(invalid="ignore"):
        assert (np.asarray(mn.asarray(values).astype("int64")) == values.astype("int64")).all()
