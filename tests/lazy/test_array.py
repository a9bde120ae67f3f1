"""DistArray as a person meets it: NumPy's dtypes, nothing stale, and errors that say what is wrong."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import DTypeError, IndexingError, MatnbError, NotScalarError, OptionError, ShapeError
from matnb.errors import UnsupportedError
from matnb.lazy.array import expression_of, live_expressions
from matnb.lazy.interpret import interpret
from matnb.lazy.registry import FUNCTIONS


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    with mn.start(workers=1, threads=1, engine="interpret"):
        yield
    mn.stop()


def value(array: mn.DistArray) -> np.ndarray:
    found = interpret(array.expression)
    return found.toarray() if sp.issparse(found) else found


def check(mine: object, theirs: object, text: str = "") -> None:
    assert isinstance(mine, mn.DistArray), text
    expected = np.asarray(theirs)
    assert (mine.shape, mine.dtype) == (expected.shape, expected.dtype), text
    np.testing.assert_allclose(value(mine), expected, rtol=1e-6, atol=1e-6, err_msg=text)


# dtypes: NEP 50

KINDS = [np.dtype(kind) for kind in "?bBhHiIlLefdFD"]
SCALARS = [0, 1, -1, 127, 128, 255, 256, -129, 2**31, 2**40, 2**63, -(2**63), 2**70, True, 0.5, -2.0, 1e300, 2j]
NUMPY_SCALARS = [np.int8(3), np.uint64(4), np.float32(0.5), np.float64(2.5), np.complex64(1j), np.True_]
BINARY = ["add", "multiply", "true_divide", "power", "less", "equal", "maximum", "logical_and", "bitwise_or"]


def outcome(work: Callable[[], object]) -> tuple[object, ...]:
    """The dtype and value of a computation, or the kind of its error."""
    try:
        with np.errstate(all="ignore"):
            result = work()
    except DTypeError:
        return ("refused",)
    except (TypeError, OverflowError):
        return ("refused",)
    if isinstance(result, mn.DistArray):
        assert result.dtype == value(result).dtype
        result = value(result)
    return result.dtype, result


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    kind=st.sampled_from(KINDS),
    other=st.sampled_from([*SCALARS, *NUMPY_SCALARS, *KINDS]),
    name=st.sampled_from(BINARY),
    swapped=st.booleans(),
)
def test_dtypes_are_numpys(kind: np.dtype, other: object, name: str, swapped: bool):
    ufunc = getattr(np, name)
    array = np.array([1, 0, 3]).astype(kind)
    if isinstance(other, np.dtype):
        second = np.array([2, 2, 1]).astype(other)
        theirs, mine = (array, second), (mn.asarray(array), mn.asarray(second))
    else:
        theirs, mine = (array, other), (mn.asarray(array), other)
    if swapped:
        theirs, mine = theirs[::-1], mine[::-1]
    try:
        expected = outcome(lambda: ufunc(*theirs))
    except ValueError:  # whole numbers to negative whole powers: NumPy looks at the values
        return
    found = outcome(lambda: ufunc(*mine))
    if expected == ("refused",) and kind.kind == "b" and name in ("less", "equal"):
        return  # NumPy does not compare booleans with numbers of more than 64 bits; we do
    assert found[0] == expected[0]
    if len(found) > 1:
        np.testing.assert_array_equal(found[1], expected[1])


@given(kind=st.sampled_from(KINDS), name=st.sampled_from(["sum", "prod", "min", "max", "mean", "var", "std", "all"]))
def test_reductions_have_numpys_dtypes(kind: np.dtype, name: str):
    array = np.array([[1, 0, 3], [1, 1, 0]]).astype(kind)
    if (kind, name) in {(np.dtype(bool), "var"), (np.dtype(bool), "std")}:
        return  # NumPy refuses to subtract booleans
    expected = getattr(array, name)(axis=0)
    found = getattr(mn.asarray(array), name)(axis=0)
    assert found.dtype == expected.dtype == value(found).dtype
    np.testing.assert_allclose(value(found), expected, rtol=1e-2 if kind == np.float16 else 1e-5)


def test_the_dtype_argument():
    a = np.array([1, 2, 3], np.int32)
    x = mn.asarray(a)
    check(np.add(x, 1, dtype=np.float32), np.add(a, 1, dtype=np.float32))
    check(x.sum(dtype=np.int16), a.sum(dtype=np.int16))
    check(x.mean(dtype=np.float32), a.mean(dtype=np.float32))
    check(np.add.reduce(x, dtype=np.float64), np.add.reduce(a, dtype=np.float64))
    check(np.asarray(mn.asarray(a)).astype(float) + x, a.astype(float) + a)
    assert np.asarray(x, dtype=np.float32).dtype == np.float32


# nothing stale


def test_in_place_addition_after_a_sum():
    a = mn.asarray([1.0, 2.0])
    before = a.sum()
    assert float(before) == 3.0
    a += 1
    assert float(a.sum()) == 5.0
    assert float(before) == 3.0


def test_two_equal_expressions_of_which_one_is_modified():
    a = mn.asarray([1.0, 2.0])
    one, other = a + 1, a + 1
    assert one.expression is other.expression
    one += 10
    np.testing.assert_array_equal(one.compute(), [12.0, 13.0])
    np.testing.assert_array_equal(other.compute(), [2.0, 3.0])


def test_operands_are_not_taken_the_other_way_round():
    a, b = mn.asarray([2.0, 3.0]), mn.asarray([5.0, 2.0])
    np.testing.assert_array_equal((a**b).compute(), [32.0, 9.0])
    np.testing.assert_array_equal((b**a).compute(), [25.0, 8.0])
    np.testing.assert_array_equal((b - a).compute(), [3.0, -1.0])
    np.testing.assert_array_equal((a - b).compute(), [-3.0, 1.0])
    np.testing.assert_array_equal((2.0 - a).compute(), [0.0, -1.0])


def test_out_gives_a_handle_a_new_version():
    a, target = mn.asarray([1.0, 2.0]), mn.zeros(2)
    reader = target + 100
    assert np.add(a, 1, out=target) is target
    np.testing.assert_array_equal(target.compute(), [2.0, 3.0])
    np.testing.assert_array_equal(reader.compute(), [100.0, 100.0])
    fraction, whole = mn.zeros(2), mn.zeros(2)
    np.modf(a + 0.5, out=(fraction, whole))
    np.testing.assert_array_equal(fraction.compute(), [0.5, 0.5])
    np.testing.assert_array_equal(whole.compute(), [1.0, 2.0])


def test_in_place_keeps_the_dtype_as_numpy_does():
    a = mn.asarray(np.array([1, 2], np.float32))
    a += np.array([0.5, 0.5])
    assert a.dtype == np.float32
    whole = mn.asarray([1, 2])
    with pytest.raises(DTypeError, match="float64 does not go into an array of dtype int64"):
        whole += 0.5
    with pytest.raises(ShapeError, match=r"shape \(2,\).*shape \(3, 2\)"):
        whole += np.ones((3, 2), int)
    np.testing.assert_array_equal(whole.compute(), [1, 2])


def test_a_copy_is_a_handle_of_its_own():
    a = mn.asarray([1.0, 2.0])
    b = a.copy()
    a *= 3
    np.testing.assert_array_equal(b.compute(), [1.0, 2.0])


def test_a_temporary_may_be_collected_before_its_reader_runs():
    reader = (mn.asarray(np.arange(1000.0)) * 2).sum()
    gc.collect()
    assert float(reader) == 999000.0


@pytest.mark.parametrize("length", [3, 1000])
def test_changing_the_persons_array_changes_nothing(length: int):
    given = np.ones(length)
    x = mn.asarray(given)
    y = x + given
    given[:] = 7
    np.testing.assert_array_equal(x.compute(), np.ones(length))
    np.testing.assert_array_equal(y.compute(), np.full(length, 2.0))
    pattern = sp.csr_array(np.eye(40))
    s = mn.asarray(pattern)
    pattern.data[:] = 5
    np.testing.assert_array_equal(s.to_scipy().toarray(), np.eye(40))


def test_what_is_computed_is_the_persons_to_change():
    x = mn.asarray(np.ones(1000))
    x.compute()[:] = 7
    np.asarray(x)[:] = 7
    np.testing.assert_array_equal(x.compute(), np.ones(1000))


def test_a_slice_taken_before_an_assignment_does_not_see_it():
    a = mn.asarray([1.0, 2.0, 3.0])
    part = a[:2]
    a += 10
    np.testing.assert_array_equal(part.compute(), [1.0, 2.0])
    np.testing.assert_array_equal(a[:2].compute(), [11.0, 12.0])


def test_live_expressions_are_those_of_handles():
    kept = mn.asarray([1.5, 2.5]) + 0.125
    gone = (kept * 2).expression
    assert kept.expression in live_expressions()
    assert gone not in live_expressions()


# errors


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda x: x + np.ones(4), ShapeError, ["(2, 3)", "(4,)", "add"]),
        (lambda x: x @ np.ones((2, 2)), ShapeError, ["(2, 3)", "(2, 2)"]),
        (lambda x: x @ 2.0, ShapeError, ["scalar"]),
        (lambda x: np.where(x, x, np.ones(5)), ShapeError, ["(2, 3)", "(5,)", "where"]),
        (lambda x: x.sum(axis=2), ShapeError, ["axis 2", "2 axes"]),
        (lambda x: x.sum(axis=(0, 0)), ShapeError, ["twice"]),
        (lambda x: x.sum(axis="rows"), DTypeError, ["'rows'"]),
        (lambda x: x.transpose(0, 2), ShapeError, ["(0, 2)", "2 axes"]),
        (lambda x: np.broadcast_to(x, (4, 4)), ShapeError, ["(2, 3)", "(4, 4)"]),
        (lambda x: np.squeeze(x, 0), ShapeError, ["(2, 3)", "axis 0"]),
        (lambda x: x[2], IndexingError, ["index 2", "length 2"]),
        (lambda x: x[:, :, 0], IndexingError, ["3 indices", "2 axes"]),
        (lambda x: x[[0, 1]], IndexingError, ["list"]),
        (lambda x: x[x > 0], IndexingError, ["DistArray", "compute()"]),
        (lambda x: x["a"], IndexingError, ["str"]),
        (lambda x: x & 1.5, DTypeError, ["bitwise_and", "float64"]),
        (lambda x: x << x, DTypeError, ["left_shift", "float64"]),
        (lambda x: x.astype("U3"), DTypeError, ["U3"]),
        (lambda x: x.astype("no such"), DTypeError, ["no such"]),
        (lambda x: x.astype(object), DTypeError, ["object"]),
        (lambda x: (x + 1j).astype(float), DTypeError, ["complex128", "imaginary"]),
        (lambda x: x + "text", DTypeError, ["U4"]),
        (lambda x: x + None, DTypeError, []),
        (lambda x: x + np.array([1, "a"], dtype=object), DTypeError, ["object"]),
        (lambda x: x + np.array(["a", "b", "c"]), DTypeError, ["U1"]),
        (lambda x: x + np.array(["2020-01-01"], "M8[D]"), DTypeError, ["datetime64"]),
        (lambda x: x.astype(np.uint8) + 300, DTypeError, ["add", "300", "uint8"]),
        (lambda x: x.min(axis=0)[:0].min(), ShapeError, ["min", "(0,)"]),
        (lambda x: np.add.accumulate(x), UnsupportedError, ["np.add.accumulate"]),
        (lambda x: np.add.outer(x, x), UnsupportedError, ["np.add.outer"]),
        (lambda x: np.add.at(x, 0, 1), UnsupportedError, ["np.add.at"]),
        (lambda x: np.subtract.reduce(x), UnsupportedError, ["np.subtract.reduce", "np.add"]),
        (lambda x: np.add(x, 1, where=np.ones(3, bool)), UnsupportedError, ["where=", "np.where"]),
        (lambda x: np.add(x, 1, casting="unsafe"), UnsupportedError, ["casting"]),
        (lambda x: np.add.reduce(x, initial=5), UnsupportedError, ["initial"]),
        (lambda x: np.add(np.ones((2, 3)), x, out=np.ones((2, 3))), UnsupportedError, ["ndarray"]),
        (lambda x: np.vecdot(x, x), UnsupportedError, ["vecdot", "compute()"]),
        (lambda x: np.sort(x), UnsupportedError, ["np.sort", "compute"]),
        (lambda x: np.linalg.svd(x), UnsupportedError, ["svd"]),
        (lambda x: np.sum(x, initial=3), UnsupportedError, ["np.sum(initial=)"]),
        (lambda x: np.sum(x, where=x > 1), UnsupportedError, ["np.sum(where=)"]),
        (lambda x: np.where(x), UnsupportedError, ["np.where(c, x, y)"]),
        (lambda x: np.clip(x, 0, 1, out=x), UnsupportedError, ["out"]),
        (lambda x: np.real(x + 1j), UnsupportedError, ["complex"]),
        (lambda x: np.dot(np.ones((2, 2, 2)), x), ShapeError, ["(2, 2, 2)", "(2, 3)"]),
        (lambda x: np.linalg.norm(x, "nuc"), OptionError, ["'nuc'"]),
        (lambda x: np.linalg.norm(np.broadcast_to(x, (2, 2, 3)), 1), ShapeError, ["3 axes"]),
        (lambda x: x.__setitem__(0, 1), UnsupportedError, ["np.where"]),
        (lambda x: bool(x), NotScalarError, ["(2, 3)", ".any() or .all()"]),
        (lambda x: float(x), NotScalarError, ["(2, 3)", "6 elements"]),
        (lambda x: int(x[0]), NotScalarError, ["(3,)", "3 elements"]),
        (lambda x: x[:0].item(), NotScalarError, ["(0, 3)", "0 elements"]),
        (lambda x: range(x[0, 0]), DTypeError, ["float64", "index"]),
        (lambda x: len(x[0, 0]), NotScalarError, ["length"]),
        (lambda x: list(x[0, 0]), NotScalarError, ["iterated"]),
        (lambda x: x.to_scipy(), DTypeError, ["dense"]),
        (lambda x: np.asarray(x, copy=False), DTypeError, ["copy"]),
        (lambda x: mn.matmul(x, x.T, semiring="max_min"), OptionError, ["max_min"]),
        (lambda x: mn.asarray(x, format="sparse"), DTypeError, ["compute()"]),
        (lambda x: mn.asarray(x, blocks=[[0, 1], None]), ShapeError, ["[0, 1]"]),
        (lambda x: mn.asarray([1.0], format="csr"), OptionError, ["'csr'"]),
        (lambda x: mn.asarray([1.0], format="sparse"), ShapeError, ["(1,)"]),
        (lambda x: mn.asarray([[1], [1, 2]]), ShapeError, ["shape"]),
        (lambda x: mn.zeros((2, -1)), ShapeError, ["(2, -1)"]),
        (lambda x: mn.zeros(2.5), ShapeError, ["2.5"]),
        (lambda x: mn.full(3, [1, 2]), ShapeError, ["(2,)"]),
        (lambda x: mn.zeros(3, dtype="U2"), DTypeError, ["U2"]),
        (lambda x: mn.zeros(3, dtype="no such"), DTypeError, ["no such"]),
        (lambda x: mn.arange(0, 5, 0), OptionError, ["step"]),
        (lambda x: mn.random.default_rng(-1), OptionError, ["-1"]),
        (lambda x: mn.random.default_rng(0).integers(5, 5), OptionError, ["[5, 5)"]),
        (lambda x: mn.random.default_rng(0).normal(scale=-1), OptionError, ["-1"]),
        (lambda x: mn.random.default_rng(0).random(3, dtype=int), OptionError, ["int64"]),
        (lambda x: mn.random.default_rng(0).integers(0, 300, 3, dtype=np.uint8), OptionError, ["uint8"]),
    ],
)  # fmt: skip
def test_bad_input_is_told_of(
    wrong: Callable[[mn.DistArray], object], error: type[MatnbError], words: list[str]
):
    x = mn.asarray(np.arange(6.0).reshape(2, 3))
    with pytest.raises(error) as caught:
        wrong(x)
    for word in words:
        assert word in str(caught.value)


def test_a_complex_number_is_no_float():
    with pytest.raises(TypeError):
        float(mn.asarray(1j))


# NumPy's functions

A = np.array([[1.0, -2.0, 3.0], [0.0, 5.0, -6.0]])
TALL = np.arange(24.0).reshape(2, 3, 4)
CALLS: list[tuple[Callable[..., object], Callable[..., object], np.ndarray]] = [
    (np.where, lambda x: np.where(x > 0, x, 2), A),
    (np.where, lambda x: np.where(x > 0, 1, x.astype(np.float32)), A),
    (np.where, lambda x: np.where(x > 0, 1, 2.5), A),
    (np.where, lambda x: np.where(x, np.arange(3), x), A),
    (np.clip, lambda x: np.clip(x, -1, 2), A),
    (np.clip, lambda x: np.clip(x, None, np.array([1.0, 2.0, 3.0])), A),
    (np.clip, lambda x: np.clip(x, min=0), A),
    (np.clip, lambda x: np.clip(x, -1, None), A.astype(np.float32)),
    (np.astype, lambda x: np.astype(x, np.int32), A),
    (np.real, np.real, A),
    (np.dot, lambda x: np.dot(x, x.T), A),
    (np.dot, lambda x: np.dot(x, 3), A),
    (np.dot, lambda x: np.dot(x[0], x[1]), A),
    (np.linalg.norm, np.linalg.norm, A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, "fro"), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, 1), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, np.inf, keepdims=True), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, axis=0), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, 1, axis=1, keepdims=True), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[0], 1), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[0], 2), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x[1], np.inf), A),
    (np.linalg.norm, lambda x: np.linalg.norm(x, axis=(0, 2)), TALL),
    (np.linalg.norm, lambda x: np.linalg.norm(x + 1j), A),
    (np.linalg.norm, np.linalg.norm, A.astype(int)),
    (np.sum, lambda x: np.sum(x, axis=1, keepdims=True), A),
    (np.sum, lambda x: np.sum(x, axis=(0, -1), dtype=np.float32), TALL),
    (np.sum, np.sum, A > 0),
    (np.prod, lambda x: np.prod(x, 0), A),
    (np.prod, np.prod, A.astype(np.int8)),
    (np.min, lambda x: np.min(x, axis=0), A),
    (np.amin, np.amin, A),
    (np.max, lambda x: np.max(x, axis=-1, keepdims=True), A),
    (np.amax, np.amax, A),
    (np.any, lambda x: np.any(x, axis=0), A),
    (np.all, lambda x: np.all(x, axis=0), A),
    (np.mean, lambda x: np.mean(x, axis=0), A),
    (np.mean, np.mean, A > 0),
    (np.var, lambda x: np.var(x, axis=1, ddof=1), A),
    (np.var, lambda x: np.var(x + 1j * x), A),
    (np.std, lambda x: np.std(x, 0, keepdims=True), A),
    (np.count_nonzero, lambda x: np.count_nonzero(x, axis=1), A),
    (np.transpose, np.transpose, TALL),
    (np.transpose, lambda x: np.transpose(x, (1, -1, 0)), TALL),
    (np.permute_dims, lambda x: np.permute_dims(x, (2, 0, 1)), TALL),
    (np.matrix_transpose, np.matrix_transpose, TALL),
    (np.swapaxes, lambda x: np.swapaxes(x, 0, -1), TALL),
    (np.broadcast_to, lambda x: np.broadcast_to(x, (4, 2, 3)), A),
    (np.expand_dims, lambda x: np.expand_dims(x, 1), A),
    (np.expand_dims, lambda x: np.expand_dims(x, (0, -1)), A),
    (np.squeeze, np.squeeze, A[None, :, None]),
    (np.squeeze, lambda x: np.squeeze(x, -2), A[None, :, None]),
    (np.full_like, lambda x: np.full_like(x, 7), A),
    (np.full_like, lambda x: np.full_like(x, 2.5, dtype=np.float32, shape=(2, 2)), A),
    (np.zeros_like, np.zeros_like, A > 0),
    (np.empty_like, lambda x: np.empty_like(x) * 0, A),
    (np.ones_like, lambda x: np.ones_like(x, dtype=int), A),
]


@pytest.mark.parametrize(("function", "call", "given"), CALLS)
@pytest.mark.parametrize("sparse", [False, True])
def test_functions_mean_what_numpys_mean(
    function: Callable[..., object], call: Callable[..., object], given: np.ndarray, sparse: bool
):
    if sparse and given.ndim != 2:
        return
    check(call(mn.asarray(given, format="sparse" if sparse else None)), call(given))


@pytest.mark.parametrize(("function", "expected"), [(np.shape, (2, 3)), (np.ndim, 2), (np.size, 6)])
def test_functions_that_give_plain_numbers(function: Callable[..., object], expected: object):
    assert function(mn.asarray(A)) == function(A) == expected
    assert np.size(mn.asarray(A), 1) == 3


def test_every_registered_function_is_compared():
    compared = {function for function, _, _ in CALLS} | {np.shape, np.ndim, np.size}
    assert set(FUNCTIONS) == compared


def test_methods_are_numpys():
    x = mn.asarray(A)
    for name in ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std"):
        check(getattr(x, name)(axis=0, keepdims=True), getattr(A, name)(axis=0, keepdims=True), name)
    check(x.T, A.T)
    check(x.transpose(1, 0), A.transpose(1, 0))
    check(x.transpose((1, 0)), A.transpose((1, 0)))
    check(x.dot(x.T), A.dot(A.T))
    check(x.dot(2), A.dot(2))
    check(abs(-x), abs(-A))
    check(np.ones(2) @ x, np.ones(2) @ A)
    check(2 // (x + 10), 2 // (A + 10))
    check(divmod(x, 4)[1], divmod(A, 4)[1])
    check(np.add.reduce(x), np.add.reduce(A))
    check(np.logical_or.reduce(x, axis=None), np.logical_or.reduce(A, axis=None))
    assert [row.shape for row in x] == [(3,), (3,)]
    assert len(x) == 2
    assert (x.ndim, x.size, x.sparse) == (2, 6, False)
    assert (int(x[0, 0]), complex(x[0, 0]), bool(x[0, 0]), x[0, 0].item()) == (1, 1 + 0j, True, 1.0)
    assert list(range(5))[mn.asarray(3)] == 3
    assert isinstance(x[0, 0].compute(), np.float64)


def test_stored_entries_are_counted():
    x = mn.asarray(sp.csr_array(([0.0, 2.0], ([0, 1], [1, 2])), shape=(2, 3)))
    assert x.nnz == 2
    assert int(np.count_nonzero(x)) == 1
    assert mn.asarray(A).nnz == 6


def test_an_array_is_taken_as_it_is_or_converted():
    x = mn.asarray(A)
    assert mn.asarray(x) is x
    assert mn.asarray(A, format="sparse").sparse
    assert mn.asarray(A, format="sparse").nnz == np.count_nonzero(A)
    assert not mn.asarray(sp.csr_array(A), format="dense").sparse
    assert expression_of(A) is x.expression


def test_ufuncs_are_reached_through_matnb():
    assert mn.sqrt is np.sqrt
    with pytest.raises(AttributeError, match="no_such"):
        mn.no_such  # noqa: B018
