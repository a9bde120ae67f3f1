"""Two arrays of one form, one after the other: each has its own values, however its blocks are sent."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

# Of a megabyte and more, and of less; blocks are sent along with the tasks, before them, or both.
CUTS = {
    "columns": ((1000, 200), (1, 200)),
    "a small block": ((150_000,), ([0, 5, 150_000],)),
    "small": ((40, 10), (4, 1)),
    "whole": ((500,), None),
    "large blocks": ((600, 300), 3),
}


@pytest.fixture(
    scope="module",
    params=[
        {"workers": 1, "threads": 2},
        {"workers": 1, "threads": 64},
        {"workers": 3, "threads": 40},
        pytest.param({"workers": 2, "threads": 1, "processes": True}, marks=pytest.mark.cluster),
    ],
    ids=lambda settings: "-".join(f"{value}" for value in settings.values()),
)
def session(request: pytest.FixtureRequest) -> Iterator[mn.session.Session]:
    with mn.start(**request.param) as started:
        yield started


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("dtype", ["f8", "i4", "?"])
def test_an_array_has_its_own_values(session: mn.session.Session, name: str, dtype: str) -> None:
    shape, blocks = CUTS[name]
    for seed in range(3):
        values = (np.random.default_rng(seed).random(shape) * 2).astype(dtype)
        x = mn.asarray(values, blocks=blocks)
        assert float(x.sum()) == pytest.approx(values.sum(), rel=1e-12), seed
        np.testing.assert_array_equal(x.compute(), values)


def test_a_sparse_array_has_its_own_values(session: mn.session.Session) -> None:
    pattern = sp.random_array((300, 60), density=0.05, format="csr", rng=np.random.default_rng(0))
    for factor in (1.0, 2.0, 3.0):
        given = pattern * factor
        x = mn.asarray(given, blocks=(60, 2))
        assert float(x.sum()) == pytest.approx(given.sum())
        assert (x.to_scipy() != given).nnz == 0


def test_what_is_made_of_arrays_has_its_own_values(session: mn.session.Session) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values, keys = rng.random((2000, 70)), rng.integers(0, 5, 2000)
        table = mn.table({"k": keys, "v": values[:, 0]})
        expected = [values[keys == key, 0].sum() for key in range(5)]
        np.testing.assert_allclose(table.groupby("k")["v"].sum().to_pandas()["v"], expected)
        nested = mn.nested.unflatten(values.ravel(), np.full(700, 200))
        np.testing.assert_allclose(nested.sum().compute(), values.reshape(700, 200).sum(axis=1))
        state, _ = mn.iterate(
            lambda x, values=values: x * 0.5 + values[0], mn.asarray(values[1]), max_iterations=3
        )
        expected = values[1]
        for _ in range(3):
            expected = expected * 0.5 + values[0]
        np.testing.assert_allclose(state.compute(), expected)
        fitted = mn.learn.LinearRegression().fit(values[:, 1:4], values[:, 0])
        kept = np.linalg.lstsq(np.column_stack([np.ones(2000), values[:, 1:4]]), values[:, 0], rcond=None)[0]
        np.testing.assert_allclose(np.asarray(fitted.coef_), kept[1:], rtol=1e-6, atol=1e-8)
