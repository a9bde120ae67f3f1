"""Plans and programs run step by step in the tests' own process: what they mean, without any cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from matnb.backend.tasks.executor import execute
from matnb.blocks.formats import Block, Dense, to_numpy
from matnb.blocks.grid import region_shape
from matnb.blocks.kernels.shaping.shaping import join
from matnb.expr.client_data import held
from matnb.expr.nodes import Expr
from matnb.ops.creation import inline_blocks, piece_of
from matnb.program.operators import Multiply
from matnb.program.plan import Plan, Slot, Stored, Task, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, Program, Registers

ONE = Workers((0,), 2, 0)
THREE = Workers((0, 1, 2), 1, 0)


def run_by_hand(plan: Plan, stored: Mapping[Slot, Block] | None = None) -> dict[Slot, Block]:
    """Run the steps of a plan in this process, one task after another."""
    values = dict(stored or {})
    values |= inline_blocks(plan)
    for one in plan.shipments:
        values[one.key] = piece_of(held(one.expression), one.region)
    return run_tasks(plan.tasks, values)


def run_tasks(tasks: Iterable[Task], given: Mapping[Slot, Block]) -> dict[Slot, Block]:
    """Run tasks, and return their values beside those given."""
    values = dict(given)
    for task in tasks:
        registers = [values[key] for key in task.inputs]
        for step in task.steps:
            registers.append(execute(step.operator, [registers[place] for place in step.arguments]))
        values[task.key] = registers[-1]
    return values


def multiplies(task: Task) -> bool:
    """Tell whether a task makes a product of two blocks, alone or in one pass with more."""
    return any(isinstance(getattr(one.operator, "product", one.operator), Multiply) for one in task.steps)


def run_program(program: Program, given: Mapping[Slot, Block]) -> dict[Slot, Block]:
    """Run a program whose registers are given, and return the values of its results by register."""
    values = dict(given)
    _act(program.actions, values)
    return {name: values[name] for name in program.results}


def _act(actions: Iterable[Action], values: dict[Slot, Block]) -> None:
    for action in actions:
        match action:
            case Batch(tasks, results):
                made = run_tasks(tasks, values)
                values.update((name, made[name]) for name in results)
            case Iterate():
                taken, state = 0, _flat(action.state)
                _move(values, state, _flat(action.first))
                while taken < _scalar(values, action.limit):
                    values[action.iteration] = _count(taken)
                    _act(action.body, values)
                    taken += 1
                    is_done = action.until is not None and bool(_scalar(values, action.until))
                    _move(values, state, _flat(action.after))
                    if is_done:
                        break
                values[action.taken] = _count(taken)
            case Branch():
                is_true = bool(_scalar(values, action.predicate))
                _act(action.then if is_true else action.otherwise, values)
                _move(values, action.results, action.from_then if is_true else action.from_otherwise)


def _flat(arrays: Sequence[Registers]) -> Registers:
    return tuple(name for names in arrays for name in names)


def _move(values: dict[Slot, Block], names: Registers, sources: Registers) -> None:
    # All at once: an array may change places with another.
    values.update(zip(names, [values[source] for source in sources], strict=True))


def _scalar(values: Mapping[Slot, Block], name: Slot) -> float:
    return float(to_numpy(values[name])[()])


def _count(number: int) -> Dense:
    return Dense(np.array(number, np.int64))


def given_to(plan: Plan, stored: Mapping[Expr, Stored], blocks: Mapping[str, Block]) -> dict[Slot, Block]:
    """Return what a plan reads of stored arrays in its slots, from their blocks by names."""
    return {
        slot: blocks[name]
        for node, array in plan.reused.items()
        for slot, name in zip(array.keys, stored[node].keys, strict=True)
    }


def whole(node: Expr, array: Stored, values: Mapping[Slot, Block]) -> np.ndarray:
    """Put the blocks of an array together, checking that each has its region's shape and its dtype."""
    parts = []
    for key, region in zip(array.keys, array.layout.grid.regions(), strict=True):
        assert values[key].shape == region_shape(region)
        assert values[key].dtype == node.dtype
        parts.append((tuple(start for start, _ in region), values[key]))
    block = join(parts, node.shape, node.dtype, node.sparse)
    return to_numpy(block)
