"""Small pieces of code, timed in a process of their own; ``python -m harness.snippets NAME`` runs one.

Each has a set-up, which makes the function that is timed: given a number it computes something that no call
before has computed.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import matnb as mn
from harness.cells import TURNS, asking_loop, run_warm_cell, twenty_operations
from harness.inputs import THREADS
from harness.processors import Stopwatch

WARM_CALLS, CALLS = 10, 30
Call = Callable[[Any], Any]


def _fresh(number: int, *shape: int) -> mn.DistArray:
    return mn.asarray(np.random.default_rng(number).random(shape)).persist()


def _search(scale: int) -> tuple[Callable[[int], int], Call]:
    A = mn.random.rmat(scale=scale, seed=1).persist()
    able = np.flatnonzero(np.diff(A.to_scipy().indptr))
    return lambda number: int(able[number]), lambda source: mn.graph.bfs(A, source).levels.compute()


def _product() -> tuple[Callable[[int], mn.DistArray], Call]:
    A = mn.random.rmat(scale=16, seed=1).persist()
    return lambda number: _fresh(number, 2**16, 8), lambda X: (A @ X).persist()


# By name: what makes the input of a call, and the call.
SNIPPETS: dict[str, Callable[[], tuple[Callable[[int], Any], Call]]] = {
    "sum": lambda: (lambda number: _fresh(number, 1000), lambda x: float(x.sum())),
    "cell": lambda: (
        lambda number: [_fresh(2 * number + one, 32, 32) for one in (0, 1)],
        lambda given: run_warm_cell(given, twenty_operations),
    ),
    "loop": lambda: (
        lambda number: _fresh(number, 1000),
        lambda x: mn.iterate(lambda s: s * 0.5 + 1.0, x, max_iterations=1)[0].compute(),
    ),
    "long_loop": lambda: (
        lambda number: _fresh(number, 1000),
        lambda x: mn.iterate(lambda s: s * 0.5 + x, x, max_iterations=500)[0].compute(),
    ),
    f"asking_{TURNS}_turns": lambda: (lambda number: _fresh(number, 1000), asking_loop),
    "bfs_2^10": lambda: _search(10),
    "bfs_2^16": lambda: _search(16),
    "product_8": _product,
}


def measured(name: str, calls: int = CALLS) -> tuple[float, float]:
    """Return the medians of the wall seconds of a call and of its seconds of processors."""
    watch, found = Stopwatch(), []
    with mn.start(threads=THREADS):
        prepare, call = SNIPPETS[name]()
        for number in range(WARM_CALLS + calls):
            given = prepare(number)
            mn.memo.clear()
            watch.start()
            call(given)
            found.append(watch.stop())
    wall, cpu = zip(*found[WARM_CALLS:], strict=True)
    return statistics.median(wall), statistics.median(cpu)


if __name__ == "__main__":
    print(json.dumps({"matnb": mn.__file__, "seconds": measured(sys.argv[1])}))
