"""Nested arrays: values in segments of unequal length, with operations along each, balanced by cost."""

from matnb.errors import offered
from matnb.nested import folding as _folding  # noqa: F401  registers its pass
from matnb.nested.array import NestedArray
from matnb.nested.creation import (
    KeyedSegments,
    from_keys,
    from_lists,
    from_offsets,
    from_rows,
    merge,
    unflatten,
)
from matnb.nested.deep import DeepNestedArray
from matnb.nested.files import load
from matnb.nested.interchange import from_arrow, from_awkward
from matnb.nested.selecting import TopSegments, UniqueSegments, topk, unique, unique_counts

__all__ = [
    "DeepNestedArray",
    "KeyedSegments",
    "NestedArray",
    "TopSegments",
    "UniqueSegments",
    "from_arrow",
    "from_awkward",
    "from_keys",
    "from_lists",
    "from_offsets",
    "from_rows",
    "load",
    "merge",
    "topk",
    "unflatten",
    "unique",
    "unique_counts",
]

__getattr__, __dir__ = offered(__name__, __all__)
