"""Tables, columns and arrays one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.lazy.array import DistArray
from matnb.lazy.functions.shaping import concatenate
from matnb.tables.columns import Column
from matnb.tables.incoming import column_from
from matnb.tables.row_orders import reordered
from matnb.tables.rows import AnyColumn, all_missing, in_a_row
from matnb.tables.table import Table


def concat(
    arrays: Iterable[Any], /, axis: int | None = 0, *, join: str = "outer", ignore_index: bool = True
) -> Any:
    """Put tables, columns or arrays one after the other: ``pandas.concat``, and ``numpy.concatenate``.

    Parameters
    ----------
    arrays
        Tables, columns of tables, or arrays.
    axis
        Of arrays. Of tables it is 0, the rows.
    join
        Which columns tables have: "outer" for those of any, where a table without a column has missing
        values, or "inner" for those of all.
    ignore_index
        For pandas' sake: tables have no index.

    Returns
    -------
    Table, Column or DistArray
        Columns are in the order in which they first appear. Their type is one that has the values of all:
        text with all categories, the finer of two units of times, NumPy's common dtype of numbers. Whole
        numbers and booleans with missing values stay exact.

    Raises
    ------
    DTypeError
        For columns of types that have none in common, such as text and numbers, or a table beside an array.
    OptionError
        For no table, and another ``join``.

    Examples
    --------
    >>> import matnb as mn
    >>> one = mn.table({"zone": ["a", "b"], "fare": [6, 9]})
    >>> two = mn.table({"zone": ["c"], "tip": [1.5]})
    >>> print(mn.concat([one, two]).head())
    3 rows x 3 columns
    zone              fare      tip
    text  int64 or missing  float64
    a                    6
    b                    9
    c                           1.5
    """
    if isinstance(arrays, DistArray | Table | Column):
        if isinstance(arrays, DistArray):
            return concatenate(arrays, axis)  # type: ignore[arg-type]  # its rows
        raise OptionError("concat of one table: give a list of tables, as in mn.concat([t, u])")
    parts = list(arrays.values() if isinstance(arrays, Mapping) else arrays)
    tables = [one for one in parts if isinstance(one, Table)]
    if tables:
        if len(tables) < len(parts):
            other = next(one for one in parts if not isinstance(one, Table))
            raise DTypeError(
                f"concat of tables and a {type(other).__name__}: mn.table(x) makes a table of it"
            )
        return _tables_in_a_row(tables, axis, join)
    if any(isinstance(one, Column) for one in parts) and axis in (0, None):
        return in_a_row(
            [one if isinstance(one, Column | DistArray) else column_from("values", one) for one in parts]
        )
    return concatenate(parts, axis)


def _tables_in_a_row(tables: Sequence[Table], axis: object, join: str) -> Table:
    if axis not in (0, None, "index", "rows"):
        raise UnsupportedError(
            "concat of tables beside each other: write t.with_columns(**dict(u.items())), or "
            "t.merge(u, on=key)"
        )
    if join not in ("outer", "inner"):
        raise OptionError(f"concat(join={join!r}): choose 'outer' or 'inner'")
    names = dict.fromkeys(name for one in tables for name in one.columns)
    if join == "inner":
        names = dict.fromkeys(name for name in names if all(name in one for one in tables))
    made: dict[str, AnyColumn] = {}
    complete = set()
    for name in names:
        like = next(one[name] for one in tables if name in one)
        # A table without rows says nothing of types, unless all are.
        filled = [one for one in tables if len(one)] or tables[:1]
        parts = [one[name] if name in one else all_missing(like, len(one)) for one in filled]
        made[name] = in_a_row(parts, f"concat: column {name!r}")
        if all(name in one._complete for one in filled):
            complete.add(name)
    if not made and any(map(len, tables)):
        raise ShapeError("concat(join='inner'): the tables have no column in common")
    keys = tables[0]._keys if len({one._keys for one in tables}) == 1 else ()
    found = type(tables[0])(made, frozenset(complete))._keyed(keys)
    return reordered(found, *tables) if keys else found
