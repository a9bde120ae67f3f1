"""NumPy's functions that slide along an array: convolutions, correlations, and windows."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.array import DistArray, wrap
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.functions.ordering import dense_of
from matnb.lazy.handles import expression_of
from matnb.lazy.indexing.keys import flipped, one_axis
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, call
from matnb.ops.sliding import Convolve, WindowRolled, Windows

_MOST_WEIGHTS = 2**20  # that travel whole to every worker; of more there are several convolutions
_MODES: dict[object, str] = {0: "valid", 1: "same", 2: "full"}


def _vectors(a: object, v: object, name: str) -> tuple[Expr, Expr]:
    nodes = []
    for one in (a, v):
        node = dense_of(expression_of(one))
        if name == "convolve" and not node.ndim:
            node = Index(node, (None,))
        if node.ndim != 1 or not node.size:
            raise ShapeError(f"{name} of shape {node.shape}: give vectors with at least one element")
        nodes.append(node)
    element = np.result_type(*(one.dtype for one in nodes))
    return astype(nodes[0], element), astype(nodes[1], element)


def _part(long: int, short: int, mode: object, name: str) -> tuple[int, int]:
    # What part of a full convolution a mode leaves: where it begins, and how long it is.
    match _MODES.get(mode, mode):
        case "full":
            return 0, long + short - 1
        case "same":
            return (short - 1) // 2, long
        case "valid":
            return short - 1, long - short + 1
    raise OptionError(f"{name}(mode={mode!r}): choose 'full', 'same' or 'valid'")


def _convolved(long: Expr, short: Expr, start: int, length: int) -> Expr:
    made: Expr | None = None
    for first in range(0, short.size, _MOST_WEIGHTS):
        stop = min(first + _MOST_WEIGHTS, short.size)
        weights = short if stop - first == short.size else Index(short, (slice(first, stop, 1),))
        part = Convolve(long, weights, start - first, length)
        made = part if made is None else call(np.add, (made, part))[0]
    assert made is not None, "there is a weight"
    return made


@implements(np.convolve)
def convolve(a: ArrayLike, v: ArrayLike, mode: object = "full") -> DistArray:
    """``numpy.convolve``: split like the longer input; each block also reads the edges of its neighbors."""
    long, short = _vectors(a, v, "convolve")
    if short.size > long.size:
        long, short = short, long
    return wrap(_convolved(long, short, *_part(long.size, short.size, mode, "convolve")))


@implements(np.correlate)
def correlate(a: ArrayLike, v: ArrayLike, mode: object = "valid") -> DistArray:
    """``numpy.correlate``: split like the longer input; each block also reads the edges of its neighbors."""
    one, other = _vectors(a, v, "correlate")
    if other.dtype.kind == "c":
        (other,) = call(np.conjugate, (other,))
    is_exchanged = one.size < other.size  # as NumPy does it, which then gives what it makes backwards
    long, short = (other, one) if is_exchanged else (one, other)
    start, length = _part(long.size, short.size, mode, "correlate")
    made = _convolved(long, flipped(short, (0,)), start, length)
    return wrap(flipped(made, (0,)) if is_exchanged else made)


class Rolling:
    """Windows that end at each element of an axis; ``mn.rolling`` makes it.

    Every result has the shape of the array, float64, and is as lazy as any array.
    """

    __slots__ = ("_axis", "_least", "_length", "_node")

    def __init__(self, node: Expr, length: int, least: int, axis: int) -> None:
        self._node, self._length, self._least, self._axis = node, length, least, axis

    def __repr__(self) -> str:
        return f"Rolling: windows of {self._length:,} along axis {self._axis} of shape {self._node.shape}"

    def sum(self) -> DistArray:
        """Return the sum of each window."""
        return self._rolled("sum")

    def mean(self) -> DistArray:
        """Return the mean of each window."""
        return self._rolled("mean")

    def min(self) -> DistArray:
        """Return the least number of each window."""
        return self._rolled("min")

    def max(self) -> DistArray:
        """Return the greatest number of each window."""
        return self._rolled("max")

    def var(self, ddof: int = 1) -> DistArray:
        """Return the variance of each window, NaN where it has no more than ``ddof`` numbers.

        Sums of squares are of distances from the window's own mean, so none is lost to a large mean.
        """
        return self._rolled("var", operator.index(ddof))

    def std(self, ddof: int = 1) -> DistArray:
        """Return the standard deviation of each window: the root of ``var``."""
        return wrap(call(np.sqrt, (self.var(ddof).expression,))[0])

    def _rolled(self, operation: str, less: int = 0) -> DistArray:
        return wrap(WindowRolled(self._node, operation, self._length, self._least, self._axis, less))


def rolling(x: ArrayLike, window: int, min_periods: int | None = None, axis: int = 0) -> Rolling:
    """Return rolling windows that end at each element, for their sums, means and so on, as in pandas.

    Parameters
    ----------
    x
        Real numbers, with at least one axis.
    window
        The length of a window along the axis: an element and those before it.
    min_periods
        The number of values other than NaN that a window needs for a result other than NaN; by default
        ``window``, so that the first ``window`` - 1 results are NaN. NaN values are skipped.
    axis
        The axis along which windows move.

    Returns
    -------
    Rolling
        With ``sum``, ``mean``, ``min``, ``max``, ``var`` and ``std``.

    Raises
    ------
    OptionError
        For a window below 1, or ``min_periods`` below 0 or above it.
    DTypeError
        For complex numbers.
    ShapeError
        For an array without axes.

    Notes
    -----
    Takes two operations per element, whatever the window, and never subtracts: results are combined from
    suffixes and prefixes of stretches of ``window`` elements (van Herk, 1992; Gil, Werman, 1993).
    Bit-identical however the array is split. Infinities are treated as numbers; pandas treats them as NaN.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.rolling(mn.arange(6.0), 3).mean().compute()
    array([nan, nan,  1.,  2.,  3.,  4.])
    >>> mn.rolling(mn.arange(4.0), 3, min_periods=1).sum().compute()
    array([0., 1., 3., 6.])
    """
    node = dense_of(expression_of(x))
    if node.dtype.kind not in "biuf":
        raise DTypeError(f"rolling of dtype {node.dtype}: give real numbers")
    if not node.ndim:
        raise ShapeError("rolling of a number: give an array with at least one axis")
    try:
        length = operator.index(window)
        least = length if min_periods is None else operator.index(min_periods)
    except TypeError:
        raise OptionError(f"rolling: {window=}, {min_periods=}: give integers") from None
    if length < 1 or not 0 <= least <= length:
        raise OptionError(f"rolling: {window=}, {min_periods=}: give a window of 1 or more, and min_periods "
                          "from 0 to the window")  # fmt: skip
    return Rolling(node, length, least, one_axis(axis, node.ndim))


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: ArrayLike,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> DistArray:
    """``numpy.lib.stride_tricks.sliding_window_view``: windows along new last axes.

    Sums, products, minima, maxima, means and standard deviations over all of these axes are computed without
    storing the windows. Any other operation stores them: each element once for every window that contains it.

    Raises
    ------
    ShapeError
        For a window that is empty or longer than its axis, or if there is not one length per axis.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.sliding_window_view(mn.arange(5.0), 3).mean(axis=-1).compute()
    array([1., 2., 3.])
    """
    node = dense_of(expression_of(x))
    lengths = tuple(map(int, np.atleast_1d(window_shape)))
    if axis is None:
        axes: tuple[int, ...] = tuple(range(node.ndim))
    else:
        given = axis if isinstance(axis, tuple | list) else (axis,)
        axes = tuple(one_axis(one, node.ndim) for one in given)
    if len(lengths) != len(axes):
        raise ShapeError(f"sliding_window_view: windows of shape {lengths} along {len(axes)} axes")
    for length, place in zip(lengths, axes, strict=True):
        node = Windows(node, length, place)
    return wrap(node)
