"""Carries out repartitions: stored arrays get other cuts or owners together, with the same values."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from matnb.backend.engines.driver_loops import LINEAGE_DEPTH, PlanEngine
from matnb.backend.kept import BlockRef, names_of
from matnb.backend.store import Entry
from matnb.balance.situation import Floats, Integers, Profile
from matnb.blocks.grid import Region, region_shape, regular_cuts
from matnb.blocks.kernels.profiles import entry_counts, entry_profile, on_its_own
from matnb.blocks.layout import Layout, Move
from matnb.errors import TooLargeError
from matnb.expr.nodes import Expr
from matnb.pictures.quantities import bytes_text
from matnb.program.kinds import CUT, EXCHANGE, Kind
from matnb.program.operators import Join, Run
from matnb.program.plan import Slot, StoredArray
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, Slots, TaskWriter, cut_of
from matnb.session.failures import raised_in_cell
from matnb.session.planning import Planner

_REPARTITION = Kind("repartition", shown=EXCHANGE)

_IN_FLIGHT_BYTES = 256 * 10**6  # that a worker receives and puts together at a time
_MEMORY_PARTS = 4  # it is at most such a part of its memory
_PROFILE_PARTS = 256
_HISTOGRAM_BINS = 256


@dataclass(frozen=True)
class Repartition:
    """The outcome of repartitioning arrays.

    Attributes
    ----------
    entries
        Of every array that was given.
    moved_bytes, copied_bytes
        That went from one worker to another, and that were laid out anew on their worker.
    num_blocks
        That were made anew.
    """

    entries: Mapping[Expr, Entry]
    moved_bytes: int
    copied_bytes: int
    num_blocks: int
    seconds: float


@dataclass(frozen=True)
class _NewBlock:
    """A block of the new layout, and the moves from old blocks that make it."""

    region: Region
    owner: int
    moves: tuple[Move, ...]
    num_bytes: int
    moved_bytes: int


class _Change:
    """What becomes of an array: which blocks stay, by new numbers, and which are made of what."""

    def __init__(self, node: Expr, entry: Entry, layout: Layout, profile: Profile | None) -> None:
        self.node, self.entry, self.layout = node, entry, layout
        self._old, self._profile = entry.stored, profile
        self._bounds = tuple(self._old.layout.grid.regions())
        self.staying: dict[int, int] = {}
        self.blocks: dict[int, _NewBlock] = {}
        old_places = zip(self._bounds, self._old.layout.owners, strict=True)
        there = {place: number for number, place in enumerate(old_places)}
        for number, (region, moves) in enumerate(zip(layout.grid.regions(), self._moves(), strict=True)):
            owner = layout.owners[number]
            old = there.get((region, owner))
            if old is not None and self._old.block_nnz:
                self.staying[number] = old
                continue
            sizes = [self._bytes_of(move) for move in moves]
            moved = sum(size for size, move in zip(sizes, moves, strict=True) if move.source_owner != owner)
            self.blocks[number] = _NewBlock(region, owner, moves, sum(sizes), moved)

    def _moves(self) -> list[tuple[Move, ...]]:
        # What each new block is made of.
        found: list[list[Move]] = [[] for _ in self.layout.owners]
        for move in self._old.layout.diff(self.layout):
            found[move.target].append(move)
        return list(map(tuple, found))

    def _bytes_of(self, move: Move) -> int:
        if not self._old.block_bytes:
            return 0  # not known of an interrupted run
        bounds, size = self._bounds[move.source], self._old.block_bytes[move.source]
        if self._profile is None or move.region[1:] != bounds[1:]:
            return size * region_size(move.region) // max(1, region_size(bounds))
        low, high, start, stop = self._profile.before([*bounds[0], *move.region[0]])
        return int(size * (stop - start) / max(1.0, high - low))

    def write(self, number: int, writer: PlanWriter) -> Slot:
        """Write the tasks that make a block, and return its slot."""
        block, slots = self.blocks[number], writer.registers[self.node].keys
        task = TaskWriter()
        offsets, parts = [], []
        for move in block.moves:
            slot, bounds = slots[move.source], self._bounds[move.source]
            if move.region == bounds:
                parts.append(task.read(slot))
            elif move.source_owner == block.owner:
                parts.append(task.do(cut_of(move.region, bounds), task.read(slot)))
            else:  # of another worker's block only the part travels
                parts.append(task.read(self._cut_there(move, slot, writer)))
            offsets.append(tuple(a - b for (a, _), (b, _) in zip(move.region, block.region, strict=True)))
        if len(parts) == 1:
            task.do(Run(on_its_own), parts[0])
        else:
            shape = region_shape(block.region)
            task.do(Join(tuple(offsets), shape, self.node.dtype, self.node.sparse), *parts)
        return writer.add(task, block.owner, _REPARTITION, block.num_bytes, self.node)

    def _cut_there(self, move: Move, slot: Slot, writer: PlanWriter) -> Slot:
        task, name = TaskWriter(), ("cut", slot, move.region)
        task.do(cut_of(move.region, self._bounds[move.source]), task.read(slot))
        return writer.add(task, move.source_owner, CUT, self._bytes_of(move), self.node, name)

    def stored(self, made: _MadeBlocks) -> tuple[StoredArray, tuple[BlockRef, ...]]:
        """Return the array as it is now, and what keeps its blocks."""
        futures, nnz, sizes = [], [], []
        for number in range(self.layout.grid.num_blocks):
            if number in self.staying:
                old = self.staying[number]
                futures.append(self.entry.futures[old])
                nnz.append(self._old.block_nnz[old])
                sizes.append(self._old.block_bytes[old])
            else:
                one = made[self, number]
                futures.append(one.future)
                nnz.append(one.nnz)
                sizes.append(one.num_bytes)
        return StoredArray(self.layout, names_of(futures), tuple(nnz), tuple(sizes)), tuple(futures)


@dataclass(frozen=True, eq=False)
class _BlockResult:
    """A block that was made: what keeps it, and its counts."""

    future: BlockRef
    nnz: int
    num_bytes: int


_MadeBlocks: TypeAlias = dict[
    tuple[_Change, int], _BlockResult
]  # by the change, and the number of the new block


class Repartitioner:
    """Repartitions stored arrays.

    Parameters
    ----------
    engine, planner
        Run the tasks, and say which workers there are and what fits them.
    replaced
        Puts an entry in the place of another one, for all that keeps it.
    """

    def __init__(
        self, engine: PlanEngine, planner: Planner, replaced: Callable[[Entry, Entry], None]
    ) -> None:
        self._engine, self._planner, self._replaced = engine, planner, replaced

    def repartition(
        self, arrays: Mapping[Expr, tuple[Entry, Layout]], profiles: Mapping[Expr, Profile] | None = None
    ) -> Repartition:
        """Repartition arrays in bounded batches; the old layouts stay until all new blocks exist.

        A block whose part of the array and whose owner stay is kept as it is.

        Parameters
        ----------
        arrays
            By their expressions; several may be names of one array.
        profiles
            Where the entries are, of arrays of which that is known.

        Raises
        ------
        TooLargeError
            When the old and the new blocks do not fit a worker's memory together; nothing was done.
        OwnersLost
            When a worker was lost; the blocks of others stay as they were.
        CellCancelled
            On an interrupt; all blocks stay as they were.
        """
        begin = time.perf_counter()
        known = profiles or {}
        changes = {
            entry: _Change(node, entry, layout, known.get(node))
            for node, (entry, layout) in arrays.items()
            if layout != entry.stored.layout
        }
        self._check_memory(changes.values())
        made: _MadeBlocks = {}
        try:
            for batch in self._batches(changes.values()):
                self._run(batch, made)
            new = {entry: self._entry(change, made) for entry, change in changes.items()}
        except BaseException:
            made.clear()  # the error's traceback would keep them
            raise
        for entry, one in new.items():
            self._replaced(entry, one)
        blocks = [block for change in changes.values() for block in change.blocks.values()]
        return Repartition(
            {node: new.get(entry, entry) for node, (entry, _) in arrays.items()},
            sum(block.moved_bytes for block in blocks),
            sum(block.num_bytes - block.moved_bytes for block in blocks),
            len(blocks),
            time.perf_counter() - begin,
        )

    def _check_memory(self, changes: Collection[_Change]) -> None:
        peaks: dict[int, int] = {}
        for block in (block for change in changes for block in change.blocks.values()):
            peaks[block.owner] = peaks.get(block.owner, 0) + block.num_bytes
        limits = self._planner.limits()
        for owner, size in peaks.items():
            peaks[owner] += min(size, _in_flight_bytes(limits.get(owner, 0)))
        if not self._planner.fits(peaks):
            raise TooLargeError(
                f"repartitioning needs up to {bytes_text(max(peaks.values()))} more on a worker, which its "
                "memory limit does not allow"
            )

    def _batches(self, changes: Collection[_Change]) -> Iterator[list[tuple[_Change, int]]]:
        limits = self._planner.limits()
        batch: list[tuple[_Change, int]] = []
        coming: dict[int, int] = {}
        for change in changes:
            for number, block in change.blocks.items():
                total = coming.get(block.owner, 0) + block.num_bytes
                if batch and total > _in_flight_bytes(limits.get(block.owner, 0)):
                    yield batch
                    batch, coming, total = [], {}, block.num_bytes
                coming[block.owner] = total
                batch.append((change, number))
        if batch:
            yield batch

    def _run(self, batch: Sequence[tuple[_Change, int]], made: _MadeBlocks) -> None:
        writer, given = self._writer({change.node: change.entry for change, _ in batch})
        keys = [change.write(number, writer) for change, number in batch]
        with raised_in_cell((), ()):
            outcome = self._engine.run(writer.plan(()), given, hold=keys)
        for block, key in zip(batch, keys, strict=True):
            made[block] = _BlockResult(outcome.kept[key], *outcome.counts[key])

    def _writer(self, entries: Mapping[Expr, Entry]) -> tuple[PlanWriter, dict[Slot, BlockRef]]:
        # What writes tasks that read stored arrays, and what is in the slots of their blocks.
        slots = Slots()
        stored = {node: slots.of(entry.stored) for node, entry in entries.items()}
        writer = PlanWriter(stored, {}, {}, self._planner.workers(), slots)
        given: dict[Slot, BlockRef] = {}
        for node, entry in entries.items():
            writer.note_reuse(node)
            given.update(zip(stored[node].keys, entry.futures, strict=True))
        return writer, given

    def _entry(self, change: _Change, made: _MadeBlocks) -> Entry:
        stored, futures = change.stored(made)
        depth = change.entry.depth + 1
        if depth > LINEAGE_DEPTH:
            futures, depth = self._engine.blocks.cut_lineage(stored.layout.owners, futures), 0
            stored = replace(stored, keys=names_of(futures))
        return replace(change.entry, stored=stored, futures=futures, depth=depth)

    def profile(self, node: Expr, entry: Entry) -> Profile:
        """Find out where the entries of a stored matrix are along its rows, by a small task for each block.

        Raises
        ------
        OwnersLost
            When a worker was lost.
        CellCancelled
            On an interrupt.
        """
        kernels = [Run(entry_profile, (_PROFILE_PARTS,))] * len(entry.stored.keys)
        sizes = [32 * _PROFILE_PARTS] * len(kernels)  # two numbers for each of at most twice as many places
        return _joined(self._looked(node, entry, kernels, sizes, "profile"))

    def histogram(self, node: Expr, entry: Entry) -> tuple[Floats, tuple[Integers, Integers]]:
        """Count the entries of a stored matrix in bins of both axes; errors as of :meth:`profile`.

        Returns
        -------
        The counts, and the edges of the bins along each axis.
        """
        cuts = entry.stored.layout.grid.cuts
        bins = [regular_cuts(length, _HISTOGRAM_BINS) for length in node.shape]
        edges = [np.unique([*one, *own]).astype(np.int64) for one, own in zip(bins, cuts, strict=True)]
        places, kernels, sizes = [], [], []
        for region in entry.stored.layout.grid.regions():
            found = [np.searchsorted(one, part).tolist() for one, part in zip(edges, region, strict=True)]
            places.append(tuple(slice(low, high) for low, high in found))
            local = [
                tuple((one[low : high + 1] - one[low]).tolist())
                for one, (low, high) in zip(edges, found, strict=True)
            ]
            kernels.append(Run(entry_counts, tuple(local)))
            sizes.append(8 * math.prod(high - low for low, high in found))
        counts = np.zeros([len(one) - 1 for one in edges])
        parts = self._looked(node, entry, kernels, sizes, "histogram")
        for place, part in zip(places, parts, strict=True):
            counts[place] = part
        return counts, (edges[0], edges[1])

    def _looked(
        self, node: Expr, entry: Entry, kernels: Sequence[Run], sizes: Sequence[int], what: str
    ) -> list[Integers]:
        """Return what a kernel gives of each block, of at most ``sizes`` bytes; ``what`` names its tasks."""
        writer, given = self._writer({node: entry})
        array, keys = writer.registers[node], []
        for slot, owner, kernel, size in zip(array.keys, array.layout.owners, kernels, sizes, strict=True):
            task = TaskWriter()
            task.do(kernel, task.read(slot))
            keys.append(writer.add(task, owner, Kind(what, shown=EXCHANGE), size, node))
        with raised_in_cell((), ()):
            found = self._engine.run(writer.plan(()), given, keys).fetched
        return [found[key].values for key in keys]


def _in_flight_bytes(limit: int) -> int:
    return min(_IN_FLIGHT_BYTES, limit // _MEMORY_PARTS) if limit else _IN_FLIGHT_BYTES


def _joined(parts: Sequence[Integers]) -> Profile:
    places, entries = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
    for part in parts:
        places.append(places[-1][-1] + part[0, 1:])
        entries.append(entries[-1][-1] + part[1, 1:])
    return Profile(np.concatenate(places), np.concatenate(entries))
