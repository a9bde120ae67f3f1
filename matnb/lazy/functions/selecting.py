"""NumPy's functions that find and pick what is true: nonzero, compress, choose and their kin."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from matnb.errors import DTypeError, IndexingError, ShapeError
from matnb.expr.nodes import Broadcast, Expr, Index, broadcast_shapes
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, operand_of, wrap
from matnb.lazy.force import asked
from matnb.lazy.functions.picking import modulo, within
from matnb.lazy.functions.reshaping import laned, reshaped
from matnb.lazy.indexing.compress import places_where
from matnb.lazy.indexing.getitem import read
from matnb.lazy.reductions import where
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, literal
from matnb.ops.joining import Concatenate


@implements(np.nonzero)
def nonzero(a: object, /) -> tuple[DistArray, ...]:
    """``numpy.nonzero``: places on each axis, in row order; stored zeros are none."""
    node = expression_of(a)
    if not node.shape:
        raise ShapeError("nonzero of an array without axes; use np.atleast_1d(x).nonzero()")
    return tuple(map(wrap, places_where(node)))


@implements(np.flatnonzero)
def flatnonzero(a: object) -> DistArray:
    """``numpy.flatnonzero``."""
    node = expression_of(a)
    (places,) = places_where(node if node.ndim == 1 else reshaped(node, (-1,)))
    return wrap(places)


@implements(np.argwhere)
def argwhere(a: object) -> DistArray:
    """``numpy.argwhere``: a row of places for each element that is not zero."""
    node = expression_of(a)
    if not node.shape:
        count = int(bool(asked(node, "the shape of argwhere")))
        return wrap(literal(np.empty((count, 0), np.int64)))
    columns = [Index(one, (slice(0, one.shape[0], 1), None)) for one in places_where(node)]
    return wrap(columns[0] if len(columns) == 1 else Concatenate(tuple(columns), 1))


@implements(np.compress)
def compress(condition: object, a: object, axis: int | None = None, out: object = None) -> DistArray:
    """``numpy.compress``: as many as the condition says, along an axis."""
    node, mask = expression_of(a), astype(expression_of(condition), np.bool_)
    if mask.ndim != 1:
        raise ShapeError(f"compress: a condition of shape {mask.shape}: give one axis")
    node, place = laned(node, axis)
    length, count = node.shape[place], mask.shape[0]
    if count > length:
        if asked(_any(mask, length), "how long compress's condition is"):
            raise IndexingError(f"compress: the condition is true beyond the {length} on axis {place}")
        mask = Index(mask, (slice(0, length, 1),))
    elif count < length:
        key = tuple(slice(0, count if axis == place else n, 1) for axis, n in enumerate(node.shape))
        node = Index(node, key)
    return within(read(node, (*(slice(None),) * place, DistArray(mask))), out)


def _any(mask: Expr, start: int) -> Expr:
    rest = DistArray(Index(mask, (slice(start, mask.shape[0], 1),)))
    return rest.any().expression


@implements(np.extract)
def extract(condition: object, arr: object) -> DistArray:
    """``numpy.extract``."""
    node, mask = expression_of(arr), astype(expression_of(condition), np.bool_)
    if node.shape != mask.shape:
        node, mask = (one if one.ndim == 1 else reshaped(one, (-1,)) for one in (node, mask))
    if not node.shape:
        node, mask = reshaped(node, (1,)), reshaped(mask, (1,))
    return compress(DistArray(mask), DistArray(node)) if node.ndim == 1 else read(node, DistArray(mask))


@implements(np.choose)
def choose(a: object, choices: object, out: object = None, mode: str = "raise") -> DistArray:
    """``numpy.choose``; whether the numbers are in range is asked for, unless a mode says what else."""
    number = expression_of(a)
    given = choices if isinstance(choices, Sequence) else list(DistArray(expression_of(choices)))
    if not given:
        raise ShapeError("choose: give at least one array to choose from")
    nodes = ufuncs.chosen(list(map(operand_of, given)))
    if number.dtype.kind not in "biu":
        raise DTypeError(f"choose: numbers of dtype {number.dtype}: give whole ones")
    number = modulo(astype(number, np.int64) if number.dtype.kind == "b" else number, len(nodes), mode)
    if mode == "raise" and number.size:
        low, high = (int(asked(one.expression, "whether choose is in range")) for one in _bounds(number))
        if low < 0 or high >= len(nodes):
            raise ShapeError(f"choose: numbers from {low} to {high} for {len(nodes)} arrays")
    shape = broadcast_shapes(number.shape, *(one.shape for one in nodes), name="choose")
    dtype = np.result_type(*(one.dtype for one in nodes))
    result = astype(nodes[-1], dtype)
    for place in range(len(nodes) - 2, -1, -1):
        (chosen,) = ufuncs.call(np.equal, (number, place))
        result = where(chosen, astype(nodes[place], dtype), result)
    return within(wrap(result if result.shape == shape else Broadcast(result, shape)), out)


def _bounds(number: Expr) -> tuple[DistArray, DistArray]:
    handle = DistArray(number)
    return handle.min(), handle.max()


@implements(np.select)
def select(condlist: Sequence[object], choicelist: Sequence[object], default: object = 0) -> DistArray:
    """``numpy.select``: of each element the choice of the first condition that is true."""
    condlist, choicelist = list(condlist), list(choicelist)  # also the rows of one array
    if len(condlist) != len(choicelist):
        raise ShapeError(f"select: {len(condlist)} conditions for {len(choicelist)} choices")
    if not condlist:
        raise ShapeError("select: give at least one condition")
    conditions = [expression_of(one) for one in condlist]
    for place, one in enumerate(conditions):
        if one.dtype.kind != "b":
            raise DTypeError(f"select: condition {place} is of dtype {one.dtype}: give booleans")
    nodes = ufuncs.chosen(list(map(operand_of, (*choicelist, default))))
    dtype = np.result_type(*(one.dtype for one in nodes))
    nodes = [astype(one, dtype) for one in nodes]
    shape = broadcast_shapes(*(one.shape for one in (*conditions, *nodes)), name="select")
    result = nodes[-1]
    for condition, chosen in zip(reversed(conditions), reversed(nodes[:-1]), strict=True):
        result = where(condition, chosen, result)
    return wrap(result if result.shape == shape else Broadcast(result, shape))


@implements(np.ix_)
def ix_(*args: object) -> tuple[DistArray, ...]:
    """``numpy.ix_``: vectors that broadcast to a mesh; of booleans the places where they are true."""
    result = []
    for place, one in enumerate(args):
        node = expression_of(one)
        if node.ndim != 1:
            raise ShapeError(f"ix_: an array of shape {node.shape}: give vectors")
        if node.dtype.kind == "b":
            (node,) = places_where(node)
        if not node.size:
            node = astype(node, np.int64)
        key = [None] * len(args)
        result.append(wrap(Index(node, (*key[:place], slice(0, node.shape[0], 1), *key[place + 1 :]))))
    return tuple(result)


@implements(np.unravel_index)
def unravel_index(indices: object, shape: int | Sequence[int], order: str = "C") -> tuple[DistArray, ...]:
    """``numpy.unravel_index``; outside of loops it is asked whether the places are in range."""
    lengths = tuple(map(int, np.atleast_1d(shape)))
    node = expression_of(indices)
    size = math.prod(lengths)
    if node.dtype.kind not in "iu":
        raise DTypeError(f"unravel_index: places of dtype {node.dtype}: give whole numbers")
    _in_range(node, size, f"places in shape {lengths}")
    rest, places = DistArray(astype(node, np.int64)), []
    for length in lengths if order == "F" else reversed(lengths):
        places.append(rest % length)
        rest = rest // length
    return tuple(places if order == "F" else reversed(places))


@implements(np.ravel_multi_index)
def ravel_multi_index(
    multi_index: Sequence[object], dims: Sequence[int], mode: str | Sequence[str] = "raise", order: str = "C"
) -> DistArray:
    """``numpy.ravel_multi_index``; outside of loops it is asked whether the places are in range."""
    given = multi_index if isinstance(multi_index, Sequence) else list(DistArray(expression_of(multi_index)))
    nodes = [expression_of(one) for one in given]
    lengths = tuple(map(int, np.atleast_1d(dims)))
    if len(nodes) != len(lengths):
        raise ShapeError(f"ravel_multi_index: {len(nodes)} places for {len(lengths)} axes")
    modes = [mode] * len(nodes) if isinstance(mode, str) else list(mode)
    total: DistArray | None = None
    pairs = list(zip(nodes, lengths, modes, strict=True))
    for node, length, one in pairs if order == "C" else reversed(pairs):
        if node.dtype.kind not in "iu":
            raise DTypeError(f"ravel_multi_index: places of dtype {node.dtype}: give whole numbers")
        if one == "raise":
            _in_range(node, length, f"places on an axis of length {length}")
        place = DistArray(astype(modulo(node, length, one), np.int64))
        total = place if total is None else total * length + place
    assert total is not None, "there is an axis"
    return total


def _in_range(node: Expr, length: int, what: str) -> None:
    if node.free or not node.size:
        return
    low, high = (int(asked(one.expression, what)) for one in _bounds(node))
    if low < 0 or high >= length:
        raise ShapeError(f"{what}: they go from {low} to {high}")
