"""Calls that find and pick what is true, and entries that are large enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from breadth.case import Case, floats, odd, truths, whole


def pruned(xp: Any, x: Any, threshold: float) -> Any:
    """Return what ``prune`` of a handle means."""
    if xp is not np:
        return xp.asarray(x).prune(threshold)
    return np.where(np.abs(x) <= threshold, x.dtype.type(0), x) if threshold else x


def selected(xp: Any, x: Any, condition: Any) -> Any:
    """Return what ``select`` of a sparse handle with the same entries means."""
    if xp is np:
        places = np.indices(x.shape)
        kept = condition(*places, x)
        return np.where(kept & (x != 0), x, x.dtype.type(0))
    rows, columns = np.divmod(np.arange(x.size), x.shape[1])
    sparse = xp.coo_array((xp.asarray(x).ravel(), (rows, columns)), shape=x.shape)
    return sparse.select(condition)


def in_order(xp: Any, x: Any, rows: Any, columns: Any, rule: str) -> Any:
    """Return what ``coo_array`` means, entry after entry."""
    if xp is not np:
        return xp.coo_array((x, (rows, columns)), shape=(6, 5), duplicates=rule)
    found: dict[tuple[int, int], Any] = {}
    for value, row, column in zip(x, rows.tolist(), columns.tolist(), strict=True):
        old = found.get((row, column))
        given = {"sum": np.add, "min": np.minimum, "max": np.maximum}.get(rule)
        if old is None or rule == "last":
            found[row, column] = value
        elif given is not None:
            found[row, column] = given(old, value)
        elif rule == "error":
            raise ValueError("a place that comes twice")
    out = np.zeros((6, 5), x.dtype)
    for place, value in found.items():
        out[place] = value
    return out


ROWS, COLUMNS = whole(40, low=0, high=6), whole(40, low=0, high=5)

CASES = [
    *(
        Case("coo_array", lambda xp, x, r, c, t=t: in_order(xp, x, r, c, t), (floats(40), ROWS, COLUMNS))
        for t in ("sum", "last", "first", "min", "max", "error")
    ),
    *(
        Case("coo_array", lambda xp, x, r, c, t=t: in_order(xp, x, r, c, t), (odd(40), ROWS, COLUMNS))
        for t in ("last", "first", "min", "max")
    ),
    Case(
        "coo_array",
        lambda xp, x, r, c: in_order(xp, x, r, c, "sum"),
        (whole(40, dtype="int32"), ROWS, COLUMNS),
        large=(floats(200_000), whole(200_000, low=0, high=6), whole(200_000, low=0, high=5)),
    ),
    Case("coo_array", lambda xp, x, r, c: in_order(xp, x, r, c, "sum"), (truths(40), ROWS, COLUMNS)),
    *(
        Case("DistArray.select", lambda xp, x, f=f: selected(xp, x, f), (floats(6, 5),), tolerance=0)
        for f in (lambda i, j, v: v > 0, lambda i, j, v: i <= j, lambda i, j, v: (i + j) % 2 == v)
    ),
    Case("DistArray.select", lambda xp, x: selected(xp, x, lambda i, j, v: True), (whole(6, 5),)),
    Case(
        "DistArray.count_nonzero",
        lambda xp, x: np.count_nonzero(x, axis=0) if xp is np else xp.asarray(x).count_nonzero(axis=0),
        (floats(6, 5),),
    ),
    Case(
        "semiring",
        lambda xp, x: (
            np.minimum(x[:, :, None], x[None]).max(axis=1)
            if xp is np
            else xp.matmul(x, x, semiring=xp.semiring("max", "min"))
        ),
        (whole(5, 5),),
        sparse=False,
    ),
    *(
        Case("DistArray.prune", lambda xp, x, t=t: pruned(xp, x, t), (floats(6, 5),), tolerance=0)
        for t in (0, 0.5, 1.75, 9)
    ),
    Case(
        "DistArray.prune",
        lambda xp, x: pruned(xp, x, 0.5),
        (odd(9, 7),),
        tolerance=0,
        large=(floats(900, 200),),
    ),
    Case(
        "DistArray.prune",
        lambda xp, x: pruned(xp, xp.diag((x / 10).astype("float32")), 0.1),  # compared in single precision
        (whole(40),),
        tolerance=0,
    ),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, np.inf), (odd(9, 7),), tolerance=0),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, 2.5), (whole(6, 5),)),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, 0.5), (truths(6, 5),)),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, 1), (truths(6, 5),)),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x * (1 + 1j), 1.5), (floats(6, 5),)),
    Case(
        "DistArray.prune",
        lambda xp, x: pruned(xp, xp.diag(x), 1.5),
        (floats(9),),
        tolerance=0,
        large=(floats(100000),),
    ),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, 2), (whole(9, dtype="int8"),)),
    Case("DistArray.prune", lambda xp, x: pruned(xp, x, 1.5) @ x.T, (floats(6, 5),)),
    Case(
        "DistArray.eliminate_zeros",
        lambda xp, x: x * (x > 0) if xp is np else xp.asarray(x * (x > 0)).eliminate_zeros(),
        (floats(7, 6),),
        large=(floats(900, 200),),
    ),
    Case(
        "DistArray.pattern",
        lambda xp, x: np.eye(9) if xp is np else xp.diag(abs(x) + 1).pattern(np.float64),
        (floats(9),),
    ),
    Case("nonzero", lambda xp, x: xp.nonzero(x), (floats(6, 5),), large=(floats(40000, 8),)),
    Case("nonzero", lambda xp, x: xp.where(x), (odd(3, 4, 2),)),
    Case("nonzero", lambda xp, x: x.nonzero(), (truths(9),), large=(truths(900000),)),
    Case("nonzero", lambda xp, x: xp.nonzero(x), (floats(),)),
    Case("nonzero", lambda xp, x: xp.nonzero(x), (floats(0, 3),)),
    Case("flatnonzero", lambda xp, x: xp.flatnonzero(x), (floats(4, 5),), large=(floats(8, 50000),)),
    Case("argwhere", lambda xp, x: xp.argwhere(x), (floats(4, 5),)),
    Case("argwhere", lambda xp, x: xp.argwhere(x > 0), (floats(7),)),
    Case("compress", lambda xp, x: xp.compress([True, False, True], x, axis=0), (floats(5, 4),)),
    Case("compress", lambda xp, x: xp.compress([0, 1, 1, 0], x, axis=1), (floats(5, 4),)),
    Case("compress", lambda xp, x, m: x.compress(m), (floats(5, 4), truths(20)), sparse=False),
    Case("compress", lambda xp, x: xp.compress([True] * 9, x), (floats(5),)),
    Case("extract", lambda xp, x: xp.extract(x > 0, x), (floats(5, 4),)),
    Case("extract", lambda xp, x: xp.extract(xp.asarray([True, False, True]), x), (floats(3),)),
    Case(
        "choose",
        lambda xp, k, x, y: xp.choose(k, [x, y, 7]),
        (whole(5, low=0, high=3), whole(4, 5), whole(5)),
        large=(whole(100000, low=0, high=3), floats(100000), floats(100000)),
    ),
    Case("choose", lambda xp, k, x, y: xp.choose(k, (x, y)), (whole(5), whole(5), whole(5))),
    Case("choose", lambda xp, k, x, y: xp.choose(k, (x, y), mode="wrap"), (whole(5), whole(5), floats(5))),
    Case("choose", lambda xp, k, x, y: k.choose([x, y], mode="clip"), (whole(5), whole(5), floats(5))),
    Case("select", lambda xp, x: xp.select([x > 0, x < 0], [x, x * 2], 5), (floats(4, 5),)),
    Case("select", lambda xp, x, c: xp.select(c > 0, [x, x * 2], 5), (floats(5), floats(2, 5))),
    Case("select", lambda xp, x, c: xp.select(c > 0, c * x, 5), (floats(5), floats(2, 5))),
    Case("select", lambda xp, x: xp.select([x > 0, x == 0], [x, 1]), (whole(6, dtype="int8"),)),
    Case("select", lambda xp, x: xp.select([x, x > 0], [x, x]), (whole(6),)),
    Case("select", lambda xp, x: xp.select([x > 0], [x, x]), (whole(6),)),
    Case("ix_", lambda xp, x, y: xp.ix_(x, y), (whole(3), truths(5))),
    Case("ix_", lambda xp, x: xp.ix_(x), (whole(3, 2),), sparse=False),
    Case("unravel_index", lambda xp, x: xp.unravel_index(x, (3, 4, 2)), (whole(2, 3, low=0, high=24),)),
    Case("unravel_index", lambda xp, x: xp.unravel_index(x, (3, 4), order="F"), (whole(5, low=0, high=12),)),
    Case("unravel_index", lambda xp, x: xp.unravel_index(x, (3, 4)), (whole(50, low=0, high=24),)),
    Case(
        "ravel_multi_index",
        lambda xp, x, y: xp.ravel_multi_index((x, y), (4, 5)),
        (whole(6, low=0, high=4), whole(6, low=0, high=5)),
    ),
    Case(
        "ravel_multi_index",
        lambda xp, x, y: xp.ravel_multi_index((x, y), (4, 5), mode=("clip", "wrap"), order="F"),
        (whole(6), whole(6)),
    ),
    Case("ravel_multi_index", lambda xp, x: xp.ravel_multi_index((x, x), (4, 5)), (whole(60),)),
    Case("x[mask]", lambda xp, x: x[x > 0], (odd(13),), tolerance=0, large=(floats(900000),)),
    Case("x[mask]", lambda xp, x: x[x > 0], (floats(6, 5),), tolerance=0, large=(floats(60000, 8),)),
    Case("x[mask]", lambda xp, x: x[x > 0], (floats(3, 100, 2),), tolerance=0, large=(floats(4, 60000, 2),)),
    Case("x[mask]", lambda xp, x: x[x[:, 0] > 0], (floats(6, 5),), tolerance=0, large=(floats(60000, 8),)),
    Case("x[mask]", lambda xp, x: x[:, x[0] > 0], (floats(6, 5),), tolerance=0),
    Case("x[mask]", lambda xp, x: x[:, x[0] > 0], (floats(3, 5, 2),), tolerance=0),
    Case("x[mask]", lambda xp, x: x[:, x[0, :, 0] > 0, 1], (floats(3, 5, 2),), tolerance=0),
    Case("x[mask]", lambda xp, x: x[x[:, 0, 0] > 0, :, 1], (floats(3, 5, 2),), tolerance=0),
    Case("x[mask]", lambda xp, x, m: x[m], (floats(4, 5), truths(4, 4)), sparse=False),
    Case("x[mask]", lambda xp, x, m: x[m, [1]], (whole(4, 5), truths(4)), tolerance=0),
    Case("x[mask]", lambda xp, x: x[x > 99], (floats(6),), tolerance=0),
    Case("x[mask].std", lambda xp, x: (x[x > 0] + x[x > 0]).std(), (floats(40),)),
    Case("x[mask].sum", lambda xp, x: (x[x > 0] * 2).sum(), (floats(4, 9),)),
    Case("x[mask][i]", lambda xp, x: x[x > -9][1:-1:2], (floats(9),), tolerance=0),
    Case("x[True]", lambda xp, x: (x[True], x[False], x[np.True_, 1:]), (floats(4, 3),)),
    Case("compress", lambda xp, x: xp.compress([True], x, 0, xp.zeros((2, 4))), (floats(5, 4),)),
]
