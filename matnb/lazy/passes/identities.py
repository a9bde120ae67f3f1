"""The pass that drops operations which change nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping

from matnb.lazy.expr import Broadcast, Elementwise, Expr, Index, Transpose
from matnb.lazy.traverse import rewrite


def drop_identities(roots: Mapping[str, Expr], known: Container[Expr] = ()) -> dict[str, Expr]:
    """Drop double transposes, conversions to the same dtype, stretches to the same shape, full slices."""
    return rewrite(roots, identity, known)


def identity(node: Expr) -> Expr | None:
    """Return what an operation without effect is applied to, or None."""
    match node:
        case Transpose(operand, axes) if axes == tuple(range(len(axes))):
            return operand
        case Transpose(Transpose(inner, first), second):
            # (x ' first) ' second picks axis first[second[i]] of x at place i
            return Transpose(inner, tuple(first[axis] for axis in second))
        case Elementwise("astype", (operand,)) if operand.dtype == node.dtype:
            return operand
        case Broadcast(operand) if operand.shape == node.shape and not operand.sparse:
            return operand
        case Index(operand, key) if len(key) == operand.ndim and all(
            part == slice(0, length, 1) for part, length in zip(key, operand.shape, strict=True)
        ):
            return operand
    return None
