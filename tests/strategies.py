"""Hypothesis strategies for dtypes, shapes, grids, layouts and blocks; every block drawn is read-only."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from matnb.blocks.formats import Block, Csr, Dense, Empty, SparseBlock, freeze
from matnb.blocks.grid import Grid, Region
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import SEMIRINGS

# Those whose products have loops of their own; test_semiring_loops.py has all.
SEMIRINGS_WITH_LOOPS = {
    name: SEMIRINGS[name]
    for name in (
        "plus_times", "min_plus", "plus_pair", "lor_land", "min_first", "min_second", "lor_first",
        "lor_second",
    )
}  # fmt: skip

SPARSE_DTYPES = tuple(map(np.dtype, ("float64", "float32", "int64", "int32", "bool")))
EVERY_ELEMENT: st.SearchStrategy[object] = st.nothing()  # is drawn on its own: no common fill
DENSE_DTYPES = (*SPARSE_DTYPES, np.dtype("uint8"), np.dtype("complex128"))


def sparse_dtypes() -> st.SearchStrategy[np.dtype]:
    return st.sampled_from(SPARSE_DTYPES)


def dense_dtypes() -> st.SearchStrategy[np.dtype]:
    return st.sampled_from(DENSE_DTYPES)


def lengths(longest: int = 5) -> st.SearchStrategy[int]:
    """Lengths of an axis: 0 and 1, where most goes wrong, often enough, and mostly more."""
    return st.integers(0, longest) | st.integers(2, longest)


def shapes(least: int = 0, most: int = 3, longest: int = 5) -> st.SearchStrategy[tuple[int, ...]]:
    return st.lists(lengths(longest), min_size=least, max_size=most).map(tuple)


def matrix_shapes(longest: int = 5) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(lengths(longest), lengths(longest))


def elements(dtype: np.dtype, exact: bool = False) -> st.SearchStrategy[object]:
    """Values of a dtype; ``exact`` ones are small whole numbers, whose sums and products do not round."""
    match dtype.kind:
        case "b":
            return st.booleans()
        case "c":
            return st.builds(complex, st.integers(-3, 3), st.integers(-3, 3))
        case "f" if not exact:
            special = st.sampled_from([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), float("nan")])
            return special | st.floats(-100, 100, width=16)
    bounds = np.iinfo(dtype) if dtype.kind in "iu" else None
    low = 0 if dtype.kind == "u" else -3
    small = st.integers(low, 3)
    return small if exact or bounds is None else small | st.integers(int(bounds.min), int(bounds.max))


@st.composite
def dense_blocks(
    draw: st.DrawFn, shape: tuple[int, ...], dtype: np.dtype | None = None, exact: bool = False
) -> Dense:
    """Draw a Dense block, now and then one whose memory is not in row order."""
    dtype = draw(dense_dtypes()) if dtype is None else dtype
    values = draw(hnp.arrays(dtype, shape, elements=elements(dtype, exact), fill=EVERY_ELEMENT))
    if draw(st.booleans()):
        values = np.array(values, order="F")
    block = freeze(Dense(values))
    assert isinstance(block, Dense)
    return block


@st.composite
def sparse_blocks(
    draw: st.DrawFn, shape: tuple[int, int], dtype: np.dtype | None = None, exact: bool = False
) -> SparseBlock:
    """Draw an Empty or Csr block: with values, zeros among them, or with its pattern only."""
    dtype = draw(sparse_dtypes()) if dtype is None else dtype
    stored = draw(hnp.arrays(np.bool_, shape, fill=EVERY_ELEMENT))
    if not stored.any():
        return Empty(shape, dtype)
    pointers = np.concatenate([[0], np.cumsum(stored.sum(axis=1))]).astype(np.int32)
    columns = np.nonzero(stored)[1].astype(np.int32)
    values = None
    if draw(st.booleans()):
        values = draw(hnp.arrays(dtype, columns.size, elements=elements(dtype, exact), fill=EVERY_ELEMENT))
    block = freeze(Csr(shape, pointers, columns, values, dtype))
    assert isinstance(block, Csr)
    return block


def matrix_blocks(
    shape: tuple[int, int], dtype: np.dtype | None = None, exact: bool = False
) -> st.SearchStrategy[Block]:
    """Blocks of two axes in any format."""
    return sparse_blocks(shape, dtype, exact) | dense_blocks(shape, dtype, exact)


def axis_cuts(length: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Cuts of an axis into blocks of at least one element."""
    if length < 2:
        return st.just((0, length))
    inner = st.sets(st.integers(1, length - 1), max_size=4)
    return inner.map(lambda cuts: (0, *sorted(cuts), length))


def grids(shape: tuple[int, ...]) -> st.SearchStrategy[Grid]:
    return st.tuples(*map(axis_cuts, shape)).map(Grid)


@st.composite
def layouts(draw: st.DrawFn, shape: tuple[int, ...], num_owners: int = 3) -> Layout:
    grid = draw(grids(shape))
    owners = st.lists(st.integers(0, num_owners - 1), min_size=grid.num_blocks, max_size=grid.num_blocks)
    return Layout(grid, tuple(draw(owners)))


@st.composite
def regions(draw: st.DrawFn, shape: tuple[int, ...]) -> Region:
    """Draw a rectangle of an array, now and then an empty one."""
    region = []
    for length in shape:
        start = draw(st.integers(0, length))
        region.append((start, draw(st.integers(start, length))))
    return tuple(region)
