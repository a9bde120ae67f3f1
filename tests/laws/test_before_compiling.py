"""What NumPy does before a loop is compiled has the loop's bits, and takes no longer than compiling would."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.blocks import sums
from matnb.blocks.formats import Csr, Dense
from matnb.blocks.kernels import compiled
from matnb.blocks.kernels.elementwise.elementwise import select_into
from matnb.blocks.kernels.patterns import moved_to_columns
from matnb.blocks.kernels.products.dense_products import multiply_into
from matnb.blocks.kernels.products.frontier import write_marked_sums
from matnb.blocks.kernels.products.products import multiply
from matnb.blocks.kernels.products.sparse_products import most_stored
from matnb.blocks.kernels.products.transposed_products import multiply_transposed
from matnb.blocks.kernels.reductions.counting_values import labeled
from matnb.blocks.kernels.reductions.deviations import Deviation, deviation_of_shares, deviation_share
from matnb.blocks.kernels.reductions.labels import reduce_by_label
from matnb.blocks.kernels.reductions.reductions import reduce_block
from matnb.blocks.kernels.reductions.scanning import scanned
from matnb.blocks.kernels.shaping.coordinates import DUPLICATES, entries_within, merge_entries
from matnb.blocks.kernels.shaping.indexing import _elements
from matnb.blocks.kernels.shaping.packing import pack, touched, unpack
from matnb.blocks.kernels.shaping.selecting import compress
from matnb.blocks.kernels.shaping.shaping import cut, join
from matnb.blocks.kernels.sorting.grouping import codes_of
from matnb.blocks.kernels.sorting.ordering import (
    arg_sort,
    firsts_of_rows,
    merged_pairs,
    merged_places,
    smallest,
)
from matnb.blocks.kernels.sorting.ordering import merged as merged_pieces
from matnb.blocks.semiring import MAX, MIN, PLUS, PLUS_TIMES
from matnb.errors import IndexingError, OptionError
from matnb.nested.kernels import segments

SEEDS, LENGTHS = st.integers(0, 99), st.one_of(st.integers(0, 140), st.integers(4000, 9000))
ALWAYS, NEVER = 0, 1 << 62


def found_by(worth: int, function: Callable[[], Any]) -> Any:
    """Return what a function gives when loops are compiled that are asked for so many elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_WORTH_COMPILING", worth)
        patch.setattr(compiled, "_has_code", lambda *_: False)
        patch.setattr(compiled, "_done_by_numpy", {})
        return function()


def bits(values: Any) -> Any:
    if isinstance(values, list | tuple):
        return [bits(one) for one in values]
    if isinstance(values, np.ndarray):
        values = np.ascontiguousarray(values).copy()
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan
        return values.shape, values.dtype, values.tobytes()
    return values


def check(function: Callable[[], Any]) -> None:
    assert bits(found_by(NEVER, function)) == bits(found_by(ALWAYS, function))


def numbers(shape: Any, seed: int, dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 6, shape)
    if seed % 4 == 1 and values.size:
        values.flat[rng.integers(0, values.size, 3)] = [np.nan, np.inf, -0.0]
    if seed % 4 == 2:
        values = np.where(values < 0, -0.0, 0.0)
    if np.dtype(dtype).kind in "iub":
        return np.clip(np.nan_to_num(values), -(10**6), 10**6).astype(dtype)
    return values.astype(dtype) + (1j if dtype == "complex64" else 0)


def parts(length: int, seed: int, unit: int = 1) -> list[tuple[int, int]]:
    inner = np.random.default_rng(seed).integers(1, max(2, length), 3) // unit * unit
    return list(pairwise([0, *sorted({int(one) for one in inner if 0 < one < length}), length]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of NaN and infinity, which are summed on purpose
@settings(max_examples=25)
@given(
    LENGTHS,
    SEEDS,
    st.integers(0, 2),
    st.integers(0, 200),
    st.sampled_from(["float64", "float32", "complex64"]),
)
def test_sums(length, seed, axis, start, dtype):
    shape = [2, 3, 2]
    shape[axis] = length

    def sum_up() -> list[np.ndarray]:
        x = numbers(tuple(shape), seed, dtype)
        shares = [
            sums.share_of(np.take(x, range(*one), axis), (axis,), axis, one[0]) for one in parts(length, seed)
        ]
        return [
            sums.share_of(x, (axis,)),
            sums.share_of(x, (axis,), axis, start),
            sums.share_of(x, (0, 1, 2)),
            sums.share_of(x.ravel(), (0,), 0, start),
            sums.share_of(x.ravel(), (0,)),
            sums.sum_of_shares(shares, parts(length, seed), axis),
            sums.share_of_shares(shares, parts(length, seed), axis),
        ]

    check(sum_up)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.integers(0, 3))
def test_sums_of_pieces(length, seed, leaves):
    def sum_up() -> np.ndarray:
        values, running = numbers(length, seed, "float32"), sums.VectorSum(64 * leaves)
        for begin, end in parts(length, seed, 64):
            running.add(values[begin:end])
        return running.share()

    with np.errstate(all="ignore"):
        check(sum_up)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.integers(0, 5000), st.sampled_from(["float64", "float32", "int32"]))
def test_deviations(length, seed, start, dtype):
    def measure() -> list[object]:
        values = numbers(length, seed, dtype)
        running = Deviation(start)
        cut = min(length, -start % 64 + 64 * (seed % 9))
        running.add(values[:cut])
        running.add(values[cut:])
        ranges = parts(length, seed)
        shares = [deviation_share(values[a:b], (0,), 0, a) for a, b in ranges]
        return [
            deviation_of_shares(shares, ranges, 0),
            deviation_share(values, (0,)),
            deviation_share(values, (0,), 0, start),
            running.share(),
            running.sums(),
            running.whole(),
            running.extreme("min"),
            running.extreme("max"),
        ]

    with np.errstate(all="ignore"):
        check(measure)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.integers(1, 3), st.sampled_from(["float64", "int64", "complex128"]))
def test_sums_of_labels(length, seed, width, dtype):
    def sum_up() -> list[np.ndarray]:
        values = np.nan_to_num(numbers((length, width), seed, dtype))
        labels = np.random.default_rng(seed).integers(0, 9, length)
        monoids = (PLUS, MIN, MAX) if dtype != "complex128" else (PLUS,)
        return [reduce_by_label(values, labels, 9, one, values.dtype).values for one in monoids]

    check(sum_up)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.sampled_from(DUPLICATES), st.sampled_from(["float64", "float32", "int64", "bool"]))
def test_entries_by_coordinates(length, seed, duplicates, dtype):
    def put_together() -> list[object]:
        rng, parts_made = np.random.default_rng(seed), []
        for number in range(2):
            values = np.nan_to_num(numbers(length, seed + number, dtype))
            places = rng.integers(0, 40 + length // 2, (2, length))
            block = [Dense(values), *map(Dense, places)]
            shape = (40 + length // 2,) * 2
            parts_made.append(entries_within(block, ((3, shape[0]), (2, shape[1] - 4)), shape, 0))
        try:
            merged = merge_entries(parts_made, duplicates, (3, 2), np.dtype(dtype))
        except OptionError as error:
            return [str(error)]
        return [getattr(merged, name, None) for name in ("shape", "pointers", "columns", "values")]

    check(put_together)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.sampled_from(["float64", "int32", "bool"]))
def test_what_booleans_pick(length, seed, dtype):
    def pick() -> list[np.ndarray]:
        values = numbers(length, seed, dtype)
        mask, out = np.random.default_rng(seed).random(length) > 0.5, np.empty(length, dtype)
        if not select_into(mask, values, values[::-1].copy(), out):
            out = np.where(mask, values, values[::-1])
        return [compress([Dense(values), Dense(mask)]).values, out]

    check(pick)


def offsets(length: int, seed: int) -> np.ndarray:
    """Return where the segments of so many values begin and end: empty, short and long ones."""
    rng = np.random.default_rng(seed)
    inner = rng.integers(0, length + 1, rng.integers(0, 12) if seed % 3 else length // 3)
    return np.sort(np.concatenate([[0, length], inner])).astype(np.int64)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=40)
@given(LENGTHS, SEEDS, st.booleans(), st.sampled_from(["float64", "float32", "int64", "int16", "bool"]))
def test_segments(length, seed, continues, dtype):
    values, bounds = numbers(length, seed, dtype), offsets(length, seed)
    start, stop = (0, length) if not continues else (int(bounds[0]), length)
    before = [Dense(np.array([3, 0]).astype(dtype))] if continues else []
    block = Dense(values), Dense(bounds + continues)
    total = np.dtype(dtype) if dtype != "bool" else np.dtype(np.int64)

    def run() -> list[np.ndarray]:
        found = [segments.ordered([Dense(values), Dense(bounds)], "values", start, stop).values]
        for exclusive in (False, True):
            of = [block[0], Dense(bounds), *before]
            found.append(segments.scanned(of, "add", total, 0, exclusive, start, stop).values)
        found.append(segments.reduced([Dense(values), Dense(bounds)], "sum", total, 0, start, stop).values)
        return found

    check(run)


@settings(max_examples=15)
@given(LENGTHS, SEEDS, st.sampled_from(["float64", "float32", "int64"]))
def test_running_sums(length, seed, dtype):
    values = Dense(np.nan_to_num(numbers(length, seed, dtype)))
    carry = [Dense(np.full(1, 0.1 * seed).astype(dtype))] if seed % 2 else []
    check(lambda: scanned([values, *carry], "add", 0, np.dtype(dtype)).values)


def matrix(rows: int, columns: int, seed: int, dtype: str) -> Csr:
    """Return a sparse block of rows without entries, with few, and with more than a leaf has."""
    rng = np.random.default_rng(seed)
    counts = np.minimum(rng.geometric(0.3, rows) - 1 + 70 * (rng.random(rows) < 0.1), columns)
    places = [np.sort(rng.choice(columns, count, replace=False)) for count in counts.tolist()]
    pointers = np.append(0, np.cumsum(counts)).astype(np.int32)
    found = np.concatenate([np.empty(0), *places]).astype(np.int32)
    values = None if seed % 3 == 0 else np.nan_to_num(numbers(found.size, seed, dtype))
    if values is not None and seed % 3 == 1 and dtype != "bool":
        values = np.sign(values).astype(dtype)  # sums that cancel
    return Csr((rows, columns), pointers, found, values, np.dtype(dtype))


SIZES = st.integers(0, 90)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=30)
@given(SIZES, SIZES, SEEDS, st.sampled_from(["float64", "float32", "int64", "int32"]))
def test_products(rows, columns, seed, dtype):
    A, wanted = matrix(rows, columns, seed, dtype), np.dtype(dtype)
    x, X = (np.nan_to_num(numbers(shape, seed + 1, dtype)) for shape in (columns, (columns, 3)))
    B = matrix(columns, 40, seed + seed % 2, dtype)

    def multiply_all() -> list[object]:
        outs = [np.empty(rows, wanted), np.empty((rows, 3), wanted)]
        for right, out in zip((x, X), outs, strict=True):
            multiply_into(A, Dense(right), PLUS_TIMES, out)
        turned = multiply_transposed(B, Dense(x), PLUS_TIMES, wanted).values
        both = multiply(A, B, PLUS_TIMES, wanted)
        made = [getattr(both, name, None) for name in ("shape", "pointers", "columns", "values")]
        return [*outs, turned, *made, most_stored(A, B)]

    check(multiply_all)


@settings(max_examples=25)
@given(SIZES, st.integers(1, 90), SEEDS, st.sampled_from(["float64", "int32", "bool"]))
def test_entries_moved(rows, columns, seed, dtype):
    A = matrix(rows, columns, seed, dtype)
    edge = seed % columns

    def move() -> list[object]:
        left, right = (cut(A, (slice(0, rows), part)) for part in (slice(0, edge), slice(edge, columns)))
        joined = join([((0, edge), right), ((0, 0), left)], A.shape, A.dtype, True)
        found = [reduce_block("sum", A, (0,), np.dtype(np.float64)).values, *moved_to_columns(A, A.values)]
        for one in (left, right, joined):
            found += [getattr(one, name, None) for name in ("shape", "pointers", "columns", "values")]
        return found

    check(move)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.booleans(), st.sampled_from(["float64", "float32", "int64", "int8", "bool"]))
def test_orders(length, seed, is_largest, dtype):
    values = numbers((2, length), seed, dtype)
    block, count = Dense(values), max(1, min(length, 7))

    def order() -> list[np.ndarray]:
        if not length:
            return []
        pieces = [Dense(np.sort(values[0])), Dense(np.sort(values[1]))]
        places = [Dense(np.argsort(one, kind="stable")) for one in values]
        found = [
            firsts_of_rows([block], count, is_largest).values,
            arg_sort([Dense(values[0])], 0, 3).values,
            merged_pieces(pieces).values,
            merged_places([*pieces, *places]).values,
            *merged_pairs([one.values for one in pieces], [one.values for one in places]),
        ]
        if dtype in ("float64", "float32", "int64"):
            found += [smallest([block], count, is_places).values for is_places in (False, True)]
        return found

    check(order)


@settings(max_examples=15)
@given(LENGTHS, SEEDS, st.sampled_from(["int8", "int32", "int64", "uint64"]))
def test_labels_counted(length, seed, dtype):
    labels = np.random.default_rng(seed).integers(0, 9, length).astype(dtype)
    if length and seed % 3 == 0:
        labels[seed % length] = 9 if dtype == "uint64" else -1

    def count() -> object:
        try:
            return labeled([Dense(labels)], 9, 5).values
        except IndexingError as error:
            return str(error)

    check(count)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.sampled_from(["float64", "float32", "int64", "uint8", "bool", "int32"]))
def test_codes_of_keys(length, seed, dtype):
    keys = numbers(length, seed, dtype)
    if seed % 2 and dtype in ("int64", "int32"):
        keys = keys * 9973
    check(lambda: codes_of([Dense(keys)]).values)


@settings(max_examples=25)
@given(LENGTHS, SEEDS, st.integers(1, 3), st.sampled_from(["float64", "int16", "bool"]))
def test_elements_by_places(length, seed, width, dtype):
    def move() -> list[np.ndarray]:
        values = numbers((length + 1, width)[: 1 + seed % 2], seed, dtype)
        places = np.sort(np.random.default_rng(seed).integers(0, length + 1, length)).astype(np.uint32)
        packed = np.empty((length, *values.shape[1:]), dtype)
        pack(values, places, packed)
        spread = np.zeros_like(values)
        unpack(packed, places, spread)
        A, seen = matrix(30, 40, seed, "float64"), np.zeros(20, np.uint8)
        touched(A, seed % 30, 20, seen)
        edge = length // 3
        blocks = values.reshape(len(values), -1)[:, 0]
        at = places.astype(np.int64)[::-1]
        cuts = [(0, edge), (edge, len(blocks))]
        found = _elements(at, [np.ascontiguousarray(blocks[a:b]) for a, b in cuts], cuts)
        return [packed, spread, seen, found]

    check(move)


@settings(max_examples=15)
@given(st.integers(1, 90), st.integers(1, 90), SEEDS)
def test_sums_of_marked_rows(rows, columns, seed):
    A, X = matrix(rows, columns, 3 * seed, "float64"), np.nan_to_num(numbers((columns, 4), seed))
    X[::2] = 0
    wanted = np.random.default_rng(seed).random((rows, 4)) > 0.5

    def multiply_some() -> np.ndarray:
        out = np.empty((rows, 4))
        write_marked_sums(A, Dense(X), wanted, out, lambda run, count: [run(part) for part in range(count)])
        return out

    check(multiply_some)


def test_a_loop_of_a_cell_has_the_same_bits():
    A = mn.random.rmat(scale=7, seed=1)
    share = np.where(A.sum(axis=1) > 0, 1 / np.maximum(A.sum(axis=1), 1), 0.0).persist()

    def rank() -> np.ndarray:
        def step(rank: mn.DistArray) -> mn.DistArray:
            return 0.15 / len(rank) + 0.85 * (A.T @ (rank * share) + (rank * (share == 0)).sum() / len(rank))

        start = mn.full(A.shape[0], 1 / A.shape[0])
        return np.asarray(mn.iterate(step, start, max_iterations=5)[0])

    with mn.start(workers=1, threads=1, memo="off"):
        check(rank)
    mn.stop()


def test_numpy_steps_in_until_compiling_would_have_been_as_quick():
    @compiled.compiled
    def doubled(values):
        return values * 2

    def asked() -> list[bool]:
        single = np.ones(4, np.float32)
        return [compiled.is_worth_compiling(doubled, 100, one) for one in [np.ones(4)] * 4 + [single]]

    before = compiled.num_specializations()
    assert found_by(3 * compiled._CALL, asked) == [False, False, True, True, False]
    assert compiled.num_specializations() - before == 3  # so that nobody takes these times for the loop's
    doubled(np.ones(4))
    assert compiled.is_worth_compiling(doubled, 1, np.ones(4))
    assert compiled.is_worth_compiling(compiled.compiled(doubled.py_func), 1, np.ones(4)), "it is on disk"


def test_a_process_of_little_work_does_not_start_numba(monkeypatch):
    @compiled.compiled
    def halved(values):
        return values / 2

    halved(np.ones(4))
    again = compiled.compiled(halved.py_func)  # whose code is on disk
    monkeypatch.setattr(compiled, "_WORTH_COMPILING", 1 << 24)
    monkeypatch.setattr(compiled, "_done_by_numpy", {})
    monkeypatch.setattr(compiled._machine_codes, "is_any_loaded", False)
    asked = [compiled.is_worth_compiling(again, compiled._WORTH_STARTING // 2, np.ones(4)) for _ in range(3)]
    assert asked == [False, False, True]
    monkeypatch.setattr(compiled, "_done_by_numpy", {})
    monkeypatch.setattr(compiled._machine_codes, "is_any_loaded", True)
    assert compiled.is_worth_compiling(again, 1, np.ones(4)), "and where it runs, reading takes milliseconds"
