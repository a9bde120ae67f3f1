"""NumPy's statistics: averages, covariances, quantiles and histograms."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.reductions.counting_values import check_edges
from matnb.blocks.kernels.sorting.quantiles import METHODS, QuantileRequest
from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError, suggestion
from matnb.expr.nodes import Broadcast, Expr, Index
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import eye, zeros
from matnb.lazy.evaluator import asked
from matnb.lazy.functions.indexing import take_along_axis, within
from matnb.lazy.functions.ordering import by_lanes, dense_of
from matnb.lazy.functions.reductions import flag, is_given
from matnb.lazy.functions.scanning import diff
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import normalize_axes, one_axis, without_axes
from matnb.lazy.limits import check_incoming
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements
from matnb.lazy.shapes import reshaped
from matnb.lazy.ufuncs import astype, literal
from matnb.ops.counting_values import Binned, Count, Edges, Extent
from matnb.ops.grouping import Scatter
from matnb.ops.joining import Concatenate
from matnb.ops.quantiles import Quantiles


@implements(np.average)
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike = None,
    returned: bool = False,
    *,
    keepdims: object = None,
) -> DistArray | tuple[DistArray, DistArray]:
    """``numpy.average``; weights that sum to zero give NaN or infinity, where NumPy raises."""
    array, keep = handle_of(a), flag(keepdims)
    if weights is None:
        found = array.mean(axis, keepdims=keep)
        count = literal(array.size / max(1, found.size), found.dtype)
        scale = wrap(Broadcast(count, found.shape))
    else:
        weight = handle_of(weights)
        element = np.result_type(array.dtype, weight.dtype)
        if array.dtype.kind in "biu":
            element = np.result_type(array.dtype, weight.dtype, np.float64)
        axes = normalize_axes(axis, array.ndim)
        if weight.shape != array.shape:
            weight = beside(array, weight, axis, axes, "average")
        scale = weight.sum(axes, dtype=element, keepdims=keep)
        found = np.multiply(array, weight, dtype=element).sum(axes, keepdims=keep) / scale
    if not returned:
        return found
    if scale.shape != found.shape:
        scale = wrap(Broadcast(scale.expression, found.shape))
    return found, scale


def beside(array: DistArray, weight: DistArray, axis: Axis, axes: tuple[int, ...], name: str) -> DistArray:
    """Return weights of the axes that are gone through alone, along these axes of an array."""
    if axis is None:
        raise DTypeError(f"{name}: weights of shape {weight.shape} for shape {array.shape} need axis=")
    named = tuple(axis) if isinstance(axis, tuple) else (axis,)
    given = [one % array.ndim for one in named]
    if weight.shape != tuple(array.shape[one] for one in given):
        raise ShapeError(f"{name}: weights of shape {weight.shape} for axis {axis} of shape {array.shape}")
    stood = weight.transpose([given.index(one) for one in axes]) if weight.ndim > 1 else weight
    return stood[tuple(slice(None) if place in axes else None for place in range(array.ndim))]


@implements(np.cov)
def cov(
    m: ArrayLike,
    y: ArrayLike = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: object = None,
    aweights: object = None,
    *,
    dtype: npt.DTypeLike | None = None,
) -> DistArray:
    """``numpy.cov``."""
    if ddof is not None and ddof != int(ddof):
        raise OptionError(f"cov: ddof={ddof} is not an integer")
    # As in NumPy, a single row of the first array is turned as any, one of the second is not.
    parts = [_variables(m, rowvar or handle_of(m).ndim == 1)]
    if y is not None:
        parts.append(_variables(y, rowvar or (handle_of(y).shape[:-1] or (1,)) == (1,)))
    if not parts[0].shape[0]:
        return zeros((0, 0))
    element = np.result_type(*(one.dtype for one in parts), np.float64) if dtype is None else np.dtype(dtype)
    nodes = tuple(astype(one.expression, element) for one in parts)
    x = wrap(nodes[0] if len(nodes) == 1 else Concatenate(nodes, 0))
    below = ddof if ddof is not None else (0 if bias else 1)
    weights = _weights(x.shape[1], fweights, aweights)
    if weights is None:
        centered = x - x.mean(axis=1, keepdims=True)
        number: float | DistArray = float(max(x.shape[1] - below, 0))
        turned = centered.T
    else:
        total = weights.sum()
        centered = x - ((x * weights).sum(axis=1) / total)[:, None]
        number = total
        if below and aweights is not None:
            number = total - below * (weights * handle_of(aweights)).sum() / total
        elif below:
            number = total - below
        number = handle_of(np.maximum(number, 0.0))
        turned = (centered * weights).T
    found = (centered @ handle_of(np.conjugate(turned))) / number
    return handle_of(found if found.shape != (1, 1) else found[0, 0])


def _variables(value: object, rowvar: bool) -> DistArray:
    # Variables as rows, observations as columns.
    array = handle_of(value)
    if array.ndim > 2:
        raise ShapeError(f"cov of an array of shape {array.shape}: it has more than 2 axes")
    if array.ndim < 2:
        return array[None, :] if array.ndim else array[None, None]
    return array if rowvar else array.T


def _weights(count: int, fweights: object, aweights: object) -> DistArray | None:
    found = None
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is None:
            continue
        weights = handle_of(given)
        if weights.shape != (count,):
            raise UnsupportedError(
                f"cov: {name} of shape {weights.shape}: give {count}, one for each observation"
            )
        if name == "fweights" and weights.dtype.kind not in "iu":
            raise DTypeError(f"cov: fweights have dtype {weights.dtype}: give integers")
        weights = weights.astype(np.float64)
        found = weights if found is None else found * weights
    return found


@implements(np.corrcoef)
def corrcoef(
    x: ArrayLike,
    y: ArrayLike = None,
    rowvar: bool = True,
    *,
    dtype: npt.DTypeLike | None = None,
) -> DistArray:
    """``numpy.corrcoef``."""
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return handle_of(found / found)
    if not found.size:
        return found
    on_diagonal = eye(found.shape[0], dtype=bool)
    spread = np.sqrt(np.where(on_diagonal, found, found.dtype.type(0)).sum(axis=1).real)
    found = found / spread[:, None] / spread[None, :]
    if found.dtype.kind == "c":
        return handle_of(np.clip(found.real, -1, 1) + 1j * np.clip(found.imag, -1, 1))
    return handle_of(np.clip(found, -1, 1))


@implements(np.trapezoid)
def trapezoid(y: ArrayLike, x: ArrayLike = None, dx: float = 1.0, axis: int = -1) -> DistArray:
    """``numpy.trapezoid``."""
    values = handle_of(y)
    place = one_axis(axis, values.ndim)
    width: object = dx
    if x is not None:
        places = handle_of(x)
        if places.ndim == 1:
            width = diff(places)[(slice(None), *(None,) * (values.ndim - place - 1))]
        else:
            width = diff(places, axis=axis)
    before = (slice(None),) * place
    upper, lower = values[(*before, slice(1, None))], values[(*before, slice(None, -1))]
    return handle_of(width * (upper + lower) / 2.0).sum(place)


_HALF = np.array(0.5)


def _quantiles(a: object, axis: Axis, keepdims: object, out: object, wanted: QuantileRequest) -> DistArray:
    return within(_found(a, axis, keepdims, wanted), out)


def _found(a: object, axis: Axis, keepdims: object, wanted: QuantileRequest) -> DistArray:
    node = dense_of(expression_of(a))
    if node.dtype.kind == "c" and not wanted.is_median:
        raise DTypeError("quantiles of complex numbers, which have no order; give real ones")
    if node.dtype.kind == "b" and not wanted.is_median and wanted.method in ("linear", "midpoint"):
        raise DTypeError("quantiles of booleans are not defined: convert them with astype first")
    axes = normalize_axes(axis, node.ndim)
    keeps = flag(keepdims)
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
    return wrap(without_axes(found, [first + axis for axis in axes]))


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
        raise ShapeError(f"quantiles of an empty array: axes {axes} of shape {array.shape}")
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
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: object = False
) -> DistArray:
    """``numpy.median``."""
    return _quantiles(a, axis, keepdims, out, _median(False))


@implements(np.nanmedian)
def nanmedian(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: object = False
) -> DistArray:
    """``numpy.nanmedian``."""
    return _quantiles(a, axis, keepdims, out, _median(True))


def _register(function: object, most: int, skips_nan: bool) -> None:
    def quantile(
        a: ArrayLike,
        q: ArrayLike,
        axis: Axis = None,
        out: None = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: object = False,
        *,
        weights: ArrayLike = None,
    ) -> DistArray:
        wanted = _wanted(q, most, method, skips_nan)
        if weights is None:
            return _quantiles(a, axis, keepdims, out, wanted)
        return within(_weighted(a, axis, keepdims, weights, wanted), out)

    implements(function)(quantile)


_register(np.quantile, 1, False)
_register(np.percentile, 100, False)
_register(np.nanquantile, 1, True)
_register(np.nanpercentile, 100, True)


Bounds: TypeAlias = tuple[object, object] | None
_Edges: TypeAlias = tuple[DistArray | NumericArray, bool]  # and whether bins are equally wide


@implements(np.bincount)
def bincount(x: ArrayLike, /, weights: ArrayLike = None, minlength: int = 0) -> DistArray:
    """``numpy.bincount``: the largest value, which determines the length, is computed immediately.

    ``mn.scatter_reduce(weights, x, length)`` is entirely lazy, and works in loops.
    """
    values = expression_of(x)
    try:
        least = operator.index(minlength)
    except TypeError:
        raise DTypeError(f"bincount: minlength={minlength!r} is not an integer") from None
    if least < 0:
        raise ShapeError(f"bincount: minlength={least} cannot be negative")
    if values.ndim != 1:
        raise ShapeError(f"bincount: values of shape {values.shape}: give a 1-d array, such as np.ravel(x)")
    is_plain = isinstance(x, list | tuple) and not values.size  # of which NumPy does not mind the dtype
    if not is_plain and not np.can_cast(values.dtype, np.int64, "safe"):
        raise DTypeError(f"bincount: values of dtype {values.dtype}: convert to int64 with astype first")
    weight = None if weights is None else expression_of(weights)
    if weight is not None and weight.shape != values.shape:
        raise ShapeError(
            f"bincount: weights of shape {weight.shape} for {values.size} values: give one weight for "
            "each value"
        )
    if weight is not None and not np.can_cast(weight.dtype, np.float64, "safe"):
        raise DTypeError(f"bincount: weights of dtype {weight.dtype} are not real numbers")
    length = least
    if values.size:
        low, high = asked(Extent(values), "the length of a bincount").tolist()
        if low < 0:
            raise ShapeError(f"bincount: a value is {low}; values must be 0 or more")
        length = max(length, int(high) + 1)
    else:
        values = astype(values, np.int64)
    if weight is None:
        return wrap(Count(values, length))
    labels = values if values.dtype.kind != "b" else astype(values, np.uint8)
    return wrap(Scatter(astype(weight, np.float64), labels, length, "plus"))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Bounds = None,
    weights: ArrayLike = None,
) -> DistArray | NumericArray:
    """``numpy.histogram_bin_edges``."""
    values, weight = _values(a, weights)
    if values.dtype.kind == "c":
        raise DTypeError("complex numbers have no order, so they cannot be binned: use x.real and x.imag")
    return _edges(values, bins, range, weight is not None)[0]


@implements(np.histogram)
def histogram(
    a: ArrayLike,
    bins: ArrayLike = 10,
    range: Bounds = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[DistArray, DistArray | NumericArray]:
    """``numpy.histogram``: counted block by block, and summed.

    Edges stay lazy; with the name of an estimator the number of bins is computed immediately.
    """
    values, weight = _values(a, weights)
    edges, is_equal = _edges(values, bins, range, weight is not None)
    element = np.dtype(np.int64) if weight is None else weight.dtype
    inputs = (values, expression_of(edges), *(() if weight is None else (weight,)))
    counts = wrap(Binned(inputs, 1, (is_equal,), element))
    if density:
        widths = DistArray(astype(_widths(edges).expression, np.float64))
        return counts / widths / counts.sum(), edges
    return counts, edges


@implements(np.histogramdd)
def histogramdd(
    sample: object,
    bins: ArrayLike = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[DistArray, list[DistArray | NumericArray]]:
    """``numpy.histogramdd``: the rows of a matrix, or one array per coordinate."""
    columns = [astype(one, np.uint8) if one.dtype.kind == "b" else one for one in _columns(sample)]
    number = len(columns)
    each = list(bins) if _is_list(bins) else [bins] * number  # type: ignore[call-overload]  # looked at
    if len(each) != number:
        raise ShapeError(f"histogramdd: {len(each)} bins for {number} coordinates: give one for each")
    ranges = [None] * number if range is None else list(range)
    if len(ranges) != number:
        raise ShapeError(f"histogramdd: {len(ranges)} ranges for {number} coordinates: give one for each")
    found = [
        _edges_of_axis(column, one, bounds) for column, one, bounds in zip(columns, each, ranges, strict=True)
    ]
    weight = () if weights is None else (expression_of(weights),)
    if weight and not np.can_cast(weight[0].dtype, np.float64, "safe"):
        raise DTypeError(f"histogramdd: weights of dtype {weight[0].dtype} are not real numbers")
    inputs = (*columns, *(expression_of(edges) for edges, _ in found), *weight)
    counts = wrap(Binned(inputs, number, tuple(equal for _, equal in found), np.dtype(np.float64)))
    edges = [one for one, _ in found]
    if density:
        total = counts.sum()
        for axis, one in enumerate(edges):
            shape = tuple(-1 if place == axis else 1 for place, _ in enumerate(edges))
            counts = counts / np.reshape(_widths(one), shape)
        counts = counts / total
    return counts, edges


@implements(np.histogram2d)
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: ArrayLike = None,
) -> tuple[DistArray, DistArray | NumericArray, DistArray | NumericArray]:
    """``numpy.histogram2d``."""
    places = [expression_of(x), expression_of(y)]
    if places[0].shape[:1] != places[1].shape[:1]:
        raise ShapeError(f"histogram2d: x has {places[0].shape[:1]} values and y {places[1].shape[:1]}")
    count = len(bins) if _is_list(bins) else 1  # type: ignore[arg-type]  # looked at
    if count not in (1, 2):
        bins = [bins, bins]
    counts, edges = histogramdd([DistArray(one) for one in places], bins, range, density, weights)
    return counts, edges[0], edges[1]


def _values(a: object, weights: object) -> tuple[Expr, Expr | None]:
    values, weight = expression_of(a), None if weights is None else expression_of(weights)
    if values.dtype.kind == "b":
        values = astype(values, np.uint8)  # as NumPy does, which says so
    if weight is not None and weight.shape != values.shape:
        raise ShapeError(
            f"weights of shape {weight.shape} for values of shape {values.shape}: give one weight for "
            "each value"
        )
    return values, weight


def _edges(values: Expr, bins: object, bounds: Bounds, is_weighted: bool) -> _Edges:
    if isinstance(bins, str):
        numbers = None if bounds is None else _numbers(bounds)
        flat = DistArray(reshaped(values, (values.size,)))
        bins = num_bins_named(bins, flat, numbers, is_weighted)
    if not _is_list(bins):
        return _equal_edges(values, _count(bins), bounds), True
    return _given_edges(bins), False


def _edges_of_axis(values: Expr, bins: object, bounds: Bounds) -> _Edges:
    # As ``histogramdd`` has them, which makes edges of a given range in double precision.
    if _is_list(bins):
        return _given_edges(bins), False
    count = _count(bins)
    if bounds is None and values.size:
        return _equal_edges(values, count, None), True
    return _plain_edges(np.empty(0, np.float64), count, (0, 1) if bounds is None else _numbers(bounds)), True


def _equal_edges(values: Expr, count: int, bounds: Bounds) -> DistArray | NumericArray:
    is_recorded = bounds is not None and any(isinstance(one, DistArray) for one in bounds)
    if not is_recorded and (bounds is not None or not values.size):
        return _plain_edges(np.empty(0, values.dtype), count, None if bounds is None else _numbers(bounds))
    if bounds is None:
        ends: Expr = Extent(values)
    else:
        parts = [expression_of(one) for one in bounds]
        common = np.result_type(*(one.dtype for one in parts))
        ends = Concatenate(tuple(Index(astype(one, common), (None,)) for one in parts), 0)
    element = np.result_type(ends.dtype, values.dtype)
    return wrap(Edges(ends, count, element if element.kind == "f" else np.dtype(np.float64)))


def _plain_edges(nothing: NumericArray, count: int, bounds: tuple[float, float] | None) -> NumericArray:
    try:
        edges: NumericArray = np.histogram_bin_edges(nothing, count, bounds)
    except ValueError as error:
        raise OptionError(f"range={bounds} in {count} bins: {error}") from None
    return edges


def _given_edges(bins: object) -> DistArray | NumericArray:
    check_incoming(bins)
    edges = bins if isinstance(bins, DistArray) else np.asarray(bins)
    if edges.ndim != 1:
        raise ShapeError(f"bins of shape {edges.shape}: give a number, or the edges as a 1-d array")
    if not edges.size:
        raise ShapeError("bins: the list of edges is empty; give at least one")
    if isinstance(edges, np.ndarray):
        check_edges(edges)
    return edges


def _widths(edges: DistArray | NumericArray) -> DistArray:
    node = expression_of(edges)
    return DistArray(expression_of(np.diff(DistArray(node))))


def _count(bins: object) -> int:
    try:
        count = operator.index(bins)  # type: ignore[arg-type]  # that is what is asked
    except TypeError:
        raise DTypeError(f"bins={bins!r}: give an integer, or an array of edges") from None
    if count < 1:
        raise OptionError(f"bins={count}: give one or more")
    return count


def _is_list(bins: object) -> bool:
    # Also of things of several lengths, of which NumPy makes no array.
    return isinstance(bins, Sequence) or getattr(bins, "ndim", 0) > 0


def _numbers(bounds: tuple[object, object]) -> tuple[float, float]:
    # What is recorded is asked for; other numbers stay as they are, since their types tell those of edges.
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise OptionError(f"range={bounds!r}: give the lower and the upper bound") from None
    return tuple(one.item() if isinstance(one, DistArray) else one for one in (low, high))  # type: ignore[return-value]  # numbers


def _columns(sample: object) -> list[Expr]:
    if isinstance(sample, DistArray | np.ndarray):
        matrix = expression_of(sample)
        if matrix.ndim == 1:
            return [matrix]
        if matrix.ndim != 2:
            raise ShapeError(
                f"histogramdd: the sample has shape {matrix.shape}: give a matrix with one point in each row"
            )
        rows = slice(0, matrix.shape[0], 1)
        return [Index(matrix, (rows, axis)) for axis in range(matrix.shape[1])]
    columns = [expression_of(one) for one in sample]  # type: ignore[attr-defined]  # a sequence
    if any(one.ndim != 1 for one in columns):
        shapes = [one.shape for one in columns]
        raise ShapeError(f"histogramdd: coordinates have shapes {shapes}: give 1-d arrays")
    common = np.result_type(*(one.dtype for one in columns))
    return [astype(one, common) for one in columns]


# How wide NumPy's named estimators make the bins of a histogram, from a few numbers of an array.


def num_bins_named(name: str, x: DistArray, bounds: tuple[float, float] | None, is_weighted: bool) -> int:
    """Return how many bins an estimator gives, asking for what it needs of the values.

    Parameters
    ----------
    name
        "auto", "doane", "fd", "rice", "scott", "sqrt" or "sturges".
    x
        Of one axis.
    bounds
        Of the values that count, or None for all of them.

    Raises
    ------
    OptionError
        For an unknown name.
    UnsupportedError
        For "stone", which tries histograms of every number of bins.
    DTypeError
        For values with weights.
    """
    if name == "stone":
        raise UnsupportedError(
            f"bins={name!r} needs a histogram for every number of bins and is not supported; use one of "
            f"{', '.join(map(repr, _WIDTHS))}"
        )
    if name not in _WIDTHS:
        raise OptionError(f"bins={name!r} is not an estimator; {suggestion(name, _WIDTHS)}")
    if is_weighted:
        raise DTypeError(f"bins={name!r} is not supported with weights; give a number of bins")
    low, high = (x.min().item(), x.max().item()) if bounds is None and x.size else bounds or (0, 1)
    if bounds is not None:
        x = x[(x >= low) & (x <= high)]
    if not x.size:
        return 1
    width = _WIDTHS[name](x)
    if not width > 0:
        return 1
    if x.dtype.kind in "iu" and width < 1:
        width = 1
    reach = float(high) - float(low)  # type: ignore[arg-type]  # real
    return max(1, math.ceil(reach / width))


def _sqrt(x: DistArray) -> float:
    return _reach(x) / math.sqrt(x.size)


def _sturges(x: DistArray) -> float:
    return _reach(x) / (math.log2(x.size) + 1.0)


def _rice(x: DistArray) -> float:
    return float(_reach(x) / (2.0 * x.size ** (1.0 / 3)))


def _scott(x: DistArray) -> float:
    return float((24.0 * np.pi**0.5 / x.size) ** (1.0 / 3.0) * float(x.std()))


def _doane(x: DistArray) -> float:
    if x.size <= 2:
        return 0.0
    sigma = float(x.std())
    if not sigma > 0.0:
        return 0.0
    spread = math.sqrt(6.0 * (x.size - 2) / ((x.size + 1.0) * (x.size + 3)))
    skewness = float((((x - x.mean()) / sigma) ** 3).mean())
    return _reach(x) / (1.0 + math.log2(x.size) + math.log2(1.0 + abs(skewness) / spread))


def _fd(x: DistArray) -> float:
    upper, lower = (float(one) for one in np.percentile(x, [75, 25]))
    return float(2.0 * (upper - lower) * x.size ** (-1.0 / 3.0))


def _auto(x: DistArray) -> float:
    return min(max(_fd(x), _sqrt(x) / 2), _sturges(x))


def _reach(x: DistArray) -> float:
    return float(x.max()) - float(x.min())


_WIDTHS: dict[str, Callable[[DistArray], float]] = {
    "auto": _auto, "doane": _doane, "fd": _fd, "rice": _rice, "scott": _scott, "sqrt": _sqrt,
    "sturges": _sturges,
}  # fmt: skip
