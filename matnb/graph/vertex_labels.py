"""The labels of a matrix's rows and columns, followed through what is made of it: ids, or names."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.expr.control import Final, Loop
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
            _found[node] = _axes(node, _found) if node.ndim == 2 else _NONE
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
    if node.ndim != 2:
        return ()
    operands = (
        node.control.inputs if isinstance(node, Final) and isinstance(node.control, Loop) else node.operands
    )
    return tuple(one for one in operands if one.ndim == 2)


def _axes(node: Expr, found: MutableMapping[Expr, _Axes]) -> _Axes:
    if node in NOTED_LABELS:
        return _noted(node, NOTED_LABELS[node])
    match node:
        case Transpose(operand, (1, 0)):
            rows, columns = found[operand]
            return columns, rows
        case Elementwise():
            return _together([found[one] for one in node.inputs if one.shape == node.shape])
        case MatMul(left, right) | MaskedMatMul(left, right) if left.ndim == right.ndim == 2:
            rows = found[right][0] if _is_scale(left) else found[left][0]
            return rows, found[left][1] if _is_scale(right) else found[right][1]
        case Index(operand, key) if len(key) == operand.ndim == 2 and None not in key:
            rows, columns = found[operand]
            return _indexed(rows, key[0]), _indexed(columns, key[1])
        case Pick(operand, (places,), axis) if operand.ndim == 2 and places.ndim == 1:
            picked = list(found[operand])
            labels = picked[axis]
            picked[axis] = labels and AxisLabels(Pick(labels.values, (places,), 0), labels.names)
            return picked[0], picked[1]
        case Compress(operand, mask, before, after) if operand.ndim == 2 and mask.ndim == 1:
            rows, columns = found[operand]
            kept = rows and AxisLabels(Compress(rows.values, mask, before, after), rows.names)
            return kept, columns
        case AtEntries(operand):
            return found[operand]
        case Final(loop, place) if isinstance(loop, Loop) and place < loop.num_state:
            return _kept_in(loop, found)[place]
    if isinstance(node, _ALIKE) and node.operands[0].shape == node.shape:
        return found[node.operands[0]]
    return _NONE


def _kept_in(loop: Loop, outside: MutableMapping[Expr, _Axes]) -> list[_Axes]:
    # The labels that each state has before and after every iteration: it loses those that its body changes.
    variables = loop.variables
    given = [*loop.state, None, *loop.given]
    inside: dict[Expr, _Axes] = {
        variable: _NONE if one is None else outside.get(one, _NONE)
        for variable, one in zip(variables, given, strict=True)
    }
    states = variables[: loop.num_state]
    changed = True
    for _ in range(2 * loop.num_state + 1):
        found: dict[Expr, _Axes] = dict(inside)
        for node in topological(loop.body.results, found, _operands):
            if node not in found:
                found[node] = _axes(node, found) if node.ndim == 2 else _NONE
        after = [found[one] for one in loop.body.results]
        kept = [_alike(inside[one], new) for one, new in zip(states, after, strict=True)]
        changed = kept != [inside[one] for one in states]
        inside.update(zip(states, kept, strict=True))
    return [_NONE] * loop.num_state if changed else kept


def _alike(one: _Axes, other: _Axes) -> _Axes:
    return (one[0] if one[0] == other[0] else None), (one[1] if one[1] == other[1] else None)


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
