"""NumPy's medians, percentiles and quantiles."""

from __future__ import annotations

import numpy as np

from matnb.blocks.kernels.quantiles import METHODS, Wanted
from matnb.errors import DTypeError, OptionError, UnsupportedError
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.expr import Expr, Index
from matnb.lazy.functions.picking import within
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.indexing import normalize_axes
from matnb.lazy.nodes.quantiles import Quantiles
from matnb.lazy.ordering import by_lanes, dense_of
from matnb.lazy.registry import implements

Axis = int | tuple[int, ...] | None
_HALF = np.array(0.5)


def _quantiles(a: object, axis: Axis, keepdims: object, out: object, wanted: Wanted) -> DistArray:
    return within(_found(a, axis, keepdims, wanted), out)


def _found(a: object, axis: Axis, keepdims: object, wanted: Wanted) -> DistArray:
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


def _wanted(q: object, most: int, method: str, weights: object, skips_nan: bool) -> Wanted:
    if weights is not None:
        raise UnsupportedError(
            "quantiles with weights= are not recorded: np.quantile(x.compute(), q, weights=..., "
            "method='inverted_cdf')"
        )
    if method not in METHODS:
        raise OptionError(f"method={method!r}: give one of {', '.join(METHODS)}")
    shares = np.asarray(q)
    if shares.dtype.kind not in "biuf" or shares.ndim > 2:
        raise DTypeError(f"quantiles at {q!r}: give a number, or a list of them")
    if most != 1:
        shares = np.asarray(np.true_divide(shares, most))
    if shares.size and not (np.all(shares >= 0) and np.all(shares <= 1)):
        raise OptionError(f"quantiles at {q!r}: give numbers from 0 to {most}")
    return Wanted(shares.tobytes(), shares.shape, shares.dtype, type(q) in (int, float), method, skips_nan)


def _median(skips_nan: bool) -> Wanted:
    return Wanted(_HALF.tobytes(), (), _HALF.dtype, True, "linear", skips_nan, is_median=True)


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
        return _quantiles(a, axis, keepdims, out, _wanted(q, most, method, weights, skips_nan))

    implements(function)(quantile)  # type: ignore[arg-type]  # NumPy's functions are callables


_register(np.quantile, 1, False)
_register(np.percentile, 100, False)
_register(np.nanquantile, 1, True)
_register(np.nanpercentile, 100, True)
