"""Calls that put arrays together."""

from __future__ import annotations

from breadth.case import Case, floats, odd, truths, whole

CASES = [
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y]),
        (floats(7, 5), floats(4, 5)),
        tolerance=0,
        large=(floats(60000, 5), floats(40000, 5)),
    ),
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y], axis=1),
        (floats(7, 5), whole(7, 3)),
        tolerance=0,
    ),
    Case("concatenate", lambda xp, x, y: xp.concatenate((x, y, x)), (odd(6), odd(0)), tolerance=0),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], 2), (truths(2, 3, 4), floats(2, 3, 1))),
]
