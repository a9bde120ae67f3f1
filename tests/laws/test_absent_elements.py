"""What an absent element gives where it meets NaN, infinity or nothing, beside what SciPy makes of it."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn

NASTY = np.array([[np.nan, 0, np.inf], [0, 2.0, 0], [-np.inf, 0, 3]])
OTHER = np.array([[0, 0, 0], [0, 0, 1.0], [0, 5, 2]])
MEETS = {
    "a row": np.array([np.nan, np.inf, 0.0]),
    "NaN": np.full((3, 3), np.nan),
    "infinities": np.full((3, 3), -np.inf),
    "zeros": np.zeros((3, 3)),
    "a number": np.nan,
    "an infinity": np.inf,
    "a half": 0.5,
}

pytestmark = pytest.mark.session("one thread")


@pytest.mark.parametrize("name", MEETS)
@pytest.mark.parametrize("call", [operator.mul, operator.truediv])
def test_with_a_dense_array_or_a_number_as_scipy(call: Callable[..., object], name: str):
    found = call(mn.asarray(sp.csr_array(NASTY), blocks=2), MEETS[name])
    assert isinstance(found, mn.DistArray)
    assert found.sparse
    with np.errstate(all="ignore"):
        known = call(sp.csr_array(NASTY), MEETS[name])
    assert np.array_equal(found.to_scipy().toarray(), known.toarray(), equal_nan=True)


@pytest.mark.parametrize("call", [operator.mul, operator.truediv])
def test_of_two_sparse_arrays_absent_is_absent(call: Callable[..., object]):
    for left, right in ((NASTY, OTHER), (OTHER, NASTY)):
        found = call(mn.asarray(sp.csr_array(left), blocks=2), mn.asarray(sp.csr_array(right)))
        assert isinstance(found, mn.DistArray)
        assert found.sparse
        with np.errstate(all="ignore"):
            elements = call(left, right)
            theirs = call(sp.csr_array(left), sp.csr_array(right))  # dense, of a quotient
            theirs = theirs.toarray() if sp.issparse(theirs) else theirs
        absent = (left == 0) if call is operator.truediv else (left == 0) | (right == 0)
        assert np.array_equal(found.to_scipy().toarray(), np.where(absent, 0, elements), equal_nan=True)
        # What the README says of SciPy: should this fail, SciPy does as matnb does now.
        assert np.array_equal(theirs, elements, equal_nan=True)
        assert np.isnan(theirs[absent]).any()
