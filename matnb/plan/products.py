"""Matrix products: each part where the heavier operand is, then the parts of one block put together."""

from __future__ import annotations

import itertools

from matnb.blocks.grid import Grid, Region, regular_cuts
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import semiring_named
from matnb.lazy.digest import digest_of
from matnb.lazy.expr import Expr, MatMul
from matnb.plan.operators import Accumulate, Multiply
from matnb.plan.plan import Stored
from matnb.plan.regions import operand_region
from matnb.plan.tasks import PlanWriter, TaskWriter


def lower_product(node: MatMul, writer: PlanWriter) -> None:
    """Write the tasks of a product.

    Rows are cut as in the left operand, columns as in the right, the inner axis as in the heavier one. The
    lighter operand travels: it is gathered once for each worker.
    """
    left, right = node.left, node.right
    left_is_heavier = writer.bytes_of(left) >= writer.bytes_of(right)
    heavy = writer.registers[left if left_is_heavier else right]
    outer_cuts = []
    if left.ndim > 1:
        outer_cuts.append(_axis_cuts(left, -2, writer))
    if right.ndim > 1:
        outer_cuts.append(_axis_cuts(right, -1, writer))
    if left_is_heavier:
        inner_cuts = _axis_cuts(left, -1, writer)
    else:
        inner_cuts = _axis_cuts(right, -2 if right.ndim > 1 else -1, writer)
    batch_cuts = _batch_cuts(node, left_is_heavier, writer)
    grid = Grid((*batch_cuts, *outer_cuts))
    semiring = semiring_named(node.semiring)
    base = f"{node.digest.hex()}-{digest_of(grid.cuts, inner_cuts, heavy.layout.owners).hex()[:8]}"
    keys, owners = [], []
    for number, region in enumerate(grid.regions()):
        parts: list[tuple[str, int]] = []
        for place, inner in enumerate(itertools.pairwise(inner_cuts)):
            left_region, right_region = _operand_regions(node, region, inner)
            owner = _owner(heavy, left_region if left_is_heavier else right_region)
            task = TaskWriter()
            one = task.read(writer.block(left, left_region, owner))
            other = task.read(writer.block(right, right_region, owner))
            task.do(Multiply(node.semiring, node.dtype), one, other)
            key = f"{base}-{number}" if len(inner_cuts) == 2 else f"{base}-{number}-part-{place}"
            parts.append((writer.add(task.task(key, owner, "product"), writer.bytes_of(node, region)), owner))
        key, owner = parts[0]
        if len(parts) > 1:
            task = TaskWriter()
            task.do(Accumulate(semiring.add.name, node.dtype), *(task.read(part) for part, _ in parts))
            key = writer.add(
                task.task(f"{base}-{number}", owner, "accumulate"), writer.bytes_of(node, region)
            )
        keys.append(key)
        owners.append(owner)
    writer.finish(node, Layout(grid, tuple(owners)), keys, "product", node.semiring)


def _axis_cuts(node: Expr, axis: int, writer: PlanWriter) -> tuple[int, ...]:
    return writer.registers[node].layout.grid.cuts[axis]


def _batch_cuts(node: MatMul, left_is_heavier: bool, writer: PlanWriter) -> tuple[tuple[int, ...], ...]:
    # Batch axes are cut as in the heavier operand; where it is stretched, they are not cut.
    operand = node.left if left_is_heavier else node.right
    num_batch = max(node.left.ndim, node.right.ndim, 2) - 2
    own = operand.ndim - 2
    cuts = []
    for place in range(num_batch):
        axis = place - (num_batch - own)
        length = node.shape[place]
        if axis >= 0 and operand.shape[axis] == length:
            cuts.append(writer.registers[operand].layout.grid.cuts[axis])
        else:
            cuts.append(regular_cuts(length, 1))
    return tuple(cuts)


def _operand_regions(node: MatMul, region: Region, inner: tuple[int, int]) -> tuple[Region, Region]:
    num_batch = max(node.left.ndim, node.right.ndim, 2) - 2
    batch, rest = region[:num_batch], list(region[num_batch:])
    rows = (rest.pop(0),) if node.left.ndim > 1 else ()
    columns = (rest.pop(0),) if node.right.ndim > 1 else ()
    left_batch = operand_region(node.left.shape[:-2], batch) if node.left.ndim > 2 else ()
    right_batch = operand_region(node.right.shape[:-2], batch) if node.right.ndim > 2 else ()
    right_inner = (inner, *columns)
    return (*left_batch, *rows, inner), (*right_batch, *right_inner)


def _owner(heavy: Stored, region: Region) -> int:
    grid = heavy.layout.grid
    for index in grid.overlapping(region):
        return heavy.layout.owners[grid.number(index)]
    return heavy.layout.owners[0]
