"""How wide NumPy's named estimators make the bins of a histogram, from a few numbers of an array."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from matnb.errors import DTypeError, OptionError, UnsupportedError
from matnb.lazy.array import DistArray


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
