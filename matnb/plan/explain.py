"""Any stage of the way from expressions to a plan, as text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

import numpy as np

from matnb.lazy.access import At, Draw, Gather, Part, Put, Replicated, Scatter
from matnb.lazy.control import Cond, Final, Loop, Variable
from matnb.lazy.expr import (
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
from matnb.lazy.traverse import consumers, topological
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.plan.plan import Plan, Stage

MAX_WORDS = 12
MAX_STATES = 4  # of a loop, named in its line
MAX_LINES = 200  # beyond, a listing tells no person anything


class Listing:
    """Writes lists of expressions in which a number means the same throughout."""

    def __init__(self) -> None:
        self._num_listed = 0

    def of(
        self, roots: Mapping[str, Expr], stored: Container[Expr] = (), names: Mapping[Expr, str] | None = None
    ) -> tuple[list[str], dict[Expr, str]]:
        """Return a line for each expression, operands first, and what each is called.

        Parameters
        ----------
        roots
            Named expressions; their names are told.
        stored
            Expressions on workers, below which nothing is listed.
        names
            What some expressions are called already; they get no line of their own.
        """
        known = names or {}
        order = topological(roots.values(), stored)
        users = consumers(order, stored)
        ends: dict[Expr, list[str]] = {}
        for name, root in roots.items():
            ends.setdefault(root, []).append(f"= {name}")
        called = dict(known)
        lines = []
        for node in order:
            marks = ends.get(node, [])
            if node in known:
                if marks:
                    lines.append(f"  {'':>5}  {known[node]:<44} {kind_of(node)}  {'; '.join(marks)}")
                continue
            called[node] = f"e{self._num_listed}"
            self._num_listed += 1
            if node in stored:
                marks = ["stored on workers", *marks]
            elif len(users[node]) > 1:
                marks = [f"used {len(users[node])} times", *marks]
            operands = tuple("..." if node in stored else called[operand] for operand in node.operands)
            text = f"  {called[node]:>5}  {describe(node, operands):<44} {kind_of(node)}"
            lines.append(f"{text}  {'; '.join(marks)}".rstrip())
        return lines, called


def explain_expressions(roots: Mapping[str, Expr], stored: Container[Expr] = ()) -> str:
    """Return a numbered list of expressions, operands first; shared ones and those on workers are marked."""
    return "\n".join(shortened(Listing().of(roots, stored)[0]))


def explain_stages(
    stages: Iterable[Stage], kept: Container[Expr], names: Mapping[Expr, str] | None = None, first: int = 0
) -> list[str]:
    """Return a line for each stage, with its layout; ``first`` is the number of the first."""
    names = names or {}
    lines = []
    for number, stage in enumerate(stages, start=first):
        counts = "x".join(map(str, stage.layout.grid.counts)) or "1"
        blocks = "1 block" if counts == "1" else f"{counts} blocks"
        workers = len(set(stage.layout.owners))
        stays = "kept" if stage.expression in kept else "passing"
        words = stage.detail.split()
        if len(words) > MAX_WORDS:
            words = [*words[:MAX_WORDS], f"... {len(words) - MAX_WORDS:,} more"]
        detail = f" [{' '.join(words)}]" if words else ""
        name = f" = {names[stage.expression]}" if stage.expression in names else ""
        lines.append(
            f"  {f's{number}':>4}  {stage.kind}{detail}{name}: {stage.layout.grid.shape} in {blocks} "
            f"on {plural_text(workers, 'worker')}, "
            f"about {bytes_text(stage.estimated_bytes)}, {stays}"
        )
    return shortened(lines)


def explain_plan(plan: Plan, names: Mapping[Expr, str] | None = None, first: int = 0) -> str:
    """Return the stages of a plan with their layouts, and what it needs in all."""
    if not plan.stages and not plan.outputs:
        return "  nothing to run: all of it is on the workers"
    lines = explain_stages(plan.stages, plan.outputs, names, first)
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
        case Replicated(_, function):
            return f"{function.name}({listed})"
        case Part(_, place):
            return f"result {place} of {listed}"
        case Gather() if len(operands) == 2:
            return f"{operands[0]}[{operands[1]}]"
        case At(operand, _, axis) if len(operands) == 2:
            return f"{operands[0]}[{', '.join([*':' * axis, operands[1], *':' * (operand.ndim - axis - 1)])}]"
        case Put(_, _, _, key) if len(operands) > 1:
            numbers = iter(operands[2:])
            texts = [next(numbers) if part is None else _key_text(part) for part in key]
            return f"{operands[0]} with [{', '.join(texts)}] = {operands[1]}"
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
    return f"{type(node).__name__.lower()}({listed})"


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
    return f"{node.shape} {node.dtype}{' sparse' if node.sparse else ''}"


def _key_text(part: int | slice | None) -> str:
    if isinstance(part, slice):
        stop = "" if part.stop is None else part.stop
        return f"{part.start}:{stop}" + (f":{part.step}" if part.step != 1 else "")
    return str(part)


def shortened(lines: list[str]) -> list[str]:
    """Return lines without those in the middle, where there are more than a person would read."""
    if len(lines) <= MAX_LINES:
        return lines
    half = MAX_LINES // 2
    return [*lines[:half], f"  ... {len(lines) - 2 * half} more ...", *lines[-half:]]
