"""How many threads a peer may use: contexts in which it is timed, and a peer with one thread and with two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import cache, partial

import numba
from threadpoolctl import ThreadpoolController

from harness.comparison import Contender
from harness.inputs import THREADS

Limit = Callable[[int], AbstractContextManager[object]]
COUNTS = (1, THREADS)


@cache
def _controller() -> ThreadpoolController:
    # Finding the libraries takes milliseconds; those imported later are not found, so peers come first.
    return ThreadpoolController()


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Limit BLAS, and OpenMP as scikit-learn uses it."""
    limit: AbstractContextManager[object] = _controller().limit(limits=count)
    return limit


@contextmanager
def numba_threads(count: int) -> Iterator[None]:
    """Limit loops that Numba runs in parallel."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(count, before))
    try:
        yield
    finally:
        numba.set_num_threads(before)


@contextmanager
def graphblas_threads(count: int) -> Iterator[None]:
    """Limit GraphBLAS."""
    import graphblas as gb

    before = gb.ss.config["nthreads"]
    gb.ss.config["nthreads"] = count
    try:
        yield
    finally:
        gb.ss.config["nthreads"] = before


def by_threads(peer: Contender, limit: Limit, counts: Sequence[int] = COUNTS) -> list[Contender]:
    """Return a peer once for each number of threads, which its name tells."""
    return [
        replace(peer, name=f"{peer.name}, {count} thread{'s' * (count > 1)}", within=partial(limit, count))
        for count in counts
    ]
