"""How arrays of the nodes' families are made, by family; importing a family registers it."""

from matnb.ops.lowering import (  # noqa: F401  registers each
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
    repeating,
    reshaping,
    scanning,
    searching,
    selecting,
    sliding,
    uniques,
)
from matnb.ops.lowering.registry import lowering_of

__all__ = ["lowering_of"]
