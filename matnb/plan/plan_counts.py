"""A plan in numbers for users: operations, new arrays, memoized results."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from matnb.blocks.kernels.calls import unpack
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.shaping.indexing import only
from matnb.expr.nodes import Data, Expr, Literal, Load, Regrid
from matnb.io.source import facts_of_piece, found_in_source, merge_facts
from matnb.plan.measured import MadeStage
from matnb.program.kinds import Role
from matnb.program.operators import (
    Constant,
    Cut,
    Finish,
    FusedKernel,
    MaskedSum,
    Operator,
    Run,
    Take,
)
from matnb.program.plan import Plan, Slot, Stage, Step, Task

# What these give is far smaller than a block, is part of one, or was there before.
_NO_ARRAY = (Constant, Cut, Finish, MaskedSum, Take)
_SMALL_OR_PART = (facts_of_piece, found_in_source, merge_facts, only, unpack)  # kernels


class PlanCounts(NamedTuple):
    """What a plan does.

    Attributes
    ----------
    num_run
        Expressions that its tasks compute, each once however many blocks it has. A mean is two of them, a sum
        and a quotient; constants and a user's data are none; what a product of a mask, or of a pattern,
        does without is none.
    num_arrays
        Arrays newly made: one for each stage, and as many as its tasks hold whole blocks at the same time,
        apart from what they give. Scalars, shares of a reduction, tiles of a chain, copies made to be moved
        and a user's data are none.
    num_remembered
        Results that were there already: named ones that needed no task, and those that tasks read. A user's
        data and files are none.
    flops, accessed_bytes
        Floating-point operations, and bytes of arrays that are read and written; see :mod:`matnb.plan.work`.
    """

    num_run: int
    num_arrays: int
    num_remembered: int
    flops: int = 0
    accessed_bytes: int = 0


def counts_of(plan: Plan, roots: Iterable[Expr] = (), made: Container[Expr] = ()) -> PlanCounts:
    """Return what a plan does.

    Parameters
    ----------
    plan
        Whose tasks are counted.
    roots
        What it was asked for, after all passes.
    made
        What was made just before for the same cell, and so is not remembered.
    """
    there = {*plan.reused, *(root for root in roots if root not in plan.outputs)}
    work = plan.found.get("work")
    if not isinstance(work, _Work):  # alike for plans of one form
        flops, accessed = (sum(found) for found in zip(*plan.work, strict=True)) if plan.work else (0, 0)
        work = plan.found["work"] = _Work(_num_computed(plan), _num_arrays(plan), flops, accessed)
    num_remembered = sum(not _is_given(one) and one not in made for one in there)
    return PlanCounts(work.num_run, work.num_arrays, num_remembered, work.flops, work.accessed_bytes)


class _Work(NamedTuple):
    num_run: int
    num_arrays: int
    flops: int
    accessed_bytes: int


def _num_computed(plan: Plan) -> int:
    computed = {
        node
        for stage in plan.stages
        for node in stage.inside
        if stage.kind.role is not Role.SENDS and not isinstance(node, Data | Literal)
    }
    return len(computed)


def _is_given(node: Expr) -> bool:
    inner = node.operand if isinstance(node, Regrid) else node
    return isinstance(inner, Data | Load | Literal)


def _num_arrays(plan: Plan) -> int:
    found = tasks_by_stage(plan.stages, plan.tasks, once=True)
    total = 0
    for stage, tasks in zip(plan.stages, found, strict=True):
        if stage.kind.role is Role.SENDS or not tasks:
            continue
        is_array = stage.expression.size > 1
        own = set(stage.tasks)
        inside = (
            max(num_temporaries(task) for task in tasks) if is_array or stage.kind.role is Role.REDUCES else 0
        )
        # Parts of one block that several tasks make, before they are put together.
        parts = sum(task.kind.role is Role.MULTIPLIES and task.key not in own for task in tasks)
        total += is_array + inside + -(-parts // max(1, len(own)))
    return total


def tasks_by_stage(
    stages: Sequence[Stage] | Sequence[MadeStage], tasks: Iterable[Task], once: bool = False
) -> list[list[Task]]:
    """Return the tasks of each stage: those that give its blocks, and those that only lead to these.

    Reductions that are made in one pass have tasks in common; with ``once`` only the first has them.
    """
    by_key = {task.key: task for task in tasks}
    blocks = {key for stage in stages for key in stage.tasks}
    found: list[list[Task]] = []
    seen: set[Slot] = set()
    for stage in stages:
        if not once:
            seen.clear()
        own: list[Task] = []
        waiting = list(stage.tasks)
        while waiting:
            key = waiting.pop()
            if key in by_key and key not in seen:
                seen.add(key)
                own.append(by_key[key])
                waiting += [one for one in by_key[key].inputs if one not in blocks]
        found.append(own)
    return found


def num_temporaries(task: Task) -> int:
    """Return how many arrays of a block's size a task holds at a time, but for its inputs and its value."""
    count, last = len(task.inputs), _last_readers(task.steps)
    alive: set[int] = set()
    most = 0
    for number, step in enumerate(task.steps[:-1]):
        place = count + number
        if _gives_array(step.operator):
            alive.add(place)
        most = max(most, len(alive))
        alive -= {one for one in step.arguments if last[one] == number}
    return most


def _last_readers(steps: Sequence[Step]) -> dict[int, int]:
    return {place: number for number, step in enumerate(steps) for place in step.arguments}


def _gives_array(operator: Operator) -> bool:
    match operator:
        case Run(kernel):
            return kernel not in _SMALL_OR_PART
        case FusedKernel(_, shares):
            return not shares
    return not isinstance(operator, _NO_ARRAY)


def functions_of(task: Task) -> tuple[int, int]:
    """Return how many elementwise functions a task applies, and how many buffers their values share.

    The memory of what a chain gives is one of them; the others are tiles of it.
    """
    functions = buffers = 0
    for step in task.steps:
        match step.operator:
            case FusedKernel(links, shares, product=product):
                functions += len(links)
                num_operands = len(step.arguments) - (product is not None)
                num_apart = 0 if shares else 1
                buffers = max(buffers, num_apart + num_tiles(links, num_operands, ends_apart=not shares))
    return functions, buffers


def reductions_of(task: Task) -> int:
    """Return how many reductions a task makes in one pass over what it reads."""
    shares = (len(step.operator.shares) for step in task.steps if isinstance(step.operator, FusedKernel))
    return max(shares, default=0)


def num_tiles(links: Sequence[Link], num_operands: int, ends_apart: bool = False) -> int:
    """Return how many tiles functions take by turns: one is taken again after the last reader of its value.

    Parameters
    ----------
    links
        The functions.
    num_operands
        Of the chain; a link's arguments number these first.
    ends_apart
        Whether what the last one gives goes elsewhere.
    """
    last = {place: number for number, link in enumerate(links) for place in link.arguments}
    alive: dict[int, np.dtype] = {}
    free: list[np.dtype] = []
    taken = 0
    for number, link in enumerate(links[:-1] if ends_apart else links):
        if link.dtype in free:
            free.remove(link.dtype)
        else:
            taken += 1
        alive[num_operands + number] = link.dtype
        done = {place for place in link.arguments if last[place] == number}
        free += [alive.pop(place) for place in done & alive.keys()]
    return taken
