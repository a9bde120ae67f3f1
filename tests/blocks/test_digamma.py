"""The digamma function against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from matnb.blocks.kernels.elementwise.digamma import digamma

POSITIVE = np.concatenate([
    np.geomspace(1e-160, 1e40, 4000),
    np.linspace(0.5, 3, 4001),
    np.linspace(3, 40, 4001),
    np.arange(1.0, 30.0),
    np.nextafter([1.0, 1.0, 2.0, 2.0], [0.0, 2.0, 1.0, 3.0]),
])  # fmt: skip
ODD = np.array([0.0, -0.0, -1.0, -0.5, -7.25, np.nan, np.inf, -np.inf, 5e-324, 1e-300, 1e300])


def test_positive_numbers_are_within_1e_14() -> None:
    np.testing.assert_allclose(digamma(POSITIVE), special.psi(POSITIVE), rtol=1e-14)


def test_the_root_is_where_it_is() -> None:
    # the nearest doubles to it, Boost's and SciPy's constants
    x = np.nextafter(1.4616321449683623, [1.0, 2.0])
    np.testing.assert_allclose(digamma(x), special.psi(x), rtol=1e-14, atol=0)
    assert digamma(x)[0] < 0 < digamma(x)[1]


def test_other_numbers_are_scipys() -> None:
    np.testing.assert_array_equal(digamma(ODD), special.psi(ODD))
    whole = np.array([1 + 2j, 3j])
    np.testing.assert_array_equal(digamma(whole), special.psi(whole))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 64])
def test_an_element_has_the_same_bits_whatever_is_beside_it(length: int) -> None:
    x = np.concatenate([np.random.default_rng(0).gamma(1.0, 3.0, 640), ODD])
    parts = [digamma(x[begin : begin + length]) for begin in range(0, x.size, length)]
    np.testing.assert_array_equal(np.concatenate(parts), digamma(x))


def test_single_precision_is_rounded_once() -> None:
    x = np.linspace(0.1, 9, 1000, dtype=np.float32)
    np.testing.assert_array_equal(digamma(x), special.psi(x.astype(np.float64)).astype(np.float32))
    assert digamma(x.reshape(10, 100)).shape == (10, 100)
