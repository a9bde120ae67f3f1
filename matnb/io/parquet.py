"""Parquet tables into a dense matrix of named columns, by row groups; needs the extra ``parquet``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from matnb.errors import UnsupportedError
from matnb.io.files import File
from matnb.io.source import Piece, Source, reader, split_range
from matnb.io.table import (
    Content,
    DTypes,
    Rows,
    Tabular,
    are_exact,
    not_numbers,
    picked_columns,
    wanted_dtypes,
)

if TYPE_CHECKING:
    import pyarrow
    from pyarrow.parquet import ParquetFile


_BATCH_ROWS = 1 << 16


@dataclass(frozen=True)
class Parquet(Tabular):
    """A Parquet file; ``heights`` are the rows of its row groups, ``group_bytes`` their sizes inflated."""

    heights: tuple[int, ...]
    group_bytes: tuple[int, ...]

    def __repr__(self) -> str:
        return f"Parquet({self.file!r})"

    def identity(self) -> tuple[str | int, ...]:
        """Return what tells the result from any other."""
        return ("parquet", *self.file.identity, *self.picked, repr(self.wanted))

    def estimated_entries(self) -> int:
        """Return how many elements there are."""
        return sum(self.heights) * len(self.picked)

    def pieces(self, count: int) -> tuple[Piece, ...]:
        """Return ranges of row groups."""
        return split_range(0, len(self.heights), count, 1)

    def parsing_bytes(self, piece: Piece, num_pieces: int) -> tuple[int, int]:
        """Return what the values of a piece take, and the batch that is decoded."""
        rows = self.heights[piece.start : piece.stop]
        return 8 * sum(rows) * len(self.picked), max(self.group_bytes[piece.start : piece.stop], default=0)

    def parse(self, piece: Piece) -> Rows:
        """Read the row groups of a piece."""
        names = [self.names[column] for column in self.picked]
        groups = range(piece.start, min(piece.stop, len(self.heights)))
        values = np.empty((sum(self.heights[group] for group in groups), len(names)))
        contents = [Content()] * len(names)
        first = last = 0
        with _opened(self.file) as opened:
            # Some rows at a time: no more is decoded beside the values.
            for batch in opened.iter_batches(_BATCH_ROWS, list(groups), names, use_threads=False):
                last = first + batch.num_rows
                if last > len(values):
                    break
                for place, name in enumerate(names):
                    made, content = _numbers(batch.column(name))
                    values[first:last, place] = made
                    contents[place] += content
                first = last
            if first != len(values) or last != first:
                raise self.file.error(
                    f"row groups {piece.start} to {piece.stop} have not the rows they claim"
                )
        return Rows(piece.number, values, tuple(contents))


def _numbers(column: pyarrow.Array) -> tuple[npt.NDArray[np.float64], Content]:
    from pyarrow import types

    missing = column.null_count
    present = len(column) - missing
    # Without the check a whole number beyond 2**53 is rounded, as in a CSV file; with nulls they are NaN.
    made = column.cast("float64", safe=False).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    if types.is_boolean(column.type):
        return made, Content(missing, truths=present)
    whole = types.is_integer(column.type) and are_exact(made)
    # A NaN among the values is missing too, as where a table was written from NumPy's.
    return made, Content(int(np.isnan(made).sum()), numbers=present, whole=whole)


@contextmanager
def _opened(file: File) -> Iterator[ParquetFile]:
    try:
        import pyarrow
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UnsupportedError(
            f"{file.shown}: Parquet is read with pyarrow: pip install 'matnb[parquet]'"
        ) from None
    with file.open() as stream:
        try:
            with ParquetFile(stream, pre_buffer=False) as opened:
                yield opened
        except (pyarrow.ArrowException, OSError) as error:
            raise file.error(f"is not a Parquet file, or a damaged one: {error}") from None


@reader("parquet", ".parquet", ".pq")
def open_parquet(file: File, columns: Sequence[str] | None = None, dtype: DTypes = None) -> Source:
    """Return the source of a Parquet table.

    Nulls are NaN. Columns are of the dtypes that :func:`matnb.io.table.open_table` says.

    Parameters
    ----------
    file
        The table; it is read by row groups, which is how far it can be read in parallel.
    columns
        Names of the columns to read, in the order wanted; None reads all, which must be numbers.
    dtype
        Of all columns, or a mapping of names to dtypes, instead of what the values say.

    Raises
    ------
    OptionError
        For a name that no column has.
    FileFormatError
        When it is no Parquet file, or a column is no numbers.
    UnsupportedError
        Without pyarrow.
    """
    with _opened(file) as opened:
        schema, metadata = opened.schema_arrow, opened.metadata
        groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
        heights = tuple(group.num_rows for group in groups)
        sizes = tuple(max(0, group.total_byte_size) for group in groups)
    if any(height < 0 for height in heights):
        raise file.error("has a row group of less than no rows")
    names = tuple(schema.names)
    picked = picked_columns(file, names, columns)
    read = [names[column] for column in picked]
    bad = {name: str(schema.field(names.index(name)).type) for name in read if not _is_number(schema, name)}
    if bad:
        name, type_name = next(iter(bad.items()))
        advice = not_numbers(names if columns is None else read, list(bad))
        raise file.error(f"column {name!r} is of type {type_name}, not of numbers; {advice}")
    return Parquet(file, names, picked, wanted_dtypes(file, dtype, read), heights, sizes)


def _is_number(schema: pyarrow.Schema, name: str) -> bool:
    from pyarrow import types

    kind = schema.field(schema.names.index(name)).type
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )
