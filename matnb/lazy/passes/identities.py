"""The pass that drops operations which change nothing."""

from __future__ import annotations

from collections.abc import Container, Mapping

from matnb.lazy.expr import Broadcast, Elementwise, Expr, Index, Regrid, Transpose
from matnb.lazy.traverse import rewrite


def drop_identities(roots: Mapping[str, Expr], known: Container[Expr] = ()) -> dict[str, Expr]:
    """Drop double transposes, conversions and stretches to what is there, full slices, passing cuts."""
    return rewrite(roots, identity, known)


def identity(node: Expr) -> Expr | None:
    """Return what an operation without effect is applied to, or None."""
    match node:
        # x ' (0, 1, ..., n - 1) = x
        case Transpose(operand, axes) if axes == tuple(range(len(axes))):
            return operand
        # (x ' first) ' second = x ' axes with axes[i] = first[second[i]]
        case Transpose(Transpose(inner, first), second):
            return Transpose(inner, tuple(first[axis] for axis in second))
        # astype(x, dtype of x) = x
        case Elementwise("astype", (operand,)) if operand.dtype == node.dtype:
            return operand
        # broadcast(x, shape of x) = x; of a sparse x it is the dense array of the same values
        case Broadcast(operand) if operand.shape == node.shape and not operand.sparse:
            return operand
        # x[0:n, 0:m, ...] = x with n, m, ... the lengths of x
        case Index(operand, key) if len(key) == operand.ndim and all(
            part == slice(0, length, 1) for part, length in zip(key, operand.shape, strict=True)
        ):
            return operand
        # regrid(regrid(x, inner cuts), cuts) = regrid(x, cuts)
        case Regrid(Regrid(inner), cuts):
            return Regrid(inner, cuts)
    return None
