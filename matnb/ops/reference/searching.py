"""What it means to look elements up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.ops.nodes.searching import Interpolate, Member, Search
from matnb.ops.reference.registry import Value, dense, means


@means(Search)
def search(node: Search, operands: Sequence[Value]) -> Value:
    """Return where values belong."""
    ascending, values = map(dense, operands)
    return np.asarray(np.searchsorted(ascending, values, side="left" if node.side == "left" else "right"))


@means(Member)
def member(node: Member, operands: Sequence[Value]) -> Value:
    """Return whether values are among others."""
    return np.isin(dense(operands[1]), dense(operands[0]))


@means(Interpolate)
def interpolate(node: Interpolate, operands: Sequence[Value]) -> Value:
    """Return the values of a function between points."""
    values, places, heights, left, right = map(dense, operands)
    found = np.interp(values, places, heights, left[()], right[()])  # type: ignore[call-overload]  # numbers
    return np.asarray(found)
