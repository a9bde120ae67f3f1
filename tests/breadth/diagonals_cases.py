"""Calls on diagonals and triangles."""

from __future__ import annotations

from breadth.case import Case, floats, odd, truths, whole

CASES = [
    *(
        Case(name, lambda xp, x, name=name, k=k: getattr(xp, name)(x, k), (floats(5, 7),), tolerance=0)
        for name in ("tril", "triu")
        for k in (0, 2, -3, -9, 9)
    ),
    Case("tril", lambda xp, x: xp.tril(x), (odd(2, 4, 3),), tolerance=0, large=(floats(4000, 50),)),
    Case("triu", lambda xp, x: xp.triu(x), (truths(3, 4),)),
    Case("triu", lambda xp, x: xp.triu(x), (floats(0, 4),)),
    Case("tril", lambda xp, x: xp.tril(x), (floats(4),)),
    *(
        Case("diagonal", lambda xp, x, k=k: xp.diagonal(x, k), (floats(7, 5),))
        for k in (0, 3, -4, 5, -7, 9, -9)
    ),
    Case("diagonal", lambda xp, x: xp.diagonal(x), (floats(6, 6),), large=(floats(700, 700),)),
    Case("diagonal", lambda xp, x: xp.diagonal(x, 1, 2, 0), (floats(4, 3, 5),), tolerance=0),
    Case("diagonal", lambda xp, x: xp.diagonal(x, -1, axis1=1, axis2=0), (floats(4, 5),)),
    Case("diagonal", lambda xp, x: xp.diagonal(x), (floats(0, 5),)),
    Case("diagonal", lambda xp, x: xp.diagonal(x), (floats(5),)),
    Case("diagonal", lambda xp, x: xp.diagonal(x, 0, 1, -1), (floats(5, 4),)),
    Case("linalg.diagonal", lambda xp, x: xp.linalg.diagonal(x, offset=1), (floats(3, 5, 4),), tolerance=0),
    Case("trace", lambda xp, x: xp.trace(x), (floats(7, 5),), large=(floats(700, 700),)),
    Case("trace", lambda xp, x: xp.trace(x, 1), (whole(7, 5, dtype="int32"),)),
    Case("trace", lambda xp, x: xp.trace(x, 0, 0, 2, "f4"), (whole(4, 2, 3),)),
    Case("linalg.trace", lambda xp, x: xp.linalg.trace(x, offset=-1), (floats(2, 4, 3),)),
    *(Case("diag", lambda xp, x, k=k: xp.diag(x, k), (floats(6),)) for k in (0, 2, -3)),
    Case("diag", lambda xp, x: xp.diag(x), (whole(6, dtype="int8"),), large=(whole(2000, dtype="int8"),)),
    Case("diag", lambda xp, x: xp.diag(x, -1), (whole(6, dtype="complex128"),)),
    Case("diag", lambda xp, x: xp.diag(x), (odd(9),), large=(floats(100000),)),
    Case("diag", lambda xp, x: xp.diag(x), (floats(0),)),
    Case("diag", lambda xp, x: xp.diag(x, 2), (floats(0),)),
    Case("diag", lambda xp, x: xp.diag(x, 1), (floats(4, 4),)),
    Case("diag", lambda xp, x: xp.diag(x), (floats(4, 4, 4),)),
    Case("diag", lambda xp, x: xp.diag(x) @ xp.ones(6), (floats(6),)),
    Case("diagflat", lambda xp, x: xp.diagflat(x, 1), (floats(2, 3),)),
    Case("tri", lambda xp: (xp.tri(3), xp.tri(3, 5, 1, int), xp.tri(4, 2, -1)), ()),
    Case("vander", lambda xp, x: xp.vander(x), (floats(4),)),
    Case("vander", lambda xp, x: xp.vander(x, 3, increasing=True), (whole(5),), large=(floats(90000),)),
    Case("vander", lambda xp, x: xp.vander(x), (floats(4, 2),)),
    Case("tril_indices", lambda xp: xp.tril_indices(5, -1, 4), ()),
    Case("triu_indices", lambda xp: xp.triu_indices(3, 1), ()),
    Case("tril_indices_from", lambda xp, x: xp.tril_indices_from(x, 1), (floats(4, 5),)),
    Case("triu_indices_from", lambda xp, x: xp.triu_indices_from(x), (floats(4, 5),)),
]
