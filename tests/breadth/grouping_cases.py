"""Calls that group values by keys, against sorting and ``ufunc.at``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from breadth.case import Case, Maker, floats, odd, truths, whole

UFUNCS = {"sum": np.add, "prod": np.multiply, "min": np.minimum, "max": np.maximum,
          "any": np.logical_or, "all": np.logical_and}  # fmt: skip


def grouped(xp: Any, how: str, keys: Any, *values: Any, **options: Any) -> Any:
    """Return the keys, and what is told of their groups; by matnb, or by NumPy alone."""
    if xp is not np:
        groups = xp.groupby(keys)
        found = groups.keys if isinstance(keys, tuple) else (groups.keys,)
        return (*found, getattr(groups, how)(*values, **options))
    if isinstance(keys, tuple):
        distinct, places = np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)
        found = [column.astype(key.dtype) for column, key in zip(distinct.T, keys, strict=True)]
    else:
        distinct, places = np.unique(keys, return_inverse=True)
        found = [distinct]
    return (*found, told(how, places, len(distinct), *values, **options))


def told(how: str, places: np.ndarray, length: int, values: Any = None, **options: Any) -> np.ndarray:
    """Return what is told of groups, given the group of each row."""
    if values is None:
        return np.bincount(places, minlength=length)
    if how == "count":
        return np.bincount(places, values == values, length).astype(np.int64)
    if how in UFUNCS:
        dtype = UFUNCS[how].reduce(values[:1], axis=0).dtype
        start = UFUNCS[how].identity
        if start is None:
            start = (
                {"min": np.max, "max": np.min}[how](values, initial=0)
                if values.dtype.kind != "f"
                else (np.inf if how == "min" else -np.inf)
            )
        totals = np.full((length, *values.shape[1:]), start, dtype)
        UFUNCS[how].at(totals, places, values)
        return totals
    groups = [getattr(np, how)(values[places == one], axis=0, **options) for one in range(length)]
    return np.array(groups)


def wide(*shape: int) -> Maker:
    """Return what makes whole numbers far apart, some equal."""
    return lambda rng: rng.integers(-(2**62), 2**62, 9)[rng.integers(0, 9, shape)]


def spread(*shape: int) -> Maker:
    """Return what makes many whole numbers far apart, each a few times."""
    return lambda rng: rng.integers(0, 3000, shape) * 2**40


def ordered(name: str, **options: Any) -> Any:
    """Return the call of what groups have in order, as pandas and matnb have it."""

    def call(xp: Any, keys: Any, values: Any) -> Any:
        if xp is not np:
            return getattr(xp.groupby(keys), name)(values, **options)
        return getattr(pd.Series(values).groupby(keys), name)(**options).to_numpy()

    return call


CASES = [
    *(
        Case("groupby", lambda xp, k, v, how=how: grouped(xp, how, k, v), (keys(40), values(40)))
        for how in ("sum", "prod", "min", "max", "any", "all", "mean", "var", "std", "count")
        for keys, values in ((whole, floats), (wide, whole))
    ),
    *(
        Case("groupby", lambda xp, k, v, how=how: grouped(xp, how, k, v), (odd(40), odd(40)))
        for how in ("sum", "min", "max", "count", "any")
    ),
    Case("groupby", lambda xp, k: grouped(xp, "count", k), (whole(40, low=200, high=255, dtype="uint8"),)),
    Case("groupby", lambda xp, k: grouped(xp, "count", k), (truths(40),)),
    Case("groupby", lambda xp, k: grouped(xp, "count", k + np.uint64(2**63)),
         (whole(40, low=3, dtype="uint64"),)),
    Case("groupby", lambda xp, k: grouped(xp, "count", k), (floats(0),)),
    Case("groupby", lambda xp, k, v: grouped(xp, "sum", k, v), (whole(0), floats(0))),
    Case("groupby", lambda xp, k, v: grouped(xp, "sum", k, v), (wide(40), floats(40, 3))),
    Case("groupby", lambda xp, k, v: grouped(xp, "mean", k, v), (whole(40), floats(40, 3)),
         large=(whole(200000, low=0, high=5000), floats(200000, 3))),
    Case("groupby", lambda xp, k, v: grouped(xp, "var", k, v, ddof=1),
         (whole(90, low=0, high=3), floats(90, 2))),
    Case("groupby", lambda xp, k, v: grouped(xp, "sum", k, v), (wide(40), floats(40)),
         large=(spread(300000), floats(300000))),
    Case("groupby", lambda xp, k, v: grouped(xp, "std", k, v.astype("float32")), (wide(40), floats(40)),
         large=(spread(300000), floats(300000))),
    Case("groupby", lambda xp, k, v: grouped(xp, "mean", k, v.astype("float16")), (whole(40), floats(40))),
    Case("groupby", lambda xp, k, v: grouped(xp, "mean", k, v + 1j), (wide(40), floats(40))),
    Case("groupby", lambda xp, k, j, v: grouped(xp, "sum", (k, j), v),
         (whole(40), whole(40, high=1), whole(40))),
    Case("groupby", lambda xp, k, j, v: grouped(xp, "max", (k, j), v), (wide(40), whole(40), floats(40))),
    Case("groupby", lambda xp, k, j, v: grouped(xp, "mean", (k, j), v), (floats(40), truths(40), floats(40))),
]  # fmt: skip
CASES += [
    Case("groupby", ordered(name, **options), (whole(40), floats(40)), sparse=False, large=large)
    for name, options, large in (
        ("cumsum", {}, (whole(200000), floats(200000))),
        ("cummax", {}, ()),
        ("median", {}, (whole(200000), floats(200000))),
        ("nunique", {}, ()),
        ("rank", {"method": "dense"}, (whole(200000), floats(200000))),
        ("first", {}, ()),
    )
]
