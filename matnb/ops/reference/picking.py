"""What it means to read and write at listed places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from matnb.errors import IndexingError
from matnb.ops.nodes.picking import Pick, Place, PutAlong, PutWhere, TakeAlong
from matnb.ops.reference.registry import Value, dense, means


@means(Pick)
def pick(node: Pick, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    places = _checked(operands[1:], node.operand.shape, node.axis)
    key: tuple[Any, ...] = (*(slice(None),) * node.axis, *places)
    picked = np.asarray(dense(operands[0])[key])
    return sp.csr_array(picked) if node.sparse else picked


@means(Place)
def place(node: Place, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    values = dense(operands[0]).copy()
    places = _checked(operands[2:], node.operand.shape, node.axis)
    key: tuple[Any, ...] = (*(slice(None),) * node.axis, *places)
    values[key] = dense(operands[1])
    return sp.csr_array(values) if node.sparse else values


@means(PutWhere)
def put_where(node: PutWhere, operands: Sequence[Value]) -> Value:
    """Return the array with the value written."""
    values = np.where(dense(operands[1]), dense(operands[2]), dense(operands[0])).astype(node.dtype)
    return sp.csr_array(values) if node.sparse else values


@means(TakeAlong)
def take_along(node: TakeAlong, operands: Sequence[Value]) -> Value:
    """Return what is picked."""
    (places,) = _checked(operands[1:], node.operand.shape, node.axis)
    return np.take_along_axis(dense(operands[0]), places, node.axis)


@means(PutAlong)
def put_along(node: PutAlong, operands: Sequence[Value]) -> Value:
    """Return the array with the values written."""
    values = dense(operands[0]).copy()
    (places,) = _checked(operands[1:2], node.operand.shape, node.axis)
    np.put_along_axis(values, places, dense(operands[2]), node.axis)
    return values


def _checked(given: Sequence[Value], shape: tuple[int, ...], axis: int) -> list[np.ndarray]:
    # Whole numbers, which a person may have counted from the end.
    result = []
    for number, one in enumerate(given):
        index, length = dense(one), shape[axis + number]
        outside = index[np.greater_equal(index, length) | np.less(index, -length)]
        if outside.size:
            raise IndexingError(f"index {outside.flat[0]} on axis {axis + number} of length {length}")
        result.append(index.astype(np.int64))
    return result
