"""What quantiles mean."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.blocks.kernels.quantiles import quantiles_along
from matnb.lazy.meanings.registry import Value, dense, means
from matnb.lazy.nodes.quantiles import Quantiles


@means(Quantiles)
def quantiles(node: Quantiles, operands: Sequence[Value]) -> Value:
    """Return the quantiles along axes."""
    return quantiles_along(dense(operands[0]), node.axes, node.wanted)
