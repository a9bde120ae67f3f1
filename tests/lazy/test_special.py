"""``scipy.special`` through NumPy's protocol: in chains and loops, of sparse arrays, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import matnb as mn

NAMES = ("expit", "log_expit", "entr", "gammaln", "erf", "erfinv", "logit")  # psi goes steps of its own

pytestmark = pytest.mark.session("three workers")


def value(array: Any) -> Any:
    return array.compute()


@settings(max_examples=20, deadline=None)
@given(name=st.sampled_from(NAMES), cuts=st.integers(1, 7), dtype=st.sampled_from(["f4", "f8", "i8"]))
def test_bits_are_scipys_for_any_cuts(name: str, cuts: int, dtype: str) -> None:
    x = (np.random.default_rng(cuts).normal(size=997) * 3).astype(dtype)
    found = getattr(special, name)(mn.asarray(x, blocks=cuts))
    assert isinstance(found, mn.DistArray)
    expected = getattr(special, name)(x)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(value(found), expected)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_digamma_is_as_near_as_scipys_and_has_the_same_bits_for_any_cuts(dtype: str) -> None:
    x = (np.random.default_rng(0).normal(size=997) * 3).astype(dtype)
    found = value(special.psi(mn.asarray(x, blocks=1)))
    expected = special.psi(x)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-14 if dtype != "f4" else 2e-7)
    for cuts in (2, 7):
        np.testing.assert_array_equal(value(special.psi(mn.asarray(x, blocks=cuts))), found)


def test_chains_are_one_task_a_block() -> None:
    x = mn.asarray(np.linspace(-3.0, 3.0, 4000), blocks=4)
    found = special.xlogy(special.expit(2 * x) + 1, 2.0) - special.erf(x)
    assert "map multiply expit add xlogy erf subtract" in str(found.explain())
    plain = np.linspace(-3.0, 3.0, 4000)
    expected = special.xlogy(special.expit(2 * plain) + 1, 2.0) - special.erf(plain)
    np.testing.assert_allclose(value(found), expected, rtol=1e-15)


def test_logistic_regression_in_a_loop() -> None:
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(300, 5)), rng.random(300) < 0.4
    plain = np.zeros(5)
    for _ in range(10):
        plain = plain - 0.01 * A.T @ (special.expit(A @ plain) - y)
    rows, wanted = mn.asarray(A, blocks=3), mn.asarray(y, blocks=3)

    def step(w: Any) -> Any:
        return w - 0.01 * rows.T @ (special.expit(rows @ w) - wanted)

    found, _ = mn.iterate(step, mn.zeros(5), max_iterations=10)
    np.testing.assert_allclose(value(found), plain, rtol=1e-10)


def test_softmax_in_a_loop() -> None:
    x = np.random.default_rng(1).normal(size=(40, 6))
    plain = x
    for _ in range(5):
        plain = special.softmax(plain * 3, axis=1) + special.logsumexp(plain, axis=1, keepdims=True)

    def step(one: Any) -> Any:
        return mn.special.softmax(one * 3, axis=1) + mn.special.logsumexp(one, axis=1, keepdims=True)

    found, _ = mn.iterate(step, mn.asarray(x, blocks=(3, 1)), max_iterations=5)
    np.testing.assert_allclose(value(found), plain, rtol=1e-12)


@pytest.mark.parametrize("name", ["erf", "erfinv", "entr"])
def test_sparse_arrays_keep_their_pattern_where_zero_gives_zero(name: str) -> None:
    A = sp.random_array((60, 50), density=0.1, rng=np.random.default_rng(2), format="csr")
    found = getattr(special, name)(mn.asarray(A, blocks=(4, 1)))
    assert found.sparse
    assert value(found).nnz == A.nnz
    np.testing.assert_array_equal(value(found).todense(), getattr(special, name)(A.toarray()))


def test_an_absent_factor_of_a_logarithm_is_absent() -> None:
    A = sp.random_array((60, 50), density=0.1, rng=np.random.default_rng(2), format="csr")
    Y = np.random.default_rng(3).random((60, 50)) * (np.arange(50) > 3)
    found = special.xlogy(mn.asarray(A), Y)
    assert found.sparse
    expected = special.xlogy(A.toarray(), Y)
    np.testing.assert_array_equal(value(found).todense(), expected)
    assert not special.expit(mn.asarray(A)).sparse


def test_names_are_scipys_and_others_are_refused() -> None:
    assert mn.special.digamma([1.0]).tolist() == [special.psi(1.0)]
    assert isinstance(mn.special.erf(1.0), float)
    with pytest.raises(AttributeError, match=r"scipy\.special\.comb"):
        mn.special.comb  # noqa: B018  asked for
    with pytest.raises(mn.errors.UnsupportedError, match="log1p"):
        special.log1p(mn.ones(3))  # NumPy's is another function, of other bits
    with pytest.raises(mn.errors.DTypeError, match="entr"):
        special.entr(mn.ones(3, complex))
    with pytest.raises(mn.errors.DTypeError, match="softmax"):
        mn.special.softmax(mn.ones(3, complex))
