"""NumPy's weighted averages, covariances, and integrals of samples."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.errors import DTypeError, OptionError, ShapeError, UnsupportedError
from matnb.expr.nodes import Broadcast
from matnb.lazy.array import DistArray, handle_of, wrap
from matnb.lazy.creation import eye, zeros
from matnb.lazy.functions.reductions import flag
from matnb.lazy.functions.scanning import diff
from matnb.lazy.indexing.canonical import normalize_axes, one_axis
from matnb.lazy.reductions import Axis
from matnb.lazy.registry import implements
from matnb.lazy.ufuncs import astype, literal
from matnb.ops.joining import Concatenate


@implements(np.average)
def average(
    a: object,
    axis: Axis = None,
    weights: object = None,
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
    m: object,
    y: object = None,
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
        raise OptionError(f"cov: ddof={ddof} is no whole number")
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
            raise UnsupportedError(f"cov: {name} of shape {weights.shape}: give {count}, one an observation")
        if name == "fweights" and weights.dtype.kind not in "iu":
            raise DTypeError(f"cov: fweights of dtype {weights.dtype}: give whole numbers")
        weights = weights.astype(np.float64)
        found = weights if found is None else found * weights
    return found


@implements(np.corrcoef)
def corrcoef(
    x: object,
    y: object = None,
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
def trapezoid(y: object, x: object = None, dx: float = 1.0, axis: int = -1) -> DistArray:
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
