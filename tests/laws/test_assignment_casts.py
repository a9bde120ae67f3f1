"""Assignment converts to the array's dtype as NumPy does, with its warnings, and refuses where it does."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn

DTYPES = ("bool", "int8", "uint8", "int64", "uint64", "float16", "float32", "complex64", "complex128")
PLAIN = (
    True, 0, 1, -1, 300, 2**40, 2**63, 2**70, 2.5, 300.5, -1.5, 1e300, float("nan"), float("inf"), 1j, 1 + 0j,
)  # fmt: skip
NUMPYS = (
    *(np.dtype(name).type(1) for name in DTYPES),
    np.int64(300), np.int64(-1), np.float64(300.5), np.float64("nan"), np.float32("inf"),
    np.complex128(1 + 2j), np.uint64(2**63 + 5), np.float64(1e300),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(PLAIN),
    st.sampled_from(NUMPYS),
    st.lists(st.sampled_from((*PLAIN, *NUMPYS)), min_size=2, max_size=2),
    st.sampled_from(NUMPYS).map(np.asarray),
    st.lists(st.sampled_from(NUMPYS), min_size=2, max_size=2).map(np.asarray),
)
WAYS: dict[str, Callable[[Any, Any, Any], object]] = {
    "x[1]": lambda xp, x, value: x.__setitem__(1, value if np.ndim(value) == 0 else value[0]),
    "x[:]": lambda xp, x, value: x.__setitem__(slice(None), value),
    "x[...]": lambda xp, x, value: x.__setitem__(..., value),
    "x[list]": lambda xp, x, value: x.__setitem__([0, 1], value),
    "x[mask]": lambda xp, x, value: x.__setitem__(np.array([True, True]), value),
    "put": lambda xp, x, value: xp.put(x, [0, 1], value),
    "put_along_axis": lambda xp, x, value: xp.put_along_axis(x, xp.asarray([0, 1]), value, 0),
    "putmask": lambda xp, x, value: xp.putmask(x, x == x, value),
    "place": lambda xp, x, value: xp.place(x, x == x, value),
    "copyto": lambda xp, x, value: xp.copyto(x, value),
    "copyto unsafely": lambda xp, x, value: xp.copyto(x, value, casting="unsafe"),
    "copyto safely": lambda xp, x, value: xp.copyto(x, value, casting="safe"),
    "fill": lambda xp, x, value: x.fill(value if np.ndim(value) == 0 else value[0]),
    "+=": lambda xp, x, value: x.__iadd__(value),
    "out=": lambda xp, x, value: xp.multiply(x, value, out=x),
}
KINDS = (OverflowError, TypeError, ValueError)

pytestmark = pytest.mark.session("interpreter")


def _outcome(way: Callable[..., object], xp: Any, x: Any, value: object) -> tuple[object, set[str]]:
    # What the array is afterwards, or the kind of the error; and warnings of lost parts.
    with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            way(xp, x, value)
            found: object = x.compute() if isinstance(x, mn.DistArray) else x
        except KINDS as error:
            found = next(kind for kind in KINDS if isinstance(error, kind))
    return found, {one.category.__name__ for one in told if one.category is not RuntimeWarning}


@settings(max_examples=60)
@given(st.sampled_from(DTYPES), VALUES)
@example("bool", [True, 2**70])
@example("float64", [1, 2**70])
@example("int64", [1, 2**70])
def test_assignment_converts_as_numpy_does(dtype: str, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return
    for name, way in WAYS.items():
        x = np.ones(2, dtype)
        expected, warned = _outcome(way, np, x.copy(), value)
        found, told = _outcome(way, mn, mn.asarray(x), value)
        what = f"{name} of {dtype} with {value!r}: NumPy {expected}, matnb {found}"
        if isinstance(expected, type) or isinstance(found, type):
            assert isinstance(expected, type) == isinstance(found, type), what
            continue
        assert isinstance(found, np.ndarray), what
        assert found.dtype == dtype, what
        np.testing.assert_array_equal(found, expected, what)
        assert told == warned, what


@settings(max_examples=30)
@given(st.sampled_from(DTYPES), st.sampled_from(DTYPES))
def test_arrays_that_are_assigned_are_converted_on_the_workers(dtype: str, other: str) -> None:
    new = np.array([0, 3]).astype(other)
    for name in ("x[:]", "x[list]", "x[mask]", "put", "put_along_axis", "putmask", "place", "copyto", "out="):
        expected, warned = _outcome(WAYS[name], np, np.ones(2, dtype), new)
        found, told = _outcome(WAYS[name], mn, mn.ones(2, dtype), mn.asarray(new))
        if isinstance(expected, type):
            assert found is expected, (name, dtype, other, found)
        else:
            np.testing.assert_array_equal(found, expected, f"{name} of {dtype} with {other}")
            assert told == warned, (name, dtype, other)


@pytest.mark.parametrize(
    ("value", "error"),
    [(2**40, OverflowError), (float("nan"), ValueError), (float("inf"), OverflowError), (1j, TypeError)],
)
def test_what_no_number_of_the_dtype_stands_for_is_refused_when_it_is_written(
    value: Any, error: type
) -> None:
    x = mn.arange(3, dtype="int8")
    for key in (0, slice(None), [0, 2]):
        with pytest.raises(error) as caught:
            x[key] = value
        assert isinstance(caught.value, mn.MatnbError)
    np.testing.assert_array_equal(x.compute(), [0, 1, 2])


def test_the_usual_ones() -> None:
    flags, numbers = mn.asarray([True, True]), mn.arange(4)
    flags[0] = 0
    numbers[0] = 2.0
    numbers[1:3] = [3.5, 4.0]
    numbers[numbers > 3] = np.float64(7.9)
    np.testing.assert_array_equal(flags.compute(), [False, True])
    np.testing.assert_array_equal(numbers.compute(), [2, 3, 7, 3])
