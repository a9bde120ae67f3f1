"""The pass that drops operations which change nothing, and folds constants."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from matnb.blocks.creation import Eye
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Index, MatMul, Regrid, Transpose
from matnb.expr.traverse import ExprGraph, Rewritten, rewrite
from matnb.ops.pattern import Pattern
from matnb.passes.constants import filled, folded, uniform

# What gives the same when it is applied to its own result.
_IDEMPOTENT = {"absolute", "fabs", "floor", "ceil", "trunc", "rint", "sign", "positive"}
_INVOLUTIONS = {"negative", "invert", "logical_not"}


def drop_identities(graph: ExprGraph) -> Rewritten:
    """Drop what changes nothing; NaN, infinities, signs of zero and stored patterns stay as they were."""
    return rewrite(graph, _simpler)


def _simpler(node: Expr) -> Expr | None:
    found = identity(node)
    return folded(node) if found is None else found


def identity(node: Expr) -> Expr | None:
    """Return what an operation without effect is applied to, or None."""
    match node:
        case Elementwise(name, inputs):
            rule = _ELEMENTWISE.get(name)
            found = None if rule is None else rule(node, *inputs)
            return found if found is not None and _is_alike(found, node) else None
        # x ' (0, 1, ..., n - 1) = x
        case Transpose(operand, axes) if axes == tuple(range(len(axes))):
            return operand
        # (x ' first) ' second = x ' axes with axes[i] = first[second[i]]
        case Transpose(Transpose(inner, first), second):
            return Transpose(inner, tuple(first[axis] for axis in second))
        # broadcast(x, shape of x) = x; of a sparse x it is the dense array of the same values
        case Broadcast(operand) if operand.shape == node.shape and not operand.sparse:
            return operand
        # pattern(f(x)) = pattern(x), where f is a pattern or a conversion, which keep what is stored
        case Pattern(Pattern(inner), element) | Pattern(Elementwise("astype", (inner,)), element) if (
            inner.sparse
        ):
            return Pattern(inner, element)
        # A I = I A = pattern(A) over plus_pair: every entry meets one of the diagonal
        case MatMul(operand, Create(Eye() as one), "plus_pair") | MatMul(
            Create(Eye() as one), operand, "plus_pair"
        ) if operand.sparse and one.rows == one.columns and one.offset == 0:
            return Pattern(operand, node.dtype)
        # x[0:n, 0:m, ...] = x with n, m, ... the lengths of x
        case Index(operand, key) if len(key) == operand.ndim and all(
            part == slice(0, length, 1) for part, length in zip(key, operand.shape, strict=True)
        ):
            return operand
        # regrid(regrid(x, inner cuts), cuts) = regrid(x, cuts)
        case Regrid(Regrid(inner), cuts, ranks):
            return Regrid(inner, cuts, ranks)
    return None


def _is_alike(found: Expr, node: Elementwise) -> bool:
    return (found.shape, found.dtype, found.sparse) == (node.shape, node.dtype, node.sparse)


def _is_whole(dtype: np.dtype) -> bool:
    return dtype.kind in "iu"


def _is_dense_whole(node: Elementwise, x: Expr) -> bool:
    # Of floats inf - inf and inf * 0 are NaN; of a sparse result the stored pattern would go.
    return not x.sparse and not node.sparse and _is_whole(node.dtype)


def _equals(node: Expr, number: int, dtype: np.dtype) -> bool:
    value = uniform(node)
    return value is not None and value.astype(dtype).tobytes() == np.asarray(number, dtype).tobytes()


def _converted(node: Elementwise, x: Expr) -> Expr | None:
    # astype(x, dtype of x) = x
    if x.dtype == node.dtype:
        return x
    match x:
        # astype(pattern(y), other) = pattern(y) as other
        case Pattern(operand) if node.sparse:
            return Pattern(operand, node.dtype)
        # astype(astype(y, wide), other) = astype(y, other), where both hold all values of y
        case Elementwise("astype", (y,)) if _holds(x.dtype, y.dtype) and _holds(node.dtype, y.dtype):
            return y if y.dtype == node.dtype else Elementwise("astype", (y,), (y.dtype,), node.dtype)
    return None


def _holds(wide: np.dtype, narrow: np.dtype) -> bool:
    # NumPy calls int64 to float64 safe, which has 53 bits.
    if wide == narrow:
        return True
    rounds = narrow.kind in "iu" and narrow.itemsize == 8 and wide.kind in "fc"
    return np.can_cast(narrow, wide, "safe") and not rounds


def _sum(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # x + 0 = x of whole numbers, and x + -0.0 = x; -0.0 + 0.0 is 0.0
    for operand, other in ((x, y), (y, x)):
        if _is_whole(node.dtype) and _equals(other, 0, node.dtype):
            return operand
        if node.dtype.kind == "f" and (value := uniform(other)) is not None:
            wide = value.astype(node.dtype)
            if wide == 0 and np.signbit(wide):
                return operand
    return None


def _difference(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # x - 0 = x, also where x = -0.0
    if node.dtype.kind in "iuf" and _equals(y, 0, node.dtype):
        return x
    # x - x = 0 of whole numbers
    if x is y and _is_dense_whole(node, x):
        return filled(np.zeros((), node.dtype), node)
    return None


def _product(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    for operand, other in ((x, y), (y, x)):
        # x * 1 = x
        if node.dtype.kind in "biuf" and _equals(other, 1, node.dtype):
            return operand
        # x * 0 = 0 of whole numbers
        if _is_dense_whole(node, operand) and _equals(other, 0, node.dtype):
            return filled(np.zeros((), node.dtype), node)
    return None


def _quotient(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # x / 1 = x
    return x if node.dtype.kind == "f" and _equals(y, 1, node.dtype) else None


def _power(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # x ** 1 = x
    return x if node.dtype.kind in "iuf" and _equals(y, 1, node.input_dtypes[1]) else None


def _undone(node: Elementwise, x: Expr) -> Expr | None:
    # -(-x) = x, ~~x = x, and not not x = x of booleans
    match x:
        case Elementwise(node.name, (inner,)) if inner.dtype == x.dtype:
            return inner
    return None


def _repeated(node: Elementwise, x: Expr) -> Expr | None:
    # ||x|| = |x|, floor(floor(x)) = floor(x), +(+x) = +x
    match x:
        case Elementwise(node.name) if node.dtype.kind != "c":
            return x
    return x if node.name == "positive" else None


def _same(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # max(x, x) = x, x & x = x, x | x = x, and (x and x) = x of booleans
    return x if x is y else None


def _unequal(node: Elementwise, x: Expr, y: Expr) -> Expr | None:
    # x ^ x = 0
    if x is y and not x.sparse:
        return filled(np.zeros((), node.dtype), node)
    return None


def _chosen(node: Elementwise, condition: Expr, x: Expr, y: Expr) -> Expr | None:
    # where(c, x, x) = x; a sparse result has the pattern of all three
    if node.sparse:
        return None
    if x is y:
        return x
    # where(true, x, y) = x
    value = uniform(condition)
    return None if value is None else (x if value.astype(bool) else y)


_Found = Callable[..., Expr | None]
_ELEMENTWISE: dict[str, _Found] = {
    "astype": _converted,
    "add": _sum,
    "subtract": _difference,
    "multiply": _product,
    "divide": _quotient,
    "power": _power,
    "float_power": _power,
    "bitwise_xor": _unequal,
    "logical_xor": _unequal,
    "where": _chosen,
    **dict.fromkeys(_INVOLUTIONS, _undone),
    **dict.fromkeys(_IDEMPOTENT, _repeated),
    **dict.fromkeys(
        ("bitwise_and", "bitwise_or", "logical_and", "logical_or", "maximum", "minimum", "fmax", "fmin"),
        _same,
    ),
}
