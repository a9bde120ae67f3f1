"""Calls that read by an index and at listed places."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, Maker, odd, whole
from breadth.case import floats as with_signs


def floats(*shape: int) -> Maker:
    """Return what makes an array without negative zeros, which a sparse one does not store."""
    return lambda rng: with_signs(*shape)(rng) + 0.0


def slice_from(xp: Any, x: Any, starts: Any, size: int, axis: int = 0) -> Any:
    """Return a slice that begins at the largest of some places."""
    if xp is not np:
        return xp.dynamic_slice(x, starts.max(), size, axis)
    return x[(*(slice(None),) * axis, slice(starts.max(), starts.max() + size))]


def written_from(xp: Any, x: Any, new: Any, starts: Any, axis: int = 0) -> Any:
    """Return an array with another over it, from the largest of some places on."""
    if xp is not np:
        return xp.dynamic_update_slice(x, new, starts.max(), axis)
    x = x.copy()
    x[(*(slice(None),) * axis, slice(starts.max(), starts.max() + new.shape[axis]))] = new
    return x


I = np.array([2, -1, 0, 2])  # noqa: E741  an index, as in what it tests
J = np.array([[0, 2], [3, 1]])
places = whole(7, low=-4, high=4)

CASES = [
    Case("x[slice]", lambda xp, x: (x[::-1], x[4:0:-3], x[1:, ::2], x[..., -1], x[None, 2]), (odd(6, 5),)),
    Case("x[i]", lambda xp, x: x[7], (floats(6),)),
    Case("x[i, j, k]", lambda xp, x: x[0, 0, 0], (floats(6, 2),)),
    Case("x[list]", lambda xp, x: x[[1, -1, 0]], (floats(6, 5),), tolerance=0),
    Case("x[[]]", lambda xp, x: x[[]], (floats(6, 5),), tolerance=0),
    Case(
        "x[idx]",
        lambda xp, x, i: x[i],
        (odd(6), places),
        tolerance=0,
        large=(floats(400000), whole(200000, low=-400000, high=400000)),
    ),
    Case("x[idx]", lambda xp, x, i: x[i], (floats(6, 5), whole(2, 3, low=-6)), tolerance=0, sparse=False),
    Case("x[idx]", lambda xp, x: x[J], (floats(6, 5),), tolerance=0),
    Case("x[idx]", lambda xp, x: x[I], (floats(6, 5),), tolerance=0),
    Case("x[idx]", lambda xp, x, i: x[i], (floats(3), whole(9)), tolerance=0),
    Case("x[idx]", lambda xp, x, i: x[i], (floats(3), floats(2)), tolerance=0),
    Case(
        "x[:, idx]",
        lambda xp, x, i: x[:, i],
        (floats(6, 5), places),
        tolerance=0,
        large=(floats(40, 20000), whole(10000, low=0, high=20000)),
    ),
    Case(
        "x[idx, idx]",
        lambda xp, x, i, j: x[i, j],
        (floats(6, 5), whole(8, low=-6, high=6), whole(8, low=-5, high=5)),
        tolerance=0,
        large=(floats(60000, 8), whole(300000, low=0, high=60000), whole(300000, low=0, high=8)),
    ),
    Case("x[idx, idx]", lambda xp, x, i, j: x[i, j], (floats(6, 5), whole(8), whole(7)), tolerance=0),
    Case("x[idx, idx]", lambda xp, x: x[I, J[:, :1]], (floats(6, 5),), tolerance=0),
    Case("x[ix_]", lambda xp, x: x[np.ix_(I, I[:3])], (floats(6, 5),), tolerance=0),
    Case("x[ix_]", lambda xp, x: x[np.ix_(I, [0, 1], I[:3])], (floats(6, 2, 4),), tolerance=0),
    Case("x[rows][:, columns]", lambda xp, x: x[I][:, I], (floats(6, 5),), tolerance=0),
    Case(
        "x[i, :, idx]", lambda xp, x: (x[0, :, I], x[I, :, 0], x[I, 1:, I]), (floats(3, 4, 5),), tolerance=0
    ),
    Case("x[i, idx]", lambda xp, x: (x[0, I], x[:, 1, I], x[:, I, -1]), (floats(3, 4, 5),), tolerance=0),
    Case(
        "x[idx, None]", lambda xp, x: (x[:, None, I], x[I, None, J], x[..., I]), (floats(5, 4),), tolerance=0
    ),
    Case("x[idx] on axis", lambda xp, x, i: x[i, 9], (floats(5, 4), places), tolerance=0),
    Case(
        "take",
        lambda xp, x, i: (xp.take(x, i), xp.take(x, i, axis=1), x.take(i, axis=0)),
        (floats(5, 4), whole(3, 2, low=-4, high=4)),
        tolerance=0,
        sparse=False,
    ),
    Case("take", lambda xp, x: xp.take(x, [1, -1], axis=0), (floats(5, 4),), tolerance=0),
    Case("take", lambda xp, x: xp.take(x, 1, axis=-1), (floats(5, 4),), tolerance=0),
    Case("take", lambda xp, x, i: xp.take(x, i, mode="wrap"), (floats(4), whole(9)), tolerance=0),
    Case("take", lambda xp, x, i: xp.take(x, i, mode="clip"), (floats(4), whole(9)), tolerance=0),
    Case("take", lambda xp, x, i: xp.take(x, i), (floats(4), whole(9)), tolerance=0),
    Case(
        "take_along_axis",
        lambda xp, x, i: xp.take_along_axis(x, i, axis=1),
        (floats(9, 4), whole(9, 6, low=-4, high=4)),
        tolerance=0,
        large=(floats(60000, 6), whole(60000, 4, low=0, high=6)),
    ),
    Case(
        "take_along_axis",
        lambda xp, x, i: xp.take_along_axis(x, i, 0),
        (floats(9), whole(6, low=-9, high=9)),
        tolerance=0,
        large=(floats(300000), whole(300000, low=0, high=300000)),
    ),
    Case(
        "take_along_axis",
        lambda xp, x, i: xp.take_along_axis(x, i, 1),
        (floats(2, 9), whole(1, 6, low=-9, high=9)),
        tolerance=0,
        large=(floats(2, 300000), whole(2, 200000, low=0, high=300000)),
    ),
    Case("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, None), (floats(3, 4), places)),
    Case("take_along_axis", lambda xp, x, i: xp.take_along_axis(x, i, 0), (floats(3, 4), places)),
    Case(
        "dynamic_slice",
        lambda xp, x, s: slice_from(xp, x, s, 3),
        (floats(6, 5), whole(2, low=0, high=4)),
        tolerance=0,
        large=(floats(60000, 5), whole(2, low=20000, high=20100)),
    ),
    Case(
        "dynamic_slice",
        lambda xp, x, s: slice_from(xp, x, s, 30000),
        (floats(60000, 5), whole(2, low=0)),
        tolerance=0,
    ),
    Case(
        "dynamic_slice",
        lambda xp, x, s: slice_from(xp, x, s, 2, 1),
        (odd(6, 5), whole(2, low=0, high=4)),
        tolerance=0,
    ),
    Case(
        "dynamic_slice",
        lambda xp, x, s: slice_from(xp, x, s, 0, 1),
        (odd(6, 5), whole(2, low=0, high=4)),
        tolerance=0,
    ),
    Case(
        "dynamic_slice",
        lambda xp, x: x[2:6] if xp is np else xp.dynamic_slice(x, 2, 4),
        (odd(6, 5),),
        tolerance=0,
    ),
    Case(
        "dynamic_update_slice",
        lambda xp, x, y, s: written_from(xp, x, y, s),
        (odd(6, 5), odd(2, 5), whole(2, low=0, high=5)),
        tolerance=0,
        large=(floats(60000, 5), floats(700, 5), whole(2, low=20000, high=20100)),
    ),
    Case(
        "dynamic_update_slice",
        lambda xp, x, y, s: written_from(xp, x, y, s, 1),
        (whole(6, 5), floats(1, 3), whole(2, low=0, high=3)),
        tolerance=0,
    ),
    Case("indices", lambda xp: (xp.indices((2, 3)), *xp.indices((2, 3), sparse=True)), ()),
    Case("diag_indices", lambda xp: xp.diag_indices(3), ()),
    Case("diag_indices_from", lambda xp, x: xp.diag_indices_from(x), (floats(4, 4),)),
    Case("tril_indices", lambda xp, x: (*xp.tril_indices(3), *xp.triu_indices_from(x, 1)), (floats(4, 5),)),
]
