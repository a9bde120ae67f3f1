"""Whether a product with a sparse transpose makes the transpose first, decided from counts alone."""

from __future__ import annotations

from matnb.lazy.expr import Expr, Load, Regrid

TRANSPOSE_COST = 20.0  # of an entry: nanoseconds to move it to its column and to put the blocks together
SCATTER_COST = (
    0.6  # of an entry and column: what adding into scattered places costs above gathering from them
)
PART_COST = 2.0  # of an element of a block's part of the result, which is as long as the whole of it


def prefers_scatter(num_entries: int, num_columns: int, num_blocks: int, width: int, num_uses: int) -> bool:
    """Tell whether the products so far and the next cost less in all than a stored transpose would have.

    So a single product never waits for a transpose, and a loop's first iterations pay for one at most twice.
    The bits of sums differ between both ways; they follow from how often the program asked, never from time.

    Parameters
    ----------
    num_entries, num_columns, num_blocks
        Of the sparse array whose transpose is asked for.
    width
        Columns of the dense array it meets, 1 for a vector.
    num_uses
        Products with this transpose that were made without it before.
    """
    extra = width * (SCATTER_COST * num_entries + PART_COST * num_blocks * num_columns)
    return (num_uses + 1) * extra < TRANSPOSE_COST * num_entries


def wished(node: Expr) -> str:
    """Return what was asked for when the array was loaded: "keep" its transpose, "none", or "auto"."""
    match node:
        case Load():
            return node.transpose
        case Regrid(operand):
            return wished(operand)
    return "auto"
