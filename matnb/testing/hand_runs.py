"""Plans run step by step in the tests' own process: what they mean, without any cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from matnb.backend.tasks.executor import execute
from matnb.blocks.formats import Block, Csr, Dense, Empty, freeze
from matnb.expr.client_data import held
from matnb.ops.creation import inline_blocks, piece_of
from matnb.program.plan import Plan, Slot, Task, Workers

ONE = Workers((0,), 2, 0)
THREE = Workers((0, 1, 2), 1, 0)


def run_by_hand(plan: Plan, stored: Mapping[Slot, Block] | None = None) -> dict[Slot, Block]:
    """Run the steps of a plan in this process, one task after another."""
    values = dict(stored or {})
    values |= inline_blocks(plan)
    for one in plan.shipments:
        block = held(one.expression)
        assert block is not None, "whoever made the plan has the handles"
        values[one.key] = piece_of(block, one.region)
    return run_tasks(plan.tasks, values)


def run_tasks(tasks: Iterable[Task], given: Mapping[Slot, Block]) -> dict[Slot, Block]:
    """Run tasks, and return their values beside those given; blocks are read-only, as on workers."""
    values = dict(given)
    for task in tasks:
        registers = [values[key] for key in task.inputs]
        for step in task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        value = registers[-1]
        values[task.key] = freeze(value) if isinstance(value, Dense | Csr | Empty) else value
    return values
