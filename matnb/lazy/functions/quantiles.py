"""NumPy's medians, percentiles and quantiles."""

from __future__ import annotations

from math import prod

import numpy as np

from matnb.blocks.kernels.quantiles import METHODS, QuantileRequest
from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.nodes import Broadcast, Expr, Index
from matnb.lazy.array import DistArray, expression_of, handle_of, wrap
from matnb.lazy.force import asked
from matnb.lazy.functions.picking import take_along_axis, within
from matnb.lazy.functions.reductions import is_given
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.functions.statistics import beside
from matnb.lazy.indexing.canonical import normalize_axes
from matnb.lazy.ordering import by_lanes, dense_of
from matnb.lazy.registry import implements
from matnb.ops.quantiles import Quantiles

Axis = int | tuple[int, ...] | None
_HALF = np.array(0.5)


def _quantiles(a: object, axis: Axis, keepdims: object, out: object, wanted: QuantileRequest) -> DistArray:
    return within(_found(a, axis, keepdims, wanted), out)


def _found(a: object, axis: Axis, keepdims: object, wanted: QuantileRequest) -> DistArray:
    node = dense_of(expression_of(a))
    if node.dtype.kind == "c" and not wanted.is_median:
        raise DTypeError("quantiles of complex numbers: they are in no order; give real ones")
    if node.dtype.kind == "b" and not wanted.is_median and wanted.method in ("linear", "midpoint"):
        raise DTypeError("quantiles of booleans have nothing between them: convert them with astype first")
    axes = normalize_axes(axis, node.ndim)
    keeps = keepdims is True or (keepdims is not None and keepdims is not np._NoValue and bool(keepdims))
    first = len(wanted.shape)
    if len(axes) == node.ndim:
        # All elements, in one row.
        found: Expr = Quantiles(reshaped(node, (-1,)), (0,), wanted)
        kept = tuple(slice(0, length, 1) for length in wanted.shape)
        return wrap(Index(found, (*kept, *((None,) * node.ndim if keeps else ()), 0)))
    if len(axes) == 1:
        found = by_lanes(node, axes[0], lambda lane, along: Quantiles(lane, (along,), wanted), first)
    else:
        found = Quantiles(node, axes, wanted)
    if keeps:
        return wrap(found)
    key = tuple(
        0 if place - first in axes else slice(0, length, 1) for place, length in enumerate(found.shape)
    )
    return wrap(Index(found, key))


def _weighted(a: object, axis: Axis, keepdims: object, weights: object, wanted: QuantileRequest) -> DistArray:
    # As NumPy: of elements in order, the first whose weight, with those before it, reaches a share of all.
    if wanted.method != "inverted_cdf":
        raise OptionError(f"quantiles with weights: method={wanted.method!r}; give method='inverted_cdf'")
    array, weight = DistArray(dense_of(expression_of(a))), handle_of(weights)
    if array.dtype.kind == "c" or weight.dtype.kind not in "biuf":
        raise DTypeError(
            f"quantiles of dtype {array.dtype} with weights of {weight.dtype}: give real numbers"
        )
    axes = normalize_axes(axis, array.ndim)
    if weight.shape != array.shape:
        weight = wrap(Broadcast(beside(array, weight, axis, axes, "quantiles").expression, array.shape))
    order = (*(one for one in range(array.ndim) if one not in axes), *axes)
    rest = tuple(array.shape[one] for one in order[: array.ndim - len(axes)])
    count = array.size // max(1, prod(rest))
    if not count:
        raise ShapeError(f"quantiles of no elements, along axes {axes} of shape {array.shape}")
    lanes, weight = (one.transpose(order).reshape((*rest, count)) for one in (array, weight))
    _check_weights(weight)
    places = handle_of(np.argsort(lanes, axis=-1))
    values, ordered = (take_along_axis(one, places, -1) for one in (lanes, weight))
    has_nan = values.dtype.kind == "f"
    if wanted.skips_nan and has_nan:
        ordered = handle_of(np.where(np.isnan(values), 0, ordered))
    reached = handle_of(np.cumsum(ordered, axis=-1, dtype=np.float64))
    reached = reached / reached[..., -1:]
    if wanted.element.kind == "f":
        reached = reached.astype(wanted.element)
    found: list[DistArray] = []
    for share in wanted.shares.reshape(-1):
        place = ((reached < share) | (reached == 0)).sum(-1, keepdims=True)
        found.append(take_along_axis(values, np.minimum(place, count - 1), -1)[..., 0])
    result = handle_of(np.reshape(np.stack(found), (*wanted.shape, *rest)) if wanted.shape else found[0])
    if has_nan and not wanted.skips_nan:
        last = values[..., -1]
        result = handle_of(np.where(np.isnan(last), last, result))
    if is_given(keepdims) and keepdims:
        kept = (1 if one in axes else length for one, length in enumerate(array.shape))
        result = result.reshape((*wanted.shape, *kept))
    return result


def _check_weights(weight: DistArray) -> None:
    # Asked for, but not inside of loops.
    if weight.expression.free:
        return
    total = weight.sum(-1, dtype=np.float64)
    is_wrong = (weight < 0).any() | ~(np.isfinite(total) & (total > 0)).all()
    if asked(is_wrong.expression, "whether weights are such"):
        raise OptionError("quantiles: weights are negative, infinite, NaN, or all of them zero")


def _wanted(q: object, most: int, method: str, skips_nan: bool) -> QuantileRequest:
    if method not in METHODS:
        raise OptionError(f"method={method!r}: give one of {', '.join(METHODS)}")
    shares = np.asarray(q)
    if shares.dtype.kind not in "biuf" or shares.ndim > 2:
        raise DTypeError(f"quantiles at {q!r}: give a number, or a list of them")
    if most != 1:
        shares = np.asarray(np.true_divide(shares, most))
    if shares.size and not (np.all(shares >= 0) and np.all(shares <= 1)):
        raise OptionError(f"quantiles at {q!r}: give numbers from 0 to {most}")
    return QuantileRequest(
        shares.tobytes(), shares.shape, shares.dtype, type(q) in (int, float), method, skips_nan
    )


def _median(skips_nan: bool) -> QuantileRequest:
    return QuantileRequest(_HALF.tobytes(), (), _HALF.dtype, True, "linear", skips_nan, is_median=True)


@implements(np.median)
def median(
    a: object, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: object = False
) -> DistArray:
    """``numpy.median``."""
    return _quantiles(a, axis, keepdims, out, _median(False))


@implements(np.nanmedian)
def nanmedian(
    a: object, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: object = False
) -> DistArray:
    """``numpy.nanmedian``."""
    return _quantiles(a, axis, keepdims, out, _median(True))


def _register(function: object, most: int, skips_nan: bool) -> None:
    def quantile(
        a: object,
        q: object,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: object = False,
        *,
        weights: object = None,
    ) -> DistArray:
        wanted = _wanted(q, most, method, skips_nan)
        if weights is None:
            return _quantiles(a, axis, keepdims, out, wanted)
        return within(_weighted(a, axis, keepdims, weights, wanted), out)

    implements(function)(quantile)  # type: ignore[arg-type]  # NumPy's functions are callables


_register(np.quantile, 1, False)
_register(np.percentile, 100, False)
_register(np.nanquantile, 1, True)
_register(np.nanpercentile, 100, True)
