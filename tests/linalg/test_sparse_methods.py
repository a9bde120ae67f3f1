"""Sparse DistArrays have SciPy's methods, and dense ones have not."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import OptionError
from matnb.lazy.registry import METHODS, SPARSE_METHODS

GIVEN = sp.random_array((5, 7), density=0.4, rng=np.random.default_rng(0), format="csr")

pytestmark = pytest.mark.session("two threads")


def same(found: mn.DistArray, expected: sp.sparray) -> None:
    assert found.sparse
    np.testing.assert_allclose(found.to_scipy().toarray(), expected.toarray(), rtol=1e-14)


@pytest.mark.parametrize(
    "name",
    sorted(SPARSE_METHODS.keys() - METHODS.keys() - {"maximum", "minimum", "multiply", "power", "setdiag"}),
)
def test_of_elements(name: str) -> None:
    same(getattr(mn.asarray(GIVEN), name)(), getattr(GIVEN, name)())


@pytest.mark.parametrize("name", ["maximum", "minimum", "multiply"])
def test_of_two(name: str) -> None:
    A, other = mn.asarray(GIVEN), sp.csr_array(GIVEN[::-1])
    same(getattr(A, name)(mn.asarray(other)), getattr(GIVEN, name)(other))
    if name == "multiply":
        same(A.multiply(2), GIVEN.multiply(2))
        same(A.multiply(np.arange(7.0)), sp.csr_array(GIVEN.multiply(np.arange(7.0))))


def test_power() -> None:
    same(mn.asarray(GIVEN).power(2), GIVEN.power(2))
    assert mn.asarray(GIVEN).power(2, dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize("k", [0, 1, -2, 6, -4])
@pytest.mark.parametrize("values", [3.0, [1.0], np.arange(1.0, 9.0)], ids=["number", "one", "many"])
def test_setdiag(k: int, values: float | list[float] | np.ndarray) -> None:
    A, expected = mn.asarray(GIVEN), GIVEN.tolil()
    before = A.sum()
    A.setdiag(values, k)
    expected.setdiag(values, k)
    same(A, expected)
    assert float(before) == pytest.approx(GIVEN.sum())


def test_a_diagonal_that_is_not_there() -> None:
    with pytest.raises(
        OptionError, match=r"setdiag\(k=9\): an array of shape \(5, 7\) has diagonals -4 to 6"
    ):
        mn.asarray(GIVEN).setdiag(1.0, 9)


def test_dense_arrays_name_the_functions() -> None:
    x = mn.ones(3)
    assert SPARSE_METHODS.keys() & set(dir(x)) == SPARSE_METHODS.keys() & METHODS.keys()
    assert set(dir(mn.asarray(GIVEN))) >= SPARSE_METHODS.keys()
    with pytest.raises(AttributeError, match=r"write np.multiply\(x, y\)$"):
        x.multiply(2)
