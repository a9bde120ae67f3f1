"""What the rows of a table are grouped by: columns, what is made of them, and steps of times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError, OptionError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.ops.selecting import Compress
from matnb.tables.columns import Column
from matnb.tables.free_names import free_name
from matnb.tables.groups import TableGroups
from matnb.tables.incoming import column_from
from matnb.tables.row_orders import check_length, check_order
from matnb.tables.rows import AnyColumn, codes_of, word_of
from matnb.tables.steps import binned_in
from matnb.tables.times import TimeColumn

if TYPE_CHECKING:
    from matnb.tables.table import Table


def groupby(
    self: Table,
    by: object = None,
    *,
    freq: str | None = None,
    as_index: bool = True,
    sort: bool = True,
    observed: bool = True,
    dropna: bool = True,
    **keys: object,
) -> TableGroups:
    """Group the rows by the values of one or more columns; rows with a missing key are left out.

    Parameters
    ----------
    by
        The name of a column, or a column that was made of the table's, such as ``t["pickup"].dt.hour``; or a
        list of them. What was made of one column is called as that column is, or ``pickup_key`` beside a
        result of its name.
    freq
        Groups times by steps of their clocks: ``t.groupby("pickup", freq="D")`` by day; also "h", "15min",
        "W" (to Sunday, whose date it has), "MS", "QS" and "YS", which are called by their first day, and
        "ME", "QE" and "YE", by their last. They are the bins of pandas' Grouper: those of several, such as
        "7D" or "5h", are counted from the day of the first time. Steps in which there is no row are no
        groups; ``to_pandas().set_index("pickup").asfreq("D")`` of a result has them. Steps of durations are
        counted from zero.
    keys
        Further keys with names of their own: ``hour=t["pickup"].dt.hour``.
    as_index
        Whether results remember which of their columns are keys, as pandas has them in the index: arithmetic,
        comparisons and methods of the whole table, such as ``/ 1000`` and ``round``, leave keys as they are,
        and its statistics, such as ``sum`` and ``corr``, leave them out. With False, and after
        ``reset_index()``, keys are columns as any other.
    sort, observed, dropna
        For pandas' sake: keys are in ascending order, of groups that have rows, and none is missing.

    Returns
    -------
    TableGroups
        ``t.groupby("zone")["tip"].mean()`` is a table of the zones, ascending, and their mean tips. Also
        agg, size, count, sum, prod, std, var, min, max, median, quantile, nunique, first and last;
        ``nested`` has all values.

    Raises
    ------
    ColumnError
        For an unknown column.
    DTypeError
        For steps of what are no times.
    OptionError
        Without a key, and for an unknown step.
    ShapeError
        For a key of another length.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "b"], "tip": [1.0, 2.0, 4.0]})
    >>> print(t.groupby("zone")["tip"].mean())
    2 rows x 2 columns
    zone      tip
    text  float64
    a         2.0
    b         2.5
    """
    if not dropna:
        raise UnsupportedError(
            "groupby(dropna=False): rows with a missing key are left out; give them a value before, as in "
            "t.with_columns(zone=t['zone'].fillna('none')), or count them with t.missing(keys).sum()"
        )
    if not sort:
        raise UnsupportedError("groupby(sort=False): groups are in ascending order; leave sort= out")
    found: dict[str, AnyColumn] = {}
    given = [] if by is None else _listed(by)
    columns = {one for one in given if isinstance(one, str)}  # which keep their names
    for one in given:
        name, column = _key_of(self, one)
        taken = found if name is one else {*found, *columns}
        found[free_name(name, taken, str(len(found)))] = column
    for name, one in keys.items():
        if not isinstance(one, Column | DistArray | np.ndarray | Sequence):
            raise OptionError(f"groupby({name}={one!r}): a key of a name of its own is a column")
        if name in found:
            raise OptionError(f"groupby: two keys would be called {name!r}: give it another name")
        found[name] = self[one] if isinstance(one, str) else column_from(name, one)
    if not found:
        raise OptionError("groupby: give at least one column")
    for name, column in found.items():
        check_length(name, len(column), len(self))
        check_order(self, column, f"the key {name!r}")
    made = {name for name in found if name not in keys and not _is_column(self, name, found[name])}
    if freq is not None:
        found = _in_steps(found, freq)
    rest = tuple(name for name in self.columns if name not in found and name not in self._keys)
    complete = {name for name in self._complete.intersection(found) if _is_column(self, name, found[name])}
    table = type(self)(found, frozenset(complete))
    return TableGroups(self, table, rest, made_keys=frozenset(made), as_index=as_index)


def _is_column(table: Table, name: str, one: AnyColumn) -> bool:
    # Whether a key of a column's name is that column, unchanged.
    if name not in table:
        return False
    own = table[name]
    has_values = codes_of(one).expression is codes_of(own).expression
    return has_values and getattr(one, "labels", None) is getattr(own, "labels", None)


def _listed(by: object) -> list[object]:
    if isinstance(by, Mapping):
        raise OptionError("groupby of a dict: give keys of names of their own as in t.groupby(hour=column)")
    if callable(by) and not isinstance(by, Column | DistArray):
        raise OptionError("groupby of a function: give a column that it makes, as in t.groupby(t['x'] % 2)")
    return list(by) if isinstance(by, list | tuple) else [by]


def _key_of(table: Table, given: Any) -> tuple[str, AnyColumn]:
    if isinstance(given, str):
        return given, table[given]
    if not isinstance(given, Column | DistArray | np.ndarray):
        if hasattr(given, "freq") and isinstance(key := getattr(given, "key", None), str):  # pandas' Grouper
            freq = getattr(given.freq, "freqstr", "D")
            raise OptionError(
                f"groupby of a Grouper: write t.groupby({key!r}, freq={freq!r}), without steps that no row "
                f"has; to_pandas().set_index({key!r}).asfreq({freq!r}) of the result has these, too"
            )
        if hasattr(given, "categories") or hasattr(given, "cat"):
            raise OptionError(
                'groupby of categories: write t.groupby(bin=np.digitize(t["fare"], bins, right=True)), which '
                "numbers the bins of pd.cut from 1"
            )
        raise OptionError(f"groupby of {given!r}: give names of columns, or columns")
    column = column_from("key", given)
    name = getattr(given, "name", "")
    return name if name in table.columns else _name_of(table, column), column


def _name_of(table: Table, column: AnyColumn) -> str:
    # That of the one column which it was made of, nearest to it; "key" where there are several.
    node = codes_of(column).expression
    sources = {codes_of(one).expression: name for name, one in table.items()}
    if node in sources:
        return sources[node]
    # What is made of rows that were picked is made before they are.
    sources = {_before_picking(one): name for one, name in sources.items()} | sources
    near = [one for one in topological([node], (), _without_choice) if one in sources]
    behind = {other for one in near for other in topological([one]) if other is not one}
    last = [one for one in near if one not in behind]
    return sources[last[0]] if len(last) == 1 else "key"


def _before_picking(node: Expr) -> Expr:
    while isinstance(node, Compress):
        node = node.operands[0]
    return node


def _without_choice(node: Expr) -> tuple[Expr, ...]:
    return node.operands[:1] if isinstance(node, Compress) else node.operands


def _in_steps(keys: dict[str, AnyColumn], freq: str) -> dict[str, AnyColumn]:
    times = [name for name, one in keys.items() if isinstance(one, TimeColumn)]
    if len(times) != 1:
        told = ", ".join(f"{name!r} of {word_of(one)}" for name, one in keys.items())
        raise DTypeError(f"groupby(freq={freq!r}): one of the keys is to be of times, and there are {told}")
    return {name: binned_in(one, freq) if isinstance(one, TimeColumn) else one for name, one in keys.items()}
