"""Which zeros are stored: comparisons, sums and diagonal matrices that are sparse store none, as in SciPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn

N = 5
Matrix = sp.csr_array
# Each takes SciPy's arrays or ours.
RULES: dict[str, Callable[[Any, Any], Any]] = {
    "not equal": lambda A, B: A != B,
    "not equal to its transpose": lambda A, B: A != A.T,
    "less": lambda A, B: A < B,
    "greater": lambda A, B: A > B,
    "equal to a number": lambda A, B: A == 2,
    "above a number": lambda A, B: A > 1,
    "below a number": lambda A, B: A < -1,
    "not 0": lambda A, B: A != 0,
    "sum": lambda A, B: A + B,
    "difference": lambda A, B: A - B,
    "less itself": lambda A, B: A - A,
    "sum of three": lambda A, B: A + B - A,
    "maximum": lambda A, B: A.maximum(B),
    "minimum": lambda A, B: A.minimum(B),
    "of a comparison": lambda A, B: (A > 1).astype(float),
    "scaled": lambda A, B: (A - B) * 2.0,
    "of differences": lambda A, B: (A - B) != (A - A.T),
    "a product above a number": lambda A, B: (A @ B) > 1,
    "with rows of it": lambda A, B: (A - A)[:3] + B[:3],
}

pytestmark = pytest.mark.session("two threads")


def drawn() -> st.SearchStrategy[Matrix]:
    """Draw a matrix of small numbers, some of them stored zeros."""
    numbers = st.sampled_from([-2.0, 0.0, 1.0, 2.0])
    places = st.tuples(st.integers(0, N - 1), st.integers(0, N - 1))
    return st.dictionaries(places, numbers, min_size=1, max_size=16).map(matrix_of)


def matrix_of(entries: dict[tuple[int, int], float]) -> Matrix:
    rows, columns = (np.array([place[axis] for place in entries]) for axis in (0, 1))
    made = sp.csr_array((np.array(list(entries.values())), (rows, columns)), shape=(N, N))
    made.sort_indices()
    return made


def entries_of(matrix: Any) -> dict[tuple[int, int], float]:
    found = sp.coo_array(matrix)
    places = zip(found.coords[0].tolist(), found.coords[1].tolist(), strict=True)
    return dict(zip(places, found.data.tolist(), strict=True))


@pytest.mark.parametrize("name", RULES)
@given(one=drawn(), other=drawn(), blocks=st.integers(1, 2))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
def test_zeros_are_stored_where_scipy_stores_them(name: str, one: Matrix, other: Matrix, blocks: int) -> None:
    if (one != one.astype(bool)).nnz == 0:
        return  # matnb keeps such a matrix as a pattern
    wanted = RULES[name](one, other)
    found = RULES[name](mn.asarray(one, blocks=blocks), mn.asarray(other))
    assert found.nnz == wanted.nnz
    assert entries_of(found.to_scipy()) == entries_of(wanted)


def test_in_a_chain_over_one_pattern_each_step_leaves_out_its_own() -> None:
    A = sp.csr_array(np.array([[0.0, 3, 1], [2, 0, 0], [5, 1, 0]]))
    mine = mn.asarray(A)
    for chain in (
        lambda A: (A > 1) * 3.0,
        lambda A: (A - A) * 3.0,
        lambda A: (A != 0) != (A > 2),
        lambda A: ((A > 1).astype(float) + A) - A,
        lambda A: abs(A * 0.5 - A) * 0.0,
    ):
        assert chain(mine).nnz == chain(A).nnz


def test_a_number_beside_a_sparse_array_leaves_what_scipy_leaves() -> None:
    A = sp.csr_array(([1.0, 0.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    mine = mn.asarray(A)
    functions: tuple[Callable[[Any], Any], ...] = (
        lambda A: A * 2, lambda A: A * 0, lambda A: abs(A), lambda A: A.T, lambda A: A.maximum(0),
        lambda A: A.astype(bool), lambda A: A + 0,
    )  # fmt: skip
    for function in functions:
        assert function(mine).nnz == function(A).nnz
    assert mine.pattern().nnz == 3


def test_a_diagonal_matrix_stores_no_zeros() -> None:
    keep = np.array([1.0, 0.0, 2.0, -0.0])
    D = mn.diag(mn.asarray(keep))
    assert D.nnz == 2 == sp.diags_array(keep).tocsr().nnz
    A = sp.csr_array(np.ones((4, 4)))
    for k in (-1, 0, 2):
        assert mn.diag(mn.asarray(keep), k).nnz == 2
    masked = D @ mn.asarray(A) @ D
    assert masked.nnz == 4
    assert mn.graph.degree(masked, directed=True).compute().tolist() == [2, 0, 2, 0]
    assert (mn.asarray(A) - mn.diag(mn.asarray(np.array([1.0, 0, 1, 1])))).nnz == 13


def test_what_is_read_at_entries_alone_has_its_false_ones() -> None:
    # Of booleans that meet a sparse array, a False that is turned around counts.
    S = sp.random_array((N, N), density=0.6, rng=np.random.default_rng(3), format="csr")
    u, v = np.arange(float(N)), np.arange(float(N))[::-1].copy()
    mine, a, b = mn.asarray(S), mn.asarray(u), mn.asarray(v)
    below = ~(u[:, None] > v)
    kept = mine.select(~(a[:, None] > b))
    assert entries_of(kept.to_scipy()) == entries_of(sp.csr_array(S.toarray() * below))
    product = mine * ~((a[:, None] * b) > 2)
    np.testing.assert_array_equal(product.toarray(), S.toarray() * ~((u[:, None] * v) > 2))
