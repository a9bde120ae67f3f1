"""Entries of sparse arrays that a condition selects: booleans, or a function of row, column and value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, KernelError, OptionError, ShapeError
from matnb.ops.interpret import interpret

GRAPH = sp.random_array((60, 45), density=0.3, format="csr", rng=1)
GRAPH.data[::7], GRAPH.data[3::11] = 0.0, np.nan

pytestmark = pytest.mark.session("two workers")


def check(found: mn.DistArray, wanted: np.ndarray) -> None:
    """Compare with the entries of the graph that are wanted."""
    rows, columns = np.repeat(np.arange(60), np.diff(GRAPH.indptr)), GRAPH.indices
    kept = sp.csr_array((GRAPH.data[wanted], (rows[wanted], columns[wanted])), shape=GRAPH.shape)
    for one in (found.to_scipy(), sp.csr_array(interpret(found.expression))):
        np.testing.assert_array_equal(one.indptr, kept.indptr)
        np.testing.assert_array_equal(one.indices, kept.indices)
        np.testing.assert_array_equal(one.data, kept.data)


@pytest.mark.parametrize("blocks", [1, (3, 2), (2, 4)], ids=str)
def test_what_is_selected_by_booleans_and_by_functions(blocks: Any) -> None:
    A = mn.asarray(GRAPH, blocks=blocks)
    rows, columns = np.repeat(np.arange(60), np.diff(GRAPH.indptr)), GRAPH.indices
    check(A.select(A > 0.5), GRAPH.data > 0.5)
    truths = np.random.default_rng(0).random(GRAPH.shape) < 0.5
    check(A.select(truths), truths[rows, columns])
    check(A.select(mn.asarray(truths, blocks=(2, 3))), truths[rows, columns])
    other = mn.asarray(sp.csr_array(truths), blocks=(1, 3))
    check(A.select(other), truths[rows, columns])
    check(A.select(lambda i, j, v: (i <= j) & (v == v)), (rows <= columns) & ~np.isnan(GRAPH.data))
    check(A.select(lambda i, j, v: False), np.zeros(GRAPH.nnz, bool))


def test_patterns_and_loops_are_selected_of_too() -> None:
    P = mn.asarray(GRAPH).pattern(float)
    assert P.select(lambda i, j, v: (v == 1) & (j % 2 == 0)).nnz == int((GRAPH.indices % 2 == 0).sum())
    (found, _), _ = mn.iterate(
        lambda state: (state[0].select(state[0] > state[1]), state[1] + 0.1),
        (mn.asarray(GRAPH), mn.asarray(0.2)),
        max_iterations=3,
    )
    assert found.nnz == int((GRAPH.data > 0.4).sum())


def test_numbers_that_are_not_zero_are_counted_along_axes() -> None:
    A = mn.asarray(GRAPH)
    for axis in (None, 0, 1):
        wanted = np.count_nonzero(GRAPH.toarray(), axis=axis)
        np.testing.assert_array_equal(A.count_nonzero(axis).compute(), wanted)
        np.testing.assert_array_equal(np.asarray(np.count_nonzero(A, axis=axis)), wanted)
    assert A.count_nonzero(axis=1, keepdims=True).shape == (60, 1)


def test_what_cannot_be_selected_by_is_refused() -> None:
    A = mn.asarray(GRAPH)
    for array, condition, error, words in (
        (mn.ones((3, 3)), lambda i, j, v: v > 0, DTypeError, "select works on sparse arrays"),
        (A, A, DTypeError, "the condition has dtype float64; give booleans"),
        (A, A[:30] > 0, ShapeError, r"booleans of shape \(30, 45\)"),
        (A, lambda i, j, v: v > A, OptionError, "cannot be sent"),
    ):
        with pytest.raises(error, match=words):
            array.select(condition)
    for function, error, words in (
        (lambda i, j, v: v, DTypeError, "gave a result of dtype float64 where booleans belong"),
        (lambda i, j, v: v[:3] > 0, ShapeError, "gave booleans of shape"),
        (lambda i, j, v: 1 // 0, KernelError, "raised ZeroDivisionError"),
    ):
        with pytest.raises(error, match=words):
            A.select(function).compute()
