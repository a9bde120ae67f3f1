"""Families of operations: nodes, what they mean, the tasks they become; importing the room registers them."""

from matnb.ops import (  # noqa: F401  registers each
    access,
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
