"""Moves between layouts bring every element to its place once."""

from __future__ import annotations

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st

from matnb.blocks.grid import region_shape, relative, whole
from matnb.blocks.layout import Layout, spread
from matnb.errors import ShapeError


@st.composite
def two_layouts(draw):
    shape = draw(strategies.shapes())
    return draw(strategies.layouts(shape)), draw(strategies.layouts(shape))


@given(two_layouts())
def test_moves_applied_to_the_old_blocks_give_the_new_ones(drawn):
    old, new = drawn
    array = np.arange(np.prod(old.grid.shape, dtype=int)).reshape(old.grid.shape)
    old_regions, new_regions = list(old.grid.regions()), list(new.grid.regions())
    old_blocks = [array[tuple(slice(*one) for one in region)] for region in old_regions]
    new_blocks = [np.full(region_shape(region), -1) for region in new_regions]
    arrivals = [np.zeros(region_shape(region), int) for region in new_regions]
    for move in old.diff(new):
        assert move.source_owner == old.owners[move.source]
        assert move.target_owner == new.owners[move.target]
        sent = old_blocks[move.source][relative(move.region, old_regions[move.source])]
        assert sent.size > 0
        place = relative(move.region, new_regions[move.target])
        new_blocks[move.target][place] = sent
        arrivals[move.target][place] += 1
    for region, block, count in zip(new_regions, new_blocks, arrivals, strict=True):
        assert (count == 1).all()
        np.testing.assert_array_equal(block, array[tuple(slice(*one) for one in region)])


@given(st.data())
def test_a_layout_that_stays_moves_each_block_to_itself(data):
    layout = data.draw(strategies.layouts(data.draw(strategies.shapes())))
    moves = layout.diff(layout)
    assert all(move.source == move.target for move in moves)
    assert all(move.source_owner == move.target_owner for move in moves)


def test_layouts_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="2 owners for 1 blocks"):
        Layout(whole((3,)), (0, 1))
    with pytest.raises(ShapeError, match=r"\(3,\) to shape \(4,\)"):
        Layout(whole((3,)), (0,)).diff(Layout(whole((4,)), (0,)))


@given(st.integers(0, 40), st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True))
def test_owners_are_spread_in_order_and_nearly_equally(num_blocks, workers):
    owners = spread(num_blocks, workers)
    assert len(owners) == num_blocks
    shares = [owners.count(worker) for worker in workers]
    assert max(shares) - min(shares) <= 1
    assert sorted(owners, key=workers.index) == list(owners)
