"""Nested arrays: values in segments of unequal length, with operations along each, balanced by cost."""

from matnb.errors import offered
from matnb.nested.array import NestedArray
from matnb.nested.creation import KeyedSegments, from_keys, from_lists, from_offsets, from_rows, unflatten
from matnb.nested.restructuring import merge

__all__ = [
    "KeyedSegments",
    "NestedArray",
    "from_keys",
    "from_lists",
    "from_offsets",
    "from_rows",
    "merge",
    "unflatten",
]

__getattr__, __dir__ = offered(__name__, __all__)
