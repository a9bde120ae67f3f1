"""Presto's own rule, to compare with: blocks of many elements are split, those of few are merged."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.balance.decision import Decision
from matnb.balance.regrouping import merge, split
from matnb.balance.situation import Cuts, Floats, Situation
from matnb.balance.weighing import changed, kept
from matnb.blocks.layout import spread

Flags = npt.NDArray[np.bool_]
MOST_BLOCKS_PER_SLOT = 64  # the rule has no end of its own where the median falls with every split


class Presto:
    """Splits blocks in two whose elements or seconds exceed a multiple of the median, and merges light ones.

    After Venkataraman et al. 2013, "Presto: Distributed machine learning and graph processing with sparse
    matrices", section 5.3. What moving costs does not matter. Owners get equal numbers of adjacent blocks.

    Parameters
    ----------
    threshold
        A block is heavy from this multiple of the median on, and light up to the median over it.
    """

    name = "presto"

    def __init__(self, threshold: float = 2.0) -> None:
        self.threshold = threshold

    def decide(self, situation: Situation) -> Decision:
        """Return what to do."""
        workers = sorted(situation.speeds)
        if not workers or situation.cuts.num_blocks == 0 or situation.profile.length == 0:
            return kept(situation, self.name, "no workers or no rows: nothing to cut")
        sizes = np.diff(situation.profile.before(situation.cuts.cuts))
        slots = len(workers) * max(1, situation.threads)
        heavy, light = self._marked(situation, sizes, slots)
        gone = set(situation.cuts.owners) - set(workers)
        if gone or len(set(situation.cuts.owners)) < min(len(workers), situation.cuts.num_blocks):
            policy, reason = "workers", f"workers changed: there are {len(workers)} now"
        elif situation.iteration == 0:
            return kept(situation, self.name, "too early: no iteration is done")
        elif not situation.num_remaining > 0:
            return kept(situation, self.name, "at the end: no iteration follows")
        else:
            policy = self.name
            reason = (
                f"heavy blocks: {int(heavy.sum())} of {situation.cuts.num_blocks} have {self.threshold:g} "
                f"times the median or more, {int(light.sum())} as much less"
            )
        cuts = situation.cuts
        limit = self.threshold * float(np.median(sizes))
        merged = limit  # elements of the block to the right, if it is light
        for block in range(cuts.num_blocks - 1, -1, -1):
            if heavy[block]:
                cuts = split(cuts, situation.profile, block, 2)
            if light[block] and merged + sizes[block] < limit and cuts.num_blocks > slots:
                cuts = merge(cuts, block)
                merged += sizes[block]
            else:
                merged = sizes[block] if light[block] else limit
        after = Cuts(cuts.cuts, spread(cuts.num_blocks, workers))
        if after == situation.cuts:
            return kept(situation, self.name, f"even: no block has {self.threshold:g} times the median")
        return changed(situation, policy, reason, after, "segmented")

    def _marked(self, situation: Situation, sizes: Floats, slots: int) -> tuple[Flags, Flags]:
        rows = np.diff(situation.cuts.cuts)
        heavy = sizes >= self.threshold * max(float(np.median(sizes)), 1.0)
        light = sizes <= float(np.median(sizes)) / self.threshold
        if situation.block_seconds:
            seconds = np.asarray(situation.block_seconds)
            usual = float(np.median(seconds))
            heavy |= (seconds >= self.threshold * usual) & (usual > 0)
            light &= seconds <= usual / self.threshold
        heavy &= rows > 1
        if situation.cuts.num_blocks + int(heavy.sum()) > MOST_BLOCKS_PER_SLOT * slots:
            heavy[:] = False
        return heavy, light & ~heavy
