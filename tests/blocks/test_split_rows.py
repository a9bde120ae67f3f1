"""A heavy row in parts: each entry is in one, and their shares add up to the bits of the whole row."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import SEMIRINGS_WITH_LOOPS

from matnb.blocks.formats import SPARSE_DTYPES, Block, Csr, Dense, Empty
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.split_rows import (
    SHARED_ENTRIES,
    is_shared,
    leaves_of,
    multiply_part,
    num_leaves,
    part_of_row,
    row_of_parts,
)
from matnb.blocks.semiring import PLUS_TIMES, Semiring
from matnb.errors import DTypeError

# No entry, leaves that are full and not, on both sides of where a branch of the tree is complete.
LENGTHS = (0, 1, 4, 5, 63, 64, 65, 127, 128, 129, 511, 640, 1023, 1025, 4096, 5000)
WIDTH = 6000


def row(length: int, dtype: np.dtype, values: bool = True, seed: int = 1) -> Csr:
    """Return a row whose entries cancel in part, so that another order of adding them shows."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(WIDTH, length, replace=False)).astype(np.int32)
    drawn = rng.normal(size=length) * 10.0 ** rng.integers(-6, 7, length)
    entries = (drawn > 0 if dtype.kind == "b" else drawn).astype(dtype) if values else None
    return Csr((1, WIDTH), np.array([0, length], np.int32), columns, entries, dtype)


def operand(dtype: np.dtype, width: int | None, seed: int = 2) -> Dense:
    rng = np.random.default_rng(seed)
    shape = (WIDTH,) if width is None else (WIDTH, width)
    drawn = rng.normal(size=shape) * 1000
    drawn[rng.random(WIDTH) < 0.2] = -0.0
    if dtype.kind == "f":
        drawn[rng.random(WIDTH) < 0.1] = np.inf  # absent, where the least is sought
    return Dense(drawn.astype(dtype) if dtype.kind != "b" else drawn > 900)


def in_parts(block: Block, right: Dense, semiring: Semiring, dtype: np.dtype, count: int) -> np.ndarray:
    parts = [part_of_row([block], part, count) for part in range(count)]
    shares = [multiply_part([part, right], semiring.name, dtype) for part in parts]
    return row_of_parts([block, *shares], semiring.name, dtype).values


def assert_bits(found: np.ndarray, expected: np.ndarray) -> None:
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("width", [None, 1, 3])
@pytest.mark.parametrize("values", [True, False], ids=["values", "pattern"])
@pytest.mark.parametrize("dtype", SPARSE_DTYPES, ids=str)
@pytest.mark.parametrize("semiring", SEMIRINGS_WITH_LOOPS.values(), ids=SEMIRINGS_WITH_LOOPS)
def test_shares_add_up_to_the_bits_of_the_row(
    semiring: Semiring, dtype: np.dtype, values: bool, width: int | None
):
    right = operand(dtype, width)
    if semiring is PLUS_TIMES and dtype.kind == "f":
        right = Dense(np.nan_to_num(right.values, posinf=3.0))
    try:
        result = semiring.result_dtype(dtype, dtype)
    except DTypeError:
        return
    if semiring is PLUS_TIMES and result.kind == "c":
        return  # their sums follow no tree, so that plans do not share such rows
    for length in LENGTHS:
        block = row(length, dtype, values)
        expected = multiply(block, right, semiring, result)
        assert isinstance(expected, Dense)
        for count in (1, 2, 3, 7, 16):
            assert_bits(in_parts(block, right, semiring, result, count), expected.values)


def test_entries_of_other_dtypes_than_the_product_are_converted_as_for_the_whole_row():
    right = Dense(np.nan_to_num(operand(np.dtype(np.float64), None).values, posinf=3.0).astype(np.float32))
    for dtype in map(np.dtype, ("int32", "float32", "int8", "bool")):
        for result in map(np.dtype, ("float32", "float64")):
            block = row(3000, dtype)
            expected = multiply(block, right, PLUS_TIMES, result)
            assert isinstance(expected, Dense)
            assert_bits(in_parts(block, right, PLUS_TIMES, result, 3), expected.values)


def test_single_precision_is_rounded_once():
    ones = Csr((1, WIDTH), np.array([0, 128], np.int32), np.arange(128, dtype=np.int32), None, np.dtype("f4"))
    x = np.full(WIDTH, 2.0**-25, np.float32)
    x[0], x[127] = 1.0, 2.0**-25  # in single precision each of the others would be lost
    found = in_parts(ones, Dense(x), PLUS_TIMES, np.dtype(np.float32), 2)
    assert found == np.float32(1.0 + 127 * 2.0**-25)


@pytest.mark.parametrize("name", ["min_plus", "min_first", "min_second"])
def test_the_first_of_equal_ones_is_the_least_and_what_is_no_number_stays(name: str):
    semiring, dtype = SEMIRINGS_WITH_LOOPS[name], np.dtype(np.float64)
    for length in (128, 200, 640):
        block = row(length, dtype)
        block.values[:] = 0.0
        block.values[length // 2 :] = -0.0
        for x in (
            np.zeros(WIDTH),
            -np.zeros(WIDTH),
            np.full(WIDTH, np.inf),
            np.where(np.arange(WIDTH) % 7, 1.0, np.nan),
        ):
            expected = multiply(block, Dense(x), semiring, dtype)
            assert isinstance(expected, Dense)
            for count in (2, 3, 5):
                assert_bits(in_parts(block, Dense(x), semiring, dtype, count), expected.values)


@given(length=st.integers(0, 5000), count=st.integers(1, 40))
def test_each_entry_is_in_one_part_and_none_is_copied(length: int, count: int):
    block = row(length, np.dtype(np.float64))
    parts = [part_of_row([block], part, count) for part in range(count)]
    assert np.array_equal(np.concatenate([part.columns for part in parts]), block.columns)
    assert np.array_equal(np.concatenate([part.entries for part in parts]), block.values)
    for part in parts:
        assert part.pointers[0] == 0
        assert part.pointers[-1] == part.nnz
        assert part.pointers.size == part.shape[0] + 1
        assert np.all(np.diff(part.pointers) > 0)
        assert not part.nnz or np.shares_memory(part.columns, block.columns)
        assert not part.nnz or np.shares_memory(part.entries, block.values)
    sizes = [part.nnz for part in parts]
    assert max(sizes) - min(sizes) <= 2 * 64
    leaves = [leaves_of(length, part, count) for part in range(count)]
    assert [stop for _, stop in leaves[:-1]] == [start for start, _ in leaves[1:]]
    assert (leaves[0][0], leaves[-1][1]) == (0, num_leaves(length))


def test_a_block_that_lost_its_entries_gives_the_identity():
    nothing = Empty((1, WIDTH), np.dtype(np.float64))
    for semiring, expected in ((PLUS_TIMES, 0.0), (SEMIRINGS_WITH_LOOPS["min_plus"], np.inf)):
        found = in_parts(nothing, operand(nothing.dtype, None), semiring, nothing.dtype, 4)
        assert_bits(found, np.array([expected]))


def test_single_rows_with_many_entries_are_shared():
    assert is_shared(1, SHARED_ENTRIES)
    assert not is_shared(1, SHARED_ENTRIES - 1)
    assert not is_shared(2, 100 * SHARED_ENTRIES)
