"""Situations for tests of balance: rows with given numbers of entries, cut anywhere."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from matnb.balance.situation import Costs, Profile, Situation
from matnb.blocks.layout import Cuts, spread

ENTRY_SECONDS = 1e-9


def profile_of(rows):
    entries = np.concatenate([[0], np.cumsum(np.asarray(rows, np.int64))])
    return Profile(np.arange(len(rows) + 1), entries)


def situation_of(rows, cuts, owners=None, workers=2, **given):
    """A situation with so many entries in each row, none measured unless ``block_seconds`` is given."""
    owners = spread(len(cuts) - 1, range(workers)) if owners is None else owners
    return Situation(
        **{
            "name": "A",
            "cuts": Cuts(tuple(cuts), tuple(owners)),
            "profile": rows if isinstance(rows, Profile) else profile_of(rows),
            "row_bytes": 24.0,
            "entry_bytes": 12.0,
            "block_seconds": (),
            "error": 0.02,
            "speeds": dict.fromkeys(range(workers), 1.0),
            "threads": 1,
            "entry_seconds": ENTRY_SECONDS,
            "row_seconds": 4 * ENTRY_SECONDS,
            "iteration": 0,
            "num_remaining": 50.0,
            "iteration_seconds": 0.0,
            "costs": Costs(0.03, 1e9),
            **given,
        }
    )


@st.composite
def any_cuts(draw, length):
    inner = draw(st.sets(st.integers(1, max(1, length - 1)), max_size=5)) if length > 1 else set()
    cuts = (0, *sorted(inner), length)
    owners = draw(st.lists(st.integers(0, 3), min_size=len(cuts) - 1, max_size=len(cuts) - 1))
    return Cuts(cuts, tuple(owners))
