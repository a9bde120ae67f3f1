"""Nested arrays: values in segments of unequal length, with operations along each, balanced by cost."""

from matnb.errors import offered
from matnb.nested.array import NestedArray
from matnb.nested.creation import from_lists, from_offsets, unflatten
from matnb.nested.deep import DeepNestedArray
from matnb.nested.interchange import from_arrow, from_awkward
from matnb.nested.loading import load
from matnb.nested.selecting import TopSegments, UniqueSegments, topk, unique, unique_counts

__all__ = [
    "DeepNestedArray",
    "NestedArray",
    "TopSegments",
    "UniqueSegments",
    "from_arrow",
    "from_awkward",
    "from_lists",
    "from_offsets",
    "load",
    "topk",
    "unflatten",
    "unique",
    "unique_counts",
]

__getattr__, __dir__ = offered(__name__, __all__)
