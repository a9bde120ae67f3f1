"""Calls that put arrays together, and take them apart."""

from __future__ import annotations

from typing import Any

from breadth.case import Case, floats, odd, truths, whole


def into_out(xp: Any, x: Any, y: Any) -> Any:
    out = xp.zeros((7, 6))
    return xp.concatenate([x, y], axis=1, out=out), out


CASES = [
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y]),
        (floats(7, 5), floats(4, 5)),
        tolerance=0,
        large=(floats(60000, 5), floats(40000, 5)),
    ),
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y], axis=1),
        (floats(7, 5), whole(7, 3)),
        tolerance=0,
    ),
    Case("concatenate", lambda xp, x, y: xp.concatenate((x, y, x)), (odd(6), odd(0)), tolerance=0),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], 2), (truths(2, 3, 4), floats(2, 3, 1))),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], None), (floats(3, 2), whole())),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y]), (floats(3, 2), whole(3))),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y]), (floats(), whole())),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], 2), (floats(3, 2), whole(3, 2))),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], dtype="float32"), (floats(3), whole(2))),
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y], dtype="int32"), (floats(3), whole(2))),
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x, y], dtype="int32", casting="unsafe"),
        (floats(3), whole(2)),
    ),
    Case("concatenate", into_out, (floats(7, 2), whole(7, 4)), sparse=False),
    Case("concatenate", lambda xp: xp.concatenate([]), ()),
    Case(
        "concatenate",
        lambda xp, x, y: xp.concatenate([x[:, n : n + 1] for n in range(40)] + [y], 1),
        (floats(300, 40), floats(300, 1)),
        tolerance=0,
        large=(floats(9000, 40), floats(9000, 1)),
    ),
    Case("concatenate", lambda xp, x: xp.concatenate([x, x.T, x]), (odd(6, 6),), tolerance=0),
    Case(
        "stack",
        lambda xp, x, y: xp.stack([x, y]),
        (floats(3, 4), whole(3, 4)),
        large=(floats(40000), floats(40000)),
    ),
    Case("stack", lambda xp, x, y: xp.stack((x, y, x), axis=-1), (floats(3, 4), floats(3, 4))),
    Case("stack", lambda xp, x, y: xp.stack((x, y), 1), (floats(5), truths(5)), tolerance=0),
    Case("stack", lambda xp, x, y: xp.stack((x, y)), (floats(), floats())),
    Case("stack", lambda xp, x, y: xp.stack((x, y)), (floats(2), floats(3))),
    Case("stack", lambda xp, x: xp.stack(x), (floats(2, 3),)),
    Case("stack", lambda xp, x: xp.stack(x, axis=1), (floats(2, 3, 4),), tolerance=0),
    Case("concatenate", lambda xp, x: xp.concatenate(x), (floats(4, 3, 2),), tolerance=0),
    Case("concatenate", lambda xp, x: xp.concatenate(x, 1, dtype="f4"), (floats(4, 3, 2),)),
    Case("concatenate", lambda xp, x: xp.concatenate(x), (floats(4, 3),)),
    Case("concatenate", lambda xp, x: xp.concatenate(x, axis=1), (floats(4, 3),)),
    Case("vstack", lambda xp, x: xp.vstack(x), (floats(4, 3),), tolerance=0),
    Case("hstack", lambda xp, x: xp.hstack(x), (floats(4, 3, 2),), tolerance=0),
    Case("hstack", lambda xp, x, y: xp.hstack((x, y)), (floats(4, 3), floats(4, 2)), tolerance=0),
    Case("hstack", lambda xp, x, y: xp.hstack((x, y)), (floats(4), floats()), tolerance=0),
    Case("vstack", lambda xp, x, y: xp.vstack((x, y)), (floats(4), floats(2, 4))),
    Case("vstack", lambda xp, x, y: xp.vstack((x, y), dtype="f4"), (floats(4), floats(4))),
    Case("dstack", lambda xp, x, y: xp.dstack((x, y)), (floats(4, 3), floats(4, 3))),
    Case("dstack", lambda xp, x, y: xp.dstack((x, y)), (floats(4), floats(4))),
    Case("column_stack", lambda xp, x, y: xp.column_stack((x, y)), (floats(4), floats(4, 3))),
    Case(
        "block",
        lambda xp, x, y: xp.block([[x, y], [y.T, xp.ones((2, 2))]]),
        (floats(5, 5), floats(5, 2)),
        tolerance=1e-12,
    ),
    Case("block", lambda xp, x: xp.block([x, x, 1.0]), (floats(5),)),
    Case("block", lambda xp, x: xp.block(x), (floats(5),)),
    Case("block", lambda xp, x: xp.block([[[x]], [[x]]]), (floats(2, 2),)),
    Case("block", lambda xp, x: xp.block([[x], x]), (floats(2, 2),)),
    Case("block", lambda xp, x: xp.block([[x], []]), (floats(2, 2),)),
    Case("append", lambda xp, x, y: xp.append(x, y), (floats(5, 2), floats(3))),
    Case("append", lambda xp, x: xp.append(x, 7), (floats(5),)),
    Case("append", lambda xp, x, y: xp.append(x, y, 1), (floats(5, 2), floats(5, 3)), tolerance=0),
    Case("split", lambda xp, x: xp.split(x, 3), (floats(9, 2),), tolerance=0),
    Case("split", lambda xp, x: xp.split(x, [2, 5, 20], axis=1), (floats(2, 9),), tolerance=0),
    Case("split", lambda xp, x: xp.split(x, 4), (floats(9),)),
    Case("array_split", lambda xp, x: xp.array_split(x, 4), (floats(9),), tolerance=0),
    Case("array_split", lambda xp, x: xp.array_split(x, 5, 1), (floats(2, 3),), tolerance=0),
    Case("array_split", lambda xp, x: xp.array_split(x, 0), (floats(2, 3),)),
    Case("hsplit", lambda xp, x: xp.hsplit(x, 2), (floats(3, 4),), tolerance=0),
    Case("hsplit", lambda xp, x: xp.hsplit(x, [1, 3]), (floats(4),), tolerance=0),
    Case("vsplit", lambda xp, x: xp.vsplit(x, [1]), (floats(3, 4),), tolerance=0),
    Case("vsplit", lambda xp, x: xp.vsplit(x, [1]), (floats(3),)),
    Case("dsplit", lambda xp, x: xp.dsplit(x, 2), (floats(3, 2, 4),), tolerance=0),
    Case("unstack", lambda xp, x: xp.unstack(x), (floats(3, 4),)),
    Case("unstack", lambda xp, x: xp.unstack(x, axis=-1), (floats(2, 3, 4),), tolerance=0),
    Case("unstack", lambda xp, x: xp.unstack(x), (floats(),)),
]
