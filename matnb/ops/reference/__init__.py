"""What nodes mean in plain NumPy and SciPy, by family; importing a family registers it."""

from matnb.ops.reference import (  # noqa: F401  registers each
    contracting,
    counting_values,
    diagonals,
    folding,
    grouping,
    joining,
    mapping,
    ordering,
    picking,
    quantiles,
    reshaping,
    scanning,
    searching,
    selecting,
    sliding,
    uniques,
)
from matnb.ops.reference.registry import meaning_of

__all__ = ["meaning_of"]
