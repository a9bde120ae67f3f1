"""Calls that slide along an array: convolutions, correlations, windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

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


def rolled(name: str, window: int, least: int | None, **options: Any) -> Any:
    """Return the call of a rolling window, as pandas and matnb have it."""

    def call(xp: Any, x: Any) -> Any:
        if xp is not np:
            return getattr(xp.rolling(x, window, least), name)(**options)
        frame = pd.Series(x) if x.ndim == 1 else pd.DataFrame(x)
        return getattr(frame.rolling(window, min_periods=least), name)(**options).to_numpy()

    return call


def _with_gaps(*shape: int) -> Any:
    def make(rng: np.random.Generator) -> np.ndarray:
        return np.where(rng.random(shape) < 0.3, np.nan, rng.integers(-8, 9, shape) / 4)

    return make


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
    *(
        Case("rolling", rolled(name, window, least, **options), (make,), large=large)
        for name, options, large in (
            ("sum", {}, (floats(200000),)),
            ("mean", {}, ()),
            ("min", {}, ()),
            ("max", {}, ()),
            ("std", {}, ()),
            ("var", {"ddof": 0}, ()),
        )
        for window, least, make in (
            (3, None, floats(20)),
            (4, 2, _with_gaps(20)),
            (1, 0, whole(7)),
            (30, 1, _with_gaps(20)),
            (5, None, floats(13, 4)),
        )
    ),
]
