"""From expressions to a plan: which arrays are made, how they are cut, and the tasks that make them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matnb.blocks.layout import Layout
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
    Regrid,
    Transpose,
)
from matnb.lazy.traverse import topological
from matnb.plan.estimate import estimate_entries
from matnb.plan.fuse import fused_below, materialized
from matnb.plan.indexing import lower_index, lower_transpose
from matnb.plan.maps import lower_map
from matnb.plan.place import default_layout, layout_tag
from matnb.plan.plan import Plan, Stored, Workers
from matnb.plan.products import lower_product
from matnb.plan.reducing import lower_reduction
from matnb.plan.regridding import lower_regrid
from matnb.plan.sources import lower_data, lower_load
from matnb.plan.tasks import PlanWriter


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
            inside, read = fused_below(node, apart)
            lower_map(node, inside, chosen_layout(node, read, writer, workers), writer)
        case Reduce():
            inside, read = fused_below(node, apart)
            layout = chosen_layout(node.operand, read, writer, workers)
            lower_reduction(node, inside, layout, layout_tag(layout), writer)
        case MatMul():
            lower_product(node, writer)
        case Transpose():
            lower_transpose(node, writer, workers)
        case Index():
            lower_index(node, writer, workers)
        case Data():
            lower_data(node, node, chosen_layout(node, (), writer, workers), writer)
        case Load():
            lower_load(node, node, chosen_layout(node, (), writer, workers), writer, workers)
        case Regrid():
            lower_regrid(node, writer, workers)
        case _:
            raise TypeError(f"no lowering for {type(node).__name__}")


def chosen_layout(domain: Expr, read: Sequence[Expr], writer: PlanWriter, workers: Workers) -> Layout:
    """Return the layout of a stage: that of its heaviest operand of the same shape, or the default."""
    alike = [node for node in read if node.shape == domain.shape]
    if alike:
        heaviest = max(alike, key=writer.bytes_of)
        return writer.registers[heaviest].layout
    return default_layout(domain, writer.bytes_of(domain), workers)
