"""Nested arrays: values in segments of unequal length, with operations along each, balanced by cost."""

from matnb.errors import offered
from matnb.nested.array import NestedArray
from matnb.nested.creation import from_lists, from_offsets, unflatten
from matnb.nested.restructuring import merge

__all__ = ["NestedArray", "from_lists", "from_offsets", "merge", "unflatten"]

__getattr__, __dir__ = offered(__name__, __all__)
