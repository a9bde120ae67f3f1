"""Which results are worth keeping after a run, by counts alone; the store keeps and evicts them."""

from __future__ import annotations

from collections.abc import Collection, Container

from matnb.expr.nodes import Broadcast, Create, Data, Expr, Index, Literal, Load, Regrid, Transpose
from matnb.io.columns import ColumnSource

SMALL_BYTES = 800  # up to here a dense value is remembered by the client, and needs no place on a worker


def worth_keeping(node: Expr, live: Collection[Expr]) -> bool:
    """Tell whether the blocks of an expression stay when they are computed on the way to a value.

    Those of a live handle do, so that the next iteration of a loop starts from them; and the transpose of a
    sparse array that is kept itself, since `A.T @ x` in a loop would transpose A every time; and the columns
    of a file. A constant is in the expression already. Where nothing is live, nothing stays.
    """
    is_kept = node in live and not isinstance(node, Literal)
    return is_kept or _is_kept_transpose(node, live) or (bool(live) and is_read_column(node))


def is_made_in_parts(node: Expr) -> bool:
    """Tell whether an array is made from parameters alone, so that no more need be made than is read."""
    return isinstance(node, Create) or (isinstance(node, Regrid) and isinstance(node.operand, Create))


def lifetime(node: Expr) -> Expr:
    """Return the expression with whose handles a kept array goes: a kept transpose stays with its operand."""
    match node:
        case Transpose(operand) if node.sparse:
            return operand
    return node


def is_small(node: Expr, num_bytes: int) -> bool:
    """Tell whether a value is remembered in the client's own memory."""
    return not node.sparse and num_bytes <= SMALL_BYTES


def outlasts_handles(node: Expr, num_bytes: int) -> bool:
    """Tell whether a result that was asked for stays on the workers when its last handle is gone.

    What a user gave is given again with its expression, and a small value is remembered elsewhere.
    """
    if node.is_made_anew:
        return False  # nothing but its handles can ask for it
    return not is_small(node, num_bytes) and not isinstance(_source(node), Literal | Data)


def is_read_column(node: Expr) -> bool:
    """Tell whether an array is a column of a file, which stays while any expression reads it.

    What was made of a table is asked for column by column, each of which would read the file again.
    """
    read = node.operand if isinstance(node, Regrid) else node
    return isinstance(read, Load) and isinstance(read.source, ColumnSource)


def worth_writing(node: Expr) -> bool:
    """Tell whether a result is worth a file: sources, cut or turned, are read or made as fast."""
    return not isinstance(_source(node), Literal | Data | Create | Load) and not node.is_made_anew


def _source(node: Expr) -> Expr:
    while isinstance(node, Transpose | Index | Broadcast | Regrid):
        node = node.operand
    return node


def _is_kept_transpose(node: Expr, live: Container[Expr]) -> bool:
    match node:
        case Transpose(operand) if node.sparse:
            return operand in live or isinstance(operand, Load)
    return False
