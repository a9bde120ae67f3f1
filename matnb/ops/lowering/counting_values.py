"""Values counted: each block gives a share of all counts, where it is; the shares are added."""

from __future__ import annotations

from matnb.blocks.grid import Region, whole
from matnb.blocks.kernels import counting_values as kernels
from matnb.blocks.layout import Layout
from matnb.expr.nodes import Expr
from matnb.ops.lowering.combining import write_combined
from matnb.ops.lowering.registry import base_of, lowers
from matnb.ops.nodes.counting_values import Binned, Count, Edges, Extent
from matnb.program.operators import Accumulate, Run
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter


@lowers(Extent)
def lower_extent(node: Extent, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that find the least and the greatest element."""
    source = writer.registers[node.operand]
    base, size = base_of(node, writer), writer.bytes_of(node)
    ends = TaskWriter()
    parts = []
    for number, (key, owner) in enumerate(zip(source.keys, source.layout.owners, strict=True)):
        task = TaskWriter()
        task.do(Run(kernels.extent), task.read(key))
        parts.append(ends.read(writer.add(task.task(f"{base}-share-{number}", owner, "extent"), size)))
    writer.note_reuse(node.operand)
    ends.do(Run(kernels.extent_of_all), *parts)
    home = source.layout.owners[0]
    key = writer.add(ends.task(f"{base}-0", home, "combine"), size)
    writer.finish(node, _in_one(node, home), [key], "extent", "least and greatest")


@lowers(Edges)
def lower_edges(node: Edges, writer: PlanWriter, workers: Workers) -> None:
    """Write the task that makes edges."""
    home = writer.registers[node.extent].layout.owners[0]
    task = TaskWriter()
    extent = task.read(writer.block(node.extent, ((0, 2),), home))
    task.do(Run(kernels.edges_between, (node.count, node.element)), extent)
    key = writer.add(task.task(f"{base_of(node, writer)}-0", home, "edges"), writer.bytes_of(node))
    writer.finish(node, _in_one(node, home), [key], "edges", f"of {node.count} equal bins")


@lowers(Binned)
def lower_binned(node: Binned, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count between edges."""
    heaviest = max((*node.values, *node.weights), key=writer.bytes_of)
    domain = writer.registers[heaviest].layout
    layout = default_layout(node, writer.bytes_of(node), workers)
    base = base_of(node, writer, layout)
    run = Run(kernels.binned, (node.num_axes, node.is_equal, node.dtype))
    shares = []
    for number, (region, owner) in enumerate(zip(domain.grid.regions(), domain.owners, strict=True)):
        task = TaskWriter()
        values = [writer.read(task, one, region, owner) for one in node.values]
        edges = [task.read(writer.block(one, _all_of(one), owner)) for one in node.edges]
        weights = [writer.read(task, one, region, owner) for one in node.weights]
        task.take(8 * region_size(region) * (node.num_axes + len(weights)))  # their bins
        task.do(run, *values, *edges, *weights)
        key = f"{base}-share-{number}"
        shares.append((writer.add(task.task(key, owner, "count"), writer.bytes_of(node)), owner))
    keys = write_combined(node, shares, Accumulate("plus", node.dtype), layout, writer, base)
    writer.finish(node, layout, keys, "count", "between edges")


@lowers(Count)
def lower_count(node: Count, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that count labels."""
    domain = writer.registers[node.labels].layout
    layout = default_layout(node, writer.bytes_of(node), workers)
    base = base_of(node, writer, layout)
    shares = []
    for number, (region, owner) in enumerate(zip(domain.grid.regions(), domain.owners, strict=True)):
        task = TaskWriter()
        labels = writer.read(task, node.labels, region, owner)
        task.do(Run(kernels.labelled, (node.length, region[0][0])), labels)
        key = f"{base}-share-{number}"
        shares.append((writer.add(task.task(key, owner, "count"), writer.bytes_of(node)), owner))
    keys = write_combined(node, shares, Accumulate("plus", node.dtype), layout, writer, base)
    writer.finish(node, layout, keys, "count", "by label")


def _all_of(node: Expr) -> Region:
    return tuple((0, length) for length in node.shape)


def _in_one(node: Expr, owner: int) -> Layout:
    return Layout(whole(node.shape), (owner,))
