"""Kernels that read and write at places known at run time, draw anew, and call a user's function."""

from __future__ import annotations

import itertools

import cloudpickle
import numpy as np
import psutil
import pytest
from block_checks import array_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import dense_blocks, sparse_blocks

from matnb.blocks.creation import Integers, Normal, Uniform, drawn_anew
from matnb.blocks.formats import Dense, freeze
from matnb.blocks.kernels.calls import Function, call, packed_bytes, unpack
from matnb.blocks.kernels.reductions.labels import reduced_dtype, scatter
from matnb.blocks.kernels.shaping.indexing import (
    gather,
    local_place,
    only,
    pick,
    place_of,
    put_into,
    steps_within,
)
from matnb.blocks.semiring import MAX, MIN, MONOIDS, PLUS
from matnb.errors import DTypeError, IndexingError, KernelError, ShapeError

FLOAT, INT = np.dtype(np.float64), np.dtype(np.int64)


def number(value: int, dtype: object = np.int64) -> Dense:
    return Dense(np.asarray(value, dtype))


def resident_bytes() -> int:
    return psutil.Process().memory_info().rss


def test_places_are_counted_from_the_start():
    assert place_of(number(-1), 5, 0) == 4
    assert place_of(number(255, np.uint8), 256, 0) == 255
    for outside in (number(5), number(-6), number(2**64 - 1, np.uint64)):
        with pytest.raises(IndexingError, match="out of bounds for axis 1 of length 5"):
            place_of(outside, 5, 1)


@given(st.data())
def test_pick_finds_the_place_in_one_block(drawn: st.DataObject):
    sparse = drawn.draw(st.booleans())
    shapes = [(rows, 3) for rows in drawn.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))]
    dtype = np.dtype(drawn.draw(st.sampled_from(["float64", "int32"])))
    blocks = [drawn.draw((sparse_blocks if sparse else dense_blocks)(shape, dtype)) for shape in shapes]
    whole = np.concatenate([array_of(block) for block in blocks])
    starts = tuple(np.cumsum([0, *(rows for rows, _ in shapes)])[:-1].tolist())
    place = drawn.draw(st.integers(-len(whole), len(whole) - 1))
    part = pick([number(place), *blocks], 0, starts, len(whole))
    assert part.shape == (1, 3)
    assert not any(np.shares_memory(part.values, block.values) for block in blocks if not sparse)
    apart = [
        pick([number(place), block], 0, [start], len(whole))
        for block, start in zip(blocks, starts, strict=True)
    ]
    assert sum(one.shape[0] for one in apart) == 1
    for found in (only([part], 0), only(apart, 0)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.values, whole[place])
    across = pick([number(-2), blocks[0]], 1, [0], 3)
    np.testing.assert_array_equal(only([across], 1).values, array_of(blocks[0])[:, 1])


def test_a_place_is_made_local():
    key, region, shape = ((2, 6, 1), None, 7), ((4, 8), (0, 5), (6, 9)), (8, 10, 9)
    assert local_place(key, region, shape, [number(-6)]) == (slice(0, 2, 1), 4, 1)
    assert local_place(key, region, shape, [number(5)]) is None  # beside the block
    assert local_place(((0, 4, 1), None, 7), region, shape, [number(4)]) is None
    with pytest.raises(IndexingError, match="index 10 is out of bounds for axis 1 of length 10"):
        local_place(((0, 4, 1), None, 7), region, shape, [number(10)])  # also where nothing would be written


@given(st.data())
def test_what_lies_of_a_slice_in_blocks_is_all_of_it(drawn: st.DataObject):
    length = drawn.draw(st.integers(1, 20))
    start, step = drawn.draw(st.integers(0, length - 1)), drawn.draw(st.integers(1, 5))
    chosen = (start, drawn.draw(st.integers(start, length)), step)
    cuts = [
        0,
        *sorted(drawn.draw(st.sets(st.integers(1, length - 1), max_size=4) if length > 1 else st.just([]))),
        length,
    ]
    whole, expected = np.zeros(length), np.zeros(length)
    expected[slice(*chosen)] = new = np.arange(1.0, len(range(*chosen)) + 1)
    for low, high in itertools.pairwise(cuts):
        first, last = steps_within(chosen, low, high)
        place = local_place((chosen,), ((low, high),), (length,), [])
        assert (place is None) == (first >= last)
        if place is not None:
            whole[low:high][place] = new[first:last]
    np.testing.assert_array_equal(whole, expected)


def test_put_copies_unless_it_is_given_memory():
    block, value = freeze(Dense(np.arange(12.0).reshape(3, 4))), Dense(np.array([7, 8]))
    expected = block.values.copy()
    expected[1, 1:3] = 7, 8
    made = put_into(block, (1, slice(1, 3)), value)
    np.testing.assert_array_equal(made.values, expected)
    assert block.values[1, 1] == 5
    assert put_into(block, None, value) is block
    memory = np.empty((3, 4))
    assert put_into(block, (1, slice(1, 3)), value, out=memory).values is memory
    np.testing.assert_array_equal(memory, expected)
    np.testing.assert_array_equal(put_into(block, None, value, out=memory).values, block.values)
    own = np.arange(12.0).reshape(3, 4)
    view = own.view()
    view.flags.writeable = False
    put_into(Dense(view), (1, slice(1, 3)), value, out=own)
    np.testing.assert_array_equal(own, expected)


def test_put_in_its_own_memory_touches_the_place_alone():
    own = np.zeros(2**22)  # 32 MB of pages that nobody wrote take no memory until somebody does
    before = resident_bytes()
    assert put_into(Dense(own), (slice(2, 4),), number(5), out=own).values is own
    assert resident_bytes() - before < own.nbytes // 4
    np.testing.assert_array_equal(own[:5], [0, 0, 5, 5, 0])


def test_put_of_a_single_element():
    np.testing.assert_array_equal(put_into(Dense(np.ones(())), (), number(4)).values, np.array(4.0))


@given(st.data())
def test_gather_is_numpys(drawn: st.DataObject):
    shape = drawn.draw(st.sampled_from([(4,), (4, 3), (5, 2, 2)]))
    block = drawn.draw(dense_blocks(shape))
    dtype = drawn.draw(st.sampled_from(["int64", "int32", "int8", "uint64", "uint8"]))
    low = 0 if dtype[0] == "u" else -shape[0]
    places = np.array(drawn.draw(st.lists(st.integers(low, shape[0] - 1), max_size=6)), dtype)
    expected = block.values[places]
    found = gather(block, Dense(places)).values
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    memory = np.empty_like(expected, order="C")
    assert gather(block, Dense(places), out=memory).values is memory
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("bad", [4, -5, 2**63, 2**64 - 1])
def test_gather_names_the_first_index_out_of_range(bad: int):
    places = np.array([1, bad, 9], np.uint64 if bad > 9 else np.int64)
    with pytest.raises(IndexingError, match=f"index {bad} is out of bounds for axis 0 of length 4"):
        gather(Dense(np.zeros(4)), Dense(places))
    with pytest.raises(IndexingError, match="length 0"):
        gather(Dense(np.zeros(0)), Dense(np.array([0])))
    assert gather(Dense(np.zeros((0, 2))), Dense(np.empty(0, int))).shape == (0, 2)


def test_scatter_names_the_global_position():
    values = Dense(np.array([1.0, 2.0, 3.0]))
    for dtype in (np.int64, np.int32, np.uint8, np.uint64):
        found = scatter(values, Dense(np.array([1, 1, 0], dtype)), 3, PLUS, FLOAT, 0)
        np.testing.assert_array_equal(found.values, [3.0, 3.0, 0.0])
    with pytest.raises(IndexingError, match="label 3 at position 101: labels go from 0 to 2"):
        scatter(values, Dense(np.array([1, 3, 9])), 3, PLUS, FLOAT, 100)
    with pytest.raises(IndexingError, match=f"label {2**64 - 1} at position 1"):
        scatter(values, Dense(np.array([1, 2**64 - 1, 0], np.uint64)), 3, PLUS, FLOAT, 0)


def test_dtypes_by_label_are_those_of_numpys_reductions():
    for dtype in ("bool", "int8", "uint8", "int32", "float32", "complex128"):
        assert reduced_dtype(PLUS, np.dtype(dtype)) == np.zeros(1, dtype).sum().dtype
        assert reduced_dtype(MONOIDS["times"], np.dtype(dtype)) == np.zeros(1, dtype).prod().dtype
        assert reduced_dtype(MONOIDS["lor"], np.dtype(dtype)) == np.bool_
    assert reduced_dtype(MIN, np.dtype(np.int8)) == np.int8
    with pytest.raises(DTypeError, match="identity"):
        reduced_dtype(MAX, np.dtype(np.complex128))
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(DTypeError, match="double precision"):
            reduced_dtype(PLUS, np.dtype(np.longdouble))


@pytest.mark.parametrize(
    "creation",
    [
        Uniform((1000,), 1, 2, 0.0, 1.0, FLOAT),
        Normal((1000,), 1, 2, 0.0, 1.0, FLOAT),
        Integers((1000,), 1, 2, 0, 2**62, INT),
    ],
)
def test_draws_follow_from_stream_and_numbers(creation: Uniform | Normal | Integers):
    def draw(one: Uniform | Normal | Integers) -> np.ndarray:
        return one.make(((0, 1000),)).values

    keys = [(), (0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (2**40,)]
    seen = [draw(drawn_anew(creation, numbers)) for numbers in keys]
    seen.append(draw(creation))
    for place, one in enumerate(seen):
        for other in seen[:place]:
            assert len(np.intersect1d(one, other)) == 0
    np.testing.assert_array_equal(seen[5], draw(drawn_anew(creation, (0, 1))))
    # these bits are promised: a loop that is run again gives what it gave
    assert drawn_anew(creation, (3, 4)).seed == 2419369778230608237
    assert drawn_anew(creation, (3, 4)).stream == 4560696431692583098


def function(fn: object, name: str = "fn") -> Function:
    return Function(name, cloudpickle.dumps(fn), b"")


def test_results_of_a_call_are_packed_and_unpacked():
    outputs = (((3,), np.dtype(np.int8)), ((), FLOAT), ((0, 2), INT), ((2, 2), np.dtype(np.complex128)))
    given_array = freeze(Dense(np.array([1.0, 2.0, 3.0])))

    def fn(array: np.ndarray, scalar: object) -> tuple[object, ...]:
        assert isinstance(scalar, np.int64)
        array[0] = 9  # its own copy
        return array.astype(np.int8), 2.5, np.zeros((0, 2), np.int64), np.array([[1j, 2], [3, 4]])

    packed = call(function(fn), [given_array, number(4)], outputs)
    assert packed.shape == (packed_bytes(outputs),)
    assert given_array.values[0] == 1
    results = [unpack([freeze(packed)], outputs, place).values for place in range(4)]
    np.testing.assert_array_equal(results[0], [9, 2, 3])
    assert results[1] == 2.5
    assert results[2].shape == (0, 2)
    np.testing.assert_array_equal(results[3], [[1j, 2], [3, 4]])
    assert [(one.shape, one.dtype) for one in results] == list(outputs)
    begin = packed.values.ctypes.data
    assert all((one.ctypes.data - begin) % 64 == 0 for one in results)  # none shares a cache line


def test_a_call_gives_what_was_recorded_or_an_error():
    one = [number(3)]
    assert unpack([call(function(lambda x: 3), one, (((), FLOAT),))], (((), FLOAT),), 0).values == 3.0
    with pytest.raises(ShapeError, match=r"fn .*gave a result of shape \(3,\), and \(2,\) when .* like="):
        call(function(lambda x: np.zeros(x)), one, (((2,), FLOAT),))
    with pytest.raises(ShapeError, match="gave 2 results, and 1"):
        call(function(lambda x: (x, x)), one, (((), INT),))
    with pytest.raises(DTypeError, match="of dtype float64, and int64"):
        call(function(lambda x: x / 2), one, (((), INT),))
    with pytest.raises(DTypeError, match="gave a str: it must return an array"):
        call(function(lambda x: "three"), one, (((), INT),))
    with pytest.raises(KernelError, match=r"fn raised ZeroDivisionError: .*by zero") as caught:
        call(function(lambda x: 1 // 0), one, (((), INT),))
    assert "Traceback" in caught.value.__notes__[0]


def test_functions_are_told_apart_by_what_they_do():
    assert Function("f", b"1", b"2").digest == Function("f", b"1", b"2").digest
    others = [Function("f", b"12", b""), Function("f", b"1", b"3"), Function("g", b"1", b"2")]
    assert len({one.digest for one in (*others, Function("f", b"1", b"2"))}) == 4
