"""Elements that a loop of the user's assigns one by one, of which each is a step of its own: that is told."""

from __future__ import annotations

from types import CodeType

import numpy as np

from matnb.errors import warn
from matnb.expr.nodes import Expr
from matnb.lazy.lost_writes import users_frame

_MANY = 200  # at one place of the code
_MOST_PLACES = 100
_counts: dict[tuple[CodeType, int], int] = {}


def note_element_write(node: Expr, key: object) -> None:
    """Count an assignment ``x[i, j] = value`` by the line that makes it, and warn where there are many."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) != node.ndim or not all(isinstance(one, int | np.integer) for one in parts):
        return
    frame = users_frame(3)
    place = frame.f_code, frame.f_lasti
    if place not in _counts and len(_counts) >= _MOST_PLACES:
        _counts.clear()
    _counts[place] = _counts.get(place, 0) + 1
    if _counts[place] == _MANY:
        warn(
            f"{_MANY} elements were assigned one by one here, each a step of its own, which takes "
            "milliseconds: assign slices, as in u[1:-1] = (u[:-2] + u[2:]) / 2, or fill a NumPy array and "
            "give it to mn.asarray; steps that need the one before are np.cumsum's or mn.iterate's"
        )
