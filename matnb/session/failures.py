"""A worker's error brought home: named for a person, with the cell lines that wrote the expression."""

from __future__ import annotations

from matnb.backend.worker import Failed
from matnb.errors import KernelError, MatnbError, TooLargeError
from matnb.lazy.expr import Expr
from matnb.lazy.recording import Recording
from matnb.plan.explain import describe, kind_of
from matnb.plan.plan import Plan


def cell_error(failed: Failed, plan: Plan, record: Recording | None) -> MatnbError:
    """Return the error to raise in the cell for a task that failed.

    Its attributes are ``lines``, the cell's lines that wrote the expression, and ``expression``, its text.
    """
    node = _expression(failed.key, plan)
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
    lines = tuple(record.lines.get(node, ())) if record is not None and node is not None else ()
    text = "" if node is None else f"{describe(node, tuple(map(kind_of, node.operands)))} -> {kind_of(node)}"
    error.lines, error.expression = lines, text
    if lines:
        error.add_note(f"recorded on line {', '.join(map(str, lines))} of the cell: {text}")
    elif text:
        error.add_note(f"while computing {text}")
    return error


def _expression(key: str, plan: Plan) -> Expr | None:
    made = key.split("-", 1)[0]
    for stage in plan.stages:
        if stage.expression is not None and stage.expression.digest.hex() == made:
            return stage.expression
    return None
