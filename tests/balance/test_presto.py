"""The Presto paper's rule: blocks that are heavy beside the median are cut, light neighbors merge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from simulated_loops import Simulated, equal_rows, four_blocks, profile_of, skewed

from matnb.balance.policy import Presto
from matnb.blocks.layout import Cuts


def test_presto_splits_heavy_blocks_and_merges_light_neighbors() -> None:
    entries = np.full(80, 100)
    entries[:10], entries[50:60] = 1_000, 10
    entries[60:70] = 20
    cuts = Cuts(tuple(range(0, 81, 10)), (0, 0, 0, 0, 1, 1, 1, 1))
    decision = Presto().decide(four_blocks(cuts=cuts, profile=profile_of(entries), block_seconds=()))
    assert decision.acts
    assert decision.after.cuts == (0, 5, 10, 20, 30, 40, 50, 70, 80)
    assert decision.after.owners == (0, 0, 0, 0, 1, 1, 1, 1)
    assert decision.reason == (
        "heavy blocks: 1 of 8 take at least 2 times the median; 2 at most the median over 2"
    )
    uneven = four_blocks(cuts=cuts, profile=profile_of(entries), block_seconds=())
    assert not Presto(threshold=20).decide(uneven).acts


def test_presto_leaves_heavy_rows_whole() -> None:
    heavy = four_blocks(profile=profile_of([1_000] * 100), cuts=Cuts((0, 25, 26, 75, 100), (0, 0, 1, 1)))
    decision = Presto().decide(replace(heavy, block_seconds=(0.1, 0.9, 0.3, 0.1)))
    assert decision.reason.startswith("heavy blocks: 0 of 4 take") or not decision.acts
    assert {25, 26} <= set(decision.after.cuts)


def test_presto_splits_by_seconds_as_well() -> None:
    decision = Presto().decide(four_blocks(block_seconds=(0.1, 0.1, 0.3, 0.1)))
    assert decision.after.cuts == (0, 25, 50, 62, 75, 100) or decision.after.cuts == (0, 25, 50, 63, 75, 100)
    assert not Presto().decide(four_blocks(block_seconds=(0.1, 0.1, 0.19, 0.1))).acts
    assert not Presto().decide(four_blocks(iteration=0)).acts
    assert not Presto().decide(four_blocks(num_remaining=0)).acts


def test_presto_comes_to_an_end() -> None:
    entries, costs = skewed()
    loop = Simulated(entries, costs, equal_rows(2048, 8, 2), Presto(), num_iterations=60).run()
    assert 2 <= len(loop.acted) < 30
    assert loop.imbalances[-1] < 1.4 < 1.6 < loop.imbalances[0]
    assert loop.cuts.num_blocks <= 128
