"""NumPy's functions of curves: polynomials fitted to points, and angles made continuous."""

from __future__ import annotations

from typing import Any

import numpy as np

from matnb.errors import DTypeError, OptionError, ShapeError
from matnb.lazy.array_like import ArrayLike
from matnb.lazy.creation import asarray
from matnb.lazy.registry import implements


@implements(np.polyfit)
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Any:
    """``numpy.polyfit``: least squares of the columns ``x**deg, ..., x, 1``, by slabs of rows.

    NumPy warns where the degree is too high for the points; ``full=True`` returns the rank.

    Raises
    ------
    ShapeError
        For points that are not one x for each y, or weights of another length.
    OptionError
        For a degree that is not a whole number from 0 on, and too few points for covariances.
    """
    if isinstance(deg, bool) or not isinstance(deg, int | np.integer) or deg < 0:
        raise OptionError(f"polyfit(deg={deg!r}): give a whole number from 0 on")
    places, values = asarray(x), asarray(y)
    if places.ndim != 1 or values.ndim not in (1, 2) or len(places) != len(values) or not len(places):
        raise ShapeError(f"polyfit: x of shape {places.shape} and y of {values.shape}: give a y for each x")
    right: Any = values + 0.0
    left: Any = np.vander(places + 0.0, int(deg) + 1)
    if w is not None:
        weights: Any = asarray(w)
        if weights.shape != places.shape:
            raise ShapeError(f"polyfit: weights of shape {weights.shape} for {len(places):,} points")
        left = left * weights[:, None]
        right = right * (weights if right.ndim == 1 else weights[:, None])
    scale: Any = np.sqrt((left * left).sum(axis=0))
    scale = np.where(scale == 0, 1.0, scale)
    least = len(places) * float(np.finfo(left.dtype).eps) if rcond is None else rcond
    found = np.linalg.lstsq(left / scale, right, least)
    coefficients: Any = (found[0].T / scale).T
    if full:
        return coefficients, *found[1:], least
    if cov is False:
        return coefficients
    inverse = np.linalg.inv((left / scale).T @ (left / scale)) / np.outer(scale, scale)
    if right.ndim == 2:
        inverse = inverse[:, :, None]
    if cov == "unscaled":
        return coefficients, inverse
    beyond = len(places) - (int(deg) + 1)
    if beyond <= 0:
        raise OptionError(f'polyfit(cov=True): give more than {deg + 1} points, or cov="unscaled"')
    return coefficients, inverse * (found[1] / beyond)


@implements(np.unwrap)
def unwrap(p: ArrayLike, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi) -> Any:
    """``numpy.unwrap``: angles without jumps of a period or more.

    Raises
    ------
    DTypeError
        For complex numbers.
    ShapeError
        For a number, which has no axis.
    """
    angles: Any = asarray(p)
    if angles.dtype.kind not in "biuf":
        raise DTypeError(f"unwrap of dtype {angles.dtype}: give real numbers, such as np.angle(x)")
    if not angles.ndim:
        raise ShapeError("unwrap of one number: give an array with an axis")
    steps: Any = np.diff(angles, axis=axis)
    dtype = np.result_type(steps.dtype, period)
    half = period / 2 if dtype.kind == "f" else divmod(period, 2)[0]
    turned = np.mod(steps + half, period) - half
    if dtype.kind == "f" or period % 2 == 0:  # a step of half a period keeps its sign
        turned = np.where((turned == -half) & (steps > 0), half, turned)
    moved = np.where(abs(steps) < (period / 2 if discont is None else discont), 0, turned - steps)
    cut = [slice(None)] * angles.ndim
    cut[axis] = slice(0, 1)
    first = angles[tuple(cut)].astype(dtype)
    cut[axis] = slice(1, None)
    rest = angles[tuple(cut)] + moved.cumsum(axis)
    return np.concatenate([first, rest.astype(dtype)], axis=axis)
