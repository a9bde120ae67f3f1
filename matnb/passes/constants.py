"""Constant folding, and which expressions have one value everywhere."""

from __future__ import annotations

import numpy as np

from matnb.blocks.creation import Full
from matnb.blocks.formats import Dense, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import apply
from matnb.errors import MatnbError
from matnb.expr.client_data import LITERAL_BYTES
from matnb.expr.nodes import Broadcast, Create, Elementwise, Expr, Index, Literal, Transpose


def uniform(node: Expr) -> np.ndarray | None:
    """Return the value that every element of a constant has, bit for bit, as an array without axes."""
    match node:
        case Create(Full(_, value, dtype)):
            return np.frombuffer(value, dtype, 1).reshape(())
        case Literal(content, _, dtype) if content and content == content[: dtype.itemsize] * (
            len(content) // dtype.itemsize
        ):
            return np.frombuffer(content, dtype, 1).reshape(())
    return None


def filled(value: np.ndarray, like: Expr) -> Expr:
    """Return the constant of one value with the shape and dtype of an expression."""
    content = value.astype(like.dtype).tobytes()
    if not like.shape:
        return Literal(content, (), like.dtype)
    return Create(Full(like.shape, content, like.dtype))


def folded(node: Expr) -> Expr | None:
    """Return the constant that an operation among constants gives, or None."""
    match node:
        # f(c, d) is a constant; arrays of one value are not made to find it
        case Elementwise(_, inputs) if not node.sparse:
            return _computed(node, inputs)
        # all elements of c[key], of c ' axes and of c stretched are those of c
        case (
            Index(Literal() | Create(Full()) as operand)
            | Transpose(Literal() | Create(Full()) as operand)
            | Broadcast(Literal() | Create(Full()) as operand)
        ) if (value := uniform(operand)) is not None and node.size:
            return filled(value, node)
        case Index(Literal() as operand, key):
            return _literal(operand.value[key])
    return None


def _computed(node: Elementwise, inputs: tuple[Expr, ...]) -> Expr | None:
    if not all(isinstance(one, Literal | Create) for one in inputs):
        return None
    values = [one for one in map(uniform, inputs) if one is not None]
    if len(values) == len(inputs) and node.size:
        # NumPy takes the power of a number by other functions than that of an array, such as roots.
        small = [tuple(min(length, 2) for length in one.shape) for one in inputs]
        pairs = zip(small, values, strict=True)
        made = _applied(node, [Dense(np.full(shape, value, value.dtype)) for shape, value in pairs])
        value = None if made is None else uniform(_literal(made))
        return None if value is None else filled(value, node)
    constants = [Dense(one.value) for one in inputs if isinstance(one, Literal)]
    if len(constants) < len(inputs) or node.size * node.dtype.itemsize > LITERAL_BYTES:
        return None
    made = _applied(node, constants)
    return None if made is None else _literal(made)


def _applied(node: Elementwise, given: list[Dense]) -> np.ndarray | None:
    # What fails is left, to fail where it is computed, with the line that wrote it.
    try:
        with np.errstate(all="ignore"):
            block = apply(node.name, given, node.input_dtypes, node.dtype, node.output, False)
    except (ArithmeticError, TypeError, ValueError, MatnbError):
        return None
    return to_numpy(block)


def _literal(value: np.ndarray) -> Literal:
    return Literal(np.ascontiguousarray(value).tobytes(), value.shape, value.dtype)
