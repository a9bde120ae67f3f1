"""Grids cut axes anywhere, and their regions cover an array once."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.grid import Grid, grid_from, intersect, region_shape, regular, regular_cuts, relative, whole
from matnb.errors import ShapeError


@st.composite
def grids_and_regions(draw):
    shape = draw(strategies.shapes())
    return draw(strategies.grids(shape)), draw(strategies.regions(shape))


@given(st.data())
def test_the_regions_cover_every_element_once(data):
    shape = data.draw(strategies.shapes())
    grid = data.draw(strategies.grids(shape))
    covered = np.zeros(shape, int)
    for index, region in zip(grid.indices(), grid.regions(), strict=True):
        covered[tuple(slice(*one) for one in region)] += 1
        assert grid.block_shape(index) == region_shape(region)
    assert grid.shape == shape
    assert grid.ndim == len(shape)
    assert (covered == 1).all()


@given(st.data())
def test_blocks_are_numbered_in_the_order_of_their_indices(data):
    grid = data.draw(strategies.grids(data.draw(strategies.shapes())))
    assert [grid.number(index) for index in grid.indices()] == list(range(grid.num_blocks))


@given(grids_and_regions())
def test_overlapping_blocks_are_those_that_share_an_element(drawn):
    grid, region = drawn
    painted = np.zeros(grid.shape, bool)
    painted[tuple(slice(*one) for one in region)] = True
    expected = [
        index for index in grid.indices() if painted[tuple(slice(*one) for one in grid.region(index))].any()
    ]
    assert list(grid.overlapping(region)) == expected


@given(grids_and_regions())
def test_intersections_cut_out_of_their_blocks_put_a_region_together(drawn):
    grid, region = drawn
    whole_array = np.arange(np.prod(grid.shape, dtype=int)).reshape(grid.shape)
    found = np.full(region_shape(region), -1)
    for index in grid.overlapping(region):
        block = whole_array[tuple(slice(*one) for one in grid.region(index))]
        common = intersect(grid.region(index), region)
        found[relative(common, region)] = block[relative(common, grid.region(index))]
    np.testing.assert_array_equal(found, whole_array[tuple(slice(*one) for one in region)])


@given(st.data())
def test_a_transposed_grid_has_transposed_regions(data):
    grid = data.draw(strategies.grids(data.draw(strategies.shapes())))
    axes = data.draw(st.permutations(range(grid.ndim)))
    turned = grid.transpose(axes)
    assert {tuple(region[axis] for axis in axes) for region in grid.regions()} == set(turned.regions())


@given(st.integers(0, 50), st.integers(1, 60))
def test_regular_cuts_make_nearly_equal_parts(length, count):
    cuts = regular_cuts(length, count)
    parts = np.diff(cuts)
    assert cuts[0] == 0
    assert cuts[-1] == length
    assert len(parts) == max(1, min(count, length))
    assert parts.max() - parts.min() <= 1


def test_a_grid_without_axes_has_one_block():
    grid = Grid(())
    assert (grid.shape, grid.counts, grid.num_blocks) == ((), (), 1)
    assert list(grid.regions()) == [()]
    assert list(grid.overlapping(())) == [()]


@pytest.mark.parametrize("cuts", [(), (0,), (1, 3), (0, 3, 3), (0, 3, 2), (0, 0, 0), (0, -1)])
def test_cuts_that_do_not_increase_from_0_are_refused(cuts):
    with pytest.raises(ShapeError, match="axis 1"):
        Grid(((0, 2), cuts))


@pytest.mark.parametrize(
    ("shape", "blocks", "cuts"),
    [
        ((10, 4), None, ((0, 10), (0, 4))),
        ((10, 4), 2, ((0, 5, 10), (0, 4))),
        ((10, 4), np.int64(2), ((0, 5, 10), (0, 4))),
        ((10, 4), (None, 2), ((0, 10), (0, 2, 4))),
        ((10, 4), ([0, 3, 10], 1), ((0, 3, 10), (0, 4))),
        ((10, 4), (np.array([0, 3, 10]), np.int8(4)), ((0, 3, 10), (0, 1, 2, 3, 4))),
        ((3,), 5, ((0, 1, 2, 3),)),
        ((0, 2), (3, None), ((0, 0), (0, 2))),
        ((), 4, ()),
    ],
)
def test_what_a_person_asks_for(shape, blocks, cuts):
    assert grid_from(shape, blocks).cuts == cuts


@pytest.mark.parametrize(
    "blocks", [0, -1, 2.5, (1,), (1, 1, 1), ([0, 3], 1), ([1, 10], 1), ([], 1), ([0, 2.5, 10], 1), ("2", 1)]
)
def test_what_does_not_fit_is_refused(blocks):
    with pytest.raises(ShapeError):
        grid_from((10, 4), blocks)


def test_regular_and_whole_grids():
    assert regular((6, 5), (2, 1)) == Grid(((0, 3, 6), (0, 5)))
    assert whole((6, 0)) == Grid(((0, 6), (0, 0)))
    with pytest.raises(ShapeError, match="1 block counts for an array with 2 axes"):
        regular((6, 5), (2,))


@pytest.mark.parametrize("blocks", ["rows", {0: 3}])
def test_words_are_no_cuts(blocks):
    with pytest.raises(ShapeError, match="give 'auto', a count, or counts, cuts or None"):
        grid_from((3, 3), blocks)


def test_auto_leaves_the_cuts_to_others():
    assert grid_from((3, 3), "auto") == grid_from((3, 3), None)


def test_a_count_beyond_all_use_is_refused_quickly():
    with pytest.raises(ShapeError, match="give 1 to 100,000"):
        grid_from((10**9, 10**9), 10**8)
