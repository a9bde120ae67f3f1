"""Arrays that come from outside: a user's data, files, generators."""

from __future__ import annotations

from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Region, relative
from matnb.blocks.kernels.shaping import cut
from matnb.blocks.layout import Layout, spread
from matnb.expr.client_data import copied, held
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Data, Expr, Load
from matnb.io.source import Source
from matnb.program.operators import Assemble, Constant, Labels, Merge, Parse, ReadPart, Summarize, Tell
from matnb.program.place import layout_tag
from matnb.program.plan import Plan, Shipment, Workers
from matnb.program.writer import PlanWriter, TaskWriter

INLINE_BYTES = 16 * 1024  # up to here a block travels inside the plan, which saves a round trip


def lower_data(node: Data, made: Expr, layout: Layout, writer: PlanWriter) -> None:
    """Write what brings a user's array to its owners.

    Parameters
    ----------
    node
        The array.
    made
        The expression that the blocks are of: the array, or one that asks for its cuts.

    Raises
    ------
    KeyError
        When no copy is held here; the caller has checked.
    """
    block = held(node)
    if block is None:
        raise KeyError(node)
    base = f"{made.digest.hex()}-{layout_tag(layout)}"
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        key, num_bytes = f"{base}-{number}", writer.bytes_of(node, region)
        if num_bytes <= INLINE_BYTES:
            task = TaskWriter()
            task.do(Constant(piece_of(block, region)))
            writer.add(task.task(key, owner, "data"), num_bytes)
        else:
            writer.ship(Shipment(key, node, region, owner), num_bytes)
        keys.append(key)
    writer.finish(made, layout, keys, "data", "given in this process")


def piece_of(block: Block, region: Region) -> Block:
    """Return a rectangle of a user's array with memory of its own."""
    whole = tuple((0, length) for length in block.shape)
    return copied(cut(block, relative(region, whole)))


def part_of(block: Block, region: Region) -> Block:
    """Return a rectangle of a block that nobody writes to, which shares its memory where it lies in a row."""
    part = cut(block, relative(region, tuple((0, length) for length in block.shape)))
    return part if not isinstance(part, Dense) or part.values.flags.c_contiguous else copied(part)


def lower_load(node: Load, made: Expr, layout: Layout, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that read a source: pieces in parallel, their facts merged, blocks put together.

    The blocks are of ``made``: the array itself, or an expression that asks for its cuts.
    """
    source = node.source
    parsed, merged = parsing_tasks(source, workers, writer)
    base = f"{made.digest.hex()}-{layout_tag(layout)}"
    keys = []
    for number, (region, owner) in enumerate(zip(layout.grid.regions(), layout.owners, strict=True)):
        task = TaskWriter()
        size = writer.bytes_of(node, region)
        if node.field == "labels":
            task.do(Labels(source, *region[0]), task.read(merged))
        else:
            parts = [_part(source, one, merged, region, base, number, size, writer) for one in parsed]
            registers = [task.read(part) for part in parts]
            task.do(Assemble(source, region), task.read(merged), *registers)
        keys.append(writer.add(task.task(f"{base}-{number}", owner, "load"), size))
    writer.finish(made, layout, keys, "load", repr(source))


def parsing_tasks(source: Source, workers: Workers, writer: PlanWriter) -> tuple[list[str], str]:
    """Write the tasks that read a source through; return the keys of the pieces and of the merged facts."""
    base = digest_of("source", source.identity()).hex()
    pieces = source.pieces(workers.slots)
    # Where nothing bounds what is in a file, reading stops at a piece's share of its worker's memory.
    each = -(-len(pieces) // max(1, len(workers.numbers)))
    bounded = source
    if workers.memory_bytes:
        bounded = source.within(workers.memory_bytes // len(workers.numbers) // max(1, each))
    parsed, facts = [], []
    for number, (piece, owner) in enumerate(zip(pieces, spread(len(pieces), workers.numbers), strict=True)):
        size, extra = source.parsing_bytes(piece, len(pieces))
        task = TaskWriter()
        task.do(Parse(bounded, piece))
        task.take(extra)
        parsed.append(writer.add(task.task(f"{base}-{len(pieces)}-parse-{number}", owner, "parse"), size))
        task = TaskWriter()
        task.do(Summarize(source), task.read(parsed[-1]))
        key = f"{base}-{len(pieces)}-facts-{number}"
        facts.append(writer.add(task.task(key, owner, "facts"), 64))
    task = TaskWriter()
    task.do(Merge(source), *(task.read(key) for key in facts))
    return parsed, writer.add(task.task(f"{base}-{len(pieces)}-merge", workers.numbers[0], "merge"), 64)


def _part(
    source: Source,
    parsed: str,
    merged: str,
    region: Region,
    base: str,
    number: int,
    size: int,
    writer: PlanWriter,
) -> str:
    task = TaskWriter()
    task.do(ReadPart(source, region), task.read(parsed), task.read(merged))
    key = f"{base}-{number}-from-{parsed.rsplit('-', 1)[1]}"
    return writer.add(task.task(key, writer.owner_of(parsed), "part"), size)


def reading_plan(source: Source, workers: Workers) -> tuple[Plan, tuple[str, ...], str]:
    """Return the plan that reads a source through, the keys worth holding, and that of what is known then."""
    writer = PlanWriter({}, {}, {}, workers.threads)
    parsed, merged = parsing_tasks(source, workers, writer)
    task = TaskWriter()
    task.do(Tell(), task.read(merged))
    told = writer.add(task.task(f"{merged}-told", writer.owner_of(merged), "facts"), 64)
    return writer.plan(()), (*parsed, merged), told
