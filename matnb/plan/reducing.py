"""Reductions: each block's share where the block is, then the shares put together, axis by axis for sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from matnb.blocks.grid import Grid, Index
from matnb.blocks.kernels.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.sums import num_nodes, sums_as_tree
from matnb.lazy.expr import Expr, Reduce
from matnb.plan.maps import inside_text, write_fused
from matnb.plan.operators import Finish, Partial
from matnb.plan.tasks import PlanWriter, TaskWriter

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
class _Part:
    """What is on its way to the result: the task that makes it, where, and how large its value is."""

    key: str
    owner: int
    shape: tuple[int, ...]


def rounds_of(node: Reduce, counts: Sequence[int]) -> tuple[Round, ...]:
    """Return the rounds of a reduction of an array with so many blocks along each axis.

    A sum of floats follows the global index on one axis after the other, from the last to the first, so each
    cut axis is a round. The entries of a sparse row or column are added block by block, so sums depend on
    where the columns are cut, and sums of columns also on where the rows are.
    """
    cut = tuple(axis for axis in node.axes if counts[axis] > 1)
    sparse = node.operand.sparse
    if not cut or not sums_as_tree(node.operation, node.dtype) or (sparse and node.axes == (0,)):
        return (Round(node.axes, cut, None),)
    rounds, rest = [], node.axes
    while rest:
        along = max((axis for axis in rest if axis in cut), default=None)
        taken = tuple(axis for axis in rest if along is None or axis >= along)
        in_order = sparse and along == 1
        rounds.append(Round(taken, () if along is None else (along,), None if in_order else along))
        rest = rest[: -len(taken)]
    return tuple(rounds)


def lower_reduction(
    node: Reduce, inside: Sequence[Expr], domain: Layout, tag: str, writer: PlanWriter
) -> None:
    """Write the tasks of a reduction whose operand is computed under the layout ``domain``."""
    grid = domain.grid
    rounds = rounds_of(node, grid.counts)
    lowering = _Lowering(node, grid, f"{node.digest.hex()}-{tag}", writer)
    parts: dict[Index, _Part] = {}
    for number, index in enumerate(grid.indices()):
        task, owner = TaskWriter(), domain.owners[number]
        value = write_fused(task, inside, grid.region(index), owner, writer, domain.owners.count(owner))
        shape = lowering.share(task, value, rounds[0], index, grid.block_shape(index))
        parts[index] = lowering.add(task, f"share-{number}", owner, f"reduce {node.operation}", shape)
    for one, following in pairwise((*rounds, None)):
        if one is not None and one.merged:
            parts = lowering.merge(parts, one, following)
    keys, owners = zip(*((part.key, part.owner) for part in parts.values()), strict=True)
    kept = Layout(_kept_grid(grid, node.axes, node.keepdims), owners)
    detail = f"{inside_text(inside, writer)} {node.operation}".strip()
    writer.finish(node, kept, keys, "reduce", detail, inside)


class _Lowering:
    """Writes the tasks of one reduction.

    Parameters
    ----------
    base
        What its keys begin with.
    """

    def __init__(self, node: Reduce, grid: Grid, base: str, writer: PlanWriter) -> None:
        self._node, self._grid, self._base, self._writer = node, grid, base, writer
        self._wide = accumulator_dtype(node.operation, node.dtype)

    def share(
        self, task: TaskWriter, value: Register, one: Round, index: Index, shape: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Write what a block does in a round, the last one to its end; return the shape of the value."""
        node, lengths, start = self._node, dict.fromkeys(one.axes, 1), 0
        if one.along is not None:
            start, stop = self._grid.region(index)[one.along]
            lengths[one.along] = num_nodes(start, stop)
        part = task.do(Partial(node.operation, one.axes, self._wide, one.along, start), value)
        if not one.merged:
            task.do(Finish(node.operation, node.axes, node.keepdims, node.dtype, None, ()), part)
        return tuple(lengths.get(axis, length) for axis, length in enumerate(shape))

    def merge(self, parts: Mapping[Index, _Part], one: Round, following: Round | None) -> dict[Index, _Part]:
        """Write what combines the parts of a round, and what is done in the next one."""
        node = self._node
        groups: dict[Index, list[Index]] = {}
        for index in parts:
            kept = tuple(0 if axis in one.merged else place for axis, place in enumerate(index))
            groups.setdefault(kept, []).append(index)
        ending = (node.axes, node.keepdims, node.dtype) if following is None else ((), True, self._wide)
        merged = {}
        for number, (index, group) in enumerate(groups.items()):
            task, first = TaskWriter(), parts[group[0]]
            ranges = tuple(self._grid.region(at)[one.along] for at in group if one.along is not None)
            whole = Finish(node.operation, *ending, one.along, ranges)
            value = task.do(whole, *(task.read(parts[at].key) for at in group))
            shape = tuple(1 if axis in one.merged else length for axis, length in enumerate(first.shape))
            name = str(number)
            if following is not None:
                shape = self.share(task, value, following, index, shape)
                name = f"over-{one.merged[0]}-{number}"
            merged[index] = self.add(task, name, first.owner, "combine", shape)
        return merged

    def add(self, task: TaskWriter, name: str, owner: int, kind: str, shape: tuple[int, ...]) -> _Part:
        """Add a task and return the part that it makes."""
        num_bytes = prod(shape) * self._wide.itemsize
        return _Part(
            self._writer.add(task.task(f"{self._base}-{name}", owner, kind), num_bytes), owner, shape
        )


def _kept_grid(grid: Grid, axes: tuple[int, ...], keepdims: bool) -> Grid:
    cuts = []
    for axis, axis_cuts in enumerate(grid.cuts):
        if axis not in axes:
            cuts.append(axis_cuts)
        elif keepdims:
            cuts.append((0, 1))
    return Grid(tuple(cuts))
