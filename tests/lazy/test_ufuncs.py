"""Elementwise functions and reductions have NumPy 2's dtypes (NEP 50), whatever meets what."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from results import check, value

import matnb as mn
from matnb.errors import DTypeError

pytestmark = pytest.mark.session("interpreter")

KINDS = [np.dtype(kind) for kind in "?bBhHiIlLefdFD"]
SCALARS = [
    0, 1, -1, 127, 128, 255, 256, -129, 2**31, 2**40, 2**63, -(2**63), 2**70, True, 0.5, -2.0, 1e300,
    2j,
]  # fmt: skip
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
    if expected == ("refused",) and isinstance(other, int) and abs(other) >= 2**63 and found[0] == np.bool_:
        return  # NumPy tells neither truth nor order of such a number here; we do
    assert found[0] == expected[0]
    if len(found) > 1:  # NumPy's power of arrays and of a number differ in the last bit
        rounding = 2 * np.finfo(expected[0]).eps if expected[0].kind in "fc" else 0
        np.testing.assert_allclose(found[1], expected[1], rtol=rounding)


@given(
    kind=st.sampled_from(KINDS),
    name=st.sampled_from(["sum", "prod", "min", "max", "mean", "var", "std", "all"]),
)
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
