"""Exact ranks among the elements of several sorted blocks, found where the blocks are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

from matnb.blocks.formats import Block
from matnb.blocks.kernels.sorting import ordering
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.program.kinds import SORTING, Kind
from matnb.program.operators import Run
from matnb.program.place import SMALL_BYTES, default_layout
from matnb.program.plan import Slot, Workers
from matnb.program.writer import PlanWriter, TaskWriter

_RANK = Kind("rank", shown=SORTING)

_BETWEEN = 4  # times what a step gives, or looks at, it takes while it runs
_SAMPLES = 1024  # of a block: so often less than it is looked at for each rank
Value: TypeAlias = Slot | tuple[bool, int]  # a task's value, or a register of the one that is being written


class RankSearch:
    """Writes the search for ranks: one task where all blocks are one worker's, else a task a block and step.

    Parameters
    ----------
    made
        What the ranks are wanted for.
    blocks
        Keys of sorted blocks, and their owners.
    itemsize
        Of an element.
    """

    def __init__(
        self, writer: PlanWriter, made: Expr, blocks: Sequence[tuple[Slot, int]], itemsize: int
    ) -> None:
        self._writer, self._made, self._blocks, self._itemsize = writer, made, blocks, itemsize
        self._home = blocks[0][1]
        owners = {owner for _, owner in blocks}
        self._task = TaskWriter() if len(owners) == 1 else None
        self.counts: list[Value] = []

    def run(
        self,
        kernel: Callable[..., Block],
        parameters: tuple[Hashable, ...],
        inputs: Sequence[Value],
        size: int,
        owner: int | None = None,
        looked_at: int = 0,
    ) -> Value:
        """Write a step, at home unless it has an owner, that looks at so many bytes; return its value."""
        task = self._task or TaskWriter()
        read = [task.read(one) if isinstance(one, Slot) else one for one in inputs]
        value = task.do(Run(kernel, parameters), *read, num_bytes=size)
        task.take(_BETWEEN * max(size, looked_at))
        if self._task is not None:
            return value
        where = self._home if owner is None else owner
        return self._writer.add(task, where, _RANK, size, self._made)

    def each(
        self, kernel: Callable[..., Block], numbered: bool, inputs: Sequence[Value], size: int
    ) -> list[Value]:
        """Write a step for each sorted block, which it reads first, and return their values."""
        return [
            self.run(kernel, (number,) if numbered else (), (key, *inputs), size, owner)
            for number, (key, owner) in enumerate(self._blocks)
        ]

    def windows(self, ranks: Value, count: int) -> tuple[Value, list[Value]]:
        """Write the search for so many ranks; return the brackets and the windows."""
        number, size = len(self._blocks), self._itemsize
        samples = [
            self.run(ordering.sample, (_SAMPLES,), (key,), _SAMPLES * size, owner)
            for key, owner in self._blocks
        ]
        wanted = self.run(ordering.distinct, (), samples, number * _SAMPLES * size)
        self.counts = self.each(ordering.count_below, False, (wanted,), number * _SAMPLES * 16)
        brackets = self.run(
            ordering.bracket,
            (),
            (ranks, *self.counts),
            (2 * number + 1) * count * 8,
            looked_at=number * number * _SAMPLES * 16,
        )
        return brackets, self.each(ordering.window, True, (brackets,), count * _SAMPLES * size)

    def splits(self, ranks: Sequence[int]) -> Slot:
        """Write the search for how many elements of each block come before ranks, and return the key."""
        given = self.run(ordering.ranks_of, tuple(ranks), (), 8 * len(ranks))
        brackets, windows = self.windows(given, len(ranks))
        inputs = (brackets, *windows, *self.counts)
        size = (len(ranks) + 2) * len(self._blocks) * 8
        return self.done(self.run(ordering.splits, (), inputs, size), size)

    def done(self, value: Value, size: int) -> Slot:
        """Return the key of the last value."""
        if isinstance(value, Slot):
            return value
        assert self._task is not None, "only then values are registers"
        return self._writer.add(self._task, self._home, _RANK, size, self._made)


def sorting_layouts(node: Expr, writer: PlanWriter, workers: Workers) -> tuple[Layout, Layout]:
    """Return how a 1-D array is cut where its blocks are sorted, and how the sorted array is.

    Its blocks are sorted as they are where there is one for each thread, or up to two.
    """
    given, size = writer.registers[node].layout, writer.bytes_of(node)
    even = default_layout(node, size, workers)
    if size < SMALL_BYTES:
        return given, given
    count = given.grid.num_blocks
    return (given if workers.slots <= count <= 2 * workers.slots else even), even
