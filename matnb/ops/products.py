"""Matrix products over semirings, under masks too."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import SPARSE_DTYPES, sparse_bytes
from matnb.blocks.grid import Grid, Region, finer_cuts, intersect, regular_cuts
from matnb.blocks.kernels.products.dense_products import multiply_parts
from matnb.blocks.kernels.products.split_rows import (
    entries_before,
    is_shared,
    leaves_of,
    multiply_part,
    num_leaves,
    part_of_row,
    row_of_parts,
)
from matnb.blocks.kernels.reductions.reductions import accumulator_dtype
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import MONOIDS, Semiring, semiring_named
from matnb.blocks.sums import num_nodes
from matnb.expr.nodes import Expr, MaskedMatMul, MatMul
from matnb.ops.combining import write_sum
from matnb.ops.reference import Value, dense, flat_positions, from_flat_positions, positions
from matnb.ops.registry import means
from matnb.program.kinds import ACCUMULATE, CUT, EXCHANGE, MOVE, PRODUCT, PRODUCT_AT_ENTRIES, Kind
from matnb.program.matching import Product
from matnb.program.operators import (
    MaskedMultiply,
    MaskedSum,
    Multiply,
    Operator,
    Push,
    PutTogether,
    Run,
)
from matnb.program.place import SMALL_BYTES, default_layout, laid_out
from matnb.program.plan import MANY_WORKERS, Slot, Workers
from matnb.program.regions import operand_region, region_size
from matnb.program.writer import PlanWriter, TaskWriter

_SHARE = Kind("share", shown=EXCHANGE)


@means(MatMul)
def _(node: MatMul, operands: Sequence[Value]) -> Value:
    """Return the product of two arrays over a semiring."""
    return _product(operands[0], operands[1], semiring_named(node.semiring), node.dtype)


@means(MaskedMatMul)
def _(node: MaskedMatMul, operands: Sequence[Value]) -> Value:
    """Return the part of a product that a mask leaves."""
    product = _product(operands[0], operands[1], semiring_named(node.semiring), node.dtype)
    return _masked(node, product, operands[2], node.complement)


def _product(left: Value, right: Value, semiring: Semiring, dtype: np.dtype) -> Value:
    if not sp.issparse(left) and not sp.issparse(right) and semiring.name == "plus_times":
        return np.asarray(np.matmul(left, right)).astype(dtype)
    if max(left.ndim, right.ndim) > 2:
        return _stacked_product(left, right, semiring, dtype)  # type: ignore[arg-type]  # dense here
    rows = _entries(left if left.ndim == 2 else left.reshape((1, -1)))
    columns = _entries(right if right.ndim == 2 else right.reshape((-1, 1)))
    if semiring.leaves_out and sp.issparse(left) != sp.issparse(right):
        rows = _present(rows, semiring) if left.ndim == 1 else rows
        columns = _present(columns, semiring) if right.ndim == 1 else columns
    shape = (left.shape[0] if left.ndim == 2 else 1, right.shape[1] if right.ndim == 2 else 1)
    result = _joined(rows, columns, shape, semiring, dtype)
    if sp.issparse(left) and sp.issparse(right):
        return result
    dense = np.full(shape, semiring.add.identity(dtype))
    dense[positions(result)] = result.data
    return dense.reshape(left.shape[: left.ndim - 1] + right.shape[1:])


def _masked(node: MaskedMatMul, product: Value, mask: Value, complement: bool) -> Value:
    chosen = (dense(mask) != 0) ^ complement
    if not node.sparse:
        return np.where(chosen, dense(product), semiring_named(node.semiring).add.identity(node.dtype))
    if sp.issparse(product):
        kept = chosen[positions(product)]
        return from_flat_positions(flat_positions(product)[kept], product.data[kept], node.shape)
    rows, columns = np.nonzero(chosen)
    return from_flat_positions(
        rows.astype(np.int64) * node.shape[1] + columns, product[rows, columns], node.shape
    )


def _stacked_product(left: np.ndarray, right: np.ndarray, semiring: Semiring, dtype: np.dtype) -> np.ndarray:
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    first = np.broadcast_to(left, (*batch, *left.shape[-2:])) if left.ndim > 1 else left
    second = np.broadcast_to(right, (*batch, *right.shape[-2:])) if right.ndim > 1 else right
    ends = (*(left.shape[-2:-1] if left.ndim > 1 else ()), *(right.shape[-1:] if right.ndim > 1 else ()))
    result = np.empty((*batch, *ends), dtype)
    for place in np.ndindex(batch):
        one = first[place] if left.ndim > 1 else first
        other = second[place] if right.ndim > 1 else second
        result[place] = _product(one, other, semiring, dtype)
    return result


def _entries(value: Value) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if sp.issparse(value):
        rows, columns = positions(value)
        return rows, columns.astype(np.int64), value.data
    places = np.indices(value.shape)
    return places[0].ravel(), places[1].ravel(), value.ravel()


def _present(
    entries: tuple[np.ndarray, np.ndarray, np.ndarray], semiring: Semiring
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows, columns, data = entries
    kept = data != semiring.add.identity(data.dtype)
    return rows[kept], columns[kept], data[kept]


def _joined(
    left: tuple[np.ndarray, np.ndarray, np.ndarray],
    right: tuple[np.ndarray, np.ndarray, np.ndarray],
    shape: tuple[int, int],
    semiring: Semiring,
    dtype: np.dtype,
) -> sp.csr_array:
    # Every entry (i, k) of the left meets every entry (k, j) of the right; products of one (i, j) are added.
    i, k, a = left
    row, j, b = right
    order = np.argsort(row, kind="stable")
    row, j, b = row[order], j[order], b[order]
    begin, end = np.searchsorted(row, k), np.searchsorted(row, k, side="right")
    counts = end - begin
    meets = np.repeat(np.arange(len(k)), counts)
    partner = (
        np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(begin, counts)
    )
    match semiring.multiply:
        case "times":
            products = a[meets].astype(dtype) * b[partner].astype(dtype)
        case "plus" if dtype.kind != "b":
            products = a[meets].astype(dtype) + b[partner].astype(dtype)
        case "min" | "max" if dtype.kind != "b":
            combine = np.minimum if semiring.multiply == "min" else np.maximum
            products = combine(a[meets].astype(dtype), b[partner].astype(dtype))
        case "plus" | "max" | "lor":
            products = (a[meets] != 0) | (b[partner] != 0)
        case "pair":
            products = np.ones(len(meets), dtype)
        case "first" | "second":
            products = (a[meets] if semiring.multiply == "first" else b[partner]).astype(dtype)
        case _:
            products = (a[meets] != 0) & (b[partner] != 0)
    keys: np.ndarray = i[meets].astype(np.int64) * max(1, shape[1]) + j[partner]
    order = np.argsort(keys, kind="stable")
    keys, products = keys[order], products[order]
    firsts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, int)
    add = getattr(np, MONOIDS[semiring.add.name].ufunc)
    data = add.reduceat(products, firsts).astype(dtype) if len(keys) else products.astype(dtype)
    return from_flat_positions(keys[firsts], data, shape)


# Tasks: each part where the heaviest operand is, then the parts of one block put together.

TASKS_PER_SLOT = 8  # of a product of sparse arrays, whose work is skewed: the longest of 16 took 0.2 of all
_SUM_BYTES = 8  # of the sums of real numbers at most
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


def product_layout(node: Expr, product: Product, cuts: ProductCuts, writer: PlanWriter) -> Layout:
    """Return the layout of a product: each block is where its operand is that stays in place.

    A block that is a sum of parts of many workers lies as any other array that is cut alike.
    """
    if not cuts.is_local and len(writer.workers.numbers) >= MANY_WORKERS:
        return laid_out(cuts.grid, writer.workers)
    first = (cuts.inner[0], cuts.inner[1])
    owners = (_owner(product, cuts, region, first, writer) for region in cuts.grid.regions())
    layout = Layout(cuts.grid, tuple(owners))
    if len(writer.workers.numbers) < MANY_WORKERS or sum(count > 1 for count in cuts.grid.counts) < 2:
        return layout
    # Each block reads a part of both operands: machines beside both axes may read less.
    reads = [_reads(product, region, first) for region in cuts.grid.regions()]
    return writer.lighter(node, (layout, laid_out(cuts.grid, writer.workers)), reads)


def lower_product(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that make the array of a product, and nothing else."""
    if product.pushed:
        lower_push(node, product, writer, workers)
        return
    cuts = product_cuts(node, product, writer, workers)
    layout = product_layout(node, product, cuts, writer)
    add, inners = semiring_named(product.semiring).add.name, list(itertools.pairwise(cuts.inner))
    homes = iter([] if cuts.is_local else _placed_parts(node, product, layout, inners, writer))
    kind = PRODUCT if isinstance(node, MatMul | MaskedMatMul) else PRODUCT_AT_ENTRIES
    for block in writer.each_block(node, layout, kind, detail_of(product, writer)):
        parts = []
        for inner in inners:
            task = block if cuts.is_local else TaskWriter()
            where = next(homes, block.owner)
            write_product(task, node, product, block.region, inner, where, writer, layout.owners.count(where))
            if task is not block:
                parts.append(writer.part_of(block, task, where, PRODUCT, block.num_bytes))
        if parts:
            write_sum(block, parts, add, writer)


def _placed_parts(
    node: Expr, product: Product, layout: Layout, inners: Sequence[tuple[int, int]], writer: PlanWriter
) -> list[int]:
    # The workers of the parts of all blocks, in order.
    parts = [
        (block, _reads(product, region, inner))
        for block, region in enumerate(layout.grid.regions())
        for inner in inners
    ]
    return writer.place(node, layout, parts)


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
        alone = num_tasks <= writer.workers.threads and operand.ndim == 1
        values.append(writer.read(task, operand, part, owner, alone))
    if product.left.sparse and product.right.sparse and product.mask is None:
        task.take(_between_bytes(product, regions, writer))
    return task.do(_operator(product, total), *values, num_bytes=writer.bytes_of(node, region))


def _between_bytes(product: Product, regions: Sequence[Region], writer: PlanWriter) -> int:
    # Of a product of sparse arrays: sums and bits of a row of the result, and operands' values in wide sums.
    width, wide = region_size(regions[1][1:]), accumulator_dtype("sum", product.dtype).itemsize
    wide = max(wide, _SUM_BYTES)
    both = zip(product.operands, regions, strict=True)
    cast = sum(writer.entries_of(one, part) for one, part in both if one.dtype.itemsize < wide)
    return (wide + 1) * width + wide * cast


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
        return MaskedSum(product.semiring, product.dtype, turned, product.scaled, total)
    if product.mask is None:
        return Multiply(product.semiring, product.dtype, product.transposed, _is_in_parts(product))
    return MaskedMultiply(product.semiring, product.dtype, turned, product.complement, product.scaled)


def _is_in_parts(product: Product) -> bool:
    left, right = product.left, product.right
    is_vector = left.sparse and right.ndim == 1 and not right.sparse and not product.transposed
    return is_vector and product.semiring == "plus_times" and product.dtype == right.dtype == np.float64


def turns(product: Product) -> bool:
    """Tell whether a dense right operand is turned once for each worker, since its columns are read."""
    dense = not product.left.sparse and not product.right.sparse
    return product.masked_by_entries and dense and product.right.ndim == 2 and not product.turned


def detail_of(product: Product, writer: PlanWriter) -> str:
    """Return what is special about a product in a few words, for a user."""
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


def _reads(product: Product, region: Region, inner: tuple[int, int]) -> list[tuple[Expr, Region]]:
    return list(zip(product.operands, _operand_regions(product, region, inner), strict=True))


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
    meetings = _likely_entries(product.left, writer) * _likely_entries(product.right, writer)
    meetings //= max(1, product.right.shape[0])
    num_tasks = min(TASKS_PER_SLOT * workers.slots, meetings // LEAST_MEETINGS)
    count = -(-num_tasks // max(1, cuts.grid.num_blocks))
    return replace(cuts, grid=Grid((finer_cuts(rows, max(1, count)), columns)))


def _likely_entries(node: Expr, writer: PlanWriter) -> int:
    # A loop's state counts as it begins: as large as it may become it would be cut into tasks that are
    # mostly far too small, and what it becomes is bounded as it runs.
    array = writer.registers.get(node)
    begun = None if array is None else array.num_begun
    return writer.entries[node] if begun is None else begun


# Products of a dense vector with a graph stored by rows: pushed from each block of rows, then combined.


def lower_push(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that push a vector along a graph.

    Each block of the graph gives a part as long as its columns, on the worker that has it, from the rows
    alone where the vector has something: small where those are few. What several blocks of a worker give is
    combined there, range by range of the result, and travels once.
    """
    x, A = product.left, product.right
    graph, along = writer.registers[A].layout, writer.registers[x].layout.grid
    layout = _result_layout(node, product, writer, workers)
    operator = Push(product.semiring, product.dtype, product.mask is not None, product.complement)
    pushed: list[tuple[Slot, int, tuple[int, int]]] = []
    for region, owner in zip(graph.grid.regions(), graph.owners, strict=True):
        rows, columns = region
        task = TaskWriter()
        values = [writer.read(task, A, region, owner)]
        if product.mask is not None:
            values.append(writer.read(task, product.mask, (columns,), owner))
        pieces = (intersect(along.region(index), (rows,)) for index in along.overlapping((rows,)))
        values.extend(writer.read(task, x, piece, owner) for piece in pieces)
        size = writer.bytes_of(node, (columns,))
        task.do(operator, *values, num_bytes=size)
        pushed.append((writer.add(task, owner, PRODUCT, size, node), owner, columns))
    monoid = semiring_named(product.semiring).add.name
    words = "pushed from where the vector has something"
    detail = f"{product.semiring} {words}" + (", inside a mask" if product.mask is not None else "")
    for block in writer.each_block(node, layout, PRODUCT, detail):
        ((start, stop),) = block.region
        parts: dict[int, list[tuple[Slot, tuple[int, int]]]] = {}
        for key, where, (first, last) in pushed:
            if first <= start and stop <= last:
                parts.setdefault(where, []).append((key, (start - first, stop - first)))
        here = parts.pop(block.owner, [])
        for where, theirs in parts.items():
            task = TaskWriter()
            together = PutTogether(monoid, node.dtype, tuple(at for _, at in theirs), False)
            task.do(together, *(task.read(key) for key, _ in theirs))
            key = writer.part_of(block, task, where, ACCUMULATE, block.num_bytes)
            here.append((key, (0, stop - start)))
        together = PutTogether(monoid, node.dtype, tuple(at for _, at in here), True)
        block.do(together, *(block.read(key) for key, _ in here))
        block.kind = ACCUMULATE


def _result_layout(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> Layout:
    # As the vectors it will meet: those of a loop's state are cut as the mask or the vector itself.
    graph = writer.registers[product.right].layout
    columns = graph.grid.cuts[1]
    if len(columns) > 2:
        count = len(columns) - 1
        return Layout(Grid((columns,)), graph.owners[:count])
    if product.mask is not None:
        return writer.registers[product.mask].layout
    if node.shape == product.left.shape:
        return writer.registers[product.left].layout
    return default_layout(node, writer.bytes_of(node), workers)


# Heavy rows in products: the work on a sparse block of one row, shared between threads and workers.
#
# The row's entries are cut in parts. Each has a task that makes its share of the sums, and the task that
# needs the row's product puts the shares together: the bits are those of one task for all of the row.

_MOST_LEVELS = 27  # rows of the right operand that a product keeps on the way


@dataclass(frozen=True)
class SharedRow:
    """A stored sparse block of one row whose product is shared.

    Attributes
    ----------
    key, home
        Of the block, and the worker that has it.
    num_entries
        That it stores.
    owners
        Of the parts, in the order of the entries.
    """

    key: Slot
    home: int
    num_entries: int
    owners: tuple[int, ...]


def shared_row(product: Product, region: Region, writer: PlanWriter) -> SharedRow | None:
    """Return what a region of the left operand is, if its product is to be shared; decided by counts alone.

    All workers share it where the parts are laid out once, before a loop. Elsewhere they would travel each
    time, so only the threads of its own worker do.
    """
    start, stop = region[0]
    if stop - start != 1 or not _is_known(product):
        return None
    array = writer.registers[product.left]
    rows, columns = array.layout.grid.cuts
    number = bisect_left(rows, start)
    if (
        array.is_guess
        or not array.block_nnz
        or rows[number : number + 2] != (start, stop)
        or columns != region[1]
    ):
        return None
    num_entries, home = array.block_nnz[number], array.layout.owners[number]
    if not is_shared(1, num_entries):
        return None
    owners = [home]
    if product.left in writer.steady:
        # Columns ascend in a row, and workers in the array: so parts mostly meet what is theirs of a vector.
        owners = list(dict.fromkeys((*array.layout.owners, *writer.workers.numbers)))
    count = min(len(owners) * writer.workers.threads, num_leaves(num_entries))
    if count < 2:
        return None
    spread = tuple(owners[part * len(owners) // count] for part in range(count))
    return SharedRow(array.keys[number], home, num_entries, spread)


def write_shared_row(
    task: TaskWriter, node: Expr, product: Product, row: SharedRow, region: Region, writer: PlanWriter
) -> tuple[bool, int]:
    """Write the tasks that make the shares of a row's product, and the step of ``task`` that adds them.

    Parameters
    ----------
    node
        The product.
    region
        What is read of the right operand.

    Returns
    -------
    tuple of bool and int
        The register of the product.
    """
    writer.note_reuse(product.left)
    count, width = len(row.owners), region_size(region[1:])
    parameters = (product.semiring, product.dtype)
    shares = []
    for part, owner in enumerate(row.owners):
        entries = _lay_out(product.left, row, part, writer)
        share = TaskWriter()
        operands = share.read(entries), writer.read(share, product.right, region, owner)
        first, last = leaves_of(row.num_entries, part, count)
        share.do(Run(multiply_part, parameters), *operands)
        share.take(_MOST_LEVELS * width * _SUM_BYTES)
        num_bytes = num_nodes(first, last) * width * _SUM_BYTES
        name = ("share of a row", node, row, region, part)
        shares.append(writer.add(share, owner, _SHARE, num_bytes, node, name))
    registers = [task.read(key) for key in (row.key, *shares)]
    return task.do(Run(row_of_parts, parameters), *registers, num_bytes=width * product.dtype.itemsize)


def shared_text(product: Product, writer: PlanWriter) -> str:
    """Return which rows are made in parts, for a user; of several the first."""
    if not _is_known(product):
        return ""
    array = writer.registers[product.left]
    if not any(map(is_shared, [1] * len(array.block_nnz), array.block_nnz)):
        return ""
    rows, columns = array.layout.grid.cuts
    found = {
        start: shared
        for start, stop in pairwise(rows)
        if (shared := shared_row(product, ((start, stop), columns), writer)) is not None  # type: ignore[arg-type]
    }
    if not found:
        return ""
    first, shared = next(iter(found.items()))
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"row {first:,}{more} in {len(shared.owners)} parts"


def _lay_out(left: Expr, row: SharedRow, part: int, writer: PlanWriter) -> Slot:
    # The slot of a part of the row, on the worker that has it.
    count, owner = len(row.owners), row.owners[part]
    first, last = leaves_of(row.num_entries, part, count)
    num_entries = entries_before(last, row.num_entries) - entries_before(first, row.num_entries)
    num_bytes = sparse_bytes(num_nodes(first, last), num_entries, left.dtype)
    task = TaskWriter()
    task.do(Run(part_of_row, (part, count)), task.read(row.key))
    cut = writer.add(task, row.home, CUT, num_bytes, left, ("part of a row", row.key, part, count))
    if owner == row.home:
        return cut
    task = TaskWriter()
    task.read(cut)
    return writer.add_lasting(task, owner, MOVE, num_bytes, left, ("moved", cut, owner))


def _is_known(product: Product) -> bool:
    # A sparse array times a dense one, of dtypes for which there are loops
    left, right = product.left, product.right
    is_plain = product.mask is None and not (product.transposed or product.turned or product.pushed)
    is_plain = is_plain and semiring_named(product.semiring).is_shared
    has_loop = product.dtype in SPARSE_DTYPES and product.dtype.kind != "c"  # whose shares follow no tree
    return is_plain and left.sparse and left.ndim == 2 and not right.sparse and has_loop
