"""Products of a tall matrix's transpose by tiles of rows: those of the whole, for any tiles."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.products import tall_products as kernel
from matnb.blocks.kernels.products.tall_products import TallFactor, rows_of_tile, tall_products

FLOAT = np.dtype(np.float64)


def weighted(dtype: np.dtype) -> TallFactor:
    return TallFactor(2, (Link("multiply", (dtype, dtype), dtype, 0, False, (0, 1)),))


def products(arrays, factors) -> np.ndarray:
    return to_numpy(tall_products([Dense(np.asarray(one)) for one in arrays], factors))


@pytest.fixture(params=[(1, 1, 1), (8, 2, 5), (64, 7, 16), (1 << 16, 256, 1 << 13)], ids=str)
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(("_TILE", "_FEWEST_ROWS", "_MOST_ROWS"), request.param, strict=True):
        monkeypatch.setattr(kernel, name, value)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [0, 1, 2, 33])
def test_tiles_give_what_whole_products_give(dtype, rows):
    # whole numbers, so that no sum is rounded
    rng, element = np.random.default_rng(rows), np.dtype(dtype)
    X, Y = (rng.integers(-3, 4, (rows, columns)).astype(dtype) for columns in (5, 3))
    d, r, row = (rng.integers(-3, 4, shape).astype(dtype) for shape in ((rows, 1), (rows,), (5,)))
    chain = (
        Link("subtract", (element, element), element, 0, False, (0, 2)),
        Link("maximum", (element, element), element, 0, False, (4, 3)),
        Link("multiply", (element, element), element, 0, False, (5, 1)),
    )
    factors = (weighted(element), TallFactor(1), TallFactor(1), TallFactor(4, chain))
    before = X.copy()
    found = products([X, X, d, r, Y, X, d, row, np.array(1, dtype)], factors)
    parts = [X.T @ (X * d), (X.T @ r)[:, None], X.T @ Y, X.T @ (np.maximum(X - row, 1) * d)]
    np.testing.assert_array_equal(found, np.concatenate(parts, axis=1))
    np.testing.assert_array_equal(X, before)
    assert found.dtype == element


@pytest.mark.usefixtures("tiles")
def test_functions_that_begin_with_another_dtype_or_another_operand():
    rng = np.random.default_rng(1)
    X, members = rng.integers(-3, 4, (40, 4)).astype(float), rng.random((40, 6)) < 0.5
    cast = Link("astype", (members.dtype,), FLOAT, 0, False, (0,))
    np.testing.assert_array_equal(products([X, members], (TallFactor(1, (cast,)),)), X.T @ members)
    d, c = rng.integers(0, 5, (40, 1)).astype(float), rng.integers(0, 5, 6).astype(float)
    links = (
        Link("multiply", (FLOAT, FLOAT), FLOAT, 0, False, (1, 2)),
        Link("astype", (members.dtype,), FLOAT, 0, False, (0,)),
        Link("subtract", (FLOAT, FLOAT), FLOAT, 0, False, (3, 4)),
    )
    found = products([X, members, d, c], (TallFactor(3, links),))
    np.testing.assert_array_equal(found, X.T @ (d * c - members))


@given(st.integers(0, 99), st.integers(1, 300), st.integers(1, 9), st.data())
def test_sums_over_any_blocks_are_the_product_of_the_whole(seed, rows, columns, data):
    rng = np.random.default_rng(seed)
    X, d, r = rng.normal(size=(rows, columns)), rng.normal(size=(rows, 1)), rng.normal(size=rows)
    cut = data.draw(st.integers(0, rows))
    factors = (weighted(FLOAT), TallFactor(1))
    total = sum(products([one[:cut] if first else one[cut:] for one in (X, X, d, r)], factors)
                for first in (True, False))  # fmt: skip
    np.testing.assert_allclose(total[:, :-1], X.T @ (d * X), rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(total[:, -1], X.T @ r, rtol=1e-12, atol=1e-10)


def test_infinities_and_nan_are_those_of_the_whole():
    X = np.ones((5000, 2))
    X[4999, 0], X[17, 1] = np.inf, np.nan
    d = np.ones((5000, 1))
    with np.errstate(invalid="ignore"):
        wanted = X.T @ (d * X)
    np.testing.assert_array_equal(products([X, X, d], (weighted(FLOAT),)), wanted)


def test_what_functions_give_is_there_a_tile_at_a_time():
    X, d = np.ones((200_000, 20)), np.ones((200_000, 1))
    factors = (weighted(FLOAT),)
    products([X[:9], X[:9], d[:9]], factors)
    tracemalloc.start()
    try:
        products([X, X, d], factors)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * rows_of_tile(20) * 20 * 8 < X.nbytes / 8
