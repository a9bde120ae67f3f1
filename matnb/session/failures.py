"""A worker's error brought home: named for a person, with the cell lines that wrote the expression."""

from __future__ import annotations

from collections.abc import Sequence

from matnb.backend.worker import Failed
from matnb.errors import KernelError, MatnbError, TooLargeError
from matnb.lazy.expr import Elementwise, Expr, MaskedMatMul, MatMul
from matnb.lazy.recording import Recording
from matnb.plan.explain import describe, kind_of
from matnb.plan.operators import Apply, Multiply, MultiplyMasked, Operator, SumMasked
from matnb.plan.plan import Stage


def cell_error(failed: Failed, stages: Sequence[Stage], record: Recording | None) -> MatnbError:
    """Return the error to raise in the cell for a task that failed.

    Its attributes are ``lines``, the cell's lines that wrote the expression, and ``expression``, its text.
    """
    nodes = _culprits(failed, stages)
    node = nodes[0] if nodes else None
    match failed.error:
        case MatnbError() as error:
            pass
        case MemoryError():
            error = TooLargeError(
                f"a worker ran out of memory: {failed.error}; cut into more blocks, or use less"
            )
        case other:
            error = KernelError(f"a kernel failed on a worker with {type(other).__name__}: {other}")
            error.add_note(failed.trace.rstrip())
    lines: tuple[int, ...] = ()
    if record is not None:
        lines = tuple(sorted({line for one in nodes for line in record.lines.get(one, ())}))
    text = "" if node is None else f"{describe(node, tuple(map(kind_of, node.operands)))} -> {kind_of(node)}"
    error.lines, error.expression = lines, text
    if lines:
        error.add_note(f"recorded on line {', '.join(map(str, lines))} of the cell: {text}")
    elif text:
        error.add_note(f"while computing {text}")
    return error


def _culprits(failed: Failed, stages: Sequence[Stage]) -> list[Expr]:
    # A task computes a whole chain; the step that raised tells which of its expressions it was.
    made = failed.key.split("-", 1)[0]
    stage = next((one for one in stages if one.expression.digest.hex() == made), None)
    if stage is None:
        return []
    return [node for node in stage.inside if _is_made_by(node, failed.operator)] or [stage.expression]


def _is_made_by(node: Expr, operator: Operator | None) -> bool:
    match operator, node:
        case Apply(name=name, output=output), Elementwise():
            return (node.name, node.output) == (name, output)
        case Multiply() | MultiplyMasked() | SumMasked(), MatMul() | MaskedMatMul():
            return True
        case MultiplyMasked() | SumMasked(), Elementwise("multiply"):  # a product times a sparse array
            return True
    return False
