"""Any stage of the way from expressions to a plan, as text."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import TypeVar

import numpy as np

from matnb.blocks.layout import Layout
from matnb.expr.control import Cond, Final, Loop, Variable
from matnb.expr.interning import form_of
from matnb.expr.nodes import (
    Broadcast,
    Create,
    Data,
    Elementwise,
    Expr,
    Index,
    Literal,
    Load,
    MaskedMatMul,
    MatMul,
    Reduce,
    Regrid,
    Transpose,
)
from matnb.expr.traverse import consumers, topological
from matnb.ops.access import At, Draw, Part, Put, Replicated, Scatter
from matnb.ops.mapping import MapBlocks
from matnb.ops.picking import Gather, PutEach
from matnb.ops.selecting import Compress
from matnb.pictures.quantities import bytes_text, count_text, plural_text, seconds_text
from matnb.plan.measured import ArrayMeasurement, MadeStage, Measures
from matnb.plan.plan_counts import functions_of, reductions_of, tasks_by_stage
from matnb.program.plan import Plan, Stage, Task

MAX_WORDS = 12
MAX_STATES = 4  # of a loop, named in its line
MAX_LINES = 200  # beyond, a listing tells no user anything

_Item = TypeVar("_Item")


class Listing:
    """Writes lists of expressions in which a number means the same throughout."""

    def __init__(self) -> None:
        self._num_listed = 0

    def of(
        self,
        roots: Mapping[str, Expr],
        stored: Container[Expr] = (),
        names: Mapping[Expr, str] | None = None,
        remembered: Container[Expr] = (),
    ) -> tuple[list[str], dict[Expr, str]]:
        """Return a line for each expression, operands first, and what each is called.

        Of more than a user would read, those in the middle are left out, and no time is spent on them.

        Parameters
        ----------
        roots
            Named expressions; their names are told.
        stored
            Expressions on workers, below which nothing is listed.
        names
            What some expressions are called already; they get no line of their own.
        remembered
            Expressions whose values are in this process.
        """
        known = names or {}
        order = topological(roots.values(), stored)
        ends: dict[Expr, list[str]] = {}
        for name, root in roots.items():
            ends.setdefault(root, []).append(f"= {name}")
        called = dict(known)
        listed = []
        for node in order:
            if node not in known:
                called[node] = f"e{self._num_listed}"
                self._num_listed += 1
            elif node not in ends:
                continue
            listed.append(node)
        users = consumers(order, stored)

        def line(node: Expr) -> str:
            marks = ends.get(node, [])
            if node in known:
                return f"  {'':>5}  {known[node]:<44} {kind_of(node)}  {'; '.join(marks)}"
            marks = [*marks_of(node, len(users[node]), stored, remembered), *marks]
            operands = tuple("..." if node in stored else called[operand] for operand in node.operands)
            text = f"  {called[node]:>5}  {describe(node, operands):<44} {kind_of(node)}"
            return f"{text}  {'; '.join(marks)}".rstrip()

        first, num_hidden, last = ends_of(listed)
        hidden = [_hidden(num_hidden)] if num_hidden else []
        return [*map(line, first), *hidden, *map(line, last)], called


def marks_of(
    node: Expr, num_users: int, stored: Container[Expr], remembered: Container[Expr] = ()
) -> list[str]:
    """Return what is special about an expression: that its value is known, or that it is shared."""
    if node in stored:
        return ["stored on workers"]
    shared = [f"used {num_users} times"] if num_users > 1 else []
    return ["remembered value", *shared] if node in remembered else shared


def explain_expressions(
    roots: Mapping[str, Expr], stored: Container[Expr] = (), remembered: Container[Expr] = ()
) -> str:
    """Return a numbered list of expressions, operands first; shared ones and known values are marked."""
    return "\n".join(Listing().of(roots, stored, None, remembered)[0])


def explain_stages(
    stages: Sequence[Stage],
    kept: Container[Expr],
    names: Mapping[Expr, str] | None = None,
    first: int = 0,
    tasks: Mapping[str, Task] | None = None,
    measures: Measures | None = None,
) -> list[str]:
    """Return a line for each stage, with its layout.

    Parameters
    ----------
    stages
        In their order.
    kept
        Expressions whose arrays stay.
    names
        What some arrays are called by a user.
    first
        The number of the first stage.
    tasks
        The plan's tasks by their keys; what stages save is told then.
    measures
        What was measured when the same was made before, told beside what is estimated.
    """
    names = names or {}
    lines = []
    last = {stage.expression: stage for stage in stages}
    found = tasks_by_stage(stages, (tasks or {}).values())
    for number, (stage, own) in enumerate(zip(stages, found, strict=True), start=first):
        # Shares of reductions made in one pass are a stage before that of the first one's value.
        is_value = last[stage.expression] is stage
        name = f" = {names[stage.expression]}" if is_value and stage.expression in names else ""
        known = None if measures is None else measures.of(stage.tasks)
        words = [estimated_words(stage)]
        words += measured_words(known)
        words += shared_words(own)
        words.append("kept" if is_value and stage.expression in kept else "passing")
        lines.append(_stage_line(number, stage, name, words))
    return shortened(lines)


def explain_made(made: Sequence[tuple[MadeStage, ArrayMeasurement | None]]) -> list[str]:
    """Return a line for each stage of a run that is over."""
    lines = [
        _stage_line(number, stage, "", [estimated_words(stage), *measured_words(known)])
        for number, (stage, known) in enumerate(made)
    ]
    return shortened(lines)


def estimated_words(stage: Stage | MadeStage) -> str:
    """Return how large a stage's array will be, about; of a sparse one also how many entries it stores."""
    size = f"about {bytes_text(stage.estimated_bytes)}"
    if stage.estimated_nnz is None:
        return size
    return f"{size} in {plural_text(stage.estimated_nnz, 'entry')}"


def _stage_line(number: int, stage: Stage | MadeStage, name: str, words: Sequence[str]) -> str:
    detail = shortened_words(stage.detail)
    return (
        f"  {f's{number}':>4}  {stage.kind}{f' [{detail}]' if detail else ''}{name}: "
        f"{stage.layout.grid.shape}{'' if stage.estimated_nnz is None else ' sparse'} in "
        f"{blocks_text(stage.layout)}, {', '.join(words)}"
    )


def shortened_words(detail: str) -> str:
    """Return what a stage does without the words that are too many."""
    words = detail.split()
    if len(words) > MAX_WORDS:
        words = [*words[:MAX_WORDS], f"... {len(words) - MAX_WORDS:,} more"]
    return " ".join(words)


def blocks_text(layout: Layout) -> str:
    """Return in how many blocks an array is cut, and on how many workers they are."""
    counts = "x".join(map(str, layout.grid.counts))
    blocks = "1 block" if layout.grid.num_blocks == 1 else f"{counts} blocks"
    return f"{blocks} on {plural_text(len(set(layout.owners)), 'worker')}"


def shared_words(tasks: Sequence[Task]) -> list[str]:
    """Return what the tasks of a stage save: buffers that functions share, and passes over the data."""
    words = []
    num_functions, num_buffers = max(map(functions_of, tasks), default=(0, 0))
    if num_buffers < num_functions:
        words.append(f"{count_text(num_functions)} functions in {plural_text(num_buffers, 'buffer')}")
    num_reductions = max(map(reductions_of, tasks), default=0)
    if num_reductions > 1:
        words.append(f"{num_reductions} reductions in one pass")
    return words


def measured_words(known: ArrayMeasurement | None) -> list[str]:
    """Return what was measured of a stage, if it was, beside what was estimated of it."""
    if known is None:
        return []
    words = [f"{bytes_text(known.num_bytes)} made"]
    if known.seconds is not None:
        words.append(f"{seconds_text(known.seconds)}{' with compiling' if known.compiled else ''}")
    return words


def explain_plan(
    plan: Plan, names: Mapping[Expr, str] | None = None, first: int = 0, measures: Measures | None = None
) -> str:
    """Return the stages of a plan with their layouts, and what it needs in all."""
    if not plan.stages and not plan.outputs:
        return "  nothing to run: all of it is on the workers"
    tasks = {task.key: task for task in plan.tasks}
    lines = explain_stages(plan.stages, plan.outputs, names, first, tasks, measures)
    # How many entries a product of sparse arrays has is not known before it is made.
    inside = (one for stage in plan.stages for one in stage.inside)
    products = [one for one in inside if isinstance(one, MatMul | MaskedMatMul)]
    guessed = any(one.sparse and one.left.sparse and one.right.sparse for one in products)
    needs = "by a guess" if guessed else "at most"
    lines.append(
        f"  {plural_text(len(plan.tasks), 'task')}, {plural_text(len(plan.reused), 'array')} read from the "
        f"workers, {len(plan.outputs)} kept; moves {bytes_text(plan.moved_bytes)}, "
        f"needs {needs} about {bytes_text(plan.projected_bytes)} more "
        f"on {plural_text(len({task.owner for task in plan.tasks}), 'worker')}"
    )
    return "\n".join(lines)


def describe(node: Expr, operands: tuple[str, ...]) -> str:
    """Return an expression as one line, with its operands by the names given."""
    listed = ", ".join(operands)
    match node:
        case Literal():
            return f"constant {node.value}" if node.size == 1 else f"constant {node.shape}"
        case Data():
            return "given array"
        case Create(creation):
            return f"{type(creation).__name__.lower()}"
        case Load(source, field):
            return f"{source!r}" if field == "matrix" else f"{field} of {source!r}"
        case Elementwise("astype"):
            return f"astype({listed}, {node.dtype})"
        case Elementwise(name):
            return f"{name}({listed})"
        case MatMul(_, _, "plus_times"):
            return " @ ".join(operands) if operands else "matmul"
        case MatMul(_, _, semiring):
            return f"matmul({listed}, {semiring})"
        case MaskedMatMul(_, _, _, semiring, complement) if operands != ("...",):
            left, right, mask = operands
            return f"matmul({left}, {right}, {semiring}, mask={'~' if complement else ''}{mask})"
        case Transpose(_, axes):
            if axes != tuple(reversed(range(len(axes)))):
                return f"transpose({listed}, {axes})"
            return f"transpose({listed})" if listed == "..." else f"{listed}.T"
        case Reduce(operand, operation, axes):
            over = "" if len(axes) == operand.ndim else f", axis={axes[0] if len(axes) == 1 else axes}"
            return f"{operation}({listed}{over})"
        case Index(_, key):
            return f"{listed}[{', '.join(map(_key_text, key))}]"
        case Broadcast():
            return f"broadcast({listed})"
        case Draw(creation):
            return f"{type(creation).__name__.lower()}(drawn anew for {listed})"
        case Scatter(_, _, length, monoid):
            return f"scatter_reduce({listed}, {length}, {monoid})"
        case Replicated(_, function) | MapBlocks(_, function):
            return f"{function.name}({listed})"
        case Part(_, place):
            return f"result {place} of {listed}"
        case Gather() | Compress() if len(operands) == 2:
            return f"{operands[0]}[{operands[1]}]"
        case At(operand, _, axis) if len(operands) == 2:
            return f"{operands[0]}[{', '.join([*':' * axis, operands[1], *':' * (operand.ndim - axis - 1)])}]"
        case Put(_, _, _, key) if len(operands) > 1:
            numbers = iter(operands[2:])
            texts = [next(numbers) if part is None else _key_text(part) for part in key]
            return f"{operands[0]} with [{', '.join(texts)}] = {operands[1]}"
        case PutEach() if len(operands) == 3:
            return f"{operands[0]} with [{operands[1]}] = {operands[2]}"
        case Loop() if len(operands) == len(node.operands):
            return _loop_text(node, operands)
        case Cond():
            return f"branch on {operands[0]}"
        case Final(_, place):
            return f"result {place} of {listed}"
        case Variable(place):
            return f"variable {place}"
        case Regrid(_, cuts):
            return f"regrid({listed}) to {' x '.join(str(len(axis) - 1) for axis in cuts)} blocks"
    return f"{type(node).__name__.lower()}({', '.join([*operands, *_parameters(node)])})"


def _parameters(node: Expr) -> list[str]:
    # What a node was given besides its operands, as far as a user can read it.
    form = form_of(type(node))
    named = ((name, getattr(node, name)) for name in form.parameter_names)
    return [
        f"{name}={value}" for name, value in named if isinstance(value, str | int | tuple) and value != ()
    ]


def told_alone(node: Expr, depth: int = 3) -> str:
    """Return an expression as one line without names: scalars as they are made, arrays by their kind."""

    def told(operand: Expr) -> str:
        if isinstance(operand, Literal) and not operand.shape:
            return str(operand.value)
        is_told = not operand.shape and operand.operands and depth > 1
        return told_alone(operand, depth - 1) if is_told else kind_of(operand)

    return describe(node, tuple(map(told, node.operands)))


def _loop_text(node: Loop, operands: tuple[str, ...]) -> str:
    begins = [*operands[: min(node.num_state, MAX_STATES)]]
    if node.num_state > MAX_STATES:
        begins.append(f"{node.num_state - MAX_STATES:,} more")
    text = f"loop from {', '.join(begins)}" if begins else "loop"
    limit = operands[node.num_state]
    if isinstance(node.limit, Literal):
        if node.limit.value == np.iinfo(np.int64).max:
            return text
        limit = str(node.limit.value)
    return f"{text}, at most {limit} times"


def kind_of(node: Expr) -> str:
    """Return shape, dtype and format of an expression."""
    if isinstance(node, Replicated):
        return f"{len(node.outputs)} results together" if len(node.outputs) > 1 else "one result"
    if isinstance(node, Loop | Cond):
        return "a loop" if isinstance(node, Loop) else "a branch"
    return f"{node.shape} {node.dtype}{' sparse' if node.sparse else ''}"


def _key_text(part: int | slice | None) -> str:
    if isinstance(part, slice):
        stop = "" if part.stop is None else part.stop
        return f"{part.start}:{stop}" + (f":{part.step}" if part.step != 1 else "")
    return str(part)


def shortened(lines: list[str]) -> list[str]:
    """Return lines without those in the middle, where there are more than a user would read."""
    first, num_hidden, last = ends_of(lines)
    return [*first, _hidden(num_hidden), *last] if num_hidden else lines


def ends_of(items: Sequence[_Item]) -> tuple[Sequence[_Item], int, Sequence[_Item]]:
    """Return the first of many, how many are left out, and the last; nothing is left out of a few."""
    if len(items) <= MAX_LINES:
        return items, 0, ()
    half = MAX_LINES // 2
    return items[:half], len(items) - 2 * half, items[-half:]


def _hidden(count: int) -> str:
    return f"  ... {count} more ..."
