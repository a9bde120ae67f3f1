"""What groups of a table give beside their results: each group's rows, and a value for each row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from matnb.errors import ColumnError, DTypeError, OptionError
from matnb.lazy.array import DistArray
from matnb.lazy.creation import full
from matnb.tables.columns import Column, as_column
from matnb.tables.masked import MaskedColumn
from matnb.tables.row_orders import of_rows
from matnb.tables.rows import at_places

if TYPE_CHECKING:
    from matnb.tables.table import Table

_MOST_GROUPS = 10_000  # that a loop goes through


class _Groups(Protocol):
    """What grouped rows give to the methods here."""

    _table: Table
    _keys: Table
    _values: tuple[str, ...]
    _is_chosen: bool

    def _grouped(self) -> tuple[Table, Any]: ...


class GroupRows:
    """Methods of a table's groups that return rows, or a value for each row."""

    # Rows

    @property
    def ngroups(self: _Groups) -> int:
        """The number of groups."""
        return self._grouped()[1].num_groups  # type: ignore[no-any-return]  # operators of arrays give Any

    def __len__(self: _Groups) -> int:
        return self._grouped()[1].num_groups  # type: ignore[no-any-return]  # operators of arrays give Any

    def __iter__(self: _Groups) -> Iterator[tuple[Any, Any]]:
        # Pairs of a key, or a tuple of several, and the rows of its group.
        table, known = self._grouped()
        if known.num_groups > _MOST_GROUPS:
            raise OptionError(
                f"a loop over {known.num_groups:,} groups, of which each is a table: groups.agg and "
                "groups.transform compute all at once, groups.nested has the values of each"
            )
        counts = np.asarray(known.groups.count())
        ends = np.cumsum(counts)
        ordered = table._rows(np.argsort(known.numbers, kind="stable"))
        names = self._values if self._is_chosen else table.columns
        for key, start, end in zip(_keys_of(known), ends - counts, ends, strict=True):
            part = ordered[list(names)]._rows(slice(int(start), int(end)))
            yield key, part[names[0]] if self._is_chosen and len(names) == 1 else part

    def get_group(self: _Groups, name: Any) -> Any:
        """Return the rows of one group, given its key, or a tuple of several.

        Raises
        ------
        ColumnError
            For a key that no row has.

        Examples
        --------
        >>> import matnb as mn
        >>> t = mn.table({"zone": ["b", "a", "b"], "tip": [1.0, 2.0, 4.0]})
        >>> t.groupby("zone").get_group("b")["tip"].compute()
        array([1., 4.])
        """
        given = name if isinstance(name, tuple) else (name,)
        if len(given) != len(self._keys.columns):
            raise OptionError(f"get_group({name!r}): give a value of {', '.join(self._keys.columns)}")
        mask: Any = True
        for value, one in zip(given, self._keys.values(), strict=True):
            mask = mask & (one == value)
        rows = self._table._rows(mask)
        if not len(rows):
            raise ColumnError(f"get_group({name!r}): no row has it")
        return rows[self._values[0]] if self._is_chosen and len(self._values) == 1 else rows

    def head(self: _Groups, n: int = 5) -> Table:
        """Return the first ``n`` rows of each group, in the order of the table."""
        table, known = self._grouped()
        rows = table._rows(known.groups.cumcount() < n)
        return (rows[list(self._values)] if self._is_chosen else rows)._look()

    def tail(self: _Groups, n: int = 5) -> Table:
        """Return the last ``n`` rows of each group, in the order of the table."""
        table, known = self._grouped()
        sizes: Any = known.groups.count()
        rows = table._rows(sizes[known.numbers] - known.groups.cumcount() <= n)
        return (rows[list(self._values)] if self._is_chosen else rows)._look()

    # A value for each row

    def cumcount(self: _Groups) -> Any:
        """Return for each row how many rows of its group come before it."""
        return _of_rows(self, self._grouped()[1].groups.cumcount())

    def ngroup(self: _Groups) -> Any:
        """Return for each row the number of its group."""
        return _of_rows(self, self._grouped()[1].numbers)

    def cumsum(self: _Groups) -> Any:
        """Return running sums within groups, a value for each row; missing values are passed over."""
        return _each(self, "cumsum", 0)

    def cumprod(self: _Groups) -> Any:
        """Return running products within groups, a value for each row."""
        return _each(self, "cumprod", 1)

    def cummin(self: _Groups) -> Any:
        """Return running minima within groups, a value for each row."""
        return _each(self, "cummin", np.inf)

    def cummax(self: _Groups) -> Any:
        """Return running maxima within groups, a value for each row."""
        return _each(self, "cummax", -np.inf)

    def rank(self: _Groups, method: str = "average") -> Any:
        """Return ranks within groups from 1 on, ties by "average", "min", "max", "first" or "dense"."""

        def ranks(known: Any, column: DistArray) -> DistArray:
            return known.groups.rank(column, method)  # type: ignore[no-any-return]  # operators of arrays give Any

        return _by_column(self, "rank", ranks)

    def shift(self: _Groups, periods: int = 1) -> Any:
        """Return the values of the rows before in the same group, or after it if negative."""
        return _selected(self, lambda column: _shifted(self, column, periods))

    def diff(self: _Groups, periods: int = 1) -> Any:
        """Return differences from the rows before in the same group."""

        def differences(column: Column) -> Any:
            return column._plain() - as_column(_shifted(self, column, periods))._plain()

        return _selected(self, differences)

    def ffill(self: _Groups) -> Any:
        """Return each missing value replaced by the last one before it in the same group that is there."""
        return _selected(self, lambda column: _filled(self, column, slice(None)))

    def bfill(self: _Groups) -> Any:
        """Return each missing value replaced by the first one after it in the same group that is there."""
        return _selected(self, lambda column: _filled(self, column, slice(None, None, -1)))


def _keys_of(known: Any) -> list[Any]:
    columns = [as_column(one).tolist() for one in known.keys]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _of_rows(groups: _Groups, values: Any) -> Any:
    # Of the rows that have a key, as a column for all.
    if len(values) == len(groups._table):
        return of_rows(groups._table, values)
    places: Any = full(len(groups._table), -1, np.int64)
    there = ~groups._keys.missing()
    places[there] = np.arange(len(values))
    return of_rows(groups._table, at_places(values, places, may_miss=True))


def _selected(groups: _Groups, make: Any) -> Any:
    table, _ = groups._grouped()
    made = {
        name: _of_rows(groups, as_column(make(as_column(table[name])))._plain()) for name in groups._values
    }
    return made[groups._values[0]] if groups._is_chosen and len(made) == 1 else table._of(made)


def _by_column(groups: _Groups, word: str, make: Any) -> Any:
    _, known = groups._grouped()

    def of_numbers(column: Column) -> Any:
        if column.dtype.kind not in "biuf":
            raise DTypeError(
                f"{word} of a column of {column._word()}: select numbers, as in groups['fare'].{word}()"
            )
        return make(known, column.to_float() if isinstance(column, MaskedColumn) else column._plain())

    if not groups._is_chosen:
        table = groups._table
        numbers = [name for name in groups._values if as_column(table[name]).dtype.kind in "biuf"]
        groups = groups[numbers]  # type: ignore[index]  # as groups are
    return _selected(groups, of_numbers)


def _each(groups: _Groups, name: str, neutral: float) -> Any:
    # A missing value counts as none, and its row has none.
    def running(known: Any, column: Any) -> Any:
        if column.dtype.kind != "f":
            return getattr(known.groups, name)(column)
        gone = np.isnan(column)
        found = getattr(known.groups, name)(np.where(gone, column.dtype.type(neutral), column))
        return np.where(gone, found.dtype.type(np.nan), found)

    return _by_column(groups, name, running)


def _shifted(groups: _Groups, column: Column, periods: int) -> Any:
    if isinstance(periods, bool) or not isinstance(periods, int | np.integer):
        raise OptionError(f"shift({periods!r}): give a number of rows")
    _, known = groups._grouped()
    # In an order by groups the rows before are next to each other.
    order: Any = np.argsort(known.numbers, kind="stable")
    ordered: Any = known.numbers[order]
    length = len(ordered)
    places = np.arange(length) - int(periods)
    inside: Any = np.clip(places, 0, max(0, length - 1))
    fits = (ordered[inside] == ordered) & ((places >= 0) & (places < length))
    back: Any = np.argsort(order)
    return at_places(column._plain(), np.where(fits, order[inside], -1)[back], may_miss=True)


def _filled(groups: _Groups, column: Column, direction: slice) -> Any:
    if not column.may_miss or not len(column):
        return column
    _, known = groups._grouped()
    # In an order by groups the last value that is there, if it is of the same group.
    order: Any = np.argsort(known.numbers, kind="stable")[direction]
    ordered: Any = known.numbers[order]
    there = np.where(column.missing[order], -1, np.arange(len(column)))
    last: Any = np.maximum.accumulate(there)
    inside: Any = np.maximum(last, 0)
    fits = (last >= 0) & (ordered[inside] == ordered)
    back: Any = np.argsort(order)
    return at_places(column._plain(), np.where(fits, order[inside], -1)[back], may_miss=True)
