"""Loops whose sparse state grows stop before memory is gone; those whose state fits are not refused."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.blocks.kernels.compiled import compile_always
from matnb.errors import TooLargeError

MEGABYTE = 10**6


def band(length: int, width: int) -> sp.csr_array:
    """Return a matrix with entries at and right of the diagonal, whose powers have more of them."""
    offsets = range(width)
    return sp.csr_array(sp.diags_array([1.0 / width] * width, offsets=offsets, shape=(length, length)))


def peak() -> int:
    """Return the most bytes that this process has held."""
    (line,) = (one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def squared(P: Any, iterations: int) -> Any:
    return mn.iterate(lambda P: P @ P, P, max_iterations=iterations)[0]


def summed(P: Any, iterations: int) -> Any:
    """Return the sum of powers, whose entries are as many more in each iteration."""

    def step(state: Any) -> Any:
        total, power = state
        return total + power, power @ P

    return mn.iterate(step, (P, P), max_iterations=iterations)[0][0]


def clustered(M: Any, iterations: int, threshold: float) -> Any:
    """Van Dongen, Graph Clustering by Flow Simulation, 2000: expand, inflate, prune."""

    def step(M: Any) -> Any:
        M = (M @ M) ** 2
        M = M / M.sum(axis=0, keepdims=True)
        return M.prune(threshold)

    return mn.iterate(step, M, max_iterations=iterations)[0]


def memory_of_growing(grown: Any, threads: int) -> int:
    """Return by how much the memory of this process grows until a loop is stopped, in bytes."""
    compile_always()
    A = band(100_000, 4)  # 5 MB
    with mn.start(workers=1, threads=threads, memory_limit="100MB"):
        P = mn.asarray(A).persist()
        grown(P, 2).persist()  # and all is compiled
        before = peak()
        with pytest.raises(TooLargeError, match=r"in a loop (store|may store)|of a loop have grown"):
            grown(P, 60).persist()
        return peak() - before


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.slow), 2])
@pytest.mark.parametrize("grown", [squared, summed])
def test_a_state_that_grows_stops_before_memory_is_gone(grown: Any, threads: int):
    # In a process of its own: in this one memory of other tests may have been taken, and be free.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as child:
        grew = child.submit(memory_of_growing, grown, threads).result()
    assert grew < (100 + 40) * MEGABYTE  # with what allocators keep


def test_what_fits_is_not_refused_for_what_it_might_store():
    # Of the third square's pairs one in seven has a place of its own: 200 MB at most, and 30 MB in fact.
    A = band(100_000, 4)
    with mn.start(workers=1, threads=2, memory_limit="100MB"):
        num_entries = squared(mn.asarray(A).persist(), 3).persist().nnz
    mn.stop()
    expected = A
    for _ in range(3):
        expected = expected @ expected
    assert num_entries == expected.nnz


def test_a_state_that_shrinks_is_not_refused():
    rng = np.random.default_rng(7)
    groups, size = 60, 60
    inside = sp.block_diag([rng.random((size, size)) for _ in range(groups)])
    between = sp.random_array((groups * size, groups * size), density=0.001, rng=rng) * 0.01
    A = sp.csr_array(inside + between)
    A = sp.csr_array(A / A.sum(axis=0)[None, :])
    with mn.start(workers=1, threads=2, memory_limit="250MB"):
        num_entries = clustered(mn.asarray(A).persist(), 12, 1e-3).persist().nnz
    mn.stop()
    assert num_entries < 0.1 * A.nnz
