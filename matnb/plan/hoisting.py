"""Loop-invariant code motion: tasks of a loop's body with the same result each time run before it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from matnb.program.operators import Constant
from matnb.program.plan import Slot, Task
from matnb.program.program import Action, Batch, Branch, Iterate


def hoisted(repeat: Iterate) -> tuple[Action, ...]:
    """Return a loop without the tasks that lay out what does not change in it, after a batch of these.

    They are not found among the expressions: the pieces of a given vector gathered for a worker, say.
    """
    changing = {repeat.iteration, *(name for names in repeat.state for name in names)}
    before: list[Task] = []
    body: list[Action] = []
    for action in repeat.body:
        if not isinstance(action, Batch):
            body.append(action)
            changing |= _filled([action])
            continue
        stay = []
        for task in action.tasks:
            if changing.isdisjoint(task.inputs) and _lays_out(task):
                before.append(task)
            else:
                stay.append(task)
                changing.add(task.key)
        if stay:
            kept = {task.key for task in stay}
            results = tuple(name for name in action.results if name in kept)
            body.append(Batch(tuple(stay), results))
    if not before:
        return (repeat,)
    rest = replace(repeat, body=tuple(body))
    read = slots_read([rest])
    results = tuple(task.key for task in before if task.key in read)
    return Batch(tuple(before), results), rest


def _lays_out(task: Task) -> bool:
    # What is computed stays where the body put it: it may be larger than what it is made from.
    return task.kind.lays_out or all(isinstance(step.operator, Constant) for step in task.steps)


def _filled(actions: Iterable[Action]) -> set[Slot]:
    # Registers that actions fill, those inside bodies too.
    found: set[Slot] = set()
    for action in actions:
        match action:
            case Batch():
                found.update(task.key for task in action.tasks)
            case Iterate():
                found |= {action.iteration, action.taken, *(one for names in action.state for one in names)}
                found |= _filled(action.body)
            case Branch():
                found |= {*action.results, *_filled(action.then), *_filled(action.otherwise)}
    return found


def slots_read(actions: Iterable[Action]) -> set[Slot]:
    """Return the registers that actions read, those inside bodies too."""
    found: set[Slot] = set()
    for action in actions:
        match action:
            case Batch():
                found.update(name for task in action.tasks for name in task.inputs)
            case Iterate():
                found.update(name for names in (*action.first, *action.after) for name in names)
                found |= {action.limit, *(() if action.until is None else (action.until,))}
                found |= slots_read(action.body)
            case Branch():
                found |= {action.predicate, *action.from_then, *action.from_otherwise}
                found |= slots_read(action.then) | slots_read(action.otherwise)
    return found
