"""NumPy's functions on diagonals and triangles of matrices."""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import ones
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import one_axis
from matnb.lazy.labels import keeps_labels
from matnb.lazy.registry import implements, recorded
from matnb.lazy.shapes import reshaped
from matnb.lazy.ufuncs import astype, call
from matnb.ops.diagonals import Diagonal, DiagonalMatrix, Triangle


@implements(np.diagonal)
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> DistArray:
    """``numpy.diagonal``; dense, even for a sparse matrix."""
    return wrap(_diagonal(expression_of(a), offset, axis1, axis2))


def _diagonal(node: Expr, offset: int, axis1: int, axis2: int) -> Expr:
    if node.ndim < 2:
        raise ShapeError(f"diagonal of shape {node.shape}: give an array with two or more axes")
    rows, columns = one_axis(axis1, node.ndim), one_axis(axis2, node.ndim)
    return Diagonal(node, operator.index(offset), rows, columns)


@implements(np.trace)
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: npt.DTypeLike | None = None,
    out: object = None,
) -> DistArray:
    """``numpy.trace``."""
    options = {} if out is None else {"out": out}
    found = DistArray(_diagonal(expression_of(a), offset, axis1, axis2))
    return recorded(np.sum)(found, axis=-1, dtype=dtype, **options)


@implements(np.diag)
def diag(v: ArrayLike, k: int = 0) -> DistArray:
    """``numpy.diag``; a matrix that it creates is sparse if its dtype can be, as for ``mn.eye``."""
    node = expression_of(v)
    if node.ndim == 1:
        return wrap(DiagonalMatrix(node, operator.index(k)))
    if node.ndim != 2:
        raise ShapeError(f"diag of shape {node.shape}: give an array with one or two axes")
    return diagonal(v, k)


@implements(np.diagflat)
def diagflat(v: ArrayLike, k: int = 0) -> DistArray:
    """``numpy.diagflat``; sparse as that of ``diag``."""
    node = expression_of(v)
    return wrap(DiagonalMatrix(reshaped(node, (node.size,)), operator.index(k)))


@implements(np.tril)
@keeps_labels
def tril(m: ArrayLike, k: int = 0) -> DistArray:
    """``numpy.tril``: sparse where the matrix is."""
    return wrap(Triangle(_matrix(m), operator.index(k), False))


@implements(np.triu)
@keeps_labels
def triu(m: ArrayLike, k: int = 0) -> DistArray:
    """``numpy.triu``: sparse where the matrix is."""
    return wrap(Triangle(_matrix(m), operator.index(k), True))


def _matrix(m: object) -> Expr:
    # Of a row NumPy takes as many of them as it is long.
    node = expression_of(m)
    if node.ndim == 1:
        return expression_of(recorded(np.broadcast_to)(DistArray(node), (node.size, node.size)))
    return node


@implements(np.tri)
def tri(
    N: int, M: int | None = None, k: int = 0, dtype: npt.DTypeLike = float, *, like: None = None
) -> DistArray:
    """``numpy.tri``."""
    return tril(ones((N, N if M is None else M), dtype), k)


@implements(np.vander)
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> DistArray:
    """``numpy.vander``."""
    node = expression_of(x)
    if node.ndim != 1:
        raise ShapeError(f"vander of shape {node.shape}: give a 1-d array")
    count = node.size if N is None else operator.index(N)
    if count < 0:
        raise OptionError(f"vander: {count} columns; give 0 or more")
    powers = np.arange(count) if increasing else np.arange(count)[::-1]
    column = astype(reshaped(node, (node.size, 1)), np.promote_types(node.dtype, int))
    return wrap(astype(call(np.power, (column, expression_of(powers)))[0], column.dtype))
