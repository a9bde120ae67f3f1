"""A source read in this process, piece by piece: what the engine does on workers."""

from __future__ import annotations

from matnb.blocks.formats import Block
from matnb.blocks.grid import Grid, Region, whole
from matnb.io.source import Found, Source


def read_blocks(source: Source, num_pieces: int = 1, grid: Grid | None = None) -> tuple[Found, list[Block]]:
    """Return what was found in a source, and its blocks in the order of the grid; None is a single block."""
    parsed = [source.parse(piece) for piece in source.pieces(num_pieces)]
    context = source.merge([source.summary(one) for one in parsed])
    found: Found = context.found

    def block(region: Region) -> Block:
        return source.assemble([source.part(one, context, region) for one in parsed], context, region)

    return found, [block(region) for region in (grid or whole(found.shape)).regions()]


def read_here(source: Source, num_pieces: int = 1) -> tuple[Found, Block]:
    """Return what was found in a source, and all of it as one block."""
    found, blocks = read_blocks(source, num_pieces)
    return found, blocks[0]


def labels_here(source: Source) -> Block:
    """Return the original ids of a graph's vertices as a dense block."""
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(1)])
    return source.labels(context, 0, context.found.shape[0])
