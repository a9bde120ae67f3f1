"""Two sparse blocks merged: patterns and values against sets of places, with tiles that end anywhere."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import strategies
from block_checks import array_of, assert_same, assert_well_formed, mask_of, stored
from hypothesis import given, settings
from hypothesis import strategies as st

from matnb.blocks.formats import Csr
from matnb.blocks.kernels import patterns
from matnb.blocks.kernels.elementwise.elementwise import apply
from matnb.blocks.kernels.patterns import (
    as_csr,
    intersection,
    pattern_of,
    same_pattern,
    settled,
    union,
    values_at,
)
from matnb.blocks.kernels.products.products import accumulate
from matnb.blocks.semiring import LAND, LOR, MAX, MIN, PLUS, TIMES
from matnb.errors import TooLargeError

FLOAT = np.dtype(float)


@pytest.fixture(autouse=True, params=[1, 1 << 16])
def tiles(request, monkeypatch):
    monkeypatch.setattr(patterns, "TILE_ENTRIES", request.param)


@st.composite
def two_blocks(draw, *dtypes):
    shape = draw(strategies.matrix_shapes(7))
    found = [draw(strategies.sparse_blocks(shape, dtype)) for dtype in dtypes or (None, None)]
    one, other = found
    if draw(st.integers(0, 4)) == 0:
        other = one
    return one, other


@settings(max_examples=40)
@given(two_blocks())
def test_patterns_are_united_and_met(blocks):
    one, other = map(as_csr, blocks)
    for found, mask in [
        (union(one, other), mask_of(one) | mask_of(other)),
        (intersection(one, other), mask_of(one) & mask_of(other)),
    ]:
        assert_well_formed(settled(found))
        assert found.values is None
        np.testing.assert_array_equal(mask_of(found), mask)
    assert same_pattern(one, other) == np.array_equal(mask_of(one), mask_of(other))


@settings(max_examples=40)
@given(two_blocks())
def test_values_at_a_pattern(blocks):
    pattern, block = blocks
    found = values_at(pattern_of(pattern, FLOAT), block)
    assert found.dtype == block.dtype
    entries = stored(block)
    expected = [entries.get(place, block.dtype.type(0)) for place in stored(pattern)]
    np.testing.assert_array_equal(found, np.array(expected, block.dtype))


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "minimum", "divide"])
@settings(max_examples=40)
@given(data=st.data())
def test_values_meet_as_in_numpy_to_the_sign_of_a_zero(name, data):
    one, other = data.draw(two_blocks(FLOAT, FLOAT))
    found = apply(name, [one, other], (FLOAT, FLOAT), FLOAT, 0, True)
    masks = mask_of(one), mask_of(other)
    mask = (
        masks[0] & masks[1] if name == "multiply" else masks[0] if name == "divide" else masks[0] | masks[1]
    )
    with np.errstate(all="ignore"):
        expected = np.where(mask, getattr(np, name)(array_of(one), array_of(other)), 0.0)
    np.testing.assert_array_equal(mask_of(found), mask)
    assert_same(found, one.shape, FLOAT, expected)
    np.testing.assert_array_equal(np.signbit(array_of(found))[mask], np.signbit(expected)[mask])


MONOIDS_AND_DTYPES = [
    *((monoid, np.dtype(dtype)) for monoid in (PLUS, TIMES, MIN, MAX) for dtype in ("f8", "f4", "i8", "i4")),
    *((monoid, np.dtype(bool)) for monoid in (LOR, LAND, PLUS, MIN, MAX)),
]


@pytest.mark.parametrize(("monoid", "dtype"), MONOIDS_AND_DTYPES, ids=lambda one: getattr(one, "name", None))
@settings(max_examples=25)
@given(data=st.data())
def test_parts_accumulate_and_what_stands_alone_keeps_its_bits(monoid, dtype, data):
    shape = data.draw(strategies.matrix_shapes())
    parts = data.draw(st.lists(strategies.sparse_blocks(shape, dtype), min_size=1, max_size=4))
    expected: dict[tuple[int, int], object] = {}
    wide = FLOAT if dtype == np.float32 else dtype
    with np.errstate(all="ignore"):
        for part in parts:
            for place, value in stored(part).items():
                held = expected.get(place)
                value = np.asarray(value).astype(wide)
                expected[place] = value if held is None else getattr(np, monoid.ufunc)(held, value)
        found = accumulate(parts, monoid, dtype)
        array = np.zeros(shape, dtype)
        mask = np.zeros(shape, np.bool_)
        for place, value in expected.items():
            array[place], mask[place] = np.asarray(value).astype(dtype), True
    np.testing.assert_array_equal(mask_of(found), mask)
    assert_same(found, shape, dtype, array)
    if dtype.kind == "f" and monoid in (PLUS, TIMES):  # of -0.0 and 0.0 NumPy's least is either
        np.testing.assert_array_equal(np.signbit(array_of(found)), np.signbit(array))


def test_a_pattern_that_gains_nothing_is_shared():
    pointers, columns = np.array([0, 3], np.int32), np.arange(3, dtype=np.int32)
    whole = Csr((1, 3), pointers, columns, np.ones(3), FLOAT)
    part = Csr((1, 3), np.array([0, 1], np.int32), np.array([1], np.int32), np.ones(1), FLOAT)
    for operands, block in [([whole, part], whole), ([part, whole], whole)]:
        assert np.shares_memory(apply("add", operands, (FLOAT, FLOAT), FLOAT, 0, True).columns, block.columns)
        found = apply("multiply", operands, (FLOAT, FLOAT), FLOAT, 0, True)
        assert np.shares_memory(found.columns, part.columns)


def test_more_entries_than_a_block_can_hold_are_refused(monkeypatch):
    monkeypatch.setattr(patterns, "MAX_ENTRIES", 3)
    one, other = (
        Csr((1, 4), np.array([0, 2], np.int32), np.array(places, np.int32), np.ones(2), FLOAT)
        for places in ([0, 1], [2, 3])
    )
    with pytest.raises(TooLargeError, match="a block of 4 entries: cut the array into more blocks"):
        apply("add", [one, other], (FLOAT, FLOAT), FLOAT, 0, True)


def test_memory_is_the_result_as_if_nothing_met_and_tiles(monkeypatch):
    monkeypatch.setattr(patterns, "TILE_ENTRIES", 1 << 10)
    rng = np.random.default_rng(1)
    blocks = []
    for _ in range(2):
        mask = rng.random((300, 500)) < 0.3
        pointers = np.concatenate([[0], np.cumsum(mask.sum(axis=1))]).astype(np.int32)
        columns = np.nonzero(mask)[1].astype(np.int32)
        blocks.append(Csr(mask.shape, pointers, columns, rng.random(columns.size), FLOAT))
    tile = patterns.TILE_ENTRIES
    for name, most in [("add", sum(one.nnz for one in blocks)), ("multiply", min(one.nnz for one in blocks))]:
        apply(name, blocks, (FLOAT, FLOAT), FLOAT, 0, True)
        tracemalloc.start()
        try:
            apply(name, blocks, (FLOAT, FLOAT), FLOAT, 0, True)
            assert tracemalloc.get_traced_memory()[1] < 12 * most + 4 * 301 + tile * (2 * 4 + 6 * 8) + 20_000
        finally:
            tracemalloc.stop()
