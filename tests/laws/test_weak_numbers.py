"""A Python number takes on the dtype of the array it meets; nothing else does (NEP 50).

The law is NumPy's own answer: every function that takes an array beside something else is called with each
kind of other, and its dtype, shape and values are NumPy's, or both refuse.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.errors import UnsupportedError

Call = Callable[[Any, Any, Any], Any]
DTYPES = (
    "bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
OTHERS: dict[str, object] = {
    "1": 1,
    "300": 300,
    "-1": -1,
    "2.5": 2.5,
    "1j": 1j,
    "True": True,
    "whole list": [1, 2, 3, 4],
    "float list": [1.0, 2.5, 3.0, 4.0],
    "list of one": [300],
    "list of booleans": [True, False, True, False],
    "list of NumPy's numbers": [np.int8(1), np.int8(2), np.int8(3), np.int8(4)],
    "array of no axes": np.array(1, np.int8),
    "float array of no axes": np.array(2.5, np.float32),
    "array": np.array([1, 2, 3, 4], np.float32),
    **{f"NumPy's {name}": np.dtype(name).type(1) for name in DTYPES},
}

pytestmark = pytest.mark.session("interpreter")


def _changed(change: Callable[[Any, Any, Any], object]) -> Call:
    def call(xp: Any, x: Any, other: Any) -> Any:
        array = x.copy()
        change(xp, array, other)
        return array

    return call


def _put(key: object) -> Call:
    return _changed(lambda xp, x, other: x.__setitem__(key, other))


def _filled_diagonal(xp: Any, x: Any, other: Any) -> Any:
    matrix = xp.reshape(x, (2, 2)).copy()
    xp.fill_diagonal(matrix, other)
    return matrix


_EVEN = [True, False, True, False]
CALLS: dict[str, Call] = {
    "where": lambda xp, x, other: xp.where(_EVEN, x, other),
    "where, other first": lambda xp, x, other: xp.where(_EVEN, other, x),
    "where of two others": lambda xp, x, other: xp.where(x > 1, other, 1),
    "where beside 2.5": lambda xp, x, other: xp.where(x > 1, other, 2.5),
    "select": lambda xp, x, other: xp.select([x > 1], [x], other),
    "select a choice": lambda xp, x, other: xp.select([x > 1], [other], default=1),
    "choose": lambda xp, x, other: xp.choose(xp.asarray([0, 1, 0, 1]), [x, other]),
    "piecewise": lambda xp, x, other: xp.piecewise(x, [x > 1], [other, 1]),
    "clip below": lambda xp, x, other: xp.clip(x, other, None),
    "clip above": lambda xp, x, other: xp.clip(x, 0, other),
    "clip": lambda xp, x, other: xp.clip(x, other, 4),
    "polyval": lambda xp, x, other: xp.polyval(other, x),
    "polyval at": lambda xp, x, other: xp.polyval(x, other),
    "full": lambda xp, x, other: xp.full((4,), other),
    "full of a dtype": lambda xp, x, other: xp.full((4,), other, x.dtype),
    "full_like": lambda xp, x, other: xp.full_like(x, other),
    "pad": lambda xp, x, other: xp.pad(x, 1, constant_values=other),
    "pad widely": lambda xp, x, other: xp.pad(x, 9, constant_values=other),
    "pad by ramps": lambda xp, x, other: xp.pad(x, 2, mode="linear_ramp", end_values=other),
    "insert": lambda xp, x, other: xp.insert(x, 1, other),
    "insert each": lambda xp, x, other: xp.insert(x, [0, 1, 2, 3], other),
    "append": lambda xp, x, other: xp.append(x, other),
    "concatenate": lambda xp, x, other: xp.concatenate([x, other]),
    "concatenate without axes": lambda xp, x, other: xp.concatenate([x, other], axis=None),
    "stack": lambda xp, x, other: xp.stack([x, other]),
    "hstack": lambda xp, x, other: xp.hstack([x, other]),
    "vstack": lambda xp, x, other: xp.vstack([x, other]),
    "column_stack": lambda xp, x, other: xp.column_stack([x, other]),
    "block": lambda xp, x, other: xp.block([x, other]),
    "searchsorted": lambda xp, x, other: xp.searchsorted(xp.sort(x), other),
    "searchsorted in": lambda xp, x, other: xp.searchsorted(other, x),
    "isin": lambda xp, x, other: xp.isin(x, other),
    "isin, other first": lambda xp, x, other: xp.isin(other, x),
    "digitize": lambda xp, x, other: xp.digitize(x, other),
    "digitize in": lambda xp, x, other: xp.digitize(other, xp.sort(x)),
    "histogram": lambda xp, x, other: xp.histogram(x, bins=other)[0],
    "histogram edges": lambda xp, x, other: xp.histogram(x, bins=other)[1],
    "histogram range": lambda xp, x, other: xp.histogram(x, bins=3, range=(other, 7))[1],
    "histogram weights": lambda xp, x, other: xp.histogram(x, bins=3, weights=other)[0],
    "bincount weights": lambda xp, x, other: xp.bincount(x, weights=other),
    "interp left": lambda xp, x, other: xp.interp(x, [0, 1, 2], [1, 2, 3], left=other),
    "interp heights": lambda xp, x, other: xp.interp(x, [0, 1, 2, 3], other),
    "dot": lambda xp, x, other: xp.dot(x, other),
    "dot, other first": lambda xp, x, other: xp.dot(other, x),
    "@": lambda xp, x, other: x @ other,
    "@, other first": lambda xp, x, other: other @ x,
    "vdot": lambda xp, x, other: xp.vdot(x, other),
    "inner": lambda xp, x, other: xp.inner(x, other),
    "outer": lambda xp, x, other: xp.outer(x, other),
    "add.outer": lambda xp, x, other: xp.add.outer(x, other),
    "add.outer, other first": lambda xp, x, other: xp.add.outer(other, x),
    "kron": lambda xp, x, other: xp.kron(x, other),
    "tensordot": lambda xp, x, other: xp.tensordot(x, other, 1),
    "einsum": lambda xp, x, other: xp.einsum("i,i->i", x, other),
    "cross": lambda xp, x, other: xp.cross(x[:3], other[:3]),
    "vecdot": lambda xp, x, other: xp.vecdot(x, other),
    "isclose": lambda xp, x, other: xp.isclose(x, other),
    "isclose, other first": lambda xp, x, other: xp.isclose(other, x),
    "isclose by": lambda xp, x, other: xp.isclose(x, 1, rtol=other),
    "array_equal": lambda xp, x, other: xp.array_equal(x, other),
    "nan_to_num": lambda xp, x, other: xp.nan_to_num(x, nan=other),
    "sum from": lambda xp, x, other: xp.sum(x, initial=other),
    "prod from": lambda xp, x, other: xp.prod(x, initial=other),
    "max from": lambda xp, x, other: xp.max(x, initial=other),
    "add.reduce from": lambda xp, x, other: xp.add.reduce(x, initial=other),
    "nansum from": lambda xp, x, other: xp.nansum(x, initial=other),
    "average": lambda xp, x, other: xp.average(x, weights=other),
    "diff": lambda xp, x, other: xp.diff(x, prepend=other, append=other),
    "ediff1d": lambda xp, x, other: xp.ediff1d(x, to_begin=other, to_end=other),
    "gradient": lambda xp, x, other: xp.gradient(x, other),
    "trapezoid steps": lambda xp, x, other: xp.trapezoid(x, dx=other),
    "trapezoid places": lambda xp, x, other: xp.trapezoid(x, other),
    "linspace": lambda xp, x, other: xp.linspace(x, other, 3),
    "linspace, other first": lambda xp, x, other: xp.linspace(other, x, 3),
    "cov": lambda xp, x, other: xp.cov(x, other),
    "union1d": lambda xp, x, other: xp.union1d(x, other),
    "intersect1d": lambda xp, x, other: xp.intersect1d(x, other),
    "setdiff1d": lambda xp, x, other: xp.setdiff1d(x, other),
    "setdiff1d, other first": lambda xp, x, other: xp.setdiff1d(other, x),
    "setxor1d": lambda xp, x, other: xp.setxor1d(x, other),
    "meshgrid": lambda xp, x, other: xp.meshgrid(x, other)[1],
    "broadcast_arrays": lambda xp, x, other: xp.broadcast_arrays(x, other)[1],
    "extract": lambda xp, x, other: xp.extract(other, x),
    "compress": lambda xp, x, other: xp.compress(other, x),
    "divmod": lambda xp, x, other: divmod(x, other)[1],
    "divmod, other first": lambda xp, x, other: divmod(other, x)[1],
    "solve": lambda xp, x, other: xp.linalg.solve(xp.asarray(np.eye(4) * 2, dtype=x.dtype), other),
    "result_type": lambda xp, x, other: np.zeros(1, xp.result_type(x, other)),
    "fill": _changed(lambda xp, x, other: x.fill(other)),
    "x[1] =": _put(1),
    "x[:] =": _put(slice(None)),
    "x[...] =": _put(...),
    "x[list] =": _put([0, 1, 2, 3]),
    "x[mask] =": _put(np.array(_EVEN) | True),
    "put": _changed(lambda xp, x, other: xp.put(x, [0, 1, 2, 3], other)),
    "putmask": _changed(lambda xp, x, other: xp.putmask(x, x > 1, other)),
    "place": _changed(lambda xp, x, other: xp.place(x, x > 1, other)),
    "copyto": _changed(lambda xp, x, other: xp.copyto(x, other)),
    "copyto unsafely": _changed(lambda xp, x, other: xp.copyto(x, other, casting="unsafe")),
    "copyto where": _changed(lambda xp, x, other: xp.copyto(x, other, where=x > 1)),
    "put_along_axis": _changed(lambda xp, x, other: xp.put_along_axis(x, xp.asarray([0, 1, 2, 3]), other, 0)),
    "fill_diagonal": _filled_diagonal,
    "add into": _changed(lambda xp, x, other: xp.add(x, other, out=x)),
}
for _name, _ufunc in vars(np).items():
    if isinstance(_ufunc, np.ufunc) and _ufunc.nin == 2 and _ufunc.signature is None:
        CALLS[_name] = lambda xp, x, other, name=_name: getattr(xp, name)(x, other)
        CALLS[f"{_name}, other first"] = lambda xp, x, other, name=_name: getattr(xp, name)(other, x)
_OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.eq,
)  # fmt: skip
for _operator in _OPERATORS:
    CALLS[f"operator {_operator.__name__}"] = lambda xp, x, other, run=_operator: run(x, other)
    CALLS[f"operator {_operator.__name__}, other first"] = lambda xp, x, other, run=_operator: run(other, x)
for _operator in (operator.iadd, operator.imul, operator.itruediv, operator.ipow, operator.ior):
    CALLS[f"operator {_operator.__name__}"] = lambda xp, x, other, run=_operator: run(x.copy(), other)

# What matnb refuses with a reason although NumPy gives something.
REFUSED = {
    **dict.fromkeys(
        ("histogram", "histogram edges", "histogram range", "histogram weights"), "complex: no order"
    ),
    "bincount weights": "uint64 labels need astype",
    "max from": "a list: its truth is NumPy's answer",
    "fill": "a list: its truth is NumPy's answer",
    "x[1] =": "a list: its truth is NumPy's answer",
    "gradient": "booleans are not places",
    "interp left": "a complex number of NumPy for real heights, whose imaginary part NumPy drops",
}


def _outcome(xp: ModuleType, call: Call, *arguments: object) -> tuple[np.dtype, np.ndarray] | None:
    # The dtype that was said, and the values; None for a refusal.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            found = call(xp, *arguments)
            value = found.compute() if isinstance(found, mn.DistArray) else found
        except (ValueError, TypeError, IndexError, ArithmeticError):
            return None
    array = np.asarray(value)
    return found.dtype if isinstance(found, mn.DistArray) else array.dtype, array


def _check(what: str, expected: tuple[np.dtype, np.ndarray] | None, found: Any) -> None:
    assert (expected is None) == (found is None), f"{what}: NumPy {expected}, matnb {found}"
    if expected is None:
        return
    dtype, values = expected
    assert found[0] == found[1].dtype == dtype, f"{what}: {found} for {expected}"
    assert found[1].shape == values.shape, f"{what}: {found} for {expected}"
    tolerance = {"float16": 1e-2, "float32": 1e-5, "complex64": 1e-5}.get(str(dtype), 1e-10)
    np.testing.assert_allclose(found[1], values, tolerance, tolerance, err_msg=what)


def _check_calls(names: list[str], dtypes: tuple[str, ...]) -> None:
    for name in names:
        for dtype in dtypes:
            x = np.array([3, 0, 1, 2]).astype(dtype)
            for kind, other in OTHERS.items():
                expected = _outcome(np, CALLS[name], x, other)
                found = _outcome(mn, CALLS[name], mn.asarray(x), other)
                if expected is None or found is not None or name not in REFUSED:
                    _check(f"{name} of {dtype} with {kind}", expected, found)


BATCHES = [list(CALLS)[begin : begin + 24] for begin in range(0, len(CALLS), 24)]


@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_a_python_number_is_weak_and_nothing_else_is(names: list[str]) -> None:
    _check_calls(names, ("int8",))


@pytest.mark.slow
@pytest.mark.parametrize("names", BATCHES, ids=lambda names: names[0])
def test_a_python_number_is_weak_beside_every_dtype(names: list[str]) -> None:
    _check_calls(names, DTYPES)


NUMBERS = st.one_of(
    st.sampled_from([0, 1, 3, -2, 0.5, 2.5, True]),
    st.builds(
        lambda dtype, value: np.dtype(dtype).type(value),
        st.sampled_from([name for name in DTYPES if name not in ("bool", "complex64", "complex128")]),
        st.sampled_from([0, 1, 2, 3, 7]),
    ),
    st.sampled_from([np.float32(0.1), np.float16(0.3), np.float64(0.1)]),
)
BOUNDED: dict[str, Call] = {
    "arange of one": lambda xp, a, b, c: xp.arange(a),
    "arange of a stop": lambda xp, a, b, c: xp.arange(stop=a),
    "arange": lambda xp, a, b, c: xp.arange(a, b),
    "arange by steps": lambda xp, a, b, c: xp.arange(a, b, c),
    "arange of a dtype": lambda xp, a, b, c: xp.arange(a, b, c, "float32"),
    "linspace": lambda xp, a, b, c: xp.linspace(a, b, 7),
    "linspace without its end": lambda xp, a, b, c: xp.linspace(a, b, 7, endpoint=False),
    "linspace of one": lambda xp, a, b, c: xp.linspace(a, b, 1),
    "linspace of a dtype": lambda xp, a, b, c: xp.linspace(a, b, 7, dtype="float32"),
    "linspace of whole numbers": lambda xp, a, b, c: xp.linspace(a, b, 7, dtype="int32"),
    "step of linspace": lambda xp, a, b, c: np.asarray(xp.linspace(a, b, 7, retstep=True)[1]),
    "linspace between arrays": lambda xp, a, b, c: xp.linspace(xp.asarray([a, a]), b, 3),
    "logspace": lambda xp, a, b, c: xp.logspace(a, b, 5),
    "logspace of a base": lambda xp, a, b, c: xp.logspace(a, b, 5, base=c),
    "logspace of bases": lambda xp, a, b, c: xp.logspace(a, b, 5, base=[2, 3]),
    "logspace of a dtype": lambda xp, a, b, c: xp.logspace(a, b, 5, dtype="float32"),
    "geomspace": lambda xp, a, b, c: xp.geomspace(abs(a) + 1, abs(b) + 1, 5),
    "geomspace of a dtype": lambda xp, a, b, c: xp.geomspace(abs(a) + 1, abs(b) + 1, 5, dtype="float32"),
    "full": lambda xp, a, b, c: xp.full((2, 2), a),
    "full of a dtype": lambda xp, a, b, c: xp.full((2, 2), a, "int16"),
}


@settings(max_examples=30)
@given(NUMBERS, NUMBERS, NUMBERS)
@example(np.float32(0), np.float32(1), 1)
@example(np.uint8(0), np.uint8(3), np.float32(1))
@example(np.uint8(3), 0, -1)
@example(np.float16(0), np.float16(3), np.int8(2))
@example(-2, np.uint8(0), 0)
def test_numpys_numbers_as_bounds_of_ranges_are_not_weak(a: Any, b: Any, c: Any) -> None:
    is_far = False
    with np.errstate(all="ignore"), suppress(OverflowError):  # a number that does not fit the other's dtype
        is_far = abs(float(b - a)) > 10**6
    for name, call in BOUNDED.items():
        if is_far and name.startswith("arange"):
            continue  # NumPy's unsigned numbers went round: many GB, or none where their count goes round too
        expected = _outcome(np, call, a, b, c)
        if expected is None and name.startswith("arange"):
            continue  # where NumPy's unsigned numbers go round, matnb has none
        _check(f"{name} of {a!r}, {b!r}, {c!r}", expected, _outcome(mn, call, a, b, c))


def test_coefficients_of_a_list_have_the_dtype_of_the_list() -> None:
    x = np.array([40], np.int8)
    assert mn.polyval([1, 2, 3], mn.asarray(x)).compute() == np.polyval([1, 2, 3], x) == 1683


def test_bounds_may_be_arrays_of_no_axis_and_none_is_silently_real() -> None:
    for bound in (np.array(3), np.array(2.5), np.array(True)):
        expected, found = np.arange(bound), mn.arange(bound).compute()
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    for bounds in ((3, np.complex64(2)), (np.complex128(3), 4)):
        with pytest.raises(UnsupportedError, match="complex numbers is not supported"):
            mn.geomspace(*bounds, 3)
