"""Products of a dense vector with a graph stored by rows: pushed from each block of rows, then combined."""

from __future__ import annotations

from matnb.blocks.grid import Grid, intersect
from matnb.blocks.layout import Layout
from matnb.blocks.semiring import semiring_named
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Expr
from matnb.program.matching import Product
from matnb.program.operators import Push, PutTogether
from matnb.program.place import default_layout
from matnb.program.plan import Workers
from matnb.program.writer import PlanWriter, TaskWriter


def lower_push(node: Expr, product: Product, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that push a vector along a graph.

    Each block of the graph gives a part as long as its columns, on the worker that has it, from the rows
    alone where the vector has something: small where those are few. What several blocks of a worker give is
    combined there, range by range of the result, and travels once.
    """
    x, A = product.left, product.right
    graph, along = writer.registers[A].layout, writer.registers[x].layout.grid
    layout = _result_layout(node, product, writer, workers)
    cuts = (graph.grid.cuts, graph.owners, along.cuts, layout.grid.cuts, layout.owners)
    base = f"{node.digest.hex()}-{digest_of(*cuts).hex()[:8]}"
    operator = Push(product.semiring, product.dtype, product.mask is not None, product.complement)
    pushed: list[tuple[str, int, tuple[int, int]]] = []
    for number, (region, owner) in enumerate(zip(graph.grid.regions(), graph.owners, strict=True)):
        rows, columns = region
        task = TaskWriter()
        values = [writer.read(task, A, region, owner)]
        if product.mask is not None:
            values.append(writer.read(task, product.mask, (columns,), owner))
        pieces = (intersect(along.region(index), (rows,)) for index in along.overlapping((rows,)))
        values.extend(writer.read(task, x, piece, owner) for piece in pieces)
        size = writer.bytes_of(node, (columns,))
        task.do(operator, *values, num_bytes=size)
        key = writer.add(task.task(f"{base}-from-{number}", owner, "product"), size)
        pushed.append((key, owner, columns))
    monoid = semiring_named(product.semiring).add.name
    keys = []
    for number, (((start, stop),), owner) in enumerate(
        zip(layout.grid.regions(), layout.owners, strict=True)
    ):
        size = writer.bytes_of(node, ((start, stop),))
        parts: dict[int, list[tuple[str, tuple[int, int]]]] = {}
        for key, where, (first, last) in pushed:
            if first <= start and stop <= last:
                parts.setdefault(where, []).append((key, (start - first, stop - first)))
        here = parts.pop(owner, [])
        for where, theirs in parts.items():
            key = f"{base}-{number}-of-{where}"
            task = _combining(PutTogether(monoid, node.dtype, tuple(at for _, at in theirs), False), theirs)
            here.append((writer.add(task.task(key, where, "accumulate"), size), (0, stop - start)))
        task = _combining(PutTogether(monoid, node.dtype, tuple(at for _, at in here), True), here)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "accumulate"), size))
    words = "pushed from where the vector has something"
    detail = f"{product.semiring} {words}" + (", inside a mask" if product.mask is not None else "")
    writer.finish(node, layout, keys, "product", detail)


def _combining(operator: PutTogether, parts: list[tuple[str, tuple[int, int]]]) -> TaskWriter:
    task = TaskWriter()
    task.do(operator, *(task.read(key) for key, _ in parts))
    return task


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
