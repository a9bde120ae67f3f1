"""Heavy rows in products: the work on a sparse block of one row, shared between threads and workers.

The row's entries are cut in parts. Each has a task that makes its share of the sums, and the task that needs
the row's product puts the shares together: the bits are those of one task for all of the row.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise

from matnb.blocks.formats import SPARSE_DTYPES, sparse_bytes
from matnb.blocks.grid import Region
from matnb.blocks.kernels.shared_rows import part_of_row, row_of_parts
from matnb.blocks.shared_rows import entries_before, is_shared, leaves_of, num_leaves
from matnb.blocks.sums import num_nodes
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.program.matching import Product
from matnb.program.operators import MultiplyPart, Run
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, TaskWriter

_SUM_BYTES = 8  # of a share's elements at most
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

    key: str
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
        owners = list(dict.fromkeys((*array.layout.owners, *writer.numbers)))
    count = min(len(owners) * writer.num_threads, num_leaves(num_entries))
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
    tag = digest_of(row.key, region, row.owners).hex()[:12]
    shares = []
    for part, owner in enumerate(row.owners):
        entries = _lay_out(product.left, row, part, writer)
        share = TaskWriter()
        operands = share.read(entries), writer.read(share, product.right, region, owner)
        first, last = leaves_of(row.num_entries, part, count)
        share.do(MultiplyPart(*parameters), *operands)
        share.take(_MOST_LEVELS * width * _SUM_BYTES)
        key = f"{node.digest.hex()}-row-{tag}-share-{part}"
        num_bytes = num_nodes(first, last) * width * _SUM_BYTES
        shares.append(writer.add(share.task(key, owner, "share"), num_bytes))
    registers = [task.read(key) for key in (row.key, *shares)]
    return task.do(Run(row_of_parts, parameters), *registers, num_bytes=width * product.dtype.itemsize)


def shared_text(product: Product, writer: PlanWriter) -> str:
    """Return which rows are made in parts, for a person; of several the first."""
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


def _lay_out(left: Expr, row: SharedRow, part: int, writer: PlanWriter) -> str:
    # The key of a part of the row, on the worker that has it.
    count, owner = len(row.owners), row.owners[part]
    first, last = leaves_of(row.num_entries, part, count)
    num_entries = entries_before(last, row.num_entries) - entries_before(first, row.num_entries)
    num_bytes = sparse_bytes(num_nodes(first, last), num_entries, left.dtype)
    key = f"{row.key}-part-{part}.{count}"
    if not writer.has(key):
        task = TaskWriter()
        task.do(Run(part_of_row, (part, count)), task.read(row.key))
        writer.add(task.task(key, row.home, "cut"), num_bytes)
    if owner == row.home:
        return key
    moved = f"{key}-on-{owner}"
    if not writer.has(moved):
        task = TaskWriter()
        task.read(key)
        writer.add_lasting(task.task(moved, owner, "move"), num_bytes)
    return moved


def _is_known(product: Product) -> bool:
    # A sparse array times a dense one, of dtypes for which there are loops
    left, right = product.left, product.right
    is_plain = product.mask is None and not (product.transposed or product.turned or product.pushed)
    has_loop = product.dtype in SPARSE_DTYPES and product.dtype.kind != "c"  # whose shares follow no tree
    return is_plain and left.sparse and left.ndim == 2 and not right.sparse and has_loop
