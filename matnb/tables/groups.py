"""Rows of a table grouped by the values of columns: thin over ``mn.groupby``, with labels in the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from matnb.errors import DTypeError, OptionError
from matnb.io.durations import NO_TIME
from matnb.lazy.array import DistArray, handle_of
from matnb.lazy.creation import arange, full
from matnb.lazy.evaluator import asked
from matnb.lazy.foreign_names import refuse_dask
from matnb.lazy.functions.grouping import GroupBy, groupby
from matnb.tables.aggregates import METHODS, OF_NUMBERS, aggregates_of
from matnb.tables.columns import Column, TextColumn
from matnb.tables.free_names import free_name
from matnb.tables.group_rows import GroupRows
from matnb.tables.masked import MaskedColumn
from matnb.tables.pandas_names import OF_GROUPS, no_table_name
from matnb.tables.row_orders import reordered
from matnb.tables.rows import at_places
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table

_MOST_SHOWN = 100_000  # groups of a result that is looked at at once


@dataclass(frozen=True, eq=False)
class GroupKeys:
    """Rows by the values of some columns.

    Attributes
    ----------
    groups
        The rows grouped.
    numbers
        Of each row the number of its group.
    keys
        The values of the groups, ascending, a column each.
    """

    groups: GroupBy
    numbers: DistArray
    keys: tuple[DistArray | Column, ...]

    @property
    def num_groups(self) -> int:
        """The number of groups."""
        return self.groups.num_groups


def keyed(table: Table, names: Sequence[str]) -> GroupKeys:
    """Return the rows of a table, none of which misses a key, grouped by columns."""
    columns = [table[name] for name in names]
    handles = [one.codes if isinstance(one, Column) else one for one in columns]
    groups = groupby(tuple(handles) if len(handles) > 1 else handles[0])
    numbers = groups.transform(handles[0], lambda found, _: arange(found.num_groups))
    found = groups.keys if isinstance(groups.keys, tuple) else (groups.keys,)
    keys = (_as_column(one, key) for one, key in zip(columns, found, strict=True))
    return GroupKeys(groups, numbers, tuple(keys))


def _as_column(like: DistArray | Column, codes: DistArray) -> DistArray | Column:
    # Values of a column from numbers; none of them is missing.
    if isinstance(like, MaskedColumn):
        return codes
    return like._like(codes, may_miss=False) if isinstance(like, Column) else codes


class TableGroups(GroupRows):
    """Grouped rows of a table, as returned by ``Table.groupby``.

    ``groups["tip"]`` and ``groups[["tip", "fare"]]`` select the columns to aggregate. Each method returns a
    table with a row per group: its keys, ascending, and its result. The table remembers which columns are
    keys: ``/ 1000``, ``round`` and the like leave them as they are, ``sum``, ``corr`` and other statistics of
    the whole table leave them out. Missing values are skipped, as in pandas and polars. ``for key, rows in
    groups`` goes through groups, and ``get_group`` picks one.

    A result that would be called as a key is ``tip_max`` beside the column ``tip`` as a key; beside what was
    made of that column it keeps its name, and the key is ``tip_key``.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "b"], "tip": [1.0, None, 4.0]})
    >>> print(t.groupby("zone")["tip"].sum())
    2 rows x 2 columns
    zone      tip
    text  float64
    a         0.0
    b         5.0
    """

    def __init__(
        self,
        table: Table,
        keys: Table,
        values: tuple[str, ...],
        is_chosen: bool = False,
        made_keys: frozenset[str] = frozenset(),  # called as what they were made of
        as_index: bool = True,
    ) -> None:
        self._table, self._keys, self._values, self._is_chosen = table, keys, values, is_chosen
        self._made_keys, self._as_index = made_keys, as_index
        self._known: tuple[Table, GroupKeys] | None = None

    def __getitem__(self, names: str | list[str]) -> TableGroups:
        chosen = self._table._named(names)
        found = TableGroups(self._table, self._keys, chosen, True, self._made_keys, self._as_index)
        found._known = self._known
        return found

    def __repr__(self) -> str:
        return f"groups of {len(self._table):,} rows by {', '.join(map(repr, self._keys))}"

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            refuse_dask(name, "a table's groups", "call one of their methods, such as size()")
            raise AttributeError(name)
        raise no_table_name("TableGroups", name, OF_GROUPS, lambda: ("size", "agg", *METHODS))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._table.columns)

    def _grouped(self) -> tuple[Table, GroupKeys]:
        # The rows that have all keys, and their groups.
        if self._known is None:
            table, keys = self._table, self._keys
            there = keys.dropna()
            if there is not keys:
                table = table._rows(~keys.missing())
            self._known = table, keyed(there, keys.columns)
        return self._known

    def size(self, name: str = "size") -> Table:
        """Return the number of rows in each group, in a column named ``size``."""
        _, known = self._grouped()
        return self._result([(name, "", known.groups.count())])

    def count(self) -> Table:
        """Return the number of values in each group that are not missing."""
        return self._each("count")

    def sum(self, numeric_only: bool = False) -> Table:
        """Return the sum of each group; 0 if all values are missing."""
        return self._each("sum", numeric_only=numeric_only)

    def prod(self, numeric_only: bool = False) -> Table:
        """Return the product of each group; 1 if all values are missing."""
        return self._each("prod", numeric_only=numeric_only)

    def mean(self, numeric_only: bool = False) -> Table:
        """Return the mean of each group."""
        return self._each("mean", numeric_only=numeric_only)

    def std(self, numeric_only: bool = False) -> Table:
        """Return the sample standard deviation of each group (ddof=1)."""
        return self._each("std", numeric_only=numeric_only)

    def var(self, numeric_only: bool = False) -> Table:
        """Return the sample variance of each group (ddof=1)."""
        return self._each("var", numeric_only=numeric_only)

    def min(self, numeric_only: bool = False) -> Table:
        """Return the minimum of each group; text is ordered by code point."""
        return self._each("min", numeric_only=numeric_only)

    def max(self, numeric_only: bool = False) -> Table:
        """Return the maximum of each group."""
        return self._each("max", numeric_only=numeric_only)

    def median(self, numeric_only: bool = False) -> Table:
        """Return the median of each group."""
        return self._each("median", numeric_only=numeric_only)

    def quantile(self, q: float = 0.5) -> Table:
        """Return a quantile of each group, interpolated linearly between values.

        Raises
        ------
        OptionError
            For a ``q`` that is not a number in [0, 1].
        """
        return self._each("quantile", q)

    def nunique(self) -> Table:
        """Return the number of distinct values in each group."""
        return self._each("nunique")

    def first(self) -> Table:
        """Return the first value of each group that is not missing."""
        return self._each("first")

    def last(self) -> Table:
        """Return the last value of each group that is not missing."""
        return self._each("last")

    def agg(self, func: object = None, **named: object) -> Table:
        """Return several results of each group at once.

        Parameters
        ----------
        func
            A method's name, or a list of them, for all selected columns; or a mapping of columns to names or
            lists. ``len`` and NumPy's functions, such as ``np.sum``, stand for the methods of their names.
        named
            Columns of the result: pairs of a column and a method, as in ``total=("fare", "sum")``; of one
            selected column a method alone.

        Returns
        -------
        Table
            The keys, ascending, and a column for each result. A list of methods gives columns such as
            ``fare_mean`` and ``fare_max``, or ``mean`` and ``max`` of one selected column; tables have no
            columns of two levels.

        Raises
        ------
        ColumnError
            For an unknown column.
        DTypeError
            For a method that is of numbers, and another column.
        OptionError
            For an unknown method, a function of another kind, or nothing to compute.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b"], "fare": [6.0, 9.0, 7.0]})
        >>> print(t.groupby("zone").agg(trips=("fare", "size"), total=("fare", "sum")))
        2 rows x 3 columns
        zone  trips    total
        text  int64  float64
        a         1      9.0
        b         2     13.0
        """
        wanted = aggregates_of(func, named, self._values, self._is_chosen, self._table)
        table, known = self._grouped()
        kept = [name for name in self._keys if name not in self._made_keys]
        twice = next((name for name in named if name in kept), None)
        if twice is not None:
            raise OptionError(f"agg: a result and a key would both be called {twice!r}: give it another name")
        for one in wanted:
            if one.method in OF_NUMBERS and not has_numbers(table[one.column], one.method):
                self._refuse(one.method, one.column)
        return self._result(
            [(one.name, one.method, _of_groups(table, known, one.column, one.method)) for one in wanted]
        )

    aggregate = agg

    def transform(self, func: object) -> DistArray | Column:
        """Return each row's group result, in the order of the table's rows; missing where its key is.

        Parameters
        ----------
        func
            A method's name, such as "mean", of the one column that is selected.

        Raises
        ------
        OptionError
            For other than one column.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b"], "fare": [6.0, 9.0, 8.0]})
        >>> (t["fare"] - t.groupby("zone")["fare"].transform("mean")).compute()
        array([-1.,  0.,  1.])
        """
        if len(self._values) != 1:
            raise OptionError(
                f'transform of {len(self._values)} columns: select one, as in groups["tip"].transform("mean")'
            )
        ((_, name, method),) = aggregates_of(func, {}, self._values, self._is_chosen, self._table)
        table, known = self._grouped()
        if method in OF_NUMBERS and not has_numbers(table[name], method):
            self._refuse(method, name)
        made = _of_groups(table, known, name, method)
        gone = self._keys.missing() if known.numbers.shape != (len(self._table),) else None
        if gone is None:
            return at_places(made, known.numbers)
        places: Any = full(len(self._table), -1, np.int64)
        places[~gone] = known.numbers
        return at_places(made, places, may_miss=True)

    def nested(self, name: str | None = None) -> Any:
        """Return the values of each group, in row order, as a segment of a :class:`matnb.nested.NestedArray`.

        Segments are in the order of the rows of the other methods' tables, such as ``size()``. Missing values
        are left out.

        Parameters
        ----------
        name
            The column of numbers or booleans; by default the only one that was selected.

        Raises
        ------
        DTypeError
            For a column of text or times.
        ColumnError
            For an unknown column.
        OptionError
            Without a name, for other than one column; and for what is no name.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b", "c"], "tip": [1.0, 2.0, 4.0, None]})
        >>> t.groupby("zone").nested("tip").tolist()
        [[2.0], [1.0, 4.0], []]
        """
        if name is None and len(self._values) != 1:
            raise OptionError(
                f'nested of {len(self._values)} columns: give the name of one, as in nested("tip")'
            )
        if name is not None and not isinstance(name, str):
            raise OptionError(
                f'nested of a {type(name).__name__}: give the name of one column, as in nested("tip"); '
                "mn.groupby(keys).nested(values) takes arrays"
            )
        (name,) = self._values if name is None else self._table._named(name)
        table, known = self._grouped()
        column, mask = table[name], table._missing(name)
        if isinstance(column, Column) and not isinstance(column, MaskedColumn):
            raise DTypeError(
                f"nested of column {name!r}, which is not numeric: nested arrays have numbers; "
                f"t[{name!r}].codes are those of text and times, for mn.groupby(keys).nested"
            )
        values, groups = column.codes if isinstance(column, Column) else column, known.groups
        if mask is not None:
            there: Any = ~mask
            values, groups = values[there], groupby(known.numbers[there], num_groups=known.num_groups)
        return groups.nested(values)

    def _each(self, method: str, q: float = 0.5, numeric_only: bool = False) -> Table:
        table, known = self._grouped()
        if not self._values:
            raise DTypeError(f"{method} of no column: there is none beside the keys; size() counts rows")
        is_of_numbers = numeric_only or method in OF_NUMBERS
        names = [name for name in self._values if not is_of_numbers or has_numbers(table[name], method)]
        if numeric_only:
            names = [name for name in names if isinstance(table[name], DistArray | MaskedColumn)]
        bad = [name for name in self._values if name not in names]
        if not names or (bad and self._is_chosen and not numeric_only):
            self._refuse(method, (bad or [""])[0])
        return self._result([(name, method, _of_groups(table, known, name, method, q)) for name in names])

    def _refuse(self, method: str, name: str) -> NoReturn:
        table = self._table
        good = [one for one in table.columns if has_numbers(table[one], method)]
        raise DTypeError(
            f"{method} of column {name!r}, which is not numeric; numeric columns: "
            f"{', '.join(map(repr, good)) or 'none'}"
        )

    def _result(self, results: Sequence[tuple[str, str, DistArray | Column]]) -> Table:
        # Of names, methods and columns. Keys that are columns keep their names, then results do.
        _, known = self._grouped()
        taken = {*self._keys.columns, *(name for name, _, _ in results)}
        keys: dict[str, DistArray | Column] = {}
        values: dict[str, DistArray | Column] = {}
        for name, key in zip(self._keys.columns, known.keys, strict=True):
            gives_way = name in self._made_keys and any(name == one for one, _, _ in results)
            keys[free_name(name, taken | {*keys}, "key") if gives_way else name] = key
        for name, method, one in results:
            is_free = name not in keys
            word = "" if method == name else method
            values[name if is_free else free_name(name, taken | {*keys, *values}, word)] = one
        made = type(self._table)({**keys, **values}, frozenset(keys))
        made = reordered(made._keyed(keys), self._table)
        made = made if self._as_index else made.reset_index()
        return made._look() if len(made) <= _MOST_SHOWN else made


def has_numbers(column: DistArray | Column, method: str = "sum") -> bool:
    """Tell whether a numeric method applies to a column; times support only some of them."""
    if isinstance(column, TimeColumn):
        if column.word == "timedelta":
            return method not in ("prod", "var")
        return method in ("mean", "median", "quantile", "std")
    return isinstance(column, DistArray | MaskedColumn)


def _of_groups(table: Table, known: GroupKeys, name: str, method: str, q: float = 0.5) -> DistArray | Column:
    column, mask = table[name], table._missing(name)
    if method == "size":
        return known.groups.count()
    values: Any = column.codes if isinstance(column, Column) else column
    if method in OF_NUMBERS and values.dtype.kind == "b":
        values = values.astype(np.int64)
    groups = known.groups
    if mask is not None:  # rows with a value alone, in the same groups
        there = ~mask
        values = values[there]
        groups = groupby(known.numbers[there], num_groups=known.num_groups)
    if method == "count":
        return groups.count()
    if isinstance(column, TimeColumn) and method in OF_NUMBERS:
        return _of_times(column, groups, values, method, q)
    if method in ("std", "var"):
        return _spread(groups, values, method)
    found: Any = groups.quantile(values, q) if method == "quantile" else getattr(groups, method)(values)
    if method == "nunique":
        return found  # type: ignore[no-any-return]  # operators of arrays give Any
    if mask is not None and method in ("min", "max", "first", "last"):
        return _unless_empty(column, found, groups.count() == 0)
    if isinstance(column, TextColumn | TimeColumn):
        return column._like(found, may_miss=False)
    return found  # type: ignore[no-any-return]  # operators of arrays give Any


def _of_times(column: TimeColumn, groups: GroupBy, values: Any, method: str, q: float) -> TimeColumn:
    # Of their differences from the first one, which doubles hold where they do not hold times.
    first = 0
    if column.word == "datetime":
        first = int(asked(values.min().expression, "the first time")) if len(values) else 0
        values = values - first
    if method == "sum":
        return column._like(groups.sum(values))
    if method == "std":
        found: Any = _spread(groups, values, method)
    else:
        found = groups.quantile(values, q) if method == "quantile" else getattr(groups, method)(values)
    is_none = found != found
    codes: Any = np.where(is_none, NO_TIME, np.where(is_none, 0.0, found).astype(np.int64))
    if method == "std":
        return TimeColumn(codes, "timedelta", "s" if column.unit == "D" else column.unit)
    codes = np.where(is_none, NO_TIME, codes + first)
    return column._like(codes, may_miss=True)


def _spread(groups: GroupBy, values: DistArray, method: str) -> DistArray:
    # Of a group of one row there is none: 0 / 0.
    counts: Any = groups.count()
    found: Any = getattr(groups, method)(values, ddof=1)
    return handle_of(np.where(counts > 1, found, np.nan))


def _unless_empty(column: DistArray | Column, found: Any, is_empty: DistArray) -> DistArray | Column:
    if isinstance(column, MaskedColumn):
        return MaskedColumn(np.where(is_empty, found.dtype.type(0), found), is_empty)
    if isinstance(column, TextColumn):
        return column._like(handle_of(np.where(is_empty, np.int32(-1), found)), may_miss=True)
    if isinstance(column, TimeColumn):
        return column._like(handle_of(np.where(is_empty, NO_TIME, found)), may_miss=True)
    return handle_of(np.where(is_empty, np.nan, found))
