"""Nested arrays from Arrow's lists and Awkward's arrays, sharing memory where layouts agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError, ShapeError
from matnb.lazy.creation import owned_array
from matnb.nested.creation import from_offsets, unflatten
from matnb.nested.deep import AnyNested
from matnb.nested.outgoing import awkward_for
from matnb.nested.structure import as_vector

if TYPE_CHECKING:
    import pyarrow

# Where the segments of each level begin, and their end, the outermost level first.
_Levels = list[np.ndarray]


def from_arrow(array: object, *, strategy: str = "auto") -> AnyNested:
    """Return an Arrow array of lists as a nested array; of lists of lists, with as many levels.

    Values and 64-bit offsets share Arrow's memory, but for booleans, which Arrow packs, and arrays of several
    chunks.

    Parameters
    ----------
    array
        A ``ListArray``, ``LargeListArray`` or ``FixedSizeListArray`` of numbers or booleans, a
        ``ChunkedArray`` of these, or what has Arrow's protocols, such as a polars Series.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray or DeepNestedArray

    Raises
    ------
    DTypeError
        For text, records, unions and all but numbers and booleans, and for missing values or lists.
    ShapeError
        For an array without lists.

    Examples
    --------
    >>> import pyarrow as pa, matnb as mn
    >>> mn.nested.from_arrow(pa.array([[1.0, 2.0], [], [3.0]])).sum().compute()
    array([3., 0., 3.])
    """
    return _from_levels(*levels_of_arrow(array, "from_arrow"), strategy, "from_arrow")


def levels_of_arrow(array: Any, what: str) -> tuple[np.ndarray, _Levels]:
    """Return the values of an Arrow array of lists, and the offsets of each level of lists.

    Raises
    ------
    DTypeError, ShapeError
        As :func:`from_arrow`.
    """
    import pyarrow
    from pyarrow import types

    if not isinstance(array, pyarrow.Array):
        array = _in_one_chunk(array, what)
    levels: _Levels = []
    while (
        types.is_list(array.type) or types.is_large_list(array.type) or types.is_fixed_size_list(array.type)
    ):
        if array.null_count:
            raise DTypeError(f"{what}: {array.null_count:,} lists are missing: drop or fill them first")
        if types.is_fixed_size_list(array.type):
            levels.append(np.arange(len(array) + 1, dtype=np.int64) * array.type.list_size)
            array = array.flatten()
            continue
        offsets = array.offsets.to_numpy().astype(np.int64, copy=False)
        first, last = int(offsets[0]), int(offsets[-1])
        levels.append(offsets - first if first else offsets)
        array = array.values.slice(first, last - first)
    if not (types.is_boolean(array.type) or types.is_integer(array.type) or types.is_floating(array.type)):
        if types.is_null(array.type) and levels and not len(array):
            return np.empty(0), levels
        raise DTypeError(f"{what}: elements of type {array.type}: give lists of numbers or booleans")
    if not levels:
        raise ShapeError(f"{what}: an array of {array.type} without lists: mn.asarray takes it")
    if array.null_count:
        raise DTypeError(f"{what}: {array.null_count:,} values are missing: drop or fill them first")
    return array.to_numpy(zero_copy_only=False), levels


def _in_one_chunk(array: Any, what: str) -> pyarrow.Array:
    import pyarrow

    if not isinstance(array, pyarrow.ChunkedArray):
        try:
            chunked = hasattr(array, "__arrow_c_stream__")
            array = pyarrow.chunked_array(array) if chunked else pyarrow.array(array)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise DTypeError(f"{what}: {type(array).__name__} is no Arrow array of lists: {error}") from None
    if isinstance(array, pyarrow.ChunkedArray):
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array


def from_awkward(array: object, *, strategy: str = "auto") -> AnyNested:
    """Return an Awkward array of lists of numbers as a nested array; of lists of lists, with as many levels.

    Values and 64-bit offsets share Awkward's memory: as everywhere with Awkward, do not change it afterwards.
    Only what is not laid out as lists one after the other, such as rows in another order, is copied.

    Parameters
    ----------
    array
        An ``ak.Array`` of type ``n * var * number``, or with further levels or lists of a fixed length.
    strategy
        As of :func:`unflatten`.

    Returns
    -------
    NestedArray or DeepNestedArray

    Raises
    ------
    DTypeError, ShapeError
        As :func:`from_arrow`.
    UnsupportedError
        If Awkward is not installed.

    Examples
    --------
    >>> import awkward as ak, matnb as mn
    >>> mn.nested.from_awkward(ak.Array([[1.0, 2.0], [], [3.0]])).sum().compute()
    array([3., 0., 3.])
    """
    layout = awkward_for("from_awkward").to_layout(array, regulararray=True)
    levels: _Levels = []
    layout = _plain(layout)
    while layout.is_list:
        layout = layout.to_ListOffsetArray64(start_at_zero=True)
        offsets = np.asarray(layout.offsets.data)
        levels.append(offsets)
        layout = _plain(layout.content[: offsets[-1]])
    if not (layout.is_numpy or layout.is_unknown):
        raise DTypeError(
            f"from_awkward: elements of type {layout.form.type}: give lists of numbers or booleans"
        )
    values = np.empty(0) if layout.is_unknown else np.asarray(layout.data)
    if not levels:
        raise ShapeError(f"from_awkward: an array of {values.dtype} without lists: mn.asarray takes it")
    return _from_levels(values, levels, strategy, "from_awkward")


def _plain(layout: Any) -> Any:
    # What is left without an index into it, and without a mask of missing values, of which there are none.
    if layout.is_option:
        num_missing = int(np.count_nonzero(layout.mask_as_bool(valid_when=False)))
        if num_missing:
            raise DTypeError(
                f"from_awkward: {num_missing:,} elements are missing: use ak.drop_none or ak.fill_none"
            )
    if layout.is_option or layout.is_indexed:
        return _plain(layout.project())
    if layout.parameter("__array__") in ("string", "bytestring"):
        raise DTypeError("from_awkward: elements of type string: give lists of numbers or booleans")
    return layout.to_RegularArray() if layout.is_numpy and len(layout.shape) > 1 else layout


def _from_levels(values: np.ndarray, levels: _Levels, strategy: str, what: str) -> AnyNested:
    flat = as_vector(owned_array(values), f"{what}: values")
    found: AnyNested = from_offsets(flat, levels[-1], strategy=strategy)
    for offsets in reversed(levels[:-1]):
        found = unflatten(found, np.diff(offsets), strategy=strategy)
    return found
