"""Arrays that come from outside: a user's data, files, generators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.blocks.formats import Block, Dense
from matnb.blocks.grid import Grid, Region, all_of, relative, whole
from matnb.blocks.kernels.shaping.shaping import cut
from matnb.blocks.layout import Layout, spread
from matnb.errors import SessionEnded
from matnb.expr.client_data import copied, held
from matnb.expr.digest import digest_of
from matnb.expr.nodes import Data, Expr, Load
from matnb.io.source import (
    Source,
    SourceFacts,
    assemble_block,
    facts_of_piece,
    found_in_source,
    labels_of_rows,
    merge_facts,
    parse_piece,
    part_of_piece,
)
from matnb.ops.reference import Value, value_of
from matnb.ops.registry import lowers, means
from matnb.program.kinds import MERGE, PART, READING, Kind, Role
from matnb.program.operators import Run
from matnb.program.place import default_layout
from matnb.program.plan import InlineBlock, Plan, Slot, Workers
from matnb.program.regions import region_size
from matnb.program.writer import PlanWriter, Slots, TaskWriter

_DATA = Kind("data", Role.SENDS)
_FACTS = Kind("facts", shown=READING)
_LOAD = Kind("load", Role.LOADS)
_PARSE = Kind("parse", shown=READING)


@means(Data)
def _(node: Data, operands: Sequence[Value]) -> Value:
    """Return a user's array.

    Raises
    ------
    SessionEnded
        Where it is on the workers alone.
    """
    block = held(node)
    if block is None:
        raise SessionEnded("an array that was sent to the workers is not in this process; give it again")
    return value_of(block)


@means(Load)
def _(node: Load, operands: Sequence[Value]) -> Value:
    """Return what a source has."""
    return value_of(read_here(node.source)[1] if node.field == "matrix" else labels_here(node.source))


# A source read in this process, piece by piece: what the engine does on workers.


def read_blocks(
    source: Source, num_pieces: int = 1, grid: Grid | None = None
) -> tuple[SourceFacts, list[Block]]:
    """Return what was found in a source, and its blocks in the order of the grid; None is a single block."""
    parsed = [source.parse(piece) for piece in source.pieces(num_pieces)]
    context = source.merge([source.summary(one) for one in parsed])
    found: SourceFacts = context.found

    def block(region: Region) -> Block:
        return source.assemble([source.part(one, context, region) for one in parsed], context, region)

    return found, [block(region) for region in (grid or whole(found.shape)).regions()]


def read_here(source: Source, num_pieces: int = 1) -> tuple[SourceFacts, Block]:
    """Return what was found in a source, and all of it as one block."""
    found, blocks = read_blocks(source, num_pieces)
    return found, blocks[0]


def labels_here(source: Source) -> Block:
    """Return the original ids of a graph's vertices as a dense block."""
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(1)])
    return source.labels(context, 0, context.found.shape[0])


# Tasks: blocks of a user's data are sent before or along with them; sources are read in pieces.

INLINE_BYTES = 16 * 1024  # up to here a block is sent along with the tasks, which saves a round trip


@lowers(Data)
def _(node: Data, writer: PlanWriter, workers: Workers) -> None:
    """Write what brings a user's array to its owners."""
    lower_data(node, node, default_layout(node, writer.bytes_of(node), workers), writer)


@lowers(Load)
def _(node: Load, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that read a source."""
    lower_load(node, node, default_layout(node, writer.bytes_of(node), workers), writer, workers)


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
    if held(node) is None:
        raise KeyError(node)
    keys = []
    for region, owner in zip(layout.grid.regions(), layout.owners, strict=True):
        num_bytes = writer.bytes_of(node, region)
        if num_bytes <= INLINE_BYTES:
            task = TaskWriter()
            task.read(writer.inline(node, region))
            keys.append(writer.add(task, owner, _DATA, num_bytes, made))
        else:
            keys.append(writer.ship(node, region, owner, num_bytes))
    writer.finish(made, layout, keys, _DATA, "given in this process")


def inline_blocks(plan: Plan) -> dict[Slot, Block]:
    """Return the numbers and small blocks that are sent along with a plan's tasks, of this run's arrays."""
    found: dict[Slot, Block] = {}
    for slot, one in plan.inline.items():
        if isinstance(one, InlineBlock):
            block = held(one.expression)
            assert block is not None, "a plan sends what is held here"
            found[slot] = piece_of(block, one.region)
        else:
            found[slot] = Dense(one.value)
    return found


def piece_of(block: Block, region: Region) -> Block:
    """Return a rectangle of a user's array with memory of its own."""
    whole = all_of(block.shape)
    return copied(cut(block, relative(region, whole)))


def pieces_of(block: Block, regions: Sequence[Region]) -> list[Block]:
    """Return rectangles of a user's array with memory of its own.

    Rows that are all of a dense one lie one after the other in it, so that they are put together at no cost.
    """
    if isinstance(block, Dense) and len(regions) > 1:
        rest = all_of(block.shape)[1:]
        if all(one[1:] == rest for one in regions) and sum(map(region_size, regions)) == block.values.size:
            own = copied(block)
            return [part_of(own, region) for region in regions]
    return [piece_of(block, region) for region in regions]


def part_of(block: Block, region: Region) -> Block:
    """Return a rectangle of a block that nobody writes to, which shares its memory where it lies in a row."""
    part = cut(block, relative(region, all_of(block.shape)))
    return part if not isinstance(part, Dense) or part.values.flags.c_contiguous else copied(part)


def lower_load(node: Load, made: Expr, layout: Layout, writer: PlanWriter, workers: Workers) -> None:
    """Write the tasks that read a source: pieces in parallel, their facts merged, blocks put together.

    The blocks are of ``made``: the array itself, or an expression that asks for its cuts.
    """
    source = node.source
    parsed, merged = parsing_tasks(source, workers, writer)
    # The parts of a block are together as large as the block, and those of a piece as the piece, wherever the
    # entries lie: each is counted as an equal share. Threads beside each other take more than that (measured:
    # four, of a symmetric matrix of 8e6 entries, 190 MB more): each but one is counted with a block again.
    for block in writer.each_block(made, layout, _LOAD, repr(source)):
        if node.field == "labels":
            block.do(Run(labels_of_rows, (source, *block.region[0])), block.read(merged))
            continue
        parts = []
        for one in parsed:
            task = TaskWriter()
            task.do(Run(part_of_piece, (source, block.region)), task.read(one), task.read(merged))
            share = -(-block.num_bytes // len(parsed))
            parts.append(writer.part_of(block, task, writer.owner_of(one), PART, share))
        block.take(block.num_bytes - block.num_bytes // workers.threads)
        assemble = Run(assemble_block, (source, block.region))
        block.do(assemble, block.read(merged), *map(block.read, parts))


def parsing_tasks(source: Source, workers: Workers, writer: PlanWriter) -> tuple[list[Slot], Slot]:
    """Write the tasks that read a source through; return the slots of the pieces and of the merged facts."""
    source = source.reading()
    pieces = source.pieces(workers.slots)
    name = digest_of("source", source.identity()), len(pieces)
    # Where nothing bounds what is in a file, reading stops at a piece's share of its worker's memory.
    each = -(-len(pieces) // max(1, len(workers.numbers)))
    bounded = source
    if workers.memory_bytes:
        bounded = source.within(workers.memory_bytes // len(workers.numbers) // max(1, each))
    parsed, facts = [], []
    for number, (piece, owner) in enumerate(zip(pieces, spread(len(pieces), workers.numbers), strict=True)):
        size, extra = source.parsing_bytes(piece, len(pieces))
        task = TaskWriter()
        task.do(Run(parse_piece, (bounded, piece)))
        task.take(extra)
        parsed.append(writer.add(task, owner, _PARSE, size, name=(*name, "piece", number)))
        task = TaskWriter()
        task.do(Run(facts_of_piece, (source,)), task.read(parsed[-1]))
        facts.append(writer.add(task, owner, _FACTS, 64, name=(*name, "facts", number)))
    task = TaskWriter()
    task.do(Run(merge_facts, (source,)), *(task.read(key) for key in facts))
    return parsed, writer.add(task, workers.numbers[0], MERGE, 64, name=(*name, "merged"))


@dataclass(frozen=True)
class SourceScan:
    """How a source is read through.

    Attributes
    ----------
    plan
        Reads it.
    held, told
        Slots worth holding, and that of what is known then.
    slots
        In which another plan, that reads what is held, goes on.
    """

    plan: Plan
    held: tuple[Slot, ...]
    told: Slot
    slots: Slots


def reading_plan(source: Source, workers: Workers) -> SourceScan:
    """Return the plan that reads a source through."""
    slots = Slots()
    writer = PlanWriter({}, {}, {}, workers, slots)
    parsed, merged = parsing_tasks(source, workers, writer)
    task = TaskWriter()
    task.do(Run(found_in_source), task.read(merged))
    told = writer.add(task, writer.owner_of(merged), _FACTS, 64)
    slots.names.update(writer.names)
    return SourceScan(writer.plan(()), (*parsed, merged), told, slots)
