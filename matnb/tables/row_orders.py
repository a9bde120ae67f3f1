"""The order of rows: what was made of a table's columns is not combined with its rows in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Elementwise,
    Expr,
    Index,
    MatMul,
    Reduce,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import topological
from matnb.lazy.array import DistArray
from matnb.ops.folding import Extreme, Fold
from matnb.ops.grouping import Codes, Picked, Running
from matnb.ops.indexing import Pick, Put, PutAlong, TakeAlong
from matnb.ops.joining import Concatenate
from matnb.ops.mapping import MapBlocks
from matnb.ops.quantiles import Quantiles
from matnb.ops.reshaping import Reshape
from matnb.ops.row_distances import NearestRows, RowDistances
from matnb.ops.row_extremes import RowExtremes
from matnb.ops.scanning import AssociativeScan, Recurrence, Scan
from matnb.ops.searching import Interpolate, Member, Search
from matnb.ops.selecting import Compress, Expand
from matnb.ops.sliding import Convolve, WindowRolled
from matnb.tables.matching import Taken

if TYPE_CHECKING:
    from matnb.tables.table import Table

_FAR = 256  # expressions that are gone through to find a table's column


class RowOrder:
    """The rows of a table: what had them in another order before, and of groups' results the keys."""

    def __init__(self) -> None:
        self.earlier: WeakSet[Expr] = WeakSet()
        self.derived: WeakValueDictionary[Any, RowOrder] = WeakValueDictionary()  # by what picks the rows
        self.names: tuple[str, ...] = ()
        self.keys: Callable[[], Table | None] = lambda: None  # a weak reference: keys are of this order, too


_orders: WeakKeyDictionary[Expr, RowOrder] = WeakKeyDictionary()
_keys: WeakKeyDictionary[Expr, Table] = WeakKeyDictionary()  # of values of groups, which keep them


def reordered(made: Table, *olds: Table) -> Table:
    """Remember that the rows of a table are those of others in another order, and return it.

    Those of groups' results are an order of their own, which other results have whose keys are equal.
    """
    own, before = _own(made), {one for old in olds for one in _own(old)}
    known = {_orders[one] for one in before if one in _orders}
    order = next((_orders[one] for one in own if one in _orders), None) or _picked_alike(own, known)
    order.earlier.update(before)
    for other in known:
        order.earlier |= other.earlier
    for one in own:
        order.earlier.discard(one)
    if made._keys:
        there = order.keys()
        keys = made[list(made._keys)] if there is None else there
        order.names, order.keys = made._keys, ref(keys)
        made._key_columns = keys
        for one in own - _own(keys):
            _keys[one] = keys
    for one in own:
        _orders[one] = order
    return made


def _picked_alike(own: Iterable[Expr], known: Iterable[RowOrder]) -> RowOrder:
    # The order of rows that were picked alike from other columns of a table, or a new one.
    order = RowOrder()
    for one in own:
        if isinstance(one, Index | Compress | Pick | Taken):
            how = (one.operands[1:], repr(getattr(one, "key", None)))
            for other in known:
                order = other.derived.setdefault(how, order)
            break
    return order


def of_rows(table: Table, column: Any) -> Any:
    """Remember that a column has a value for each row of a table, in their order, and return it."""
    like = next((one for one in _own(table) if one in _orders), None)
    if like is not None:
        for one in _with_order(column):
            _orders[one] = _orders[like]
            if (keys := _orders[like].keys()) is not None:
                _keys[one] = keys
    return column


def note_given(table: Table, values: Any) -> None:
    """Remember that values which a user gives are rows of a table: equal ones may be a column of another."""
    for order in map(_orders.get, _own(table)):
        if order is not None:
            order.earlier.difference_update(_with_order(values))


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
    for node in _rows_of(_with_order(values), len(table), own):
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


def check_rows_of(X: Any, values: Any, what: str) -> None:
    """Refuse values for the rows of a matrix or table that are of a table which has them in another order.

    Raises
    ------
    ShapeError
        With the way.
    """
    if not _orders:
        return
    own = _own(X) if hasattr(X, "_key_columns") else _with_order(X)
    if not own:
        return
    rows, others = ({*_rows_of(one, X.shape[0], ())} for one in (own, _with_order(values)))
    if not any(one in _orders for one in rows | others):
        return
    pair = next(((one, two) for one in rows for two in others if _are_in_other_orders(one, two)), None)
    if pair is not None:
        text = (
            f"{what} is of a table whose rows are in another order than those of X: make both of one table's "
            "columns; np.asarray(column) is taken by position"
        )
        raise ShapeError(_of_other_keys(what, *pair) or text)


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
    waiting = [(one, 0, False) for one in nodes]  # where rows lie along an axis, perhaps the last one first
    seen = {*own, *nodes}
    most = len(seen) + _FAR  # also of a table of many columns
    waiting = [one for one in waiting if one[0] not in own]
    while waiting and len(seen) < most:
        node, axis, is_reversed = waiting.pop()
        if not is_reversed and not _is_constant(node):
            yield node
        if is_reversed or node not in _orders:  # beyond lies another order
            for one, place in _row_by_row(node, axis):
                if one not in seen and 0 <= place < one.ndim and one.shape[place] == length:
                    seen.add(one)
                    waiting.append((one, place, is_reversed ^ _is_reversal(node, axis)))


def _row_by_row(node: Expr, axis: int) -> Iterable[tuple[Expr, int]]:
    # What lines across an axis are made of: operands, and the axes along which these have them in one order.
    operands = node.operands
    match node:
        case Elementwise() | Broadcast():
            return [(one, axis - (node.ndim - one.ndim)) for one in operands]
        case (
            Concatenate() | Regrid() | Scan() | AssociativeScan() | Recurrence() | Running() | WindowRolled()
        ):
            return [(one, axis) for one in operands]
        case Codes() | PutAlong() | Expand() | Compress() | MapBlocks():
            return [(one, axis) for one in operands]
        case Interpolate() | Put() | Convolve():
            return [(operands[0], axis)]
        case NearestRows() | RowDistances() | RowExtremes() if axis == 0:
            return [(operands[0], 0)]
        case Search() | Member() | Picked():
            return [(operands[1], axis)]
        case MatMul(left=left, right=right):
            return [(left, 0)] if axis == 0 and left.ndim == 2 else [(right, 1)]
        case (
            Reduce(axes=axes, keepdims=keepdims)
            | Extreme(axes=axes, keepdims=keepdims)
            | Fold(axes=axes, keepdims=keepdims)
        ):
            kept = [one for one in range(operands[0].ndim) if keepdims or one not in axes]
            return [(operands[0], kept[axis])]
        case Quantiles(wanted=wanted):
            return [(operands[0], axis - len(wanted.shape))]
        case Transpose(axes=axes):
            return [(operands[0], axes[axis])]
        case Reshape(operand=operand):
            before = prod(node.shape[:axis])
            return [(operand, one) for one in range(operand.ndim) if prod(operand.shape[:one]) == before]
        case Index(key=key):
            found = [one for one, part in enumerate(key) if part is None or isinstance(part, slice)][axis]
            is_whole = _is_whole(key[found], node.shape[axis]) or _is_reversal(node, axis)
            return [(operands[0], found - key[:found].count(None))] if is_whole else []
        case Pick(axis=0) | Taken() if len(operands) == 2 and axis == 0:
            # What is looked up is of the rows of the places, unless these are numbers alone, as of a shift.
            return [(operands[0] if _is_of_numbers(operands[1]) else operands[1], 0)]
        case Pick(axis=other) | TakeAlong(axis=other) if axis < other:
            return [(operands[0], axis)]
    return []


def _is_whole(part: Any, length: int) -> bool:
    return isinstance(part, slice) and part.indices(length) == (0, length, 1)


def _is_reversal(node: Expr, axis: int) -> bool:
    if not isinstance(node, Index):
        return False
    part = [one for one in node.key if one is None or isinstance(one, slice)][axis]
    length = node.shape[axis]
    return part is not None and part.indices(length) == (length - 1, -1, -1)


def _is_of_numbers(places: Expr) -> bool:
    found = list(islice(topological([places]), _FAR))
    return all(isinstance(one, Create) or one.ndim == 0 for one in found if not one.operands)


def _own(table: Table) -> set[Expr]:
    return {one for column in table.values() for one in _with_order(column)}


def _expressions(values: Any) -> set[Expr]:
    if hasattr(values, "codes"):  # a column of another type than numbers
        values = (values.codes, values.missing) if values.may_miss else (values.codes,)
    parts = values if isinstance(values, tuple) else (values,)
    return {one.expression for one in parts if isinstance(one, DistArray)}


def _with_order(values: Any) -> set[Expr]:
    return {one for one in _expressions(values) if not _is_constant(one)}


def _is_constant(node: Expr) -> bool:
    # Constants and ranges are the same nodes in all tables, so they are of none: they are taken by position.
    return isinstance(node, Create) and node.is_cheap


def check_length(name: str, length: int, wanted: int) -> None:
    """Refuse a column that is longer or shorter than another.

    Raises
    ------
    ShapeError
        With both lengths.
    """
    if length != wanted:
        raise ShapeError(f"column {name!r} has {length:,} rows where others have {wanted:,}")
