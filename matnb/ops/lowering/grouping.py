"""Keys told apart part by part, each part where it is: nothing moves."""

from __future__ import annotations

from itertools import pairwise

from matnb.blocks.grid import Grid
from matnb.blocks.kernels import grouping as kernels
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.grouping import Codes, Combined, Cuts, NumCodes, PartKeys, Picked
from matnb.program.operators import Run
from matnb.program.plan import Workers
from matnb.program.regions import rows_region
from matnb.program.writer import PlanWriter, TaskWriter

_CODED_BYTES = 72  # a key, if all are distinct: the table of those that are known
_PICKED_BYTES = 24  # a row: its place, and its value as it is summed


@lowers(Codes)
def lower_codes(node: Codes, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that give keys codes."""
    runs = [Run(kernels.codes_of)] * (len(node.before) - 1)
    _write(node, [(node.keys, node.before)], runs, node.before, node.keys, writer, workers)


@lowers(NumCodes)
def lower_num_codes(node: NumCodes, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count distinct keys."""
    runs = [Run(kernels.num_codes)] * node.size
    _write(node, [(node.codes, node.before)], runs, tuple(range(node.size + 1)), node.codes, writer, workers)


@lowers(PartKeys)
def lower_part_keys(node: PartKeys, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that list distinct keys."""
    runs = [Run(kernels.placed, (stop - start,)) for start, stop in pairwise(node.after)]
    read = [(node.keys, node.before), (node.codes, node.before)]
    _write(node, read, runs, node.after, node.codes, writer, workers)


@lowers(Combined)
def lower_combined(node: Combined, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that combine values by key."""
    runs = [
        Run(kernels.reduced, (stop - start, node.monoid, node.dtype)) for start, stop in pairwise(node.after)
    ]
    read = [(node.values, node.before), (node.codes, node.before)]
    _write(node, read, runs, node.after, node.codes, writer, workers)


@lowers(Picked)
def lower_picked(node: Picked, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick for each key what stands for it."""
    runs = [Run(kernels.picked)] * (len(node.before) - 1)
    read = [(node.elements, node.after), (node.codes, node.before)]
    _write(node, read, runs, node.before, node.codes, writer, workers)


def _write(
    node: Expr,
    read: list[tuple[Expr, Cuts]],
    runs: list[Run],
    cuts: Cuts,
    home: Expr,
    writer: PlanWriter,
    workers: Workers,
) -> None:
    # A task a part: it reads that part of each array, where the part of ``home`` is.
    base = base_of(node, writer)
    places = read[-1][1]
    rest = tuple((0, length) for length in node.shape[1:])
    keys, owners = [], []
    for number, run in enumerate(runs):
        rows = (places[number], places[number + 1])
        owner = writer.home_of(home, (rows,))
        task = TaskWriter()
        task.do(
            run,
            *(
                writer.read(task, one, rows_region(one.shape, (parts[number], parts[number + 1])), owner)
                for one, parts in read
            ),
        )
        task.take((_CODED_BYTES if isinstance(node, Codes) else _PICKED_BYTES) * (rows[1] - rows[0]))
        size = writer.bytes_of(node, ((cuts[number], cuts[number + 1]), *rest))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "group"), size))
        owners.append(owner)
    grid = Grid((cuts, *((0, length) for length in node.shape[1:])))
    writer.finish(node, Layout(grid, tuple(owners)), keys, "group", "by key")
