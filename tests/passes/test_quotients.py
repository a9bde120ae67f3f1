"""Quotients at the entries of a sparse array times a matrix: one node, and NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.traverse import ExprGraph
from matnb.ops.quotient_products import QuotientProduct
from matnb.passes import optimize

ROWS, COLUMNS = 90, 60
RNG = np.random.default_rng(0)
S0 = sp.random_array((ROWS, COLUMNS), density=0.15, format="csr", rng=2)
S0.data[::9] = 0

Call = Callable[..., Any]
CASES: dict[str, Call] = {
    "plain": lambda S, M, W: (S / M()) @ W,
    "more": lambda S, M, W: (S / (M() + 0.25)) @ W,
    "more before": lambda S, M, W: (S / (0.25 + M())) @ W,
    "least": lambda S, M, W: (S / np.maximum(M(), 0.9)) @ W,
}

TWO_WORKERS = pytest.mark.session("two workers")


def operands(rank: int, width: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return U, V, and W, which is V without a width."""
    U, V = RNG.random((ROWS, rank)), RNG.random((COLUMNS, rank))
    return U, V, V if width is None else RNG.random((COLUMNS, width))


def made(case: Call, arrays: tuple[np.ndarray, ...], blocks: object = None) -> mn.DistArray:
    """Return the handle that a case makes."""
    U, V, W = (mn.asarray(one) for one in arrays)
    return case(mn.asarray(S0, blocks=blocks), lambda: U @ V.T, V if arrays[1] is arrays[2] else W)


def wanted(case: Call, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return what NumPy gives on the dense arrays: 0 over anything is 0."""
    U, V, W = arrays
    return np.asarray(case(S0.toarray(), lambda: U @ V.T, W))


def is_one_node(handle: mn.DistArray) -> bool:
    (root,) = optimize({"x": handle.expression}).values()
    return isinstance(root, QuotientProduct)


@TWO_WORKERS
@pytest.mark.parametrize(("rank", "width"), [(20, None), (3, 8), (4, 1), (9, None)])
@pytest.mark.parametrize("name", CASES)
def test_values_are_numpys_and_bits_are_the_same_for_any_cuts(
    session: None, name: str, rank: int, width: int | None
) -> None:
    arrays = operands(rank, width)
    whole = made(CASES[name], arrays)
    assert is_one_node(whole)
    found = whole.compute()
    np.testing.assert_allclose(found, wanted(CASES[name], arrays), rtol=1e-12)
    for blocks in ((4, 1), (3, 2)):
        np.testing.assert_array_equal(made(CASES[name], arrays, blocks).compute(), found)


@TWO_WORKERS
def test_nan_infinities_and_zeros_are_as_without_the_pass(session: None) -> None:
    U, V, _ = operands(4, None)
    U[3], U[7], V[5] = 0, np.inf, np.nan
    arrays = U, V, V
    found = made(CASES["plain"], arrays).compute()
    with np.errstate(all="ignore"):
        products = (U @ V.T)[rows := np.repeat(np.arange(ROWS), np.diff(S0.indptr)), S0.indices]
        expected = sp.csr_array((S0.data / products, (rows, S0.indices)), shape=S0.shape) @ V
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


def test_what_others_read_and_other_dtypes_are_left_alone() -> None:
    arrays = operands(4, None)
    U, V, W = (mn.asarray(one) for one in arrays)
    S = mn.asarray(S0)
    quotient = S / (U @ V.T)
    roots = optimize({"x": (quotient @ W).expression, "y": quotient.expression})
    assert not any(isinstance(one, QuotientProduct) for one in ExprGraph(roots).order)
    single = tuple(one.astype(np.float32) for one in arrays)
    assert not is_one_node(made(CASES["plain"], single))
    T = mn.asarray(sp.random_array((ROWS, COLUMNS), density=0.1, format="csr", rng=5))
    assert not is_one_node((S * T / (U @ V.T)) @ (T.T @ np.ones((ROWS, 2))) + 1)
