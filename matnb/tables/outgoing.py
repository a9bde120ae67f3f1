"""What other libraries and files get of tables: Arrow's, whose text is codes here and strings there."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from matnb.errors import UnsupportedError
from matnb.io.files import suffix_of
from matnb.tables.columns import TextColumn
from matnb.tables.masked import MaskedColumn

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".parquet", ".arrow", ".feather", ".csv")  # of files of tables
_MOST_LETTERS = 2**31 - 1  # bytes of a chunk of Arrow's strings, whose offsets have 32 bits


def with_strings(made: pyarrow.Table) -> pyarrow.Table:
    """Return an Arrow table with strings in place of the dictionaries of its columns of text."""
    import pyarrow
    from pyarrow import compute, types

    for place, (name, column) in enumerate(zip(made.column_names, made.columns, strict=True)):
        if not types.is_dictionary(column.type):
            continue
        labels = column.chunk(0).dictionary if column.num_chunks else pyarrow.array([], pyarrow.string())
        longest = compute.max(compute.binary_length(labels)).as_py() or 0
        is_small = longest * len(column) <= _MOST_LETTERS
        kind = pyarrow.string() if is_small else pyarrow.large_string()
        made = made.set_column(place, name, column.cast(kind))
    return made


def pandas_types(pandas: Any, column: Any) -> Any:
    """Return pandas' dtype for a column, where Arrow would choose by its values; None elsewhere."""
    if isinstance(column, TextColumn):
        dtype = pandas.Series(["text"]).dtype  # of this pandas: strings, or objects
        return dtype if pandas.api.types.is_extension_array_dtype(dtype) else None
    if not isinstance(column, MaskedColumn):
        return None
    sign, kind, size = "U" if column.dtype.kind == "u" else "", column.dtype.kind, 8 * column.dtype.itemsize
    return pandas.api.types.pandas_dtype("boolean" if kind == "b" else f"{sign}Int{size}")


def is_for_tables(path: str | os.PathLike[str]) -> bool:
    """Tell whether the end of a path means a table."""
    return suffix_of(path) in SUFFIXES


def library(name: str) -> Any:
    """Return a library that makes frames, or refuse where it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise UnsupportedError(f"to_{name}() needs {name}: {error}; to_arrow() does not") from None
