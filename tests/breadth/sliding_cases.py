"""Calls that slide along an array: convolutions, correlations, windows."""

from __future__ import annotations

import numpy as np

from breadth.case import Case, Maker, floats, odd, truths, whole

sliding = np.lib.stride_tricks.sliding_window_view  # of handles it gives a handle


def complexes(*shape: int) -> Maker:
    """Return what makes an array of complex numbers."""
    return lambda rng: floats(*shape)(rng) + 1j * floats(*shape)(rng)


VECTORS: tuple[tuple[Maker, Maker], ...] = (
    (floats(17), floats(4)),
    (floats(3), floats(8)),
    (floats(6), floats(6)),
    (whole(9, dtype="int8"), whole(3)),
    (truths(8), truths(3)),
    (complexes(9), complexes(4)),
    (complexes(2), floats(5)),
)
CASES = [
    *(
        Case(name, lambda xp, a, v, name=name, mode=mode: getattr(xp, name)(a, v, mode), pair)
        for name in ("convolve", "correlate")
        for mode in ("full", "same", "valid")
        for pair in VECTORS
    ),
    Case("convolve", lambda xp, a: xp.convolve(a, [1, 2, 1]), (floats(9),), large=(floats(200000),)),
    Case("convolve", lambda xp, a: xp.convolve(a, 2), (floats(9),)),
    Case("convolve", lambda xp, a, v: xp.convolve(a, v, "none"), (floats(9), floats(3))),
    Case("convolve", lambda xp, a, v: xp.convolve(a, v), (floats(9), floats(0))),
    Case("convolve", lambda xp, a, v: xp.convolve(a, v), (floats(9), floats(3, 2))),
    Case("convolve", lambda xp, a, v: xp.convolve(a, v), (odd(20), odd(3))),
    *(
        Case(
            "sliding_window_view",
            lambda xp, x, name=name, keeps=keeps: getattr(sliding(x, 3), name)(axis=-1, keepdims=keeps),
            (maker,),
            tolerance=1e-5,
        )
        for name in ("sum", "prod", "min", "max", "any", "all", "mean", "std", "var")
        for maker, keeps in ((floats(11), False), (whole(8, dtype="int8"), True), (truths(8), False))
    ),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 3), (floats(11),)),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, (2, 3)), (floats(5, 6),)),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, (2, 2), (1, 1)), (floats(5, 6),)),
    Case(
        "lib.stride_tricks.sliding_window_view",
        lambda xp, x: sliding(x, (2, 3)).mean(axis=(2, 3)),
        (floats(5, 6),),
    ),
    Case(
        "lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, (2, 3)).sum(axis=3), (floats(5, 6),)
    ),
    Case(
        "lib.stride_tricks.sliding_window_view",
        lambda xp, x: sliding(x, 4, axis=0).max(axis=(0, -1)),
        (floats(9, 3),),
    ),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 3).sum(), (floats(11),)),
    Case(
        "lib.stride_tricks.sliding_window_view",
        lambda xp, x: np.median(sliding(x, 3), axis=-1),
        (floats(11),),
    ),
    Case(
        "lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 3) @ np.arange(3.0), (floats(11),)
    ),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 3).mean(axis=-1), (odd(11),)),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 12), (floats(11),)),
    Case("lib.stride_tricks.sliding_window_view", lambda xp, x: sliding(x, 3), (floats(4, 5),)),
    Case(
        "sliding_window_view",
        lambda xp, x: sliding(x, 50).mean(axis=-1),
        (floats(60),),
        large=(floats(200000),),
    ),
    Case(
        "lib.stride_tricks.sliding_window_view",
        lambda xp, x: sliding(x, 3) * 2,
        (floats(9),),
        large=(floats(200000),),
    ),
]
