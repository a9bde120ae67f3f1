"""Bad input of nested arrays: one error at the line that wrote it, saying what, where, and what to do."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, KernelError, LoopBodyError, OptionError, ShapeError, UnsupportedError

ON_WORKERS = pytest.mark.parametrize(
    "given", [list, np.asarray, mn.asarray], ids=["list", "numpy", "workers"]
)
Given = Callable[[list[int]], object]


@pytest.fixture(autouse=True, scope="module")
def _session(interpreter: None) -> None:
    return


def three() -> mn.nested.NestedArray:
    return mn.nested.unflatten([1.0, 2.0, 3.0], [1, 0, 2])


# Lengths and offsets.


@ON_WORKERS
@pytest.mark.parametrize("counts", [[1, 1], [2, 2], [0], [5]])
def test_lengths_that_do_not_add_up_name_both_numbers(given: Given, counts: list[int]) -> None:
    with pytest.raises(ShapeError, match=rf"for {sum(counts)} values, but there are 3\b"):
        mn.nested.unflatten([1.0, 2.0, 3.0], given(counts))
    with pytest.raises(ShapeError, match=rf"for {sum(counts)} values, but there are 3\b"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given([0, *np.cumsum(counts).tolist()]))


@ON_WORKERS
def test_values_without_a_segment_are_refused(given: Given) -> None:
    with pytest.raises(ShapeError, match=r"for 0 values, but there are 3\b"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given([0]))


@ON_WORKERS
def test_a_negative_length_is_named_with_its_place(given: Given) -> None:
    with pytest.raises(ShapeError, match=r"counts: segment 2 would have length -4"):
        mn.nested.unflatten([1.0, 2.0, 3.0], given([3, 1, -4, -7, 3]))


@ON_WORKERS
def test_offsets_that_decrease_are_named_with_their_place(given: Given) -> None:
    with pytest.raises(ShapeError, match=r"offsets: segment 1 would have length -2"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given([0, 2, 0, 3]))


@ON_WORKERS
@pytest.mark.parametrize("first", [1, 3])
def test_offsets_begin_with_zero(given: Given, first: int) -> None:
    with pytest.raises(ShapeError, match=rf"offsets begins with {first}: the first segment begins at 0"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given([first, 3]))


@ON_WORKERS
def test_a_first_offset_below_zero(given: Given) -> None:
    with pytest.raises(ShapeError, match="offsets begins with -1"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given([-1, 3]))


@pytest.mark.parametrize("offsets", [[], np.empty(0, np.int64)])
def test_there_is_at_least_one_offset(offsets: object) -> None:
    with pytest.raises(ShapeError, match="offsets must not be empty: start with 0"):
        mn.nested.from_offsets([], offsets)


def test_no_offset_on_the_workers() -> None:
    with pytest.raises(ShapeError, match="offsets must not be empty: start with 0"):
        mn.nested.from_offsets([], mn.asarray(np.empty(0, np.int64)))


def test_an_only_offset_that_is_not_zero() -> None:
    for offsets in ([3], mn.asarray(np.array([3]))):
        with pytest.raises(ShapeError, match="offsets begins with 3"):
            mn.nested.from_offsets([1.0, 2.0, 3.0], offsets)


@pytest.mark.parametrize("counts", [[1.0, 2.0], [True, True], np.array(["1", "2"]), np.array([1, 2], "O")])
def test_lengths_are_whole_numbers(counts: object) -> None:
    with pytest.raises(DTypeError):
        mn.nested.unflatten([1.0, 2.0, 3.0], counts)
    with pytest.raises(DTypeError):
        mn.nested.from_offsets([1.0, 2.0, 3.0], counts)


def test_lengths_that_are_floats_name_the_dtype() -> None:
    for counts in ([1.0, 2.0], mn.asarray(np.array([1.0, 2.0]))):
        with pytest.raises(DTypeError, match="counts has dtype float64: give whole numbers"):
            mn.nested.unflatten([1.0, 2.0, 3.0], counts)


@pytest.mark.parametrize("counts", [[[1, 2]], np.array([[3]]), np.int64(3), 3])
def test_lengths_have_one_axis(counts: object) -> None:
    with pytest.raises(ShapeError, match="in one axis"):
        mn.nested.unflatten([1.0, 2.0, 3.0], counts)


def test_unsigned_lengths_are_lengths() -> None:
    counts = np.array([2, 0, 1], np.uint64)
    for given in (counts, mn.asarray(counts), counts.astype(np.uint8)):
        assert mn.nested.unflatten([1.0, 2.0, 3.0], given).tolist() == [[1.0, 2.0], [], [3.0]]
    offsets = np.array([0, 2, 2, 3], np.uint32)
    for given in (offsets, mn.asarray(offsets)):
        assert mn.nested.from_offsets([1.0, 2.0, 3.0], given).tolist() == [[1.0, 2.0], [], [3.0]]


@ON_WORKERS
def test_unsigned_offsets_that_decrease(given: Given) -> None:
    with pytest.raises(ShapeError, match="segment 1 would have length -2"):
        mn.nested.from_offsets([1.0, 2.0, 3.0], given(np.array([0, 2, 0, 3], np.uint64)))


def test_lengths_whose_sum_overflows() -> None:
    huge = [2**62, 2**62, 2**62, 2**62, 3]  # together 3, in 64 bits
    for counts in (huge, mn.asarray(np.array(huge))):
        with pytest.raises(ShapeError, match=r"more values than 64 bits count"):
            mn.nested.unflatten([1.0, 2.0, 3.0], counts)


# Values.


def test_values_have_one_axis() -> None:
    for values in (np.ones((2, 2)), mn.ones((2, 2)), 3.0, sp.csr_array(np.eye(2))):
        with pytest.raises(ShapeError, match="values have shape"):
            mn.nested.unflatten(values, [2, 2])


@pytest.mark.parametrize(
    "values", [np.ones(3, np.float16), np.ones(3, np.longdouble), np.ones(3, np.clongdouble)]
)
def test_numbers_of_other_widths_are_refused(values: np.ndarray) -> None:
    with pytest.raises(DTypeError, match=r"float16|128|longdouble|256"):
        mn.nested.unflatten(values, [1, 2])


@pytest.mark.parametrize(
    "values", [["a", "b", "c"], np.array(["2020-01-01"] * 3, "M8[s]"), np.array([1, 2, 3], "O")]
)
def test_what_is_no_number_is_refused(values: object) -> None:
    with pytest.raises(DTypeError):
        mn.nested.unflatten(values, [1, 2])


@pytest.mark.parametrize(
    "made",
    [
        lambda: np.sqrt(mn.nested.from_lists([np.ones(2, np.int8)])),
        lambda: mn.nested.from_lists([[1.0]]).astype(np.float16),
        lambda: mn.nested.from_rows(sp.csr_array(np.eye(2, dtype=np.longdouble))),
    ],
)
def test_operations_give_no_numbers_of_other_widths(made: Callable[[], object]) -> None:
    with pytest.raises(DTypeError, match=r"would have dtype (float16: convert|float128: give)"):
        made()


def test_an_empty_array_has_a_dtype() -> None:
    assert mn.nested.from_lists([[], np.empty(0, np.int8)]).dtype == np.int8
    assert mn.nested.from_lists([[1], np.empty(0, np.float32)]).dtype == np.int64
    assert mn.nested.from_lists([[], []]).dtype == np.float64


@pytest.mark.parametrize(
    "given",
    [
        lambda ragged: mn.nested.merge(ragged),
        lambda ragged: mn.nested.unflatten(ragged, [1, 1]),
        lambda ragged: mn.nested.unflatten([1, 2], ragged),
        lambda ragged: three().with_values(ragged),
    ],
)
def test_lists_in_a_list_name_the_way(given: Callable[[object], object]) -> None:
    with pytest.raises(ShapeError, match=r"lists in a list: .*mn\.nested\.from_lists"):
        given([[1], [2, 3]])


def test_lists_of_something_else() -> None:
    with pytest.raises(ShapeError, match="from_lists: int: give a list of lists"):
        mn.nested.from_lists(5)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match=r"element 1 has shape \(\): give a list of numbers"):
        mn.nested.from_lists([[1], 2])
    with pytest.raises(ShapeError, match=r"element 0 has shape \(1, 2\)"):
        mn.nested.from_lists([[[1, 2]]])
    with pytest.raises(DTypeError):
        mn.nested.from_lists([["a"], ["b"]])


@pytest.mark.parametrize("make", [mn.nested.unflatten, mn.nested.from_offsets])
def test_strategies_have_names(make: Callable[..., object]) -> None:
    with pytest.raises(OptionError, match=r"strategy='segmentd'.*segmented"):
        make([1.0, 2.0], [0, 2], strategy="segmentd")
    with pytest.raises(OptionError, match="strategy='segmentd'"):
        mn.nested.from_lists([[1]], strategy="segmentd")


# Operations.


@ON_WORKERS
def test_segments_that_differ_are_named_with_both_lengths(given: Given) -> None:
    other = mn.nested.unflatten([1.0, 2.0, 3.0], given([1, 2, 0]))
    for work in (lambda: three() + other, lambda: np.maximum(other, three()), lambda: three() * 2 == other):
        with pytest.raises(ShapeError, match=r"segment 1 has length [02] in one and [02] in the other"):
            work()


def test_other_numbers_of_segments() -> None:
    with pytest.raises(ShapeError, match="3 and 4 segments"):
        three() + mn.nested.unflatten([1.0, 2.0, 3.0], [1, 0, 2, 0])


def test_equal_lengths_from_elsewhere_are_equal() -> None:
    other = mn.nested.unflatten([1.0, 2.0, 3.0], mn.asarray(np.array([1, 0, 2])), strategy="uniform")
    assert (three() + other).tolist() == [[2.0], [], [4.0, 6.0]]


@pytest.mark.parametrize("beside", [np.ones(2), np.ones(1), np.ones((3, 1)), np.ones((3, 3))])
def test_what_stands_beside_has_a_value_a_segment(beside: np.ndarray) -> None:
    with pytest.raises(ShapeError, match=r"beside 3 segments: give a value for each segment, or N\.gather"):
        three() * beside
    with pytest.raises(ShapeError, match="beside 3 segments"):
        beside * three()


def test_other_numbers_of_values() -> None:
    with pytest.raises(ShapeError, match="with_values: 2 values for segments of 3"):
        three().with_values([1.0, 2.0])


@pytest.mark.parametrize("axis", [0, 2, None])
def test_there_is_one_axis_to_reduce(axis: object) -> None:
    for name in (
        "sum",
        "prod",
        "min",
        "max",
        "any",
        "all",
        "argmin",
        "argmax",
        "mean",
        "var",
        "std",
        "count",
    ):
        with pytest.raises(OptionError, match="axis=-1"):
            getattr(three(), name)(axis)


def test_monoids_have_names() -> None:
    with pytest.raises(OptionError, match=r"reduce: monoid='plsu'.*plus"):
        three().reduce("plsu")
    with pytest.raises(OptionError, match=r"reduce: monoid=\['plus'\]; there are 'plus'"):
        three().reduce(["plus"])  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"scan: monoid='mxa'.*max"):
        three().scan("mxa")


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "sort", "argsort", "rank"])
def test_complex_numbers_have_no_order(name: str) -> None:
    N = mn.nested.unflatten([1j, 2.0], [1, 1])
    with pytest.raises(DTypeError, match=f"{name} of complex segments: complex numbers have no order"):
        getattr(N, name)()


def test_complex_numbers_have_no_running_extremes() -> None:
    for monoid in ("min", "max"):
        with pytest.raises(DTypeError, match="complex numbers have no order"):
            mn.nested.unflatten([1j, 2.0], [1, 1]).scan(monoid)


def test_methods_of_ufuncs_and_out_are_refused() -> None:
    for work in (lambda: np.add.reduce(three()), lambda: np.add.accumulate(three())):
        with pytest.raises(UnsupportedError, match="use methods such as"):
            work()


def test_too_few_values_to_gather() -> None:
    with pytest.raises(ShapeError, match="gather: 1 values, but the longest segment has 2"):
        three().gather([1.0])
    assert three().gather([5.0, 6.0]).tolist() == [[5.0], [], [5.0, 6.0]]


# Inside loops.


def test_a_structure_of_a_loops_state_is_refused() -> None:
    values = mn.asarray(np.arange(6.0))
    for make, counts in ((mn.nested.unflatten, [1, 2, 3]), (mn.nested.from_offsets, [0, 2, 6])):
        with pytest.raises(LoopBodyError, match=r"depends on the state of a loop.*with_values"):
            mn.iterate(
                lambda s, make=make: make(values, s).counts, mn.asarray(np.array(counts)), max_iterations=2
            )


def test_values_of_a_loops_state_are_none() -> None:
    N = mn.nested.unflatten(np.arange(6.0), [1, 2, 3])
    found, _ = mn.iterate(
        lambda x: (N.with_values(x) + N.with_values(x).sum()).flatten(), N.values, max_iterations=1
    )
    assert found.compute().tolist() == [0.0, 4.0, 5.0, 15.0, 16.0, 17.0]


# None moves data first where lengths are known.


def test_values_are_not_read_for_lengths_that_do_not_add_up() -> None:
    def refuse(x: np.ndarray) -> np.ndarray:
        if x[0] == 7:
            raise RuntimeError("the values were read")
        return x

    values = mn.replicated(refuse, mn.full(3, 7.0))
    for counts in ([1, 1], [-1, 4], mn.asarray(np.array([1, 1])), mn.asarray(np.array([-1, 4]))):
        with pytest.raises(ShapeError):
            mn.nested.unflatten(values, counts)
    with pytest.raises(KernelError, match="the values were read"):
        mn.nested.unflatten(values, [1, 2]).sum().compute()
