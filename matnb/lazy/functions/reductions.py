"""NumPy's reductions on DistArray, and reductions by a monoid."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import numpy.typing as npt

from matnb.blocks.kernels.reductions.labels import reduced_dtype
from matnb.blocks.semiring import MONOIDS, OF_STORED
from matnb.errors import OptionError, ShapeError, suggestion
from matnb.expr.nodes import Broadcast, Expr, Reduce
from matnb.lazy import reductions
from matnb.lazy.array import DistArray, handles_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.handles import expression_of
from matnb.lazy.reductions import Axis, axes_of
from matnb.lazy.registry import implements
from matnb.lazy.ufunc_calls import into
from matnb.lazy.ufuncs import call, literal
from matnb.ops.folding import kept_shape

_BY_MONOID = {"plus": "sum", "lor": "any", "times": "prod", "min": "min", "max": "max", "land": "all"}
_OF_STORED = {plain: name for name, plain in OF_STORED.items()}


def is_given(value: object) -> bool:
    """Tell whether a parameter was given: NumPy passes what stands for one that was left out."""
    return value is not None and value is not np._NoValue


def flag(value: object) -> bool:
    """Return a truth that may have been left out."""
    return is_given(value) and bool(value)


def mask_of(where: object) -> Expr | None:
    """Return the expression of ``where=``; None where it picks everything."""
    return None if where is True or not is_given(where) else expression_of(where)


def first_of(initial: object) -> object:
    """Return ``initial=`` as a number or an expression; None where it was left out."""
    if isinstance(initial, DistArray):
        return initial.expression
    return initial if is_given(initial) else None


def result(node: Expr, out: object) -> DistArray:
    """Return a handle on a result: the one of ``out=``, into whose dtype it is converted, if it is given."""
    if not is_given(out):
        return wrap(node)
    if isinstance(out, DistArray) and out.shape != node.shape:
        raise ShapeError(f"out= has shape {out.shape} but the result has shape {node.shape}")
    return cast(DistArray, handles_of(into(out, (node,), casting="unsafe")))


def dtype_into(node: Expr, dtype: npt.DTypeLike | None, out: object) -> npt.DTypeLike | None:
    """Return the dtype in which a sum is made: NumPy takes that of ``out=`` where none is asked for."""
    if dtype is None and isinstance(out, DistArray) and np.can_cast(node.dtype, out.dtype, "same_kind"):
        return out.dtype
    return dtype


def _register_sums(operation: str, function: object, nan_as: int | None = None) -> None:
    def reduced(
        a: ArrayLike,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: object = None,
        keepdims: object = None,
        initial: object = None,
        where: object = None,
    ) -> DistArray:
        node = expression_of(a)
        if nan_as is not None:
            node = reductions.without_nan(node, nan_as)
        return _reduced(node, operation, axis, dtype_into(node, dtype, out), out, keepdims, initial, where)

    implements(function)(reduced)


def _reduced(
    node: Expr,
    operation: str,
    axis: Axis,
    dtype: npt.DTypeLike | None,
    out: object,
    keepdims: object,
    initial: object,
    where: object,
) -> DistArray:
    first, mask = first_of(initial), mask_of(where)
    return result(reductions.reduce(node, operation, axis, flag(keepdims), dtype, first, mask), out)


def _register_extremes(operation: str, *functions: object, of_numbers: bool = False) -> None:
    def reduced(
        a: ArrayLike,
        axis: Axis = None,
        out: object = None,
        keepdims: object = None,
        initial: object = None,
        where: object = None,
    ) -> DistArray:
        node = expression_of(a)
        if not of_numbers:
            return _reduced(node, operation, axis, None, out, keepdims, initial, where)
        options = (axis, flag(keepdims), first_of(initial), mask_of(where))
        return result(reductions.nan_extreme(node, operation, *options), out)

    implements(*functions)(reduced)


def _register_truths(operation: str, function: object) -> None:
    def reduced(
        a: ArrayLike, axis: Axis = None, out: object = None, keepdims: object = None, *, where: object = None
    ) -> DistArray:
        return _reduced(expression_of(a), operation, axis, None, out, keepdims, None, where)

    implements(function)(reduced)


def _register_places(operation: str, function: object) -> None:
    def place(
        a: ArrayLike, axis: int | None = None, out: object = None, *, keepdims: object = None
    ) -> DistArray:
        node = reductions.extreme_place(expression_of(a), operation, axis, flag(keepdims))
        return result(node, out)

    implements(function)(place)


_register_sums("sum", np.sum)
_register_sums("prod", np.prod)
_register_sums("sum", np.nansum, nan_as=0)
_register_sums("prod", np.nanprod, nan_as=1)
_register_extremes("min", np.min, np.amin)
_register_extremes("max", np.max, np.amax)
_register_extremes("min", np.nanmin, of_numbers=True)
_register_extremes("max", np.nanmax, of_numbers=True)
_register_truths("any", np.any)
_register_truths("all", np.all)
for _name in ("argmin", "argmax", "nanargmin", "nanargmax"):
    _register_places(_name, getattr(np, _name))


@implements(np.mean)
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: object = None,
    keepdims: object = None,
    *,
    where: object = None,
) -> DistArray:
    """``numpy.mean``."""
    return result(reductions.mean(expression_of(a), axis, flag(keepdims), dtype, mask_of(where)), out)


@implements(np.nanmean)
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: npt.DTypeLike | None = None,
    out: object = None,
    keepdims: object = None,
    *,
    where: object = None,
) -> DistArray:
    """``numpy.nanmean``."""
    return result(reductions.nan_mean(expression_of(a), axis, flag(keepdims), dtype, mask_of(where)), out)


def _register_spread(function: object, variance: Callable[..., Expr], takes_root: bool) -> None:
    def spread(
        a: ArrayLike,
        axis: Axis = None,
        dtype: npt.DTypeLike | None = None,
        out: object = None,
        ddof: float = 0,
        keepdims: object = None,
        *,
        where: object = None,
        mean: object = None,
        correction: object = None,
    ) -> DistArray:
        center = expression_of(mean) if is_given(mean) else None
        below = _below(ddof, correction)
        node = variance(expression_of(a), axis, flag(keepdims), below, dtype, mask_of(where), center)
        return result(reductions.root(node) if takes_root else node, out)

    implements(function)(spread)


def _below(ddof: float, correction: object) -> float:
    if not is_given(correction):
        return ddof
    if ddof:
        raise OptionError("ddof and correction mean the same: give one of them")
    return cast(float, correction)


_register_spread(np.var, reductions.var, takes_root=False)
_register_spread(np.std, reductions.var, takes_root=True)
_register_spread(np.nanvar, reductions.nan_var, takes_root=False)
_register_spread(np.nanstd, reductions.nan_var, takes_root=True)


@implements(np.count_nonzero)
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """``numpy.count_nonzero``."""
    return wrap(reductions.count_nonzero(expression_of(a), axis, keepdims))


@implements(np.ptp)
def ptp(a: ArrayLike, axis: Axis = None, out: object = None, keepdims: object = None) -> DistArray:
    """``numpy.ptp``."""
    node, keep = expression_of(a), flag(keepdims)
    ends = [reductions.reduce(node, operation, axis, keep) for operation in ("max", "min")]
    return result(call(np.subtract, ends)[0], out)


def reduce(x: ArrayLike, monoid: str, axis: Axis = None, keepdims: bool = False) -> DistArray:
    """Return the reduction of elements over axes by a monoid.

    In a sparse array only stored entries take part, as in GraphBLAS, while ``x.min(axis)`` and the other
    methods count elements that are not stored as zeros.

    Parameters
    ----------
    x
        Sparse or dense.
    monoid
        "plus", "times", "min", "max", "lor" or "land" (logical or, and), as in GraphBLAS.
    axis
        One axis or several; None for all.
    keepdims
        Whether to keep the axes, with length 1.

    Returns
    -------
    DistArray
        Dense, with the dtype of NumPy's reduction. Where no element takes part it is the identity of the
        monoid: 0 for "plus", inf for the "min" of floats.

    Raises
    ------
    OptionError
        For an unknown monoid.
    ShapeError
        For an invalid axis.
    DTypeError
        For "min" or "max" of complex numbers.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> import matnb as mn
    >>> A = mn.asarray(sp.csr_array([[0.0, 3.0], [2.0, 4.0]]))
    >>> mn.reduce(A, "min", axis=0).compute()
    array([2., 3.])
    """
    if monoid not in MONOIDS:
        raise OptionError(f"no monoid {monoid!r}; {suggestion(monoid, MONOIDS)}")
    node = expression_of(x)
    axes, element = axes_of(axis, node.ndim), reduced_dtype(MONOIDS[monoid], node.dtype)
    if any(node.shape[one] == 0 for one in axes):
        identity = literal(MONOIDS[monoid].identity(element))
        return wrap(Broadcast(identity, kept_shape(node.shape, axes, bool(keepdims))))
    operation = _BY_MONOID[monoid]
    if node.sparse:
        operation = _OF_STORED.get(operation, operation)
    return wrap(Reduce(node, operation, axes, bool(keepdims), element))
