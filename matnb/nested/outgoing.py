"""Nested arrays as Arrow's lists and Awkward's arrays, which share the memory that they are computed in."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from matnb.errors import DTypeError, UnsupportedError
from matnb.lazy.evaluator import evaluator
from matnb.nested.lists import lists_of

if TYPE_CHECKING:
    import pyarrow

    from matnb.nested.deep import AnyNested


def to_arrow(segments: AnyNested) -> pyarrow.LargeListArray:
    """Compute a nested array and return it as Arrow's, of large lists, which shares the computed memory.

    Raises
    ------
    DTypeError
        For complex numbers, which Arrow does not have.
    """
    if segments.dtype.kind == "c":
        raise DTypeError(f"to_arrow: Arrow has no type for {segments.dtype}; N.to_awkward() has")
    return lists_of(*_computed(segments))


def to_awkward(segments: AnyNested) -> Any:
    """Compute a nested array and return it as an Awkward array, which shares the computed memory.

    Raises
    ------
    UnsupportedError
        If Awkward is not installed.
    """
    awkward = awkward_for("to_awkward")
    values, levels = _computed(segments)
    layout = awkward.contents.NumpyArray(values)
    for offsets in reversed(levels):
        layout = awkward.contents.ListOffsetArray(awkward.index.Index64(offsets), layout)
    return awkward.Array(layout)


def awkward_for(what: str) -> Any:
    """Return the module ``awkward`` for a function that needs it.

    Raises
    ------
    UnsupportedError
        If it is not installed.
    """
    try:
        return import_module("awkward")
    except ImportError as error:
        raise UnsupportedError(f"{what} needs awkward: {error}; from_arrow and to_arrow do not") from None


def _computed(segments: AnyNested) -> tuple[np.ndarray, list[np.ndarray]]:
    # The values, and the offsets of each level, in one run.
    handles = [*segments._offsets_of_levels(), segments.values]
    evaluator().persist([one.expression for one in handles])
    *levels, values = (np.asarray(one.compute()) for one in handles)
    return values, levels
