"""Calls that reduce arrays, with all of NumPy's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, Maker, floats, odd, truths, whole


def typed(dtype: str, *shape: int) -> Maker:
    """Return what makes an array of a dtype, complex ones with two parts."""

    def make(rng: np.random.Generator) -> np.ndarray:
        values = rng.integers(-3, 4, shape).astype(float)
        if np.dtype(dtype).kind == "u":
            values = np.abs(values)
        return (values + 1j * rng.integers(-2, 3, shape) if dtype[0] == "c" else values).astype(dtype)

    return make


def sparse_like(*shape: int) -> Maker:
    """Return what makes an array that is mostly zeros, with NaN among the others."""

    def make(rng: np.random.Generator) -> np.ndarray:
        values = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.3).astype(float)
        return np.where(rng.random(shape) < 0.05, np.nan, values)

    return make


DTYPES = ("bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "longdouble",
          "complex64", "complex128")  # fmt: skip
LARGE = (floats(50000, 6),)
WATCHED = ("max", "std", "count_nonzero", "nanvar", "nanmin")  # of each way of working one
NAMES = ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "count_nonzero", "ptp")
OF_NUMBERS = ("nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax")
PLACES = ("argmin", "argmax", "nanargmin", "nanargmax")


def called(name: str, **options: Any) -> Any:
    """Return the call of a reduction with some options."""
    return lambda xp, x: getattr(xp, name)(x, **options)


def every_dtype(name: str, **options: Any) -> Any:
    """Return the call of a reduction of arrays of all dtypes."""
    return lambda xp, *arrays: [getattr(xp, name)(one, **options) for one in arrays]


def _dtypes_of(name: str) -> list[str]:
    return [one for one in DTYPES if not (name == "ptp" and one == "bool")]


CASES = [
    case
    for number, name in enumerate((*NAMES, *OF_NUMBERS))
    for case in (
        # All dtypes over all functions and both ways, a few each.
        Case(
            name,
            every_dtype(name, axis=None if number % 2 else 0),
            tuple(typed(one, 5, 4) for one in _dtypes_of(name)[number % 3 :: 3]),
            tolerance=1e-6,
        ),
        Case(name, called(name, axis=(0, 2), keepdims=True), (odd(3, 4, 5),)),
        Case(name, called(name), (odd(40),), large=LARGE if name in WATCHED else ()),
        Case(name, called(name, axis=1), (sparse_like(9, 8),), large=LARGE if name in WATCHED else ()),
        Case(name, called(name, axis=0), (sparse_like(9, 8),)),
        Case(name, called(name, axis=number % 2), (floats(0, 3),)),
    )
]
CASES += [
    Case("sum", called("sum"), (floats(0, 3),)),
    Case("max", called("max"), (floats(0, 3),)),
    Case("mean", called("mean", axis=2), (floats(2, 3),)),
    Case("std", called("std", axis="no"), (floats(2, 3),)),
    Case("any", called("any", axis=(0, 0)), (floats(2, 3),)),
]
CASES += [
    case
    for name in PLACES
    for case in (
        Case(name, every_dtype(name), tuple(typed(one, 5, 4) for one in DTYPES[::2]), tolerance=0),
        Case(name, every_dtype(name, axis=1), tuple(typed(one, 5, 4) for one in DTYPES[1::2]), tolerance=0),
        Case(name, called(name), (odd(6, 7),), tolerance=0),
        Case(name, called(name, axis=0), (odd(9, 20),), tolerance=0),
        Case(name, called(name, axis=-1, keepdims=True), (sparse_like(9, 20),), tolerance=0),
        Case(name, called(name, keepdims=True), (sparse_like(9, 8),), tolerance=0),
        Case(name, called(name, axis=1), (floats(2, 3, 4),), tolerance=0),
        Case(name, called(name), (lambda rng: np.full((3, 2), np.nan),), tolerance=0),
        Case(name, called(name, axis=0), (floats(0, 3),), tolerance=0),
        Case(name, called(name, axis=(0, 1)), (floats(2, 3),), tolerance=0),
    )
]
CASES += [
    Case("argmax", called("argmax", axis=1), (floats(0, 3),), tolerance=0),
    Case("argmin", called("argmin"), (floats(),), tolerance=0),
    Case("argmin", called("argmin"), (floats(3, 2),), tolerance=0, large=LARGE),
    Case("nanargmax", called("nanargmax", axis=1), (floats(3, 2),), tolerance=0, large=LARGE),
]
CASES += [
    case
    for name in ("sum", "min", "nanprod", "nanmax")
    for case in (
        Case(name, called(name, initial=7, axis=0), (whole(5, 4),)),
        Case(name, called(name, initial=3, axis=0), (floats(0, 4),)),
        Case(
            name,
            lambda xp, x, w, name=name: getattr(xp, name)(x, where=w, initial=1),
            (odd(5, 4), truths(5, 4)),
        ),
        Case(name, lambda xp, x, w, name=name: getattr(xp, name)(x, axis=0, where=w), (odd(5, 4), truths(4))),
        Case(name, lambda xp, x, w, name=name: getattr(xp, name)(x, where=w), (floats(4), truths(5, 4))),
        Case(name, lambda xp, x, w, name=name: getattr(xp, name)(x, where=w), (floats(4), whole(4))),
    )
]
CASES += [
    case
    for name in ("mean", "std", "nanvar", "all")
    for case in (
        Case(name, lambda xp, x, w, name=name: getattr(xp, name)(x, where=w), (odd(5, 4), truths(5, 4))),
        Case(
            name,
            lambda xp, x, w, name=name: getattr(xp, name)(x, axis=1, where=w, keepdims=True),
            (floats(5, 4), truths(5, 1)),
        ),
    )
]
CASES += [
    case
    for name in ("var", "nanstd")
    for case in (
        Case(name, called(name, ddof=1, axis=0), (odd(7, 4),)),
        Case(name, called(name, correction=1), (floats(7, 4),)),
        Case(name, called(name, correction=1, ddof=1), (floats(7, 4),)),
        Case(name, called(name, ddof=9), (floats(3, 2),)),
        Case(
            name,
            lambda xp, x, name=name: getattr(xp, name)(x, axis=0, mean=xp.mean(x, axis=0, keepdims=True)),
            (floats(7, 4),),
        ),
        Case(name, called(name, dtype="float32"), (whole(7, 4),)),
    )
]


def _into(xp: Any, x: Any, name: str) -> Any:
    out = xp.zeros(4)
    found = getattr(xp, name)(x, axis=0, out=out)
    assert found is out
    return out


CASES += [
    Case(name, lambda xp, x, name=name: _into(xp, x, name), (floats(5, 4),))
    for name in ("sum", "max", "mean", "std", "nanmax", "ptp")
]
CASES += [
    Case("sum", lambda xp, x: xp.sum(x, out=xp.zeros((), dtype="int64")), (floats(3, 3),)),
    Case("sum", lambda xp, x: xp.sum(x, axis=0), (floats(),)),
    Case("max", lambda xp, x: xp.max(x, axis=-1), (floats(),)),
    Case("sum", called("sum", dtype="int8"), (whole(5, 4),)),
    Case("sum", called("sum", dtype="float32", axis=0), (whole(5, 4),)),
    Case("sum", lambda xp, x: x.sum(0, "float32", None, True), (whole(5, 4),)),
    Case("sum", lambda xp, x, w: x.sum(axis=0, initial=2, where=w), (floats(5, 4), truths(5, 4))),
    Case("max", lambda xp, x, w: x.max(0, None, True, 2, w), (floats(5, 4), truths(5, 4))),
    Case("all", lambda xp, x, w: x.all(axis=0, where=w), (floats(5, 4), truths(5, 4))),
    Case("std", lambda xp, x: x.std(0, None, None, 1), (floats(5, 4),)),
    Case("var", lambda xp, x, w: xp.var(x, axis=0, where=w, correction=1), (floats(5, 4), truths(5, 4))),
    Case("mean", lambda xp, x, w: x.mean(where=w), (floats(5, 4), truths(5, 4))),
    Case("mean", called("mean", dtype="int64"), (floats(5, 4),)),
    Case("count_nonzero", called("count_nonzero", axis=0, keepdims=True), (floats(5, 4),)),
    # dtype= of what cannot hold the mean, or holds more than it
    Case("var", called("var", axis=0, dtype="int16"), (whole(5, 4),), tolerance=0),
    Case("var", called("var", dtype="complex64"), (floats(5, 4),)),
    Case("var", called("var", dtype="float16"), (lambda rng: np.array([1, 2**32 - 1], "uint32"),)),
    Case("std", called("std", axis=0, dtype="int16"), (whole(5, 4),)),
    Case("std", called("std", dtype="int16"), (whole(5, 4),), tolerance=0),
    Case("nanvar", called("nanvar", axis=1, dtype="complex128"), (odd(5, 4),)),
    Case("nanvar", called("nanvar", dtype="int8"), (odd(5, 4),)),
    Case("nanmean", called("nanmean", dtype="int8", axis=7), (odd(5, 4),)),
    # a number has no axis, except for those that NumPy sums
    *(Case(name, called(name, axis=-1), (floats(),)) for name in ("sum", "mean", "var", "nanmean", "nanstd")),
    Case("max", lambda xp, x: (x * (1 + 2j))[x > 0].max(), (floats(9),)),
    Case("average", called("average", axis=1, returned=True), (odd(5, 4),)),
    Case("cov", called("cov", rowvar=False), (floats(1, 4),)),
    Case("corrcoef", called("corrcoef"), (floats(0, 4),)),
    Case("average", called("average", axis=0), (floats(5, 4),), large=LARGE),
    Case(
        "average",
        lambda xp, x, w: xp.average(x, weights=w, returned=True),
        (floats(5, 4), whole(5, 4, low=1)),
    ),
    Case("average", lambda xp, x, w: xp.average(x, 0, w, True), (whole(5, 4), whole(5, low=1))),
    Case("average", lambda xp, x, w: xp.average(x, (1, 0), w), (floats(5, 4, 3), whole(4, 5, low=1))),
    Case("average", lambda xp, x, w: xp.average(x, weights=w), (floats(5, 4), whole(4))),
    Case("average", lambda xp, x: xp.average(x, 1, returned=True, keepdims=True), (whole(5, 4),)),
    Case("cov", lambda xp, x: xp.cov(x), (floats(4, 9),), large=(floats(6, 50000),)),
    Case(
        "cov",
        lambda xp, x, y: xp.cov(x, y, rowvar=False, bias=True),
        (floats(9, 3), typed("complex128", 9, 2)),
    ),
    Case("cov", lambda xp, x: xp.cov(x, ddof=0), (floats(9),)),
    Case(
        "cov",
        lambda xp, x, f, a: [xp.cov(x, fweights=f), xp.cov(x, aweights=a), xp.cov(x, fweights=f, aweights=a)],
        (floats(3, 9), whole(9, low=1), lambda rng: rng.random(9)),
    ),
    Case("cov", lambda xp, x: xp.cov(x), (floats(2, 3, 4),)),
    Case("corrcoef", lambda xp, x: xp.corrcoef(x), (lambda rng: rng.random((3, 9)),)),
    Case(
        "corrcoef", lambda xp, x: xp.corrcoef(x, rowvar=False), (lambda rng: rng.random((9, 3)) * (1 + 2j),)
    ),
    Case("trapezoid", lambda xp, y: xp.trapezoid(y, dx=0.5, axis=0), (floats(7, 4),), large=LARGE),
    Case("trapezoid", lambda xp, y, x: xp.trapezoid(y, x), (floats(4, 7), floats(7))),
    Case("trapezoid", lambda xp, y, x: xp.trapezoid(y, x, axis=0), (floats(4, 7), floats(4, 7))),
]
