"""Rows in another order: what was made of the columns from before is not for them, though it is as long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from matnb.errors import ShapeError
from matnb.expr.nodes import Elementwise, Expr
from matnb.lazy.array import DistArray
from matnb.tables.columns import Column

if TYPE_CHECKING:
    from matnb.tables.table import Table

_FAR = 256  # expressions that are gone through to find a table's column
# Of columns whose rows were put in another order, those that they had been before.
_earlier: WeakKeyDictionary[Expr, WeakSet[Expr]] = WeakKeyDictionary()


def reordered(made: Table, *olds: Table) -> Table:
    """Remember that the rows of a table are those of others in another order, and return it."""
    own = _own(made)
    before: WeakSet[Expr] = WeakSet()
    for old in olds:
        for one in _own(old):
            before.add(one)
            before |= _earlier.get(one, ())
    for one in own:
        before.discard(one)
    for one in own:
        _earlier[one] = before
    return made


def check_order(table: Table, values: Any, what: str) -> None:
    """Refuse what was made, row by row, of a column that had its rows in another order than a table has.

    Raises
    ------
    ShapeError
        With the way.
    """
    own = _own(table)
    before = next((_earlier[one] for one in own if one in _earlier), None)
    if before is None:
        return
    waiting = list(_expressions(values))
    seen = set(waiting)
    while waiting and len(seen) < _FAR:
        node = waiting.pop()
        if node in own:
            continue
        if node in before:
            raise ShapeError(
                f"{what} is of a table whose rows are in another order: make it of this table's columns, as "
                'in s[s["fare"] > 5] after s = t.sort_values("zone"); NumPy\'s arrays are taken as they are'
            )
        new = [one for one in _row_by_row(node, len(table)) if one not in seen]
        seen.update(new)
        waiting += new


def _row_by_row(node: Expr, length: int) -> list[Expr]:
    # What each value is made of, row by row: a table that is looked up in is something else.
    is_looked_up = len(node.operands) > 1 and node.operands[0].shape[:1] != (length,)
    if not (is_looked_up or isinstance(node, Elementwise)):
        return []
    return [one for one in node.operands if one.shape[:1] == (length,)]


def _own(table: Table) -> set[Expr]:
    return {one for column in table.values() for one in _expressions(column)}


def _expressions(values: Any) -> set[Expr]:
    if isinstance(values, Column):
        parts = (values.codes, values.missing) if values.may_miss else (values.codes,)
        return {one.expression for one in parts if isinstance(one, DistArray)}
    return {values.expression} if isinstance(values, DistArray) else set()
