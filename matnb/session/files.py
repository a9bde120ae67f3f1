"""Files in and out, read and written on the workers, and which ones this process has loaded."""

from __future__ import annotations

import hashlib
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from matnb.backend.cluster.cancellation import cancellable
from matnb.blocks.grid import BlocksSpec
from matnb.errors import DTypeError, FileContentWarning, MatnbError, OptionError, TooLargeError, warn
from matnb.expr.nodes import Expr, Load
from matnb.io.columns import ColumnSource, TableSource
from matnb.io.edge_lines import EDGE_SUFFIXES
from matnb.io.files import File, RemoteFile, files_of, find_local, suffix_of
from matnb.io.folders import Where, open_files
from matnb.io.npz import saved_labels
from matnb.io.source import Source, SourceFacts
from matnb.io.write import check_target, write
from matnb.lazy.array import DistArray
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import regridded
from matnb.lazy.handles import expression_of
from matnb.lazy.labels import NOTED_LABELS
from matnb.lazy.recording import active_recording
from matnb.lazy.registry import LOADED, writer_of
from matnb.location import Location
from matnb.session.current import check_closed, current_session


@cancellable()
def load(
    path: Where,
    *,
    kind: str | None = None,
    blocks: BlocksSpec = None,
    transpose: str = "auto",
    **options: object,
) -> DistArray | Table:  # type: ignore[name-defined]  # noqa: F821  a family's, known here by name alone
    """Read a file on the workers, text in parallel by byte range, and return an array or a table.

    The file is read immediately, so a bad one raises its error here. If blocks are lost, or evicted from
    memory, they are read again from the file, provided that it has not changed.

    Parameters
    ----------
    path
        ``.mtx`` and ``.mtx.gz`` (Matrix Market), ``.npz`` (SciPy's sparse and matnb's own), ``.npy``,
        ``.graph`` (METIS), ``.csv`` and ``.tsv`` (also ``.csv.gz``, ``.zst``, ``.bz2``, ``.xz``, ``.zip``),
        ``.parquet``, ``.arrow`` and ``.feather`` (tables), ``.e`` and ``.txt`` (edge lists), ``.svm`` and
        ``.libsvm`` (rows of svmlight), ``.ldac`` (documents of LDA-C). A path, or a url that fsspec reads,
        such as ``https://``, ``s3://`` and ``memory://``, by each worker on its own. Several tables with the
        same columns are loaded as one: those of a folder, of a pattern such as ``"trips/*.csv"`` (both in the
        order of names) or of a list. Folders named ``key=value``, as Hive and Spark write them, are read too,
        and the keys are columns. Workers on other machines need the same path: a folder that all share, or a
        copy, which may have other times.
    kind
        "matrixmarket", "npz", "npy", "metis", "csv", "parquet", "arrow", "edges", "svmlight" or "lda-c",
        if the file name's suffix does not say.
    blocks
        As in :func:`matnb.asarray`.
    transpose
        How products with the transpose of a sparse array, such as ``A.T @ x``, are computed: "keep" builds
        the transpose at the first one and keeps it; "none" never builds it for a dense ``x`` but sums the
        contributions of the blocks, so that the last bits depend on how the array is split; "auto" starts
        like "none", and builds the transpose once it has been used often enough to pay off.
    **options
        Of the reader, by the kind of file.

        Edge lists: ``directed=True, relabel=True, weights="auto", self_loops="keep", duplicates=...,
        num_vertices=None, skip=0, comments="#%"``. svmlight and LDA-C: ``zero_based="auto",
        n_features=None``. Tables of every kind: ``columns`` (list of names, or of numbers from 0 on): those
        that are read, in that order; ``dtype`` (a dtype, or a dict by name): instead of that of the file, and
        "text" for what has to stay as it is written. CSV, in pandas' words:

        - ``delimiter`` or ``sep`` (str or None): the character between fields, or ``"\\s+"`` for any number
          of spaces; None finds the comma, semicolon, tab, bar or space that makes equally long rows
        - ``header`` (int, bool, None or "infer"), ``names`` (list of str): which line has the names, and
          other names; with ``names`` alone there is no header
        - ``skip`` or ``skiprows`` (int, or list of int): how many lines at the beginning are not read, or
          which, counted from 0: ``[1]`` leaves out units under the header
        - ``nrows`` (int): how many rows are read; ``usecols`` (list): the same as ``columns``
        - ``na_values`` (str, number, list, or dict by name), ``keep_default_na`` (bool): more texts or
          numbers that stand for no value, and whether empty fields, NA, null and the like do. What is quoted
          is text, as ``"NA"`` and ``"02134"``, unless it is in ``na_values``
        - ``parse_dates`` (list): columns that have to be dates or times, in quotes too; those of ISO 8601
          are found without it
        - ``decimal``, ``thousands`` (str): the characters in numbers; decimal commas are found in files that
          commas do not separate
        - ``encoding`` (str): of the text, "utf-8" or what a mark at its beginning tells; ``comment`` (str):
          the character before comments
        - ``quoted_text`` (bool): False takes no notice of quotes, for files in which numbers are quoted, too

    Returns
    -------
    DistArray or Table
        A sparse array with ``A[i, j]`` the entry or edge i -> j, a dense array, or a table of named columns.
        ``labels`` has the original vertex ids of a relabelled graph, or the targets of an svmlight file.

    Raises
    ------
    FileFormatError
        If the file is malformed; the message names file, line and reason. If one of several tables has other
        columns than the first.
    MissingFileError
        If the file does not exist.
    OptionError
        For an unknown kind or option.
    UnsupportedError
        When the url's protocol, or the kind of file, needs a package that is not installed.

    Warns
    -----
    FileContentWarning
        If columns of CSV stay text since no type of numbers holds their whole numbers exactly, and if a CSV
        file may mean something else than what was read; the message names the option that says so. If the
        first line of an edge list contains the number of edges that follow: it may be a header, which
        ``skip=1`` leaves out. If its third column seems to be times (whole numbers of 9 or 10 digits, or the
        same in finer units, in a narrow range): they are taken as weights unless ``weights=False``. The
        numbers of vertices, edges, merged edges and self-loops are shown under the cell and by
        :func:`matnb.stamp`.
    """
    if transpose not in ("auto", "keep", "none"):
        raise OptionError(f"transpose={transpose!r}: choose 'auto', 'keep' or 'none'")
    source = open_files(path, kind=kind, **options)
    found, nodes = current_session().read(
        source,
        lambda known: _nodes(source, known, blocks, transpose),
    )
    counts = ""
    if found.edges is not None and found.nnz is not None:
        counts = found.edges.told(found.nnz)
        name = next(map(repr, files_of(source)))
        if (record := active_recording()) is not None:
            record.notes.append(f"loaded {name}: {counts}")
        if not found.shape[0]:
            way = "comments= tells which characters begin a comment"
            warn(f"{name}: no line is an edge, and the graph has no vertices; {way}", FileContentWarning)
        if found.edges.sizes:
            numbers = " ".join(map(str, found.edges.sizes))
            warn(
                f"{name}: its first line, {numbers}, contains the number of edges that follow and was read "
                "as an edge; if it is a header, load the file with skip=1",
                FileContentWarning,
            )
        if found.edges.times:
            first, last = found.edges.times
            warn(
                f"{name}: its third column, {first} to {last}, seems to be times and was taken as weights: "
                "weights=False leaves it out, weights=True takes it without this warning",
                FileContentWarning,
            )
    loaded.note(source, counts)
    if (labels := saved_labels(source)) is not None:
        NOTED_LABELS[nodes[0]] = labels
    return LOADED["table"](found, nodes) if found.columns else DistArray(*nodes)


def _nodes(source: Source, found: SourceFacts, blocks: BlocksSpec, transpose: str) -> tuple[Expr, ...]:
    if found.columns:
        made = []
        for place, one in enumerate(found.columns):
            made.append(_column(source, place, found, one.kind.stored, blocks))
            if one.kind.has_mask and one.num_missing:
                made.append(_column(source, place, found, np.dtype(np.bool_), blocks, mask=True))
        return tuple(made)
    read = Load(source, "matrix", found.shape, found.dtype, found.sparse, transpose)
    matrix = regridded(read, blocks)
    if not found.has_labels:
        return (matrix,)
    return matrix, Load(source, "labels", found.shape[:1], found.labels_dtype, False)


def _column(
    source: Source, place: int, found: SourceFacts, dtype: np.dtype, blocks: BlocksSpec, mask: bool = False
) -> Expr:
    column = ColumnSource(cast(TableSource, source), place, mask)
    return regridded(Load(column, "matrix", found.shape[:1], dtype, False), blocks)


@cancellable()
def save(array: ArrayLike, path: str | os.PathLike[str], *, sep: str = ",", decimal: str = ".") -> None:
    """Compute an array or a table and write it block by block; this process holds one block at a time.

    The file is written completely or not at all.

    Parameters
    ----------
    array
        A DistArray, or what :func:`matnb.asarray` takes; or a table, or what :func:`matnb.table` takes; or a
        nested array, of which some million values are held at a time, and its longest segment.
    path
        ``.npz`` (sparse as ``scipy.sparse.load_npz`` reads it; dense, matnb's own), ``.npy`` (dense),
        ``.mtx``, or of a sparse square matrix ``.txt``, ``.edges`` or ``.edgelist``: an edge list, with a
        line for each stored entry. ``.npz`` keeps the labels of vertices, and an edge list those that are
        whole numbers; a table as ``.parquet``,
        ``.arrow``, ``.feather`` or ``.csv``; a nested array as ``.parquet``, ``.arrow`` or ``.feather``, in
        one column of lists, "values", which :func:`matnb.nested.load` reads; a path, or a url that fsspec
        writes.
    sep, decimal
        Of tables in ``.csv``: what is between values, and before the fraction of floats, such as ";" and ",".

    Raises
    ------
    OptionError
        For an unknown file suffix.
    LoopBodyError
        For an array of the body of a loop or branch.
    DTypeError, UnsupportedError, TooLargeError
        For a nested array of complex numbers, or with ``positions``, which lists do not have; and for one
        whose longest segment exceeds the session's ``compute_limit``.
    """
    if hasattr(path if isinstance(array, (str, os.PathLike)) else array, "get_params"):
        raise DTypeError("mn.save writes arrays and tables: write an estimator with joblib.dump(model, path)")
    if isinstance(array, (str, os.PathLike)):  # NumPy's and SciPy's order
        raise DTypeError(
            f"mn.save takes the array first, then the path: write mn.save(x, {os.fspath(array)!r})"
        )
    if (write_own := writer_of(array, suffix_of(path))) is not None:
        write_own(array, path, sep=sep, decimal=decimal)
        return
    node = expression_of(array)
    check_closed(node)
    check_target(path)
    session = current_session()
    layout, bring = session.blocks(node)
    write(path, layout.grid, node.dtype, node.sparse, bring, _labels_to_save(array, node, path))


def _labels_to_save(
    given: object, node: Expr, path: str | os.PathLike[str]
) -> npt.NDArray[np.generic] | None:
    # What rows and columns are both called; it is told where that is not written.
    labels = DistArray(node).labels if node.ndim == 2 else None
    is_pivot = hasattr(type(given), "_labeled_alike")
    if labels is None and not is_pivot:
        return None
    found = None
    others = DistArray(node).T.labels if node.shape[0] == node.shape[1] else None
    if labels is not None and others is not None:
        with suppress(TooLargeError):
            found, columns = np.asarray(labels), np.asarray(others)
            if found.dtype == np.object_ and all(isinstance(one, str) for one in found.tolist()):
                found = found.astype(np.str_)
            found = found if found.dtype.kind in "iuU" and np.array_equal(found, columns) else None
    suffix = suffix_of(path)
    if found is None or suffix not in (".npz", *EDGE_SUFFIXES):
        way = ': mn.save(A, "A.npz") keeps them'
        if found is None:
            way = f": keep A.{'row_labels, A.column_labels' if is_pivot else 'labels'} beside it"
        warn(f"{Location(os.fsdecode(path))}: the labels are not written{way}", FileContentWarning)
    return found


# The files that this process has loaded: what results came from.

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True)
class LoadedFile:
    """One file that was loaded.

    Attributes
    ----------
    path
        As it was written; of a url without user, password, query and fragment.
    size
        In bytes.
    sha256
        Hash of its content as it was loaded; empty where that is not known.
    version
        Of a file elsewhere, what its system calls this version.
    problem
        What is the matter with it now.
    counts
        Of an edge list: its vertices, edges, merged ones and loops.
    """

    path: str
    size: int
    sha256: str = ""
    version: str = ""
    problem: str = ""
    counts: str = ""


class LoadedFiles:
    """The files that this process has loaded, in the versions that it read; there is one, ``loaded``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[File, str] = {}  # what was counted in each
        self._hashes: dict[File, str] = {}  # a version of a file is read through once

    def note(self, source: Source, counts: str = "") -> None:
        """Remember that the files of a source were loaded, and what was in it."""
        with self._lock:
            for place, file in enumerate(files_of(source)):
                self._counts[file] = counts if place == 0 else ""

    def forget(self) -> None:
        """Remember none of them."""
        with self._lock:
            self._counts.clear()

    def all(self) -> tuple[LoadedFile, ...]:
        """Return the files by path; reads those that are here, to hash them."""
        with self._lock:
            files = sorted(self._counts.items(), key=lambda one: (str(one[0].shown), one[0].mtime_ns))
        return tuple(self._looked_at(file, counts) for file, counts in files)

    def _looked_at(self, file: File, counts: str) -> LoadedFile:
        if isinstance(file, RemoteFile):
            return LoadedFile(str(file.shown), file.size, version=file.version, counts=counts)
        problem = ""
        try:
            if find_local(file.path) != file:
                problem = "has changed since it was loaded"
            elif file not in self._hashes:
                self._hashes[file] = _hash(file)
        except FileNotFoundError:
            problem = "is not there any more"
        except (MatnbError, OSError) as error:
            problem = f"cannot be read: {error}"
        sha256 = self._hashes.get(file, "")
        return LoadedFile(str(file.shown), file.size, sha256, problem=problem, counts=counts)


loaded = LoadedFiles()


def _hash(file: File) -> str:
    hashed = hashlib.sha256()
    with file.open() as stream:
        while piece := stream.read(_PIECE_BYTES):
            hashed.update(piece)
    return hashed.hexdigest()
