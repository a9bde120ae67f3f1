"""Calls that count values."""

from __future__ import annotations

import numpy as np

from breadth.case import Case, floats, odd, truths, whole

EDGES = np.array([-2.0, -1.0, -1.0, 0.0, 0.3, 1.75])

CASES = [
    Case("bincount", lambda xp, x: xp.bincount(x), (whole(30, low=0),), tolerance=0,
         large=(whole(300000, low=0, high=4000),)),
    Case("bincount", lambda xp, x: xp.bincount(x, minlength=9), (whole(30, low=0, dtype="uint8"),)),
    Case("bincount", lambda xp, x: xp.bincount(x, minlength=3), (whole(0, dtype="int32"),)),
    Case("bincount", lambda xp, x, w: xp.bincount(x, weights=w), (whole(30, low=0), floats(30))),
    Case("bincount", lambda xp, x, w: xp.bincount(x, w, 9), (truths(30), whole(30))),
    Case("bincount", lambda xp, x: xp.bincount(x), (whole(30),)),
    Case("bincount", lambda xp, x: xp.bincount(x), (floats(30),)),
    Case("bincount", lambda xp, x: xp.bincount(x), (whole(3, 3, low=0),)),
    Case("bincount", lambda xp, x, w: xp.bincount(x, weights=w), (whole(30, low=0), floats(29))),
    Case("histogram", lambda xp, x: xp.histogram(x), (floats(60),), tolerance=0,
         large=(floats(300000),)),
    Case("histogram", lambda xp, x: xp.histogram(x, 7), (floats(9, 8),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, 7), (whole(40),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x.astype("float32"), 13), (floats(9, 8),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x.astype("float16"), 5), (floats(40),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, bins=5, range=(-1, 1.3)), (floats(9, 8),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, 5, (x.min(), x.max() / 2)), (floats(40),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, bins=EDGES), (floats(9, 8),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, [-1, 0, 2, 3]), (whole(40),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, bins=EDGES), (odd(80),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, 4, range=(-1, 1)), (odd(80),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, 4, density=True), (floats(40),)),
    Case("histogram", lambda xp, x, w: xp.histogram(x, 4, weights=w), (floats(40), floats(40))),
    Case("histogram", lambda xp, x, w: xp.histogram(x, EDGES, weights=w, density=True),
         (floats(6, 7), whole(6, 7, low=1))),
    Case("histogram", lambda xp, x, w: xp.histogram(x, 3, weights=w * 1j), (floats(40), floats(40))),
    Case("histogram", lambda xp, x: xp.histogram(x), (floats(0),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x * 0 + 2, 3), (floats(5),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x), (odd(80),)),
    Case("histogram", lambda xp, x: xp.histogram(x, 0), (floats(8),)),
    Case("histogram", lambda xp, x: xp.histogram(x, 2.5), (floats(8),)),
    Case("histogram", lambda xp, x: xp.histogram(x, [2, 1]), (floats(8),)),
    Case("histogram", lambda xp, x: xp.histogram(x, 3, (2, 1)), (floats(8),)),
    Case("histogram", lambda xp, x, w: xp.histogram(x, 3, weights=w), (floats(8), floats(7))),
    Case("histogram", lambda xp, x: xp.histogram(x, "nearest"), (floats(8),)),
    *(
        Case("histogram", lambda xp, x, name=name: xp.histogram(x, name), (floats(90),), tolerance=0)
        for name in ("auto", "fd", "doane", "rice", "scott", "sqrt", "sturges")
    ),
    Case("histogram", lambda xp, x: xp.histogram(x, "sqrt", (-1, 1)), (floats(90),), tolerance=0),
    Case("histogram", lambda xp, x: xp.histogram(x, "sturges"), (whole(90),), tolerance=0),
    Case("histogram_bin_edges", lambda xp, x: xp.histogram_bin_edges(x, 6), (floats(40),), tolerance=0),
    Case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y), (floats(50), floats(50)),
         large=(floats(200000), floats(200000))),
    Case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y, [3, EDGES], density=True),
         (floats(50), floats(50))),
    Case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y, EDGES), (floats(50), odd(50))),
    Case("histogram2d", lambda xp, x, y, w: xp.histogram2d(x, y, 4, [(-1, 1), (-2, 1)], weights=w),
         (whole(50), floats(50), floats(50))),
    Case("histogram2d", lambda xp, x, y: xp.histogram2d(x, y), (floats(50), floats(49))),
    Case("histogramdd", lambda xp, x: xp.histogramdd(x, 3), (floats(40, 3),)),
    Case("histogramdd", lambda xp, x: xp.histogramdd(x, (2, 3), [None, (0, 1)]), (floats(40, 2),)),
    Case("histogramdd", lambda xp, x: xp.histogramdd(x, (2, 3)), (floats(40, 3),)),
]  # fmt: skip
