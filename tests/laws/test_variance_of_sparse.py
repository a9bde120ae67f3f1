"""The variance of a sparse array is NumPy's of the dense one, and nothing of its plan is that large."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.passes import optimize
from matnb.plan.lower import lower
from matnb.program.plan import Workers

ROWS, COLUMNS = 11, 7
FUNCTIONS = ("var", "std", "nanvar", "nanstd", "mean", "nanmean", "sum")
MASKS = {
    "none": None,
    "elements": np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 3 > 0,
    "columns": np.arange(COLUMNS) % 2 == 0,
    "rows": np.arange(ROWS)[:, None] % 3 > 0,
    "sparse": np.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS) % 3 == 0,
}

pytestmark = pytest.mark.session("interpreter")


def elements(dtype: str, special: float) -> np.ndarray:
    """Return a matrix with few numbers, a column of zeros, a full one, and a special number at two places."""
    rng = np.random.default_rng(0)
    values = (rng.integers(-3, 5, (ROWS, COLUMNS)) * (rng.random((ROWS, COLUMNS)) < 0.4)).astype(dtype)
    if dtype.startswith("complex"):
        values += (1j * rng.integers(-2, 3, values.shape) * (values != 0)).astype(dtype)
    values[:, 6] = 0
    values[:, 5] = np.arange(1, ROWS + 1)
    values[2, 1] = values[7, 5] = special
    return values


def stored(values: np.ndarray) -> sp.csr_array:
    """Return a sparse array that stores a zero beside what is not zero."""
    row, column = np.nonzero(values)
    places = np.append(row, 0), np.append(column, 6)
    return sp.csr_array((np.append(values[row, column], values.dtype.type(0)), places), shape=values.shape)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("dtype", "special"),
    [
        ("float64", 5.0),
        ("float64", np.nan),
        ("float64", np.inf),
        ("float32", np.nan),
        ("complex128", np.nan),
        ("int64", 5),
        ("bool", 1),
    ],
)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")  # NumPy's, of too few elements
def test_values_are_those_of_numpy(dtype: str, special: float, function: str, mask: str) -> None:
    values, where = elements(dtype, special), MASKS[mask]
    options: dict[str, Any] = {} if where is None else {"where": where}
    given = dict(options)
    if where is not None:
        given["where"] = mn.asarray(sp.csr_array(where) if mask == "sparse" else where)
    for axis, keepdims in product((0, 1, None), (False, True)):
        for ddof in ({"ddof": 0}, {"ddof": 4}) if function[-3:] in ("var", "std") else ({},):
            with np.errstate(all="ignore"):
                expected = getattr(np, function)(values, axis=axis, keepdims=keepdims, **ddof, **options)
            found = getattr(mn, function)(
                mn.asarray(stored(values)), axis=axis, keepdims=keepdims, **ddof, **given
            ).compute()
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "float32" else 1e-12)


def test_a_mean_and_a_dtype_are_taken_as_numpy_takes_them() -> None:
    values = elements("float64", 5.0)
    given = mn.asarray(stored(values))
    for center in (values.mean(axis=0, keepdims=True), np.full((1, COLUMNS), np.inf), values.mean(axis=0)):
        with np.errstate(all="ignore"):
            expected = np.var(values, axis=0, mean=center)
        np.testing.assert_allclose(np.var(given, axis=0, mean=mn.asarray(center)).compute(), expected)
    for dtype in ("float32", "float16", "complex128"):
        found = given.var(axis=0, dtype=dtype)
        expected = values.var(axis=0, dtype=dtype)
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-2)


def test_a_small_spread_far_from_zero_is_not_cancelled() -> None:
    values = np.zeros((1000, 2))
    values[:, 0] = 1e8 + np.arange(1000) % 3
    values[::2, 1] = 1e8 + np.arange(500) % 3
    found = mn.asarray(sp.csr_array(values)).var(axis=0).compute()
    np.testing.assert_allclose(found, values.var(axis=0), rtol=1e-12)
    assert abs(found[0] - 2 / 3) < 1e-3


LARGE = (100_000, 50_000)
CALLS: dict[str, Callable[[mn.DistArray], mn.DistArray]] = {
    **{
        f"{name} {axis}": lambda A, name=name, axis=axis: getattr(mn, name)(A, axis=axis)
        for name in ("var", "nanstd", "nanmean")
        for axis in (0, 1, None)
    },
    "where columns": lambda A: mn.var(A, axis=0, where=mn.arange(LARGE[1]) % 2 == 0),
    "where rows": lambda A: mn.nanvar(A, axis=0, where=mn.arange(LARGE[0])[:, None] % 2 == 0),
    "sum of rows": lambda A: mn.sum(A, axis=0, where=mn.arange(LARGE[0])[:, None] % 2 == 0),
    "mean of columns": lambda A: mn.mean(A, where=mn.arange(LARGE[1]) % 2 == 0),
}


@pytest.mark.parametrize("name", CALLS)
def test_no_plan_has_a_dense_array_of_the_whole_shape(name: str) -> None:
    A = mn.asarray(sp.random_array(LARGE, density=1e-5, format="csr", rng=0))
    (root,) = optimize({"x": CALLS[name](A).expression}).values()
    plan = lower([root], (), {}, Workers((0, 1), 1, 0))
    nodes = [node for stage in plan.stages for node in (*stage.inside, stage.expression)]
    assert [repr(one) for one in nodes if not one.sparse and one.size >= A.size] == []
    assert max(stage.estimated_bytes for stage in plan.stages) < 2e7
