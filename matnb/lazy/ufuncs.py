"""From a NumPy ufunc call to an expression, with NumPy 2's dtype rules (NEP 50)."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from matnb.blocks.kernels.elementwise.elementwise import ufunc_named
from matnb.errors import DTypeError, RangeError, UnsupportedError
from matnb.expr.client_data import SHIP_BYTES
from matnb.expr.nodes import Broadcast, Elementwise, Expr, Literal, MatMul
from matnb.pictures.quantities import bytes_text


def densified(node: Expr, name: str) -> Expr:
    """Return an array dense, block by block; the array itself where it is.

    Raises
    ------
    UnsupportedError
        Above 64 MB: nobody expects a large one.
    """
    if not node.sparse:
        return node
    num_bytes = node.size * node.dtype.itemsize
    if num_bytes > SHIP_BYTES:
        raise UnsupportedError(
            f"{name}: a sparse array of shape {node.shape} would become dense here, {bytes_text(num_bytes)}: "
            "write it with @, * and sums of matrices and vectors, in which it stays sparse, or make it dense "
            "before: A + mn.zeros(A.shape)"
        )
    return Broadcast(node, node.shape)


_DOUBLE = np.dtype(np.float64)
_bytes_of = struct.Struct("=d").pack
Weak = int | float | complex  # a Python number takes on the dtype of the array it meets
Operand = Expr | Weak
WEAK = frozenset({int, float, complex})
_COMPARISONS = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}


def is_weak(value: object) -> TypeGuard[Weak]:
    """Tell whether a value is a Python number, which takes on the dtype of the array it meets."""
    return type(value) in WEAK


def literal(value: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Literal:
    """Return a small dense constant."""
    array = np.asarray(value, dtype=dtype)
    return Literal(array.tobytes(), array.shape, array.dtype)


def _number(value: Weak, dtype: np.dtype) -> Literal:
    # Zeros have signs, NaN have bits, and so have parts of complex numbers, which all compare as equal.
    if type(value) is int or (type(value) is float and value and value == value):
        return _usual_number(value, dtype)
    return literal(value, dtype)


@lru_cache(maxsize=256, typed=True)  # typed: 1 and 1.0 compare equal
def _usual_number(value: Weak, dtype: np.dtype) -> Literal:
    if dtype is _DOUBLE and type(value) is float:
        return Literal(_bytes_of(value), (), dtype)  # most often, and NumPy takes longer
    return literal(value, dtype)


BEFORE_COMPARISONS = ("bitwise_and", "bitwise_or", "bitwise_xor")  # of operators that bind more closely
BRACKETS = "; write comparisons in brackets: (a > 5) & (b > 1)"


class _Loop(NamedTuple):
    # What a ufunc does with operands of certain dtypes.
    name: str
    inputs: tuple[np.dtype, ...]
    results: tuple[np.dtype, ...]


@lru_cache(maxsize=4096)
def _loop(ufunc: np.ufunc, kinds: tuple[np.dtype | type, ...], dtype: np.dtype | None) -> _Loop:
    name = ufunc.__name__
    if ufunc_named(name) is not ufunc:
        raise UnsupportedError(
            f"the ufunc {name!r} is not supported: use mn.map_blocks, or call it on x.compute()"
        )
    given = (*kinds, *(None,) * ufunc.nout)
    try:
        if dtype is None:
            found = ufunc.resolve_dtypes(given)
        else:
            found = ufunc.resolve_dtypes(given, signature=(*(None,) * ufunc.nin, *(dtype,) * ufunc.nout))
    except TypeError:
        listed = ", ".join(kind.__name__ if isinstance(kind, type) else str(kind) for kind in kinds)
        brackets = BRACKETS if name in BEFORE_COMPARISONS else ""
        raise DTypeError(f"{name} is not defined for dtypes {listed}{brackets}") from None
    return _Loop(name, found[: ufunc.nin], found[ufunc.nin :])


def call(
    ufunc: np.ufunc, operands: Sequence[Operand], dtype: npt.DTypeLike | None = None
) -> tuple[Expr, ...]:
    """Return the expressions of a ufunc's results, one for each.

    Parameters
    ----------
    ufunc
        An elementwise ufunc of the namespaces of NumPy and ``scipy.special``.
    operands
        Expressions and Python numbers, at least one expression among them.
    dtype
        The result's dtype, as in NumPy's ``dtype=``.

    Raises
    ------
    DTypeError
        When the ufunc has no loop for the dtypes.
    UnsupportedError
        For a generalized ufunc or one that is of neither.
    """
    if ufunc is np.matmul:
        # A number is refused for its lack of axes, also one that no dtype holds.
        left, right = [one if isinstance(one, Expr) else literal(0) for one in operands]
        if left.sparse or right.sparse:
            left = densified(left, "matmul") if right.ndim > 2 else left
            right = densified(right, "matmul") if left.ndim > 2 else right
        return (MatMul(left, right, "plus_times"),)
    kinds = tuple([one.dtype if isinstance(one, Expr) else type(one) for one in operands])
    name, inputs, results = _loop(ufunc, kinds, None if dtype is None else number_dtype(dtype))
    nodes = []
    for one, kind in zip(operands, inputs, strict=True):
        if not isinstance(one, Expr):
            try:
                one = _number(one, kind)
            except OverflowError:
                if name not in _COMPARISONS or kind.kind not in "iu":
                    raise RangeError(f"{name}: the number {one} does not fit dtype {kind}") from None
                return call(ufunc, list(map(_beyond, operands)))
        nodes.append(one)
    read = tuple(nodes)
    if len(results) == 1:
        return (Elementwise(name, read, inputs, results[0], 0),)
    return tuple(Elementwise(name, read, inputs, kind, place) for place, kind in enumerate(results))


def chosen(values: Sequence[Operand]) -> list[Expr]:
    """Return arrays and numbers as expressions, converting the numbers to the common dtype.

    Where NumPy copies what is chosen, whole numbers beyond a dtype's range go round: 300 in int8 is 44.

    Raises
    ------
    RangeError
        For a whole number of more than 64 bits among integers.
    """
    dtype = np.result_type(*(one.dtype if isinstance(one, Expr) else one for one in values))
    nodes: list[Expr] = []
    for one in values:
        if isinstance(one, Expr):
            nodes.append(one)
            continue
        try:
            nodes.append(literal(np.asarray(one).astype(dtype)))
        except OverflowError:
            raise RangeError(f"the number {one} does not fit dtype {dtype}") from None
    return nodes


def forced(value: object, dtype: np.dtype) -> Literal:
    """Convert a value to a literal of a dtype as ``numpy.full`` does; an int that does not fit is refused.

    Raises
    ------
    RangeError
        For a whole number of Python's that does not fit.
    """
    try:
        wide = (np.dtype(np.int64) if dtype.kind == "b" else dtype) if type(value) is int else None
        return literal(np.asarray(value, wide).astype(dtype))
    except OverflowError:
        raise RangeError(f"the number {value!r} does not fit dtype {dtype}") from None


def _beyond(operand: Operand) -> Operand:
    # A whole number outside the range of an integer array compares with each of its elements as inf does.
    if isinstance(operand, int):
        return literal(np.inf if operand > 0 else -np.inf)
    return operand


def number_dtype(dtype: npt.DTypeLike) -> np.dtype:
    """Return the dtype that a user names.

    Raises
    ------
    DTypeError
        For anything other than a dtype, or one of neither numbers nor booleans.
    """
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        raise DTypeError(f"{dtype!r} is not a dtype of NumPy's, such as 'int64'") from None
    if wanted.kind not in "biufc":
        raise DTypeError(f"dtype {wanted} is not supported: arrays hold numbers, and x.map(str) is text")
    return wanted.newbyteorder("=")


def astype(node: Expr, dtype: npt.DTypeLike, casting: str = "unsafe") -> Expr:
    """Return the expression of a conversion, by NumPy's rules.

    Complex to real drops the imaginary parts, with NumPy's ``ComplexWarning``.

    Raises
    ------
    DTypeError
        For a dtype that is not numeric or boolean, or that ``casting`` does not reach.
    """
    wanted = number_dtype(dtype)
    if wanted == node.dtype:
        return node
    if casting != "unsafe" and not np.can_cast(node.dtype, wanted, casting):  # type: ignore[arg-type]  # or it raises
        raise DTypeError(
            f"astype: cannot cast {node.dtype} to {wanted} with casting={casting!r}; give casting='unsafe'"
        )
    if node.dtype.kind == "c" and wanted.kind not in "cb":
        warnings.warn(
            "Casting complex values to real discards the imaginary part", np.exceptions.ComplexWarning, 3
        )
    return Elementwise("astype", (node,), (node.dtype,), wanted)
