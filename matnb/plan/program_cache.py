"""The plan cache: plans of earlier runs, reused for requests of the same structure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import count
from typing import NamedTuple

import numpy as np

from matnb.blocks.grid import whole
from matnb.blocks.layout import Layout
from matnb.expr.control import Cond, Final, Loop, results_of
from matnb.expr.nodes import Data, Expr, Literal
from matnb.expr.traverse import topological
from matnb.passes.order import ordered
from matnb.plan.looping import ControlPlan, plan_control
from matnb.plan.structural_key import StructuralKey
from matnb.program.operators import Constant, Make
from matnb.program.plan import InlineBlock, Plan, Shipment, Slot, Stage, StoredArray, Workers

_MOST_PLANS = 64
_MOST_CONTROL_PLANS = 32
_NUMBERS = (float, complex, bytes, np.generic, np.ndarray)
_PLAIN = frozenset([int, bool, type(None)])
_WITH_EXPRESSIONS = ("stages", "shipments", "outputs", "reused", "scattered", "inline")  # fields of a plan


class Unfit(Exception):  # noqa: N818  not an error: a plan is made anew
    """A plan cannot serve other runs of its form, or not this one."""


@dataclass(frozen=True)
class ScatterChoice:
    """Whether a product with a sparse transpose does without the transpose, and what that follows from.

    ``operand`` is what is transposed, ``width`` the number of columns that it meets.
    """

    operand: Expr
    num_entries: int
    width: int
    chosen: bool


class PlanResult(NamedTuple):
    """A plan, and what became of the expressions that were recorded.

    Attributes
    ----------
    plan
        How to run what was asked for.
    optimized
        What each of the roots, and of what stays on the way, became.
    origins
        For each expression that passes made, the recorded ones it stands for.
    choices
        Those made for sparse transposes.
    """

    plan: Plan
    optimized: Mapping[Expr, Expr]
    origins: Mapping[Expr, tuple[Expr, ...]]
    choices: tuple[ScatterChoice, ...] = ()


@dataclass(frozen=True)
class _Node:
    # An expression: one that was recorded, by its place there, or an operation that passes made, with
    # operands that stand for others. If it is computed from others, their numbers.
    place: int | None
    operation: Expr | None
    operands: tuple[int, ...]
    is_made: bool
    sparse: bool


@dataclass(frozen=True)
class _StageForm:
    # The fields of a stage that hold no expression, and the numbers of those that it has.
    others: Mapping[str, object]
    expression: int
    inside: tuple[int, ...]

    def bound(self, nodes: Sequence[Expr]) -> Stage:
        """Return the stage with these expressions; its fields are written at once, as those of nodes are."""
        stage = object.__new__(Stage)
        own = stage.__dict__
        own.update(self.others)
        own["expression"], own["inside"] = nodes[self.expression], tuple([nodes[one] for one in self.inside])
        return stage


class CachedPlan:
    """A plan without its expressions, so that none of its run's data is kept.

    Parameters
    ----------
    form, known
        What was asked for, and what was stored.
    planned
        The plan for it.
    is_there
        Everything that was stored then, also under names that only passes give.

    Raises
    ------
    Unfit
        When another run of the same form might need another plan.
    """

    def __init__(
        self,
        form: StructuralKey,
        known: Mapping[Expr, StoredArray],
        planned: PlanResult,
        is_there: Container[Expr] = (),
    ) -> None:
        plan = planned.plan
        places = {node: place for place, node in enumerate(form.nodes)}
        order = topological(planned.optimized.values(), known)
        numbers = {node: number for number, node in enumerate(order)}
        if any(node not in places if node in known else node in is_there for node in order):
            raise Unfit  # passes made what an earlier run had left
        _check_numbers(form, order, plan, known)

        def number_of(node: Expr) -> int:
            if node not in numbers:
                raise Unfit  # made when it was lowered
            return numbers[node]

        self._nodes = tuple(_node(node, places, numbers, node in known) for node in order)
        self._ends = tuple((places[one], numbers[made]) for one, made in planned.optimized.items())
        self._stages = tuple(
            _StageForm(
                _others(one, ("expression", "inside")),
                number_of(one.expression),
                tuple(map(number_of, one.inside)),
            )
            for one in plan.stages
        )
        self._shipments = tuple(
            (number_of(one.expression), replace(one, expression=_stand_in(one.expression)))
            for one in plan.shipments
        )
        self._outputs = tuple((number_of(node), array) for node, array in plan.outputs.items())
        self._reused = tuple((number_of(node), array) for node, array in plan.reused.items())
        self._scattered = tuple(map(number_of, plan.scattered))
        self._inline = tuple(
            (slot, number_of(one.expression), one.region)
            if isinstance(one, InlineBlock)
            else (slot, number_of(one), None)
            for slot, one in plan.inline.items()
        )
        self._others = _others(plan, _WITH_EXPRESSIONS)
        self._origins = tuple(
            (numbers[node], tuple(places[one] for one in recorded if one in places))
            for node, recorded in planned.origins.items()
            if node in numbers
        )
        self._choices = tuple(
            (number_of(one.operand), one.num_entries, one.width, one.chosen) for one in planned.choices
        )

    def bound(
        self,
        form: StructuralKey,
        known: Mapping[Expr, StoredArray],
        is_there: Container[Expr],
        chooses: Callable[[Expr, int, int], bool],
    ) -> PlanResult:
        """Return the plan with the expressions of another run of the same form.

        What passes made of an expression is made here by the same operations on what plays its operands'
        part, named as they would name it. Tasks do the operations in the order of the earlier run: where two
        operands of what commutes are exchanged, the bits are the same.

        Parameters
        ----------
        form, known
            What is asked for, and what is stored.
        is_there
            Of expressions that passes make, those that are stored.
        chooses
            Makes the choice of a ScatterChoice from operand, entries and width.

        Raises
        ------
        Unfit
            When this run needs another plan.
        """
        nodes = self._expressions(form, is_there)
        for number, num_entries, width, chosen in self._choices:
            if chooses(nodes[number], num_entries, width) != chosen:
                raise Unfit
        names: dict[Slot, str] = {}
        for number, array in self._reused:
            for slot, name in zip(array.keys, known[nodes[number]].keys, strict=True):
                if names.setdefault(slot, name) != name:
                    raise Unfit  # what was one array under two names is two here
        plan = Plan(
            stages=tuple([one.bound(nodes) for one in self._stages]),
            shipments=tuple(
                Shipment(one.key, nodes[number], one.region, one.owner)  # type: ignore[arg-type]  # data
                for number, one in self._shipments
            ),
            outputs={nodes[number]: array for number, array in self._outputs},
            reused={nodes[number]: array for number, array in self._reused},
            scattered=tuple(nodes[number] for number in self._scattered),
            inline={
                slot: nodes[number] if region is None else InlineBlock(nodes[number], region)  # type: ignore[misc, arg-type]  # literals, data
                for slot, number, region in self._inline
            },
            **self._others,  # type: ignore[arg-type]  # the fields of a plan
        )
        return PlanResult(
            plan,
            {form.nodes[place]: nodes[number] for place, number in self._ends},
            {nodes[number]: tuple(form.nodes[place] for place in places) for number, places in self._origins},
        )

    def _expressions(self, form: StructuralKey, is_there: Container[Expr]) -> list[Expr]:
        # Operands of what commutes are put in order again, for the names that passes would give.
        nodes: list[Expr] = []
        for one in self._nodes:
            node = one.operation if one.place is None else form.nodes[one.place]
            assert node is not None, "what was not recorded is an operation"
            if one.is_made:
                node = node.with_operands(*map(nodes.__getitem__, one.operands))
                node = ordered(node) or node
                if node.sparse != one.sparse:
                    raise Unfit
            if (one.is_made or one.place is None) and node in is_there:
                raise Unfit  # an earlier run left what would be made a second time
            nodes.append(node)
        if len(set(nodes)) < len(nodes):
            raise Unfit  # two expressions have one array here
        return nodes


def _node(node: Expr, places: Mapping[Expr, int], numbers: Mapping[Expr, int], is_stored: bool) -> _Node:
    is_made = bool(node.operands) and not is_stored
    operands = tuple(numbers[one] for one in node.operands) if is_made else ()
    if node in places:
        return _Node(places[node], None, operands, is_made, node.sparse)
    try:
        operation = node.with_operands(*map(_stand_in, node.operands))
    except AssertionError:  # an operation on another alone, such as a part of a call
        raise Unfit from None
    return _Node(None, operation, operands, is_made, node.sparse)


def _stand_in(node: Expr) -> Data:
    return Data(b"operand", node.shape, node.dtype, node.sparse)


def _others(value: Plan | Stage, changing: Collection[str]) -> dict[str, object]:
    return {one.name: getattr(value, one.name) for one in fields(value) if one.name not in changing}


def _check_numbers(form: StructuralKey, order: Sequence[Expr], plan: Plan, stored: Container[Expr]) -> None:
    # A form's numbers may have other values where no pass looked at them, and the plan is given them as they
    # are: then they are nowhere inside it.
    if not form.numbers:
        return
    numbers = {form.nodes[place] for place in form.numbers}
    sources = {node for node in order if not node.operands and node not in stored}
    if not numbers <= set(order) or not sources <= set(form.nodes):
        raise Unfit
    for operator in (step.operator for task in plan.tasks for step in task.steps):
        if not isinstance(operator, Constant | Make) and _holds_numbers(operator):
            raise Unfit


def _holds_numbers(value: object) -> bool:
    stack = [value]  # chains may have thousands of links
    while stack:
        one = stack.pop()
        if type(one) in _PLAIN or isinstance(one, np.dtype):
            continue
        if isinstance(one, _NUMBERS):
            return True
        if isinstance(one, Mapping):
            stack.extend(one.keys())
            stack.extend(one.values())
        elif isinstance(one, tuple | list | set | frozenset):
            stack.extend(one)
        elif is_dataclass(one):
            stack.extend(getattr(one, field.name) for field in fields(one))
    return False


class PlanCache:
    """Remembers the plans of the forms that were asked for last.

    Attributes
    ----------
    num_reused
        Runs that were not planned anew.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Place] = {}
        self._clock = count()
        self.num_reused = 0

    def planned(
        self,
        form_with: Callable[[bool], StructuralKey],
        known: Mapping[Expr, StoredArray],
        is_there: Container[Expr],
        anew: Callable[[Collection[Expr]], PlanResult],
        chooses: Callable[[Expr, int, int], bool],
        fits: Callable[[PlanResult], bool],
    ) -> PlanResult:
        """Return a cached plan with this run's expressions, or make a new one.

        Parameters
        ----------
        form_with
            Gives the form of what is asked for, with the value of every constant or without those that may
            be others.
        known, is_there, chooses
            As :meth:`CachedPlan.bound` has them.
        anew
            Makes the plan, which is given some constants instead of having them inside.
        fits
            Tells of an earlier plan whether it serves this run.
        """
        form = form_with(False)
        place = self._found(form)
        if form.numbers and place is not None and place.plan is None:
            form = form_with(True)
            place = self._found(form)
        constants = frozenset(form.nodes[number] for number in form.numbers)
        if place is None:
            planned = anew(constants)
            kept = self._keep(form, known, planned, is_there)
            if form.numbers and kept is None:
                self._keep(form_with(True), known, planned, is_there)
            return planned
        if place.plan is None:
            return anew(constants)
        try:
            planned = place.plan.bound(form, known, is_there, chooses)
            if not fits(planned):
                raise Unfit
        except Unfit:
            planned = anew(constants)
            place.plan = _cached(form, known, planned, is_there) or place.plan
            return planned
        self.num_reused += 1
        return planned

    def _found(self, form: StructuralKey) -> _Place | None:
        # A form takes long to hash, so that it is looked up once.
        place = self._kept.get(form.key)
        if place is not None:
            place.used = next(self._clock)
        return place

    def _keep(
        self,
        form: StructuralKey,
        known: Mapping[Expr, StoredArray],
        planned: PlanResult,
        is_there: Container[Expr],
    ) -> CachedPlan | None:
        plan = _cached(form, known, planned, is_there)
        self._kept[form.key] = _Place(plan, next(self._clock))
        if len(self._kept) > _MOST_PLANS:
            del self._kept[min(self._kept, key=lambda key: self._kept[key].used)]
        return plan


@dataclass
class _Place:
    # A plan that is kept, or None where none is to be used again, and when it was used last.
    plan: CachedPlan | None
    used: int


def _cached(
    form: StructuralKey, known: Mapping[Expr, StoredArray], planned: PlanResult, is_there: Container[Expr]
) -> CachedPlan | None:
    try:
        return CachedPlan(form, known, planned, is_there)
    except Unfit:
        return None


# Plans of loops and branches.


@dataclass(frozen=True)
class _CachedControl:
    """The plan of a loop or branch without the arrays for which it was made, which it would keep alive.

    Attributes
    ----------
    plan
        Whose ``outputs``, ``inputs``, ``given`` and ``works`` are left out.
    outputs
        What is kept, by its place among what the node gives.
    inputs
        By the place among the node's inputs.
    given
        What is given, by the place among the inputs, and the number of the block.
    works
        What tasks work on, by the place among the inputs, and the number of the block.
    numbers
        The slots of numbers that are given, by their place among those.
    """

    plan: ControlPlan
    outputs: Mapping[int, StoredArray]
    inputs: Mapping[int, StoredArray]
    given: Mapping[Slot, tuple[int, int]]
    works: Mapping[Slot, tuple[int, int]]
    numbers: Mapping[Slot, int]

    def bound(self, node: Loop | Cond, numbers: Sequence[Literal]) -> ControlPlan:
        """Return the plan with the expressions of a loop or branch of the same form."""
        given_by, inputs = _given_by(node), node.inputs
        digests = [one.digest.hex() for one in inputs]
        return replace(
            self.plan,
            outputs={given_by[place]: array for place, array in self.outputs.items()},
            inputs={inputs[place]: array for place, array in self.inputs.items()},
            given={slot: (inputs[place], number) for slot, (place, number) in self.given.items()},
            works={slot: (digests[place], number) for slot, (place, number) in self.works.items()},
            numbers={slot: numbers[place] for slot, place in self.numbers.items()},
        )


class ControlPlans:
    """Plans loops and branches, and remembers how the last ones were planned.

    A plan follows from what the bodies compute, from the layouts and sizes of the inputs and from the
    workers. Other inputs of the same form are in the same registers.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _CachedControl] = OrderedDict()

    def plan(
        self,
        node: Loop | Cond,
        stored: Mapping[Expr, StoredArray],
        workers: Workers,
        wanted: Collection[Expr],
        begins: Sequence[StoredArray] | None = None,
        gives_numbers: bool = False,
    ) -> ControlPlan:
        """Return what :func:`matnb.plan.looping.plan_control` does.

        With ``gives_numbers`` those that an initial state is computed from, and small arrays that the body is
        given, are no part of the program, so that a search from another vertex, for example, has the same.
        """
        if begins is not None:
            return plan_control(node, stored, workers, wanted, begins)
        stand_ins: dict[Literal, Data] = {}
        form = node
        if gives_numbers and isinstance(node, Loop):
            form = _with_numbers_given(node, stored, stand_ins)
        kept = [place for place, one in enumerate(_given_by(node)) if one in wanted]
        key = _control_key(form, stored, workers, kept)
        found = self._kept.get(key)
        if found is None:
            known = dict(stored)
            for one in stand_ins.values():
                alone = Layout(whole(one.shape), workers.numbers[:1])
                known[one] = StoredArray(
                    alone, (one.content,), (one.size,), (one.size * one.element.itemsize,)
                )
            given_by = _given_by(form)
            plan = plan_control(form, known, workers, [given_by[place] for place in kept])
            found = self._kept[key] = _without_arrays(plan, form, tuple(stand_ins.values()))
            if len(self._kept) > _MOST_CONTROL_PLANS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return found.bound(node, tuple(stand_ins))


def _with_numbers_given(loop: Loop, stored: Container[Expr], stand_ins: dict[Literal, Data]) -> Loop:
    # The loop with data in place of the numbers that its initial state is computed from, and of the constant
    # arrays that its body is given.
    changed: dict[Expr, Expr] = {}

    def changes(node: Literal) -> None:
        name = b"number %d" % len(stand_ins)
        changed[node] = stand_ins[node] = Data(name, node.lengths, node.element, False)

    roots = [one for one in loop.state if one not in stored and not isinstance(one, Literal)]
    for node in topological(roots, stored):
        if isinstance(node, Literal) and not node.lengths:
            changes(node)
        elif any(one in changed for one in node.operands):
            changed[node] = node.with_operands(*(changed.get(one, one) for one in node.operands))
    given = [one for one in loop.given if isinstance(one, Literal) and one.lengths and one not in stored]
    for one in dict.fromkeys(given):
        changes(one)
    if not stand_ins:
        return loop
    replaced = {*roots, *given}
    inputs = (changed.get(one, one) if one in replaced else one for one in loop.inputs)
    found = loop.with_operands(*inputs)
    assert isinstance(found, Loop)
    return found


def _control_key(
    node: Loop | Cond, stored: Mapping[Expr, StoredArray], workers: Workers, kept: Sequence[int]
) -> Hashable:
    # All that a plan depends on but for expressions. What is not stored, constants mostly, is made by the
    # program.
    bodies = (node.body,) if isinstance(node, Loop) else (node.then, node.otherwise)
    inputs: list[Hashable] = []
    first: dict[tuple[str, ...], int] = {}  # inputs may be one array under two expressions
    for place, one in enumerate(node.inputs):
        array = stored.get(one)
        if array is None:
            inputs.append(one.digest)
        else:
            same = first.setdefault(array.keys, place)
            kind = (one.shape, one.dtype, one.sparse)
            inputs.append((kind, same, array.layout, array.block_nnz, array.block_bytes))
    num_state = node.num_state if isinstance(node, Loop) else 0
    return type(node), tuple(body.digest for body in bodies), num_state, tuple(inputs), tuple(kept), workers


def _given_by(node: Loop | Cond) -> tuple[Expr, ...]:
    return (node, *(Final(node, place) for place in range(len(results_of(node)))))


def _without_arrays(plan: ControlPlan, node: Loop | Cond, stand_ins: Sequence[Data]) -> _CachedControl:
    numbers = {one: place for place, one in enumerate(stand_ins)}
    places = {one: place for place, one in enumerate(_given_by(node))}
    inputs = {one: place for place, one in enumerate(node.inputs)}
    digests = {one.digest.hex(): place for one, place in inputs.items()}
    return _CachedControl(
        replace(plan, outputs={}, inputs={}, given={}, works={}),
        {places[one]: array for one, array in plan.outputs.items()},
        {inputs[one]: array for one, array in plan.inputs.items()},
        {slot: (inputs[one], number) for slot, (one, number) in plan.given.items() if one not in numbers},
        {slot: (digests[digest], number) for slot, (digest, number) in plan.works.items()},
        {slot: numbers[one] for slot, (one, _) in plan.given.items() if one in numbers},
    )
