"""Plans run step by step in the tests' own process."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from matnb.backend.worker import execute
from matnb.blocks.formats import Block, to_numpy
from matnb.blocks.grid import region_shape
from matnb.blocks.kernels.shaping import join
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr
from matnb.ops.creation import piece_of
from matnb.program.plan import Plan, Stored, Workers

ONE = Workers((0,), 2, 0)
THREE = Workers((0, 1, 2), 1, 0)


def run_by_hand(plan: Plan, stored: Mapping[str, Block] | None = None) -> dict[str, Block]:
    """Run the steps of a plan in this process, one task after another."""
    values = dict(stored or {})
    for one in plan.shipments:
        values[one.key] = piece_of(held(one.expression), one.region)
    for task in plan.tasks:
        registers = [values[key] for key in task.inputs]
        for step in task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        values[task.key] = registers[-1]
    return values


def whole(node: Expr, array: Stored, values: Mapping[str, Block]) -> np.ndarray:
    """Put the blocks of an array together, checking that each has its region's shape and its dtype."""
    parts = []
    for key, region in zip(array.keys, array.layout.grid.regions(), strict=True):
        assert values[key].shape == region_shape(region)
        assert values[key].dtype == node.dtype
        parts.append((tuple(start for start, _ in region), values[key]))
    block = join(parts, node.shape, node.dtype, node.sparse)
    return to_numpy(block)
