"""What it means to call a person's function on blocks: here an array is one."""

from __future__ import annotations

from collections.abc import Sequence

import scipy.sparse as sp

from matnb.blocks.formats import Dense, csr_block, to_numpy, to_scipy
from matnb.blocks.kernels.calls import call_on_block
from matnb.ops.nodes.mapping import MapBlocks
from matnb.ops.reference.registry import Value, means


@means(MapBlocks)
def map_blocks(node: MapBlocks, operands: Sequence[Value]) -> Value:
    """Return what the function gives for the whole arrays."""
    blocks = [csr_block(one) if sp.issparse(one) else Dense(one) for one in operands]
    found = call_on_block(blocks, node.function, node.shape, node.dtype, node.sparse, node.along)
    return to_numpy(found) if isinstance(found, Dense) else to_scipy(found)
