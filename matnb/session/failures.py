"""Errors of workers as the cell raises them, with the lines of the cell that wrote the expression."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from matnb.backend.engines.results import RunCancelled
from matnb.backend.tasks.worker import TaskFailed, TaskFailure
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.errors import CellCancelled, KernelError, MatnbError, TooLargeError, kernel_error
from matnb.expr.nodes import Elementwise, Expr, MaskedMatMul, MatMul
from matnb.io.files import seen_from_here
from matnb.lazy.recording import Recording
from matnb.program.operators import MaskedMultiply, MaskedSum, Multiply, Operator
from matnb.program.plan import Stage, Task
from matnb.session.naming import earlier_lines

_NONE: Mapping[Expr, tuple[Expr, ...]] = MappingProxyType({})


@contextmanager
def raised_in_cell(
    stages: Sequence[Stage],
    tasks: Iterable[Task],
    record: Recording | None = None,
    origins: Mapping[Expr, tuple[Expr, ...]] = _NONE,
) -> Iterator[None]:
    """Raise the errors of an engine as the cell is to see them; parameters as of :func:`cell_error`."""
    try:
        yield
    except TaskFailed as error:
        raise cell_error(error.failed, stages, tasks, record, origins) from None
    except RunCancelled as error:
        raise CellCancelled(str(error)) from None


def cell_error(
    failed: TaskFailure,
    stages: Sequence[Stage],
    tasks: Iterable[Task],
    record: Recording | None,
    origins: Mapping[Expr, tuple[Expr, ...]] = _NONE,
) -> MatnbError:
    """Return the error to raise in the cell for a task that failed.

    Its attributes are ``lines``, the cell's lines that wrote the expression, and ``expression``, its text.

    Parameters
    ----------
    stages, tasks
        Of the plan whose task it was.
    record
        The cell that is running.
    origins
        For expressions that passes made, the recorded ones that they stand for.
    """
    tasks = tuple(tasks)
    nodes = list(dict.fromkeys(_recorded(failed, stages, tasks, origins)))
    owner = next((task.owner for task in tasks if task.key == failed.key), None)
    match failed.error:
        case MatnbError() as error:
            error = seen_from_here(error, "a worker" if owner is None else f"worker {owner}")
        case MemoryError():
            error = TooLargeError(
                f"a worker ran out of memory: {failed.error}; cut into more blocks, or use less"
            )
        case other:
            what = failed.operator.name if isinstance(failed.operator, Link) else "a kernel"
            error = kernel_error(
                other, f"{what} failed on a worker with {type(other).__name__}: {other}{_advice(other)}"
            )
            error.add_note(failed.trace.rstrip())
    names_worker = not isinstance(error, KernelError) or any(one.is_call for one in nodes)
    if error.raised_at is not None and owner is not None and names_worker:
        # Of a function that broke its promise, or of a part; else one that raised has its own trace.
        error.add_note(f"on worker {owner}")
    return located(error, nodes, record)


def lines_of(nodes: Sequence[Expr], record: Recording) -> tuple[int, ...]:
    """Return the lines of a cell that wrote some expressions, or what is made from them."""
    lines = _lines([one for one in nodes if one in record.lines], record)
    return lines or _lines(_writers(nodes, record), record)


def located(error: MatnbError, nodes: Sequence[Expr], record: Recording | None) -> MatnbError:
    """Add to an error the lines of the cell that wrote some expressions, and the text of the first."""
    node = nodes[0] if nodes else None
    lines: tuple[int, ...] = ()
    elsewhere: list[tuple[str, tuple[int, ...]]] = []
    if record is not None:
        lines = _lines([one for one in nodes if one in record.lines], record)
    if not lines:
        elsewhere = [found for one in nodes if (found := earlier_lines(one)) is not None]
    if record is not None and not lines and not elsewhere:
        lines = _lines(_writers(nodes, record), record)
    if elsewhere:
        error.cell, lines = elsewhere[0]
    text = ""
    if node is not None:
        text = f"{node.describe([one.form_text() for one in node.operands])} -> {node.form_text()}"
    error.lines, error.expression = lines, text
    if lines:
        word = "lines" if len(lines) > 1 else "line"
        which = "an earlier" if elsewhere else "the"
        error.add_note(f"recorded on {word} {', '.join(map(str, lines))} of {which} cell: {text}")
    elif text:
        error.add_note(f"while computing {text}")
    return error


def largest(stages: Sequence[Stage], origins: Mapping[Expr, tuple[Expr, ...]] = _NONE) -> list[Expr]:
    """Return the recorded expressions of the largest array of a plan, which a refusal for memory names."""
    most = max(stages, key=lambda stage: stage.estimated_bytes, default=None)
    return [] if most is None else list(origins.get(most.expression, (most.expression,)))


def _advice(error: BaseException) -> str:
    if isinstance(error, ValueError) and "negative integer powers" in str(error):
        return " Convert to floats with astype first."
    return ""


def _lines(written: Sequence[Expr], record: Recording) -> tuple[int, ...]:
    return tuple(sorted({line for one in written for line in record.lines[one]}))


def _writers(nodes: Iterable[Expr], record: Recording) -> list[Expr]:
    # What the cell wrote that is made from the nodes by steps it did not write, as std is from a mean.
    wanted = set(nodes)
    found = []
    for written in record.lines if wanted else ():
        seen, below = set(), list(written.operands)
        while below:
            node = below.pop()
            if node in wanted:
                found.append(written)
                break
            if node not in seen and node not in record.lines:
                seen.add(node)
                below += node.operands
    return found


def _recorded(
    failed: TaskFailure,
    stages: Sequence[Stage],
    tasks: Iterable[Task],
    origins: Mapping[Expr, tuple[Expr, ...]],
) -> Iterator[Expr]:
    # Of all that an expression stands for, what asks for the operator that raised: p of p and -(-p).
    for made in _culprits(failed, stages, tasks):
        meant = origins.get(made, (made,))
        yield from [one for one in meant if _is_made_by(one, failed.operator)] or meant


def _culprits(failed: TaskFailure, stages: Sequence[Stage], tasks: Iterable[Task]) -> list[Expr]:
    # A task computes a whole chain; the step that raised says which of its expressions it was.
    makes = next((task.makes for task in tasks if task.key == failed.key), None)
    stage = next((one for one in stages if one.makes == makes), None)
    if stage is None:
        return []
    return [node for node in stage.inside if _is_made_by(node, failed.operator)] or [stage.expression]


def _is_made_by(node: Expr, operator: Operator | Link | None) -> bool:
    match operator, node:
        case Link(name=name, output=output), Elementwise():
            return (node.name, node.output) == (name, output)
        case Multiply() | MaskedMultiply() | MaskedSum(), MatMul() | MaskedMatMul():
            return True
        case MaskedMultiply() | MaskedSum(), Elementwise("multiply"):  # a product times a sparse array
            return True
    return False
