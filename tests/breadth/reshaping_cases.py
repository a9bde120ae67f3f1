"""Calls that put elements in another shape."""

from __future__ import annotations

from breadth.case import Case, floats, odd, truths, whole

CASES = [
    Case(
        "reshape",
        lambda xp, x: xp.reshape(x, (250, 3, 400)),
        (floats(500, 600),),
        large=(floats(500, 600),),
    ),
    Case(
        "reshape",
        lambda xp, x: xp.reshape(x, (-1, 77)),
        (floats(77, 30),),
        tolerance=0,
        large=(floats(3, 77000),),
    ),
    Case("reshape", lambda xp, x: xp.reshape(x, (6, -1, 1, 5)), (odd(10, 1, 12),), tolerance=0),
    Case("reshape", lambda xp, x: xp.reshape(x, (4, 6), order="F"), (floats(3, 8),), tolerance=0),
    Case("reshape", lambda xp, x: xp.reshape(x, (1, 24, 1), "F"), (whole(2, 3, 4),), tolerance=0),
    Case("reshape", lambda xp, x: xp.reshape(x, (3, 0, 2)), (floats(0, 5),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (0, 7)), (floats(5, 0),)),
    Case("reshape", lambda xp, x: xp.reshape(x, ()), (floats(1, 1),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (1, 1)), (floats(),)),
    Case("reshape", lambda xp, x: xp.reshape(x, 12), (floats(3, 4),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (1, 12)), (floats(12, 1),), tolerance=0),
    Case("reshape", lambda xp, x: xp.reshape(x, (-1, 5)), (floats(3, 4),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (-1, 0)), (floats(3, 0),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (-1, -1)), (floats(3, 4),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (2.0, 6)), (floats(3, 4),)),
    Case("reshape", lambda xp, x: xp.reshape(xp.reshape(x, (3, 4)), (2, 6)), (truths(2, 2, 3),)),
    Case("reshape", lambda xp, x: xp.reshape(x, (50, 1000)) + 1, (floats(1000, 50),), tolerance=0),
    Case("ravel", lambda xp, x: xp.ravel(x), (odd(7, 9),), large=(floats(4, 70000),)),
    Case("ravel", lambda xp, x: xp.ravel(x, "F"), (whole(7, 3, 2),), tolerance=0),
    Case("ravel", lambda xp, x: xp.ravel(x), (floats(3, 0),)),
    Case("ravel", lambda xp, x: xp.ravel(x), (floats(),)),
]

MOVES = [
    Case("flip", lambda xp, x: xp.flip(x), (floats(5, 4),), tolerance=0, large=(floats(30000, 5),)),
    Case("flip", lambda xp, x: xp.flip(x, axis=1), (floats(5, 4, 3),), tolerance=0),
    Case("flip", lambda xp, x: xp.flip(x, (0, -1)), (odd(0, 4),), tolerance=0),
    Case("flip", lambda xp, x: xp.flip(x, 2), (floats(5, 4),)),
    Case("fliplr", lambda xp, x: xp.fliplr(x), (floats(5, 4),), tolerance=0),
    Case("fliplr", lambda xp, x: xp.fliplr(x), (floats(5),)),
    Case("flipud", lambda xp, x: xp.flipud(x), (floats(5, 4),), tolerance=0),
    *(Case("rot90", lambda xp, x, k=k: xp.rot90(x, k), (floats(3, 4),), tolerance=0) for k in range(-1, 4)),
    Case("rot90", lambda xp, x: xp.rot90(x, 1, (2, 0)), (floats(3, 4, 2),), tolerance=0),
    Case("rot90", lambda xp, x: xp.rot90(x, 1, (1, 1)), (floats(3, 4),)),
    Case("roll", lambda xp, x: xp.roll(x, 3), (floats(10),), tolerance=0, large=(floats(200000),)),
    Case("roll", lambda xp, x: xp.roll(x, -2), (floats(4, 3),)),
    Case("roll", lambda xp, x: xp.roll(x, (1, 2), axis=(0, 1)), (floats(4, 3),), tolerance=0),
    Case("roll", lambda xp, x: xp.roll(x, 5, axis=(0, 1, 0)), (odd(4, 3),), tolerance=0),
    Case("roll", lambda xp, x: xp.roll(x, 1, 1), (floats(4, 0),)),
    Case("roll", lambda xp, x: xp.roll(x, (1, 2)), (floats(7),)),
    Case("roll", lambda xp, x: xp.roll(x, 1, 2), (floats(4, 3),)),
    Case("tile", lambda xp, x: xp.tile(x, 3), (floats(5),), tolerance=0),
    Case("tile", lambda xp, x: xp.tile(x, 40), (floats(3, 5),), tolerance=0, large=(floats(3000, 5),)),
    Case("tile", lambda xp, x: xp.tile(x, (40, 1)), (floats(3, 5),), tolerance=0),
    Case("tile", lambda xp, x: xp.tile(x, (300, 1)), (floats(1, 2),), tolerance=0),
    Case("tile", lambda xp, x: xp.tile(x, (2, 1, 3)), (floats(3, 2),)),
    Case("tile", lambda xp, x: xp.tile(x, (2, 20)), (floats(3, 2, 2),), tolerance=0),
    Case("tile", lambda xp, x: xp.tile(x, (0, 2)), (floats(3, 2),)),
    Case("tile", lambda xp, x: xp.tile(x, ()), (floats(3, 2),)),
    Case("tile", lambda xp, x: xp.tile(x, 20), (floats(),)),
    Case("tile", lambda xp, x: xp.tile(x, -1), (floats(3, 2),)),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, 0, -1), (floats(2, 3, 4),), tolerance=0),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, (2, 0), (0, 1)), (floats(2, 3, 4),), tolerance=0),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, (2, 0), (0,)), (floats(2, 3, 4),)),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, (0, 0), (0, 1)), (floats(2, 3, 4),)),
    *(
        Case("rollaxis", lambda xp, x, k=k: xp.rollaxis(x, 1, k), (floats(2, 3, 4),), tolerance=0)
        for k in (-1, 0, 2, 3, 4)
    ),
    Case("swapaxes", lambda xp, x: xp.swapaxes(x, 0, -1), (floats(2, 3, 4),), tolerance=0),
    Case("permute_dims", lambda xp, x: xp.permute_dims(x, (1, 0, 2)), (floats(2, 3, 4),), tolerance=0),
    Case("transpose", lambda xp, x: xp.transpose(x), (floats(),)),
    Case("transpose", lambda xp, x: xp.transpose(x, (1, -2)), (floats(4, 3),), tolerance=0),
    Case("transpose", lambda xp, x: xp.transpose(x, (0, 0)), (floats(4, 3),)),
    Case("matrix_transpose", lambda xp, x: xp.matrix_transpose(x), (floats(2, 4, 3),), tolerance=0),
    Case("matrix_transpose", lambda xp, x: xp.matrix_transpose(x), (floats(4),)),
    Case("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), (floats(3, 1),)),
    Case("broadcast_to", lambda xp, x: xp.broadcast_to(x, (3, 2)), (floats(3),)),
    Case("broadcast_arrays", lambda xp, x, y: xp.broadcast_arrays(x, y, 1.0), (floats(3, 1), floats(4))),
    Case("expand_dims", lambda xp, x: xp.expand_dims(x, (0, -1)), (floats(3, 2),)),
    Case("expand_dims", lambda xp, x: xp.expand_dims(x, 3), (floats(3, 2),)),
    Case("squeeze", lambda xp, x: xp.squeeze(x), (floats(1, 3, 1),), tolerance=0),
    Case("squeeze", lambda xp, x: xp.squeeze(x, -1), (floats(3, 1),)),
    Case("squeeze", lambda xp, x: xp.squeeze(x, 0), (floats(3, 1),)),
    *(
        Case(name, lambda xp, x, y, name=name: getattr(xp, name)(x, y, 3.0), (floats(), floats(4)))
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ),
    *(
        Case(name, lambda xp, x, name=name: getattr(xp, name)(x), (floats(3, 4),))
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ),
    Case("size", lambda xp, x: (xp.size(x), xp.size(x, 1), xp.ndim(x), xp.shape(x)), (floats(3, 4),)),
]
CASES += MOVES
