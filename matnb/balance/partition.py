"""Cuts from measured seconds or counts: whole rows, or heavy rows by themselves, whichever ends first."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from matnb.balance.contiguous import Work, balanced_cuts, parts_within
from matnb.balance.situation import Floats, Integers, Situation, Strategy
from matnb.blocks.kernels.products.split_rows import SHARED_ENTRIES
from matnb.blocks.layout import LARGE_BYTES, Cuts

TASK_SECONDS = 50e-6  # what a task takes beside its kernel
STEP_SECONDS = 0.7e-3  # a round of messages between two processes: what sharing rows adds to an iteration
COPY_RATE = 4.0  # times that of moving, where bytes stay on their worker
_MOST_PIECES = 8  # blocks for a slot
_MANY_ITERATIONS = 1e9
_NEAR = 0.01  # relative: makespans that differ by less are equally good
_WORTH = 0.02  # relative: what sharing rows must save
_HEAVY = (1.0, 0.5, 0.25)  # of a slot's fair share: rows above are shared, the best of these is taken


def work_of(situation: Situation) -> Work:
    """Return the work along the rows: seconds on a worker of speed 1.0.

    Within a block it follows entries and rows, as the cost model has them. Where blocks were measured, each
    block's work is its seconds times the speed of its owner.
    """
    cuts = np.asarray(situation.cuts.cuts, np.int64)
    places = _merged(situation.profile.places, cuts)
    counted = np.diff(situation.profile.weights(places, situation.entry_seconds, situation.row_seconds))
    if not counted.any():
        counted = np.diff(places).astype(np.float64)
    if situation.block_seconds:
        num_blocks = situation.cuts.num_blocks
        block = np.searchsorted(cuts, places[:-1], side="right") - 1
        held = np.bincount(block, counted, minlength=num_blocks)
        # A block in which nothing was counted is spread over its rows.
        counted = np.where(held[block] > 0, counted, np.diff(places))
        held = np.bincount(block, counted, minlength=num_blocks)
        usual = np.asarray(situation.block_seconds) * _speeds_of_blocks(situation)
        counted = counted / held[block] * usual[block]  # in this order: of tiny ones the inverse is infinite
    return Work(places, np.concatenate([[0.0], np.cumsum(counted)]))


def _merged(places: Integers, others: Integers) -> Integers:
    """Return the places of both, ascending, each once; faster for a few thousand than ``np.union1d``."""
    every = np.sort(np.concatenate([places, others]))
    merged: Integers = every[np.append(True, every[1:] != every[:-1])]
    return merged


def cuts_for(situation: Situation) -> tuple[Cuts, Strategy, dict[int, float]]:
    """Return the cuts that should take least, their strategy, and what they should load each worker with.

    Each worker gets a block for each of its threads, more where a block would be large or a row is shared; a
    slot's share follows its worker's speed, less the worker's other work. The present cuts are returned
    where they are within 1 % of the best, and of others those that move least. Where few iterations follow,
    blocks that could be merged stay apart, as copying them would take longer than it saves.
    """
    now = situation.cuts
    slots, work = _slots(situation), work_of(situation)
    if not slots:
        return now, "segmented", _loads(situation, work, now)
    best = _segmented(situation, work, slots)
    least = _makespan(situation, work, best)
    if situation.apart_row_seconds > 0:
        apart = situation.apart_row_seconds * work.places
        both = _segmented(situation, Work(work.places, work.before + apart), slots)
        if (seconds := _makespan(situation, work, both)) < least:
            best, least = both, seconds
    last: tuple[int, ...] = ()
    for share in _HEAVY:
        rows = _heavy_rows(situation, work, share * work.total / len(slots))
        if rows == last:
            continue
        last = rows
        cuts = _uniform(situation, work, slots, rows)
        seconds = _makespan(situation, work, cuts)
        if seconds < least * (1 - _WORTH):
            best, least = cuts, seconds
    if set(now.owners) == set(slots) and _makespan(situation, work, now) <= least * (1 + _NEAR):
        best = now
    else:
        best = min(best, _keeping(situation, work, best), key=lambda cuts: _price(situation, work, cuts))
    strategy: Strategy = "uniform" if shared_blocks(situation, best).any() else "segmented"
    return best, strategy, _loads(situation, work, best)


def shared_blocks(situation: Situation, cuts: Cuts) -> npt.NDArray[np.bool_]:
    """Tell which blocks' products are made by all slots in equal parts; where rows may be shared at all."""
    held = np.diff(situation.profile.before(cuts.cuts))
    alone = (np.diff(cuts.cuts) == 1) & (held >= SHARED_ENTRIES)
    shared: npt.NDArray[np.bool_] = np.logical_and(alone, _shares_rows(situation))
    return shared


def loads_of(situation: Situation, cuts: Cuts) -> dict[int, float]:
    """Return the seconds of kernels that each worker should take in an iteration, over all its threads.

    Of the present cuts these are the sums of what was measured. Owners that have gone are in it as well.
    """
    return _loads(situation, _needed_work(situation, cuts), cuts)


def makespan_of(situation: Situation, cuts: Cuts) -> float:
    """Return the seconds that the slowest worker should take in an iteration, with what its tasks cost.

    Each thread also takes its part of the worker's other work, and a part of each row that is shared.
    Phases of their own are waited for one after the other.
    """
    return _makespan(situation, _needed_work(situation, cuts), cuts)


def makespan(block_seconds: Sequence[float], owners: Sequence[int], threads: int) -> float:
    """Return when the last worker is done, each giving its longest block to its first free thread."""
    blocks: dict[int, list[float]] = {}
    for owner, seconds in zip(owners, block_seconds, strict=True):
        blocks.setdefault(owner, []).append(seconds)
    return max((_scheduled(ones, threads) for ones in blocks.values()), default=0.0)


def moved(situation: Situation, new: Cuts) -> tuple[int, int]:
    """Return the bytes that go to another worker, and those that are copied on their own.

    A block whose rows and owner stay is left as it is.
    """
    old = situation.cuts
    places = np.union1d(old.cuts, new.cuts)
    sizes = np.diff(_bytes_before(situation, places))
    source = np.searchsorted(old.cuts, places[:-1], side="right") - 1
    target = np.searchsorted(new.cuts, places[:-1], side="right") - 1
    stays = np.asarray(old.owners)[source] == np.asarray(new.owners)[target]
    before, after = np.asarray(old.cuts), np.asarray(new.cuts)
    alike = (before[source] == after[target]) & (before[source + 1] == after[target + 1])
    return round(sizes[~stays].sum()), round(sizes[stays & ~alike].sum())


def _slots(situation: Situation) -> tuple[int, ...]:
    """Return the worker of each slot, in order; where there are fewer rows, as many slots as rows."""
    by_speed = sorted(situation.speeds, key=lambda worker: (-situation.speeds[worker], worker))
    every = [worker for _ in range(situation.threads) for worker in by_speed]
    return tuple(sorted(every[: situation.profile.length]))


def _speeds_of_blocks(situation: Situation) -> Floats:
    """Return what turns a block's measured seconds into work; a shared row's were measured on all slots."""
    speeds = situation.speeds
    single = np.asarray([speeds.get(owner, 1.0) for owner in situation.cuts.owners])
    every = len(speeds) / sum(1 / speed for speed in speeds.values()) if speeds else 1.0
    return np.where(shared_blocks(situation, situation.cuts), every, single)


def _needed_work(situation: Situation, cuts: Cuts) -> Work | None:
    """Return the work along the rows, and None where each block's was measured."""
    return None if situation.block_seconds and cuts == situation.cuts else work_of(situation)


def _seconds(situation: Situation, work: Work | None, cuts: Cuts) -> tuple[list[float], float]:
    """Return each block's seconds on its owner, 0.0 for shared rows, and the work on these for each slot."""
    if work is None:
        held = np.asarray(situation.block_seconds) * _speeds_of_blocks(situation)
    else:
        held = np.diff(work.up_to(cuts.cuts))
    shared = shared_blocks(situation, cuts)
    speeds = np.asarray([situation.speeds.get(owner, 1.0) for owner in cuts.owners])
    num_slots = max(1, situation.threads * len(situation.speeds))
    return np.where(shared, 0.0, held / speeds).tolist(), float(held[shared].sum()) / num_slots


def _loads(situation: Situation, work: Work | None, cuts: Cuts) -> dict[int, float]:
    seconds, spread = _seconds(situation, work, cuts)
    loads = dict.fromkeys(sorted({*situation.speeds, *cuts.owners}), 0.0)
    for owner, one in zip(cuts.owners, seconds, strict=True):
        loads[owner] += one
    for worker, speed in situation.speeds.items():
        loads[worker] += spread * situation.threads / speed + situation.other_seconds.get(worker, 0.0)
    return loads


def _makespan(situation: Situation, work: Work | None, cuts: Cuts) -> float:
    seconds, spread = _seconds(situation, work, cuts)
    shared = shared_blocks(situation, cuts)
    blocks: dict[int, list[float]] = {worker: [] for worker in (*situation.speeds, *cuts.owners)}
    for owner, one, apart in zip(cuts.owners, seconds, shared, strict=True):
        if not apart:
            blocks[owner].append(one + TASK_SECONDS)
    step = STEP_SECONDS if shared.any() and len(situation.speeds) > 1 else 0.0
    slowest = 0.0
    for worker, ones in blocks.items():
        other = situation.other_seconds.get(worker, 0.0) / situation.threads
        if worker in situation.speeds:
            other += spread / situation.speeds[worker] + int(shared.sum()) * TASK_SECONDS
        slowest = max(slowest, other + _scheduled(ones, situation.threads))
    return slowest + step + situation.apart_row_seconds * _most_rows(situation, cuts)


def _most_rows(situation: Situation, cuts: Cuts) -> float:
    # Of a worker's thread, as if each worker were of speed 1.0.
    rows = dict.fromkeys(cuts.owners, 0.0)
    for owner, (low, high) in zip(cuts.owners, cuts.ranges(), strict=True):
        rows[owner] += (high - low) / situation.speeds.get(owner, 1.0)
    return max(rows.values(), default=0.0) / situation.threads


def _scheduled(seconds: Iterable[float], threads: int) -> float:
    free = [0.0] * threads
    for one in sorted(seconds, reverse=True):
        heapq.heapreplace(free, free[0] + one)
    return max(free)


def _segmented(situation: Situation, work: Work, slots: tuple[int, ...]) -> Cuts:
    """Return the best cuts in which no row is shared: heavy ones that would be alone have a neighbor."""
    offsets = _offsets(situation, slots)
    shares = [situation.speeds[worker] for worker in slots]
    cuts = list(balanced_cuts(work, shares, offsets, _begins(situation, slots), _NEAR))
    alone = shared_blocks(situation, Cuts(tuple(cuts), slots))
    for part in np.flatnonzero(alone).tolist():
        if part + 2 < len(cuts) and cuts[part + 2] - cuts[part + 1] > 1:
            cuts[part + 1] += 1
        elif part > 0 and cuts[part] - cuts[part - 1] > 1:
            cuts[part] -= 1
    return _without_large(situation, Cuts(tuple(cuts), slots))


def _uniform(situation: Situation, work: Work, slots: tuple[int, ...], rows: tuple[int, ...]) -> Cuts:
    """Return the best cuts in which some rows are blocks by themselves, worked on by all slots alike."""
    heavy = np.asarray(rows, np.int64)
    steps = np.diff(work.before)
    at = np.searchsorted(work.places, heavy)
    each = float(steps[at].sum()) / len(slots)
    steps[at] = 0.0
    rest = Work(work.places, np.concatenate([[0.0], np.cumsum(steps)]))
    shares = [situation.speeds[worker] for worker in slots]
    offsets = [
        offset + each / share for offset, share in zip(_offsets(situation, slots), shares, strict=True)
    ]
    parts = balanced_cuts(rest, shares, offsets, _begins(situation, slots), _NEAR)
    cuts = np.union1d(parts, np.concatenate([heavy, heavy + 1]))
    owners = np.asarray(slots)[np.searchsorted(parts, cuts[:-1], side="right") - 1]
    return _without_large(situation, Cuts(tuple(cuts.tolist()), tuple(owners.tolist())))


def _keeping(situation: Situation, work: Work, best: Cuts) -> Cuts:
    """Return cuts with about the same part for each worker, in the present blocks where these allow it."""
    now, alone = np.asarray(situation.cuts.cuts), shared_blocks(situation, best)
    places, owners = np.asarray(best.cuts), np.asarray(best.owners)
    is_beside_shared = alone[1:] | alone[:-1]
    is_needed = (owners[1:] != owners[:-1]) | is_beside_shared
    # A part begins with a block where one begins nearby.
    nearest = now[np.abs(work.up_to(now)[:, None] - work.up_to(places[1:-1])).argmin(axis=0)]
    least = _NEAR * work.total / max(1, situation.threads * len(situation.speeds))
    is_near = np.abs(work.up_to(nearest) - work.up_to(places[1:-1])) <= least
    places[1:-1] = np.where(is_near & ~is_beside_shared, nearest, places[1:-1])
    if np.any(places[1:] <= places[:-1]):
        return best
    cuts = np.union1d(np.append(places[[0, -1]], places[1:-1][is_needed]), now)
    if len(cuts) - 1 > _MOST_PIECES * max(1, situation.threads * len(situation.speeds)):
        return best
    of = owners[np.searchsorted(places, cuts[:-1], side="right") - 1]
    return _without_large(situation, Cuts(tuple(cuts.tolist()), tuple(of.tolist())))


def _price(situation: Situation, work: Work, cuts: Cuts) -> float:
    """Return the seconds that the iterations to come and changing the layout take together."""
    moved_bytes, copied_bytes = moved(situation, cuts)
    num_iterations = min(situation.num_remaining, _MANY_ITERATIONS)
    cost = situation.costs.seconds(moved_bytes + copied_bytes / COPY_RATE)
    return _makespan(situation, work, cuts) * num_iterations + cost


def _heavy_rows(situation: Situation, work: Work, least: float) -> tuple[int, ...]:
    """Return the rows with more work than that which lowering would share."""
    if not _shares_rows(situation):
        return ()
    places = work.places
    held = np.diff(situation.profile.before(places))
    heavy = (np.diff(places) == 1) & (held >= SHARED_ENTRIES) & (np.diff(work.before) > least)
    return tuple(places[:-1][heavy].tolist())


def _shares_rows(situation: Situation) -> bool:
    return situation.can_split_rows and situation.threads * len(situation.speeds) > 1


def _offsets(situation: Situation, slots: tuple[int, ...]) -> list[float]:
    return [situation.other_seconds.get(worker, 0.0) / situation.threads for worker in slots]


def _begins(situation: Situation, slots: tuple[int, ...]) -> list[int | None]:
    """Return where each slot's part begins now: the worker's first always, others if it has as many now."""
    now = situation.cuts
    if list(now.owners) != sorted(now.owners):
        return [None] * len(slots)
    begins: dict[int, list[int]] = {}
    for owner, begin in zip(now.owners, now.cuts, strict=False):
        begins.setdefault(owner, []).append(begin)
    wanted, seen = Counter(slots), Counter[int]()
    found: list[int | None] = []
    for worker in slots:
        ones, number = begins.get(worker, []), seen[worker]
        kept = ones and (number == 0 or len(ones) == wanted[worker])
        found.append(ones[number] if kept else None)
        seen[worker] += 1
    return found


def _bytes_before(situation: Situation, places: npt.ArrayLike) -> Floats:
    entries = situation.profile.before(places)
    return entries * situation.entry_bytes + np.asarray(places) * situation.row_bytes


def _without_large(situation: Situation, cuts: Cuts) -> Cuts:
    """Return the cuts with large blocks in parts of about as many bytes."""
    sizes = np.diff(_bytes_before(situation, cuts.cuts))
    if sizes.max(initial=0.0) <= LARGE_BYTES:
        return cuts
    places = situation.profile.places
    held = Work(places, _bytes_before(situation, places))
    begins, owners = [0], []
    for (start, stop), owner, size in zip(cuts.ranges(), cuts.owners, sizes.tolist(), strict=True):
        parts = parts_within(held, start, stop, int(-(-size // LARGE_BYTES)))
        begins += parts[1:]
        owners += [owner] * (len(parts) - 1)
    return Cuts(tuple(begins), tuple(owners))
