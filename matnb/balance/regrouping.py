"""Blocks split and merged one at a time, as rules do that look at one block after another."""

from __future__ import annotations

import numpy as np

from matnb.balance.contiguous import Work, balanced_cuts
from matnb.balance.situation import Cuts, Profile
from matnb.errors import ShapeError


def split(cuts: Cuts, profile: Profile, block: int, count: int) -> Cuts:
    """Return the cuts with a block in ``count`` parts of about as many entries; fewer where it lacks rows.

    The parts stay with the block's owner.

    Raises
    ------
    ShapeError
        When there is no such block, or ``count`` is below 1.
    """
    _check(cuts, block, cuts.num_blocks)
    if count < 1:
        raise ShapeError(f"{count} parts of block {block}: give 1 or more")
    work = Work(profile.places, profile.entries.astype(np.float64))
    inner = parts_within(work, cuts.cuts[block], cuts.cuts[block + 1], count)[1:-1]
    owners = (cuts.owners[block],) * len(inner)
    return Cuts(
        (*cuts.cuts[: block + 1], *inner, *cuts.cuts[block + 1 :]),
        (*cuts.owners[:block], *owners, *cuts.owners[block:]),
    )


def merge(cuts: Cuts, block: int) -> Cuts:
    """Return the cuts with a block and the one after it made one, which the first one's owner gets.

    Raises
    ------
    ShapeError
        When there is no such block, or none after it.
    """
    _check(cuts, block, cuts.num_blocks - 1)
    return Cuts(
        (*cuts.cuts[: block + 1], *cuts.cuts[block + 2 :]),
        (*cuts.owners[: block + 1], *cuts.owners[block + 2 :]),
    )


def parts_within(work: Work, start: int, stop: int, count: int) -> tuple[int, ...]:
    """Return ``(start, ..., stop)``: cuts of some rows in parts of about as much work, fewer if rows lack."""
    if start == stop:
        return (start, stop)
    places = np.union1d(work.places[(work.places > start) & (work.places < stop)], [start, stop])
    within = Work(places - start, work.up_to(places) - work.up_to(start))
    return tuple(start + cut for cut in balanced_cuts(within, [1.0] * min(count, stop - start)))


def _check(cuts: Cuts, block: int, num_blocks: int) -> None:
    if not 0 <= block < num_blocks:
        raise ShapeError(f"block {block} of {cuts.num_blocks}: give 0 to {num_blocks - 1}")
