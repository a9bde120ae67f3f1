"""Matrix products: each part where the heaviest operand is, then the parts of one block put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matnb.blocks.grid import Grid, Region, finer_cuts, regular_cuts
from matnb.blocks.kernels.dense_products import multiply_parts
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import semiring_named
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.ops.push_products import lower_push
from matnb.ops.split_rows import shared_row, shared_text, write_shared_row
from matnb.program.matching import Product
from matnb.program.operators import Accumulate, Multiply, MultiplyMasked, Operator, Run, SumMasked
from matnb.program.place import SMALL_BYTES
from matnb.program.plan import Workers
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter

TASKS_PER_SLOT = 8  # of a product of sparse arrays, whose work is skewed: the longest of 16 took 0.2 of all
_SUM_BYTES = 8
LEAST_MEETINGS = (
    200_000  # in a task of such a product, were all rows alike; skewed ones have ten times as many
)


@dataclass(frozen=True)
class ProductCuts:
    """How a product is cut: the blocks of the result, the inner axis, and which operand stays in place."""

    grid: Grid
    inner: tuple[int, ...]
    heaviest: int

    @property
    def is_local(self) -> bool:
        """True where each block of the result is made by one task."""
        return len(self.inner) == 2


def product_cuts(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> ProductCuts:
    """Return how a product is cut.

    Rows are cut as in the left operand, columns as in the right, the inner axis as in the heavier one, but of
    a sparse array times a dense one always as in the sparse one; where only the entries of a mask are made,
    rows and columns as in the mask. The other operands travel, gathered once for each worker. Products of two
    sparse arrays are cut finer, since equal rows are not equal work.
    """
    left, right, mask = product.left, product.right, product.mask
    whole_inner = regular_cuts(left.shape[-1], 1)
    if mask is not None and product.masked_by_entries:
        return _finer(
            ProductCuts(writer.registers[mask].layout.grid, whole_inner, 2), product, writer, workers
        )
    heaviest = 0 if writer.bytes_of(left) >= writer.bytes_of(right) else 1
    if product.transposed or (left.sparse and not right.sparse):
        heaviest = (
            0  # where each row is summed in one go, the cuts of the right operand do not change its bits
        )
    rows, inner = (-1, -2) if product.transposed else (-2, -1)
    cuts = []
    if left.ndim > 1:
        cuts.append(_axis_cuts(left, rows, writer))
    if right.ndim > 1:
        cuts.append(_axis_cuts(right, -1, writer))
    if mask is not None:
        inner_cuts = whole_inner
    elif _is_large_of_one_block(node, product, cuts, writer):
        cuts[0] = regular_cuts(node.shape[0], workers.slots)
        inner_cuts = regular_cuts(left.shape[inner], 1)
    elif heaviest == 0:
        inner_cuts = _axis_cuts(left, inner, writer)
    else:
        inner_cuts = _axis_cuts(right, -2 if right.ndim > 1 else -1, writer)
    grid = Grid((*_batch_cuts(node, product, heaviest, writer), *cuts))
    return _finer(ProductCuts(grid, inner_cuts, heaviest), product, writer, workers)


def _is_large_of_one_block(
    node: Expr, product: Product, cuts: Sequence[tuple[int, ...]], writer: PlanWriter
) -> bool:
    # A result that would be a sum of parts as large as itself, each made of some of the inner axis.
    if not _is_plain(product) or any(len(one) > 2 for one in cuts):
        return False
    size = writer.bytes_of(node)
    return size >= SMALL_BYTES and 4 * size >= max(map(writer.bytes_of, product.operands))


def _is_plain(product: Product) -> bool:
    # BLAS's own products of matrices
    both = (product.left, product.right)
    return (
        product.semiring == "plus_times"
        and product.mask is None
        and not product.turned
        and all(one.ndim == 2 and not one.sparse for one in both)
    )


def product_layout(product: Product, cuts: ProductCuts, writer: PlanWriter) -> Layout:
    """Return the layout of a product: each block is where the first of its parts is made."""
    first = (cuts.inner[0], cuts.inner[1])
    owners = (_owner(product, cuts, region, first, writer) for region in cuts.grid.regions())
    return Layout(cuts.grid, tuple(owners))


def lower_product(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that make the array of a product, and nothing else."""
    if product.pushed:
        lower_push(node, product, writer, workers)
        return
    cuts = product_cuts(node, product, writer, workers)
    layout = product_layout(product, cuts, writer)
    base = (
        f"{node.digest.hex()}-{digest_of(cuts.grid.cuts, cuts.inner, layout.owners, product.way).hex()[:8]}"
    )
    add = semiring_named(product.semiring).add.name
    keys = []
    for number, (region, owner) in enumerate(zip(cuts.grid.regions(), layout.owners, strict=True)):
        num_bytes = writer.bytes_of(node, region)
        parts: list[str] = []
        for place, inner in enumerate(itertools.pairwise(cuts.inner)):
            where = _owner(product, cuts, region, inner, writer)
            task = TaskWriter()
            write_product(task, node, product, region, inner, where, writer, layout.owners.count(where))
            key = f"{base}-{number}" if cuts.is_local else f"{base}-{number}-part-{place}"
            parts.append(writer.add(task.task(key, where, "product"), num_bytes))
        if len(parts) > 1:
            task = TaskWriter()
            task.do(Accumulate(add, node.dtype), *(task.read(part) for part in parts))
            parts = [writer.add(task.task(f"{base}-{number}", owner, "accumulate"), num_bytes)]
        keys.append(parts[0])
    writer.finish(node, layout, keys, "product", detail_of(product, writer))


def write_product(
    task: TaskWriter,
    node: Expr,
    product: Product,
    region: Region,
    inner: tuple[int, int],
    owner: int,
    writer: PlanWriter,
    num_tasks: int,
    total: np.dtype | None = None,
) -> tuple[bool, int]:
    """Write the step that makes a region of a product over a range of the inner axis; return its register.

    ``num_tasks`` is how many of the product's the worker has. With ``total``, the dtype of a sum, the step
    makes the sum along each row of the product instead.
    """
    parts = _inner_parts(product, region, inner, writer)
    if len(parts) > 1:
        values = [
            writer.read(task, operand, read, owner)
            for part in parts
            for operand, read in zip(product.operands, _operand_regions(product, region, part), strict=True)
        ]
        task.take(writer.bytes_of(node, region))
        run = Run(multiply_parts, (product.dtype, product.transposed))
        return task.do(run, *values, num_bytes=writer.bytes_of(node, region))
    regions = _operand_regions(product, region, inner)
    row = shared_row(product, regions[0], writer)
    if row is not None:
        return write_shared_row(task, node, product, row, regions[1], writer)
    values = []
    for place, (operand, part) in enumerate(zip(product.operands, regions, strict=True)):
        if place == 1 and turns(product):  # by its place: in X @ X it is the left operand too
            values.append(task.read(writer.flipped(operand, part, owner)))
            continue
        # Tasks that all run at once are faster with a copy each of a vector than waiting for a shared one.
        alone = num_tasks <= writer.num_threads and operand.ndim == 1
        values.append(writer.read(task, operand, part, owner, alone))
    if product.left.sparse and product.right.sparse and product.mask is None:
        task.take(_between_bytes(product, regions, writer))
    return task.do(_operator(product, total), *values, num_bytes=writer.bytes_of(node, region))


def _between_bytes(product: Product, regions: Sequence[Region], writer: PlanWriter) -> int:
    # Of a product of sparse arrays: sums and bits of a row of the result, and operands' values in wide sums.
    width = region_size(regions[1][1:])
    both = zip(product.operands, regions, strict=True)
    cast = sum(writer.entries_of(one, part) for one, part in both if one.dtype.itemsize < _SUM_BYTES)
    return (_SUM_BYTES + 1) * width + _SUM_BYTES * cast


def _inner_parts(
    product: Product, region: Region, inner: tuple[int, int], writer: PlanWriter
) -> list[tuple[int, int]]:
    # The inner axis as large dense operands are cut along it, so that neither is put together.
    start, stop = inner
    cuts = [start, stop]
    if _is_plain(product):
        axes = (0 if product.transposed else 1, 0)
        read = _operand_regions(product, region, inner)
        for operand, axis, wanted in zip(product.operands, axes, read, strict=True):
            if writer.bytes_of(operand, wanted) >= SMALL_BYTES:
                cuts += [one for one in _axis_cuts(operand, axis, writer) if start < one < stop]
    return list(itertools.pairwise(sorted(set(cuts)))) or [inner]


def _operator(product: Product, total: np.dtype | None) -> Operator:
    turned = product.turned or turns(product)
    if total is not None and product.scaled is not None:
        return SumMasked(product.semiring, product.dtype, turned, product.scaled, total)
    if product.mask is None:
        return Multiply(product.semiring, product.dtype, product.transposed)
    return MultiplyMasked(product.semiring, product.dtype, turned, product.complement, product.scaled)


def turns(product: Product) -> bool:
    """Tell whether a dense right operand is turned once for each worker, since its columns are read."""
    dense = not product.left.sparse and not product.right.sparse
    return product.masked_by_entries and dense and product.right.ndim == 2 and not product.turned


def detail_of(product: Product, writer: PlanWriter) -> str:
    """Return what is special about a product in a few words, for a person."""
    words = [product.semiring]
    if product.transposed:
        words.append("of the transpose without making it")
    if product.scaled is not None:
        words.append("only where the other factor has entries")
    elif product.mask is not None:
        words.append("outside a mask" if product.complement else "inside a mask")
    shared = shared_text(product, writer)
    if shared:
        words.append(shared)
    return " ".join(words)


def _axis_cuts(node: Expr, axis: int, writer: PlanWriter) -> tuple[int, ...]:
    return writer.registers[node].layout.grid.cuts[axis]


def _batch_cuts(
    node: Expr, product: Product, heaviest: int, writer: PlanWriter
) -> tuple[tuple[int, ...], ...]:
    # Batch axes are cut as in the heavier operand; where it is stretched, they are not cut.
    heavy = product.operands[heaviest]
    num_batch = max(product.left.ndim, product.right.ndim, 2) - 2
    own = heavy.ndim - 2
    cuts = []
    for place in range(num_batch):
        axis = place - (num_batch - own)
        length = node.shape[place]
        if axis >= 0 and heavy.shape[axis] == length:
            cuts.append(writer.registers[heavy].layout.grid.cuts[axis])
        else:
            cuts.append(regular_cuts(length, 1))
    return tuple(cuts)


def _operand_regions(product: Product, region: Region, inner: tuple[int, int]) -> tuple[Region, ...]:
    left, right = product.left, product.right
    num_batch = max(left.ndim, right.ndim, 2) - 2
    batch, rest = region[:num_batch], list(region[num_batch:])
    rows = (rest.pop(0),) if left.ndim > 1 else ()
    columns = (rest.pop(0),) if right.ndim > 1 else ()
    left_batch = operand_region(left.shape[:-2], batch) if left.ndim > 2 else ()
    right_batch = operand_region(right.shape[:-2], batch) if right.ndim > 2 else ()
    left_region = (inner, *rows) if product.transposed else (*rows, inner)
    right_region = (*columns, inner) if product.turned else (inner, *columns)
    both = ((*left_batch, *left_region), (*right_batch, *right_region))
    return both if product.mask is None else (*both, region)


def _owner(
    product: Product,
    cuts: ProductCuts,
    region: Region,
    inner: tuple[int, int],
    writer: PlanWriter,
) -> int:
    layout = writer.registers[product.operands[cuts.heaviest]].layout
    wanted = _operand_regions(product, region, inner)[cuts.heaviest]
    for index in layout.grid.overlapping(wanted):
        return layout.owners[layout.grid.number(index)]
    return layout.owners[0]


def _finer(cuts: ProductCuts, product: Product, writer: PlanWriter, workers: Workers) -> ProductCuts:
    if not (product.left.sparse and product.right.sparse and cuts.is_local):
        return cuts
    rows, columns = cuts.grid.cuts
    meetings = writer.entries[product.left] * writer.entries[product.right] // max(1, product.right.shape[0])
    num_tasks = min(TASKS_PER_SLOT * workers.slots, meetings // LEAST_MEETINGS)
    count = -(-num_tasks // max(1, cuts.grid.num_blocks))
    return replace(cuts, grid=Grid((finer_cuts(rows, max(1, count)), columns)))
