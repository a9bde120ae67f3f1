"""Edge lists that are written: the ids of an edge's vertices and, where there are some, its weight a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Csr
from matnb.blocks.grid import Grid
from matnb.errors import DTypeError, FileContentWarning, ShapeError, warn

EDGE_SUFFIXES = (".txt", ".edges", ".edgelist")
_BATCH = 1 << 15  # lines made at once


def write_edges(
    stream: IO[bytes],
    grid: Grid,
    dtype: np.dtype,
    sparse: bool,
    fetch: Callable[[int], Block],
    ids: npt.NDArray[Any] | None,
) -> None:
    """Write a line for each stored entry, those of a boolean matrix for each that is True.

    Parameters
    ----------
    stream
        Where to write.
    grid, dtype, sparse, fetch
        As of :func:`matnb.io.write.write`.
    ids
        Of the vertices; by default the numbers of rows.

    Raises
    ------
    DTypeError
        For a dense or complex matrix, and for ids that are not whole numbers, which no list is read with.
    ShapeError
        For a matrix that is not square.

    Warns
    -----
    FileContentWarning
        Where vertices have no edge, as no line names them.
    """
    if not sparse or dtype.kind == "c":
        kind = "a complex" if sparse else "a dense"
        raise DTypeError(f"{kind} array as an edge list, which has a number for each stored edge: save .npz")
    if grid.shape[0] != grid.shape[1]:
        raise ShapeError(
            f"shape {grid.shape} as an edge list, whose vertices are rows and columns: save .mtx"
        )
    if ids is not None and (ids.dtype.kind not in "iu" or ids.min(initial=0) < 0):
        raise DTypeError("names of vertices in an edge list, whose ids are whole numbers: save .npz")
    is_there = np.zeros(grid.shape[0], np.bool_)
    weighted = _write(stream, grid, dtype, fetch, ids, is_there, weighted=False)
    if weighted:  # a block has values after blocks that have none
        stream.seek(0)
        stream.truncate()
        _write(stream, grid, dtype, fetch, ids, is_there, weighted=True)
    if alone := int((~is_there).sum()):
        warn(
            f"{alone:,} of {is_there.size:,} vertices have no edge, so no line of the edge list names them: "
            ".npz keeps them",
            FileContentWarning,
        )


def _write(
    stream: IO[bytes],
    grid: Grid,
    dtype: np.dtype,
    fetch: Callable[[int], Block],
    ids: npt.NDArray[Any] | None,
    is_there: npt.NDArray[np.bool_],
    weighted: bool,
) -> bool:
    # True where weights have to be written and are not.
    style = "%d\t%d\t%.17g\n" if dtype.kind == "f" else "%d\t%d\t%d\n"
    for number, ((top, bottom), (left, _)) in enumerate(grid.regions()):
        block = fetch(number)
        if not isinstance(block, Csr):
            continue
        if block.values is not None and dtype.kind != "b" and not weighted:
            return True
        kept = block.entries != 0 if dtype.kind == "b" else np.ones(block.nnz, np.bool_)
        rows = np.repeat(np.arange(top, bottom), np.diff(block.pointers))[kept]
        columns = block.columns[kept] + np.int64(left)
        is_there[rows] = is_there[columns] = True
        ends = (rows, columns) if ids is None else (ids[rows], ids[columns])
        for lines in _batches(*ends, block.entries[kept] if weighted else None, style=style):
            stream.write(lines.encode())
    return False


def _batches(*columns: npt.NDArray[Any] | None, style: str) -> Iterator[str]:
    sources, targets, weights = columns
    assert sources is not None, "an edge has two ends"
    assert targets is not None, "an edge has two ends"
    for start in range(0, sources.size, _BATCH):
        part = slice(start, start + _BATCH)
        pairs = zip(sources[part].tolist(), targets[part].tolist(), strict=True)
        if weights is None:
            yield "".join([f"{one}\t{other}\n" for one, other in pairs])
        else:
            found = weights[part].tolist()
            yield "".join([style % (*pair, one) for pair, one in zip(pairs, found, strict=True)])
