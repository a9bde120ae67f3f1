"""Nested arrays mean what a list of NumPy arrays means, segment by segment, however they are cut and run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kinds import started
from plan_runner import run_by_hand, whole

import matnb as mn
from matnb.blocks.formats import to_numpy
from matnb.blocks.semiring import MONOIDS
from matnb.events import WorkersLost
from matnb.expr.traverse import topological
from matnb.plan.lower import lower
from matnb.program.plan import Workers

STRATEGIES = ("auto", "segmented", "uniform")
MOST_BLOCKS = 40
EXACT = 2.0**24  # float32 has the whole numbers up to here, and so have their sums
DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool", "complex128")
UFUNCS = {"plus": np.add, "times": np.multiply, "min": np.minimum, "max": np.maximum,
          "lor": np.logical_or, "land": np.logical_and}  # fmt: skip
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
IN_PROCESSES = [
    pytest.param(kind, marks=[pytest.mark.cluster, pytest.mark.slow])
    for kind in ("gang: processes", "dask: four processes")
]
IN_THREADS = ["dask: two threads", "gang: three workers"]
ON_EACH = pytest.mark.session("interpreter", *IN_THREADS, *IN_PROCESSES)


# The naive implementation: a list of arrays, and a function of one of them.


class Naive:
    """Segments one by one; what a function gives of none decides the dtype."""

    def __init__(self, segments: Sequence[np.ndarray], dtype: np.dtype) -> None:
        self.segments, self.dtype = list(segments), dtype

    def each(self, function: Callable[..., Any], *beside: Naive | np.ndarray) -> Naive:
        """Return what a function makes of each segment, and of a segment or a number beside it."""
        none = [np.empty(0, one.dtype) if isinstance(one, Naive) else one.dtype.type(0) for one in beside]
        parts = [one.segments if isinstance(one, Naive) else one for one in beside]
        with np.errstate(all="ignore"):
            dtype = function(np.empty(0, self.dtype), *none).dtype
            return Naive([function(*one) for one in zip(self.segments, *parts, strict=True)], dtype)

    def left(self, function: Callable[..., Any], dtype: Any, empty: Any) -> np.ndarray:
        """Return the one number a function leaves of each segment."""
        with np.errstate(all="ignore"):
            found = [function(one) if one.size else empty for one in self.segments]
        return np.array(found, dtype)

    @property
    def values(self) -> np.ndarray:
        return np.concatenate([np.empty(0, self.dtype), *self.segments]).astype(self.dtype)

    @property
    def is_small(self) -> bool:
        """Whether sums of the values have no rounding."""
        values = np.abs(self.values)
        return self.dtype.kind in "biu" or float(values[np.isfinite(values)].max(initial=0)) < EXACT


def naive_of(values: np.ndarray, counts: Sequence[int]) -> Naive:
    return Naive(np.split(values, np.cumsum(counts)[:-1]) if len(counts) else [], values.dtype)


def running(one: np.ndarray, monoid: str, exclusive: bool, reverse: bool) -> np.ndarray:
    ufunc = UFUNCS[monoid]
    dtype = np.dtype(bool) if monoid in ("lor", "land") else ufunc.accumulate(one[:1]).dtype
    run = one[::-1].astype(dtype) if reverse else one.astype(dtype)
    if exclusive and run.size:
        run = np.concatenate(([MONOIDS[monoid].identity(dtype)], run[:-1]))
    run = ufunc.accumulate(run, dtype=dtype) if run.size else run
    return run[::-1] if reverse else run


def ranks(one: np.ndarray) -> np.ndarray:
    return np.argsort(np.argsort(one, kind="stable"), kind="stable")


LEFT: dict[str, tuple[Callable[..., Any], str]] = {
    "sum": (np.sum, "plus"), "prod": (np.prod, "times"), "min": (np.min, "min"), "max": (np.max, "max"),
    "any": (np.any, "lor"), "all": (np.all, "land"),
}  # fmt: skip


def reduced(naive: Naive, name: str) -> np.ndarray:
    if name in ("argmin", "argmax"):
        return naive.left(getattr(np, name), np.int64, -1)
    function, monoid = LEFT[name]
    dtype = np.asarray(function(np.ones(1, naive.dtype))).dtype
    return naive.left(function, dtype, MONOIDS[monoid].identity(dtype))


def reductions_of(dtype: np.dtype) -> list[str]:
    return ["sum", "prod", "any", "all"] + ([] if dtype.kind == "c" else ["min", "max", "argmin", "argmax"])


# What is drawn.

lengths = st.one_of(
    st.just([]),
    st.lists(st.just(0), max_size=9),
    st.lists(st.integers(0, 1), max_size=80),
    st.lists(st.integers(0, 30), max_size=20),
    st.tuples(
        st.lists(st.integers(0, 3), max_size=9), st.integers(100, 700), st.lists(st.just(0), max_size=3)
    ).map(lambda parts: [*parts[0], parts[1], *parts[2]]),
    st.lists(st.sampled_from([0, 1, 130]), min_size=1, max_size=9).map(lambda found: [*found, 0]),
)


def drawn_values(dtype: str, count: int, seed: int) -> np.ndarray:
    # Whole numbers, of which sums have no rounding; and what is not finite, of which they have none, either.
    rng = np.random.default_rng(seed)
    values = rng.integers(0 if dtype in ("uint8", "bool") else -9, 10, count)
    if dtype == "complex128":
        return values + 1j * rng.integers(-9, 10, count)
    found = (values > 0 if dtype == "bool" else values).astype(dtype)
    if dtype.startswith("float") and seed % 3 == 0:
        odd = np.array([np.nan, np.inf, -np.inf, -0.0], dtype)
        found = np.where(rng.random(count) < 0.02, rng.choice(odd, count), found)
    return found


Turn = tuple[Callable[[Any], Any], Callable[[Naive], Naive]]  # of a nested array, and of the naive one


@st.composite
def turns(draw: st.DrawFn, counts: list[int], dtype: np.dtype) -> Turn:
    """One operation on both."""
    has_order, is_bool = dtype.kind != "c", dtype.kind == "b"
    kinds = ["scalar", "segment", "other", "unary", "scan", "reduced"]
    kind = draw(st.sampled_from(kinds + (["sort", "argsort", "rank"] if has_order else [])))
    if kind == "sort":
        return lambda N: N.sort(), lambda naive: naive.each(np.sort)
    if kind == "argsort":
        return lambda N: N.argsort(), lambda naive: naive.each(lambda one: np.argsort(one, kind="stable"))
    if kind == "rank":
        return lambda N: N.rank(), lambda naive: naive.each(ranks)
    if kind == "scan":
        monoid = draw(st.sampled_from([name for name in UFUNCS if has_order or name not in ("min", "max")]))
        exclusive, reverse, stable = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        return (
            lambda N: N.scan(monoid, exclusive=exclusive, reverse=reverse, stable=stable),
            lambda naive: naive.each(lambda one: running(one, monoid, exclusive, reverse)),
        )
    names = ["logical_xor", "logical_and"] if is_bool else ["add", "subtract", "multiply"]
    ufunc = getattr(np, draw(st.sampled_from(names + (["maximum", "less"] if has_order else ["equal"]))))
    if kind == "unary":
        ufunc = np.logical_not if is_bool else draw(st.sampled_from([np.square, np.absolute, np.negative]))
        ufunc = ufunc if has_order else np.conjugate  # the magnitude of a complex number rounds
        return lambda N: ufunc(N), lambda naive: naive.each(ufunc)
    if kind == "scalar":
        number = draw(st.booleans() if is_bool else st.integers(0, 3))
        if draw(st.booleans()):
            return lambda N: ufunc(N, number), lambda naive: naive.each(lambda one: ufunc(one, number))
        return lambda N: ufunc(number, N), lambda naive: naive.each(lambda one: ufunc(number, one))
    if kind == "reduced":
        name = draw(st.sampled_from(["sum", "any"] + (["min", "argmax"] if has_order else [])))
        # Of an empty one nothing is seen, and a number of a segment is given to each of its values.
        return (
            lambda N: np.logical_xor(N, getattr(N, name)()) if is_bool else N + getattr(N, name)(),
            lambda naive: naive.each(np.logical_xor if is_bool else np.add, reduced(naive, name)),
        )
    seed = draw(st.integers(0, 99))
    other = draw(st.sampled_from(["bool"] if is_bool else ["int64", "float32", "uint8"]))
    blocks = draw(st.integers(1, MOST_BLOCKS))
    if kind == "segment":
        v = drawn_values(other, len(counts), seed + 1)
        return lambda N: ufunc(
            N, mn.asarray(v, blocks=min(blocks, max(1, len(v))))
        ), lambda naive: naive.each(ufunc, v)
    w = drawn_values(other, sum(counts), 3 * seed + 1)
    strategy = draw(st.sampled_from(STRATEGIES))
    parts = naive_of(w, counts)

    def beside(N: Any) -> Any:
        made = mn.nested.unflatten(mn.asarray(w, blocks=blocks), counts, strategy=strategy)
        return ufunc(N, made)

    return beside, lambda naive: naive.each(ufunc, parts)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[int], Naive, list[Turn], Naive]:
    """Lengths, values, what is done with them, and what is left in the end."""
    counts = draw(lengths)
    values = drawn_values(draw(st.sampled_from(DTYPES)), sum(counts), draw(st.integers(0, 99)))
    first = naive_of(values, counts)
    program, last = [], first
    for _ in range(draw(st.integers(1, 10))):
        turn = draw(turns(counts, last.dtype))
        after = turn[1](last)
        if after.is_small:  # else rounding would show in which order things were added
            program.append(turn)
            last = after
    return counts, first, program, last


def made(naive: Naive, counts: list[int], way: str, strategy: str, blocks: int) -> Any:
    """Return a nested array, made in one of the ways there are."""
    values = mn.asarray(naive.values, blocks=blocks)
    if way == "counts on workers":
        return mn.nested.unflatten(values, mn.asarray(np.array(counts, np.int64)), strategy=strategy)
    offsets = np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64)
    if way == "offsets":
        return mn.nested.from_offsets(values, offsets, strategy=strategy)
    if way == "offsets on workers":
        return mn.nested.from_offsets(
            values, mn.asarray(offsets, blocks=min(blocks, offsets.size)), strategy=strategy
        )
    return mn.nested.unflatten(values, counts, strategy=strategy)


WAYS = ("counts", "counts on workers", "offsets", "offsets on workers")


def check_equal(found: Any, expected: np.ndarray, what: str) -> None:
    assert found.dtype == expected.dtype, what
    np.testing.assert_array_equal(np.asarray(found), expected, err_msg=what)


@ON_EACH
@settings(max_examples=30, suppress_health_check=SHARED)
@given(
    program=programs(),
    way=st.sampled_from(WAYS),
    blocks=st.lists(st.integers(1, MOST_BLOCKS), min_size=3, max_size=3),
)
def test_programs_mean_what_a_list_of_arrays_means(program: Any, way: str, blocks: list[int]) -> None:
    counts, first, steps, last = program
    names = reductions_of(last.dtype)
    for strategy, count in zip(STRATEGIES, blocks, strict=True):
        N = made(first, counts, way, strategy, count)
        for mine, _ in steps:
            N = mine(N)
        assert (N.num_segments, N.num_values, N.longest) == (len(counts), sum(counts), max(counts, default=0))
        lefts = [getattr(N, name)() for name in names]
        found = mn.compute(N.values, N.offsets, N.positions, *lefts)
        what = f"{strategy}, {count} blocks"
        check_equal(found[0], last.values, what)
        check_equal(found[1], np.concatenate(([0], np.cumsum(counts, dtype=np.int64))).astype(np.int64), what)
        check_equal(
            found[2], np.concatenate([np.empty(0, np.int64), *map(np.arange, counts)]).astype(np.int64), what
        )
        for name, one in zip(names, found[3:], strict=True):
            expected = reduced(last, name)
            assert one.dtype == expected.dtype, name
            if name == "prod" and expected.dtype.kind in "fc":
                np.testing.assert_allclose(
                    one, expected, rtol=1e-4 if one.itemsize == 4 else 1e-10, err_msg=name
                )
            else:
                np.testing.assert_array_equal(one, expected, err_msg=f"{name}, {what}")


@ON_EACH
def test_reduce_takes_the_names_of_monoids() -> None:
    values, counts = drawn_values("float64", 9, 1), [2, 0, 7]
    N = mn.nested.unflatten(values, counts)
    for name, (_, monoid) in LEFT.items():
        check_equal(N.reduce(monoid).compute(), reduced(naive_of(values, counts), name), monoid)


# Floats that round: bits are the same for all cuts where that is promised, near the right ones elsewhere.

COUNTS = [0, 0, 1, 1, 0, 1, 7, 3000, 40, 0, 1200, 2, 5, 0]
ROUNDED = {
    "sum": lambda N: N.sum(),
    "prod": lambda N: N.prod(),
    "mean": lambda N: N.mean(),
    "var": lambda N: N.var(),
    "std": lambda N: N.std(ddof=1),
    "stable": lambda N: N.cumsum(stable=True).values,
    "stable, exclusive": lambda N: N.scan("plus", stable=True, exclusive=True).values,
    "stable, reverse": lambda N: N.scan("plus", stable=True, reverse=True).values,
    "times": lambda N: N.cumprod().values,
    "max": lambda N: N.scan("max", exclusive=True).values,
    "fused": lambda N: (np.sqrt(abs(N)) * N - N.mean()).sum(),
    "after": lambda N: (N.cumsum(stable=True) / (N.rank() + 1)).sum(),
    "sorted": lambda N: N.sort().cumsum(stable=True).sum(),
}
SHORT = ("sum", "mean", "var", "stable", "fused")


def rounded_values(dtype: str = "float64") -> np.ndarray:
    rng = np.random.default_rng(8)
    n = sum(COUNTS)
    values = rng.standard_normal(n) * 10.0 ** rng.integers(-3, 3, n)
    return (values + 1j * rng.standard_normal(n) if dtype == "complex128" else values).astype(dtype)


def of_names(dtype: str) -> Sequence[str]:
    return (
        tuple(ROUNDED)
        if dtype == "float64"
        else SHORT
        if dtype == "float32"
        else ("sum", "mean", "var", "stable")
    )


UNEVEN = [[0, 3, 4, 2000, 2001, 3013, sum(COUNTS)]]


def bits_by_cuts(
    dtype: str,
    cuts: Sequence[Any] = (1, 2, 5, 13, MOST_BLOCKS, UNEVEN),
    strategies: Sequence[str] = STRATEGIES,
) -> dict[str, set[bytes]]:
    found: dict[str, set[bytes]] = {}
    for blocks in cuts:
        for strategy in strategies:
            given_values = mn.asarray(rounded_values(dtype), blocks=blocks)
            N = mn.nested.unflatten(given_values, COUNTS, strategy=strategy)
            names = of_names(dtype)
            for name, one in zip(names, mn.compute(*(ROUNDED[name](N) for name in names)), strict=True):
                found.setdefault(name, set()).add(np.asarray(one).tobytes())
    return found


@pytest.fixture(scope="module")
def bits_alone() -> dict[str, dict[str, set[bytes]]]:
    with started("one thread"):
        return {dtype: bits_by_cuts(dtype) for dtype in ("float64", "float32", "complex128")}


def test_promised_bits_follow_no_cuts(bits_alone: dict[str, dict[str, set[bytes]]]) -> None:
    for dtype, found in bits_alone.items():
        assert {name: len(bits) for name, bits in found.items()} == dict.fromkeys(found, 1), dtype


@pytest.mark.parametrize("kind", [*IN_THREADS, *IN_PROCESSES])
def test_promised_bits_follow_no_engine(bits_alone: dict[str, dict[str, set[bytes]]], kind: str) -> None:
    with started(kind):
        for dtype, found in bits_alone.items():
            assert bits_by_cuts(dtype, (13, UNEVEN), ("segmented", "uniform")) == found, dtype


@pytest.mark.session("two threads")  # whose plans say how values are cut
@pytest.mark.parametrize("blocks", [1, 7, MOST_BLOCKS])
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_bits_follow_no_machines(strategy: str, blocks: int) -> None:
    found: dict[str, set[bytes]] = {}
    for nodes, each in ((1, 1), (1, 4), (3, 3), (16, 1)):
        numbers = tuple(range(nodes * each))
        workers = Workers(numbers, 1, 0, tuple(number // each for number in numbers))
        N = mn.nested.unflatten(mn.asarray(rounded_values(), blocks=blocks), COUNTS, strategy=strategy)
        assert N.strategy == (strategy if blocks > 1 else "segmented")
        for name in ("sum", "mean", "stable", "stable, reverse", "after", "sorted"):
            node = ROUNDED[name](N).expression
            plan = lower([node], [], {}, workers)
            found.setdefault(name, set()).add(whole(node, plan.outputs[node], run_by_hand(plan)).tobytes())
    assert {name: len(bits) for name, bits in found.items()} == dict.fromkeys(found, 1)


@ON_EACH
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_variances_are_as_exact_as_numpys_where_the_mean_is_large(strategy: str) -> None:
    values = np.random.default_rng(2).standard_normal(sum(COUNTS)) + 1e8
    naive = naive_of(values, COUNTS)
    N = mn.nested.unflatten(mn.asarray(values, blocks=9), COUNTS, strategy=strategy)
    found, doubled = mn.compute(N.var(), (2 * N).std())
    np.testing.assert_allclose(found, naive.left(np.var, float, np.nan), rtol=1e-13, atol=1e-13)
    expected = naive.left(lambda one: (2 * one).std(), float, np.nan)
    np.testing.assert_allclose(doubled, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.session("two threads")  # whose plans say how values are cut
@pytest.mark.parametrize("name", ["sum", "prod", "argmax", "any", "var"])
def test_a_plan_says_how_large_shares_of_a_long_segment_are(name: str) -> None:
    N = mn.nested.unflatten(mn.asarray(rounded_values(), blocks=13), COUNTS, strategy="uniform")
    plan = lower([getattr(N, name)().expression], [], {}, Workers((0, 1, 2), 1, 0))
    values = run_by_hand(plan)
    shares = [task.key for task in plan.tasks if task.kind.name == "segments"]
    assert len(shares) > 13
    assert {key: to_numpy(values[key]).nbytes for key in shares} == {key: plan.sizes[key] for key in shares}


@pytest.mark.session("two threads")  # whose plans say how values are cut
def test_a_variance_goes_over_real_values_once() -> None:
    for dtype, num_passes in (("float64", 1), ("int32", 1), ("complex128", 2)):
        N = mn.nested.unflatten(mn.asarray(rounded_values(dtype), blocks=9), COUNTS)
        nodes = topological([N.var().expression])
        kinds = [type(one).__name__ for one in nodes]
        assert kinds.count("SegmentReduce") == num_passes
        assert kinds.count("SegmentSpread") == num_passes - 1


@ON_EACH
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32", "bool"])
def test_moments_and_scans_that_round_are_near_numpys(dtype: str) -> None:
    rng = np.random.default_rng(1)
    values = rounded_values(dtype) if dtype[0] in "fc" else rng.integers(0, 2, sum(COUNTS)).astype(dtype)
    naive = naive_of(values, COUNTS)
    near = 1e-3 if dtype == "float32" else 1e-9
    for strategy in STRATEGIES:
        N = mn.nested.unflatten(mn.asarray(values, blocks=9), COUNTS, strategy=strategy)
        for name in ("mean", "var", "std"):
            expected = naive.left(getattr(np, name), getattr(np, name)(values).dtype, np.nan)
            found = getattr(N, name)().compute()
            assert found.dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=near, atol=near)
        expected = naive.left(
            lambda one: one.var(ddof=1) if one.size > 1 else np.nan, values.real.var().dtype, np.nan
        )
        np.testing.assert_allclose(N.var(ddof=1).compute(), expected, rtol=near, atol=near)
        for stable in (False, True):
            for reverse in (False, True):
                for exclusive in (False, True):
                    found = N.scan("plus", exclusive=exclusive, reverse=reverse, stable=stable)
                    expected = naive.each(
                        lambda one, e=exclusive, r=reverse: running(one, "plus", e, r)
                    ).values
                    largest = 1 + abs(expected).max()
                    np.testing.assert_allclose(
                        found.values.compute(), expected, rtol=near, atol=near * largest
                    )
        assert N.tolist() == [one.tolist() for one in naive.segments]


# NumPy's reduceat has two traps.


@ON_EACH
def test_an_empty_segment_has_the_identity_and_not_the_element_there() -> None:
    values, offsets = np.array([5.0, 7.0, 9.0]), np.array([0, 1, 1, 3])
    assert np.add.reduceat(values, offsets[:-1]).tolist() == [5.0, 7.0, 16.0]  # 7 of nothing
    assert mn.nested.from_offsets(values, offsets).sum().compute().tolist() == [5.0, 0.0, 16.0]
    assert mn.nested.from_offsets(values, offsets).max().compute().tolist() == [5.0, -np.inf, 9.0]


@ON_EACH
def test_the_last_offset_may_be_the_end() -> None:
    values, offsets = np.array([5.0, 7.0]), np.array([0, 2, 2])
    with pytest.raises(IndexError):
        np.add.reduceat(values, offsets[:-1])
    assert mn.nested.from_offsets(values, offsets).sum().compute().tolist() == [12.0, 0.0]
    assert mn.nested.from_offsets(values, offsets).argmin().compute().tolist() == [0, -1]
    assert mn.nested.from_offsets(values, offsets).argmax().compute().tolist() == [1, -1]


# Inside a loop, and when a worker is lost.


@ON_EACH
@pytest.mark.parametrize("strategy", ["segmented", "uniform"])
def test_a_loop_scans_and_reduces_in_fixed_segments(strategy: str) -> None:
    values = drawn_values("float64", sum(COUNTS), 1)
    N = mn.nested.unflatten(mn.asarray(values, blocks=6), COUNTS, strategy=strategy)

    def step(x: Any) -> Any:
        M = N.with_values(x)
        return (M.scan("max") - M.min()).flatten()

    found, _ = mn.iterate(step, N.values, max_iterations=4)
    naive = naive_of(values, COUNTS)
    for _ in range(4):
        naive = naive.each(
            lambda one: np.maximum.accumulate(one) - one.min(initial=np.inf) if one.size else one
        )
    check_equal(found.compute(), naive.values, strategy)


@pytest.mark.slow
@pytest.mark.cluster
def test_a_killed_worker_in_a_uniform_scan_ends_right() -> None:
    rng = np.random.default_rng(0)
    counts = [*rng.integers(0, 50, 2000).tolist(), 4_000_000, 0, 3]
    values = rng.integers(-9, 10, sum(counts)).astype(float)
    with mn.start(workers=2, threads=1, processes=True) as session:
        lost: list[WorkersLost] = []
        session.subscribe(lambda event: lost.append(event) if isinstance(event, WorkersLost) else None)
        N = mn.nested.unflatten(mn.asarray(values, blocks=40), counts, strategy="uniform")
        assert N.strategy == "uniform"
        M = N
        for _ in range(60):
            M = M.cumsum() - M.cumsum(stable=True) + N
        pid = next(iter(session.cluster.client.run(os.getpid).values()))
        timer = threading.Timer(1.0, os.kill, (pid, signal.SIGKILL))
        timer.start()
        found = M.cumsum().values.compute()
        timer.join()
        assert lost
    mn.stop()
    offsets = np.concatenate(([0], np.cumsum(counts)))
    expected = [np.cumsum(values[begin:end]) for begin, end in pairwise(offsets)]
    np.testing.assert_array_equal(found, np.concatenate(expected))
