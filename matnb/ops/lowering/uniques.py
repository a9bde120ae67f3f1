"""Distinct elements: blocks are sorted where they are, and parts of the order keep the first of equals."""

from __future__ import annotations

from itertools import pairwise

from matnb.blocks.grid import Grid
from matnb.blocks.kernels import uniques
from matnb.blocks.layout import Layout, spread
from matnb.ops.lowering.ordering import Parts, write_arg_sorted, write_sorted
from matnb.ops.lowering.ranking import sorting_layouts
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.uniques import CountDistinct, Distinct, DistinctField
from matnb.program.operators import Join, Run
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter


@lowers(Distinct)
def lower_distinct(node: Distinct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find what is distinct in each part of the order."""
    domain, _ = sorting_layouts(node.operand, writer, workers)
    count = len(node.cuts) - 1
    layout = Layout(Grid((node.cuts,)), spread(count, workers.numbers))
    base = base_of(node, writer, domain, layout)
    if node.places:
        places, values = write_arg_sorted(node.operand, domain, base, writer)
        blocks = [values, places]
    else:
        values = write_sorted(node.operand, domain, base, writer)
        blocks = [values]
    parts = Parts(node.operand, values, layout, base, writer, uniques.piece_and_last)
    keys = []
    for number in range(count):
        parameters = (number, node.cuts[number], node.equal_nan, node.starts, node.places)
        size = node.ends[number + 1] - node.ends[number]
        keys.append(parts.merge(number, uniques.distinct, blocks, parameters, size, reads_splits=True))
    writer.finish(node, Layout(Grid((node.ends,)), layout.owners), keys, "distinct", "")


@lowers(CountDistinct)
def lower_count(node: CountDistinct, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that tell how many distinct elements each part has."""
    base = base_of(node, writer)
    keys, owners = [], []
    for number, part in enumerate(pairwise(node.ends)):
        task, owner = TaskWriter(), writer.home_of(node.operand, (part,))
        task.do(Run(uniques.count_of), task.read(writer.block(node.operand, (part,), owner)))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "count"), 8))
        owners.append(owner)
    layout = Layout(Grid((tuple(range(len(keys) + 1)),)), tuple(owners))
    writer.finish(node, layout, keys, "count", "what is distinct")


@lowers(DistinctField)
def lower_field(node: DistinctField, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that pick what is distinct out of each part that has some."""
    base = base_of(node, writer)
    keys, owners, cuts = [], [], [0]
    for number, (part, count) in enumerate(zip(pairwise(node.ends), node.counts, strict=True)):
        if not count:
            continue
        task, owner = TaskWriter(), writer.home_of(node.operand, (part,))
        length = node.cuts[number + 1] - node.cuts[number]
        options = (node.field, length, node.element, node.starts, node.places)
        task.do(Run(uniques.field_of, options), task.read(writer.block(node.operand, (part,), owner)))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "pick"), count * node.dtype.itemsize))
        owners.append(owner)
        cuts.append(cuts[-1] + count)
    if not keys:
        task = TaskWriter()
        task.do(Join((), (0,), node.dtype, False))
        owners, cuts = [workers.numbers[0]], [0, 0]
        keys = [writer.add(task.task(f"{base}-0", owners[0], "pick"), 0)]
    writer.finish(node, Layout(Grid((tuple(cuts),)), tuple(owners)), keys, "pick", node.field)
