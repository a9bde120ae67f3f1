"""The interpreter's meaning of reads and writes at run time's places, draws and calls, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from matnb.blocks.creation import drawn_anew
from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.calls import call, unpacked
from matnb.blocks.semiring import MONOIDS
from matnb.errors import IndexingError
from matnb.ops.nodes.access import At, Draw, Gather, Part, Put, PutEach, Replicated, Scatter
from matnb.ops.reference.registry import dense

Access = At | Put | PutEach | Gather | Scatter | Draw | Replicated | Part


def access_value(node: Access, given: Sequence[np.ndarray | sp.csr_array]) -> np.ndarray | sp.csr_array:
    """Return the value of a node from those of its operands."""
    if isinstance(node, At) and sp.issparse(given[0]):
        chosen = int(_checked(dense(given[1]), node.operand.shape[node.axis], node.axis))
        row = given[0][[chosen], :] if node.axis == 0 else given[0][:, [chosen]]
        return dense(row).reshape(node.shape)
    operands = [dense(one) for one in given]
    match node:
        case At(_, _, axis):
            array, index = operands
            return np.asarray(np.take(array, _checked(index, array.shape[axis], axis), axis=axis))
        case Put(_, _, _, key):
            array, value = operands[0].copy(), operands[1]
            numbers = iter(operands[2:])
            place = [
                int(_checked(next(numbers), array.shape[axis], axis)) if one is None else one
                for axis, one in enumerate(key)
            ]
            array[(*place, ...)] = value.astype(array.dtype)
            return sp.csr_array(array) if node.sparse else array
        case PutEach():
            array, value = operands[0].copy(), operands[2].astype(operands[0].dtype)
            places = _checked(operands[1], len(array), 0)
            for place, one in zip(places, np.broadcast_to(value, node.target), strict=True):
                array[place] = one  # one after the other, so that the last one stays
            return array
        case Gather():
            array, index = operands
            return np.asarray(array[_checked(index, len(array), 0)])
        case Scatter():
            return _scattered(node, operands[0], operands[1])
        case Draw(creation):
            drawn = drawn_anew(creation, [int(one) for one in operands])
            return to_numpy(drawn.make(tuple((0, length) for length in node.shape)))
        case Replicated(_, function, outputs):
            return call(function, [Dense(one) for one in operands], outputs).values
        case Part(Replicated(outputs=outputs), number):
            return unpacked(operands[0], outputs)[number]
    raise TypeError(f"no meaning for {type(node).__name__}")


def _checked(index: np.ndarray, length: int, axis: int) -> np.ndarray:
    for number in index.flat:
        if not -length <= int(number) < length:
            raise IndexingError(f"index {number} on axis {axis} of length {length}")
    return index.astype(np.int64)


def _scattered(node: Scatter, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    for position, label in enumerate(labels):
        if not 0 <= label < node.length:
            raise IndexingError(
                f"label {label} at position {position}: labels go from 0 to {node.length - 1}"
            )
    monoid = MONOIDS[node.monoid]
    # as the workers do: float sums are rounded once, at the end
    is_sum = node.monoid == "plus" and node.dtype.kind in "fc"
    wide = np.result_type(node.dtype, np.float64) if is_sum or node.dtype == np.float16 else node.dtype
    totals = np.full(node.shape, monoid.identity(node.dtype), wide)
    getattr(np, monoid.ufunc).at(totals, labels.astype(np.int64), values.astype(wide))
    return totals.astype(node.dtype)
