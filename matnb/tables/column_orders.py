"""Columns in the order of their values: sorted, the largest and the smallest, and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from matnb.lazy.array import DistArray
from matnb.lazy.functions.grouping import groupby
from matnb.tables.makers import makers

if TYPE_CHECKING:
    from matnb.tables.table import Table


class _Values(Protocol):
    # What a column has that is put in order.
    name: str

    @property
    def missing(self) -> DistArray: ...

    def _plain(self) -> Any: ...


class ColumnOrders:
    """Methods of a column that put its values in order; missing ones come last, and have no rank."""

    def sort_values(self: _Values, *, ascending: bool = True, na_position: str = "last") -> Any:
        """Return the values in order, as ``Table.sort_values`` does rows; text by code point."""
        table, name = _alone(self)
        return table.sort_values(name, ascending=ascending, na_position=na_position)[name]

    def nlargest(self: _Values, n: int = 5, keep: str = "first") -> Any:
        """Return the ``n`` largest values, in descending order; missing values come last.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"fare": [6.0, None, 9.0, 7.0]})["fare"].nlargest(2).compute()
        array([9., 7.])
        """
        table, name = _alone(self)
        return table.nlargest(n, name, keep)[name]

    def nsmallest(self: _Values, n: int = 5, keep: str = "first") -> Any:
        """Return the ``n`` smallest values, in ascending order; missing values come last."""
        table, name = _alone(self)
        return table.nsmallest(n, name, keep)[name]

    def rank(self: _Values, *, method: str = "average", ascending: bool = True, pct: bool = False) -> Any:
        """Return the rank of each value, from 1 on, as float64; NaN where it is missing.

        Parameters
        ----------
        method
            How ties are ranked: by the "average", "min" or "max" of their ranks, "first" in row order, or
            "dense", without gaps between the ranks of distinct values.
        ascending
            Whether the least value has rank 1.
        pct
            Whether to return ranks as shares of the greatest that there can be.

        Raises
        ------
        OptionError
            For another method.

        Examples
        --------
        >>> import matnb as mn
        >>> mn.table({"fare": [6.0, None, 9.0, 6.0]})["fare"].rank().compute()
        array([1.5, nan, 3. , 1.5])
        """
        table, name = _alone(self)
        if not len(table):
            return np.zeros_like(table[name], np.float64)
        key = makers.sort_keys(table[name], ascending, False)[-1]
        ranks: Any = groupby(self.missing.astype(np.int8)).rank(key, method)
        found: Any = np.where(self.missing, np.nan, ranks)
        if not pct:
            return found
        return found / (np.nanmax(found) if method == "dense" else (~self.missing).sum())


def _alone(column: _Values) -> tuple[Table, str]:
    # A table of this column alone, and what it is called there.
    name = column.name or "value"
    return makers.table({name: column._plain()}), name
