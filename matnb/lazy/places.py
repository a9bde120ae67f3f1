"""What a person reads and assigns by an index: basic ones, and integer arrays known only at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Dense
from matnb.errors import DTypeError, IndexingError, ShapeError, UnsupportedError
from matnb.lazy.access import At, Gather, Put, PutEach
from matnb.lazy.expr import Broadcast, Expr, Index, Key, Literal, Shape, broadcast_shapes
from matnb.lazy.holdings import held
from matnb.lazy.indexing import normalize_key
from matnb.lazy.reductions import where as choose
from matnb.lazy.ufuncs import Weak, astype, literal


def indexed(node: Expr, key: object) -> Expr:
    """Return what an index picks.

    Parameters
    ----------
    key
        As in NumPy, of integers, slices, ``...``, None, and expressions of whole numbers without axes; or
        one of a single axis, for the first axis of the array.

    Raises
    ------
    IndexingError
        For an integer or a known place out of range, too many entries, or an index of another kind.
    UnsupportedError
        For arrays that index in other ways.
    """
    plain, arrays = _split(key, node.shape)
    result = node if _is_whole(plain, node.shape) else Index(node, plain)
    places = {place - _num_numbers(plain[:place]): index for place, index in arrays.items()}
    lists = [index for index in places.values() if index.ndim]
    if lists:
        if len(places) > 1 or 0 not in places or lists[0].ndim > 1:
            raise UnsupportedError(
                "an index by an array of one axis picks along the first axis alone: x[idx]; transpose the "
                "array, or index twice"
            )
        _check_places(lists[0], result.shape[0])
        return Gather(result, lists[0])
    for axis, index in sorted(places.items(), reverse=True):
        result = At(result, index, axis)
    return result


def assigned(node: Expr, key: object, value: Expr | Weak) -> Expr:
    """Return an array with a value written at a place.

    Parameters
    ----------
    key
        As in NumPy, of integers, slices, ``...``, and expressions of whole numbers without axes; or one of a
        single axis, for the first axis of the array, where the last one of equal places stays.
    value
        Broadcasts to the place, and is converted to the array's dtype.

    Raises
    ------
    ShapeError
        When the value does not fit the place.
    DTypeError
        When the value would lose more than precision in the array's dtype.
    IndexingError, UnsupportedError
        For a known place out of range, and other kinds of indices.
    """
    plain, arrays = _split(key, node.shape)
    parts: list[int | slice | None] = list(plain)
    for part in plain:
        if part is None:
            raise UnsupportedError("assignment to a new axis is not recorded: leave None out of the index")
    new = fitting(value, node.dtype)
    lists = [index for index in arrays.values() if index.ndim]
    if lists:
        if list(arrays) != [0] or lists[0].ndim > 1 or not _is_whole(plain, node.shape):
            raise UnsupportedError(
                "assignment at the places of an array is along the first axis alone: x[idx] = v; transpose "
                "the array, or build a new one, for example mn.scatter_reduce(values, places, length)"
            )
        _check_places(lists[0], node.shape[0])
        return PutEach(node, lists[0], _stripped(new, node.ndim))
    for place in arrays:
        parts[place] = None
    parts, new = _forward(parts, _stripped(new, sum(isinstance(part, slice) for part in parts)))
    put = Put(node, new, tuple(arrays[place] for place in sorted(arrays)), tuple(parts))
    if 0 in put.target:
        return node
    if put.target == node.shape and not arrays:
        return new if new.shape == node.shape and not new.sparse else Broadcast(new, node.shape)
    if new.sparse:  # what is written is dense
        new = Broadcast(new, new.shape)
    return Put(node, new, put.inputs, put.key)


def _forward(parts: list[int | slice | None], new: Expr) -> tuple[list[int | slice | None], Expr]:
    # x[::-1] = v is x[::1] = v[::-1]: only slices that go up are left, and the value turns where they fell.
    upward: list[int | slice | None] = []
    turned: list[bool] = []  # for each axis of what is written
    for part in parts:
        if isinstance(part, slice) and part.step < 0:
            covered = range(*part.indices(part.start + 1))
            upward.append(slice(covered[-1], covered[0] + 1, -part.step))
        else:
            upward.append(part)
        if isinstance(part, slice):
            turned.append(part.step < 0)
    key = [
        slice(length - 1, None, -1) if falls and length > 1 else slice(0, length, 1)
        for falls, length in zip(reversed(turned), reversed(new.shape), strict=False)
    ]
    if all(one.step > 0 for one in key):
        return upward, new
    rest = (slice(0, length, 1) for length in new.shape[: new.ndim - len(key)])
    return upward, Index(new, (*rest, *reversed(key)))


def _stripped(new: Expr, ndim: int) -> Expr:
    # As in NumPy, leading axes of length 1 that the place has not are left out.
    extra = new.ndim - ndim
    if extra <= 0 or any(length != 1 for length in new.shape[:extra]):
        return new
    return Index(new, (*(0,) * extra, *(slice(0, length, 1) for length in new.shape[extra:])))


def replacing(old: Expr, new: Expr, where: Expr | None = None) -> Expr:
    """Return what ``out=`` makes of an array: the result in its dtype, where the booleans are true if given.

    Raises
    ------
    ShapeError
        When the shapes differ.
    DTypeError
        When the result would lose more than precision.
    """
    if old.shape != new.shape:
        raise ShapeError(f"out= has shape {old.shape} but the result has shape {new.shape}")
    result = _converted(new, old.dtype, "a result")
    if where is None:
        return result
    if where.dtype.kind != "b" or broadcast_shapes(where.shape, old.shape, name="where=") != old.shape:
        raise ShapeError(
            f"where= is of shape {where.shape} {where.dtype}: give booleans for shape {old.shape}"
        )
    return choose(where, result, old)


def _split(key: object, shape: Shape) -> tuple[Key, dict[int, Expr]]:
    # An index with whole axes for the arrays in it, and these by their places.
    parts = [_constant(part) for part in (key if isinstance(key, tuple) else (key,))]
    plain = normalize_key(tuple(slice(None) if isinstance(part, Expr) else part for part in parts), shape)
    before = next((place for place, part in enumerate(parts) if part is Ellipsis), len(parts))
    arrays = {}
    for place, part in enumerate(parts):
        if isinstance(part, Expr):
            _check_index(part)
            arrays[place if place < before else len(plain) - len(parts) + place] = part
    return plain, arrays


def _constant(part: object) -> object:
    if isinstance(part, Literal) and not part.shape and part.dtype.kind in "iu":
        return int(part.value)
    return part


def _check_index(index: Expr) -> None:
    if index.dtype.kind == "b":
        raise IndexingError(
            "an index by a DistArray of booleans picks as many elements as are true, which is not recorded: "
            "use np.where(mask, x, 0), or compute() both first"
        )
    if index.dtype.kind not in "iu":
        raise IndexingError(f"an index of dtype {index.dtype}: give whole numbers, or convert with astype")


def _check_places(index: Expr, length: int) -> None:
    # Of places that are known now: later, an array assigned to would be beyond repair.
    block = Dense(index.value) if isinstance(index, Literal) else held(index)
    if isinstance(block, Dense):
        outside = block.values[np.greater_equal(block.values, length) | np.less(block.values, -length)]
        if outside.size:
            raise IndexingError(f"index {outside[0]} on axis 0 of length {length}")


def _is_whole(key: Key, shape: Shape) -> bool:
    return len(key) == len(shape) and all(
        part == slice(0, length, 1) for part, length in zip(key, shape, strict=True)
    )


def _num_numbers(parts: Sequence[int | slice | None]) -> int:
    return sum(isinstance(part, int) for part in parts)


def fitting(value: Expr | Weak, dtype: np.dtype) -> Expr:
    """Return a value as it goes into an array of a dtype.

    Raises
    ------
    DTypeError
        When it would lose more than precision.
    """
    if isinstance(value, Expr):
        return _converted(value, dtype, "a value")
    # A Python number takes on the dtype of the array it meets, if that holds such numbers.
    kinds = {int: "iufc", float: "fc", complex: "c"}[type(value)]
    if dtype.kind not in kinds:
        raise DTypeError(f"the number {value} does not go into an array of dtype {dtype}")
    try:
        return literal(value, dtype)
    except OverflowError:
        raise DTypeError(f"the number {value} does not fit dtype {dtype}") from None


def _converted(node: Expr, dtype: np.dtype, what: str) -> Expr:
    if not np.can_cast(node.dtype, dtype, "same_kind"):
        raise DTypeError(
            f"{what} of dtype {node.dtype} does not go into an array of dtype {dtype}; convert it with astype"
        )
    return astype(node, dtype)
