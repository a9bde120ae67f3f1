"""NumPy's functions that slide along an array: convolutions, correlations, and windows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.errors import OptionError, ShapeError
from matnb.expr.nodes import Expr, Index
from matnb.lazy.array import DistArray, expression_of, wrap
from matnb.lazy.functions.ordering import dense_of
from matnb.lazy.indexing.keys import flipped, one_axis
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, call
from matnb.ops.sliding import Convolve, Windows

_MOST_WEIGHTS = 2**20  # that travel whole to every worker; of more there are several convolutions
_MODES: dict[object, str] = {0: "valid", 1: "same", 2: "full"}


def _vectors(a: object, v: object, name: str) -> tuple[Expr, Expr]:
    nodes = []
    for one in (a, v):
        node = dense_of(expression_of(one))
        if name == "convolve" and not node.ndim:
            node = Index(node, (None,))
        if node.ndim != 1 or not node.size:
            raise ShapeError(f"{name} of shape {node.shape}: give vectors with one element at least")
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
def convolve(a: object, v: object, mode: object = "full") -> DistArray:
    """``numpy.convolve``: cut as the longer one is; each block reads what it needs of its neighbors."""
    long, short = _vectors(a, v, "convolve")
    if short.size > long.size:
        long, short = short, long
    return wrap(_convolved(long, short, *_part(long.size, short.size, mode, "convolve")))


@implements(np.correlate)
def correlate(a: object, v: object, mode: object = "valid") -> DistArray:
    """``numpy.correlate``: cut as the longer one is; each block reads what it needs of its neighbors."""
    one, other = _vectors(a, v, "correlate")
    if other.dtype.kind == "c":
        (other,) = call(np.conjugate, (other,))
    is_exchanged = one.size < other.size  # as NumPy does it, which then gives what it makes backwards
    long, short = (other, one) if is_exchanged else (one, other)
    start, length = _part(long.size, short.size, mode, "correlate")
    made = _convolved(long, flipped(short, (0,)), start, length)
    return wrap(flipped(made, (0,)) if is_exchanged else made)


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: object,
    window_shape: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    subok: bool = False,
    writeable: bool = False,
) -> DistArray:
    """``numpy.lib.stride_tricks.sliding_window_view``: windows along new last axes.

    Sums, products, extremes, means and deviations over all of these axes see windows, and do not make them.
    Whatever else reads them makes them: each element once for every window that it is in.

    Raises
    ------
    ShapeError
        For a window that is empty or longer than its axis, or for other than one length an axis.

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
