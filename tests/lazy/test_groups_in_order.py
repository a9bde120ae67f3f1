"""What groups have in order: running totals, places, quantiles, ranks; and of sparse rows sums; by pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn

RUNNING = ("cumsum", "cumprod", "cummin", "cummax")
OF_GROUPS = ("first", "last", "median", "nunique", "argmin", "argmax")
PANDAS = {"argmin": "idxmin", "argmax": "idxmax"}

pytestmark = pytest.mark.session("three workers")


def keys_of(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    return {
        "narrow": rng.integers(0, 7, count) * 3 - 5,
        "floats": rng.normal(size=count).round(),
        "wide": rng.integers(0, 16, count) * 2**56,
    }[kind]


def value(array: Any) -> np.ndarray:
    return array.compute()


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["narrow", "floats", "wide"]),
    count=st.integers(1, 60),
    cuts=st.integers(1, 4),
    columns=st.sampled_from([0, 3]),
    name=st.sampled_from((*RUNNING, *OF_GROUPS)),
    seed=st.integers(0, 1000),
)
def test_as_pandas(kind: str, count: int, cuts: int, columns: int, name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys = keys_of(kind, count, rng)
    values = rng.normal(size=(count, columns) if columns else count).round(1)
    blocks = min(cuts, count)
    groups = mn.groupby(mn.asarray(keys, blocks=blocks))
    found = getattr(groups, name)(mn.asarray(values, blocks=(blocks, 1) if columns else blocks))
    frame = pd.DataFrame(values) if columns else pd.Series(values)
    expected = getattr(frame.groupby(keys), PANDAS.get(name, name))().to_numpy()
    np.testing.assert_allclose(value(found), expected, rtol=1e-10, atol=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    method=st.sampled_from(["average", "min", "max", "first", "dense"]),
    kind=st.sampled_from(["narrow", "floats", "wide"]),
    cuts=st.integers(1, 4),
)
def test_ranks_as_pandas(method: str, kind: str, cuts: int) -> None:
    rng = np.random.default_rng(cuts)
    keys, values = keys_of(kind, 50, rng), rng.integers(0, 5, 50) / 2
    values[::9] = np.nan
    groups = mn.groupby(mn.asarray(keys, blocks=cuts))
    expected = pd.Series(values).groupby(keys).rank(method=method).to_numpy()
    np.testing.assert_array_equal(value(groups.rank(values, method)), expected)


@settings(max_examples=10, deadline=None)
@given(cuts=st.integers(2, 9), name=st.sampled_from(RUNNING))
def test_cuts_leave_the_bits(cuts: int, name: str) -> None:
    rng = np.random.default_rng(1)
    keys, values = rng.integers(0, 5, 301), rng.normal(size=301)
    whole = getattr(mn.groupby(keys, 5), name)(values)
    cut = getattr(mn.groupby(mn.asarray(keys, blocks=cuts), 5), name)(mn.asarray(values, blocks=cuts))
    np.testing.assert_array_equal(value(whole).view(np.int64), value(cut).view(np.int64))


def test_counts_quantiles_and_what_groups_have_for_rows() -> None:
    rng = np.random.default_rng(2)
    keys, values = rng.integers(0, 9, 80), rng.normal(size=80)
    groups, theirs = mn.groupby(mn.asarray(keys, blocks=3)), pd.Series(values).groupby(keys)
    np.testing.assert_array_equal(value(groups.cumcount()), theirs.cumcount().to_numpy())
    for q in (0.0, 0.3, 1.0):
        np.testing.assert_allclose(value(groups.quantile(values, q)), theirs.quantile(q).to_numpy())
    for name in ("mean", "max", "cumsum", "first", "median", "rank"):
        expected = theirs.transform(name).to_numpy()
        np.testing.assert_allclose(value(groups.transform(values, name)), expected, rtol=1e-12)
    spread = groups.transform(values, lambda one, x: one.max(x) - one.min(x))
    np.testing.assert_allclose(value(spread), theirs.transform(lambda x: x.max() - x.min()).to_numpy())
    squares = groups.transform(values, lambda one, x: x * x)
    np.testing.assert_array_equal(value(squares), values**2)


def test_several_keys() -> None:
    rng = np.random.default_rng(3)
    first, second, values = rng.integers(0, 3, 60), rng.normal(size=60).round(), rng.normal(size=60)
    groups = mn.groupby((mn.asarray(first, blocks=2), mn.asarray(second)))
    theirs = pd.Series(values).groupby([first, second])
    for name in ("cumsum", "median", "rank", "last"):
        expected = getattr(theirs, name)().to_numpy()
        np.testing.assert_allclose(value(getattr(groups, name)(values)), expected, rtol=1e-12)


def test_nan_goes_through_as_in_numpy() -> None:
    keys, values = np.array([0, 0, 1, 1, 1, 0]), np.array([1.0, np.nan, 3.0, 2.0, 5.0, 0.0])
    groups = mn.groupby(keys)
    assert np.isnan(value(groups.cummax(values))).tolist() == [False, True, False, False, False, True]
    np.testing.assert_array_equal(value(groups.median(values)), [np.nan, 3.0])
    np.testing.assert_array_equal(value(groups.argmax(values)), [1, 4])
    np.testing.assert_array_equal(value(groups.nunique(values)), [2, 3])
    np.testing.assert_array_equal(value(groups.last(values)), [0.0, 5.0])


def test_groups_of_none() -> None:
    keys, values = mn.asarray([1, 3, 1]), mn.asarray([2.0, 4.0, 6.0])
    groups = mn.groupby(keys, 5)
    np.testing.assert_array_equal(value(groups.argmax(values)), [-1, 2, -1, 1, -1])
    np.testing.assert_array_equal(value(groups.first(values)), [np.nan, 2, np.nan, 4, np.nan])
    np.testing.assert_array_equal(value(groups.last(values.astype(int))), [0, 6, 0, 4, 0])
    np.testing.assert_array_equal(value(groups.median(values)), [np.nan, 4, np.nan, 4, np.nan])
    np.testing.assert_array_equal(value(groups.nunique(values)), [0, 2, 0, 1, 0])
    none = mn.groupby(mn.zeros(0, int), 2)
    for name in ("first", "median", "argmin", "nunique"):
        assert value(getattr(none, name)(mn.zeros(0))).shape == (2,)
    for name in (*RUNNING, "rank"):
        assert value(getattr(none, name)(mn.zeros(0))).shape == (0,)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "complex128"])
def test_dtypes_are_numpys(dtype: str) -> None:
    values = np.array([1, 0, 1, 1, 0]).astype(dtype)
    groups = mn.groupby(np.zeros(5, int), 1)
    assert groups.cumsum(values).dtype == np.cumsum(values).dtype
    np.testing.assert_array_equal(value(groups.cumsum(values)), np.cumsum(values))
    assert groups.first(values).dtype == values.dtype
    if dtype == "complex128":
        for name in ("cummax", "median", "rank", "nunique"):
            with pytest.raises(mn.errors.DTypeError):
                getattr(groups, name)(values)
        return
    assert groups.cummax(values).dtype == values.dtype
    np.testing.assert_array_equal(value(groups.cummax(values)), np.maximum.accumulate(values))


@settings(max_examples=10, deadline=None)
@given(cuts=st.integers(1, 5), kind=st.sampled_from(["narrow", "floats", "wide"]))
def test_sparse_rows_stay_sparse(cuts: int, kind: str) -> None:
    rng = np.random.default_rng(cuts)
    keys = keys_of(kind, 90, rng)
    A = sp.random_array((90, 30), density=0.05, rng=rng, format="csr")
    groups, rows = mn.groupby(mn.asarray(keys)), mn.asarray(A, blocks=(cuts, 1))
    frame = pd.DataFrame(A.toarray()).groupby(keys)
    for name in ("sum", "mean"):
        found = getattr(groups, name)(rows)
        assert found.sparse
        np.testing.assert_allclose(value(found).todense(), getattr(frame, name)().to_numpy(), atol=1e-14)


def test_in_loops() -> None:
    keys, values = np.arange(40) % 4, np.linspace(0.0, 1.0, 40)
    plain = pd.Series(values)
    for _ in range(3):
        running = plain.groupby(keys).cumsum()
        plain = running - running.groupby(keys).transform("median")
    groups = mn.groupby(mn.asarray(keys, blocks=3), 4)

    def step(x: Any) -> Any:
        running = groups.cumsum(x)
        return running - groups.transform(running, "median")

    found, _ = mn.iterate(step, mn.asarray(values), max_iterations=3)
    np.testing.assert_allclose(value(found), plain.to_numpy(), rtol=1e-12)


def test_bad_input() -> None:
    groups, values = mn.groupby(mn.asarray([0, 1, 1])), mn.ones(3)
    for call, told in (
        (lambda: groups.quantile(values, 2), "q=2"),
        (lambda: groups.rank(values, "least"), "'average', 'min'"),
        (lambda: groups.transform(values, "keys"), "cumsum"),
        (lambda: groups.transform(values, lambda one, x: mn.ones(7)), "shape"),
        (lambda: groups.cumsum(mn.ones(4)), "3 keys"),
        (lambda: groups.sum(mn.eye(4)), "3 keys"),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    for label in (-1, 5):
        wrong = mn.groupby(mn.asarray([0, label, 1]), 2)
        with pytest.raises(mn.errors.MatnbError, match=f"label {label} at position 1"):
            wrong.cumsum(values).compute()
        with pytest.raises(mn.errors.MatnbError):
            wrong.sum(mn.eye(3)).compute()
