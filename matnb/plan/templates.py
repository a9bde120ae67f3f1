"""Plans made from earlier ones of the same form, by putting other names and expressions into them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from matnb.blocks.formats import Dense
from matnb.expr.nodes import Data, Expr, Literal
from matnb.expr.traverse import topological
from matnb.passes.order import ordered
from matnb.plan.constants import Unfit, Value, check_numbers, holds, value_in, value_of
from matnb.plan.structural_key import StructuralKey
from matnb.program.operators import Constant
from matnb.program.plan import Plan, Shipment, Stage, Step, Stored, Task

_DIGEST = 32  # characters of a digest, which names begin with


@dataclass(frozen=True)
class Scattering:
    """Whether a product with a sparse transpose does without the transpose, and what that follows from.

    ``operand`` is what is transposed, ``width`` the number of columns that it meets.
    """

    operand: Expr
    num_entries: int
    width: int
    chosen: bool


@dataclass(frozen=True)
class Planned:
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
    choices: tuple[Scattering, ...] = ()


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
class _Name:
    # The name of a task or block: that of a stored block, or of an expression, by its number, or neither, and
    # what follows.
    node: int | None
    block: int | None
    rest: str


@dataclass(frozen=True)
class _Array:
    node: int
    array: Stored
    keys: tuple[int, ...]


@dataclass(frozen=True)
class _Stage:
    others: Mapping[str, object]
    tasks: tuple[int, ...]
    expression: int
    inside: tuple[int, ...]


@dataclass(frozen=True)
class _Task:
    task: Task
    key: int
    inputs: tuple[int, ...]
    numbers: tuple[tuple[int, int], ...]  # steps that are constants of another value each time, and which


class Template:
    """A plan without its expressions and names, so that none of its run's data is kept.

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
        known: Mapping[Expr, Stored],
        planned: Planned,
        is_there: Container[Expr] = (),
    ) -> None:
        plan = planned.plan
        places = {node: place for place, node in enumerate(form.nodes)}
        order = topological(planned.optimized.values(), known)
        self._numbers = {node: number for number, node in enumerate(order)}
        stored = {node: known[node] for node in order if node in known}
        if any(node not in places if node in stored else node in is_there for node in order):
            raise Unfit  # passes made what an earlier run had left
        check_numbers(form, order, plan, stored)
        self._nodes = tuple(self._node(node, places, stored) for node in order)
        self._ends = tuple((places[one], self._numbers[made]) for one, made in planned.optimized.items())
        self._equal = self._equal_arrays(stored)
        self._names: list[_Name] = []
        made = self._named(plan, order, stored)
        own = dict(made)
        for node, array in stored.items():
            for block, key in enumerate(array.keys):
                if key not in own:
                    own[key] = len(self._names)
                    self._names.append(_Name(self._numbers[node], block, ""))
        values = {value_of(form.nodes[place]): place for place in form.numbers}
        self._tasks = tuple(_task(task, own, values) for task in plan.tasks)
        self._stages = tuple(
            _Stage(
                _others(stage, ("tasks", "expression", "inside"), made),
                tuple(_found(made, key) for key in stage.tasks),
                self._number(stage.expression),
                tuple(map(self._number, stage.inside)),
            )
            for stage in plan.stages
        )
        self._shipments = tuple(
            (_others(one, ("key", "expression"), made), made[one.key], self._number(one.expression))
            for one in plan.shipments
        )
        self._outputs = tuple(
            _Array(self._number(node), array, tuple(_found(made, key) for key in array.keys))
            for node, array in plan.outputs.items()
        )
        self._reused = tuple(map(self._number, plan.reused))
        self._scattered = tuple(map(self._number, plan.scattered))
        changing = ("tasks", "stages", "shipments", "outputs", "reused", "scattered")
        self._others = _others(plan, changing, made)
        self._origins = tuple(
            (self._numbers[node], tuple(places[one] for one in recorded if one in places))
            for node, recorded in planned.origins.items()
            if node in self._numbers
        )
        self._choices = tuple(
            (self._number(one.operand), one.num_entries, one.width, one.chosen) for one in planned.choices
        )
        del self._numbers

    def instance(
        self,
        form: StructuralKey,
        known: Mapping[Expr, Stored],
        is_there: Container[Expr],
        chooses: Callable[[Expr, int, int], bool],
    ) -> Planned:
        """Return the plan for another run of the same form.

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
            Makes the choice of a Scattering from operand, entries and width.

        Raises
        ------
        Unfit
            When this run needs another plan.
        """
        nodes = self._expressions(form, is_there)
        for number, num_entries, width, chosen in self._choices:
            if chooses(nodes[number], num_entries, width) != chosen:
                raise Unfit
        for one, other in self._equal:
            if known[nodes[one]].keys != known[nodes[other]].keys:
                raise Unfit
        keys = self._keys(nodes, known)
        plan = Plan(
            tasks=tuple(self._instance_task(one, keys, form) for one in self._tasks),
            stages=tuple(
                Stage(
                    tasks=tuple(keys[key] for key in one.tasks),
                    expression=nodes[one.expression],
                    inside=tuple(nodes[number] for number in one.inside),
                    **one.others,  # type: ignore[arg-type]  # the fields of a stage
                )
                for one in self._stages
            ),
            shipments=tuple(
                Shipment(key=keys[key], expression=nodes[number], **others)  # type: ignore[arg-type]  # of a shipment
                for others, key, number in self._shipments
            ),
            outputs={
                nodes[one.node]: replace(one.array, keys=tuple(keys[key] for key in one.keys))
                for one in self._outputs
            },
            reused={nodes[number]: known[nodes[number]] for number in self._reused},
            scattered=tuple(nodes[number] for number in self._scattered),
            **self._others,  # type: ignore[arg-type]  # the fields of a plan
        )
        return Planned(
            plan,
            {form.nodes[place]: nodes[number] for place, number in self._ends},
            {nodes[number]: tuple(form.nodes[place] for place in places) for number, places in self._origins},
        )

    # the earlier run

    def _number(self, node: Expr) -> int:
        if node not in self._numbers:
            raise Unfit  # made when it was lowered
        return self._numbers[node]

    def _node(self, node: Expr, places: Mapping[Expr, int], stored: Container[Expr]) -> _Node:
        is_made = bool(node.operands) and node not in stored
        operands = tuple(self._numbers[one] for one in node.operands) if is_made else ()
        if node in places:
            return _Node(places[node], None, operands, is_made, node.sparse)
        try:
            operation = node.with_operands(*map(_stand_in, node.operands))
        except AssertionError:  # an operation on another alone, such as a part of a call
            raise Unfit from None
        return _Node(None, operation, operands, is_made, node.sparse)

    def _equal_arrays(self, stored: Mapping[Expr, Stored]) -> tuple[tuple[int, int], ...]:
        # Arrays under two names: what reads both reads the same block once.
        first: dict[str, Expr] = {}
        pairs = []
        for node, array in stored.items():
            others = {first.setdefault(key, node) for key in array.keys} - {node}
            if any(stored[one].keys != array.keys for one in others):
                raise Unfit
            pairs += [(self._numbers[one], self._numbers[node]) for one in others]
        return tuple(pairs)

    def _named(self, plan: Plan, order: Sequence[Expr], stored: Mapping[Expr, Stored]) -> dict[str, int]:
        # Where the names of what is made come from: a stored block, an expression, or neither.
        blocks = {
            key: (self._numbers[node], block)
            for node, array in reversed(list(stored.items()))
            for block, key in enumerate(array.keys)
        }
        heads = {node.digest.hex(): self._numbers[node] for node in order if node not in stored}
        steady: set[str] = set()
        made: dict[str, int] = {}
        for key, inputs in [(one.key, one.inputs) for one in plan.tasks] + [
            (one.key, ()) for one in plan.shipments
        ]:
            name = _name(key, blocks, heads)
            if name.node is None:
                if not steady.issuperset(inputs):
                    raise Unfit
                steady.add(key)
            made[key] = len(self._names)
            self._names.append(name)
        return made

    # another one

    def _expressions(self, form: StructuralKey, is_there: Container[Expr]) -> list[Expr]:
        # Operands of what commutes are put in order again, for the names that passes would give.
        nodes: list[Expr] = []
        for one in self._nodes:
            node = one.operation if one.place is None else form.nodes[one.place]
            assert node is not None, "what was not recorded is an operation"
            if one.is_made:
                node = node.with_operands(*(nodes[number] for number in one.operands))
                node = ordered(node) or node
                if node.sparse != one.sparse:
                    raise Unfit
            if (one.is_made or one.place is None) and node in is_there:
                raise Unfit  # made a second time under its name, it would take the place of what is there
            nodes.append(node)
        return nodes

    def _keys(self, nodes: Sequence[Expr], known: Mapping[Expr, Stored]) -> list[str]:
        keys = []
        for name in self._names:
            if name.node is None:
                keys.append(name.rest)
            elif name.block is None:
                keys.append(nodes[name.node].digest.hex() + name.rest)
            else:
                keys.append(known[nodes[name.node]].keys[name.block] + name.rest)
        num_made = len(self._tasks) + len(self._shipments)
        if len(set(keys[:num_made])) < num_made:
            raise Unfit  # two expressions have one array here
        return keys

    def _instance_task(self, one: _Task, keys: Sequence[str], form: StructuralKey) -> Task:
        inputs = tuple(keys[key] for key in one.inputs)
        if not one.numbers:
            return replace(one.task, key=keys[one.key], inputs=inputs)
        steps = list(one.task.steps)
        for number, place in one.numbers:
            literal = form.nodes[place]
            assert isinstance(literal, Literal)
            steps[number] = Step(Constant(Dense(literal.value)), ())
        return replace(one.task, key=keys[one.key], inputs=inputs, steps=tuple(steps))


def _stand_in(node: Expr) -> Expr:
    return Data(b"operand", node.shape, node.dtype, node.sparse)


def _name(key: str, blocks: Mapping[str, tuple[int, int]], heads: Mapping[str, int]) -> _Name:
    end = len(key)
    while (end := key.rfind("-", 0, end)) > 0:
        if key[:end] in blocks:
            return _Name(*blocks[key[:end]], key[end:])
    if key[:_DIGEST] in heads:
        return _Name(heads[key[:_DIGEST]], None, key[_DIGEST:])
    return _Name(None, None, key)


def _found(names: Mapping[str, int], key: str) -> int:
    if key not in names:
        raise Unfit  # a block that was there already, under another expression
    return names[key]


def _task(task: Task, names: Mapping[str, int], values: Mapping[Value, int]) -> _Task:
    numbers = tuple(
        (place, values[found])
        for place, step in enumerate(task.steps)
        if (found := value_in(step)) is not None and found in values
    )
    return _Task(task, names[task.key], tuple(_found(names, key) for key in task.inputs), numbers)


def _others(value: object, changing: Collection[str], names: Collection[str]) -> dict[str, object]:
    # The fields of a plan or a part of one that stay as they are: those without expressions and names.
    found = {one.name: getattr(value, one.name) for one in fields(value) if one.name not in changing}  # type: ignore[arg-type]  # a dataclass
    if holds(found, (Expr,), names):
        raise Unfit
    return found
