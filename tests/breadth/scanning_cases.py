"""Calls that run along an axis: running sums, differences, gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, floats, odd, truths, whole
from breadth.reductions_cases import DTYPES, typed

LONG = (floats(100000),)
TALL = (floats(30000, 6),)
WIDE = (floats(12, 20000),)


def called(name: str, **options: Any) -> Any:
    """Return the call of a function with some options."""
    return lambda xp, x: getattr(xp, name)(x, **options)


def _totals(xp: Any, *arrays: Any) -> Any:
    functions = (xp.cumsum, xp.cumprod)
    return [functions[number % 2](one) for number, one in enumerate(arrays)]


def followed(one: Any, following: Any) -> Any:
    """Return two steps of a linear recurrence as one."""
    (a, b), (c, d) = one, following
    return a * c, c * b + d


def greatest(one: Any, following: Any) -> Any:
    """Return the greater of two numbers, with what is beside it."""
    (a, b), (c, d) = one, following
    return np.where(c > a, c, a), np.where(c > a, d, b)


def summed(one: Any, following: Any) -> Any:
    """Return sums of what is recognized as no sum of arrays."""
    return one[0] + following[0], np.maximum(one[1], following[1])


def along(fn: Any, is_reversed: bool) -> Any:
    """Return the call of a scan by a function; NumPy's goes element by element."""

    def call(xp: Any, x: Any, y: Any) -> Any:
        if xp is not np:
            return xp.associative_scan(fn, (x, y), reverse=is_reversed)
        so_far = None
        found = []
        for place in range(len(x) - 1, -1, -1) if is_reversed else range(len(x)):
            one = x[place : place + 1], y[place : place + 1]
            so_far = one if so_far is None else fn(so_far, one)
            found.append(so_far)
        parts = zip(*(found[::-1] if is_reversed else found), strict=True)
        return tuple(np.concatenate(part) for part in parts)

    return call


CASES = [
    case
    for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")
    for case in (
        Case(name, called(name), (odd(20),), large=LONG if name == "cumsum" else ()),
        Case(name, called(name, axis=0), (odd(9, 5),), large=TALL if name == "nancumprod" else ()),
        Case(name, called(name, axis=1), (whole(4, 9),), tolerance=0, large=WIDE if name == "cumsum" else ()),
        Case(name, called(name, axis=1), (floats(2, 9, 3),)),
        Case(name, called(name, axis=-1, dtype="int16"), (whole(4, 9),), tolerance=0),
    )
]
CASES += [
    Case("cumsum", called("cumsum"), (floats(4, 5),)),
    Case("cumsum", called("cumsum", dtype="int64"), (floats(9),), tolerance=0),
    Case("cumprod", called("cumprod"), (floats(0),), tolerance=0),
    Case("cumsum", called("cumsum", axis=0), (floats(0, 3),), tolerance=0),
    Case("nancumsum", called("nancumsum"), (floats(),), tolerance=0),
    Case("cumprod", called("cumprod", axis=2), (floats(3, 3),)),
]
CASES += [
    Case("cumsum", _totals, tuple(typed(one, 9) for one in DTYPES if one != "longdouble"), tolerance=1e-5),
    Case("cumsum", lambda xp, x: xp.cumsum(x, 0), (lambda rng: rng.random((7, 300)),)),
    Case(
        "maximum.accumulate",
        lambda xp, x: xp.maximum.accumulate(x, axis=0),
        (odd(7, 300),),
        sparse=False,
        tolerance=0,
    ),
    Case("cumsum", lambda xp, x: xp.cumsum(x, axis=0, out=xp.zeros((4, 3))), (whole(4, 3),)),
]
CASES += [
    case
    for name in ("cumulative_sum", "cumulative_prod")
    for case in (
        Case(name, called(name, include_initial=True), (whole(9),), tolerance=0, large=LONG),
        Case(name, called(name, include_initial=True, axis=1, dtype="float32"), (whole(3, 9),)),
        Case(name, called(name), (whole(3, 9),)),
        Case(name, called(name), (floats(),)),
    )
]
CASES += [
    case
    for number, name in enumerate(("maximum", "minimum", "logical_or", "logical_xor", "fmax", "hypot"))
    for case in (
        Case(
            f"{name}.accumulate",
            lambda xp, x, name=name, axis=number % 2: getattr(xp, name).accumulate(x, axis=axis),
            (odd(7, 9),),
            sparse=False,
        ),
    )
]
CASES += [
    Case(
        f"{name}.accumulate",
        lambda xp, x, name=name: getattr(xp, name).accumulate(x, 0),
        (whole(9, 4),),
        tolerance=0,
    )
    for name in ("bitwise_or", "bitwise_and", "bitwise_xor", "gcd", "lcm", "add", "maximum")
]
CASES += [
    Case("add.accumulate", lambda xp, x: xp.add.accumulate(x), (floats(),)),
    Case("gcd.accumulate", lambda xp, x: xp.gcd.accumulate(x), (floats(4),)),
    Case("add.accumulate", lambda xp, x: xp.add.accumulate(x, 0, "int8"), (whole(9),)),
    Case("diff", lambda xp, x: xp.diff(x), (odd(20),), tolerance=0, large=LONG),
    Case("diff", lambda xp, x: xp.diff(x, 2, axis=0), (floats(9, 4),), tolerance=0, large=TALL),
    Case("diff", lambda xp, x: xp.diff(x, axis=0), (truths(9, 4),), tolerance=0),
    Case("diff", lambda xp, x: xp.diff(x, prepend=0, append=2.5), (floats(4, 5),)),
    Case("diff", lambda xp, x, y: xp.diff(x, axis=0, append=y), (floats(4, 5), floats(2, 5)), tolerance=0),
    Case("diff", lambda xp, x: xp.diff(x, 7), (floats(4),)),
    Case("diff", lambda xp, x: xp.diff(x, -1), (floats(4),)),
    Case("diff", lambda xp, x: xp.diff(x, 0), (floats(4),)),
    Case("diff", lambda xp, x: xp.diff(x), (floats(),)),
    Case("ediff1d", lambda xp, x: xp.ediff1d(x), (floats(4, 5),)),
    Case("ediff1d", lambda xp, x: xp.ediff1d(x, to_begin=-9, to_end=[1, 2]), (whole(9),), tolerance=0),
    Case("ediff1d", lambda xp, x: xp.ediff1d(x, to_end=1.5), (whole(9),)),
    Case("gradient", lambda xp, x: xp.gradient(x), (floats(9),), large=LONG),
    Case("gradient", lambda xp, x: xp.gradient(x, 2.0, edge_order=2), (floats(5, 6),)),
    Case("gradient", lambda xp, x: xp.gradient(x, axis=-1), (whole(5, 6),)),
    Case(
        "gradient",
        lambda xp, x, y: xp.gradient(x, y, 0.5),
        (floats(7, 6), lambda rng: np.cumsum(rng.integers(1, 4, 7)) / 2),
    ),
    Case(
        "gradient",
        lambda xp, x, y: xp.gradient(x, y, axis=1, edge_order=2),
        (floats(3, 7), lambda rng: np.cumsum(rng.integers(1, 4, 7))),
    ),
    Case("gradient", lambda xp, x: xp.gradient(x), (floats(1),)),
    Case("gradient", lambda xp, x: xp.gradient(x, 1.0, 2.0), (floats(5),)),
    Case("gradient", lambda xp, x: xp.gradient(x), (floats(2),)),
    *(
        Case("associative_scan", along(fn, is_reversed), (floats(70), floats(70)), large=large, sparse=False)
        for fn, large in ((followed, (*LONG, *LONG)), (greatest, (*LONG, *LONG)), (summed, ()))
        for is_reversed in (False, True)
    ),
    Case("associative_scan", along(followed, False), (floats(9, 4), floats(9, 4)), sparse=False),
    Case("associative_scan", along(greatest, True), (whole(9, 4), truths(9, 4)), sparse=False),
]
