"""Branches as a user writes them: both sides are called once, recorded, and closed to bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from matnb.errors import ShapeError
from matnb.expr.closure_conversion import closed
from matnb.expr.control import Body, Cond, Final
from matnb.expr.nodes import Broadcast, Expr
from matnb.lazy import ufuncs
from matnb.lazy.array import DistArray, expression_of, live_expressions, wrap
from matnb.lazy.pytree import put_together, taken_apart
from matnb.lazy.recording import keep_lines
from matnb.lazy.scopes import recording_body

State = TypeVar("State")


def cond(predicate: object, then: Callable[[], State], otherwise: Callable[[], State]) -> State:
    """Return what one of two functions gives, by a scalar; only that one is computed.

    Parameters
    ----------
    predicate
        An array of one element: true chooses ``then``.
    then, otherwise
        Called once each, without arguments, to record what they give: the same nesting and shapes. Dtypes may
        differ: what is given has the wider one. What had a name before is read as it is.

    Raises
    ------
    ShapeError
        When both do not give the same nesting and shapes, or the predicate has more than one element.
    LoopBodyError
        When one of them asks for a value.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.arange(3.0)
    >>> mn.cond(x.sum() > 2, lambda: x * 2, lambda: x).compute()
    array([0., 2., 4.])
    """
    decides = scalar(predicate, "the predicate of mn.cond")
    known = live_expressions()
    with recording_body(None):
        first, nesting = taken_apart(then())
    with recording_body(None):
        second, other = taken_apart(otherwise(), nesting)
    if nesting != other:
        raise ShapeError(f"mn.cond gives {nesting} on one side and {other} on the other")
    firsts, seconds = [], []
    for path, one, two in zip(
        nesting.paths("result"), map(expression_of, first), map(expression_of, second), strict=True
    ):
        if one.shape != two.shape:
            raise ShapeError(
                f"{path} of mn.cond has shape {one.shape} on one side and {two.shape} on the other"
            )
        dtype, sparse = np.result_type(one.dtype, two.dtype), one.sparse and two.sparse
        firsts.append(converted(one, dtype, sparse))
        seconds.append(converted(two, dtype, sparse))

    def inside(node: Expr) -> bool:
        return bool(node.operands) and node not in known

    def close(roots: Sequence[Expr], given: Sequence[Expr]) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        made, given, became = closed(roots, inside, lambda node: None, 0, given)
        keep_lines(became)
        return made, tuple(given)

    _, given = close(firsts, ())
    others, given = close(seconds, given)
    node = wrap(Cond((decides, *given), Body(close(firsts, given)[0]), Body(others))).expression
    results = [DistArray(Final(node, place)) for place in range(len(firsts))]
    return put_together(nesting, results)  # type: ignore[return-value]  # nested as both sides give it


def scalar(value: object, what: str) -> Expr:
    """Return the expression of one truth value.

    Raises
    ------
    ShapeError
        When there are more, or none.
    """
    node = expression_of(value)
    if node.size != 1:
        raise ShapeError(f"{what} has shape {node.shape}: give one truth value, for example with .all()")
    if node.shape:
        node = DistArray(node)[(0,) * node.ndim].expression
    return ufuncs.astype(node, np.bool_)


def converted(node: Expr, dtype: np.dtype, sparse: bool) -> Expr:
    """Return an array in another dtype, and dense unless it may stay ``sparse``."""
    node = ufuncs.astype(node, dtype)
    return Broadcast(node, node.shape) if node.sparse and not sparse else node
