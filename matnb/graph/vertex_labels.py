"""The labels of the axes of matrices and vectors, followed through what is made of them: ids, or names."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from matnb.blocks.creation import Arange
from matnb.blocks.foreign import is_graph, names_of
from matnb.errors import ShapeError, TooLargeError
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
    Reduce,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import topological
from matnb.io.edges import EdgeList
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.labels import LABEL_CHECKS, LABEL_FINDERS, NOTED_LABELS, are_same, difference, unlabeled
from matnb.lazy.registry import METHODS, SPARSE_METHODS
from matnb.ops.diagonals import DiagonalMatrix, Triangle
from matnb.ops.indexing import Pick, Put, PutWhere
from matnb.ops.pattern import AtEntries, Pattern
from matnb.ops.selecting import Compress, Expand, Prune, Select, SelectBy

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class AxisLabels:
    """The labels of an axis: values of an expression, or names at the places that it has.

    Attributes
    ----------
    values
        Whole numbers, shape (n,).
    names
        Names, of which the values are the places.
    is_shown
        False where the labels are the numbers of rows, which users do not get as labels.
    is_compared
        False where others may be combined with them: targets of rows, and elements that a user picked from
        a vector, as from an array that has no labels.
    """

    values: Expr
    names: _Names | None = None
    is_shown: bool = True
    is_compared: bool = True


@dataclass(frozen=True, eq=False)
class _Names:
    array: npt.NDArray[Any]


_Axes = tuple[AxisLabels | None, ...]
_found: WeakKeyDictionary[Expr, _Axes] = WeakKeyDictionary()
_in_loops: WeakKeyDictionary[Expr, list[_Axes]] = WeakKeyDictionary()  # of the states of each loop
_arrays: WeakKeyDictionary[Expr, npt.NDArray[Any]] = WeakKeyDictionary()  # of values that were compared
_ALIKE = (Regrid, Pattern, Triangle, Prune, Select, SelectBy, Put, PutWhere, Expand)
_PICKS = (Index, Pick, Compress)
_WORDS = {
    "row": ("a row", "rows"),
    "column": ("a column", "columns"),
    "element": ("an element", "elements"),
    "inner": ("", "columns and rows"),
}


def axes_of(root: Expr) -> _Axes:
    """Return the labels of each axis of a matrix or vector, as far as they are known.

    Raises
    ------
    ShapeError
        For matrices or vectors of different labels that are combined.
    """
    for node in topological([root], _found, _operands):
        if node not in _found:
            _found[node] = _axes(node, _found, _in_loops)
    return _found[root]


def row_labels(node: Expr) -> DistArray | npt.NDArray[Any] | None:
    """Return the labels of the first axis: ids as a DistArray, names as NumPy's array."""
    labels = next(iter(axes_of(node)), None)
    if labels is None or not labels.is_shown:
        return None
    return DistArray(labels.values) if labels.names is None else label_values(DistArray(node))


def without_labels(array: DistArray) -> DistArray:
    """Return an array alone, which is combined with others row by row and column by column.

    Examples
    --------
    >>> import networkx as nx, matnb as mn
    >>> A = mn.asarray(nx.DiGraph([("a", "b")]))
    >>> B = mn.asarray(nx.DiGraph([("b", "a")]))
    >>> (A.without_labels() + B.without_labels()).toarray()
    array([[0, 2],
           [0, 0]])
    """
    return wrap(unlabeled(array.expression))


def labels_of_graph(A: Any) -> AxisLabels | None:
    """Return the labels of the vertices of what a user gave as a graph."""
    names = getattr(A, "row_labels", None)  # of a pivot
    if names is None and is_graph(A):
        names = names_of(A)
    if names is not None:
        return _named(names)
    return next(iter(axes_of(A.expression)), None) if isinstance(A, DistArray) else None


def label_values(A: Any) -> npt.NDArray[Any] | None:
    """Return the labels of what a user gave as a graph, in this process; None where it has none."""
    labels = labels_of_graph(A)
    if labels is None or not labels.is_shown:
        return None
    names = labels.names
    if names is not None and isinstance(labels.values, Create):
        return names.array  # all of them, in their order
    if labels.values not in _arrays:
        _arrays[labels.values] = np.asarray(DistArray(labels.values))
    values = _arrays[labels.values]
    return values if names is None else names.array[values]


def named_by_vertices(function: _Function) -> _Function:
    """Return a graph algorithm whose results have the labels of the vertices, where the graph has some.

    An axis is one of vertices if it is as long as the graph, unless its labels are known already.
    """

    @wraps(function)
    def named(A: Any, *args: Any, **options: Any) -> Any:
        found = function(A, *args, **options)
        labels = labels_of_graph(A)
        if labels is not None:
            for one in found if isinstance(found, tuple) else (found,):
                if isinstance(one, DistArray):
                    note(one, (labels,) * one.ndim)
        return found

    return cast(_Function, named)


def note(array: DistArray, labels: Sequence[AxisLabels | None]) -> DistArray:
    """Give the axes of a result labels, those that have none yet and are as long, and return it."""
    node = array.expression
    if node.ndim > 2 or not _is_of_data(node):
        return array
    fit = [
        None if one is None or one.values.shape[0] != length else one
        for one, length in zip(labels, node.shape, strict=True)
    ]
    known = axes_of(node)
    _found[node] = tuple(own or new for own, new in zip(known, fit, strict=True))
    return array


def picked_labels(labels: AxisLabels | None, places: Sequence[int] | npt.NDArray[np.int64]) -> Any:
    """Return the labels of some vertices, by their rows; None where the graph has none."""
    if labels is None:
        return None
    values = DistArray(labels.values)[np.asarray(places, np.int64)]
    return replace(labels, values=values.expression)


def check_same_vertices(one: DistArray, A: Any, name: str) -> None:
    """Refuse a vector, or the pairs, of the vertices of another graph.

    Raises
    ------
    ShapeError
        For them; it lists some labels that only one side has.
    """
    graph = labels_of_graph(A)
    for labels in axes_of(one.expression):
        _matched(labels, graph, name, "element")


def _named(names: npt.NDArray[Any]) -> AxisLabels:
    return AxisLabels(_numbers(len(names)), _Names(names))


def _numbers(length: int) -> Expr:
    return Create(Arange(0, 1, length, np.dtype(np.int64)))


def _is_of_data(node: Expr) -> bool:
    # What is made of parameters alone is the same expression for any graph.
    return any(not one.operands and not isinstance(one, Create) for one in topological([node]))


def _operands(node: Expr) -> tuple[Expr, ...]:
    # Those that may have labels.
    if node.ndim > 2:
        return ()
    operands = (
        node.control.inputs if isinstance(node, Final) and isinstance(node.control, Loop) else node.operands
    )
    return tuple(one for one in operands if one.ndim <= 2)


def _axes(node: Expr, found: MutableMapping[Expr, _Axes], loops: MutableMapping[Expr, list[_Axes]]) -> _Axes:
    none: _Axes = (None,) * node.ndim
    if node.ndim > 2:
        return none
    if node in NOTED_LABELS:
        return _noted(node, NOTED_LABELS[node])
    match node:
        case Load(EdgeList(), "matrix"):
            numbers = AxisLabels(_numbers(node.shape[0]), is_shown=False)
            return numbers, numbers
        case Transpose(operand, axes):
            return tuple(found[operand][axis] for axis in axes)
        case Elementwise("astype", (operand,)) if operand.dtype == node.dtype:
            return none  # of without_labels
        case Elementwise() | Broadcast():
            return _together(node, [one for one in node.operands if one.ndim <= 2], found)
        case MatMul(left, right) | MaskedMatMul(left, right) if found.get(left) and found.get(right):
            return _of_product(node, found)
        case Reduce(operand, axes=axes) if operand.ndim == 2 and len(axes) == 1:
            kept = list(found[operand])
            kept[axes[0]] = None
            return tuple(kept) if node.ndim == 2 else (kept[1 - axes[0]],)
        case Index(operand, key) if found.get(operand):
            return _indexed(found[operand], key)
        case Pick(operand, (places,), axis) if found.get(operand) and places.ndim == 1:
            picked = list(found[operand])
            picked[axis] = _of_some(picked[axis], lambda values: Pick(values, (places,), 0), operand.ndim)
            return tuple(picked)
        case Compress(operand, mask, before, after) if found.get(operand) and mask.ndim == 1:
            first, *rest = found[operand]
            return _of_some(first, lambda values: Compress(values, mask, before, after), operand.ndim), *rest
        case AtEntries(operand):
            return found[operand]
        case DiagonalMatrix(operand, 0):
            return found[operand] * 2
        case Final(loop, place) if isinstance(loop, Loop) and place < loop.num_state:
            if loop not in loops:
                loops[loop] = _kept_in(loop, found)
            return loops[loop][place]
    if isinstance(node, _ALIKE) and node.operands[0].shape == node.shape:
        return found[node.operands[0]]
    return none


def _kept_in(loop: Loop, outside: MutableMapping[Expr, _Axes]) -> list[_Axes]:
    # The labels that each state has before and after every iteration: it loses those that its body changes.
    variables = loop.variables
    given = [*loop.state, None, *loop.given]
    inside: dict[Expr, _Axes] = {
        variable: (None,) * variable.ndim if one is None or one.ndim > 2 else outside[one]
        for variable, one in zip(variables, given, strict=True)
    }
    states = variables[: loop.num_state]
    if not any(any(axes) for axes in inside.values()):
        return [inside[one] for one in states]
    for _ in range(2 * loop.num_state + 1):
        found: dict[Expr, _Axes] = dict(inside)
        loops: dict[Expr, list[_Axes]] = {}
        for node in topological(loop.body.results, found, _operands):
            if node not in found:
                found[node] = _axes(node, found, loops)
        after = [found[one] for one in loop.body.results]
        kept = [_alike(inside[one], new) for one, new in zip(states, after, strict=True)]
        if kept == [inside[one] for one in states]:
            return kept
        inside.update(zip(states, kept, strict=True))
    return [(None,) * one.ndim for one in states]


def _alike(axes: _Axes, others: _Axes) -> _Axes:
    return tuple(one if one == other else None for one, other in zip(axes, others, strict=True))


def _noted(node: Expr, labels: Expr | npt.NDArray[Any] | tuple[npt.NDArray[Any], ...]) -> _Axes:
    if isinstance(labels, tuple):  # of a pivot
        return tuple(map(_named, labels))
    if not isinstance(labels, Expr):
        return (_named(labels),) * node.ndim
    source = node
    while isinstance(source, Regrid):
        source = source.operand
    if isinstance(source, Load) and isinstance(source.source, EdgeList):
        return (AxisLabels(labels),) * node.ndim
    return AxisLabels(labels, is_compared=False), *(None,) * (node.ndim - 1)  # a target for each row


# What is combined: what has no labels goes along with what has some.


def _together(node: Expr, operands: Sequence[Expr], found: MutableMapping[Expr, _Axes]) -> _Axes:
    # As NumPy broadcasts, from the last axis on.
    name = getattr(node, "name", "broadcast")
    made: list[AxisLabels | None] = []
    for axis, length in enumerate(node.shape):
        labels = None
        for one in operands:
            own = axis - node.ndim + one.ndim
            if own >= 0 and one.shape[own] == length:
                labels = _matched(labels, found[one][own], name, _word(node.ndim, axis))
        made.append(labels)
    return tuple(made)


def _of_product(node: MatMul | MaskedMatMul, found: MutableMapping[Expr, _Axes]) -> _Axes:
    first, second = found[node.left], found[node.right]
    inner = _matched(first[-1], second[0], "matmul", "inner")
    rows = inner if _is_scale(node.left, first) else first[0]
    columns = inner if _is_scale(node.right, second) else second[-1]
    made = (*(rows for _ in first[:-1]), *(columns for _ in second[1:]))
    if isinstance(node, MaskedMatMul) and node.mask in found:
        mask = found[node.mask]
        words = [_word(node.ndim, axis) for axis in range(node.ndim)]
        sides = zip(made, mask, words, strict=True)
        return tuple(_matched(one, other, "matmul", word) for one, other, word in sides)
    return made


def _is_scale(node: Expr, axes: _Axes) -> bool:
    return isinstance(node, DiagonalMatrix) and not node.offset and axes[0] is None


def _word(ndim: int, axis: int) -> str:
    return "element" if ndim == 1 else ("row", "column")[axis]


def _matched(one: AxisLabels | None, other: AxisLabels | None, name: str, word: str) -> AxisLabels | None:
    # The labels of both; None where the two are not known to be the same.
    if one is None or other is None or one == other:
        return one or other
    if not (one.is_compared and other.is_compared):
        return None
    values = [_values_of(labels) for labels in (one, other)]
    first, second = values
    if first is None or second is None:
        return None
    if are_same(first, second):
        return one
    sides = (f"{_WORDS[word][0]} of one", f"{_WORDS[word][0]} of the other")
    if word == "inner":
        sides = ("a column of the first", "a row of the second")
    raise ShapeError(
        f"{name} of arrays whose {_WORDS[word][1]} have different labels: "
        f"{difference(first, second, sides)}. Give one without_labels() to combine them by position; of edge "
        "lists loaded with relabel=False and num_vertices=n the same row is the same vertex"
    )


def _values_of(labels: AxisLabels) -> npt.NDArray[Any] | None:
    # Those that were read or given, and those at places that were: nothing else is computed for it.
    node = labels.values
    if node not in _arrays:
        if not all(one.is_source or isinstance(one, _PICKS) for one in topological([node])):
            return None
        with suppress(TooLargeError):
            _arrays[node] = np.asarray(DistArray(node))
    values = _arrays.get(node)
    return values if labels.names is None or values is None else labels.names.array[values]


# What is picked


def _indexed(axes: _Axes, key: Sequence[int | slice | None]) -> _Axes:
    left = iter(axes)
    made: list[AxisLabels | None] = []
    for part in key:
        labels = None if part is None else next(left)
        if isinstance(part, int):
            continue
        if labels is not None and part != slice(0, labels.values.shape[0], 1):
            labels = _of_some(labels, _slice(part), len(axes))
        made.append(labels)
    return tuple(made)


def _slice(part: slice | None) -> Callable[[Expr], Expr]:
    return lambda values: Index(values, (part,))


def _of_some(labels: AxisLabels | None, pick: Callable[[Expr], Expr], ndim: int) -> AxisLabels | None:
    # Elements of a vector are taken out to be combined with others: `x[1:] - x[:-1]`.
    if labels is None:
        return None
    return replace(labels, values=pick(labels.values), is_compared=labels.is_compared and ndim == 2)


LABEL_FINDERS.append(row_labels)
LABEL_CHECKS.append(axes_of)
for _methods in (METHODS, SPARSE_METHODS):
    _methods["without_labels"] = without_labels
