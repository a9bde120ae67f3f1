"""Files in and out: a file is read when it is loaded, on the workers, and written block by block."""

from __future__ import annotations

import os
import warnings

import numpy as np

from matnb.backend.cancellation import cancellable
from matnb.blocks.grid import BlocksSpec
from matnb.errors import FileContentWarning, OptionError
from matnb.expr.nodes import Expr, Load
from matnb.io.source import Found, Source, open_source
from matnb.io.write import check_target, write
from matnb.lazy.array import DistArray, expression_of
from matnb.lazy.columns import Columns
from matnb.lazy.creation import regridded
from matnb.lazy.recording import active_recording
from matnb.session.current import check_closed, current_session
from matnb.session.provenance import files_of, note_loaded


@cancellable()
def load(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    blocks: BlocksSpec = None,
    transpose: str = "auto",
    **options: object,
) -> DistArray | Columns:
    """Read a file on the workers, in parallel by byte range where it is text, and return its array.

    The file is read now, so a bad one is told of here. It is read again, if it is the same still, when its
    blocks were lost or gave way to others.

    Parameters
    ----------
    path
        ``.mtx`` and ``.mtx.gz`` (Matrix Market), ``.npz`` (SciPy's sparse and matnb's own), ``.npy``,
        ``.graph`` (METIS), ``.csv`` and ``.parquet`` (tables), ``.e`` and ``.txt`` (edge lists). A path, or a
        url that fsspec reads, such as ``https://``, ``s3://`` and ``memory://``, by each worker on its own.
    kind
        "matrixmarket", "npz", "npy", "metis", "csv", "parquet" or "edges", where the name's end does not
        tell.
    blocks
        As in :func:`matnb.asarray`.
    transpose
        How products with the transpose of a sparse array, such as ``A.T @ x``, are made: "keep" makes the
        transpose at the first one and keeps it; "none" never makes it for a dense ``x``, but adds each
        block's scattered share, whose last bits follow the cuts; "auto" begins so, and makes the transpose
        when it was asked for often enough to pay.
    **options
        Of the reader; for edge lists ``directed=True, relabel=True, weights="auto", self_loops="keep",
        duplicates=..., num_vertices=None, skip=0``; for tables ``columns=[...], dtype=None``, and of CSV
        ``delimiter=",", header=True, names=None, na_values=[...], skip=0`` too.

    Returns
    -------
    DistArray or Columns
        A sparse array with ``A[i, j]`` the entry or edge i -> j, a dense array, or named columns for a table.
        ``labels`` of a relabelled graph has the original vertex ids.

    Raises
    ------
    FileFormatError
        When the file is not what it claims to be, naming file, line and reason.
    MissingFileError
        When it is not there.
    OptionError
        For an unknown kind or option.
    UnsupportedError
        When the url's protocol, or the kind of file, needs a package that is not installed.

    Warns
    -----
    FileContentWarning
        Where the first line of an edge list has the number of edges that follow: it may be a header, which
        ``skip=1`` leaves out. How many vertices, edges, merged ones and loops there are is shown under the
        cell and by :func:`matnb.stamp`.
    """
    if transpose not in ("auto", "keep", "none"):
        raise OptionError(f"transpose={transpose!r}: choose 'auto', 'keep' or 'none'")
    source = open_source(path, kind=kind, **options)
    found, nodes = current_session().read(
        source,
        lambda told: _nodes(source, told, blocks, transpose),
    )
    told = ""
    if found.edges is not None and found.nnz is not None:
        told = found.edges.told(found.nnz)
        name = next(map(repr, files_of(source)))
        if (record := active_recording()) is not None:
            record.notes.append(f"loaded {name}: {told}")
        if found.edges.sizes:
            numbers = " ".join(map(str, found.edges.sizes))
            warnings.warn(
                f"{name}: its first line, {numbers}, has the number of edges that follow it, and was read as "
                "an edge: if it is a header, load it with skip=1",
                FileContentWarning,
                stacklevel=3,
            )
    note_loaded(source, told)
    array = DistArray(*nodes)
    return Columns(found.names, array, found.dtypes) if found.names else array


def _nodes(source: Source, found: Found, blocks: BlocksSpec, transpose: str) -> tuple[Expr, ...]:
    read = Load(source, "matrix", found.shape, found.dtype, found.sparse, transpose)
    matrix = regridded(read, blocks)
    if not found.has_labels:
        return (matrix,)
    return matrix, Load(source, "labels", found.shape[:1], np.dtype(np.int64), False)


@cancellable()
def save(array: object, path: str | os.PathLike[str]) -> None:
    """Compute an array and write it, block by block, so that this process holds one block at a time.

    The file appears whole or not at all.

    Parameters
    ----------
    array
        A DistArray, or what :func:`matnb.asarray` takes.
    path
        ``.npz`` (matnb's own, sparse or dense), ``.npy`` (dense) or ``.mtx``; a path, or a url that fsspec
        writes.

    Raises
    ------
    OptionError
        For another ending.
    LoopBodyError
        For an array of the body of a loop or branch.
    """
    node = expression_of(array)
    check_closed(node)
    check_target(path)
    session = current_session()
    layout, bring = session.blocks(node)
    write(path, layout.grid, node.dtype, node.sparse, bring)
