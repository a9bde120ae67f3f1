"""Norms of vectors and matrices."""

from __future__ import annotations

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Expr, Index, Transpose
from matnb.lazy import reductions, ufuncs
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.decompositions import svdvals
from matnb.lazy.indexing.canonical import normalize_axes
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements

Order = float | str | None
_BY_COLUMNS = {1: "max", -1: "min"}
_BY_ROWS = {np.inf: "max", -np.inf: "min"}
_BY_VALUES = {2: "max", -2: "min", "nuc": "sum"}


@implements(np.linalg.norm)
def norm(x: object, ord: Order = None, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """``numpy.linalg.norm``: of vectors and matrices, of every order that NumPy has.

    Parameters
    ----------
    x
        An array.
    ord
        None is the 2-norm of a vector and the Frobenius norm of a matrix. With 2, -2 and "nuc", matrices are
        small: their singular values are found on one worker, of up to 64 MB.
    axis, keepdims
        As in NumPy.
    """
    node = _inexact(expression_of(x))
    if axis is None and ord is None:
        return wrap(_root_of_squares(node, None, keepdims))
    if axis is None:
        if node.ndim not in (1, 2):
            raise ShapeError(f"a norm with ord={ord!r} of {node.ndim} axes: name one axis, or two")
        axis = tuple(range(node.ndim))
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    normalize_axes(axes, node.ndim)  # refuses what is no axis
    places = tuple(int(one) % node.ndim for one in axes)
    if len(places) == 1:
        return wrap(_of_vectors(node, 2 if ord is None else ord, places[0], keepdims))
    if len(places) == 2:
        return wrap(_of_matrices(node, ord, (places[0], places[1]), keepdims))
    raise ShapeError(f"a norm over axes {axis}: name one axis, or two")


@implements(np.linalg.vector_norm)
def vector_norm(x: object, /, *, axis: Axis = None, keepdims: bool = False, ord: float = 2) -> DistArray:
    """``numpy.linalg.vector_norm``: over several axes, or all, as of one long vector."""
    node = _inexact(expression_of(x))
    return wrap(_of_vectors(node, ord, axis, keepdims))


@implements(np.linalg.matrix_norm)
def matrix_norm(x: object, /, *, keepdims: bool = False, ord: Order = "fro") -> DistArray:
    """``numpy.linalg.matrix_norm``: of the last two axes."""
    node = _inexact(expression_of(x))
    if node.ndim < 2:
        raise ShapeError(f"a matrix norm of shape {node.shape}: give two axes at least")
    return wrap(_of_matrices(node, ord, (node.ndim - 2, node.ndim - 1), keepdims))


def _inexact(node: Expr) -> Expr:
    return node if node.dtype.kind in "fc" else ufuncs.astype(node, np.float64)


def _root_of_squares(node: Expr, axis: Axis, keepdims: bool) -> Expr:
    (size,) = ufuncs.call(np.absolute, (node,))
    (square,) = ufuncs.call(np.square, (size,))
    return ufuncs.call(np.sqrt, (reductions.reduce(square, "sum", axis, keepdims),))[0]


def _extreme(sizes: Expr, operation: str, axis: Axis, keepdims: bool) -> Expr:
    # The largest of no sizes is 0, and the smallest is refused, as in NumPy.
    initial = 0 if operation == "max" and not sizes.size else None
    return reductions.reduce(sizes, operation, axis, keepdims, initial=initial)


def _of_vectors(node: Expr, ord: object, axis: Axis, keepdims: bool) -> Expr:
    if not isinstance(ord, int | float | np.number):
        raise OptionError(f"a norm of vectors with ord={ord!r}: give a number, inf or None")
    if ord == 2:
        return _root_of_squares(node, axis, keepdims)
    if ord == 0:
        (differs,) = ufuncs.call(np.not_equal, (node, 0))
        real = np.empty((), node.dtype).real.dtype
        return ufuncs.astype(reductions.reduce(differs, "sum", axis, keepdims), real)
    (size,) = ufuncs.call(np.absolute, (node,))
    if abs(ord) == np.inf:
        return _extreme(size, "max" if ord > 0 else "min", axis, keepdims)
    if ord == 1:
        return reductions.reduce(size, "sum", axis, keepdims)
    (power,) = ufuncs.call(np.power, (size, float(ord)))
    total = reductions.reduce(power, "sum", axis, keepdims)
    return ufuncs.call(np.power, (total, 1 / float(ord)))[0]


def _of_matrices(node: Expr, ord: object, axes: tuple[int, int], keepdims: bool) -> Expr:
    if axes[0] == axes[1]:
        raise ShapeError("a norm of matrices over one axis twice: name two axes")
    row, column = axes
    if ord is None or ord in ("f", "fro"):
        return _root_of_squares(node, axes, keepdims)
    if ord in _BY_VALUES:
        return _by_singular_values(node, _BY_VALUES[ord], axes, keepdims)
    (size,) = ufuncs.call(np.absolute, (node,))
    for found, along in ((_BY_COLUMNS, row), (_BY_ROWS, column)):
        if ord in found:
            sums = reductions.reduce(size, "sum", along, True)
            return _extreme(sums, found[ord], axes, keepdims)  # type: ignore[index]  # one of them
    raise OptionError(f"a norm of matrices with ord={ord!r}: choose 'fro', 'nuc', 1, 2, inf, -1, -2 or -inf")


def _by_singular_values(node: Expr, operation: str, axes: tuple[int, int], keepdims: bool) -> Expr:
    rest = tuple(axis for axis in range(node.ndim) if axis not in axes)
    order = (*rest, *axes)
    moved = node if order == tuple(range(node.ndim)) else Transpose(node, order)
    values = svdvals(DistArray(moved)).expression
    if operation == "sum":
        found = reductions.reduce(values, "sum", -1)
    else:
        found = _extreme(values, operation, -1, False)
    if not keepdims:
        return found
    lengths = iter(found.shape)
    return Index(
        found, tuple(None if axis in axes else slice(0, next(lengths), 1) for axis in range(node.ndim))
    )
