"""NumPy's histograms and ``bincount``: counts of values, or sums of their weights."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels.counting_values import check_edges
from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.force import asked
from matnb.lazy.functions.reshaping import reshaped
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype
from matnb.ops.access import Scatter
from matnb.ops.counting_values import Binned, Count, Edges, Extent
from matnb.ops.joining import Concatenate

Bounds: TypeAlias = tuple[object, object] | None
_Edges: TypeAlias = tuple[DistArray | NumericArray, bool]  # and whether bins are equally wide


@implements(np.bincount)
def bincount(x: object, /, weights: object = None, minlength: int = 0) -> DistArray:
    """``numpy.bincount``: the greatest value, on which the length depends, is asked for.

    ``mn.scatter_reduce(weights, x, length)`` asks for nothing, and works in loops.
    """
    values = expression_of(x)
    try:
        least = operator.index(minlength)
    except TypeError:
        raise DTypeError(f"bincount: minlength={minlength!r} is no whole number") from None
    if least < 0:
        raise ShapeError(f"bincount: minlength={least} cannot be negative")
    if values.ndim != 1:
        raise ShapeError(f"bincount: values of shape {values.shape}: give one axis, as np.ravel(x) has")
    is_plain = isinstance(x, list | tuple) and not values.size  # of which NumPy does not mind the dtype
    if not is_plain and not np.can_cast(values.dtype, np.int64, "safe"):
        raise DTypeError(f"bincount: values of dtype {values.dtype}: convert to int64 with astype first")
    weight = None if weights is None else expression_of(weights)
    if weight is not None and weight.shape != values.shape:
        raise ShapeError(f"bincount: weights of shape {weight.shape} for {values.size} values: give one each")
    if weight is not None and not np.can_cast(weight.dtype, np.float64, "safe"):
        raise DTypeError(f"bincount: weights of dtype {weight.dtype} are no real numbers")
    length = least
    if values.size:
        low, high = asked(Extent(values), "the length of a bincount").tolist()
        if low < 0:
            raise ShapeError(f"bincount: a value of {low}: there are bins for 0, 1, 2, ... alone")
        length = max(length, int(high) + 1)
    else:
        values = astype(values, np.int64)
    if weight is None:
        return wrap(Count(values, length))
    labels = values if values.dtype.kind != "b" else astype(values, np.uint8)
    return wrap(Scatter(astype(weight, np.float64), labels, length, "plus"))


@implements(np.histogram_bin_edges)
def histogram_bin_edges(
    a: object,
    bins: object = 10,
    range: Bounds = None,
    weights: object = None,
) -> DistArray | NumericArray:
    """``numpy.histogram_bin_edges``."""
    values, weight = _values(a, weights)
    if values.dtype.kind == "c":
        raise DTypeError("values of complex numbers have no order and lie in no bins: bin their parts")
    return _edges(values, bins, range, weight is not None)[0]


@implements(np.histogram)
def histogram(
    a: object,
    bins: object = 10,
    range: Bounds = None,
    density: bool | None = None,
    weights: object = None,
) -> tuple[DistArray, DistArray | NumericArray]:
    """``numpy.histogram``: counts of blocks where they are, added.

    Edges stay lazy; with the name of an estimator the number of bins is asked for.
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
    bins: object = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: object = None,
) -> tuple[DistArray, list[DistArray | NumericArray]]:
    """``numpy.histogramdd``: rows of a matrix, or an array a coordinate."""
    columns = [astype(one, np.uint8) if one.dtype.kind == "b" else one for one in _columns(sample)]
    number = len(columns)
    each = list(bins) if _is_list(bins) else [bins] * number  # type: ignore[call-overload]  # looked at
    if len(each) != number:
        raise ShapeError(f"histogramdd: {len(each)} bins for {number} coordinates: give one each")
    ranges = [None] * number if range is None else list(range)
    if len(ranges) != number:
        raise ShapeError(f"histogramdd: {len(ranges)} ranges for {number} coordinates: give one each")
    found = [
        _edges_of_axis(column, one, bounds) for column, one, bounds in zip(columns, each, ranges, strict=True)
    ]
    weight = () if weights is None else (expression_of(weights),)
    if weight and not np.can_cast(weight[0].dtype, np.float64, "safe"):
        raise DTypeError(f"histogramdd: weights of dtype {weight[0].dtype} are no real numbers")
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
    x: object,
    y: object,
    bins: object = 10,
    range: Sequence[Bounds] | None = None,
    density: bool | None = None,
    weights: object = None,
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
        raise ShapeError(f"weights of shape {weight.shape} for values of shape {values.shape}: give one each")
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
    edges = bins if isinstance(bins, DistArray) else np.asarray(bins)
    if edges.ndim != 1:
        raise ShapeError(f"bins of shape {edges.shape}: give a number, or the edges as one axis")
    if not edges.size:
        raise ShapeError("bins: no edges at all; give at least one")
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
        raise DTypeError(f"bins={bins!r}: give a whole number, or edges as an array") from None
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
        raise OptionError(f"range={bounds!r}: give the least and the greatest value") from None
    return tuple(one.item() if isinstance(one, DistArray) else one for one in (low, high))  # type: ignore[return-value]  # numbers


def _columns(sample: object) -> list[Expr]:
    if isinstance(sample, DistArray | np.ndarray):
        matrix = expression_of(sample)
        if matrix.ndim == 1:
            return [matrix]
        if matrix.ndim != 2:
            raise ShapeError(f"histogramdd: a sample of shape {matrix.shape}: give rows of coordinates")
        rows = slice(0, matrix.shape[0], 1)
        return [Index(matrix, (rows, axis)) for axis in range(matrix.shape[1])]
    columns = [expression_of(one) for one in sample]  # type: ignore[attr-defined]  # a sequence
    if any(one.ndim != 1 for one in columns):
        shapes = [one.shape for one in columns]
        raise ShapeError(f"histogramdd: coordinates of shapes {shapes}: give each as one axis")
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
            f"bins={name!r} tries a histogram of every number of bins and is not recorded; use one of "
            f"{', '.join(map(repr, _WIDTHS))}"
        )
    if name not in _WIDTHS:
        raise OptionError(f"bins={name!r} is no estimator; known: {', '.join(map(repr, _WIDTHS))}")
    if is_weighted:
        raise DTypeError(f"bins={name!r} is not estimated of values with weights; give a number of bins")
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
