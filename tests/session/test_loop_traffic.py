"""What the workers of a loop send each other for a product with a matrix: rows that blocks touch."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.events import LoopFinished

N, WIDTH, ITERATIONS = 24_000, 20, 8


def graph(step: int, dtype: str) -> sp.csr_array:
    """Every so many columns have an entry in every third of the rows."""
    rng = np.random.default_rng(step)
    columns = np.tile(np.arange(0, N, step), 3)
    rows = np.concatenate([place * N // 3 + rng.integers(0, N // 3, columns.size // 3) for place in range(3)])
    return sp.csr_array((rng.random(rows.size), (rows, columns)), shape=(N, N)).astype(dtype)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 2, "threads": 1},
        {"workers": 3, "threads": 1},
        pytest.param({"workers": 2, "threads": 1, "processes": True}, marks=pytest.mark.cluster),
    ],
)
def test_only_rows_that_are_touched_travel(options: dict) -> None:
    count = options["workers"]
    cuts = [N * number // count for number in range(count + 1)]
    with mn.start(engine="gang", rebalance="off", **options) as session:
        loops: list[LoopFinished] = []
        session.subscribe(lambda event: loops.append(event) if isinstance(event, LoopFinished) else None)
        for dtype, step, share in (("float64", 4, 0.25), ("float32", 2, 0.5), ("float64", 1, 1)):
            A, X = graph(step, dtype), np.random.default_rng(1).random((N, WIDTH)).astype(dtype)
            a, x = (mn.asarray(one, blocks=[cuts, None]) for one in (A, X))
            found, _ = mn.iterate(lambda X, a=a: (a @ X) * 0.1 + 0.5, x, max_iterations=ITERATIONS)
            values = X
            for _ in range(ITERATIONS):
                values = (A @ values) * X.dtype.type(0.1) + X.dtype.type(0.5)
            np.testing.assert_allclose(found.compute(), values, rtol=1e-4 if dtype == "float32" else 1e-12)
            loop = loops.pop()
            wanted = sum((count - 1) * (stop - start) * share for start, stop in pairwise(cuts))
            assert loop.sent_bytes == pytest.approx(ITERATIONS * X[0].nbytes * wanted, rel=0.01)
            assert not any(loop.allocated[2:])
    mn.stop()
