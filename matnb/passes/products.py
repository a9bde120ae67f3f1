"""What passes know of products: which semirings are associative, and which products are sampled."""

from __future__ import annotations

from collections.abc import Iterable

from matnb.expr.nodes import Elementwise, Expr, MaskedMatMul, MatMul

# (a b) c = a (b c). Not so plus_pair, which counts pairs; nor those that take one side's value where the
# other is present, since a dense vector's absent elements are told by that value.
ASSOCIATIVE = {"plus_times", "min_plus", "lor_land"}


def is_sampled(node: MatMul, users: Iterable[Expr]) -> bool:
    """Tell whether only some elements of a product are made: those that a sparse factor or mask has."""
    for user in users:
        match user:
            case Elementwise("multiply", inputs) if user.sparse and any(one.sparse for one in inputs):
                return True
            case MaskedMatMul():
                return True
    return False


def is_associative(node: MatMul) -> bool:
    """Tell whether a product may be made in another order with others of its semiring."""
    if node.semiring not in ASSOCIATIVE or max(node.left.ndim, node.right.ndim) > 2:
        return False
    if node.semiring == "lor_land":
        return True
    if node.semiring == "min_plus" and node.dtype.kind != "f":
        return False  # the largest integer stands for infinity, and wraps
    # Whole numbers of different widths wrap at different places.
    return node.left.dtype == node.right.dtype == node.dtype
