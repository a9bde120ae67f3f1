"""Plans of loops and branches that are used again for others of the same form, over other arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from matnb.expr.control import Cond, Final, Loop, results_of
from matnb.expr.nodes import Expr
from matnb.plan.looping import ControlPlan, plan_control
from matnb.program.plan import Stored, Task, Workers
from matnb.program.program import Action, Batch, Branch, Iterate, Names, Program

_MOST_PLANS = 32

Rename = Callable[[str], str]


@dataclass(frozen=True)
class _Form:
    """A plan without the arrays for which it was made, which it would keep alive.

    Attributes
    ----------
    plan
        Whose ``outputs``, ``given`` and ``works`` are left out.
    name
        Of the loop or branch, in the plan's registers.
    keys
        Of each input's blocks.
    outputs
        What is kept, by its place among what the node gives.
    given
        What is given, by the place among the inputs, and the number of the block.
    works
        What tasks work on, by the place among the inputs, and the number of the block.
    """

    plan: ControlPlan
    name: str
    keys: tuple[Names, ...]
    outputs: Mapping[int, Stored]
    given: Mapping[str, tuple[int, int]]
    works: Mapping[str, tuple[int, int]]


class ControlPlans:
    """Plans loops and branches, and remembers how the last ones were planned.

    A plan follows from what the bodies compute, from the layouts and sizes of the inputs and from the
    workers. Other inputs of the same form only have other names.
    """

    def __init__(self) -> None:
        self._forms: OrderedDict[Hashable, _Form] = OrderedDict()

    def plan(
        self,
        node: Loop | Cond,
        stored: Mapping[Expr, Stored],
        workers: Workers,
        wanted: Collection[Expr],
        begins: Sequence[Stored] | None = None,
    ) -> ControlPlan:
        """Return what :func:`matnb.plan.looping.plan_control` does."""
        if begins is not None:
            return plan_control(node, stored, workers, wanted, begins)
        form = _form_of(node, stored, workers, wanted)
        found = self._forms.get(form)
        if found is None:
            plan = plan_control(node, stored, workers, wanted)
            self._forms[form] = _without_arrays(plan, node, stored)
            if len(self._forms) > _MOST_PLANS:
                self._forms.popitem(last=False)
            return plan
        self._forms.move_to_end(form)
        return _for_others(found, node, stored)


def _form_of(
    node: Loop | Cond, stored: Mapping[Expr, Stored], workers: Workers, wanted: Collection[Expr]
) -> Hashable:
    # All that a plan depends on but for names. What is not stored, constants mostly, is made by the program.
    bodies = (node.body,) if isinstance(node, Loop) else (node.then, node.otherwise)
    inputs: list[Hashable] = []
    first: dict[Names, int] = {}  # inputs may be one array under two names
    for place, one in enumerate(node.inputs):
        array = stored.get(one)
        if array is None:
            inputs.append(one.digest)
        else:
            same = first.setdefault(array.keys, place)
            kind = (one.shape, one.dtype, one.sparse)
            inputs.append((kind, same, array.layout, array.block_nnz, array.block_bytes))
    kept = tuple(place for place, one in enumerate(_given_by(node)) if one in wanted)
    num_state = node.num_state if isinstance(node, Loop) else 0
    return type(node), tuple(body.digest for body in bodies), num_state, tuple(inputs), kept, workers


def _given_by(node: Loop | Cond) -> tuple[Expr, ...]:
    return (node, *(Final(node, place) for place in range(len(results_of(node)))))


def _without_arrays(plan: ControlPlan, node: Loop | Cond, stored: Mapping[Expr, Stored]) -> _Form:
    places = {one: place for place, one in enumerate(_given_by(node))}
    inputs = {one.digest.hex(): place for place, one in enumerate(node.inputs)}
    return _Form(
        replace(plan, outputs={}, given={}, works={}),
        node.digest.hex(),
        tuple(stored[one].keys if one in stored else () for one in node.inputs),
        {places[one]: array for one, array in plan.outputs.items()},
        {name: (node.inputs.index(one), number) for name, (one, number) in plan.given.items()},
        {key: (inputs[digest], number) for key, (digest, number) in plan.works.items()},
    )


def _for_others(form: _Form, node: Loop | Cond, stored: Mapping[Expr, Stored]) -> ControlPlan:
    name = node.digest.hex()
    others: dict[str, str] = {}
    for one, keys in zip(node.inputs, form.keys, strict=True):
        if keys:
            others.update(zip(keys, stored[one].keys, strict=True))

    def renamed(old: str) -> str:
        return others.get(old) or old.replace(form.name, name)

    given_by = _given_by(node)
    plan = form.plan
    return replace(
        plan,
        program=_renamed_program(plan.program, renamed),
        outputs={given_by[place]: _renamed_array(array, renamed) for place, array in form.outputs.items()},
        given={renamed(old): (node.inputs[place], number) for old, (place, number) in form.given.items()},
        states=tuple(_renamed_array(array, renamed) for array in plan.states),
        works={
            renamed(old): (node.inputs[place].digest.hex(), number)
            for old, (place, number) in form.works.items()
        },
    )


def _renamed_array(array: Stored, renamed: Rename) -> Stored:
    return replace(array, keys=_names(array.keys, renamed))


def _renamed_program(program: Program, renamed: Rename) -> Program:
    return replace(
        program,
        actions=_actions(program.actions, renamed),
        given={renamed(old): owner for old, owner in program.given.items()},
        owners={renamed(old): owner for old, owner in program.owners.items()},
        everywhere=frozenset(map(renamed, program.everywhere)),
        results=_names(program.results, renamed),
    )


def _actions(actions: Sequence[Action], renamed: Rename) -> tuple[Action, ...]:
    return tuple(_action(one, renamed) for one in actions)


def _action(action: Action, renamed: Rename) -> Action:
    match action:
        case Batch(tasks, results):
            return Batch(tuple(_task(task, renamed) for task in tasks), _names(results, renamed))
        case Iterate():
            return Iterate(
                state=tuple(_names(names, renamed) for names in action.state),
                first=tuple(_names(names, renamed) for names in action.first),
                after=tuple(_names(names, renamed) for names in action.after),
                limit=renamed(action.limit),
                until=None if action.until is None else renamed(action.until),
                iteration=renamed(action.iteration),
                taken=renamed(action.taken),
                body=_actions(action.body, renamed),
                most=action.most,
            )
        case Branch():
            return Branch(
                predicate=renamed(action.predicate),
                then=_actions(action.then, renamed),
                otherwise=_actions(action.otherwise, renamed),
                results=_names(action.results, renamed),
                from_then=_names(action.from_then, renamed),
                from_otherwise=_names(action.from_otherwise, renamed),
            )


def _task(task: Task, renamed: Rename) -> Task:
    return replace(task, key=renamed(task.key), inputs=_names(task.inputs, renamed))


def _names(names: Names, renamed: Rename) -> Names:
    return tuple(map(renamed, names))
