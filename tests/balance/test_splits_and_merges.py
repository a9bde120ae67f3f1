"""Blocks split, merged and moved in any order: entries are conserved, and each block has one owner."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from situations import any_cuts, profile_of

from matnb.balance.policy import merge, split
from matnb.blocks.grid import Grid
from matnb.blocks.layout import Cuts, Layout


@st.composite
def changes(draw, cuts, profile):
    """Cuts after a few splits, merges and moves."""
    for _ in range(draw(st.integers(1, 6))):
        block = draw(st.integers(0, cuts.num_blocks - 1))
        match draw(st.sampled_from(["split", "merge", "move"])):
            case "split":
                count = draw(st.integers(1, 4))
                after = split(cuts, profile, block, count)
                rows = cuts.cuts[block + 1] - cuts.cuts[block]
                assert after.num_blocks == cuts.num_blocks + min(count, rows) - 1
                assert after.owners[block : block + min(count, rows)] == (cuts.owners[block],) * min(
                    count, rows
                )
            case "merge" if block + 1 < cuts.num_blocks:
                after = merge(cuts, block)
                assert after.num_blocks == cuts.num_blocks - 1
                assert after.owners[block] == cuts.owners[block]
            case _:
                owner = draw(st.integers(0, 3))
                after = Cuts(cuts.cuts, (*cuts.owners[:block], owner, *cuts.owners[block + 1 :]))
        cuts = after
    return cuts


@given(st.data())
def test_any_splits_merges_and_moves_conserve_entries_and_give_each_block_one_owner(data):
    rows = np.asarray(data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=20)))
    profile = profile_of(rows)
    old = data.draw(any_cuts(len(rows)))
    new = data.draw(changes(old, profile))
    before, after = (Layout(Grid((one.cuts,)), one.owners) for one in (old, new))
    assert np.diff(profile.before(new.cuts)).sum() == rows.sum()
    blocks = [np.full(stop - start, -1) for start, stop in new.ranges()]
    for step in before.diff(after):
        ((start, stop),) = step.region
        assert (step.source_owner, step.target_owner) == (old.owners[step.source], new.owners[step.target])
        origin, target = old.cuts[step.source], new.cuts[step.target]
        held = rows[origin : old.cuts[step.source + 1]]
        blocks[step.target][start - target : stop - target] = held[start - origin : stop - origin]
    np.testing.assert_array_equal(np.concatenate(blocks), rows)


def test_a_block_is_split_by_its_entries():
    profile = profile_of([9, 1, 1, 1, 6, 1, 1, 1, 1])
    assert split(Cuts((0, 1, 9), (3, 5)), profile, 1, 2) == Cuts((0, 1, 5, 9), (3, 5, 5))
