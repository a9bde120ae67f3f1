"""From expressions to a plan: which arrays are made, how they are cut, and the tasks that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matnb.blocks.layout import Layout
from matnb.lazy.digest import digest_of
from matnb.lazy.expr import (
    Broadcast,
    Create,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    Load,
    MatMul,
    Reduce,
    Transpose,
)
from matnb.lazy.holdings import asked_grid
from matnb.lazy.traverse import topological
from matnb.plan.estimate import estimate_entries
from matnb.plan.fuse import fused_below, materialized
from matnb.plan.indexing import lower_index, lower_transpose
from matnb.plan.maps import write_fused
from matnb.plan.place import default_layout
from matnb.plan.plan import Plan, Stored, Workers
from matnb.plan.products import lower_product
from matnb.plan.reducing import lower_reduction
from matnb.plan.sources import lower_data, lower_load
from matnb.plan.tasks import PlanWriter, TaskWriter


def lower(
    roots: Sequence[Expr],
    keep: Sequence[Expr],
    stored: Mapping[Expr, Stored],
    workers: Workers,
    present: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan that makes the arrays of ``roots``.

    Parameters
    ----------
    roots
        Expressions whose blocks are wanted.
    keep
        Expressions whose blocks stay as well if they are computed on the way.
    stored
        Arrays that are on the workers already.
    workers
        What the plan is laid out over.
    present
        Keys of other values on the workers, such as a file's pieces, with their owners.
    """
    order = topological(roots, stored)
    reached = set(order)
    wanted = list(dict.fromkeys([*roots, *(node for node in keep if node in reached)]))
    apart = materialized(order, wanted, stored)
    writer = PlanWriter(stored, estimate_entries(roots, stored), present)
    for node in order:
        if node in apart:
            _lower_node(node, apart | set(stored), writer, workers)
    return writer.plan(wanted, workers.threads)


def _lower_node(node: Expr, apart: set[Expr], writer: PlanWriter, workers: Workers) -> None:
    match node:
        case Elementwise() | Broadcast() | Create() | Literal():
            _lower_map(node, apart, writer, workers)
        case Reduce():
            domain, read = node.operand, fused_below(node, apart)
            layout = chosen_layout(domain, read[1], writer, workers)
            lower_reduction(node, read[0], layout, layout_tag(layout), writer)
        case MatMul():
            lower_product(node, writer)
        case Transpose():
            lower_transpose(node, writer, workers)
        case Index():
            lower_index(node, writer, workers)
        case Data():
            lower_data(node, chosen_layout(node, (), writer, workers), writer)
        case Load():
            lower_load(node, chosen_layout(node, (), writer, workers), writer, workers)
        case _:
            raise TypeError(f"no lowering for {type(node).__name__}")


def _lower_map(node: Expr, apart: set[Expr], writer: PlanWriter, workers: Workers) -> None:
    inside, read = fused_below(node, apart)
    layout = chosen_layout(node, read, writer, workers)
    base = f"{node.digest.hex()}-{layout_tag(layout)}"
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        write_fused(task, inside, region, owner, writer)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "map"), writer.bytes_of(node, region)))
    names = [one.name for one in inside if isinstance(one, Elementwise)]
    writer.finish(node, layout, keys, "map", " ".join(names) or "make")


def chosen_layout(domain: Expr, read: Sequence[Expr], writer: PlanWriter, workers: Workers) -> Layout:
    """Return the layout of a stage: what the person asked for, its heaviest operand's, or the default."""
    alike = [node for node in read if node.shape == domain.shape]
    if asked_grid(domain) is None and alike:
        heaviest = max(alike, key=writer.bytes_of)
        return writer.registers[heaviest].layout
    return default_layout(domain, writer.bytes_of(domain), workers)


def layout_tag(layout: Layout) -> str:
    """Return a few characters that tell layouts apart in keys."""
    return digest_of(layout.grid.cuts, layout.owners).hex()[:8]
