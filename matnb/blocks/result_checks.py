"""Checks what kernels, meanings and sources of other packages return, before matnb trusts it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Csr, Dense, Empty, check_compressed
from matnb.errors import DTypeError, MatnbError, ShapeError
from matnb.registration import name_and_place, written_at

Value: TypeAlias = np.ndarray | sp.csr_array


@dataclass(frozen=True)
class ReturnSpec:
    """What a function has to return.

    Attributes
    ----------
    what
        Which function of which operation it is, for messages.
    form
        Shape, dtype and whether it is sparse; None of a value that may be anything, where only a sparse
        block's indices are looked at.
    """

    what: str
    form: tuple[tuple[int, ...], np.dtype, bool] | None = None


def run_checked(
    values: Sequence[Any], kernel: Callable[..., object], parameters: tuple[object, ...], expected: ReturnSpec
) -> Any:
    """Run a kernel of another package, and return its value if it is what is expected."""
    return checked_block(kernel(values, *parameters), kernel, expected)


def checked_block(value: object, function: Callable[..., object], expected: ReturnSpec) -> Any:
    """Return a block that a function returned; an element on its own becomes an array.

    Raises
    ------
    ShapeError, DTypeError
        Where it is not what is expected, or is no sound block; it names the function, its file and line.
    """
    if isinstance(value, Dense) and isinstance(value.values, np.generic):
        value = Dense(np.asarray(value.values))
    if expected.form is not None:
        shape, dtype, sparse = expected.form
        wanted = _text("csr_block(matrix) or Empty" if sparse else "Dense(array)", shape, dtype)
        if not isinstance(value, Csr | Empty if sparse else Dense) or _holds_no_array(value):
            raise _refused(DTypeError, expected, function, _shown(value), wanted)
        if value.shape != shape:
            raise _refused(ShapeError, expected, function, _shown(value), wanted)
        if value.dtype != dtype:
            raise _refused(DTypeError, expected, function, _shown(value), wanted)
    if isinstance(value, Csr) and (wrong := _wrong_parts(value)):
        given = f"a sparse block with {wrong}"
        raise _refused(ShapeError, expected, function, given, "what csr_block(matrix) makes")
    return Empty(value.shape, value.dtype) if isinstance(value, Csr) and not value.nnz else value


def checked_value(value: Any, function: Callable[..., object], expected: ReturnSpec) -> Value:
    """Return what a meaning returned; an element on its own becomes an array. Errors as of checked_block."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    assert expected.form is not None
    shape, dtype, sparse = expected.form
    wanted = _text("a csr_array" if sparse else "an array", shape, dtype)
    if not isinstance(value, sp.csr_array if sparse else np.ndarray) or value.dtype != dtype:
        raise _refused(DTypeError, expected, function, _shown(value), wanted)
    if value.shape != shape:
        raise _refused(ShapeError, expected, function, _shown(value), wanted)
    if not isinstance(value, sp.csr_array):
        return value
    if wrong := _wrong_entries(value.indptr, value.indices, len(value.data), *shape):
        raise _refused(ShapeError, expected, function, f"a csr_array with {wrong}", wanted)
    return value


def _wrong_parts(block: Csr) -> str:
    # What kernels trust, in words; empty where all is well.
    for name, part in (("row pointers", block.pointers), ("columns", block.columns)):
        if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype != np.int32:
            return f"{name} of dtype {getattr(part, 'dtype', type(part).__name__)}, not int32"
    entries = block.columns if block.values is None else block.values
    if block.values is not None and (entries.ndim, entries.dtype) != (1, block.dtype):
        return _text("values", entries.shape, entries.dtype)
    if wrong := _wrong_entries(block.pointers, block.columns, len(entries), *block.shape):
        return wrong
    unread = block.nnz - int(block.pointers[-1])
    return f"{unread} entries behind the last row" if unread else ""


def _wrong_entries(pointers: Any, columns: Any, num_entries: int, rows: int, width: int) -> str:
    try:
        check_compressed(pointers, columns, num_entries, rows, width)
    except ShapeError as error:
        return f"wrong indices ({error})"
    used, starts = columns[: pointers[-1]], pointers[1:-1]
    falls = used[1:] <= used[:-1]
    falls[starts[(starts > 0) & (starts < len(used))] - 1] = False
    return "columns that do not ascend within a row" if falls.any() else ""


def _holds_no_array(value: object) -> bool:
    return isinstance(value, Dense) and not isinstance(value.values, np.ndarray)


def _text(what: str, shape: object, dtype: object) -> str:
    return f"{what} of shape {shape} and dtype {dtype}"


def _shown(value: object) -> str:
    if isinstance(value, Dense) and _holds_no_array(value):
        return f"Dense of type {type(value.values).__name__}"
    name = type(value).__name__
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    return name if shape is None or dtype is None else _text(name, shape, dtype)


def _refused(
    kind: type[ShapeError | DTypeError], expected: ReturnSpec, function: object, given: str, wanted: str
) -> MatnbError:
    error = kind(f"{expected.what} {name_and_place(function)} returned {given}, where {wanted} belongs")
    error.raised_at = written_at(function)
    return error
