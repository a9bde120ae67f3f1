"""The order of rows: what was made of a table's columns is not combined with its rows in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, ref

import numpy as np

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


class RowOrder:
    """The rows of a table: what had them in another order before, and of groups' results the keys."""

    def __init__(self) -> None:
        self.earlier: WeakSet[Expr] = WeakSet()
        self.names: tuple[str, ...] = ()
        self.keys: Callable[[], Table | None] = lambda: None  # a weak reference: keys are of this order, too


_orders: WeakKeyDictionary[Expr, RowOrder] = WeakKeyDictionary()
_keys: WeakKeyDictionary[Expr, Table] = WeakKeyDictionary()  # of values of groups, which keep them


def reordered(made: Table, *olds: Table) -> Table:
    """Remember that the rows of a table are those of others in another order, and return it.

    Those of groups' results are an order of their own, which other results have whose keys are equal.
    """
    own = _own(made)
    order = next((_orders[one] for one in own if one in _orders), RowOrder())
    for old in olds:
        for one in _own(old):
            order.earlier.add(one)
            if one in _orders:
                order.earlier |= _orders[one].earlier
    for one in own:
        order.earlier.discard(one)
    if made._keys:
        known = order.keys()
        keys = made[list(made._keys)] if known is None else known
        order.names, order.keys = made._keys, ref(keys)
        made._key_columns = keys
        for one in own - _own(keys):
            _keys[one] = keys
    for one in own:
        _orders[one] = order
    return made


def of_rows(table: Table, column: Any) -> Any:
    """Remember that a column has a value for each row of a table, in their order, and return it."""
    like = next((one for one in _own(table) if one in _orders), None)
    if like is not None:
        for one in _expressions(column):
            _orders[one] = _orders[like]
            if (keys := _orders[like].keys()) is not None:
                _keys[one] = keys
    return column


def note_given(table: Table, values: Any) -> None:
    """Remember that values which a user gives are rows of a table: equal ones may be a column of another."""
    for order in map(_orders.get, _own(table)):
        if order is not None:
            order.earlier.difference_update(_expressions(values))


def check_order(table: Table, values: Any, what: str) -> None:
    """Refuse what was made, row by row, of columns that have a table's rows in another order.

    Raises
    ------
    ShapeError
        With the way.
    """
    if not _orders:
        return
    own = _own(table)
    for node in _rows_of(_expressions(values), len(table), own):
        other = next((one for one in own if _are_in_other_orders(one, node)), None)
        if other is not None:
            text = (
                f"{what} is of a table whose rows are in another order: make it of this table's columns, as "
                'in s[s["fare"] > 5] after s = t.sort_values("zone"); NumPy\'s arrays are taken as they are'
            )
            raise ShapeError(_of_other_keys(what, other, node) or text)


def check_rows(*nodes: Expr) -> None:
    """Refuse columns that are made of columns of tables which have the same rows in different orders.

    Raises
    ------
    ShapeError
        With the way.
    """
    if not _orders or any(node.ndim != 1 for node in nodes):
        return
    made_of = [one for node in nodes for one in (node.operands if isinstance(node, Compress) else (node,))]
    found = {*_rows_of(made_of, made_of[0].shape[0], ())}
    moved = [one for one in found if one in _orders]
    pair = next(((one, two) for one in moved for two in found if _are_in_other_orders(one, two)), None)
    if pair is not None:
        text = (
            "columns of tables whose rows are in different orders, or which have different rows: make both "
            "of one table's columns; np.asarray(column) is taken by position"
        )
        raise ShapeError(_of_other_keys("a column", *pair) or text)


def check_keys(table: Table, other: Table, what: str) -> None:
    """Refuse tables of which one is groups' results, and the other has no equal keys.

    Raises
    ------
    ShapeError
        With the way.
    """
    names = table._keys or other._keys
    if names and not _are_equal(table[list(names)], other[list(names)]):
        raise ShapeError(f"{what} of tables with different keys: {_merging(names, names)}")


def _of_other_keys(what: str, one: Expr, two: Expr) -> str:
    first, second = _orders.get(one), _orders.get(two)
    if first is None or second is None or not first.names or not second.names:
        return ""
    return f"{what} is of groups with other keys: {_merging(first.names, second.names)}"


def _merging(left: tuple[str, ...], right: tuple[str, ...]) -> str:
    one, two = (repr(names[0] if len(names) == 1 else [*names]).replace("'", '"') for names in (left, right))
    on = f"on={one}" if one == two else f"left_on={one}, right_on={two}"
    return f'a.merge(b, {on}, how="outer") has rows of equal keys side by side, with NaN where one has none'


def _are_in_other_orders(one: Expr, other: Expr) -> bool:
    first, second = _orders.get(one), _orders.get(other)
    if first is second:  # of one table, or of none
        return False
    if first is not None and second is not None:
        if first.names and second.names:
            keys, others = first.keys(), second.keys()
            return keys is None or others is None or not _are_equal(keys, others)
        if any(each in second.earlier for each in first.earlier):
            return True
    return (first is not None and other in first.earlier) or (second is not None and one in second.earlier)


def _are_equal(keys: Table, others: Table) -> bool:
    if keys.shape != others.shape:
        return False
    for one, two in zip(keys._columns.values(), others._columns.values(), strict=True):
        if _expressions(one) == _expressions(two) and getattr(one, "labels", 0) is getattr(two, "labels", 0):
            continue
        values, their = np.asarray(one), np.asarray(two)
        are_missing = (values != values) & (their != their)
        if not np.all((values == their) | are_missing):
            return False
    return True


def _rows_of(nodes: Iterable[Expr], length: int, own: Iterable[Expr]) -> Iterator[Expr]:
    # What values are made of, row by row, but for a table's own columns and what these are made of.
    waiting = list(nodes)
    seen = {*own, *waiting}
    most = len(seen) + _FAR  # also of a table of many columns
    waiting = [one for one in waiting if one not in own]
    while waiting and len(seen) < most:
        node = waiting.pop()
        yield node
        if node not in _orders:  # beyond lies another order
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
