"""What quantiles mean."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from matnb.ops.nodes.quantiles import Quantiles
from matnb.ops.reference.registry import Value, dense, means


@means(Quantiles)
def quantiles(node: Quantiles, operands: Sequence[Value]) -> Value:
    """Return the quantiles along axes."""
    values, wanted = dense(operands[0]), node.wanted
    if (
        not values.size and wanted.skips_nan and not wanted.is_median
    ):  # NumPy gives one NaN, however many are wanted
        return np.full(node.shape, np.nan, node.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of slices without a number
        if wanted.is_median:
            median = np.nanmedian if wanted.skips_nan else np.median
            return np.asarray(median(values, axis=node.axes, keepdims=True))
        quantile = np.nanquantile if wanted.skips_nan else np.quantile
        shares = wanted.shares.item() if wanted.is_weak else wanted.shares
        return np.asarray(quantile(values, shares, axis=node.axes, method=wanted.method, keepdims=True))  # type: ignore[call-overload]  # one of METHODS
