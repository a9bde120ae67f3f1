"""Calls that put elements in order."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, floats, odd, truths, whole


def firsts(xp: Any, x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    """Return what ``mn.topk`` gives, by NumPy: of a stable sort, turned round twice for the largest."""
    if xp is not np:
        return tuple(xp.topk(x, k, axis, largest))
    lanes = np.moveaxis(x, axis, -1)
    if largest:
        places = lanes.shape[-1] - 1 - np.argsort(lanes[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    else:
        places = np.argsort(lanes, axis=-1, kind="stable")
    found = (np.take_along_axis(lanes, places[..., :k], axis=-1), places[..., :k])
    return tuple(np.moveaxis(one, -1, axis) for one in found)


CASES = [
    Case("topk", lambda xp, x: firsts(xp, x, 3), (odd(5, 40),), large=(floats(4000, 50),)),
    Case("topk", lambda xp, x: firsts(xp, x, 3, largest=False), (odd(40),), large=(whole(300000),)),
    Case("topk", lambda xp, x: firsts(xp, x, 2, axis=0), (whole(7, 5),)),
    Case("topk", lambda xp, x: firsts(xp, x, 2, axis=1), (odd(3, 4, 5),)),
    Case("topk", lambda xp, x: firsts(xp, x * (1 + 2j), 4), (odd(20),)),
    Case("topk", lambda xp, x: firsts(xp, x, 70, largest=False), (floats(3, 80),)),
    Case("topk", lambda xp, x: firsts(xp, x, 0), (truths(6, 5),)),
    Case("sort", lambda xp, x: xp.sort(x), (whole(50),), large=(whole(300000, high=10**9),)),
    Case("sort", lambda xp, x: xp.sort(x), (odd(40),)),
    Case("sort", lambda xp, x: xp.sort(x, axis=0), (floats(7, 5),), large=(floats(1000, 300),)),
    Case("sort", lambda xp, x: xp.sort(x, axis=None), (floats(7, 5),)),
    Case("sort", lambda xp, x: xp.sort(x, axis=-1, kind="stable"), (odd(3, 4, 5),)),
    Case("sort", lambda xp, x: xp.sort(x, axis=3), (floats(7, 5),)),
    Case("sort", lambda xp, x: xp.sort(x[0]), (floats(0, 5),)),
    Case("sort", lambda xp, x: xp.sort(x), (truths(30),)),
    Case("sort", lambda xp, x: xp.sort(x * (1 + 2j)), (odd(20),)),
    Case("sort", lambda xp, x: xp.sort(x), (floats(0),)),
    Case(
        "argsort",
        lambda xp, x: xp.argsort(x, kind="stable"),
        (odd(50),),
        large=(whole(300000, high=1000),),
    ),
    Case("argsort", lambda xp, x: xp.argsort(x, axis=0, stable=True), (floats(7, 5),)),
    Case("argsort", lambda xp, x: xp.argsort(x, axis=None, kind="stable"), (floats(7, 5),)),
    Case("partition", lambda xp, x: xp.partition(x, [0])[0], (floats(9),)),
    Case("argpartition", lambda xp, x: xp.argpartition(x, 12), (floats(9),)),
    Case("lexsort", lambda xp, x, y: xp.lexsort((x, y)), (whole(40), floats(40))),
    *(
        Case(
            name,
            lambda xp, x, name=name: getattr(xp, name)(x, axis=1, kind="stable")[:, :3],
            (odd(5, 40),),
            tolerance=1e-12,
            large=(floats(4000, 50),),
        )
        for name in ("sort", "argsort")
    ),
]
