"""Kernels of segments against a loop over lists, one segment at a time, for any blocks of the values."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.reductions.deviations import deviation_share, num_deviation_nodes
from matnb.blocks.kernels.reductions.labels import reduced_dtype
from matnb.blocks.sums import num_nodes
from matnb.lazy.ufuncs import literal
from matnb.nested.kernels import segment_orders
from matnb.nested.kernels import segments as kernels
from matnb.nested.segments import OPERATIONS, SCANS, Knots, SegmentOrder
from matnb.plan.lower import lower
from matnb.program.plan import Workers

FLOATS, WHOLE = ("float64", "float32"), ("int64", "int8", "uint8", "bool")
ODD = (0.0, -0.0, np.nan, np.inf, -np.inf, 1e300, -1e-300, 1.0, 0.1)
Segments = list[np.ndarray]

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy warns where numbers end
some = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def segments(draw: DrawFn, dtypes: Sequence[str] = (*FLOATS, *WHOLE)) -> Segments:
    """Draw segments: many empty or short ones, and perhaps one of some hundreds."""
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    lengths = draw(st.lists(st.sampled_from((0, 0, 1, 1, 2, 3, 8, 9, 63, 64, 65, 130)), max_size=8))
    if draw(st.booleans()):
        lengths.insert(draw(st.integers(0, len(lengths))), draw(st.integers(190, 700)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(("odd", "tied", "any")))
    found = []
    for length in lengths:
        if dtype.kind in "biu":
            most = 2 if dtype.kind == "b" else 5 if kind == "tied" else np.iinfo(dtype).max
            values = rng.integers(0, most, length)
        else:
            values = rng.normal(size=length) * 10.0 ** rng.integers(-9, 9, length)
            odd = rng.random(length) < {"odd": 0.2, "tied": 1.0, "any": 0.0}[kind]
            values[odd] = rng.choice(ODD, odd.sum())
            if dtype.kind == "c":
                values = values + 1j * rng.permutation(values)
        with np.errstate(all="ignore"):
            found.append(values.astype(dtype))
    return found or [np.empty(0, dtype)]


def flat(given: Segments) -> tuple[np.ndarray, np.ndarray]:
    """Return values, and where each segment begins and the last one ends."""
    return np.concatenate(given), np.cumsum([0, *map(len, given)], dtype=np.int64)


def cuts_of(size: int, places: Sequence[float]) -> list[int]:
    """Return cuts of so many values."""
    return sorted({0, size, *(int(one * size) for one in places)})


def offsets_around(offsets: np.ndarray, start: int, stop: int, more: int) -> np.ndarray:
    """Return the offsets of the segments that meet a block, and of a few around."""
    first = max(0, int(np.searchsorted(offsets, start, "right")) - 1 - more)
    last = min(offsets.size - 1, int(np.searchsorted(offsets, stop, "left")) + more)
    return offsets[first : last + 1]


def by_tree(values: np.ndarray) -> Any:
    """Return the sum in pairs, these in pairs again; what has no right neighbor goes up as it is."""
    if values.dtype.kind == "c":
        return complex(by_tree(values.real), by_tree(values.imag))
    level = list(values.astype(np.float64))
    while len(level) > 1:
        pairs = [one + other for one, other in zip(level[::2], level[1::2], strict=False)]
        level = pairs + level[len(level) - len(level) % 2 :]
    return level[0] + 0.0 if level else 0.0


def naive(one: np.ndarray, operation: str, dtype: np.dtype, identity: Any) -> Any:
    """Return what is left of one segment."""
    if not one.size:
        return identity
    if operation == "sum" and dtype.kind in "fc":
        return np.asarray(by_tree(one)).astype(dtype)
    if operation == "prod":
        total = dtype.type(1)
        for value in one.astype(dtype):
            total = total * value
        return total
    return getattr(np, operation)(one) if operation != "sum" else np.sum(one, dtype=dtype)


def identity_of(operation: str, dtype: np.dtype) -> Any:
    return -1 if operation in kernels.EXTREMES else OPERATIONS[operation].identity(dtype)


def dtype_of(operation: str, dtype: np.dtype) -> np.dtype:
    if operation in kernels.EXTREMES:
        return np.dtype(np.int64)
    if operation in ("any", "all"):
        return np.dtype(np.bool_)
    return reduced_dtype(OPERATIONS[operation], dtype) if operation in ("sum", "prod") else dtype


def assert_same(found: np.ndarray, expected: np.ndarray, signs: bool = False) -> None:
    """Refuse other values, and where asked other signs of zeros."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    if signs and found.dtype.kind in "f":
        there = ~np.isnan(found)
        np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(expected[there]))


def expected_of(parts: Segments, operation: str, dtype: np.dtype) -> np.ndarray:
    identity = identity_of(operation, dtype)
    with np.errstate(all="ignore"):
        return np.array([naive(one, operation, dtype, identity) for one in parts], dtype)


def check_reduced(parts: Segments, operation: str, first: int, last: int) -> None:
    values, offsets = flat(parts)
    dtype = dtype_of(operation, values.dtype)
    start, stop = int(offsets[first]), int(offsets[last])
    block = [Dense(values[start:stop])] if start < stop else []
    found = kernels.reduced(
        [*block, Dense(offsets[first : last + 1])],
        operation,
        dtype,
        identity_of(operation, dtype),
        start,
        stop,
    )
    assert_same(to_numpy(found), expected_of(parts[first:last], operation, dtype), operation == "sum")


@pytest.mark.parametrize("operation", [*OPERATIONS, *kernels.EXTREMES])
@some
@given(parts=segments(), ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_what_is_left_of_segments(operation: str, parts: Segments, ends: tuple[float, float]):
    first, last = sorted(round(one * len(parts)) for one in ends)
    check_reduced(parts, operation, first, last)


@some
@given(parts=segments(("complex128", "complex64")))
def test_sums_of_complex_segments(parts: Segments):
    check_reduced(parts, "sum", 0, len(parts))


@pytest.mark.parametrize("length", [4095, 4096, 4097, 8191, 12_345])
@pytest.mark.parametrize("dtype", FLOATS)
def test_sums_of_segments_of_many_leaves(length: int, dtype: str):
    rng = np.random.default_rng(length)
    check_reduced([rng.normal(size=one).astype(dtype) for one in (7, length, 0, 3)], "sum", 0, 4)


def test_whole_numbers_wrap_as_numpy_has_them():
    parts = [np.array([2**63 - 1, 1], np.int64), np.array([200, 100], np.uint8).astype(np.int64)]
    values, offsets = flat(parts)
    found = kernels.reduced([Dense(values), Dense(offsets)], "sum", np.dtype(np.int64), 0, 0, values.size)
    assert to_numpy(found).tolist() == [-(2**63), 300]


@pytest.mark.parametrize("operation", [*OPERATIONS, *kernels.EXTREMES])
@some
@given(parts=segments(), places=st.lists(st.floats(0, 1), max_size=5))
def test_a_segment_in_several_blocks(operation: str, parts: Segments, places: list[float]):
    one = max(parts, key=len)
    if not one.size:
        return
    dtype = dtype_of(operation, one.dtype)
    ranges = tuple(pairwise(cuts_of(one.size, places)))
    shares: list[Dense] = []
    found: list[Dense] = []
    is_tree = operation == "sum" and dtype.kind == "f"
    for start, stop in ranges:
        block = Dense(one[start:stop])
        in_order = operation == "prod" and dtype.kind == "f" and shares
        before = [shares[-1]] if in_order else []
        shares.append(kernels.share([block, *before], operation, dtype, start))
        assert len(to_numpy(shares[-1])) == (num_nodes(start, stop) if is_tree else 1)
        if operation in kernels.EXTREMES:
            found.append(kernels.extreme_place([block], operation, start))
    whole = kernels.of_shares(shares + found, operation, dtype, identity_of(operation, dtype), ranges)
    assert_same(to_numpy(whole), expected_of([one], operation, dtype), is_tree)


# Deviations: in one pass, as exact as two, with the bits of one tree for any cuts.


def deviations_of(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    stop = int(offsets[-1])
    block = [Dense(values), Dense(offsets)]
    return to_numpy(kernels.reduced(block, "deviation", np.dtype(float), np.float64(0), 0, stop))


@some
@given(parts=segments(), places=st.lists(st.floats(0, 1), max_size=5))
def test_deviations_have_the_bits_of_the_same_values_as_a_flat_array(parts: Segments, places: list[float]):
    found = deviations_of(*flat(parts))
    for one, number in zip(parts, found, strict=True):
        with np.errstate(all="ignore"):
            alone = deviation_share(one, (0,))[0, -1] if one.size else np.float64(0)
            ranges = tuple(pairwise(cuts_of(one.size, places)))
            shares = [kernels.share([Dense(one[a:b])], "deviation", np.dtype(float), a) for a, b in ranges]
        np.testing.assert_array_equal(number, alone)
        if ranges:
            assert [len(to_numpy(share)) for share in shares] == [
                num_deviation_nodes(*each) for each in ranges
            ]
            whole = kernels.of_shares(shares, "deviation", np.dtype(float), np.float64(0), ranges)
            np.testing.assert_array_equal(to_numpy(whole), [number])


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int16", "uint8"])
@pytest.mark.parametrize("offset", [0, 100, 10**8])
def test_deviations_are_exact_where_the_mean_is_large(dtype: str, offset: int):
    if np.dtype(dtype).kind in "iu":
        offset = min(offset, np.iinfo(dtype).max - 100)
    rng = np.random.default_rng(offset)
    lengths = [0, 1, 2, 0, 3, 8, 9, 63, 64, 65, 100, 127, 128, 129, 200, 4095, 4096, 4097, 10_000, 1]
    values = (rng.integers(0, 100, sum(lengths)) + offset).astype(dtype)
    if dtype == "float64":
        values += rng.random(values.size)
    offsets = np.cumsum([0, *lengths])
    found = deviations_of(values, offsets)
    for one, number in zip(np.split(values, offsets[1:-1]), found, strict=True):
        away = one.astype(np.longdouble)
        away -= away.mean() if one.size else 0
        np.testing.assert_allclose(number, float((away * away).sum()), rtol=1e-13, atol=1e-18)


@pytest.mark.parametrize("length", [1, 2, 70, 4100])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_deviations_of_what_is_not_finite_are_nan_in_its_segment_alone(value: float, length: int):
    values = np.ones(3 * length)
    values[length] = value
    found = deviations_of(values, np.arange(4) * length)
    np.testing.assert_array_equal(found, [0.0, np.nan, 0.0])


# Running values.


def running(parts: Segments, ufunc: str, dtype: np.dtype, is_exclusive: bool) -> np.ndarray:
    """Return the running values of each segment, one after the other."""
    identity, found = SCANS[ufunc].identity(dtype), [np.empty(0, dtype)]
    for one in parts:
        run = one.astype(dtype)
        if is_exclusive and run.size:
            run = np.concatenate((np.array([identity], dtype), run[:-1]))
        with np.errstate(all="ignore"):
            found.append(getattr(np, ufunc).accumulate(run, dtype=dtype))
    return np.concatenate(found)


def scan_dtype(ufunc: str, dtype: np.dtype) -> np.dtype:
    return reduced_dtype(SCANS[ufunc], dtype)


def blocks_of(parts: Segments, places: Sequence[float]) -> list[tuple[int, int]]:
    size = sum(map(len, parts))
    return list(pairwise(cuts_of(size, places))) if size else []


@pytest.mark.parametrize("is_exclusive", [False, True])
@pytest.mark.parametrize("ufunc", list(SCANS))
@some
@given(parts=segments(), places=st.lists(st.floats(0, 1), max_size=6), more=st.integers(0, 2))
def test_running_values_of_blocks_with_what_is_carried_into_them(
    ufunc: str, is_exclusive: bool, parts: Segments, places: list[float], more: int
):
    values, offsets = flat(parts)
    dtype = scan_dtype(ufunc, values.dtype)
    # Products of floats are made in the order of values: a block's own may overflow where the whole does not.
    assume(ufunc != "multiply" or dtype.kind != "f")
    identity = SCANS[ufunc].identity(dtype)
    found, before = [np.empty(0, dtype)], None
    for start, stop in blocks_of(parts, places):
        block = [Dense(values[start:stop]), Dense(offsets_around(offsets, start, stop, more))]
        carry = [] if before is None else [before]
        options = (ufunc, dtype, identity, is_exclusive, start, stop)
        found.append(to_numpy(kernels.scanned([*block, *carry], *options)))
        total = kernels.total_of(block, ufunc, dtype, start, stop)
        before = kernels.carried([before, total], ufunc) if before is not None else total
    made, expected = np.concatenate(found), running(parts, ufunc, dtype, is_exclusive)
    if dtype.kind == "f" and ufunc == "add":
        assert made.dtype == dtype
        is_small = np.isfinite(expected) & (np.abs(expected) < np.finfo(dtype).max / 1e6)
        magnitude = running([np.abs(one) for one in parts], ufunc, dtype, is_exclusive)
        kept = is_small & np.isfinite(magnitude)
        epsilon = 1000 * np.finfo(dtype).eps
        assert (np.abs(made - expected)[kept] <= epsilon * magnitude[kept] + np.finfo(dtype).tiny * 1e3).all()
        return
    assert_same(made, expected)


@pytest.mark.parametrize("is_exclusive", [False, True])
@pytest.mark.parametrize("ufunc", ["add", "multiply"])
@some
@given(parts=segments(FLOATS), places=st.lists(st.floats(0, 1), max_size=6))
def test_running_values_in_the_order_of_values_have_the_bits_of_one_block(
    ufunc: str, is_exclusive: bool, parts: Segments, places: list[float]
):
    values, offsets = flat(parts)
    dtype, identity = values.dtype, SCANS[ufunc].identity(values.dtype)
    found = [np.empty(0, dtype)]
    for start, stop in blocks_of(parts, places):
        carry = []
        if start and start not in offsets:
            left_out = [Dense(values[:start])] if is_exclusive else []
            carry = [kernels.last_of([Dense(found[-1]), *left_out], ufunc)]
        block = [Dense(values[start:stop]), Dense(offsets_around(offsets, start, stop, 0))]
        run = kernels.scanned([*block, *carry], ufunc, dtype, identity, is_exclusive, start, stop)
        found.append(to_numpy(run))
    assert_same(np.concatenate(found), running(parts, ufunc, dtype, is_exclusive), signs=True)


def test_a_block_that_begins_with_a_segment_takes_nothing_of_what_is_carried():
    values, offsets = [Dense(np.array([1.0, 2.0])), Dense(np.array([0, 2, 2, 4]))]
    carry = Dense(np.array([100.0, 1.0]))
    found = kernels.scanned([values, offsets, carry], "add", np.dtype(float), 0.0, False, 2, 4)
    assert to_numpy(found).tolist() == [1.0, 3.0]


def test_a_total_goes_on_to_the_next_block_only_where_no_segment_began():
    through = kernels.total_of([Dense(np.ones(2)), Dense(np.array([0, 9]))], "add", np.dtype(float), 2, 4)
    begins = kernels.total_of([Dense(np.ones(2)), Dense(np.array([0, 5, 9]))], "add", np.dtype(float), 4, 6)
    assert to_numpy(through).tolist() == [2.0, 0.0]
    assert to_numpy(begins).tolist() == [1.0, 1.0]
    assert to_numpy(kernels.carried([begins, through], "add")).tolist() == [3.0, 1.0]
    assert to_numpy(kernels.carried([through, begins], "add")).tolist() == [1.0, 1.0]


# Numbers of segments given to values, and orders.


@some
@given(parts=segments(), places=st.lists(st.floats(0, 1), max_size=4), more=st.integers(0, 2))
def test_a_number_of_each_segment_is_given_to_its_values(parts: Segments, places: list[float], more: int):
    _, offsets = flat(parts)
    numbers = np.arange(len(parts)) * 1.5
    found = [np.empty(0)]
    for start, stop in blocks_of(parts, places):
        near = offsets_around(offsets, start, stop, more)
        first = int(np.searchsorted(offsets, start, "right")) - 1 - more
        first = max(0, first)
        some_numbers = numbers[first : first + near.size - 1]
        found.append(to_numpy(kernels.spread([Dense(some_numbers), Dense(near)], start, stop)))
    np.testing.assert_array_equal(np.concatenate(found), np.repeat(numbers, np.diff(offsets)))


@pytest.mark.parametrize("wanted", ["values", "places", "ranks"])
@some
@given(parts=segments(), ends=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_orders_of_segments(wanted: str, parts: Segments, ends: tuple[float, float]):
    first, last = sorted(round(one * len(parts)) for one in ends)
    values, offsets = flat(parts)
    start, stop = int(offsets[first]), int(offsets[last])
    block = [Dense(values[start:stop]), Dense(offsets[first : last + 1])]
    found = to_numpy(kernels.ordered(block, wanted, start, stop))
    places = [np.argsort(one, kind="stable") for one in parts[first:last]]
    if wanted == "values":
        expected = [one[order] for one, order in zip(parts[first:last], places, strict=True)]
    else:
        expected = places if wanted == "places" else [np.argsort(one) for one in places]
    dtype = values.dtype if wanted == "values" else np.dtype(np.int64)
    assert_same(found, np.concatenate([np.empty(0, dtype), *expected]).astype(dtype))


def check_ordered(parts: Segments, wanted: str) -> None:
    values, offsets = flat(parts)
    before = values.copy()
    values.flags.writeable = False
    found = to_numpy(kernels.ordered([Dense(values), Dense(offsets)], wanted, 0, values.size))
    np.testing.assert_array_equal(values, before)
    places = [np.argsort(one, kind="stable") for one in parts]
    if wanted == "values":
        expected = [one[order] for one, order in zip(parts, places, strict=True)]
    else:
        expected = places if wanted == "places" else [np.argsort(one) for one in places]
    assert_same(found, np.concatenate(expected))


@pytest.mark.parametrize("wanted", ["values", "places", "ranks"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint64", "uint8", "bool"])
@pytest.mark.parametrize("num_distinct", [1, 3, 1000, 10**9])
def test_orders_of_long_segments_with_equal_values(wanted: str, dtype: str, num_distinct: int):
    rng = np.random.default_rng(num_distinct)
    parts = [rng.integers(0, num_distinct, one).astype(dtype) for one in (5000, 300, 300, 300, 2, 40, 40)]
    for one in parts[:2]:
        if dtype.startswith("float"):
            one[::7], one[::11] = np.nan, -0.0
    check_ordered(parts, wanted)


@pytest.mark.parametrize("wanted", ["values", "places", "ranks"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "uint8"])
def test_orders_of_segments_of_each_length_that_is_sorted_in_another_way(wanted: str, dtype: str):
    rng = np.random.default_rng(7)
    lengths = [0, 1, 2, 7, 8, 9, 10, 255, 256, 257, 263, 264, 265, 511, 512, 513, 520, 521, 767, 769, 1024,
               1025, 2048, 3000, 20_000]  # fmt: skip
    apart = rng.permutation(np.repeat(lengths, 2))
    together = np.repeat([9, 100, 300, 513], 40)
    parts = [rng.integers(0, 10**6, one).astype(dtype) for one in (*apart, *together)]
    if dtype.startswith("float"):
        for one in parts:
            one[rng.random(one.size) < 0.01] = np.nan
        parts += [np.full(1000, np.nan, dtype), np.array([*[np.nan] * 600, 1, -np.inf, np.inf], dtype)]
    check_ordered(parts, wanted)


@pytest.mark.parametrize("wanted", ["places", "ranks"])
def test_orders_of_values_that_differ_in_their_last_bits(wanted: str):
    # What is left of a key beside a place is the same for many, and for some neighbors only.
    rng = np.random.default_rng(3)
    for many in (3, 40, 5000):
        near = 1 + rng.integers(0, 50, many) * np.spacing(1.0)
        wide = np.array([-1e300, 1e300, 0.0, -0.0, 1e-300, np.nan, -np.inf])
        parts = [rng.permutation(np.concatenate([near, -near, wide])) for _ in range(3)]
        check_ordered([*parts, rng.random(500)], wanted)
        ends = np.iinfo(np.int64)
        close = ends.min + rng.integers(0, 9, many)
        check_ordered([rng.permutation(np.concatenate([close, -close - 1, [ends.max, ends.min]]))], wanted)


def test_segments_that_are_sorted_together_are_few_calls(monkeypatch: pytest.MonkeyPatch):
    # As many matrices as there are lengths, and as tiles: not one of each segment.
    rng = np.random.default_rng(2)
    lengths = rng.integers(100, 2000, 2000)
    values, offsets = rng.random(lengths.sum()), np.concatenate([[0], np.cumsum(lengths)])
    matrices, tiles = [], segment_orders._tiles

    def counted(starts: np.ndarray, length: int) -> list[np.ndarray]:
        found = list(tiles(starts, length))
        matrices.extend(found)
        return found

    monkeypatch.setattr(segment_orders, "_tiles", counted)
    found = to_numpy(kernels.ordered([Dense(values), Dense(offsets)], "values", 0, values.size))
    assert 0 < len(matrices) <= 256 + values.size // 2**14
    expected = np.concatenate([np.sort(one) for one in np.split(values, offsets[1:-1])])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("wanted", ["values", "places", "ranks"])
@pytest.mark.parametrize("dtype", ["float64", "uint8"])
def test_orders_take_no_more_memory_than_a_plan_says(wanted: str, dtype: str):
    rng = np.random.default_rng(4)
    knots = {"long": (1, 300_000), "short": (60_000, 300_000), "empty": (200_000, 60_000)}
    for name, (num_segments, num_values) in knots.items():
        values = rng.integers(0, 100, num_values).astype(dtype)
        cuts = [0, num_values] if name == "long" else np.arange(num_segments + 1) * 5
        offsets = np.minimum(np.asarray(cuts), num_values)
        block = [Dense(values), Dense(offsets)]
        kernels.ordered(block, wanted, 0, num_values)  # makes its machine code first
        node = SegmentOrder(
            literal(values), literal(offsets), Knots((0, num_segments), (0, num_values)), wanted
        )
        plan = lower([node], [], {}, Workers((0,), 1, 0, (0,)))
        said = max(task.working_bytes for task in plan.tasks if task.kind.name == "sort")
        tracemalloc.start()
        found = to_numpy(kernels.ordered(block, wanted, 0, num_values))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= said + found.nbytes
