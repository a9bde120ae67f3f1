"""The labels of a matrix's rows and columns, followed through what is made of it: ids, or names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Elementwise,
    Expr,
    Index,
    Load,
    MaskedMatMul,
    MatMul,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import topological
from matnb.io.edges import EdgeList
from matnb.lazy.array import DistArray
from matnb.lazy.labels import LABEL_FINDERS, NOTED_LABELS
from matnb.ops.diagonals import DiagonalMatrix, Triangle
from matnb.ops.indexing import Pick, Put, PutWhere
from matnb.ops.pattern import AtEntries, Pattern
from matnb.ops.selecting import Compress, Expand, Prune, Select, SelectBy


@dataclass(frozen=True)
class AxisLabels:
    """The labels of an axis: values of an expression, or names at the places that it has.

    Two axes have the same labels if they come from the same array in the same way; none are compared.
    """

    values: Expr
    names: _Names | None = None


@dataclass(frozen=True, eq=False)
class _Names:
    array: npt.NDArray[Any]


_Axes = tuple[AxisLabels | None, AxisLabels | None]
_NONE: _Axes = (None, None)
_found: WeakKeyDictionary[Expr, _Axes] = WeakKeyDictionary()
_ALIKE = (Regrid, Pattern, Triangle, Prune, Select, SelectBy, Put, PutWhere, Expand, Broadcast)


def axes_of(root: Expr) -> _Axes:
    """Return the labels of the rows and of the columns of an expression, as far as they are known."""
    for node in topological([root], _found, _operands):
        if node not in _found:
            _found[node] = _axes(node) if node.ndim == 2 else _NONE
    return _found[root]


def row_labels(node: Expr) -> DistArray | npt.NDArray[Any] | None:
    """Return the labels of the rows of an expression: ids as a DistArray, names as NumPy's array."""
    labels = axes_of(node)[0] if node.ndim == 2 else None
    if labels is None:
        return None
    values = DistArray(labels.values)
    return values if labels.names is None else labels.names.array[np.asarray(values)]


def _operands(node: Expr) -> tuple[Expr, ...]:
    # Those that may have labels.
    return tuple(one for one in node.operands if one.ndim == 2) if node.ndim == 2 else ()


def _axes(node: Expr) -> _Axes:
    if node in NOTED_LABELS:
        return _noted(node, NOTED_LABELS[node])
    match node:
        case Transpose(operand, (1, 0)):
            rows, columns = _found[operand]
            return columns, rows
        case Elementwise():
            return _together([_found[one] for one in node.inputs if one.shape == node.shape])
        case MatMul(left, right) | MaskedMatMul(left, right) if left.ndim == right.ndim == 2:
            rows = _found[right][0] if _is_scale(left) else _found[left][0]
            return rows, _found[left][1] if _is_scale(right) else _found[right][1]
        case Index(operand, key) if len(key) == operand.ndim == 2 and None not in key:
            rows, columns = _found[operand]
            return _indexed(rows, key[0]), _indexed(columns, key[1])
        case Pick(operand, (places,), axis) if operand.ndim == 2 and places.ndim == 1:
            picked = list(_found[operand])
            labels = picked[axis]
            picked[axis] = labels and AxisLabels(Pick(labels.values, (places,), 0), labels.names)
            return picked[0], picked[1]
        case Compress(operand, mask, before, after) if operand.ndim == 2 and mask.ndim == 1:
            rows, columns = _found[operand]
            kept = rows and AxisLabels(Compress(rows.values, mask, before, after), rows.names)
            return kept, columns
        case AtEntries(operand):
            return _found[operand]
    if isinstance(node, _ALIKE) and node.operands[0].shape == node.shape:
        return _found[node.operands[0]]
    return _NONE


def _noted(node: Expr, labels: Expr | npt.NDArray[Any]) -> _Axes:
    if not isinstance(labels, Expr):
        places = Create(Arange(0, 1, node.shape[0], np.dtype(np.int64)))
        vertices = AxisLabels(places, _Names(labels))
        return vertices, vertices
    source = node
    while isinstance(source, Regrid):
        source = source.operand
    rows = AxisLabels(labels)
    is_of_vertices = isinstance(source, Load) and isinstance(source.source, EdgeList)
    return rows, rows if is_of_vertices else None  # other files have a label for each row


def _together(axes: list[_Axes]) -> _Axes:
    # What has no labels goes along with what has some; two different sets leave none.
    return _same([one[0] for one in axes]), _same([one[1] for one in axes])


def _same(labels: list[AxisLabels | None]) -> AxisLabels | None:
    found = {one for one in labels if one is not None}
    return found.pop() if len(found) == 1 else None


def _indexed(labels: AxisLabels | None, key: Any) -> AxisLabels | None:
    if labels is None or not isinstance(key, slice):
        return None
    if key == slice(0, labels.values.shape[0], 1):
        return labels
    return AxisLabels(Index(labels.values, (key,)), labels.names)


def _is_scale(node: Expr) -> bool:
    return isinstance(node, DiagonalMatrix) and not node.offset


LABEL_FINDERS.append(row_labels)
