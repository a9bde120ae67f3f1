"""Rows of a table by number or by mask, with columns beside them: pandas' iloc and loc."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from matnb.blocks.foreign import is_missing_value
from matnb.errors import IndexingError, OptionError, UnsupportedError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.tables.columns import Column, TextColumn, as_column
from matnb.tables.masked import MaskedColumn
from matnb.tables.summaries import Record


class _PickedRows:
    # What picks rows of a table, and says how values of some are replaced.

    def __init__(self, table: Any) -> None:
        self._table = table

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        rows, column = key if isinstance(key, tuple) and len(key) == 2 else (key, "fare")
        names = self._table.columns
        if isinstance(column, int) and -len(names) <= column < len(names):
            column = names[column]
        name = column if isinstance(column, str) else "fare"
        mask = f"np.arange(len(t)) == {rows}" if isinstance(rows, int) else "mask"
        given = f", {value!r}" if isinstance(value, str | int | float) else ", value"
        given = "" if is_missing_value(value) else given
        raise UnsupportedError(
            f"a table is not changed: write t = t.with_columns({name}=t[{name!r}].mask({mask}{given}))"
        )


class RowsByPlace(_PickedRows):
    """``t.iloc``: rows by number, a slice, a list or a mask, and columns by number.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "c"], "fare": [6.0, 9.0, 7.0]})
    >>> t.iloc[-1]
    zone  c
    fare  7.0
    >>> t.iloc[[2, 0], 1].compute(), t.iloc[1, 1]
    (array([7., 6.]), 9.0)
    """

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        names = np.array(self._table.columns, object)
        try:
            names = names[columns]
        except IndexError:
            raise IndexingError(f"columns {columns!r} of a table of {len(names)} columns") from None
        return _taken(self._table, rows, names if isinstance(names, str) else list(names))


class ValueAt(_PickedRows):
    """``t.at``: one value, by the number of its row and the name of its column."""

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, tuple) or len(key) != 2 or not isinstance(key[0], int | np.integer):
            raise OptionError('t.at: give a row and a column, as in t.at[0, "fare"]')
        return _taken(self._table, *key)


class RowsByLabel(_PickedRows):
    """``t.loc``: rows by a mask or a slice, and columns by name; a table has no other labels of rows."""

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, slice(None))
        if isinstance(columns, slice):
            columns = _slice_of_names(self._table.columns, columns)
        if isinstance(rows, slice) and rows != slice(None):
            raise OptionError(
                "t.loc[start:stop]: rows have no labels; t.iloc[start:stop] takes their numbers"
            )
        if not isinstance(rows, slice | list | np.ndarray | DistArray | Column):
            raise OptionError(
                f't.loc[{rows!r}]: rows have no labels; write t[t["id"] == {rows!r}], or t.iloc[number]'
            )
        if isinstance(rows, list | np.ndarray) and len(rows) and isinstance(rows[0], str):
            raise OptionError(_of_labels(self._table))
        return _taken(self._table, rows, columns, masks_only=True)


def _of_labels(table: Any) -> str:
    # What picks rows by texts, which pandas would have in an index: groups' results by their keys.
    texts = [name for name in table.columns if isinstance(table[name], TextColumn)]
    name = next(iter([*table._keys, *texts]), "id")
    return (
        f"t.loc[labels]: rows have no labels; t[t[{name!r}].isin(labels)] has the rows of these, and "
        f"t.to_pandas().set_index({name!r}).loc[labels] has them in the order of labels"
    )


def _slice_of_names(names: tuple[str, ...], key: slice) -> list[str]:
    # As in pandas, the last name belongs to it.
    places = [None if one is None else _place_of(names, one) for one in (key.start, key.stop)]
    return list(names[slice(places[0], None if places[1] is None else places[1] + 1)])


def _place_of(names: tuple[str, ...], name: object) -> int:
    if name not in names:
        raise OptionError(f"no column {name!r}; there are {', '.join(map(repr, names))}")
    return names.index(name)


def _taken(table: Any, rows: Any, columns: str | list[str], masks_only: bool = False) -> Any:
    part = table[columns] if isinstance(columns, str) else table[list(columns)]
    length = len(table)
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        place = _row(int(rows), length)
        if isinstance(part, Column | DistArray):
            return _value(part, place)
        one = part._rows(slice(place, place + 1))
        one._computed()
        return Record({name: _value(column, 0) for name, column in one.items()}, one._keys)
    if not isinstance(rows, slice):
        rows = asarray(rows.__matnb_mask__() if isinstance(rows, MaskedColumn) else rows)
        if rows.dtype.kind != "b":
            if masks_only or (rows.dtype.kind not in "iu" and len(rows)):
                raise OptionError(
                    f"rows by {rows.dtype}: give a mask of booleans"
                    f"{'; t.iloc takes numbers of rows' if masks_only else ', a slice or numbers of rows'}"
                )
            rows = _rows_of(rows.astype(np.int64), length)
        elif rows.shape != (length,):
            raise IndexingError(f"a mask of shape {rows.shape} of a table of {length:,} rows")
    return part[rows] if isinstance(part, Column | DistArray) else part._rows(rows)


def _row(place: int, length: int) -> int:
    if not -length <= place < length:
        raise IndexingError(f"row {place} of a table of {length:,} rows")
    return place % length


def _rows_of(rows: Any, length: int) -> Any:
    least, most = (int(rows.min()), int(rows.max())) if len(rows) else (0, -1)
    for one in (least, most):
        if len(rows):
            _row(one, length)
    return np.where(rows < 0, rows + length, rows)


def _value(column: DistArray | Column, place: int) -> Any:
    found = np.asarray(as_column(column)[place : place + 1])[0]
    return found.item() if isinstance(found, np.generic) and found.dtype.kind in "biuf" else found
