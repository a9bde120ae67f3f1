"""Products, norms and the semirings of ``matnb.matmul``."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import SPARSE_DTYPES
from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.expr import Elementwise, Expr, MaskedMatMul, MatMul
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements


def matmul(
    left: object, right: object, semiring: str = "plus_times", mask: object | None = None
) -> DistArray:
    """Return the matrix product over a semiring, with the shape rules of ``numpy.matmul``.

    Parameters
    ----------
    left, right
        Arrays of at least one axis; sparse ones meet vectors and matrices.
    semiring
        "plus_times", "min_plus", "plus_pair" or "lor_land", as in GraphBLAS: absent entries take no part.
        "min_first", "min_second", "lor_first" and "lor_second" give the value of the left or the right entry.
        A dense result without any contribution is the identity of the addition (inf for "min_plus", False
        for "lor_land", of integers the largest). Where such a vector meets a sparse matrix over min or lor,
        its elements that are the identity are absent: ``x @ A`` reads only the rows of the others.
    mask
        An array of the result's shape: only elements where it is not 0 are computed. With a sparse mask the
        result is sparse: of two sparse operands the entries inside the mask where any pair met, else every
        entry of the mask. ``~M`` of a sparse boolean M asks for the elements outside M, and is never built.
        Elsewhere a sparse result stores nothing and a dense one has the identity of the addition.

    Raises
    ------
    ShapeError
        When the inner lengths differ, or the mask has another shape than the product.
    DTypeError
        When the result is sparse and of a dtype that sparse products do not have.
    OptionError
        For an unknown semiring.

    Examples
    --------
    >>> import numpy as np, matnb as mn
    >>> hops = mn.asarray([[0.0, 3.0], [np.inf, 0.0]])
    >>> mn.matmul(hops, np.array([5.0, 1.0]), semiring="min_plus").compute()
    array([4., 1.])
    """
    first, second = expression_of(left), expression_of(right)
    if mask is None:
        return wrap(MatMul(first, second, semiring))
    chosen, complement = _mask_of(expression_of(mask))
    product = MaskedMatMul(first, second, chosen, semiring, complement)
    if product.sparse and product.dtype not in SPARSE_DTYPES:
        raise DTypeError(
            f"a masked product of dtype {product.dtype}: sparse ones are of "
            f"{', '.join(dtype.name for dtype in SPARSE_DTYPES)}; convert the operands with astype"
        )
    return wrap(product)


def _mask_of(mask: Expr) -> tuple[Expr, bool]:
    # ~M of a sparse M would be dense; as a mask it is M turned round.
    match mask:
        case Elementwise("logical_not" | "invert", (inner,), (dtype,)) if inner.sparse and (
            mask.name == "logical_not" or dtype.kind == "b"
        ):
            return inner, True
    return mask, False


@implements(np.dot)
def dot(a: object, b: object, out: None = None) -> DistArray:
    """``numpy.dot`` for arrays of up to two axes."""
    left, right = expression_of(a), expression_of(b)
    if out is not None:
        raise UnsupportedError("np.dot(out=) is not recorded; assign the result")
    if not left.shape or not right.shape:
        return wrap(ufuncs.call(np.multiply, (left, right))[0])
    if left.ndim > 2 or right.ndim > 2:
        raise ShapeError(f"np.dot of shapes {left.shape} and {right.shape}: use @ for stacks of matrices")
    return wrap(MatMul(left, right))


@implements(np.linalg.norm)
def norm(x: object, ord: float | str | None = None, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """``numpy.linalg.norm``: of vectors for ord 1, 2, inf; of matrices "fro", 1 and inf.

    Parameters
    ----------
    x
        An array of one or two axes, or more with ``axis``.
    ord
        None is the 2-norm of a vector and the Frobenius norm of a matrix.
    axis, keepdims
        As in NumPy.
    """
    node = expression_of(x)
    (size,) = ufuncs.call(np.absolute, (node,))
    matrix = (axis is None and node.ndim == 2) or (isinstance(axis, tuple) and len(axis) == 2)
    if ord is None or (matrix and ord == "fro") or (not matrix and ord == 2):
        if size.dtype.kind != "f":
            size = ufuncs.astype(size, np.float64)
        (square,) = ufuncs.call(np.square, (size,))
        total = reductions.reduce(square, "sum", axis, keepdims)
        return wrap(ufuncs.call(np.sqrt, (total,))[0])
    if not matrix and node.ndim != 1 and axis is None:
        raise ShapeError(f"a norm with ord={ord!r} of {node.ndim} axes: name one axis")
    if not matrix and ord == 1:
        return wrap(reductions.reduce(size, "sum", axis, keepdims))
    if not matrix and ord == np.inf:
        return wrap(reductions.reduce(size, "max", axis, keepdims))
    if matrix and axis is None and ord in (1, np.inf):
        sums = reductions.reduce(size, "sum", 0 if ord == 1 else 1, True)
        return wrap(reductions.reduce(sums, "max", None, keepdims))
    raise OptionError(f"a norm with ord={ord!r} is not recorded; known: None, 'fro', 1, 2 of vectors, inf")
