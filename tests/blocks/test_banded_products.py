"""Products with a vector too long for the near cache have the bits of those with a short one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from matnb.blocks.formats import Dense, csr_block
from matnb.blocks.kernels.compiled import given, unsigned
from matnb.blocks.kernels.products import dense_product_loops, dense_products
from matnb.blocks.semiring import PLUS_TIMES

WIDTH = 300_000
# Each kind of a short row, both sides of every border between kinds, leaves that are full and not, and so
# many leaves that a row has a tile to itself.
LENGTHS = [*range(11), 62, 63, 64, 65, 127, 128, 129, 64 * 5, 64 * 33 + 1, 64 * 100, 5000]


def matrix(lengths: list[int], seed: int = 1) -> sp.csr_array:
    """Return a matrix whose rows have so many entries, which cancel in part."""
    random = np.random.default_rng(seed)
    columns = [np.sort(random.choice(WIDTH, length, replace=False)) for length in lengths]
    values = random.normal(size=sum(lengths)) * 10.0 ** random.integers(-8, 8, sum(lengths))
    return sp.csr_array(
        (values, np.concatenate(columns), np.cumsum([0, *lengths])), shape=(len(lengths), WIDTH)
    )


def both(A: sp.csr_array, x: np.ndarray, values: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the product in bands, and that row by row."""
    dtype = x.dtype
    block = csr_block(sp.csr_array(A, dtype=dtype), pattern=not values)
    out, expected = np.full(A.shape[0], -7, dtype), np.full(A.shape[0], -7, dtype)
    pattern = unsigned(block.pointers), unsigned(block.columns)
    levels = np.empty(27, np.int64 if dtype.kind == "i" else np.float64)
    room = dense_products._Room().arrays(levels.dtype)
    entries = None if block.values is None else given(block.values)
    dense_product_loops.plus_times_banded(*pattern, entries, given(x), levels, *room, out)
    dense_product_loops.plus_times(*pattern, entries, given(x), None, levels, expected)
    return out, expected


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("values", [True, False])
def test_bands_change_no_bit(values: bool, dtype: str):
    random = np.random.default_rng(2)
    lengths = random.permutation(LENGTHS * 8).tolist()
    A = matrix(lengths)
    x = (random.normal(size=WIDTH) * 1000).astype(dtype)
    out, expected = both(A, x, values)
    assert out.tobytes() == expected.tobytes()


def test_a_zero_keeps_the_sign_that_a_sum_has():
    A = matrix([1, 2, 4, 8, 40])
    out, expected = both(A, np.full(WIDTH, -0.0), values=False)
    assert out.tobytes() == expected.tobytes()
    assert not np.signbit(out).any()


@pytest.mark.parametrize("values", [True, False])
def test_tiles_end_where_leaves_do_not_fit(values: bool):
    # A tile holds 1,572,864 entries: two of the rows, or 24,197 of the short ones, which have most leaves for
    # their entries; and one row is longer than a tile. Columns may come in any order, and twice.
    x = np.random.default_rng(3).normal(size=WIDTH)
    lengths = [700_000, 3, 0, 800_000, 100, 1_600_000, 5, 70, 2, *[65] * 30_000]
    random = np.random.default_rng(4)
    columns = random.integers(0, WIDTH, sum(lengths))
    pointers = np.cumsum([0, *lengths])
    A = sp.csr_array((random.normal(size=len(columns)), columns, pointers), shape=(len(lengths), WIDTH))
    A.has_canonical_format = True  # which is all that keeps SciPy from adding those that come twice
    out, expected = both(A, x, values)
    assert out.tobytes() == expected.tobytes()


def test_a_long_vector_is_multiplied_in_bands(monkeypatch: pytest.MonkeyPatch):
    A = matrix([3, 500, 0, 70, 40_000])
    x = np.random.default_rng(5).normal(size=WIDTH)
    block, called = csr_block(A), []
    run = dense_product_loops.plus_times_banded
    monkeypatch.setattr(
        dense_product_loops, "plus_times_banded", lambda *given: (called.append(1), run(*given))
    )
    out = np.empty(A.shape[0])
    dense_products.multiply_into(block, Dense(x), PLUS_TIMES, out)
    assert called
    np.testing.assert_allclose(out, A @ x, rtol=1e-12, atol=1e-9 * abs(A).max())
    called.clear()
    dense_products.multiply_into(csr_block(A[:, :1000]), Dense(x[:1000]), PLUS_TIMES, out)
    assert not called
