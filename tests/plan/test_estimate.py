"""Entries estimated from counts: the pattern of a result follows from which absent elements annihilate."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.blocks.grid import regular
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Data
from matnb.plan.estimate import estimate_entries
from matnb.program.plan import StoredArray

FLOAT = np.dtype(np.float64)
LAYOUT = Layout(regular((50, 40), (2, 1)), (0, 0))
A = mn.DistArray(Data(b"estimated a", (50, 40), FLOAT, True))
B = mn.DistArray(Data(b"estimated b", (50, 40), FLOAT, True))
STORED = {
    A.expression: StoredArray(LAYOUT, ("a0", "a1"), (20, 10), (1, 1)),
    B.expression: StoredArray(LAYOUT, ("b0", "b1"), (40, 60), (1, 1)),
}


@pytest.mark.parametrize(
    ("array", "entries"),
    [
        (A, 30),
        (A + B, 130),
        (A * B, 30),
        (A / B, 30),
        (B / A, 100),
        (A.T, 30),
        (mn.asarray(B, blocks=3), 100),
        (mn.asarray(A, blocks=3) * B, 30),
        (A + 1, 2000),
    ],
)
def test_entries_follow_from_those_of_the_operands(array: mn.DistArray, entries: int):
    assert estimate_entries([array.expression], STORED)[array.expression] == entries
