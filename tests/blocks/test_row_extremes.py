"""Extremes and first elements of a product's rows, found by tiles: those of the whole, for any tiles."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.rows import row_extremes as kernel
from matnb.blocks.kernels.rows.row_extremes import RowSearch, row_extremes
from matnb.blocks.kernels.rows.row_tiles import TILE_BYTES, TileRoom
from matnb.blocks.kernels.sorting.ordering import firsts_of_rows, merged_firsts, part_of_firsts
from matnb.ops.ordering import firsts_of

FLOAT = np.dtype(np.float64)


def both_parts(packed: Dense, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    return tuple(to_numpy(part_of_firsts([packed], dtype, is_places, False)) for is_places in (True, False))


def drawn(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, share: float) -> np.ndarray:
    values = rng.integers(-3, 4, shape).astype(dtype)
    if values.dtype.kind == "f":
        values[rng.random(shape) < share] = np.nan
        values[(values == 0) & (rng.random(shape) < 0.5)] = -0.0
    return values


@pytest.fixture(params=[(1, 1, 1), (8, 2, 3), (64, 5, 16)], ids=str)
def tiles(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(("_TILE", "_FEWEST_ROWS", "_MOST_COLUMNS"), request.param, strict=True):
        monkeypatch.setattr(kernel, name, value)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("is_largest", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.2, 1.0])
def test_tiles_give_what_the_whole_product_gives(dtype, count, is_largest, share):
    # whole numbers, so that no sum is rounded; many are equal
    rng, element = np.random.default_rng(0), np.dtype(dtype)
    left, right = drawn(rng, (23, 3), dtype, 0.0), drawn(rng, (3, 17), dtype, 0.0)
    row, column = drawn(rng, (17,), dtype, share), drawn(rng, (23, 1), dtype, share / 4)
    links = (
        Link("multiply", (element, element), element, 0, False, (0, 1)),
        Link("add", (element, element), element, 0, False, (4, 2)),
        Link("subtract", (element, element), element, 0, False, (5, 3)),
    )
    whole = left @ right * 2 + row - column
    values = [Dense(one) for one in (left, right, np.array(2, dtype), row, column)]
    places, found = both_parts(row_extremes(values, element, links, RowSearch(count, is_largest)), element)
    if count:
        wanted = firsts_of(whole, count, is_largest, True)
    else:
        wanted = (np.argmax if is_largest else np.argmin)(whole, axis=1, keepdims=True)
    np.testing.assert_array_equal(places, wanted)
    np.testing.assert_array_equal(found, np.take_along_axis(whole, wanted, axis=1))
    assert found.dtype == element


@pytest.mark.usefixtures("tiles")
def test_a_product_alone_and_functions_of_another_dtype_are_searched():
    rng = np.random.default_rng(1)
    left, right = rng.integers(-9, 9, (30, 4)).astype("f4"), rng.integers(-9, 9, (4, 20)).astype("f4")
    search, single = RowSearch(3, False), np.dtype(np.float32)
    places, _ = both_parts(row_extremes([Dense(left), Dense(right)], single, (), search), single)
    np.testing.assert_array_equal(places, firsts_of(left @ right, 3, False, True))
    wide = (Link("astype", (single,), FLOAT, 0, False, (0,)),)
    places, found = both_parts(row_extremes([Dense(left), Dense(right)], single, wide, search), FLOAT)
    np.testing.assert_array_equal(places, firsts_of(left @ right, 3, False, True))
    assert found.dtype == FLOAT


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "maximum", "less"])
@pytest.mark.parametrize("shape", [(17,), (1, 17), (23, 1), (), (1, 1)], ids=str)
@pytest.mark.parametrize("arguments", [(0, 1), (1, 0), (0, 0)])
def test_functions_of_a_tile_have_numpys_bits(dtype, name, shape, arguments):
    rng, element = np.random.default_rng(2), np.dtype(dtype)
    left, right = np.eye(23, dtype=dtype), rng.normal(size=(23, 17)).astype(dtype)
    other, made = rng.normal(size=shape).astype(dtype), getattr(np, name)
    both = (left @ right, other)
    first = made(*(both[place] for place in arguments))
    wanted = first.astype(element) - other
    links = (Link(name, (element, element), first.dtype, 0, False, arguments),)
    if first.dtype != element:
        links = (*links, Link("astype", (first.dtype,), element, 0, False, (2,)))
    last = Link("subtract", (element, element), element, 0, False, (1 + len(links), 1))
    values = [Dense(left), Dense(right), Dense(other)]
    _, found = both_parts(row_extremes(values, element, (*links, last), RowSearch(17, False)), element)
    np.testing.assert_array_equal(found, np.sort(wanted, axis=1))


@given(
    st.integers(0, 99),
    st.integers(0, 4),
    st.integers(1, 40),
    st.sampled_from(["f8", "f4", "f2", "i8", "i4", "i1", "u8", "u4", "?"]),
    st.booleans(),
    st.data(),
)
def test_firsts_of_rows_and_of_blocks_of_columns_are_those_of_a_stable_sort(
    seed, rows, length, dtype, is_largest, data
):
    rng, share = np.random.default_rng(seed), data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    values = drawn(rng, (rows, length), dtype, share)
    count, cut = data.draw(st.integers(1, length)), data.draw(st.integers(0, length))
    whole = firsts_of_rows([Dense(values)], count, is_largest)
    pieces = [(values[:, :cut], 0), (values[:, cut:], cut)]
    parts = [
        firsts_of_rows([Dense(one)], min(count, one.shape[1]), is_largest, start)
        for one, start in pieces
        if one.shape[1]
    ]
    for packed in (whole, merged_firsts(parts, values.dtype, count, is_largest)):
        places, found = both_parts(packed, values.dtype)
        wanted = firsts_of(values, count, is_largest, True)
        np.testing.assert_array_equal(places, wanted)
        expected = np.take_along_axis(values, wanted, axis=1)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == values.dtype
        if values.dtype.kind == "f":
            assert (np.signbit(found) == np.signbit(expected))[expected == 0].all()


def test_memory_for_tiles_is_kept_and_no_more_than_a_few():
    room = TileRoom()
    first = room.take((256, 100), FLOAT)
    room.give(first)
    again = room.take((100, 200), FLOAT)
    assert np.shares_memory(first, again)
    for _ in range(9):
        room.give(np.empty((9, 9)))
    assert len(room._free[FLOAT]) == 4
    room = TileRoom()
    room.give(np.empty(TILE_BYTES // 8 + 1))
    assert room._free[FLOAT] == []
