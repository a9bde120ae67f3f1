"""Least squares systems of each row against NumPy's solver."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import strategies
from block_checks import array_of, mask_of
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Csr, Empty
from matnb.blocks.kernels.rows.solves import segment_solves
from matnb.errors import SingularError

FLOAT = np.dtype(float)


def solved_by_numpy(block, factors, regularization, weighted):
    """Solve row by row."""
    array, mask = array_of(block).astype(float), mask_of(block)
    solutions = np.zeros((block.shape[0], factors.shape[1]))
    for row in range(block.shape[0]):
        (columns,) = np.nonzero(mask[row])
        if columns.size:
            used = factors[columns].astype(float)
            shift = regularization * (columns.size if weighted else 1)
            gram = used.T @ used + shift * np.eye(factors.shape[1])
            solutions[row] = np.linalg.solve(gram, used.T @ array[row, columns])
    return solutions


def random_block(rows, columns, seed=0):
    """Return a block of which half is stored."""
    rng = np.random.default_rng(seed)
    stored = rng.random((rows, columns)) < 0.5
    pointers = np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(np.int32)
    return Csr(
        (rows, columns), pointers, np.nonzero(stored)[1].astype(np.int32), rng.random(pointers[-1]), FLOAT
    )


@given(st.data(), st.integers(0, 19), st.booleans(), strategies.sparse_dtypes())
def test_every_row_is_solved(data, num_factors, weighted, dtype):
    shape = data.draw(strategies.matrix_shapes())
    block = data.draw(strategies.sparse_blocks(shape, dtype, exact=True))
    factors = np.random.default_rng(shape[1]).random((shape[1], num_factors)).astype(data.draw(
        st.sampled_from([np.float64, np.float32])
    ))  # fmt: skip
    found = segment_solves(block, factors, 0.5, weighted)
    assert found.dtype == FLOAT
    np.testing.assert_allclose(found, solved_by_numpy(block, factors, 0.5, weighted), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("num_factors", [1, 7, 8, 9, 33, 100])
def test_systems_of_many_entries(num_factors):
    block = random_block(5, 150)
    factors = np.random.default_rng(1).random((150, num_factors))
    found = segment_solves(block, factors, 0.1, weighted=False)
    np.testing.assert_allclose(found, solved_by_numpy(block, factors, 0.1, False), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("num_factors", [1, 8, 11])
def test_entries_that_tell_how_sure_a_preference_is(num_factors):
    rng = np.random.default_rng(2)
    block, factors = random_block(6, 40), rng.random((40, num_factors))
    counts = rng.integers(0, 3, block.values.size).astype(float)
    block = Csr(block.shape, block.pointers, block.columns, counts, FLOAT)
    found = segment_solves(block, factors, 0.3, False, 0, 2.5, factors.T @ factors)
    r, stored = array_of(block), mask_of(block)
    for row in range(6):
        # Hu et al. 2008, equation 4: C the confidences of all columns, p the preferences
        C, p = np.diag(1 + 2.5 * r[row]), (stored[row] & (r[row] > 0)).astype(float)
        system = factors.T @ C @ factors + 0.3 * np.eye(num_factors)
        np.testing.assert_allclose(
            found[row], np.linalg.solve(system, factors.T @ C @ p), rtol=1e-9, atol=1e-9
        )


def test_a_row_gives_the_same_bits_whatever_is_around_it():
    block = random_block(6, 40)
    factors = np.random.default_rng(1).random((40, 10))
    whole = segment_solves(block, factors, 0.1, weighted=True)
    for row in range(6):
        begin, end = block.pointers[row : row + 2]
        alone = Csr(
            (1, 40),
            np.array([0, end - begin], np.int32),
            block.columns[begin:end],
            block.values[begin:end],
            FLOAT,
        )
        np.testing.assert_array_equal(segment_solves(alone, factors, 0.1, weighted=True)[0], whole[row])


def test_rows_without_entries_are_zeros():
    assert not segment_solves(Empty((3, 2), FLOAT), np.ones((2, 4)), 0, weighted=False).any()


def test_a_system_without_a_solution_names_its_row():
    pattern = Csr((3, 2), np.array([0, 0, 2, 3], np.int32), np.array([0, 1, 0], np.int32), None, FLOAT)
    told = r"row 2: the system of its 1 entries and 2 unknowns is not positive"
    with pytest.raises(SingularError, match=told):
        segment_solves(pattern, np.eye(2), 0, weighted=False)
    with pytest.raises(SingularError, match=r"row 11: .* finite factors"):
        segment_solves(pattern, np.array([[np.nan, 0], [1, 1]]), 1, weighted=False, start=10)


def test_memory_is_the_result_and_one_system():
    block, factors = random_block(300, 50), np.random.default_rng(1).random((50, 20))
    segment_solves(block, factors, 1, weighted=False)  # compiled before it is measured
    tracemalloc.start()
    try:
        segment_solves(block, factors, 1, weighted=False)
        assert tracemalloc.get_traced_memory()[1] < 300 * 20 * 8 + (24 * 24 + 34 * 24) * 8 + 5000
    finally:
        tracemalloc.stop()
