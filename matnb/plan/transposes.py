"""Decides from counts whether a product with a sparse transpose materializes the transpose first."""

from __future__ import annotations

from matnb.expr.nodes import Expr, Load, Regrid

# Nanoseconds on one thread, R-MAT 2^18 and 2^20, patterns and values.
TRANSPOSE_COST = 9.0  # of an entry, to move it to its column and put the blocks together: 4.4 to 12.3
SCATTER_COST = 0.2  # of an entry and column, to add where it belongs and not gather: 0.05 to 0.28 more
PART_COST = 0.5  # of an element of a block's part of the result, to clear and to add it: 0.16 to 0.24 to add


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


def scatters(operand: Expr, num_entries: int, num_blocks: int, width: int, num_uses: int) -> bool:
    """Tell whether a product with a sparse transpose does without it: as asked for, else by counts.

    The arguments are those of :func:`prefers_scatter`.
    """
    wish = wished(operand)
    if wish != "auto":
        return wish == "none"
    return prefers_scatter(num_entries, operand.shape[1], num_blocks, width, num_uses)


def wished(node: Expr) -> str:
    """Return what was asked for when the array was loaded: "keep" its transpose, "none", or "auto"."""
    match node:
        case Load():
            return node.transpose
        case Regrid(operand):
            return wished(operand)
    return "auto"
