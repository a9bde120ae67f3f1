"""Products of dense blocks in parts, and by the names of axes in slabs: the same values in any parts."""

from __future__ import annotations

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.blocks.kernels.products import contracting, dense_products

RNG = np.random.default_rng(0)


def whole_numbers(*shape, dtype="f8"):
    """Return whole numbers, whose sums are exact in any order."""
    return RNG.integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("tile_bytes", [1, 200, 2**24])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["f8", "f2", "i8", "?", "c16"])
def test_a_product_in_parts_is_that_of_the_whole(monkeypatch, tile_bytes, transposed, dtype):
    monkeypatch.setattr(dense_products, "_TILE_BYTES", tile_bytes)
    A, B = whole_numbers(7, 9, dtype=dtype), whole_numbers(9, 5, dtype=dtype)
    parts = [one for k in ((0, 4), (4, 5), (5, 9)) for one in (A[:, slice(*k)], B[slice(*k)])]
    values = [Dense(one.T if transposed and not place % 2 else one) for place, one in enumerate(parts)]
    found = dense_products.multiply_parts(values, A.dtype, transposed)
    np.testing.assert_array_equal(found.values, A @ B)
    assert found.dtype == A.dtype


@pytest.mark.parametrize("between_bytes", [1, 300, 2**19])
@pytest.mark.parametrize("output", ["ir", "jr", "kr", "ri", "r", "ik", ""])
def test_three_arrays_in_slabs_are_what_numpy_makes_of_them(monkeypatch, between_bytes, output):
    monkeypatch.setattr(contracting, "_BETWEEN_BYTES", between_bytes)
    arrays = [whole_numbers(5, 4, 6), whole_numbers(6, 3), whole_numbers(4, 3)]
    letters = "ijkr"
    names = tuple(tuple(letters.index(one) for one in own) for own in ("ijk", "kr", "jr"))
    wanted = tuple(letters.index(one) for one in output)
    found = contracting.contract([Dense(one) for one in arrays], names, wanted, np.dtype("f8"))
    np.testing.assert_array_equal(found.values, np.einsum(f"ijk,kr,jr->{output}", *arrays))
