"""Calls that pad, repeat, insert and drop."""

from __future__ import annotations

from typing import Any

from breadth.case import Case, floats, odd, truths, whole


def padded(width: Any, mode: str = "constant", **options: Any) -> Any:
    return lambda xp, x: xp.pad(x, width, mode, **options)


CASES = [
    Case("pad", padded(2), (floats(4, 3),), tolerance=0, large=(floats(30000, 5),)),
    Case("pad", padded((1, 3)), (odd(6),), tolerance=0, large=(floats(150000),)),
    Case("pad", padded(((1, 0), (0, 2)), constant_values=((1, 2), (3, 4.5))), (floats(4, 3),)),
    Case("pad", padded(1, constant_values=-0.0), (whole(0, 3),)),
    Case("pad", padded(((1, 2), (0, 3))), (odd(40, 60),), tolerance=0),
    Case("pad", padded(((1, 2), (0, 3)), constant_values=2.5), (floats(40, 60),)),
    Case("pad", padded(((1, 2), (0, 3), (2, 1)), "edge"), (floats(40, 60, 32),), tolerance=0),
    Case("pad", padded(0), (floats(2, 3),), tolerance=0),
    Case("pad", padded({0: (1, 2)}), (floats(2, 3),), tolerance=0),
    Case("pad", padded({-1: 1}), (floats(2, 3, 2),), tolerance=0),
    Case("pad", padded(2, "edge"), (floats(4, 3),), tolerance=0, large=(floats(30000, 5),)),
    Case("pad", padded((3, 1), "linear_ramp"), (floats(5),)),
    Case("pad", padded((3, 2), "linear_ramp", end_values=(5, -4)), (floats(2, 3),)),
    Case("pad", padded((3, 2), "linear_ramp", end_values=9), (whole(2, 3),)),
    *(
        Case("pad", padded(width, mode), (floats(5, 3),), tolerance=0)
        for mode in ("reflect", "symmetric", "wrap")
        for width in (2, ((0, 7), (13, 0)))
    ),
    *(
        Case("pad", padded(40, mode), (whole(3),), tolerance=0, large=(floats(150000),))
        for mode in ("reflect", "symmetric", "wrap")
    ),
    *(Case("pad", padded(3, mode), (whole(1, 4),)) for mode in ("reflect", "symmetric", "wrap")),
    Case("pad", padded(3, "reflect", reflect_type="odd"), (floats(5, 4),)),
    Case("pad", padded((9, 4), "reflect", reflect_type="odd"), (whole(4),)),
    Case("pad", padded((6, 4), "symmetric", reflect_type="odd"), (whole(4),)),
    *(Case("pad", padded(2, mode), (floats(5, 4),)) for mode in ("maximum", "minimum", "mean", "median")),
    *(
        Case("pad", padded((1, 2), mode, stat_length=((2, 3), (1, 9))), (whole(5, 4),))
        for mode in ("maximum", "minimum", "mean", "median")
    ),
    Case("pad", padded(1, "maximum", stat_length=0), (whole(5, 4),)),
    Case("pad", padded(1, "edge"), (floats(0, 4),)),
    Case("pad", padded(-1), (floats(3),)),
    Case("pad", padded(1.5), (floats(3),)),
    Case("pad", padded((1, 2, 3)), (floats(3),)),
    Case("pad", padded(1, "edge", constant_values=3), (floats(3),)),
    Case("pad", padded(1, "nonsense"), (floats(3),)),
    Case("repeat", lambda xp, x: xp.repeat(x, 3), (odd(5),), tolerance=0, large=(floats(60000),)),
    Case("repeat", lambda xp, x: xp.repeat(x, 2), (floats(5, 3),)),
    Case("repeat", lambda xp, x: xp.repeat(x, 3, axis=0), (floats(5, 3),), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, 3, axis=1), (floats(5, 3),), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, 0, 1), (floats(5, 3),)),
    Case("repeat", lambda xp, x: xp.repeat(x, 70000), (floats(3),), tolerance=0, large=(floats(2),)),
    Case("repeat", lambda xp, x: xp.repeat(x, 700, 1), (floats(300, 2),), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, [3]), (floats(5),), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, [3, 0, 1, 2, 0]), (floats(5),), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, 2), (floats(),)),
    Case(
        "repeat",
        lambda xp, x, y: xp.repeat(x, y, axis=0),
        (floats(7, 3), whole(7, low=0, high=3)),
        tolerance=0,
        large=(floats(60000, 3), whole(60000, low=0, high=3)),
    ),
    Case("repeat", lambda xp, x, y: xp.repeat(x, y, 1), (floats(3, 7), whole(7, low=0, high=3)), tolerance=0),
    Case("repeat", lambda xp, x: xp.repeat(x, [0] * 5), (floats(5),)),
    Case("repeat", lambda xp, x: xp.repeat(x, [1, 2]), (floats(5),)),
    Case("repeat", lambda xp, x: xp.repeat(x, -1), (floats(5),)),
    Case("repeat", lambda xp, x: xp.repeat(x, x), (floats(5),)),
    Case("resize", lambda xp, x: xp.resize(x, (3, 7)), (floats(2, 4),)),
    Case("resize", lambda xp, x: xp.resize(x, 5), (floats(2, 4),)),
    Case("resize", lambda xp, x: xp.resize(x, (2, 0)), (floats(2, 4),)),
    Case("resize", lambda xp, x: xp.resize(x, (2, 2)), (floats(0),)),
    *(Case("trim_zeros", lambda xp, x, t=t: xp.trim_zeros(x, t), (floats(9),)) for t in ("fb", "f", "B")),
    Case("trim_zeros", lambda xp, x: xp.trim_zeros(xp.pad(x, 2)), (floats(4, 3),)),
    Case("trim_zeros", lambda xp, x: xp.trim_zeros(x * 0), (whole(4, 3),)),
    *(
        Case("delete", lambda xp, x, one=one: xp.delete(x, one), (floats(9),), tolerance=0)
        for one in (
            3,
            -9,
            [1, 1, -1],
            [],
            slice(2, 5),
            slice(None, None, 2),
            slice(7, 0, -3),
            slice(3, 3),
            [True, False, True] * 3,
        )
    ),
    *(Case("delete", lambda xp, x, one=one: xp.delete(x, one), (floats(9),)) for one in (9, [-10], [1.5])),
    Case("delete", lambda xp, x: xp.delete(x, [0, 2], 1), (floats(4, 5),), tolerance=0),
    Case("delete", lambda xp, x: xp.delete(x, slice(0, None, 3), 1), (floats(4, 11),), tolerance=0),
    Case("delete", lambda xp, x: xp.delete(x, slice(1, None, 2), 0), (floats(8, 3),), tolerance=0),
    Case("delete", lambda xp, x, y: xp.delete(x, y), (floats(9), truths(9)), tolerance=0),
    Case("delete", lambda xp, x, y: xp.delete(x, y, 1), (floats(4, 9), truths(9)), tolerance=0),
    Case("delete", lambda xp, x: xp.delete(x, 1), (floats(3, 4),)),
    *(
        Case("insert", lambda xp, x, one=one: xp.insert(x, *one), (floats(6),), tolerance=0)
        for one in (
            (2, 9.5),
            (-1, 9),
            (6, [1, 2, 3]),
            ([1, 1, 4], [7, 8, 9]),
            ([4, 0], 5),
            (slice(1, 4), [7, 8, 9]),
            ([], []),
            ([2], [1, 2]),
        )
    ),
    *(
        Case("insert", lambda xp, x, one=one: xp.insert(x, *one), (floats(6),))
        for one in ((7, 1), ([1, 2], [1, 2, 3]))
    ),
    Case("insert", lambda xp, x: xp.insert(x, 1, [7, 8, 9], axis=0), (floats(4, 3),)),
    Case("insert", lambda xp, x: xp.insert(x, 1, [7, 8, 9, 1], axis=1), (floats(4, 3),)),
    Case("insert", lambda xp, x: xp.insert(x, [1, 2], [[7], [8], [9], [1]], axis=1), (floats(4, 3),)),
    Case("insert", lambda xp, x: xp.insert(x, 1, 5), (whole(4, 3),)),
    Case("insert", lambda xp, x: xp.insert(x, [0, 2], 5.5, axis=-1), (whole(4, 3),)),
]
