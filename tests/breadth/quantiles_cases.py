"""Calls that tell medians and quantiles."""

from __future__ import annotations

import numpy as np

from breadth.case import Case, floats, odd, whole

METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf", "hazen",
    "weibull", "linear", "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint", "nearest",
)  # fmt: skip

CASES = [
    Case("median", lambda xp, x: xp.median(x), (floats(41),), large=(floats(300000),)),
    Case("median", lambda xp, x: xp.median(x, axis=0), (floats(8, 5),), large=(floats(150000, 2),)),
    Case("median", lambda xp, x: xp.median(x, axis=(0, 2), keepdims=True), (whole(3, 4, 5),)),
    Case("median", lambda xp, x: xp.median(x, axis=1, out=xp.zeros(4)), (floats(4, 5),)),
    Case("median", lambda xp, x: xp.median(x), (odd(40),)),
    Case("median", lambda xp, x: xp.median(x, axis=1, keepdims=True), (odd(7, 5),)),
    Case("nanmedian", lambda xp, x: xp.nanmedian(x), (odd(40),)),
    Case("nanmedian", lambda xp, x: xp.nanmedian(x, axis=0), (odd(7, 5),)),
    Case("percentile", lambda xp, x: xp.percentile(x, [5, 50, 99.5]), (floats(50),), large=(floats(300000),)),
    Case("percentile", lambda xp, x: xp.percentile(x, 30, axis=1, keepdims=True), (whole(7, 5),)),
    Case("percentile", lambda xp, x: xp.percentile(x, 130), (whole(7, 5),)),
    Case("quantile", lambda xp, x: xp.quantile(x.astype("float32"), 0.3), (floats(40),)),
    Case("quantile", lambda xp, x: xp.quantile(x, [[0, 1], [1, 0]]), (whole(40),)),
    Case("quantile", lambda xp, x: xp.quantile(x, [0.1, 0.9], axis=(0, 1)), (floats(7, 5),)),
    Case("quantile", lambda xp, x: xp.quantile(x, 0.5, method="none"), (floats(7),)),
    Case("nanquantile", lambda xp, x: xp.nanquantile(x, [0.25, 0.5]), (odd(60),)),
    *(
        Case(
            name,
            lambda xp, x, w, name=name, q=q: getattr(xp, name)(x, q, weights=w, method="inverted_cdf"),
            (maker, whole(40, low=0, high=4)),
            tolerance=0,
        )
        for name, q in (
            ("quantile", [0, 0.3, 1]),
            ("percentile", 40),
            ("nanquantile", 0.25),
            ("nanpercentile", [5]),
        )
        for maker in (odd(40), whole(40))
    ),
    Case(
        "quantile",
        lambda xp, x, w: xp.quantile(x, 0.5, weights=w, method="inverted_cdf"),
        (floats(40), whole(40, low=0, high=4)),
        large=(floats(150000), whole(150000, low=1, high=4)),
    ),
    Case(
        "quantile",
        lambda xp, x, w: xp.quantile(x, [0.2, 0.7], 1, weights=w, method="inverted_cdf", keepdims=True),
        (floats(7, 5), whole(5, low=1, high=4)),
    ),
    Case(
        "quantile",
        lambda xp, x, w: xp.quantile(x, 0.5, weights=w, method="inverted_cdf"),
        (floats(4, 3), whole(4, 3, low=1, high=4)),
    ),
    Case(
        "quantile",
        lambda xp, x: xp.quantile(x, 0.5, weights=np.ones((4, 3)), method="inverted_cdf"),
        (floats(4, 3),),
    ),
    Case("quantile", lambda xp, x: xp.quantile(x, 0.5, weights=x, method="linear"), (whole(5, low=1),)),
    Case(
        "quantile", lambda xp, x: xp.quantile(x, 0.5, weights=-x, method="inverted_cdf"), (whole(5, low=1),)
    ),
    Case("nanpercentile", lambda xp, x: xp.nanpercentile(x, 25, axis=0), (odd(9, 5),)),
    *(
        Case("quantile", lambda xp, x, m=m: xp.quantile(x, [0.0, 0.2, 0.25, 0.5, 1], method=m), (whole(41),))
        for m in METHODS
    ),
]
