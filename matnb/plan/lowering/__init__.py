"""How arrays of the nodes' families are made, by family; importing a family registers it."""

from matnb.plan.lowering import joining  # noqa: F401  registers its nodes
from matnb.plan.lowering.registry import lowering_of

__all__ = ["lowering_of"]
