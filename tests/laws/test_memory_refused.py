"""What cannot fit is refused before its first task, with the numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import TooLargeError
from matnb.events import RunFinished, RunStarted


def grown_graph(count: int, length: int) -> sp.csr_array:
    """Return a matrix with entries as a grown graph has them: few rows and columns have many."""
    rng = np.random.default_rng(5)
    rows, columns = (length * rng.random((2, count)) ** 3).astype(np.int32)
    return sp.csr_array((rng.random(count), (rows, columns)), shape=(length, length))


def test_a_sparse_product_beyond_the_limit_is_refused_before_it_runs() -> None:
    A = grown_graph(349_525, 43_690)  # 4 MB, whose square has 700 MB
    with mn.start(workers=1, threads=1, memory_limit="500MB") as session:
        x = mn.asarray(A, blocks=(4, 1)).persist()
        made: list[int] = []
        session.subscribe(
            lambda event: made.append(event.actual_bytes) if isinstance(event, RunFinished) else None
        )
        with pytest.raises(TooLargeError, match=r"needs about \d+.* MB on a worker .* the worker has 500"):
            (x @ x).persist()
        assert sum(made) < 2**23, "only what meets was counted"
    mn.stop()


@pytest.mark.parametrize(
    "product",
    [
        lambda x: x @ x,
        lambda x: x.T @ x,
        lambda x: (x + x.T) @ (x * 2),
        lambda x: (x @ x) @ x,
        lambda x: x @ x.T @ x,
    ],
)
def test_a_sparse_product_stores_no_more_than_was_projected(product: Callable[[Any], Any]) -> None:
    A = grown_graph(20_000, 9_000)
    expected = product(abs(A)).nnz
    with mn.start(workers=1, threads=2) as session:
        x = mn.asarray(A, blocks=(3, 1)).persist()
        projected: list[int] = []
        session.subscribe(
            lambda event: projected.append(event.projected_bytes) if isinstance(event, RunStarted) else None
        )
        found = product(x).persist()
        held = sum(session.stored(found._expression).block_nnz)
        assert held == expected
        assert 12 * held <= max(projected) <= 12 * 6 * held
    mn.stop()


def test_a_product_that_is_written_again_is_not_counted_again() -> None:
    A = grown_graph(20_000, 9_000)
    with mn.start(workers=1, threads=2, memo="off") as session:
        x = mn.asarray(A, blocks=(3, 1)).persist()
        runs: list[int] = []
        session.subscribe(
            lambda event: runs.append(event.num_tasks) if isinstance(event, RunFinished) else None
        )
        counts = []
        for _ in range(2):
            runs.clear()
            (x @ x).persist()
            counts.append(len(runs))
        assert counts == [2, 1]
    mn.stop()


@pytest.mark.slow
@pytest.mark.cluster
def test_what_a_worker_process_has_of_its_own_counts() -> None:
    with mn.start(workers=1, threads=1, processes=True, memory_limit="400MB") as session:
        (worker,) = before = session.cluster.workers
        assert 50e6 < worker.own_bytes <= worker.memory_limit_bytes / 2
        with pytest.raises(TooLargeError, match="the worker has 400 MB"):
            mn.sort(mn.random.default_rng(0).random(16_000_000)).persist()  # the worker was ended, and others
        assert session.cluster.workers == before
        assert float(mn.ones(1_000_000).sum()) == 1e6
    mn.stop()
