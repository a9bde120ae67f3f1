"""Dense pieces: rectangles of an array, and how those of a region become one block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Dense
from matnb.blocks.grid import Region, region_shape, relative
from matnb.io.measured import ReaderValue


@dataclass(frozen=True, eq=False)
class Slab(ReaderValue):
    """A rectangle of an array, at global positions."""

    region: Region
    values: npt.NDArray[np.generic]


def common(one: Region, other: Region) -> Region | None:
    """Return the rectangle that two share, None if it has no element."""
    both = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return both if all(start < stop for start, stop in both) else None


def dense_of(slabs: Sequence[Slab], region: Region, dtype: np.dtype) -> Dense:
    """Return the block of a region from slabs that cover it; a slab that is all of it is taken as it is."""
    for slab in slabs:
        if slab.region == region and slab.values.dtype == dtype:
            return Dense(slab.values)
    values = np.empty(region_shape(region), dtype)
    for slab in slabs:
        values[relative(slab.region, region)] = slab.values
    return Dense(values)
