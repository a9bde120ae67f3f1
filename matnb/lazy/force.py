"""Small values that a length or a shape depends on, computed while code is recorded."""

from __future__ import annotations

from matnb.blocks.formats import NumericArray, to_numpy
from matnb.errors import LoopBodyError
from matnb.expr.nodes import Expr
from matnb.lazy.evaluator import evaluator


def asked(node: Expr, what: str) -> NumericArray:
    """Return the value of a small expression now.

    Parameters
    ----------
    what
        What depends on it, for the message: "the length of x[mask]".

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch, where nothing is computed.
    """
    if node.free:
        raise LoopBodyError(
            f"{what} depends on data, and shapes are fixed inside the body of a loop or branch: "
            "use np.where(mask, new, old), or do it before the loop"
        )
    return to_numpy(evaluator().value(node))
