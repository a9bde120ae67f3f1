"""Any stage of the way from expressions to a plan, as text."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from matnb.lazy.access import At, Draw, Gather, Part, Put, Replicated, Scatter
from matnb.lazy.control import Body, Cond, Final, Loop, Variable
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
from matnb.pictures.quantities import bytes_text
from matnb.plan.plan import Plan, Stage

MAX_WORDS = 12
MAX_LINES = 200  # beyond, a listing tells no person anything


def explain_expressions(
    roots: Mapping[str, Expr], stored: Container[Expr] = (), texts: Mapping[Expr, str] | None = None
) -> str:
    """Return a numbered list of expressions, operands first; shared ones and those on workers are marked.

    ``texts`` are the words for some of them.
    """
    order = topological(roots.values(), stored)
    users = consumers(order, stored)
    names: dict[Expr, list[str]] = {}
    for name, root in roots.items():
        names.setdefault(root, []).append(name)
    numbers = {node: f"e{place}" for place, node in enumerate(order)}
    lines = []
    for node in order:
        marks = []
        if node in stored:
            marks.append("stored on workers")
        elif len(users[node]) > 1:
            marks.append(f"used {len(users[node])} times")
        marks.extend(f"= {name}" for name in names.get(node, ()))
        operands = tuple("..." if node in stored else numbers[operand] for operand in node.operands)
        words = (texts or {}).get(node) or describe(node, operands)
        text = f"  {numbers[node]:>5}  {words:<44} {kind_of(node)}"
        lines.append(f"{text}  {'; '.join(marks)}".rstrip())
    return "\n".join(_shortened(lines))


def explain_bodies(node: Loop | Cond) -> str:
    """Return what the body of a loop, or both bodies of a branch, compute."""
    if isinstance(node, Loop):
        texts: dict[Expr, str] = {}
        for place, variable in enumerate(node.variables):
            number = place - node.num_state
            texts[variable] = (
                f"state {place}"
                if number < 0
                else f"given {number - 1}"
                if number
                else "number of the iteration"
            )
        return _explain_body(node.body, texts)
    texts = {variable: f"given {place}" for place, variable in enumerate(node.variables)}
    return "\n".join(
        (
            "  where it is true",
            _explain_body(node.then, texts),
            "  else",
            _explain_body(node.otherwise, texts),
        )
    )


def _explain_body(body: Body, texts: Mapping[Expr, str]) -> str:
    named = {f"next {place}": result for place, result in enumerate(body.results)}
    return explain_expressions(named if body.until is None else {**named, "until": body.until}, (), texts)


def explain_stages(
    stages: Iterable[Stage], kept: Container[Expr], names: Mapping[Expr, str] | None = None
) -> list[str]:
    """Return a line for each stage, with its layout."""
    names = names or {}
    lines = []
    for stage in stages:
        counts = "x".join(map(str, stage.layout.grid.counts)) or "1"
        workers = len(set(stage.layout.owners))
        stays = "kept" if stage.expression in kept else "passing"
        words = stage.detail.split()
        if len(words) > MAX_WORDS:
            words = [*words[:MAX_WORDS], f"... {len(words) - MAX_WORDS:,} more"]
        detail = f" [{' '.join(words)}]" if words else ""
        name = f" = {names[stage.expression]}" if stage.expression in names else ""
        lines.append(
            f"  {stage.name:>4}  {stage.kind}{detail}{name}: {stage.layout.grid.shape} in {counts} blocks "
            f"on {workers} worker{'s' if workers != 1 else ''}, "
            f"about {bytes_text(stage.estimated_bytes)}, {stays}"
        )
    return _shortened(lines)


def explain_plan(plan: Plan, names: Mapping[Expr, str] | None = None) -> str:
    """Return the stages of a plan with their layouts, and what it needs in all."""
    lines = explain_stages(plan.stages, plan.outputs, names)
    # How many entries a product of sparse arrays has is not known before it is made.
    inside = (one for stage in plan.stages for one in stage.inside)
    products = [one for one in inside if isinstance(one, MatMul | MaskedMatMul)]
    guessed = any(one.sparse and one.left.sparse and one.right.sparse for one in products)
    needs = "by a guess" if guessed else "at most"
    lines.append(
        f"  {len(plan.tasks)} tasks, {len(plan.reused)} arrays read from the workers, "
        f"{len(plan.outputs)} kept; moves {bytes_text(plan.moved_bytes)}, "
        f"needs {needs} about {bytes_text(plan.projected_bytes)} more "
        f"on {len({task.owner for task in plan.tasks})} worker(s)"
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
        case Loop():
            return f"loop over {operands[0] if operands else 'nothing'}"
        case Cond():
            return f"branch on {operands[0]}"
        case Final(_, place):
            return f"result {place} of {listed}"
        case Variable(place):
            return f"variable {place}"
        case Regrid(_, cuts):
            return f"regrid({listed}) to {' x '.join(str(len(axis) - 1) for axis in cuts)} blocks"
    return f"{type(node).__name__.lower()}({listed})"


def kind_of(node: Expr) -> str:
    """Return shape, dtype and format of an expression."""
    return f"{node.shape} {node.dtype}{' sparse' if node.sparse else ''}"


def _key_text(part: int | slice | None) -> str:
    if isinstance(part, slice):
        stop = "" if part.stop is None else part.stop
        return f"{part.start}:{stop}" + (f":{part.step}" if part.step != 1 else "")
    return str(part)


def _shortened(lines: list[str]) -> list[str]:
    if len(lines) <= MAX_LINES:
        return lines
    half = MAX_LINES // 2
    return [*lines[:half], f"  ... {len(lines) - 2 * half} more ...", *lines[-half:]]
