"""Elements put in order, and the ones at places of the order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from matnb.blocks.formats import Block
from matnb.blocks.kernels import ordering
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lanes import lanes_layout
from matnb.ops.ranking import RankSearch, sorting_layouts
from matnb.ops.registry import Value, base_of, dense, lowers, means
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter


@dataclass(frozen=True, eq=False, repr=False)
class Sort(Expr):
    """The elements ascending along an axis, NaN last; dense."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, self.operand.dtype, False, self.operand)


@dataclass(frozen=True, eq=False, repr=False)
class ArgSort(Expr):
    """The places along an axis of the elements in ascending order, equal ones as they come."""

    plain: ClassVar[bool] = True
    operand: Expr
    axis: int

    def __post_init__(self) -> None:
        self._settle(self.operand.shape, np.dtype(np.intp), False, self.operand)


@means(Sort)
def _(node: Sort, operands: Sequence[Value]) -> Value:
    """Return the elements in ascending order."""
    return np.sort(dense(operands[0]), axis=node.axis)


@means(ArgSort)
def _(node: ArgSort, operands: Sequence[Value]) -> Value:
    """Return the places of the elements in ascending order."""
    return np.argsort(dense(operands[0]), axis=node.axis, kind="stable")


# Elements in order: along lanes where they are whole, else blocks sorted where they are and then merged.

_PLACE_BYTES = 8
_ARG_SORT_BYTES = 24  # an element: keys, and keys with places
Kernel = Callable[..., Block]
Sorted = list[tuple[str, int]]  # keys of sorted blocks, and their owners


@lowers(Sort, ArgSort)
def _(node: Sort | ArgSort, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks of sorting along an axis."""
    if node.ndim > 1:
        _lower_lanes(node, lanes_layout(node.operand, (node.axis,), writer, workers), writer)
        return
    domain, layout = sorting_layouts(node.operand, writer, workers)
    if domain.grid.num_blocks == 1:
        _lower_lanes(node, domain, writer)
        return
    base = base_of(node, writer, domain, layout)
    if isinstance(node, Sort):
        values = write_sorted(node.operand, domain, base, writer)
        parts = PartsWriter(node.operand, values, layout, base, writer)
        keys = [parts.merge(number, ordering.merged, [values]) for number in range(layout.grid.num_blocks)]
    else:
        places, values = write_arg_sorted(node.operand, domain, base, writer)
        parts = PartsWriter(node.operand, values, layout, base, writer)
        keys = [
            parts.merge(number, ordering.merged_places, [values, places], size=writer.bytes_of(node, region))
            for number, region in enumerate(layout.grid.regions())
        ]
    writer.finish(node, layout, keys, "sort", "")


def _lower_lanes(node: Sort | ArgSort, layout: Layout, writer: PlanWriter) -> None:
    base = base_of(node, writer, layout)
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        block = writer.read(task, node.operand, region, owner, alone=True)
        run = Run(ordering.sort, (node.axis,))
        if isinstance(node, ArgSort):
            run = Run(ordering.arg_sort, (node.axis, 0))
            task.take(_ARG_SORT_BYTES * region_size(region))
        task.do(run, block)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "sort"), writer.bytes_of(node, region)))
    writer.finish(node, layout, keys, "sort", "along an axis")


def write_sorted(node: Expr, domain: Layout, base: str, writer: PlanWriter) -> Sorted:
    """Write the sorting of each block of a 1-D array."""
    return _write_blocks(node, domain, f"{base}-block", writer, ordering.sort, lambda start: (0,))


def write_arg_sorted(node: Expr, domain: Layout, base: str, writer: PlanWriter) -> tuple[Sorted, Sorted]:
    """Write for each block of a 1-D array the places of its elements in order, and these elements."""
    places = _write_blocks(
        node, domain, f"{base}-places", writer, ordering.arg_sort, lambda start: (0, start)
    )
    values: Sorted = []
    for number, ((region, owner), (key, _)) in enumerate(
        zip(zip(domain.grid.regions(), domain.owners, strict=True), places, strict=True)
    ):
        task = TaskWriter()
        block = writer.read(task, node, region, owner, alone=True)
        task.do(Run(ordering.picked, (region[0][0],)), block, task.read(key))
        task.take(_PLACE_BYTES * region_size(region))
        made = task.task(f"{base}-block-{number}", owner, "sort")
        values.append((writer.add(made, writer.bytes_of(node, region)), owner))
    return places, values


def _write_blocks(
    node: Expr,
    domain: Layout,
    base: str,
    writer: PlanWriter,
    kernel: Kernel,
    parameters: Callable[[int], tuple[Hashable, ...]],
) -> Sorted:
    made: Sorted = []
    for number, (region, owner) in enumerate(zip(domain.grid.regions(), domain.owners, strict=True)):
        task = TaskWriter()
        block = writer.read(task, node, region, owner, alone=True)
        task.do(Run(kernel, parameters(region[0][0])), block)
        size = writer.bytes_of(node, region)
        if kernel is ordering.arg_sort:
            task.take(_ARG_SORT_BYTES * region_size(region))
        made.append((writer.add(task.task(f"{base}-{number}", owner, "sort"), size), owner))
    return made


class PartsWriter:
    """Writes what is done with each part of a 1-D array in order; the pieces of sorted blocks travel to it.

    Parameters
    ----------
    node
        The array.
    values
        Its sorted blocks.
    layout
        Of the array in order.
    base
        What the keys of tasks begin with.
    piece
        What cuts a piece out of a sorted block, given the splits, and the numbers of the block and the part.
    """

    def __init__(
        self,
        node: Expr,
        values: Sorted,
        layout: Layout,
        base: str,
        writer: PlanWriter,
        piece: Kernel = ordering.piece,
    ) -> None:
        self._node, self._layout, self._base, self._writer = node, layout, base, writer
        self._piece = piece
        self._cuts = layout.grid.cuts[0]
        search = RankSearch(writer, base, values, node.dtype.itemsize)
        self._splits = search.splits(self._cuts[1:-1])

    def merge(
        self,
        number: int,
        kernel: Kernel,
        blocks: Sequence[Sorted],
        parameters: tuple[Hashable, ...] = (),
        size: int | None = None,
        reads_splits: bool = False,
    ) -> str:
        """Write what makes a part from its pieces of some blocks, after the splits if it reads them."""
        writer, owner, task = self._writer, self._layout.owners[number], TaskWriter()
        length = self._cuts[number + 1] - self._cuts[number]
        pieces = [task.read(self._splits)] if reads_splits else []
        for kind, several in enumerate(blocks):
            for place, (key, where) in enumerate(several):
                cut = Run(self._piece, (place, number))
                if where == owner:
                    pieces.append(task.do(cut, task.read(key), task.read(self._splits)))
                    continue
                there, name = TaskWriter(), f"{self._base}-piece-{kind}-{place}-{number}"
                there.do(cut, there.read(key), there.read(self._splits))
                num_bytes = length * 8 // len(several)
                pieces.append(task.read(writer.add(there.task(name, where, "cut"), num_bytes)))
        task.do(Run(kernel, parameters), *pieces)
        # Pairs of pieces are merged first, and elements beside their places.
        each = 2 * (self._node.dtype.itemsize + _PLACE_BYTES * (len(blocks) - 1))
        task.take(length * (each + 2 * _PLACE_BYTES if len(blocks) > 1 else each))
        made = task.task(f"{self._base}-{number}", owner, "merge")
        return writer.add(made, length * self._node.dtype.itemsize if size is None else size)
