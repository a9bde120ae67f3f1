"""What readers keep on workers says how much memory it takes, as Dask asks for it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from matnb.blocks.formats import Dense
from matnb.io.edges import Facts, PieceEdges
from matnb.io.entries import Entries, Slab
from matnb.io.metis import Lists
from matnb.io.npz import Blocks

IDS = np.arange(1000, dtype=np.uint64)
NONE = np.empty(0, np.int32)
ENTRIES = Entries(np.zeros(1000, np.int32), np.zeros(1000, np.int32), None)
MEASURED = [
    (PieceEdges(IDS, IDS, np.ones(1000)), 24_000),
    (Facts(5, 0, 9, IDS, NONE, (False, False), 9), 8_000),
    (Facts(5, 0, 9, None, NONE, (False, False), 9), 0),
    (ENTRIES, 8_000),
    (Lists(0, 1, 0, ENTRIES), 8_000),
    (Slab(((0, 1000),), np.ones(1000)), 8_000),
    (Blocks(((((0, 1000),), Dense(np.ones(1000))),)), 8_000),
]


@pytest.mark.parametrize(("value", "held"), MEASURED, ids=[type(value).__name__ for value, _ in MEASURED])
def test_arrays_are_counted(value: object, held: int):
    assert held <= sys.getsizeof(value) < held + 400
