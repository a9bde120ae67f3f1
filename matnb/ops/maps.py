"""Elementwise chains written into one task a block, whatever their length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Dense
from matnb.blocks.grid import Region, region_shape
from matnb.blocks.kernels.shaping import cut
from matnb.blocks.layout import Layout
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Literal, Reduce
from matnb.ops.access import Draw
from matnb.ops.products import detail_of, write_product
from matnb.program.matching import Product
from matnb.program.operators import Apply, Constant, Make, MakeDrawn, Operator, Stretch
from matnb.program.place import layout_tag
from matnb.program.regions import operand_region
from matnb.program.writer import PlanWriter, TaskWriter


def lower_map(node: Expr, inside: Sequence[Expr], layout: Layout, writer: PlanWriter) -> None:
    """Write the tasks that make an array block by block; ``inside`` is what each computes, operands first."""
    base = f"{node.digest.hex()}-{stage_tag(layout, inside, writer)}"
    kind = "product" if any(one in writer.products for one in inside) else "map"
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        write_fused(task, inside, inside[-1:], region, owner, writer, layout.owners.count(owner))
        keys.append(writer.add(task.task(f"{base}-{number}", owner, kind), writer.bytes_of(node, region)))
    writer.finish(node, layout, keys, kind, inside_text(inside, writer).removesuffix(";") or "make", inside)


def stage_tag(layout: Layout, inside: Sequence[Expr], writer: PlanWriter) -> str:
    """Return a few characters that tell apart the ways in which a stage may be made."""
    ways = [writer.products[node].way for node in inside if node in writer.products]
    return f"{layout_tag(layout)}{digest_of(*ways).hex()[:4]}" if ways else layout_tag(layout)


def inside_text(inside: Sequence[Expr], writer: PlanWriter) -> str:
    """Return what the tasks of a stage compute, operands first, for a user."""
    words = []
    for node in inside:
        if node in writer.products:
            words.append(f"{detail_of(writer.products[node], writer)};")
        elif isinstance(node, Elementwise):
            words.append(node.name)
    return " ".join(words)


def write_fused(
    task: TaskWriter,
    inside: Sequence[Expr],
    wanted: Sequence[Expr],
    region: Region,
    owner: int,
    writer: PlanWriter,
    num_tasks: int,
) -> list[tuple[bool, int]]:
    """Write the steps that make a region of some expressions, and return the registers that hold them.

    Parameters
    ----------
    inside
        What is computed in the task, operands first; each Reduce is left to the caller.
    wanted
        Some of ``inside``, or what it reads.
    region
        The part of the results, or of what is reduced.
    num_tasks
        How many of the stage's tasks the owner has.
    """
    values: dict[Expr, tuple[bool, int]] = {}

    def value(node: Expr) -> tuple[bool, int]:
        if node not in values:
            values[node] = writer.read(task, node, operand_region(node.shape, region), owner)
        return values[node]

    for node in inside:
        if isinstance(node, Reduce):
            continue
        if node in writer.products:
            product = writer.products[node]
            inner = (0, product.left.shape[-2 if product.transposed else -1])
            total = _total_of(node, product, inside)
            values[node] = write_product(task, node, product, region, inner, owner, writer, num_tasks, total)
            continue
        arguments = [value(operand) for operand in node.operands]
        values[node] = task.do(
            _operator(node, operand_region(node.shape, region)),
            *arguments,
            num_bytes=writer.bytes_of(node, operand_region(node.shape, region)),
        )
    return [value(node) for node in wanted]


def _total_of(node: Expr, product: Product, inside: Sequence[Expr]) -> np.dtype | None:
    # The dtype of the sum along rows that is all that is asked of a sampled product, or None.
    match inside[-1]:
        case Reduce(operand, "sum", axes, _, element) if operand is node and 1 in axes and product.scaled:
            alone = all(node not in one.operands for one in inside[:-1])
            return element if alone else None
    return None


def _operator(node: Expr, region: Region) -> Operator:
    match node:
        case Elementwise(name, _, input_dtypes, element, output):
            return Apply(name, input_dtypes, element, output, node.sparse)
        case Broadcast():
            return Stretch(region_shape(region))
        case Create(creation):
            return Make(creation, region)
        case Draw(creation):
            return MakeDrawn(creation, region)
        case Literal():
            return Constant(cut(Dense(node.value), tuple(slice(*bounds) for bounds in region)))
    raise TypeError(f"{type(node).__name__} is not elementwise")
