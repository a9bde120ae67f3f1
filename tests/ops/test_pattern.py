"""Patterns of sparse arrays: a 1 for each stored entry, and no values kept."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.backend.tasks.executor import execute
from matnb.blocks.formats import Csr, Empty
from matnb.expr.client_data import held
from matnb.ops.interpret import interpret
from matnb.passes import optimize
from matnb.plan.lower import lower
from matnb.program.plan import Workers

GRAPH = sp.random_array((30, 20), density=0.2, format="csr", rng=0)


def with_odd_values(dtype: str) -> sp.csr_array:
    graph = GRAPH.copy()
    values = np.tile(np.array([0.0, -0.0, np.nan, np.inf, -2.5, 1.0]), graph.nnz)[: graph.nnz]
    with np.errstate(all="ignore"):
        graph.data = (values if dtype[0] in "fc" else np.nan_to_num(values, posinf=3)).astype(dtype)
    return graph


TWO_WORKERS = pytest.mark.session("two workers")


@TWO_WORKERS
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "bool", "complex128"])
@pytest.mark.parametrize("element", [None, "float64", "int32", "complex64"])
@pytest.mark.parametrize("blocks", [1, [3, 2]], ids=str)
def test_every_stored_entry_is_a_one(dtype: str, element: str | None, blocks: object) -> None:
    graph = with_odd_values(dtype)
    given = mn.asarray(graph, blocks=blocks)
    found = given.pattern() if element is None else given.pattern(element)
    computed = found.to_scipy()
    wanted = graph.copy()
    wanted.data = np.ones(graph.nnz, element or bool)
    assert computed.dtype == found.dtype == wanted.dtype
    assert found.sparse
    for one in (computed, sp.csr_array(interpret(found.expression))):
        np.testing.assert_array_equal(one.indptr, wanted.indptr)
        np.testing.assert_array_equal(one.indices, wanted.indices)
        np.testing.assert_array_equal(one.data, wanted.data)


def test_blocks_keep_no_values_and_share_their_places() -> None:
    given = mn.asarray(GRAPH)
    plan = lower([given.pattern(float).expression], (), {}, Workers((0,), 1, 0))
    block = held(given.expression)
    assert isinstance(block, Csr)
    task = plan.tasks[-1]
    found = execute(task.steps[-1].operator, [block])
    assert found.values is None
    assert found.columns is block.columns
    empty = execute(task.steps[-1].operator, [Empty((30, 20), np.dtype(float))])
    assert empty.nbytes == 0
    assert empty.shape == (30, 20)


def test_the_product_with_the_identity_over_pairs_is_no_product() -> None:
    square = mn.asarray(sp.random_array((20, 20), density=0.2, format="csr", rng=1))
    counted = mn.matmul(square, mn.eye(20), semiring="plus_pair").astype(float)
    wanted = square.pattern(float).expression
    assert optimize({"x": counted.expression})["x"] is wanted
    np.testing.assert_array_equal(interpret(counted.expression).todense(), interpret(wanted).todense())


def test_what_has_no_pattern_is_refused() -> None:
    with pytest.raises(mn.errors.DTypeError, match="it stores every element"):
        mn.ones((3, 3)).pattern()
    with pytest.raises(mn.errors.DTypeError):
        mn.asarray(GRAPH).pattern("U3")
