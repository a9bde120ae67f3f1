"""Reductions: each block's share where the block is, then the shares put together, axis by axis for sums."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, product
from math import prod

import numpy as np
import scipy.sparse as sp

from matnb.blocks.grid import Grid, Index, region_shape, regular
from matnb.blocks.kernels.calls import packed_bytes, unpack
from matnb.blocks.kernels.elementwise.one_pass import Share
from matnb.blocks.kernels.reductions.deviations import NODE, num_deviation_nodes
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype, combine_neighbors, multiplied
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import LAND, MAX, MIN, OF_STORED, TIMES
from matnb.blocks.sums import num_nodes, sums_as_tree
from matnb.expr.nodes import Expr, Reduce
from matnb.ops.combining import FEW_WORKERS
from matnb.ops.maps import inside_text, write_fused
from matnb.ops.reference import Value, dense, positions
from matnb.ops.registry import means
from matnb.program.kinds import COMBINE, REDUCE, Kind, Role
from matnb.program.operators import Finish, FusedKernel, Run
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Slot
from matnb.program.regions import region_size
from matnb.program.writer import Ending, PlanWriter, TaskWriter


@means(Reduce)
def _(node: Reduce, operands: Sequence[Value]) -> Value:
    """Return what is left of some axes."""
    (value,) = operands
    axes, keep = node.axes, node.keepdims
    if node.operation == "stored":
        pattern: np.ndarray = np.ones(value.shape, np.int64)
        if sp.issparse(value):
            pattern = sp.csr_array(
                (np.ones(value.nnz, np.int64), value.indices, value.indptr), value.shape
            ).toarray()
        return np.asarray(pattern.sum(axis=axes, keepdims=keep))
    if node.operation in OF_STORED:
        return _reduced_stored(node, value)
    elements = dense(value)
    if node.operation in ("sum", "prod"):
        return np.asarray(getattr(np, node.operation)(elements, axis=axes, keepdims=keep, dtype=node.dtype))
    if node.operation == "deviation":
        wide = elements.astype(np.float64)
        away = wide - wide.mean(axis=axes, keepdims=True) if elements.size else wide
        return np.asarray((away**2).sum(axis=axes, keepdims=keep)).astype(node.dtype)
    return np.asarray(getattr(np, node.operation)(elements, axis=axes, keepdims=keep)).astype(node.dtype)


def _reduced_stored(node: Reduce, value: Value) -> np.ndarray:
    # Elements that are not stored are what changes nothing.
    operation = OF_STORED[node.operation]
    monoid = {"prod": TIMES, "min": MIN, "max": MAX, "all": LAND}[operation]
    element = np.dtype(bool) if operation == "all" else node.dtype
    elements = np.full(value.shape, monoid.identity(element))
    assert sp.issparse(value)
    elements[positions(value)] = value.data
    found = getattr(np, monoid.ufunc).reduce(elements, axis=node.axes, keepdims=node.keepdims)
    return np.asarray(found).astype(node.dtype)


# Tasks: each block's share where the block is, then the shares put together, axis by axis for sums.

Register = tuple[bool, int]  # of a task being written: among its inputs or its steps, and which


@dataclass(frozen=True)
class Round:
    """Some axes of a reduction: what every block does, and along which axes its blocks are then combined.

    Attributes
    ----------
    axes
        Reduced in each block.
    merged
        The cut ones among them.
    along
        Where blocks give shares of a sum that follows the global index.
    """

    axes: tuple[int, ...]
    merged: tuple[int, ...]
    along: int | None


@dataclass(frozen=True)
class _Share:
    """What is on its way to the result: the task that makes it, where, and how large its value is.

    ``unpack`` picks it out of the task's value, where that has several.
    """

    key: Slot
    owner: int
    shape: tuple[int, ...]
    unpack: Run | None = None

    def read(self, task: TaskWriter) -> Register:
        """Return the register of a task that holds it."""
        read = task.read(self.key)
        return read if self.unpack is None else task.do(self.unpack, read)


def rounds_of(node: Reduce, counts: Sequence[int]) -> tuple[Round, ...]:
    """Return the rounds of a reduction of an array with so many blocks along each axis.

    A sum of floats follows the global index on one axis after the other, from the last to the first, so each
    cut axis is a round. The entries of a sparse row or column are added block by block, so sums depend on
    where the columns are cut, and sums of columns also on where the rows are.
    """
    cut = tuple(axis for axis in node.axes if counts[axis] > 1)
    sparse = node.operand.sparse
    in_order_only = node.operation != "deviation" and sparse
    if not cut or not _follows_index(node) or (in_order_only and node.axes == (0,)):
        return (Round(node.axes, cut, None),)
    rounds, rest = [], node.axes
    while rest:
        along = max((axis for axis in rest if axis in cut), default=None)
        taken = tuple(axis for axis in rest if along is None or axis >= along)
        in_order = in_order_only and along == 1
        rounds.append(Round(taken, () if along is None else (along,), None if in_order else along))
        rest = rest[: -len(taken)]
    return tuple(rounds)


def _follows_index(node: Reduce) -> bool:
    return node.operation == "deviation" or sums_as_tree(node.operation, node.dtype)


def lower_reductions(
    members: Sequence[Reduce],
    inside: Sequence[Expr],
    domain: Layout,
    writer: PlanWriter,
    ending: Container[Expr],
) -> None:
    """Write the tasks of reductions whose operands are computed under the layout ``domain``, in one pass.

    What they do with a block is one task for all of them. The shares of those in ``ending`` are put together
    by the task that reads the value, if there are several.
    """
    grid, first, operands = domain.grid, members[0], [member.operand for member in members]
    lowerings = [_ReductionWriter(member, domain, writer) for member in members]
    detail = f"{inside_text(inside, writer)} {' '.join(member.operation for member in members)}".strip()
    keys = []
    for number, index in enumerate(grid.indices()):
        task, owner = TaskWriter(), domain.owners[number]
        values = write_fused(
            task, inside, operands, grid.region(index), owner, writer, domain.owners.count(owner)
        )
        if len(members) == 1:
            keys.append(lowerings[0].begin(task, values[0], index, owner))
        else:
            keys.append(_begin_together(task, values, lowerings, index, owner, writer))
    is_apart = len(members) > 1 or (first in ending and not lowerings[0].is_done)
    if is_apart:
        writer.note_stage(first, domain, keys, REDUCE, detail, (*inside, *members))
    for member, lowering in zip(members, lowerings, strict=True):
        own = [member] if is_apart else inside
        lowering.finish(member in ending, member.operation if is_apart else detail, own)


def _begin_together(
    task: TaskWriter,
    values: Sequence[Register],
    lowerings: Sequence[_ReductionWriter],
    index: Index,
    owner: int,
    writer: PlanWriter,
) -> Slot:
    distinct = list(dict.fromkeys(values))
    shares = tuple(
        lowering.share_of(index, distinct.index(value))
        for lowering, value in zip(lowerings, values, strict=True)
    )
    outputs = tuple(
        (lowering.shape_of(share, index), lowering.wide)
        for lowering, share in zip(lowerings, shares, strict=True)
    )
    task.do(FusedKernel((), shares, outputs), *distinct)
    kind = _shares_kind(*(share.operation for share in shares))
    key = writer.add(task, owner, kind, packed_bytes(outputs), lowerings[0].node)
    for place, lowering in enumerate(lowerings):
        lowering.parts[index] = _Share(key, owner, outputs[place][0], Run(unpack, (outputs, place)))
    return key


def _shares_kind(*operations: str) -> Kind:
    # Of what makes shares, so that those of other operations are measured apart.
    return Kind(f"reduce {' '.join(operations)}", Role.REDUCES)


class _ReductionWriter:
    """Writes the tasks of one reduction.

    Attributes
    ----------
    node
        The reduction.
    wide
        The dtype of its shares.
    parts
        What is on its way, by block.
    is_done
        True where one block's share is the value.
    """

    def __init__(self, node: Reduce, domain: Layout, writer: PlanWriter) -> None:
        self.node, self._grid, self._writer = node, domain.grid, writer
        self.wide = accumulator_dtype(node.operation, node.dtype)
        self._rounds = rounds_of(node, self._grid.counts)
        self.parts: dict[Index, _Share] = {}
        self.is_done = not self._rounds[0].merged

    def begin(self, task: TaskWriter, value: Register, index: Index, owner: int) -> Slot:
        """Write what is done with a block; return the slot of its share."""
        share = self.share_of(index, 0)
        part = task.do(FusedKernel((), (share,)), value)
        if self.is_done:
            self._end(task, part)
        shape = self.shape_of(share, index)
        self.parts[index] = self._add(task, owner, _shares_kind(self.node.operation), shape)
        return self.parts[index].key

    def share_of(self, index: Index, place: int) -> Share:
        """Return what is done with a block in the first round."""
        one, node = self._rounds[0], self.node
        start = 0 if one.along is None else self._grid.region(index)[one.along][0]
        return Share(place, node.operation, one.axes, self.wide, one.along, start)

    def shape_of(self, share: Share, index: Index) -> tuple[int, ...]:
        """Return the shape of a block's share."""
        along = None if share.along is None else self._grid.region(index)[share.along]
        return self._reduced(self._grid.block_shape(index), share.axes, share.along, along)

    def finish(self, is_ending: bool, detail: str, inside: Sequence[Expr]) -> None:
        """Write what follows the shares, and note where the value is."""
        node = self.node
        for one, following in pairwise((*self._rounds, None)):
            assert one is not None
            if following is None and is_ending and one.merged:
                self._leave(one)
                return
            if one.merged:
                self.parts = self._merge(one, following)
            elif following is None:
                self.parts = {index: self._ended(part) for index, part in self.parts.items()}
        keys, owners = zip(*((part.key, part.owner) for part in self.parts.values()), strict=True)
        kept = Layout(kept_grid(self._grid, node.axes, node.keepdims), owners)
        self._writer.finish(node, kept, keys, REDUCE, detail, inside)

    def _ended(self, part: _Share) -> _Share:
        # the value of a share that is packed with others
        if part.unpack is None:
            return part
        task = TaskWriter()
        self._end(task, task.do(part.unpack, task.read(part.key)))
        return self._add(task, part.owner, COMBINE, part.shape)

    def _end(self, task: TaskWriter, share: Register) -> None:
        node = self.node
        task.do(Finish(node.operation, node.axes, node.keepdims, node.dtype, None, ()), share)

    def _leave(self, one: Round) -> None:
        # The task that reads the value puts it together.
        node, parts = self.node, list(self.parts.values())
        whole = self._whole(one, list(self.parts), (node.axes, node.keepdims, node.dtype))
        ending = Ending(tuple(part.key for part in parts), tuple(part.unpack for part in parts), whole)
        self._writer.leave(node, Layout(kept_grid(self._grid, node.axes, False), (parts[0].owner,)), ending)

    def _whole(
        self, one: Round, group: Sequence[Index], ending: tuple[tuple[int, ...], bool, np.dtype]
    ) -> Finish:
        ranges = tuple(self._grid.region(at)[one.along] for at in group if one.along is not None)
        return Finish(self.node.operation, *ending, one.along, ranges)

    def _merge(self, one: Round, following: Round | None) -> dict[Index, _Share]:
        # what combines the parts of a round, and what is done in the next one
        node = self.node
        groups: dict[Index, list[Index]] = {}
        for index in self.parts:
            kept = tuple(0 if axis in one.merged else place for axis, place in enumerate(index))
            groups.setdefault(kept, []).append(index)
        ending = (node.axes, node.keepdims, node.dtype) if following is None else ((), True, self.wide)
        merged = {}
        for index, group in groups.items():
            ranges = [self._grid.region(at)[one.along] for at in group if one.along is not None]
            parts, ranges = self._near(one, [self.parts[at] for at in group], ranges)
            task, whole = TaskWriter(), Finish(node.operation, *ending, one.along, tuple(ranges))
            value = task.do(whole, *(part.read(task) for part in parts))
            shape = tuple(1 if axis in one.merged else length for axis, length in enumerate(parts[0].shape))
            if following is not None:
                shape = self._go_on(task, value, following, index, shape)
            merged[index] = self._add(task, parts[0].owner, COMBINE, shape)
        return merged

    def _near(
        self, one: Round, parts: list[_Share], ranges: list[tuple[int, int]]
    ) -> tuple[list[_Share], list[tuple[int, int]]]:
        # Shares of neighbors combined on their worker, then on their machine, before they travel, where this
        # leaves the bits as they are: a share of the tree is what one block would have given.
        node, workers = self.node, self._writer.workers
        size = sum(prod(part.shape) for part in parts) * self.wide.itemsize
        owners = {part.owner for part in parts}
        # Without the tree, floats are added and multiplied in the order of all blocks.
        is_rounded = one.along is None and self.wide.kind in "fc" and node.operation[:4] in ("sum", "prod")
        is_small = size < SMALL_BYTES and len(owners) <= FEW_WORKERS
        if node.operation == "deviation" or is_rounded or is_small or len(owners) < 2:
            return parts, ranges
        machines = dict(zip(workers.numbers, workers.machines, strict=False))
        homes: list[Callable[[_Share], int]] = [lambda part: part.owner]
        if len(set(machines.values())) > 1:
            homes.append(lambda part: machines.get(part.owner, -1 - part.owner))
        for home in homes:
            parts, ranges = self._combined(one, parts, ranges, home)
        return parts, ranges

    def _combined(
        self,
        one: Round,
        parts: Sequence[_Share],
        ranges: Sequence[tuple[int, int]],
        home: Callable[[_Share], int],
    ) -> tuple[list[_Share], list[tuple[int, int]]]:
        found: list[_Share] = []
        covered: list[tuple[int, int]] = []
        for _, places in groupby(range(len(parts)), key=lambda place: home(parts[place])):
            some = list(places)
            first, own = parts[some[0]], [ranges[place] for place in some] if ranges else []
            covered += [(own[0][0], own[-1][1])] if own else []
            if len(some) == 1:
                found.append(first)
                continue
            task = TaskWriter()
            combined = Run(combine_neighbors, (self.node.operation, one.along, tuple(own)))
            task.do(combined, *(parts[place].read(task) for place in some))
            shape = tuple(
                num_nodes(*covered[-1]) if axis == one.along else length
                for axis, length in enumerate(first.shape)
            )
            found.append(self._add(task, first.owner, COMBINE, tuple(shape)))
        return found, covered

    def _go_on(
        self, task: TaskWriter, value: Register, one: Round, index: Index, shape: tuple[int, ...]
    ) -> tuple[int, ...]:
        # what is done in a later round, in the last one to its end; the shape of the value
        operation = "deviation of nodes" if self.node.operation == "deviation" else self.node.operation
        along = None if one.along is None else self._grid.region(index)[one.along]
        start = 0 if along is None else along[0]
        share = Share(0, operation, one.axes, self.wide, one.along, start)
        part = task.do(FusedKernel((), (share,)), value)
        if not one.merged:
            self._end(task, part)
        return self._reduced(shape, one.axes, one.along, along, is_later=True)

    def _reduced(
        self,
        shape: tuple[int, ...],
        axes: tuple[int, ...],
        along: int | None,
        part: tuple[int, int] | None,
        is_later: bool = False,
    ) -> tuple[int, ...]:
        deviation = self.node.operation == "deviation"
        lengths = dict.fromkeys(axes, 1)
        if along is not None and part is not None:
            of_elements = deviation and along == self._grid.ndim - 1
            lengths[along] = num_deviation_nodes(*part) if of_elements else num_nodes(*part)
        found = tuple(lengths.get(axis, length) for axis, length in enumerate(shape))
        return (*found, NODE) if deviation and not is_later else found

    def _add(self, task: TaskWriter, owner: int, kind: Kind, shape: tuple[int, ...]) -> _Share:
        # adds a task and returns the part that it makes
        num_bytes = prod(shape) * self.wide.itemsize
        key = self._writer.add(task, owner, kind, num_bytes, self.node)
        return _Share(key, owner, shape)


def kept_grid(grid: Grid, axes: tuple[int, ...], keepdims: bool) -> Grid:
    """Return the cuts of what is left of some axes."""
    cuts = []
    for axis, axis_cuts in enumerate(grid.cuts):
        if axis not in axes:
            cuts.append(axis_cuts)
        elif keepdims:
            cuts.append((0, 1))
    return Grid(tuple(cuts))


# Products of floats over cut axes: each block goes on from what the blocks before it made.


def lower_running_product(node: Reduce, writer: PlanWriter) -> None:
    """Write the tasks of a product whose operand's blocks are there, cut along some of its axes.

    Elements are multiplied in the order of rows, so of all axes only the first one is cut: what lies beside
    it is read by the task that needs it.
    """
    operand, axes = node.operand, node.axes
    grid = writer.registers[operand].layout.grid
    along = next(axis for axis in axes if grid.shape[axis] > 1)
    if grid.counts[along] > 1:
        parts = list(pairwise(grid.cuts[along]))
    else:
        count = min(grid.shape[along], max(grid.counts[axis] for axis in axes))
        parts = list(pairwise(regular((grid.shape[along],), [count]).cuts[0]))
    lanes = [
        [(0, length)] if axis in axes else list(pairwise(cuts))
        for axis, (cuts, length) in enumerate(zip(grid.cuts, grid.shape, strict=True))
    ]
    run = Run(multiplied, (node.operation, axes, accumulator_dtype(node.operation, node.dtype)))
    finish = Finish(node.operation, axes, node.keepdims, node.dtype, None, ())
    lines = [[(*lane[:along], part, *lane[along + 1 :]) for part in parts] for lane in product(*lanes)]
    owners = tuple(writer.home_of(operand, line[-1]) for line in lines)
    layout = Layout(kept_grid(grid, axes, node.keepdims), owners)
    for block in writer.each_block(node, layout, REDUCE, node.operation):
        line = lines[block.number]
        before: list[Slot] = []
        for region in line:
            task, owner = (block if region is line[-1] else TaskWriter()), writer.home_of(operand, region)
            value = writer.read(task, operand, region, owner)
            task.take(2 * block.num_bytes + (8 * region_shape(region)[-1] if operand.sparse else 0))
            if not operand.sparse:
                task.take(2 * block.num_bytes + node.dtype.itemsize * region_size(region))
            total = task.do(run, value, *map(task.read, before))
            if task is not block:
                before = [writer.part_of(block, task, owner, REDUCE, block.num_bytes)]
        block.do(finish, total)
