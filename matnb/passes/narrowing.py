"""The pass that drops what nobody reads: slices are pushed below the operations they are taken of."""

from __future__ import annotations

from math import prod

import numpy as np

from matnb.blocks.creation import window, worth_making
from matnb.blocks.grid import Region, all_of, region_shape
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Elementwise,
    Expr,
    Index,
    Key,
    Literal,
    Regrid,
    Shape,
    Transpose,
)
from matnb.expr.retention import is_made_in_parts
from matnb.expr.traverse import ExprGraph, Rewritten, Uses, rewrite, until_settled
from matnb.ops.indexing import Put
from matnb.ops.ordering import ArgSort, Smallest, Sort
from matnb.passes.constants import folded
from matnb.passes.identities import identity

_MOST_SLICES = 8  # of one array: from there on it is made as a whole
_MOST_LEAVES = 1000.0
# Of each row, of how many times as many elements, and in which dtypes the smallest are found without a sort.
_MOST_SMALLEST, _FEWER = 64, 8
_ORDERED = tuple(map(np.dtype, ("float64", "float32", "int64", "int32")))


def narrow(graph: ExprGraph) -> Rewritten:
    """Compute only the parts of arrays that are read, where nobody needs the whole and that is less work."""
    return until_settled(_narrowed, graph)


def _narrowed(graph: ExprGraph) -> Rewritten:
    if graph.kinds.isdisjoint((Index, Put)):
        return Rewritten(graph, {})
    uses = Uses(graph)
    rule = _Narrower(_parts_read(graph, uses), uses).narrowed
    return rewrite(graph, rule, downward=True)


def _parts_read(graph: ExprGraph, uses: Uses) -> set[Expr]:
    # The expressions of which only slices are read, in less work than the whole takes.
    slices: dict[Expr, frozenset[Expr]] = {}
    partly: set[Expr] = set()
    for node in reversed(graph.order):
        if isinstance(node, Index):
            slices[node] = frozenset([node])
        elif (
            (isinstance(node, Elementwise | Broadcast | Transpose | Put) or is_made_in_parts(node))
            and node not in uses.kept
            and (users := uses.of(node))
            and all(isinstance(user, Index) or user in partly for user in users)
        ):
            read = frozenset().union(*dict.fromkeys(slices[user] for user in users))
            if len(read) <= _MOST_SLICES:
                slices[node] = read
                partly.add(node)
    leaves: dict[Expr, float] = {}
    for node in graph.order:
        leaves[node] = 0.0 if isinstance(node, Literal | Create) else 1.0
        if node in partly and leaves[node]:
            below = sum(leaves[one] for one in dict.fromkeys(node.operands))
            leaves[node] = min(_MOST_LEAVES, max(1.0, below))
    return {node for node in partly if _share(slices[node]) * (leaves[node] or 1.0) <= 1.0}


def _share(slices: frozenset[Expr]) -> float:
    return sum(prod(one.shape) / max(1, prod(one.operands[0].shape)) for one in slices)


class _Narrower:
    # Rules that ask of which expressions only parts are read.

    def __init__(self, partly: set[Expr], uses: Uses) -> None:
        self._partly, self._uses, self._kept = partly, uses, uses.kept

    def narrowed(self, node: Expr) -> Expr | None:
        match node:
            case Index(operand, key):
                found = identity(node) or folded(node) or self._sliced(operand, key)
            # what is written over was never there
            case Put(Put(operand, _, first, place), value, second, key) if place == key and first == second:
                found = Put(operand, value, second, key)
            case _:
                return None
        if found is None or (found.shape, found.sparse) != (node.shape, node.sparse):
            return None
        return found

    def _sliced(self, operand: Expr, key: Key) -> Expr | None:
        if None in key:
            return None
        match operand:
            # x[first][second] = x[first[second]]
            case Index(inner, first) if None not in first and operand not in self._kept:
                return Index(inner, _within(first, key, inner.shape))
            case Put():
                return self._beside(operand, key)
            # sort(x)[:, :k] = the k smallest of each row
            case Sort(inner, 1) | ArgSort(inner, 1) if self._uses.is_alone(operand):
                return _smallest(inner, key, isinstance(operand, ArgSort))
        if operand not in self._partly:
            return None
        match operand:
            # what is made from parameters is made where it is read
            case Create() | Regrid(Create()):
                return _made_within(operand, key)
            # f(x, y)[key] = f(x[key], y[key])
            case Elementwise() if not operand.sparse or all(isinstance(part, slice) for part in key):
                # absent times infinity is absent only in a sparse array, and a row of one is dense
                return operand.with_operands(*(_part(one, key, operand.shape) for one in operand.operands))
            # broadcast(x)[key] = broadcast(x[key])
            case Broadcast(inner):
                return _simplest(Broadcast(_part(inner, key, operand.shape), _shape_of(key)))
            # (x ' axes)[key] = x[key at axes] ' axes that are left
            case Transpose(inner, axes):
                turned = tuple(key[axes.index(axis)] for axis in range(len(axes)))
                left = [axis for axis, one in zip(axes, key, strict=True) if isinstance(one, slice)]
                part = _indexed(inner, turned)
                order = tuple(sorted(left).index(axis) for axis in left)
                return part if order == tuple(range(len(order))) else Transpose(part, order)
        return None

    def _beside(self, put: Put, key: Key) -> Expr | None:
        if put.inputs:
            return None
        # put(x, v, key)[key] = v
        if put.key == key:
            if put.value.sparse or put.value.dtype != put.dtype:
                return None
            return _simplest(Broadcast(put.value, put.target))
        # put(x, v, place)[key] = x[key], where they have nothing in common
        apart = any(
            not _meet(one, other) for one, other in zip(map(_range, put.key), map(_range, key), strict=True)
        )
        return Index(put.operand, key) if apart and put in self._partly else None


def _made_within(source: Create | Regrid, key: Key) -> Expr | None:
    # A part of a source, of which no more is made than around the part, cut where the source was to be.
    whole = source.operand if isinstance(source, Regrid) else source
    assert isinstance(whole, Create), "looked for before"
    region = worth_making(whole.creation, _bounds(key))
    if region == all_of(source.shape) or 0 in region_shape(region):
        return None
    made: Expr = Create(window(whole.creation, region))
    if isinstance(source, Regrid):
        made = Regrid(made, tuple(_within_bounds(*one) for one in zip(source.cuts, region, strict=True)))
    places = tuple(_moved(part, start) for part, (start, _) in zip(key, region, strict=True))
    return _indexed(made, places)


def _within_bounds(cuts: tuple[int, ...], bounds: tuple[int, int]) -> tuple[int, ...]:
    start, stop = bounds
    return (0, *(cut - start for cut in cuts if start < cut < stop), stop - start)


def _bounds(key: Key) -> Region:
    # The rectangle around all places of a key.
    found = []
    for part in key:
        places = _range(part)
        found.append((min(places[0], places[-1]), max(places[0], places[-1]) + 1) if places else (0, 0))
    return tuple(found)


def _moved(part: int | slice | None, start: int) -> int | slice | None:
    # The same places, counted from another one.
    if not isinstance(part, slice):
        return None if part is None else part - start
    places = _range(part)
    return _as_slice(range(places.start - start, places.stop - start, places.step))


def _smallest(operand: Expr, key: Key, is_places: bool) -> Expr | None:
    # The loop that finds a few goes through a row once; of many it moves too many at each.
    columns = key[1]
    if operand.ndim != 2 or not isinstance(columns, slice) or (columns.start, columns.step) != (0, 1):
        return None
    count = len(_range(columns))
    if not 0 < count <= _MOST_SMALLEST or _FEWER * count > operand.shape[1] or operand.dtype not in _ORDERED:
        return None
    return _indexed(Smallest(operand, count, is_places), (key[0], columns))


def _part(operand: Expr, key: Key, shape: Shape) -> Expr:
    # What a slice of an array needs of an operand, which is stretched to it.
    own = key[len(shape) - operand.ndim :]
    parts: list[int | slice | None] = []
    for part, length, whole in zip(own, operand.shape, shape[len(shape) - operand.ndim :], strict=True):
        stretched = length == 1 and whole != 1
        parts.append((slice(0, 1, 1) if isinstance(part, slice) else 0) if stretched else part)
    return _indexed(operand, tuple(parts))


def _indexed(operand: Expr, key: Key) -> Expr:
    return _simplest(Index(operand, key))


def _simplest(node: Expr) -> Expr:
    return identity(node) or folded(node) or node


def _shape_of(key: Key) -> Shape:
    return tuple(len(_range(part)) for part in key if isinstance(part, slice))


def _within(first: Key, second: Key, shape: Shape) -> Key:
    # The places that the second index picks of those that the first one does.
    remaining = iter(second)
    result: list[int | slice | None] = []
    for part, length in zip(first, shape, strict=True):
        if not isinstance(part, slice):
            result.append(part)
            continue
        places, chosen = range(*part.indices(length)), next(remaining)
        if isinstance(chosen, int):
            result.append(places[chosen])
            continue
        assert chosen is not None, "looked for before"
        result.append(_as_slice(places[chosen]))
    return tuple(result)


def _as_slice(places: range) -> slice:
    # As recording writes it, so that slices of the same elements are equal.
    if not len(places):
        return slice(0, 0, 1)
    if len(places) == 1:
        return slice(places[0], places[0] + 1, 1)
    stop = places[-1] + (1 if places.step > 0 else -1)
    return slice(places[0], None if stop < 0 else stop, places.step)


def _range(part: int | slice | None) -> range:
    # Of a part with bounds inside its axis.
    if not isinstance(part, slice):
        assert part is not None, "looked for before"
        return range(part, part + 1)
    stop = part.stop
    return range(part.start, -1 if stop is None else stop, part.step)


def _meet(one: range, other: range) -> bool:
    # Ranges whose bounds overlap are taken to meet, though their steps may miss each other.
    if not len(one) or not len(other):
        return False
    (low, high), (first, last) = sorted((one[0], one[-1])), sorted((other[0], other[-1]))
    return low <= last and first <= high
