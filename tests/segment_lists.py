"""Segments as tests draw them: none, empty ones, one huge, the last empty, runs of lengths 0 and 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import awkward as ak
import numpy as np
from hypothesis import strategies as st

import matnb as mn

Lists = list[np.ndarray]
SMALL = st.integers(0, 4)
COUNTS = st.one_of(
    st.just([]),
    st.integers(1, 6).map(lambda count: [0] * count),
    st.lists(SMALL, min_size=1, max_size=12),
    st.lists(st.integers(0, 1), min_size=5, max_size=30),
    st.tuples(st.lists(SMALL, max_size=4), st.integers(40, 90), st.lists(SMALL, max_size=4)).map(
        lambda parts: [*parts[0], parts[1], *parts[2]]
    ),
    st.lists(SMALL, min_size=1, max_size=8).map(lambda counts: [*counts, 0]),
)


@st.composite
def segments(draw: st.DrawFn) -> Lists:
    """Segments of floats that differ, so that each tells where it came from."""
    counts = draw(COUNTS)
    values = np.random.default_rng(sum(counts)).permutation(sum(counts)).astype(np.float64)
    return np.split(values, np.cumsum(counts)[:-1]) if counts else []


def nested_of(lists: Sequence[np.ndarray], blocks: int = 1, strategy: str = "auto") -> Any:
    """The segments as a nested array whose values were given in some blocks."""
    flat = np.concatenate([np.empty(0), *lists])
    values = mn.asarray(flat, blocks=max(1, min(blocks, flat.size)))
    counts = np.array([one.size for one in lists], np.int64)
    return mn.nested.unflatten(values, mn.asarray(counts), strategy=strategy)


def awkward_of(lists: Sequence[np.ndarray]) -> ak.Array:
    """The segments as Awkward has them."""
    flat = np.concatenate([np.empty(0), *lists])
    return ak.unflatten(flat, np.array([one.size for one in lists], np.int64))


def listed(lists: Sequence[np.ndarray]) -> list[list[float]]:
    """The segments as Python has them."""
    return [one.tolist() for one in lists]


def many_segments(seed: int, is_power_law: bool) -> Lists:
    """More segments than their array knows the places of, some long ones among them."""
    rng = np.random.default_rng(seed)
    counts = rng.pareto(1.2, 3000).astype(int) if is_power_law else rng.integers(0, 9, 3000)
    counts[1700] = 4000
    return np.split(rng.random(counts.sum()), np.cumsum(counts)[:-1])
