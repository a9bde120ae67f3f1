"""Ufuncs with their options, and their methods."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, floats, odd, truths, whole

LARGE = (floats(50000, 4),)
FOLDED = ("add", "fmax", "logical_xor", "hypot")
WHOLE = ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")


def reduced(name: str, **options: Any) -> Any:
    """Return the call of a ufunc's reduce with some options."""
    return lambda xp, x: getattr(xp, name).reduce(x, **options)


def _into(xp: Any, name: str, out: Any, *arrays: Any, **options: Any) -> Any:
    found = getattr(xp, name)(*arrays, out=out, **options)
    assert found is out
    return out


def _changed(xp: Any, x: Any, change: Any) -> Any:
    x = x.copy()
    change(x)
    return x


def _at(name: str) -> Any:
    def call(xp: Any, x: Any, places: Any, values: Any) -> Any:
        return _changed(xp, x, lambda one: getattr(xp, name).at(one, places, values))

    return call


def _beside(key: Any) -> Any:
    # Places, as True in an index, among indices of other kinds.
    def call(xp: Any, x: Any, places: Any, values: Any) -> Any:
        whole_key = tuple(places if part is True else part for part in key)
        return _changed(xp, x, lambda one: xp.maximum.at(one, whole_key, values))

    return call


ALL = slice(None)
CASES = [
    case
    for name in FOLDED
    for case in (
        Case(f"{name}.reduce", reduced(name), (odd(9, 6),), large=LARGE if name == "hypot" else ()),
        Case(f"{name}.reduce", reduced(name, axis=-1, keepdims=True), (floats(5, 6),)),
        Case(f"{name}.reduce", reduced(name, initial=2, axis=0), (floats(5, 6),)),
        Case(f"{name}.reduce", reduced(name), (floats(0, 3),)),
        Case(
            f"{name}.reduce",
            lambda xp, x, w, name=name: getattr(xp, name).reduce(x, where=w, initial=1),
            (floats(5, 4), truths(5, 4)),
        ),
        Case(
            f"{name}.reduce",
            lambda xp, x, w, name=name: getattr(xp, name).reduce(x, where=w),
            (floats(5), truths(5)),
        ),
    )
]
CASES += [
    case
    for name in WHOLE
    for case in (
        Case(f"{name}.reduce", reduced(name), (whole(9, 6),), tolerance=0),
        Case(f"{name}.reduce", reduced(name, axis=1), (whole(9, 6, dtype="int16"),), tolerance=0),
        Case(f"{name}.reduce", reduced(name), (whole(0, 3),)),
        Case(f"{name}.reduce", reduced(name), (floats(4),)),
    )
]
CASES += [
    Case("add.reduce", reduced("add", axis=None), (floats(5, 6),)),
    Case("add.reduce", reduced("add", axis=()), (floats(5, 6),)),
    Case("add.reduce", lambda xp, x: xp.add.reduce(x, 1, "int16", None, True), (whole(5, 6),), tolerance=0),
    Case("add.reduce", lambda xp, x: xp.add.reduce(x, out=xp.zeros(6)), (floats(5, 6),)),
    Case("maximum.reduce", reduced("maximum", dtype="float32"), (whole(5, 6),)),
    Case("minimum.reduce", reduced("minimum", axis=3), (whole(5, 6),)),
    # where= and out=
    Case(
        "add",
        lambda xp, x, y, m, o: _into(xp, "add", o, x, y, where=m),
        (floats(4, 5), floats(4, 5), truths(4, 5), floats(4, 5)),
        sparse=False,
        tolerance=0,
        large=(floats(50000, 4), floats(50000, 4), truths(50000, 4), floats(50000, 4)),
    ),
    Case("multiply", lambda xp, x, o: _into(xp, "multiply", o, x, 2), (whole(5), floats(4, 5)), sparse=False),
    Case(
        "sqrt",
        lambda xp, x, m, o: _into(xp, "sqrt", o, x, where=m),
        (floats(4, 5), truths(4, 1), floats(4, 5)),
        sparse=False,
    ),
    Case("add", lambda xp, x: _into(xp, "add", xp.zeros(4, dtype="int64"), x, 1), (floats(4),)),
    Case(
        "add",
        lambda xp, x: _into(xp, "add", xp.zeros(4, dtype="int64"), x, 1.5, casting="unsafe"),
        (floats(4),),
    ),
    Case("add", lambda xp, x: _into(xp, "add", xp.zeros(3), x, 1), (floats(4),)),
    Case("add", lambda xp, x, o: _into(xp, "add", o, x, 1, where=x), (floats(4), floats(4)), sparse=False),
    Case("add", lambda xp, x, y: xp.add(x, y, where=True), (floats(4), floats(4))),
    Case("add", lambda xp, x, m: xp.add(x, 1, where=m) * m, (floats(4), truths(3, 4)), sparse=False),
    Case(
        "divide",
        lambda xp, x, y: xp.where(y != 0, xp.divide(x, y, where=y != 0), 7),
        (floats(4, 5), floats(4, 5)),
    ),
    Case("modf", lambda xp, x: xp.modf(x, out=(xp.zeros(4), None)), (floats(4),), tolerance=0),
    Case("divmod", lambda xp, x: xp.divmod(x, 3), (whole(9),), tolerance=0),
    # dtype=, casting= and signature=
    Case("add", lambda xp, x: xp.add(x, 1, dtype="float32"), (whole(4, 5),)),
    Case("add", lambda xp, x: xp.add(x, 1, dtype="int64"), (floats(4, 5),)),
    Case("add", lambda xp, x: xp.add(x, x, dtype="int64", casting="unsafe"), (floats(4, 5),), tolerance=0),
    Case("add", lambda xp, x: xp.add(x, x, dtype="float32", casting="safe"), (floats(4, 5),)),
    Case("less", lambda xp, x: xp.less(x, x.T, casting="no"), (floats(4, 4),)),
    Case("sqrt", lambda xp, x: xp.sqrt(x, casting="no"), (whole(4),)),
    Case("sqrt", lambda xp, x: xp.sqrt(x, casting="never"), (whole(4),)),
    Case("add", lambda xp, x: xp.add(x, x, signature="ff->f", casting="same_kind"), (floats(4),)),
    Case("add", lambda xp, x: xp.add(x, x, signature=(None, None, "float64")), (whole(4),)),
    Case("sqrt", lambda xp, x: xp.sqrt(x, order="K", subok=True), (floats(4),)),
    # in place
    Case("iadd", lambda xp, x: _changed(xp, x, lambda one: one.__iadd__(0.5)), (whole(4),)),
    Case(
        "iadd",
        lambda xp, x, y: _changed(xp, x, lambda one: one.__iadd__(y)),
        (floats(4, 5), whole(5)),
        tolerance=0,
    ),
    Case("iadd", lambda xp, x, y: _changed(xp, x, lambda one: one.__iadd__(y)), (floats(5), floats(4, 5))),
    # outer
    Case("add.outer", lambda xp, x, y: xp.add.outer(x, y), (floats(4, 2), whole(3)), tolerance=0),
    Case("multiply.outer", lambda xp, x: xp.multiply.outer(x, 2), (floats(4),), tolerance=0),
    Case(
        "less.outer",
        lambda xp, x, y: xp.less.outer(x, y),
        (floats(4), floats(5)),
        large=(floats(2000), floats(300)),
    ),
    # at
    *(
        Case(f"{name}.at", _at(name), (floats(6), whole(9, low=-6, high=6), floats(9)), sparse=False)
        for name in ("add", "subtract", "multiply", "minimum", "maximum")
    ),
    Case(
        "add.at",
        _at("add"),
        (odd(5, 3), whole(9, low=0, high=5), floats(9, 3)),
        sparse=False,
        large=(floats(40000, 4), whole(50000, low=0, high=40000), floats(50000, 4)),
    ),
    Case("add.at", _at("add"), (odd(5, 3, 2), whole(4, low=0, high=5), floats(2)), sparse=False),
    Case("add.at", _at("add"), (odd(5), whole(3, 4, low=0, high=5), floats(3, 4)), sparse=False),
    Case("maximum.at", _at("maximum"), (whole(5), whole(7, low=0, high=5), whole(7)), tolerance=0),
    Case("add.at", _at("add"), (whole(5), whole(7, low=0, high=9), whole(7))),
    # at by several indices
    Case(
        "add.at",
        lambda xp, x, i, j: _changed(xp, x, lambda one: xp.add.at(one, (i, j), 1)),
        (whole(3, 4), whole(40, low=-3, high=3), whole(40, low=0, high=4, dtype="uint8")),
        sparse=False,
        tolerance=0,
        large=(whole(300, 700), whole(90000, low=0, high=300), whole(90000, low=0, high=700)),
    ),
    *(
        Case("maximum.at", _beside(key), (floats(4, 3, 5), places, floats(*shape)))
        for key, places, shape in (
            ((ALL, True), whole(2, 7, low=0, high=3), (4, 2, 7, 5)),
            ((ALL, True, slice(None, None, -2)), whole(7, low=-3, high=0), (4, 7, 3)),
            ((1, ALL, True), whole(7, low=0, high=3), (7, 3)),
            ((..., True, 2), whole(7, low=0, high=3), (7,)),
            ((..., True, 2), whole(7, low=0, high=4), (7,)),
            ((..., True, 2), whole(7, low=0, high=3), (6,)),
            ((np.array([0, 3, 3, 1, 2, 2, 0]), slice(1, 2), True), whole(7, low=0, high=5), (7, 1)),
            ((None, True, ALL, 1), whole(7, low=0, high=4), (7, 1, 3)),
        )
    ),
    # whose results go into the array's dtype, however much they lose
    Case(
        "add.at",
        lambda xp, x: _changed(xp, x, lambda one: xp.divide.at(one, (slice(None), 1), 2.5)),
        (whole(5, 4, dtype="int8"),),
        tolerance=0,
    ),
    Case(
        "add.at",
        lambda xp, x: _changed(xp, x, lambda one: xp.subtract.at(one, [0, 0, 3], -1)),
        (whole(5, 4, low=0, dtype="uint16"),),
        tolerance=0,
    ),
    Case("add.at", lambda xp, x: _changed(xp, x, lambda one: xp.add.at(one, [0, 0, 1], 1)), (whole(5),)),
    Case(
        "negative.at",
        lambda xp, x: _changed(xp, x, lambda one: xp.negative.at(one, slice(1, 3))),
        (floats(5),),
    ),
    Case(
        "power.at",
        lambda xp, x: _changed(xp, x, lambda one: xp.power.at(one, 2, 3)),
        (floats(5, 2),),
        sparse=False,
    ),
    # reduceat
    Case(
        "add.reduceat", lambda xp, x: xp.add.reduceat(x, [0, 2, 3, 7]), (floats(9),), large=(floats(200000),)
    ),
    Case("add.reduceat", lambda xp, x: xp.add.reduceat(x, [0, 4, 1, 5, 2]), (whole(9),), tolerance=0),
    Case("maximum.reduceat", lambda xp, x: xp.maximum.reduceat(x, [1, 3], axis=1), (odd(4, 6),)),
    Case("multiply.reduceat", lambda xp, x: xp.multiply.reduceat(x, np.array([2, 3])), (floats(6, 2, 3),)),
    Case("add.reduceat", lambda xp, x: xp.add.reduceat(x, [0, 9]), (floats(9),)),
    Case("add.reduceat", lambda xp, x: xp.add.reduceat(x, [], dtype="int8"), (whole(9, 2),)),
    Case("multiply.reduceat", lambda xp, x: xp.multiply.reduceat(x, [0, 2], 1, "int16"), (whole(3, 4),)),
    Case("minimum.reduceat", lambda xp, x: xp.minimum.reduceat(x * (1 + 2j), [0, 2]), (floats(7),)),
    Case("bitwise_xor.reduceat", lambda xp, x: xp.bitwise_xor.reduceat(x, [0, 1, 4]), (whole(7, 2),)),
    Case("hypot.reduceat", lambda xp, x: xp.hypot.reduceat(x, [0, 1, 4]), (floats(7, 2),)),
    Case("logical_or.reduceat", lambda xp, x: xp.logical_or.reduceat(x, [0], dtype="int8"), (floats(7),)),
    Case("gcd.reduce", reduced("gcd", axis=None), (lambda rng: np.array(-3),)),
    Case("hypot.reduce", reduced("hypot", dtype="int8"), (floats(4),)),
]
