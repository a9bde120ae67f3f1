"""DistArray as a user meets it: nothing is stale, and its methods are NumPy's."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp
from results import check

import matnb as mn
from matnb.errors import DTypeError, ShapeError
from matnb.lazy.handles import expression_of, live_expressions

pytestmark = pytest.mark.session("interpreter")


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
    with pytest.raises(DTypeError, match=r"float64 cannot be stored in .* of dtype int64"):
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


# NumPy's methods

A = np.array([[1.0, -2.0, 3.0], [0.0, 5.0, -6.0]])


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
    assert mn.sqrt([4.0, 9.0]).sum().item() == 5
    assert mn.sqrt(4.0) == 2
    assert mn.abs is mn.absolute
    with pytest.raises(AttributeError, match="no_such"):
        mn.no_such  # noqa: B018
