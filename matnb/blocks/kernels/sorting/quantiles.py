"""Quantiles of a block along axes, and of all elements of sorted blocks by the arithmetic of NumPy's."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.formats import Block, Dense, to_numpy

# What Hyndman and Fan ("Sample quantiles in statistical packages", 1996) call alpha and beta.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0, 1),
    "hazen": (0.5, 0.5),
    "weibull": (0, 0),
    "median_unbiased": (1 / 3.0, 1 / 3.0),
    "normal_unbiased": (3 / 8.0, 3 / 8.0),
}
METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", *_CONTINUOUS,
)  # fmt: skip


@dataclass(frozen=True)
class QuantileRequest:
    """Which quantiles are wanted.

    Attributes
    ----------
    content, shape, element
        The shares from 0 to 1 as bytes, their shape and dtype.
    is_weak
        Whether they were one Python number, which takes on the array's dtype.
    method
        How to interpolate between two elements, by NumPy's name of it.
    skips_nan
        Whether NaN are left out.
    is_median
        Whether it is the mean of the one or two elements in the middle.
    """

    content: bytes
    shape: tuple[int, ...]
    element: np.dtype
    is_weak: bool
    method: str
    skips_nan: bool
    is_median: bool = False

    @property
    def shares(self) -> np.ndarray:
        """The shares."""
        return np.ndarray(self.shape, self.element, self.content)


def quantiles_along(values: np.ndarray, axes: tuple[int, ...], wanted: QuantileRequest) -> np.ndarray:
    """Return the quantiles of an array along axes, which keep length 1."""
    if not values.size and wanted.skips_nan and not wanted.is_median:
        # NumPy gives one NaN, however many are wanted.
        kept = (1 if axis in axes else length for axis, length in enumerate(values.shape))
        element = quantiles_along(np.ones((1,) * values.ndim, values.dtype), axes, wanted).dtype
        return np.full((*wanted.shape, *kept), np.nan, element)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of slices without a number
        if wanted.is_median:
            median = np.nanmedian if wanted.skips_nan else np.median
            return np.asarray(median(values, axis=axes, keepdims=True))
        quantile = np.nanquantile if wanted.skips_nan else np.quantile
        shares = wanted.shares.item() if wanted.is_weak else wanted.shares
        found = quantile(values, shares, axis=axes, method=wanted.method, keepdims=True)  # type: ignore[call-overload]  # one of METHODS
        return np.asarray(found)


def along(blocks: Sequence[Block], axes: tuple[int, ...], wanted: QuantileRequest) -> Dense:
    """Return the quantiles of a block along axes."""
    return Dense(quantiles_along(to_numpy(blocks[0]), axes, wanted))


def count_numbers(blocks: Sequence[Block], skips_nan: bool) -> Dense:
    """Return how many elements a sorted block has, without NaN if those are skipped."""
    values = to_numpy(blocks[0])
    count = values.size
    if skips_nan and values.dtype.kind in "fc":  # NaN come last, numbers with one in a part too
        count -= int(np.count_nonzero(np.isnan(values)))
    return Dense(np.array([count]))


def ranks_wanted(blocks: Sequence[Block], wanted: QuantileRequest) -> Dense:
    """Return the ranks that quantiles are made of: two for each, and the last one, from counts of blocks."""
    count = max(1, sum(int(to_numpy(one)[0]) for one in blocks))
    before, after, _ = _between(count, wanted)
    return Dense(np.concatenate([before.ravel(), after.ravel(), [count - 1]]) % count)


def from_ranks(blocks: Sequence[Block], wanted: QuantileRequest, ndim: int, dtype: np.dtype) -> Dense:
    """Return the quantiles, given the elements of :func:`ranks_wanted`, then the counts of blocks.

    Parameters
    ----------
    ndim
        Of the array they are of: so many axes of length 1 follow those of the shares.
    """
    counts = [to_numpy(one) for one in blocks[1:]]
    elements: np.ndarray = to_numpy(blocks[0])
    count = sum(int(one[0]) for one in counts)
    size = elements.size // 2
    before, after, share = _between(max(1, count), wanted)
    low, high = elements[:size].reshape(before.shape), elements[size : 2 * size].reshape(before.shape)
    with np.errstate(all="ignore"):
        if wanted.is_median:
            pair = np.stack([low, high]) if before.ravel()[0] != after.ravel()[0] else low[None]
            found = np.asarray(np.mean(pair, axis=0))
        elif share is None:
            found = low.copy()
        else:
            weight = float(share) if wanted.is_weak else share
            step = np.subtract(high, low)
            found = np.asarray(low + step * weight)
            other = np.asarray(high - step * (1 - weight))
            found = np.where(np.asarray(weight) >= 0.5, other, found).astype(found.dtype)
    if found.dtype.kind in "fc" and (not count or np.isnan(elements[-1])):
        found = np.full_like(found, elements[-1] if count and wanted.is_median else np.nan)
    return Dense(found.astype(dtype).reshape((*wanted.shape, *(1,) * ndim)))


def _between(count: int, wanted: QuantileRequest) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    # The ranks on both sides of each quantile among so many elements, and how far it is between them; None
    # where it is an element.
    shares = wanted.shares
    if wanted.is_median:
        return np.array((count - 1) // 2), np.array(count // 2), None
    place = np.asarray(_place(count, shares, wanted.method))
    if place.dtype.kind in "iu":
        return place, place, None
    before = np.floor(place)
    after = before + 1
    before, after = (np.where(place >= count - 1, count - 1, one) for one in (before, after))
    before, after = (np.where(place < 0, 0, one).astype(np.intp) for one in (before, after))
    # NumPy takes the distance from -1 where it takes the last element.
    share = place - np.where(place >= count - 1, -1, before)
    if wanted.method == "averaged_inverted_cdf":
        share = np.where(share == 0, 0.5, 1.0)
    elif wanted.method == "midpoint":
        share = np.where(place % 1 == 0, 0.0, 0.5)
    return before, after, share.astype(place.dtype)


def _place(count: int, shares: np.ndarray, method: str) -> np.ndarray:
    # Where quantiles are among so many ordered elements, as a number that may lie between two ranks.
    if method == "linear":
        return np.asarray((count - 1) * shares)
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        return np.asarray(count * shares + (alpha + shares * (1 - alpha - beta)) - 1)
    if method == "averaged_inverted_cdf":
        return np.asarray(count * shares - 1)
    if method in ("inverted_cdf", "closest_observation"):
        place = np.asarray(count * shares - 1 - (0.5 if method == "closest_observation" else 0))
        is_there = place - np.floor(place) == 0
        if method == "closest_observation":
            is_there &= np.floor(place) % 2 == 1
        return np.maximum(np.where(is_there, np.floor(place), np.floor(place) + 1).astype(np.intp), 0)
    exact = np.asarray((count - 1) * shares)
    if method == "midpoint":
        return np.asarray(0.5 * (np.floor(exact) + np.ceil(exact)))
    if method == "nearest":
        return np.around(exact).astype(np.intp)
    rounded = np.floor(exact) if method == "lower" else np.ceil(exact)
    return np.asarray(rounded).astype(np.intp)
