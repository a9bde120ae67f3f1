"""Calls on distinct elements."""

from __future__ import annotations

from breadth.case import Case, floats, odd, truths, whole

CASES = [
    Case("unique", lambda xp, x: xp.unique(x), (whole(60),), large=(whole(300000, high=10**9),)),
    Case("unique", lambda xp, x: xp.unique(x), (odd(7, 5),)),
    Case("unique", lambda xp, x: xp.unique(x), (truths(30),)),
    Case("unique", lambda xp, x: xp.unique(x), (floats(0),)),
    Case("unique", lambda xp, x: xp.unique(x, equal_nan=False), (odd(40),)),
    Case(
        "unique",
        lambda xp, x: xp.unique(x, return_index=True, return_inverse=True, return_counts=True),
        (odd(7, 5),),
    ),
    Case(
        "unique",
        lambda xp, x: xp.unique(x, return_index=True, return_counts=True),
        (whole(50),),
        large=(whole(300000, high=10**9),),
    ),
    Case("unique", lambda xp, x: xp.unique(x * (1 + 1j), return_counts=True), (floats(30),)),
    Case("unique_values", lambda xp, x: xp.sort(xp.unique_values(x)), (odd(40),)),
    Case("unique_counts", lambda xp, x: xp.unique_counts(x), (whole(7, 5),)),
    Case("unique_inverse", lambda xp, x: xp.unique_inverse(x).inverse_indices, (floats(7, 5),)),
    Case("unique_all", lambda xp, x: xp.unique_all(x), (odd(40),)),
    Case("union1d", lambda xp, x, y: xp.union1d(x, y), (odd(20), whole(7, 5))),
    Case(
        "intersect1d",
        lambda xp, x, y: xp.intersect1d(x, y),
        (whole(40), whole(30)),
        large=(whole(200000, high=10**6), whole(200000, high=10**6)),
    ),
    Case("intersect1d", lambda xp, x, y: xp.intersect1d(x, y, return_indices=True), (whole(40), floats(30))),
    Case("setdiff1d", lambda xp, x, y: xp.setdiff1d(x, y), (odd(40), floats(9))),
    Case("setxor1d", lambda xp, x, y: xp.setxor1d(x, y), (odd(40), odd(9))),
]
