"""Calls of elementwise functions: every ufunc on every kind of number, and those that are not ufuncs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from breadth.case import Case, Maker, floats, odd, truths, whole

# Which tell -0.0 from 0.0, or nothing from NaN: an absent zero has no sign, and is absent whatever it meets.
DENSE = {
    "arctan2",
    "copysign",
    "divide",
    "divmod",
    "float_power",
    "floor_divide",
    "fmod",
    "reciprocal",
    "remainder",
    "signbit",
}


def numbers(dtype: str, *shape: int) -> Maker:
    """Return what makes numbers of a dtype, NaN, infinities and zeros of both signs among them."""

    def make(rng: np.random.Generator) -> np.ndarray:
        kind = np.dtype(dtype).kind
        if kind == "f":
            return odd(*shape)(rng).astype(dtype)
        if kind == "c":
            values = np.empty(shape, dtype)
            values.real, values.imag = odd(*shape)(rng), odd(*shape)(rng)
            return values
        return whole(*shape, low=-4 if kind == "i" else 0, high=5)(rng).astype(dtype)

    return make


def ufuncs() -> dict[str, np.ufunc]:
    """Return NumPy's elementwise ufuncs of numbers."""
    found = {one.__name__: one for one in vars(np).values() if isinstance(one, np.ufunc)}
    return {name: one for name, one in found.items() if one.signature is None and name != "isnat"}


def operands_of(ufunc: np.ufunc, dtype: str) -> tuple[str, ...] | None:
    """Return dtypes to call a ufunc with, the first as given; None where there is no loop for it."""
    operands = (dtype,) * ufunc.nin
    if ufunc.__name__ == "ldexp":
        operands = (dtype, "int64")
    elif ufunc.__name__ in ("left_shift", "right_shift") or (
        np.dtype(dtype).kind == "i" and ufunc is np.power
    ):
        operands = (dtype, "uint8")  # neither goes by negative numbers
    try:
        ufunc.resolve_dtypes((*map(np.dtype, operands), *(None,) * ufunc.nout))
    except TypeError:
        return None
    return operands


def _case_of(name: str, ufunc: np.ufunc) -> Case:
    operands = operands_of(ufunc, "float64") or operands_of(ufunc, "int64")
    assert operands is not None, name
    makers = tuple(floats(3, 4) if one == "float64" else numbers(one, 3, 4) for one in operands)
    return Case(name, _calling(name), makers, sparse=ufunc.__name__ not in DENSE)


def _calling(name: str) -> Callable[..., Any]:
    return lambda xp, *arrays: getattr(xp, name)(*arrays)


def _aliases() -> dict[str, np.ufunc]:
    return {
        name: one
        for name, one in vars(np).items()
        if isinstance(one, np.ufunc) and one.signature is None and name != one.__name__
    }


UFUNCS = [_case_of(name, ufunc) for name, ufunc in ufuncs().items()]
ALIASES = [_case_of(name, ufunc) for name, ufunc in _aliases().items()]

x, z = floats(5, 4), numbers("complex128", 5, 4)
FUNCTIONS = [
    Case("where", lambda xp, c, x, y: xp.where(c, x, y), (truths(5, 4), odd(5, 4), odd(4)), False, 0),
    Case("where", lambda xp, c, x: xp.where(c, x, 2.5), (truths(5, 4), numbers("float32", 5, 4)), False, 0),
    Case("where", lambda xp, c: xp.where(c, 1, 2.5), (truths(5, 4),), tolerance=0),
    Case("clip", lambda xp, x: xp.clip(x, -1, 1.5), (odd(5, 4),), tolerance=0, large=(odd(100000),)),
    Case("clip", lambda xp, x: xp.clip(x, min=1), (whole(5, 4),), tolerance=0),
    Case("clip", lambda xp, x: xp.clip(x, a_max=1, a_min=0), (whole(5, 4),), tolerance=0),
    Case("clip", lambda xp, x: xp.clip(x, a_max=1, a_min=0, max=2), (whole(5, 4),)),
    Case("clip", lambda xp, x, y: x.clip(y, None), (whole(5, 4), odd(4)), tolerance=0),
    Case("clip", lambda xp, x: xp.clip(x, -1000, 1000), (whole(5, 4, dtype="int8"),), tolerance=0),
    Case("clip", lambda xp, x: xp.clip(x, 1000, None), (whole(5, 4, dtype="int8"),), tolerance=0),
    Case("round", lambda xp, x: xp.round(x), (odd(5, 4),), tolerance=0),
    Case("round", lambda xp, x: xp.round(x / 7, 2), (x,), tolerance=0),
    Case("round", lambda xp, x: xp.round(x, -1), (whole(5, 4, low=-99, high=99),), tolerance=0),
    Case("round", lambda xp, x: x.round(1), (z,), tolerance=0),
    Case("round", lambda xp, x: xp.round(x), (truths(3),), tolerance=0),
    Case("round", lambda xp, x: xp.round(x, 1), (truths(3),), tolerance=0),
    Case("around", lambda xp, x: xp.around(x, 1), (numbers("float16", 5, 4),), tolerance=0),
    Case("fix", lambda xp, x: xp.fix(x), (odd(5, 4),), tolerance=0),
    Case("real", lambda xp, x: xp.real(x), (z,), tolerance=0, large=(numbers("complex128", 50000),)),
    Case("real", lambda xp, x: x.real, (numbers("complex64", 5, 4),), tolerance=0),
    Case("real", lambda xp, x: xp.real(x), (x,), tolerance=0),
    Case("imag", lambda xp, x: xp.imag(x), (z,), tolerance=0),
    Case("imag", lambda xp, x: x.imag, (x,), tolerance=0),
    Case("angle", lambda xp, x: xp.angle(x), (z,)),
    Case("angle", lambda xp, x: xp.angle(x, deg=True), (odd(5, 4),), sparse=False),
    Case("conj", lambda xp, x: x.conj() + x.conjugate(), (z,)),
    Case("nan_to_num", lambda xp, x: xp.nan_to_num(x), (odd(5, 4),), tolerance=0),
    Case("nan_to_num", lambda xp, x: xp.nan_to_num(x, True, 2, 3, -1), (numbers("float32", 9),), False, 0),
    Case("nan_to_num", lambda xp, x: xp.nan_to_num(x), (z,), tolerance=0),
    Case("nan_to_num", lambda xp, x: xp.nan_to_num(x), (whole(4),), tolerance=0),
    Case("isclose", lambda xp, x, y: xp.isclose(x, y), (odd(9, 4), odd(9, 4)), tolerance=0),
    Case("isclose", lambda xp, x, y: xp.isclose(x, y + 1e-9, 0, 1e-8, equal_nan=True), (odd(9, 4), odd(4))),
    Case("isclose", lambda xp, x: xp.isclose(x, 1), (whole(9),), tolerance=0),
    Case("allclose", lambda xp, x: xp.allclose(x, x + 1e-9), (x,), tolerance=0),
    Case("allclose", lambda xp, x, y: xp.allclose(x, y), (x, odd(4)), tolerance=0),
    Case("array_equal", lambda xp, x: xp.array_equal(x, x), (odd(5, 4),), tolerance=0),
    Case("array_equal", lambda xp, x: xp.array_equal(x, x, equal_nan=True), (odd(5, 4),), tolerance=0),
    Case("array_equal", lambda xp, x, y: xp.array_equal(x, y), (x, whole(4)), tolerance=0),
    Case("array_equiv", lambda xp, x, y: xp.array_equiv(x, y), (x, whole(4)), tolerance=0),
    Case("isreal", lambda xp, x: xp.isreal(x), (z,), tolerance=0),
    Case("iscomplex", lambda xp, x: xp.iscomplex(x), (z,), tolerance=0),
    Case("isrealobj", lambda xp, x, y: (xp.isrealobj(x), xp.isrealobj(y)), (z, x)),
    Case("iscomplexobj", lambda xp, x, y: (xp.iscomplexobj(x), xp.iscomplexobj(y)), (z, x)),
    Case("isposinf", lambda xp, x: xp.isposinf(x), (odd(5, 4),), tolerance=0),
    Case("isneginf", lambda xp, x: xp.isneginf(x), (odd(5, 4),), tolerance=0),
    Case("sinc", lambda xp, x: xp.sinc(x), (x,)),
    Case("i0", lambda xp, x: xp.i0(x), (x,)),
    Case("polyval", lambda xp, x: xp.polyval([1.0, -2, 3], x), (x,)),
    Case("piecewise", lambda xp, x: xp.piecewise(x, [x < 0, x > 1], [-1, lambda v: v * v, 7]), (floats(9),)),
    Case("astype", lambda xp, x: xp.astype(x, xp.int64), (x,), tolerance=0),
    Case("astype", lambda xp, x: x.astype(bool), (z,), tolerance=0),
    Case("astype", lambda xp, x: x.astype("int8", casting="safe"), (x,), tolerance=0),
    Case("pow", lambda xp, x: x**2, (truths(4),), tolerance=0),
    Case("pow", lambda xp, x: x**3, (truths(4),), tolerance=0),
    Case("add", lambda xp, x: x + 300, (whole(4, dtype="int8"),), tolerance=0),
    Case("add", lambda xp, x: xp.add(2, x), (numbers("float32", 4),), tolerance=0),
    Case("divmod", lambda xp, x: divmod(x, 3), (odd(5, 4),), tolerance=0),
    Case("divmod", lambda xp, x: divmod(7, x + 0.5), (x,), tolerance=0),
]  # fmt: skip

CASES = [*UFUNCS, *ALIASES, *FUNCTIONS]
