"""Tables as pictures: their numbers as lines and bars, over times, texts, or the keys of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError
from matnb.tables.columns import TextColumn
from matnb.tables.masked import MaskedColumn
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table

_MOST_BARS = 500  # of a picture, where values are numbers


def draw_table(table: Table, axes: Any, keys: tuple[str, ...]) -> Any:
    """Draw the numbers of a table, and return the axes.

    Lines over times or the keys of groups, bars over texts and for counts of a few values, and without these
    lines over the numbers of rows.

    Raises
    ------
    DTypeError
        For a table without numbers.
    TooLargeError
        If it exceeds the session's ``compute_limit``.
    """
    names = [name for name, one in table.items() if not isinstance(one, TextColumn | TimeColumn)]
    over = next((name for name in table.columns if name not in names or name in keys), None)
    names = [name for name in names if name != over]
    if not names:
        raise DTypeError(f"plot of a table without a column of numbers; it has {', '.join(table.columns)}")
    table._check_limit()
    table._computed()
    places, order, are_texts, are_bars = np.arange(len(table)), slice(None), False, False
    if over is not None:
        column: Any = table[over]
        are_texts = isinstance(column, TextColumn) or column.dtype.kind == "b"
        is_counted = [name.rstrip("_") for name in names] in (["count"], ["proportion"]) and not isinstance(
            column, TimeColumn
        )
        are_bars = are_texts or (over in keys and is_counted and len(table) <= _MOST_BARS)
        places = np.asarray(column.to_float() if isinstance(column, MaskedColumn) else column)
        if are_texts:
            places = places.astype(str)
        elif over in keys:
            order = np.argsort(places, kind="stable")  # type: ignore[assignment]  # picks as a slice does
    for name in names:
        draw = axes.bar if are_bars else axes.plot
        draw(places[order], np.asarray(table[name])[order], label=name)
    axes.set_xlabel("row" if over is None else over)
    axes.set_ylabel(names[0]) if len(names) == 1 else axes.legend()
    return axes
