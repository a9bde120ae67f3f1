"""A @ X with few columns, beyond the caches: against SciPy, and a loop that anybody would write in Numba."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS, equal_entry_cuts, rmat, side_by_side
from harness.sessions import PublicCall, public
from harness.statistics import duration

import matnb as mn

SCALE = 20
WIDTHS = (1, 2, 4, 8, 16)
TARGETS = {8: 0.35}
PROCESSES_WIDTH = 8
MOST_SPREAD = 1.2  # of the slowest run and the median
PARTS = 16


def plain_loop(width: int) -> Callable[..., None]:
    """Return a compiled loop over rows with a sum for each column, which stay in registers.

    Numba has no constant that unrolls a loop over an array, so the sums are written out.
    """
    zeros, adds, stores = (
        "; ".join(form.format(one) for one in range(width))
        for form in ("s{0} = 0.0", "s{0} += X[column, {0}]", "found[row, {0}] = s{0}")
    )
    text = f"""
def rows(pointers, columns, X, found, begin, end):
    for row in range(begin, end):
        {zeros}
        for place in range(pointers[row], pointers[row + 1]):
            column = columns[place]
            {adds}
        {stores}
"""
    names: dict[str, Any] = {}
    exec(text, names)
    compiled: Callable[..., None] = numba.njit(nogil=True)(names["rows"])
    return compiled


def by_hand(graph: sp.csr_array, width: int, pool: ThreadPoolExecutor) -> Contender:
    """Return the plain loop over parts of equal entries, on two threads; it reads no values, as matnb."""
    rows = plain_loop(width)
    parts = list(itertools.pairwise(equal_entry_cuts(graph.indptr, PARTS)))

    def run(X: np.ndarray) -> np.ndarray:
        found = np.empty(X.shape)
        side_by_side(pool, lambda part: rows(graph.indptr, graph.indices, X, found, *part), parts)
        return found

    return Contender(
        f"Numba, a plain loop, {THREADS} threads", run, lambda n: factor(graph, width, n), judged=False
    )


def factor(graph: sp.csr_array, width: int, number: int) -> np.ndarray:
    """Return X of a round."""
    return np.random.default_rng(number).random((graph.shape[1], width))


def spread_notes(call: PublicCall) -> tuple[str, ...]:
    """Say how long each run took, and how far the slowest is from the median."""
    spread = max(call.seconds) / statistics.median(call.seconds)
    outcome = "holds" if spread <= MOST_SPREAD else "missed"
    runs = ", ".join(map(duration, call.seconds))
    return (
        *call.notes(),
        f"runs: {runs}; the slowest is {spread:.2f} of the median, at most {MOST_SPREAD:g}: {outcome}",
    )


def compare(bench: Bench, graph: sp.csr_array, width: int, processes: int, pool: ThreadPoolExecutor) -> None:
    A = mn.random.rmat(scale=bench.scale, seed=1).persist()
    ours, call = public(
        lambda X: (A @ X).persist(),
        lambda number: mn.asarray(factor(graph, width, number)).persist(),
        lambda result: result.compute(),
    )
    scipy = Contender("SciPy, 1 thread", lambda X: graph @ X, lambda number: factor(graph, width, number))
    over = "" if processes == 1 else f", {processes} processes x 1 thread"
    bench.compare(
        Claim(
            f"A @ X, {width} columns, 2^{bench.scale}{over}",
            f"(A @ X).persist() on persisted A and X, R-MAT 2^{bench.scale}, {graph.nnz:,} entries, "
            f"{width} columns{over}",
            TARGETS.get(width) if processes == 1 else None,
        ),
        [ours, scipy, by_hand(graph, width, pool)],
        lambda: spread_notes(call),
    )


def main() -> None:
    bench = Bench(__doc__, scale=SCALE)
    with ThreadPoolExecutor(THREADS) as pool:
        with mn.start(threads=THREADS):
            graph = rmat(bench.scale)
            for width in WIDTHS:
                compare(bench, graph, width, 1, pool)
        with mn.start(workers=THREADS, threads=1, processes=True):
            compare(bench, graph, PROCESSES_WIDTH, THREADS, pool)


if __name__ == "__main__":
    main()
