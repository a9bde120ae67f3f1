"""What makes columns and tables of any kind, for the methods of a single kind, whose files are below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matnb.tables.columns import Column
    from matnb.tables.masked import MaskedColumn
    from matnb.tables.numbers import NumberColumn
    from matnb.tables.table import Table
    from matnb.tables.times import TimeColumn


class Makers:
    """Classes and functions that the files which define them set here, once, when they are imported.

    Every kind of column has methods that give another kind, and tables; those in turn are made of columns. So
    that imports go one way, such a method calls what it needs as ``makers.table(...)``.
    """

    table: type[Table]
    numbers: type[NumberColumn]
    masked: type[MaskedColumn]
    times: type[TimeColumn]
    table_of: Callable[[Any], Table]
    column_from: Callable[[str, Any], Any]
    texts_like: Callable[[object, int], Any]
    constant: Callable[[str, Any, int], Any]
    times_of_numbers: Callable[[Column, str | None, str, str | None], TimeColumn]
    sort_keys: Callable[..., list[Any]]
    mapped: Callable[[Column, Any], Any]
    mapped_numbers: Callable[[Column, Callable[..., Any]], Any]
    replaced: Callable[[Column, object, object], Any]
    duplicated: Callable[[list[Any], object], Any]
    first_rows: Callable[[Column], Any]
    num_distinct: Callable[[Column, bool], int]
    counted: Callable[[Column, str, bool, bool, bool], Table]
    extreme: Callable[..., Any]
    statistic: Callable[..., Any]
    place_of_extreme: Callable[[Column, Callable[..., Any], str], int]
    most_frequent: Callable[[Column], Any]


makers = Makers()
