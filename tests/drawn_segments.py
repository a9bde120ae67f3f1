"""Segments that hypothesis draws: none, empty ones, one that holds nearly all values, many short ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import matnb as mn

DTYPES = ("float64", "float32", "int64", "int8", "uint16", "bool")


@dataclass(frozen=True)
class Segments:
    """Values in segments, and how they are to be cut."""

    values: np.ndarray
    counts: np.ndarray
    blocks: int
    strategy: str

    @property
    def parts(self) -> list[np.ndarray]:
        """The segments one by one."""
        ends = np.cumsum(self.counts)
        return [self.values[end - count : end] for end, count in zip(ends, self.counts, strict=True)]

    def nested(self) -> mn.nested.NestedArray:
        """Return them as a nested array."""
        cut = mn.asarray(self.values, blocks=min(self.blocks, max(1, self.values.size)))
        return mn.nested.unflatten(cut, self.counts, strategy=self.strategy)


@st.composite
def drawn_counts(draw: st.DrawFn) -> list[int]:
    """Draw the lengths of segments."""
    counts = draw(st.lists(st.one_of(st.integers(0, 1), st.integers(0, 9)), max_size=20))
    shape = draw(st.sampled_from(("as drawn", "one huge", "last empty", "all empty")))
    if shape == "one huge":
        counts.insert(draw(st.integers(0, len(counts))), draw(st.integers(100, 400)))
    if shape == "all empty":
        return [0] * len(counts)
    return [*counts, 0] if shape == "last empty" else counts


@st.composite
def drawn_segments(draw: st.DrawFn, dtypes: tuple[str, ...] = DTYPES) -> Segments:
    """Draw segments with equal values, and NaN among floats."""
    counts = np.array(draw(drawn_counts()), np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    values = rng.integers(0, draw(st.sampled_from((2, 9, 120))), counts.sum()).astype(dtype)
    if dtype.kind == "f":
        values[rng.random(values.size) < 0.1] = np.nan
    blocks = draw(st.integers(1, 12))
    return Segments(values, counts, blocks, draw(st.sampled_from(("segmented", "uniform", "auto"))))
