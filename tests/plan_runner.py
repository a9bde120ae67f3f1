"""Plans and programs run step by step in the tests' own process: what they mean, without any cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from matnb.blocks.formats import Block, Dense, to_numpy
from matnb.blocks.grid import region_shape
from matnb.blocks.kernels.shaping.shaping import join
from matnb.expr.nodes import Expr
from matnb.program.operators import Multiply
from matnb.program.plan import Plan, Slot, StoredArray, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, Registers
from matnb.testing.ops import ONE, THREE, run_by_hand, run_tasks

__all__ = ["ONE", "THREE", "run_by_hand", "run_tasks"]


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


def given_to(
    plan: Plan, stored: Mapping[Expr, StoredArray], blocks: Mapping[str, Block]
) -> dict[Slot, Block]:
    """Return what a plan reads of stored arrays in its slots, from their blocks by names."""
    return {
        slot: blocks[name]
        for node, array in plan.reused.items()
        for slot, name in zip(array.keys, stored[node].keys, strict=True)
    }


def whole(node: Expr, array: StoredArray, values: Mapping[Slot, Block]) -> np.ndarray:
    """Put the blocks of an array together, checking that each has its region's shape and its dtype."""
    parts = []
    for key, region in zip(array.keys, array.layout.grid.regions(), strict=True):
        assert values[key].shape == region_shape(region)
        assert values[key].dtype == node.dtype
        parts.append((tuple(start for start, _ in region), values[key]))
    block = join(parts, node.shape, node.dtype, node.sparse)
    return to_numpy(block)
