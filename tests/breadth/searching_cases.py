"""Calls that look elements up."""

from __future__ import annotations

import numpy as np

from breadth.case import Case, floats, odd, whole

CASES = [
    Case(
        "searchsorted",
        lambda xp, a, v: xp.searchsorted(xp.sort(a), v),
        (floats(40), floats(7, 5)),
        tolerance=0,
        large=(floats(200000), floats(150000)),
    ),
    Case("searchsorted", lambda xp, a, v: xp.searchsorted(xp.sort(a), v, side="right"), (odd(30), odd(9))),
    Case(
        "searchsorted", lambda xp, a, v: xp.searchsorted(a, v, sorter=xp.argsort(a)), (whole(30), floats(9))
    ),
    Case("searchsorted", lambda xp, a: xp.searchsorted(xp.sort(a), 2), (whole(30),)),
    Case("searchsorted", lambda xp, a: xp.searchsorted(xp.sort(a), 2, "both"), (whole(30),)),
    Case("searchsorted", lambda xp, a, v: xp.searchsorted(a, v), (whole(3, 4), floats(9))),
    Case("digitize", lambda xp, x: xp.digitize(x, [-1.0, 0.0, 0.5, 1.0]), (floats(7, 5),)),
    Case("digitize", lambda xp, x: xp.digitize(x, np.array([2, 1, 0, -1]), right=True), (floats(30),)),
    Case("digitize", lambda xp, x: xp.digitize(x, [1, 3, 2]), (floats(30),)),
    Case(
        "isin",
        lambda xp, x, t: xp.isin(x, t),
        (whole(7, 5), whole(2, 2)),
        large=(whole(300000), whole(300000, high=10**6)),
    ),
    Case("isin", lambda xp, x, t: xp.isin(x, t, invert=True), (odd(30), odd(6))),
    Case("isin", lambda xp, x: xp.isin(x, [0.25, 1]), (floats(30),)),
    Case(
        "interp",
        lambda xp, x: xp.interp(x, [-1, 0, 1], [3.0, 1.0, 2.0]),
        (odd(7, 5),),
        large=(floats(150000),),
    ),
    Case("interp", lambda xp, x: xp.interp(x, [-1, 0, 1], [3.0, 1.0, 2.0], left=-1, right=9), (floats(30),)),
    Case("interp", lambda xp, x: xp.interp(x, [-1, 0, 1.5], [3, 1j, 2], period=2), (floats(30),)),
    Case("interp", lambda xp, x: xp.interp(x, [-1, 0], [3.0]), (floats(30),)),
]
