"""The reference evaluator, in plain NumPy and SciPy: the oracle of tests, and of `engine="interpret"`.

It is written for plainness and shares no kernel with the workers. A sparse value is a SciPy CSR array whose
stored entries, zeros among them, are its pattern.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping, Sequence

import numpy as np

from matnb.blocks.result_checks import ReturnSpec, checked_value
from matnb.expr.control import Body, Cond, Final, Loop
from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.ops.reference import Value, dense
from matnb.ops.registry import means


def interpret(
    root: Expr,
    known: MutableMapping[Expr, Value] | None = None,
    check: Callable[[], None] = lambda: None,
    ended: Callable[[Loop, int, bool], None] = lambda loop, number, holds: None,
) -> Value:
    """Return the value of an expression; values in ``known`` are used, and those of all operands added.

    Parameters
    ----------
    check
        Called before each operation; what it raises ends all.
    ended
        Called after each loop that is in no other with its iterations, and whether its condition ended it.
    """
    values: MutableMapping[Expr, Value] = {} if known is None else known
    for node in topological([root], values):
        if node not in values:
            check()
            with np.errstate(all="ignore"):
                if isinstance(node, Final):
                    values.update(_controlled(node.control, values, check, ended))
                else:
                    values[node] = _value(node, [values[operand] for operand in node.operands], check, ended)
    return values[root]


def _controlled(
    node: Expr,
    values: Mapping[Expr, Value],
    check: Callable[[], None],
    ended: Callable[[Loop, int, bool], None],
) -> dict[Expr, Value]:
    # All that a loop or a branch gives.
    operands = [values[operand] for operand in node.operands]
    match node:
        case Loop():
            _, results = _looped(node, operands, check, ended)
        case Cond(_, then, otherwise):
            body = then if operands[0] else otherwise
            inside: dict[Expr, Value] = dict(zip(node.variables, operands[1:], strict=True))
            results = _body(body, inside, check)[: len(body.results)]
    return {Final(node, place): value for place, value in enumerate(results)}


def _looped(
    node: Loop,
    operands: Sequence[Value],
    check: Callable[[], None],
    ended: Callable[[Loop, int, bool], None],
) -> tuple[int, Sequence[Value]]:
    state = list(operands[: node.num_state])
    limit, given = int(dense(operands[node.num_state])[()]), operands[node.num_state + 1 :]
    for number in range(limit):
        arrays = (*state, np.asarray(number), *given)
        results = _body(node.body, dict(zip(node.variables, arrays, strict=True)), check)
        state = results[: node.num_state]
        if node.body.until is not None and results[-1]:
            ended(node, number + 1, True)
            return number + 1, state
    ended(node, max(0, limit), False)
    return max(0, limit), state


def _body(body: Body, values: MutableMapping[Expr, Value], check: Callable[[], None]) -> list[Value]:
    check()
    return [interpret(root, values, check) for root in body.roots]


def _value(
    node: Expr,
    operands: Sequence[Value],
    check: Callable[[], None],
    ended: Callable[[Loop, int, bool], None],
) -> Value:
    match node:
        case Loop():
            return np.asarray(_looped(node, operands, check, ended)[0])
        case Cond():
            return np.asarray(operands[0])
    meaning = means.of(node)
    value = meaning(node, operands)
    if node.is_foreign:
        expected = ReturnSpec(f"{type(node).__name__}: its meaning", (node.shape, node.dtype, node.sparse))
        return checked_value(value, meaning, expected)
    return value
