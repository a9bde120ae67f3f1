"""Tables in the order of their columns, the rows with the largest values, and tables one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from matnb.errors import OptionError, suggestion
from matnb.lazy.array import DistArray
from matnb.lazy.functions.ordering import topk
from matnb.tables.row_orders import reordered
from matnb.tables.rows import at_places, order_of, sort_keys

if TYPE_CHECKING:
    from matnb.tables.table import Table

_FEW = 1024  # first rows of a long table that are found without putting all in order
_KEEP = ("first", "last", "all")


def sort_values(
    self: Table,
    by: str | Sequence[str] | None = None,
    *,
    ascending: bool | Sequence[bool] = True,
    na_position: str = "last",
) -> Table:
    """Return the rows in the order of one or more columns, as ``pandas.DataFrame.sort_values`` does.

    Parameters
    ----------
    by
        A column, or several, of which the first decides. Text is in the order of code points.
    ascending
        Whether the least value comes first; for several columns one for all, or one for each.
    na_position
        "last" or "first": where rows with a missing value are, in either order.

    Returns
    -------
    Table
        Rows with equal values stay in order.

    Raises
    ------
    ColumnError
        For an unknown column.
    OptionError
        For another ``na_position``, and unequal numbers of columns and directions.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "b"], "fare": [6.0, None, 9.0]})
    >>> print(t.sort_values(["zone", "fare"], ascending=[True, False]).head())
    3 rows x 2 columns
    zone     fare
    text  float64
    a
    b         9.0
    b         6.0
    """
    names = _columns_of(self, () if by is None else by, "sort_values")
    directions = [ascending] * len(names) if isinstance(ascending, bool | int) else list(ascending)
    if len(directions) != len(names):
        raise OptionError(f"sort_values: {len(directions)} directions for {len(names)} columns")
    if na_position not in ("first", "last"):
        raise OptionError(f"sort_values(na_position={na_position!r}): choose 'first' or 'last'")
    columns = [self[name] for name in names]
    return _at(self, order_of(columns, [bool(one) for one in directions], na_position == "first"))


def nlargest(self: Table, n: int, columns: str | Sequence[str], keep: str = "first") -> Table:
    """Return the ``n`` rows with the largest values, in descending order; missing values come last.

    Equal to ``t.sort_values(columns, ascending=False).head(n)``, but of a long table only the first rows are
    put in order, if they are few and the order is that of one column.

    Parameters
    ----------
    n
        The number of rows; of a shorter table all.
    columns
        A column, or several, of which the first decides.
    keep
        Of equal rows those that come "first".

    Raises
    ------
    ColumnError
        For an unknown column.
    OptionError
        For a negative number, and another ``keep``.

    Examples
    --------
    >>> import matnb as mn
    >>> t = mn.table({"zone": ["b", "a", "c"], "fare": [6.0, 7.0, 9.0]})
    >>> t.nlargest(2, "fare")["zone"].compute().tolist()
    ['c', 'a']
    """
    return _first(self, n, columns, keep, "nlargest", is_ascending=False)


def nsmallest(self: Table, n: int, columns: str | Sequence[str], keep: str = "first") -> Table:
    """Return the ``n`` rows with the smallest values, in ascending order; missing values come last.

    Takes the same arguments as :meth:`nlargest`, and raises the same errors.
    """
    return _first(self, n, columns, keep, "nsmallest", is_ascending=True)


def _first(
    table: Table, n: int, columns: str | Sequence[str], keep: str, caller: str, is_ascending: bool
) -> Table:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise OptionError(f"{caller}(n={n!r}): give a number of rows, from 0 on")
    if keep != "first":
        way = "only 'first' is there" if keep in _KEEP else suggestion(keep, ("first",))
        raise OptionError(f"{caller}(keep={keep!r}): {way}")
    names = _columns_of(table, columns, caller)
    made = [table[name] for name in names]
    keys = [key for one in made for key in sort_keys(one, is_ascending, False)]
    count = min(n, len(table))
    if len(keys) == 1 and 0 < count <= _FEW:
        return _at(table, topk(keys[0], count, largest=False).places)
    return _at(table, order_of(made, [is_ascending] * len(made))[:count])


def _columns_of(table: Table, by: str | Sequence[str], caller: str) -> tuple[str, ...]:
    names = table._named(by)
    if not names:
        last = table.columns[-1] if table.columns else "name"
        raise OptionError(f"{caller}: give at least one column, as in t.{caller}({last!r})")
    return names


def _at(table: Table, places: DistArray) -> Table:
    made = type(table)({name: at_places(one, places) for name, one in table.items()}, table._complete)
    return reordered(made._keyed(table._keys), table)
