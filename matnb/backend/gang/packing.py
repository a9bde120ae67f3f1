"""Blocks and arrays as raw buffers, for messages between workers."""

from __future__ import annotations

import pickle
from typing import Any, TypeAlias

import numpy as np
from distributed.protocol import Serialize, to_serialize

from matnb.blocks.formats import Csr, Dense, Empty, NumericArray

Wire: TypeAlias = tuple[Any, ...]  # of strings, numbers, bytes and buffers, as Dask's messages carry them

# Below, a copy into the message itself costs less than a frame of its own and an acknowledgment.
_INLINE_BYTES = 16_384


def pack(value: object) -> tuple[Wire, bool]:
    """Return a value as messages carry it, and whether that shares memory with the value."""
    match value:
        case Dense(values):
            array = _packed_array(values)
            return ("dense", array), _shares(array)
        case Csr(shape, pointers, columns, values, dtype):
            arrays = (pointers, columns) if values is None else (pointers, columns, values)
            packed = [_packed_array(each) for each in arrays]
            return ("csr", shape, dtype.str, *packed), any(map(_shares, packed))
        case Empty(shape, dtype):
            return ("empty", shape, dtype.str), False
        case np.ndarray() if value.dtype.kind in "biufc":
            array = _packed_array(value)
            return ("array", array), _shares(array)
    return ("pickled", pickle.dumps(value)), False


def unpack(wire: Wire) -> object:
    """Return the value of a message; its arrays are read-only and share no memory with the sender's."""
    match wire:
        case "dense", array:
            return Dense(_unpacked_array(array))
        case "csr", shape, dtype, pointers, columns, *values:
            parts: list[Any] = [_unpacked_array(array) for array in (pointers, columns, *values)]
            return Csr(tuple(shape), parts[0], parts[1], parts[2] if values else None, np.dtype(dtype))
        case "empty", shape, dtype:
            return Empty(tuple(shape), np.dtype(dtype))
        case "array", array:
            return _unpacked_array(array)
        case "pickled", data:
            return pickle.loads(data)
    raise TypeError(f"no value is packed as {wire[0]!r}")


def array_bytes(wire: Wire) -> int:
    """Return the bytes of the arrays in a message."""
    match wire:
        case ("dense" | "array", array):
            return _data_bytes(array)
        case "csr", _, _, *arrays:
            return sum(map(_data_bytes, arrays))
    return 0


def _data_bytes(packed: Wire) -> int:
    data = packed[-1]
    return len(data.data if isinstance(data, Serialize) else data)


def _packed_array(array: NumericArray) -> Wire:
    # An array by columns is sent as its transpose, so that it has the same strides on the other side.
    turned = array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous
    rows = np.ascontiguousarray(array.T if turned else array)
    if rows.nbytes <= _INLINE_BYTES:
        return turned, array.dtype.str, array.shape, rows.tobytes()
    return turned, array.dtype.str, array.shape, to_serialize(rows.reshape(-1).view(np.uint8).data)


def _unpacked_array(wire: Wire) -> NumericArray:
    turned, dtype, shape, data = wire
    if isinstance(data, Serialize):  # from a worker of this process: the buffer is the sender's own
        elements = np.frombuffer(data.data, dtype).copy()
    else:
        elements = np.frombuffer(data, dtype) if len(data) else np.empty(0, dtype)
    elements = elements.reshape(tuple(shape)[::-1]).T if turned else elements.reshape(tuple(shape))
    elements.flags.writeable = False
    return elements


def _shares(packed: Wire) -> bool:
    return not isinstance(packed[-1], bytes)
