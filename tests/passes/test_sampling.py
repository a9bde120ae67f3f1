"""Dense arrays that meet a sparse one are worked out at its entries alone: no plan has their elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.nodes import MatMul
from matnb.expr.traverse import ExprGraph
from matnb.passes import optimize
from matnb.passes.sampling import sample
from matnb.plan.lower import lower
from matnb.program.plan import Plan, Workers

ROWS, COLUMNS, RANK = 300, 200, 4
RNG = np.random.default_rng(0)
S0 = sp.random_array((ROWS, COLUMNS), density=0.02, format="csr", rng=2)
S0.data[::9] = 0
T0 = sp.random_array((ROWS, COLUMNS), density=0.02, format="csr", rng=3)
U0, V0 = RNG.random((ROWS, RANK)), RNG.random((COLUMNS, RANK))
U0[5] = 0  # so that a product is 0, where zeros are stored, too
D0 = RNG.random((ROWS, COLUMNS))
PLACES = np.repeat(np.arange(ROWS), np.diff(S0.indptr)), S0.indices

Call = Callable[..., Any]
# Each written once for handles and for NumPy's arrays at the entries: S, U @ V.T, T, D, and a column.
CASES: dict[str, Call] = {
    "quotient": lambda S, M, T, D, c: S / M(),
    "exp": lambda S, M, T, D, c: S * np.exp(M()),
    "exp first": lambda S, M, T, D, c: np.exp(M()) * S,
    "log of a quotient": lambda S, M, T, D, c: S * np.log(S / M()),
    "numbers": lambda S, M, T, D, c: S * (1 + 2 * M()),
    "two products": lambda S, M, T, D, c: S * (M() ** 2 + np.abs(M() - 1)),
    "twice": lambda S, M, T, D, c: S / M() + S * np.sqrt(M()),
    "another pattern": lambda S, M, T, D, c: S * np.exp(T + M()),
    "a dense array": lambda S, M, T, D, c: S * np.exp(D - M()),
    "a column": lambda S, M, T, D, c: S / (M() + c),
    "its own function": lambda S, M, T, D, c: S * np.exp(-S),
    "remainder": lambda S, M, T, D, c: np.remainder(S, M() + 1),
    "where": lambda S, M, T, D, c: S * np.where(M() > 0.5, M(), 0.25),
    "single precision": lambda S, M, T, D, c: S * np.exp(M().astype(np.float32)),
}


TWO_WORKERS = pytest.mark.session("two workers")


def made(case: Call, blocks: object = None) -> mn.DistArray:
    """Return the handle that a case makes."""
    S, T = mn.asarray(S0, blocks=blocks), mn.asarray(T0)
    U, V = mn.asarray(U0), mn.asarray(V0)
    return case(S, lambda: U @ V.T, T, mn.asarray(D0), U[:, :1])


def wanted(case: Call) -> np.ndarray:
    """Return what NumPy gives on the pattern."""
    M = (U0 @ V0.T)[PLACES]
    with np.errstate(all="ignore"):
        return np.asarray(case(S0.data, lambda: M, T0.toarray()[PLACES], D0[PLACES], U0[PLACES[0], 0]))


def dense_stages(plan: Plan) -> list[str]:
    """Return what of a plan has as many elements as the matrix, but for what is given."""
    nodes = [
        node
        for stage in plan.stages
        if stage.kind.name != "data"
        for node in (*stage.inside, stage.expression)
    ]
    return [repr(one) for one in nodes if not one.sparse and one.size >= ROWS * COLUMNS]


@pytest.mark.parametrize("name", CASES)
def test_no_plan_has_a_dense_array_of_the_whole_shape(name: str) -> None:
    node = made(CASES[name]).expression
    assert node.sparse
    (root,) = optimize({"x": node}).values()
    plan = lower([root], (), {}, Workers((0, 1), 1, 0))
    assert dense_stages(plan) == []


# A column and a row that meet nothing else of the matrix's shape, and what selects entries.
SELECTIONS: dict[str, Call] = {
    "a row and a column": lambda c, r: c > r,
    "two of them": lambda c, r: (c > r) | (c < 0.1),
    "another function": lambda c, r: np.exp(c - r) > 1.5,
}


def of_vectors(name: str, selects: bool) -> tuple[mn.DistArray, sp.csr_array]:
    """Return a matrix that vectors met, or of which they selected, and what SciPy makes of it."""
    S, c, r = mn.asarray(S0), mn.asarray(U0)[:, :1], mn.asarray(V0)[:, 0]
    kept = SELECTIONS[name](U0[PLACES[0], 0], V0[PLACES[1], 0])
    condition = SELECTIONS[name](c, r)
    if not selects:
        return S * condition, sp.csr_array((S0.data * kept, S0.indices, S0.indptr), shape=S0.shape)
    own = S0.data[kept], (PLACES[0][kept], PLACES[1][kept])
    return S.select(condition), sp.csr_array(own, shape=S0.shape)


@TWO_WORKERS
@pytest.mark.parametrize("selects", [False, True])
@pytest.mark.parametrize("name", SELECTIONS)
def test_vectors_alone_make_no_dense_array_either(name: str, selects: bool) -> None:
    handle, wanted = of_vectors(name, selects)
    (root,) = optimize({"x": handle.expression}).values()
    assert dense_stages(lower([root], (), {}, Workers((0, 1), 1, 0))) == []
    found = handle.to_scipy()
    np.testing.assert_array_equal(found.indptr, wanted.indptr)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.data, wanted.data)


@TWO_WORKERS
@pytest.mark.parametrize(
    "meet", [lambda S, one: S * one, lambda S, one: S / (one + 1), lambda S, one: S * np.exp(one)]
)
def test_sparse_vectors_are_stretched_as_everywhere(meet: Call) -> None:
    column, row = (
        sp.random_array((ROWS, 1), density=0.5, rng=4),
        sp.random_array((1, COLUMNS), density=0.5, rng=5),
    )
    found = meet(mn.asarray(S0, blocks=(100, 60)), mn.asarray(column) * mn.asarray(row)).to_scipy().toarray()
    expected = meet(S0.toarray(), column.toarray() * row.toarray())
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@TWO_WORKERS
def test_a_product_that_selects_entries_is_made_at_these() -> None:
    S, U, V = mn.asarray(S0), mn.asarray(U0), mn.asarray(V0)
    handle = S.select(U @ V.T > 0.8)
    (root,) = optimize({"x": handle.expression}).values()
    assert dense_stages(lower([root], (), {}, Workers((0, 1), 1, 0))) == []
    np.testing.assert_array_equal(handle.to_scipy().data, S0.data[(U0 @ V0.T)[PLACES] > 0.8])


def test_without_the_pass_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("matnb.passes.PASSES", [one for one in _passes() if one.name != "sampling"])
    (root,) = optimize({"x": made(CASES["quotient"]).expression}).values()
    assert dense_stages(lower([root], (), {}, Workers((0, 1), 1, 0)))


def _passes() -> tuple[Any, ...]:
    from matnb.passes import PASSES

    return PASSES


@TWO_WORKERS
@pytest.mark.parametrize("blocks", [None, (3, 2)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_numpy_on_the_pattern(name: str, blocks: object) -> None:
    found, stored, expected = made(CASES[name], blocks).to_scipy(), S0, wanted(CASES[name])
    if name == "twice":  # a sum of sparse arrays stores no zeros
        stored = S0.copy()
        stored.data = expected != 0
        stored.eliminate_zeros()
        expected = expected[expected != 0]
    np.testing.assert_array_equal(found.indptr, stored.indptr)
    np.testing.assert_array_equal(found.indices, stored.indices)
    np.testing.assert_allclose(found.data, expected, rtol=1e-6 if "single" in name else 1e-13)


def test_what_somebody_else_reads_is_made_whole() -> None:
    S, U, V = mn.asarray(S0), mn.asarray(U0), mn.asarray(V0)
    product = U @ V.T
    for other in (product, product.sum(), product + S):
        roots = {"x": (S / product).expression, "y": other.expression}
        assert sample(ExprGraph(roots)).roots == roots


def test_a_plain_product_is_left_to_its_operator_and_sums_of_sparse_arrays_as_they_are() -> None:
    S, T, U, V = mn.asarray(S0), mn.asarray(T0), mn.asarray(U0), mn.asarray(V0)
    for handle in (S * (U @ V.T), S + T, S * T, S * U[:, :1], np.exp(S), S * mn.asarray(D0)):
        roots = {"x": handle.expression}
        assert sample(ExprGraph(roots)).roots == roots


def test_a_long_chain_is_walked_without_recursion() -> None:
    S, U, V = mn.asarray(S0), mn.asarray(U0), mn.asarray(V0)
    dense: Any = U @ V.T
    for _ in range(3000):
        dense = dense + 1.5
    found = sample(ExprGraph({"x": (S * dense).expression})).graph
    assert not any(isinstance(node, MatMul) for node in found.order)


@TWO_WORKERS
def test_what_is_stored_already_is_read_at_the_entries() -> None:
    S, U, V = mn.asarray(S0), mn.asarray(U0), mn.asarray(V0)
    quotient = (S / (U @ V.T)).persist()
    found = (S * np.log(quotient)).to_scipy()
    np.testing.assert_allclose(found.data, wanted(CASES["log of a quotient"]), rtol=1e-13)
