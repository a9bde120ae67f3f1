"""The order of rows: what was made of a table's columns is not combined with its rows in another order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from matnb.errors import ShapeError
from matnb.expr.nodes import Create, Elementwise, Expr, Literal
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.ops.grouping import Running
from matnb.ops.indexing import Pick
from matnb.ops.scanning import AssociativeScan, Scan
from matnb.ops.searching import Search
from matnb.ops.selecting import Compress
from matnb.tables.matching import Taken

if TYPE_CHECKING:
    from matnb.tables.table import Table

_FAR = 256  # expressions that are gone through to find a table's column
# Of columns whose rows were put in another order, those that they had been before: one set for a table.
_earlier: WeakKeyDictionary[Expr, WeakSet[Expr]] = WeakKeyDictionary()


def reordered(made: Table, *olds: Table) -> Table:
    """Remember that the rows of a table are those of others in another order, and return it."""
    own = _own(made)
    before = next((_earlier[one] for one in own if one in _earlier), WeakSet())
    for old in olds:
        for one in _own(old):
            before.add(one)
            before |= _earlier.get(one, ())
    for one in own:
        before.discard(one)
    for one in own:
        _earlier[one] = before
    return made


def of_rows(table: Table, column: Any) -> Any:
    """Remember that a column has a value for each row of a table, in their order, and return it."""
    before = next((_earlier[one] for one in _own(table) if one in _earlier), None)
    if before is not None:
        for one in _expressions(column):
            _earlier[one] = before
    return column


def note_given(table: Table, values: Any) -> None:
    """Remember that values which a user gives are rows of a table: equal ones may be a column of another."""
    for before in map(_earlier.get, _own(table)):
        if before is not None:
            before.difference_update(_expressions(values))


def check_order(table: Table, values: Any, what: str) -> None:
    """Refuse what was made, row by row, of columns that have a table's rows in another order.

    Raises
    ------
    ShapeError
        With the way.
    """
    if not _earlier:
        return
    own = _own(table)
    for node in _rows_of(_expressions(values), len(table), own):
        if any(_are_in_other_orders(node, one) for one in own):
            raise ShapeError(
                f"{what} is of a table whose rows are in another order: make it of this table's columns, as "
                'in s[s["fare"] > 5] after s = t.sort_values("zone"); NumPy\'s arrays are taken as they are'
            )


def check_rows(*nodes: Expr) -> None:
    """Refuse columns that are made of columns of tables which have the same rows in different orders.

    Raises
    ------
    ShapeError
        With the way.
    """
    if not _earlier or any(node.ndim != 1 for node in nodes):
        return
    made_of = [one for node in nodes for one in (node.operands if isinstance(node, Compress) else (node,))]
    found = {*_rows_of(made_of, made_of[0].shape[0], ())}
    moved = [one for one in found if one in _earlier]
    if any(_are_in_other_orders(one, other) for one in moved for other in found):
        raise ShapeError(
            "columns of tables whose rows are in different orders, or which have different rows: make both "
            "of one table's columns; np.asarray(column) is taken by position"
        )


def _are_in_other_orders(one: Expr, other: Expr) -> bool:
    first, second = _earlier.get(one), _earlier.get(other)
    if first is second:  # of one table, or of none
        return False
    if (first is not None and other in first) or (second is not None and one in second):
        return True
    return first is not None and second is not None and any(each in second for each in first)


def _rows_of(nodes: Iterable[Expr], length: int, own: Iterable[Expr]) -> Iterator[Expr]:
    # What values are made of, row by row, but for a table's own columns and what these are made of.
    waiting = list(nodes)
    seen = {*own, *waiting}
    most = len(seen) + _FAR  # also of a table of many columns
    waiting = [one for one in waiting if one not in own]
    while waiting and len(seen) < most:
        node = waiting.pop()
        yield node
        if node not in _earlier:  # beyond lies another order
            new = [one for one in _row_by_row(node, length) if one not in seen]
            seen.update(new)
            waiting += new


def _row_by_row(node: Expr, length: int) -> list[Expr]:
    # What each value is made of, row by row. What is looked up is of the rows of the places, unless these are
    # numbers alone, as those of a shift.
    operands = node.operands
    if isinstance(node, Pick | Taken) and node.ndim == 1 and len(operands) == 2:
        operands = operands[:1] if _is_of_numbers(operands[1]) else operands[1:]
    elif isinstance(node, Search):
        operands = operands[1:]
    elif not isinstance(node, Elementwise | Scan | AssociativeScan | Running):
        return []
    return [one for one in operands if one.shape[:1] == (length,)]


def _is_of_numbers(places: Expr) -> bool:
    found = list(islice(topological([places]), _FAR))
    return all(isinstance(one, Create | Literal) for one in found if not one.operands)


def _own(table: Table) -> set[Expr]:
    return {one for column in table.values() for one in _expressions(column)}


def _expressions(values: Any) -> set[Expr]:
    if hasattr(values, "codes"):  # a column of another type than numbers
        values = (values.codes, values.missing) if values.may_miss else (values.codes,)
    parts = values if isinstance(values, tuple) else (values,)
    return {one.expression for one in parts if isinstance(one, DistArray)}
