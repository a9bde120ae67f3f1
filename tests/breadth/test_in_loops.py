"""Several families in the body of one loop, on both engines, and the same over other data again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matnb as mn

N = 48_000  # in three blocks
PLACES = np.random.default_rng(1).integers(0, N, N)
KEYS = np.random.default_rng(2).integers(0, 50, N)


def rearranged(xp: Any, x: Any) -> Any:
    y = xp.concatenate([xp.sort(x)[N // 2 :], x[: N // 2]])
    y = xp.roll(y, 7) + xp.reshape(y, (300, 160)).T.reshape(-1)
    return xp.pad(x[PLACES] - xp.median(y), 2, mode="edge")[2:-2] * 0.5 + xp.repeat(y[: N // 2], 2)


def told(xp: Any, x: Any) -> Any:
    y = xp.cumsum(x) / N + xp.searchsorted(xp.sort(x), x) / N + xp.diff(x, prepend=0)
    matrix = xp.reshape(y, (480, 100))
    order = xp.argsort(matrix, axis=1, kind="stable")
    matrix = xp.take_along_axis(matrix, order, axis=1) - xp.argmax(matrix, axis=1)[:, None] / 100
    counts = xp.histogram(x, bins=10, range=(-3, 3))[0]
    return matrix.reshape(-1) + xp.where(xp.isin(xp.round(x), [1.0, 2.0]), counts[2] / N, x)


def grouped(xp: Any, x: Any) -> Any:
    if xp is np:
        sums = np.bincount(KEYS, weights=x, minlength=50)
        return np.cos(x) * 0.5 + sums[KEYS] / N
    return mn.map_blocks(np.cos, x, dtype=x.dtype, pure=True) * 0.5 + mn.groupby(KEYS, 50).sum(x)[KEYS] / N


# The second time from the plan of the first.
@pytest.mark.parametrize(("engine", "times"), [("dask", 2), ("gang", 1)])
def test_families_in_the_body_of_a_loop(engine: str, times: int) -> None:
    with mn.start(workers=3, threads=1, engine=engine):
        for seed in range(times):
            x = np.random.default_rng(seed).standard_normal(N)
            for body in (rearranged, told, grouped):
                expected = x
                for _ in range(3):
                    expected = body(np, expected)
                found, taken = mn.iterate(lambda y: body(mn, y), mn.asarray(x), max_iterations=3)  # noqa: B023
                np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-9)
                assert int(taken) == 3
    mn.stop()
