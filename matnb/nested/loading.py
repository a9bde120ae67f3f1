"""Columns of lists in Parquet and Arrow files as nested arrays, read on the workers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.backend.cancellation import cancellable
from matnb.expr.nodes import Expr, Load
from matnb.io.folders import Where
from matnb.io.lists import open_lists
from matnb.io.source import Found
from matnb.lazy.array import DistArray
from matnb.nested.array import NestedArray
from matnb.nested.creation import unflatten
from matnb.session.current import current_session
from matnb.session.files import loaded


@cancellable()
def load(path: Where, column: str, *, kind: str | None = None, strategy: str = "auto") -> NestedArray:
    """Read a column of lists of numbers on the workers, by row groups, and return a nested array.

    Parameters
    ----------
    path
        A Parquet or Arrow IPC (Feather) file, as a path or a url; or several with such a column: a folder, a
        pattern such as ``"events/*.parquet"``, or a list.
    column
        The name of a column of type list of integers, floats or booleans. :func:`matnb.load` reads others.
    kind
        "parquet" or "arrow", if the file name's suffix does not say.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray
        With a segment for each row.

    Raises
    ------
    FileFormatError
        If a file is malformed, the column is of another type, or lists or values in it are missing.
    MissingFileError
        If the file does not exist.
    OptionError
        For an unknown column, kind or strategy.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, matnb as mn
    >>> pq.write_table(pa.table({"hits": [[1.5, 2.0], [], [4.0]]}), "events.parquet")
    >>> mn.nested.load("events.parquet", "hits").sum().compute()
    array([3.5, 0. , 4. ])
    """
    source = open_lists(path, column, kind)

    def arrays(found: Found) -> Sequence[Expr]:
        counts = (source.num_lists,), np.dtype(np.int64)
        return (
            Load(source, "matrix", found.shape, found.dtype, False),
            Load(source.lengths(), "matrix", *counts, False),
        )

    _, nodes = current_session().read(source, arrays)
    loaded.note(source)
    values, counts = map(DistArray, nodes)
    return unflatten(values, counts, strategy=strategy)
