"""NumPy's ufuncs on vectors and matrices with their options: matmul, vecdot, matvec, vecmat."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, UnsupportedError
from matnb.expr.nodes import Expr
from matnb.lazy import contraction
from matnb.lazy.array import handles_of
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import one_axis, with_new_axes
from matnb.lazy.registry import implements
from matnb.lazy.ufunc_calls import into
from matnb.lazy.ufuncs import astype, is_weak, number_dtype


@implements(np.matmul)
def matmul(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: object) -> object:
    """``numpy.matmul``."""
    return _called(np.matmul, x1, x2, out, options)


@implements(np.matvec)
def matvec(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: object) -> object:
    """``numpy.matvec``."""
    return _called(np.matvec, x1, x2, out, options)


@implements(np.vecmat)
def vecmat(x1: ArrayLike, x2: ArrayLike, /, out: object = None, **options: object) -> object:
    """``numpy.vecmat``."""
    return _called(np.vecmat, x1, x2, out, options)


@implements(np.vecdot)
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    out: object = None,
    *,
    axis: int = -1,
    keepdims: bool = False,
    **options: object,
) -> object:
    """``numpy.vecdot``: bit-identical however the arrays are split."""
    return _called(np.vecdot, x1, x2, out, options, -1 if axis is None else axis, bool(keepdims))


def _called(
    ufunc: np.ufunc,
    x1: object,
    x2: object,
    out: object,
    options: dict[str, object],
    axis: int = -1,
    keepdims: bool = False,
) -> object:
    dtype, casting = options.pop("dtype", None), str(options.pop("casting", "same_kind"))
    for memory in ("order", "subok"):  # which say how memory is laid out, and of what class an array is
        options.pop(memory, None)
    asked = [name for name, value in options.items() if value is not None]
    if asked:
        raise UnsupportedError(
            f"np.{ufunc.__name__}({', '.join(asked)}=) is not supported: leave it out, and use np.moveaxis"
        )
    # A number is refused for its lack of axes, also one that no dtype holds.
    operands = [expression_of(0 if is_weak(one) else one) for one in (x1, x2)]
    if dtype is not None:
        operands = [_converted(one, dtype, casting) for one in operands]  # type: ignore[arg-type]  # checked there
    node = contraction.called(ufunc, operands, axis)
    if keepdims:
        node = with_new_axes(node, one_axis(axis, node.ndim + 1))
    return handles_of(into(out, (node,), None, casting))


def _converted(node: Expr, dtype: npt.DTypeLike, casting: str) -> Expr:
    wanted = number_dtype(dtype)
    if not np.can_cast(node.dtype, wanted, casting):  # type: ignore[arg-type]  # NumPy refuses others
        raise DTypeError(f"cannot cast {node.dtype} to {wanted} with casting={casting!r}")
    return astype(node, wanted)
