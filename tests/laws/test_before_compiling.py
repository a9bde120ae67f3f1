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
from matnb.blocks.formats import Dense
from matnb.blocks.kernels import compiled
from matnb.blocks.kernels.coordinates import DUPLICATES, entries_within, merge_entries
from matnb.blocks.kernels.deviations import Deviation, deviation_of_shares, deviation_share
from matnb.blocks.kernels.elementwise import select_into
from matnb.blocks.kernels.labels import reduce_by_label
from matnb.blocks.kernels.selecting import compress
from matnb.blocks.semiring import PLUS
from matnb.errors import OptionError

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
    def sum_up() -> np.ndarray:
        values = np.nan_to_num(numbers((length, width), seed, dtype))
        labels = np.random.default_rng(seed).integers(0, 9, length)
        return reduce_by_label(values, labels, 9, PLUS, values.dtype).values

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
