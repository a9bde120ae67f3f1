"""The type of what functions take as an array."""

from __future__ import annotations

from typing import TypeAlias

# What mn.asarray takes: DistArrays, NumPy's and SciPy's arrays, frames, NetworkX graphs, lists and numbers.
ArrayLike: TypeAlias = object
