"""Functions of the values of segments reduced as they are made: the same bits as when they are held."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.expr.traverse import topological
from matnb.nested.array import NestedArray
from matnb.nested.cutting import nested
from matnb.nested.structure import structure_from_offsets
from matnb.passes import optimize

pytestmark = pytest.mark.session("three workers")


def rows_of(A: sp.csr_array, cuts: int) -> Any:
    structure = structure_from_offsets(A.indptr.astype(np.int64), "offsets")
    values, columns = mn.asarray(A.data, blocks=cuts), mn.asarray(A.indices.astype(np.int64), blocks=cuts)
    return nested(NestedArray, values, structure, "uniform", "offsets", columns)


def skewed(rng: np.random.Generator) -> sp.csr_array:
    counts = np.r_[rng.integers(0, 90, 60), 0, 40_000, 0, 1, 7000]
    indptr = np.r_[0, counts.cumsum()]
    columns = rng.integers(0, 50_000, indptr[-1])
    return sp.csr_array((rng.normal(size=indptr[-1]), columns, indptr), shape=(counts.size, 50_000))


def longest_made(array: Any) -> int:
    # Of what a plan makes of arrays that are there.
    (node,) = optimize({"value": array.expression}).values()
    kinds = ("Data", "Regrid")
    return max(one.size for one in topological([node]) if type(one).__name__ not in kinds)


@pytest.mark.parametrize("cuts", [1, 3, 8])
@pytest.mark.parametrize("operation", ["sum", "min", "max", "any", "all"])
def test_bits_are_those_of_products_that_are_held(cuts: int, operation: str) -> None:
    rng = np.random.default_rng(cuts)
    A, x = skewed(rng), rng.normal(size=50_000)
    N = rows_of(A, cuts)
    found = getattr(N * N.gather(x), operation)()
    assert longest_made(found) <= 50_000  # the vector, not the values
    held = N.with_values(mn.asarray(A.data * x[A.indices], blocks=cuts))
    assert found.compute().tobytes() == getattr(held, operation)().compute().tobytes()
    if operation == "sum":
        np.testing.assert_allclose(found.compute(), A @ x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("cuts", [1, 5])
def test_chains_and_numbers_of_segments(cuts: int) -> None:
    rng = np.random.default_rng(7)
    A = skewed(rng)
    counts = np.diff(A.indptr)
    D = mn.nested.unflatten(mn.asarray(A.data, blocks=cuts), counts, strategy="uniform")
    v, x = rng.normal(size=counts.size), rng.normal(size=50_000)
    within = np.concatenate([np.arange(count) for count in counts])
    for lazy, values, operation in (
        (np.exp(D) * 2, np.exp(A.data) * 2, "sum"),
        (D * v, A.data * np.repeat(v, counts), "sum"),
        (D * D.gather(x), A.data * x[within], "sum"),
        (D > 1, A.data > 1, "sum"),
        (D / 4 + 1, A.data / 4 + 1, "prod"),
    ):
        found = getattr(lazy, operation)()
        held = getattr(D.with_values(mn.asarray(values, blocks=cuts)), operation)()
        assert found.compute().tobytes() == held.compute().tobytes()


def test_explain_says_what_it_is() -> None:
    A = skewed(np.random.default_rng(1))
    N = rows_of(A, 2)
    text = (N * N.gather(np.ones(50_000))).sum().explain()
    assert "A @ x, the product of a sparse matrix and a vector" in text
    assert "A @ x" not in (N + N.gather(np.ones(50_000))).sum().explain()


def test_places_out_of_range() -> None:
    A = skewed(np.random.default_rng(1))
    N = rows_of(A, 2)
    with pytest.raises(mn.errors.IndexingError, match="out of bounds for axis 0 of length 40000"):
        (N * N.gather(np.ones(40_000))).sum().compute()
    D = mn.nested.unflatten(A.data, np.diff(A.indptr))
    with pytest.raises(mn.errors.ShapeError, match="the longest segment has 40,000"):
        D.gather(np.ones(10))


@pytest.mark.parametrize("work", ["product", "chain", "spread", "several blocks"])
def test_no_array_as_long_as_the_values_is_allocated(work: str) -> None:
    counts = np.r_[np.full(10_000, 200), 2_000_000]
    length, rng = int(counts.sum()), np.random.default_rng(0)
    blocks = 5 if work == "several blocks" else 1
    values = mn.asarray(rng.random(length), blocks=blocks).persist()
    places = mn.asarray(rng.integers(0, counts.size, length), blocks=blocks).persist()
    structure = structure_from_offsets(np.r_[0, counts.cumsum()], "offsets")
    # else parts of short ones are joined
    made = nested(NestedArray, values, structure, "segmented", "offsets", places)
    N = nested(
        NestedArray,
        made.values.persist(),
        structure,
        "segmented",
        "offsets",
        made.positions.persist(),
    )
    run = {
        "product": lambda x: (N * N.gather(x)).sum(),
        "several blocks": lambda x: (N * N.gather(x)).sum(),
        "chain": lambda x: (np.sqrt(N) * 2 + N.gather(x)).max(),
        "spread": lambda x: (N * x).sum(),
    }[work]
    run(mn.asarray(rng.random(counts.size))).compute()  # compiles
    x = mn.asarray(rng.random(counts.size))
    tracemalloc.start()
    run(x).compute()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < length * 8 / 4
