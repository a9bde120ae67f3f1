"""What tests of readers share: a source read in pieces and blocks, put together again as one NumPy array."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.blocks.formats import to_numpy
from matnb.blocks.grid import Grid, regular
from matnb.io.columns import ColumnSource, TableSource
from matnb.io.source import Source, SourceFacts
from matnb.ops.creation import read_blocks


def read_whole(source: Source, num_pieces: int = 1, counts: int = 1) -> tuple[SourceFacts, np.ndarray]:
    """Read a source in pieces, and in ``counts`` blocks along each axis, and return it as one array."""
    found, _ = read_blocks(source, num_pieces)
    grid = regular(found.shape, (counts,) * len(found.shape))
    return found, read_grid(source, num_pieces, grid)[1]


def read_grid(source: Source, num_pieces: int, grid: Grid) -> tuple[SourceFacts, np.ndarray]:
    """Read a source in pieces and the blocks of a grid, checking each block, and return it as one array."""
    found, blocks = read_blocks(source, num_pieces, grid)
    whole = np.zeros(found.shape, found.dtype)
    for region, block in zip(grid.regions(), blocks, strict=True):
        assert block.shape == tuple(stop - start for start, stop in region)
        assert block.dtype == found.dtype
        whole[tuple(slice(*span) for span in region)] = to_numpy(block)
    return found, whole


def read_table(source: TableSource, num_pieces: int = 1) -> dict[str, list[Any]]:
    """Read a table in pieces, and return the values of each column, None where they are missing."""
    context = source.merge([source.summary(source.parse(piece)) for piece in source.pieces(num_pieces)])
    found: dict[str, list[Any]] = {}
    for place, facts in enumerate(context.found.columns):
        values, mask = (
            np.concatenate(
                [to_numpy(one) for one in read_blocks(ColumnSource(source, place, gone), num_pieces)[1]]
            )
            for gone in (False, True)
        )
        if facts.labels is not None:
            labels = [*facts.labels.to_pylist(), None]
            found[facts.name] = [labels[code] for code in values]
        elif facts.kind.unit:
            found[facts.name] = values.view(facts.kind.dtype).astype(str).tolist()
        else:
            missing = np.isnan(values) if values.dtype.kind == "f" else mask
            found[facts.name] = [
                None if gone else value for gone, value in zip(missing, values.tolist(), strict=True)
            ]
    return found
