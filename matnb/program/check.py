"""The invariants of every plan and program: what an engine may rely on.

Tests check each one that is written; an engine does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass

import numpy as np

from matnb.blocks.kernels.calls import Function
from matnb.expr.nodes import Data, Expr
from matnb.program.plan import Plan, Slot, Task
from matnb.program.program import Action, Batch, Branch, Iterate, Program, Registers

_PLAIN = frozenset({bool, int, float, str, bytes, type(None)})


class ContractError(AssertionError):
    """A plan or a program that no engine could run; the message says where."""


def check_plan(plan: Plan, owners: Collection[int] = (), present: Collection[Slot] = ()) -> None:
    """Check a plan.

    Parameters
    ----------
    owners
        The workers that may have tasks: those it is for, and those that have what it reads; any where none
        are given.
    present
        Slots of values that are on workers and belong to no array, such as a file's pieces.

    Raises
    ------
    ContractError
        Naming the first thing that does not hold.
    """
    there = {*present, *plan.inline, *(one.key for one in plan.shipments)}
    there.update(key for array in plan.reused.values() for key in array.keys)
    made = _check_tasks(plan.tasks, there, owners)
    # What is wrong is written out only where something is: names of operators and expressions are long.
    for operator, key in {
        id(step.operator): (step.operator, task.key) for task in plan.tasks for step in task.steps
    }.values():
        if holds_arrays(operator):
            raise ContractError(f"{key}: {operator} holds an array of one run")
    for stage in plan.stages:
        if isinstance(stage.expression, Data):
            keys = set(stage.tasks)
            is_written = any(task.steps for task in plan.tasks if task.key in keys)
            _hold(not is_written, f"a value of {stage.expression} is written in a task")
    at = {one.key: one.owner for one in plan.shipments} | {one.key: one.owner for one in plan.tasks}
    for stage in plan.stages:
        if missing := set(stage.tasks) - made - there:
            raise ContractError(f"the stage of {stage.expression} has tasks that nobody makes: {missing}")
    for node, array in plan.outputs.items():
        _hold(array.layout.grid.shape == node.shape, f"{node}: cuts of another shape")
        _hold(len(array.keys) == array.layout.grid.num_blocks, f"{node}: a slot for each block")
        for key, owner in zip(array.keys, array.layout.owners, strict=True):
            if key not in made and key not in there:
                raise ContractError(f"{node}: nobody makes its block {key}")
            if at.get(key, owner) != owner:
                raise ContractError(f"{node}: its block {key} is not where its layout says")


def check_program(program: Program) -> None:
    """Check a program: what is read was filled before, where it is said to be, whichever way control takes.

    Raises
    ------
    ContractError
        Naming the first thing that does not hold.
    """
    known, owners = set(program.given), dict(program.owners)
    _check_actions(program.actions, known, owners, program)
    _hold(set(program.results) <= known, "results that nobody makes")


def _check_actions(
    actions: Iterable[Action], known: set[Slot], owners: dict[Slot, int], program: Program
) -> None:
    def alike(names: Registers, sources: Registers, words: str) -> None:
        _hold(len(names) == len(sources), f"{words}: as many registers")
        for name, source in zip(names, sources, strict=True):
            _hold(owners[name] == owners[source], f"{words}: {source} is not where {name} is")

    for action in actions:
        match action:
            case Batch(tasks, results):
                made = _check_tasks(tasks, known)
                owners.update((task.key, task.owner) for task in tasks)
                _hold(set(results) <= made, f"results that the batch does not make: {set(results) - made}")
                known |= set(results)
            case Iterate():
                _hold(action.limit in known, "a loop whose limit is not known")
                for state, first in zip(action.state, action.first, strict=True):
                    _hold(set(first) <= known, f"a state that begins in what is not there: {first}")
                    alike(state, first, "a loop's beginning")
                    known |= set(state)
                counters = {action.iteration, action.taken}
                _hold(counters <= program.everywhere, "a loop whose counters not every worker has")
                known |= counters
                inside = set(known)
                _check_actions(action.body, inside, owners, program)
                for state, after in zip(action.state, action.after, strict=True):
                    _hold(set(after) <= inside, f"a next state that is not there: {after}")
                    alike(state, after, "a loop's next state")
                _hold(action.until is None or action.until in inside, "a loop that ends by what is not there")
            case Branch():
                _hold(action.predicate in known, "a branch whose predicate is not known")
                ways = ((action.then, action.from_then), (action.otherwise, action.from_otherwise))
                for side, sources in ways:
                    inside = set(known)
                    _check_actions(side, inside, owners, program)
                    _hold(set(sources) <= inside, f"a branch that gives what is not there: {sources}")
                    alike(action.results, sources, "a branch's results")
                known |= set(action.results)


def _check_tasks(tasks: Sequence[Task], there: Collection[Slot], owners: Collection[int] = ()) -> set[Slot]:
    # Inputs before their users, a slot for one task, steps that read what is there; what all of them make.
    made: set[Slot] = set()
    for task in tasks:
        _hold(task.key not in made and task.key not in there, f"{task.key} is made twice")
        missing = set(task.inputs) - made.union(there)
        _hold(not missing, f"{task.key} reads what is not there: {missing}")
        _hold(not owners or task.owner in owners, f"{task.key}: there is no worker {task.owner}")
        _hold(bool(task.steps) or len(task.inputs) == 1, f"{task.key} does nothing, and copies no one value")
        for place, step in enumerate(task.steps):
            known = len(task.inputs) + place
            _hold(all(0 <= one < known for one in step.arguments), f"{task.key}: step {place} reads ahead")
        _hold(task.working_bytes >= 0, f"{task.key} takes negative memory")
        made.add(task.key)
    return made


def holds_arrays(value: object) -> bool:
    """Tell whether there is an array in an operator, or in whatever else a plan is made of.

    A user's function is not looked into: it is distinguished by all that it reads.
    """
    stack = [value]
    while stack:
        one = stack.pop()
        if type(one) in _PLAIN:
            continue
        if isinstance(one, np.ndarray):
            return True
        if isinstance(one, Mapping):
            stack.extend(one.values())
        elif isinstance(one, tuple | list | set | frozenset):
            stack.extend(one)
        elif is_dataclass(one) and not isinstance(one, type | Expr | Function):
            stack.extend(getattr(one, field.name) for field in fields(one))
    return False


def _hold(holds: bool, words: str) -> None:
    if not holds:
        raise ContractError(words)
