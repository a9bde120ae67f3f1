"""Fresh processes that call one public function, are interrupted at a moment, and call it again; for tests.

``python tests/laws/first_call.py NAME [MOMENTS]`` prints a line of JSON for each process: how long the first
call took, what came of it, and whether the second one gave the right value. Nothing interrupts the first
process; those after it, as many as MOMENTS, are interrupted at moments of the time that it took.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import sparse

import matnb as mn
from matnb.calls.boundary import whole_traceback
from matnb.calls.frames import passes_through_own

AIMED_SECONDS = 5e-3  # an interrupt of less may strike the timer's own start
N = 400
DENSE = np.arange(float(N)) / N
SPARSE = sp.random_array((N, N), density=0.05, rng=1, format="csr")
UNDIRECTED = sp.csr_array(SPARSE + SPARSE.T)
LARGE = np.ones(9_000_000)  # above what is copied when it is given: sent to the workers at once


def x() -> mn.DistArray:
    return mn.asarray(DENSE, blocks=2)


def A() -> mn.DistArray:
    return mn.asarray(SPARSE, blocks=2)


def sparse_value(value: sparse.GCXS) -> np.ndarray:
    # Not by its todense(), which compiles machine code that is not matnb's.
    return np.asarray(sp.csr_array((value.data, value.indices, value.indptr), shape=value.shape).toarray())


def saved_and_loaded(ending: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/A{ending}"
        mn.save(A(), path)
        return sparse_value(mn.load(path).compute())


def slept(block: np.ndarray) -> np.ndarray:
    time.sleep(0.3)
    return block + 1


def started(**settings: object) -> float:
    mn.start(**settings)  # type: ignore[arg-type]
    return float(x().sum())


# Each is called first in a fresh process, without a session that was started before.
CALLS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "compute, dense": (lambda: (x() * 2).compute(), lambda: DENSE * 2),
    "compute, sparse": (lambda: sparse_value((A() * 2).compute()), lambda: (SPARSE * 2).toarray()),
    "to_scipy": (lambda: (A() * 2).to_scipy().toarray(), lambda: (SPARSE * 2).toarray()),
    "float": (lambda: float(x().sum()), lambda: DENSE.sum()),
    "persist": (lambda: np.asarray((x() + 1).persist()), lambda: DENSE + 1),
    "large array": (lambda: float(mn.asarray(LARGE).sum()), lambda: 9e6),
    "sparse product": (lambda: (A() @ A()).to_scipy().toarray(), lambda: (SPARSE @ SPARSE).toarray()),
    "product": (lambda: (A() @ x()).compute(), lambda: SPARSE @ DENSE),
    "iterate": (
        lambda: mn.iterate(lambda y: 0.1 * (A() @ y) + 1, x(), max_iterations=2)[0].compute(),
        lambda: 0.1 * (SPARSE @ (0.1 * (SPARSE @ DENSE) + 1)) + 1,
    ),
    "sort": (lambda: np.sort(-x()).compute(), lambda: np.sort(-DENSE)),
    "unique": (lambda: np.unique(np.floor(x() * 9)).compute(), lambda: np.unique(np.floor(DENSE * 9))),
    "boolean index": (lambda: x()[x() > 0.5].compute(), lambda: DENSE[DENSE > 0.5]),
    "groupby": (
        lambda: mn.groupby((x() * 9).astype(int)).sum(x()).compute(),
        lambda: np.bincount((DENSE * 9).astype(int), DENSE),
    ),
    "map_blocks": (
        lambda: mn.map_blocks(slept, x()).compute(),
        lambda: DENSE + 1,
    ),
    "random": (
        lambda: float(mn.random.default_rng(0).random(N).max() < 1.0),
        lambda: 1.0,
    ),
    "rmat": (lambda: mn.random.rmat(scale=6, seed=1).shape, lambda: (64, 64)),
    "npz": (lambda: saved_and_loaded(".npz"), SPARSE.toarray),
    "mtx": (lambda: saved_and_loaded(".mtx"), SPARSE.toarray),
    "pagerank": (lambda: float(mn.graph.pagerank(A()).ranks.sum()), lambda: 1.0),
    "bfs": (lambda: mn.graph.bfs(A(), 0)[0].compute().shape, lambda: (N,)),
    "eigsh": (
        lambda: np.asarray(mn.linalg.eigsh(mn.asarray(UNDIRECTED, blocks=2), k=1)[0]),
        lambda: sp.linalg.eigsh(UNDIRECTED, k=1)[0],
    ),
    "explain": (lambda: len((A() @ x()).explain()) > 0, lambda: True),
    "visualize": (lambda: len(mn.visualize(A() @ x()).text) > 0, lambda: True),
    "repr": (lambda: "400" in (A() @ x())._repr_mimebundle_()["text/html"], lambda: True),
    "repartition": (
        lambda: mn.repartition(A(), n=3).to_scipy().toarray(),
        SPARSE.toarray,
    ),
    "processes": (lambda: started(workers=2, processes=True), lambda: DENSE.sum()),
    "interpret": (
        lambda: (mn.start(engine="interpret"), sparse_value((A() @ A()).compute()))[1],
        lambda: (SPARSE @ SPARSE).toarray(),
    ),
}


def called(name: str, seconds: float | None) -> dict[str, object]:
    call, oracle = CALLS[name]
    outcome, begin = "returned", time.perf_counter()
    try:
        if seconds is not None:
            timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            begin = time.perf_counter()
        call()
        taken = time.perf_counter() - begin
        if seconds is not None:
            timer.cancel()
    except KeyboardInterrupt as error:
        taken = time.perf_counter() - begin
        is_matnbs = isinstance(error, mn.CellCancelled) or passes_through_own(whole_traceback(error))
        outcome = type(error).__name__ if is_matnbs else "between calls"
    except Exception as error:  # whatever it is stands in the line that is printed
        taken = time.perf_counter() - begin
        outcome = f"{type(error).__name__}: {error}"
    try:
        again = call()
        is_right = bool(np.allclose(again, oracle()))  # type: ignore[arg-type]
        why = "" if is_right else "another value"
    except BaseException as error:
        is_right, why = False, f"{type(error).__name__}: {error}"[:300]
    mn.stop()
    return {"seconds": taken, "outcome": outcome, "right": is_right, "why": why}


def apart(name: str, seconds: float | None) -> dict[str, object]:
    """Call in a process that is forked from this one, which has imported all and called nothing."""
    reading, writing = os.pipe()
    if not os.fork():
        with os.fdopen(writing, "w") as told:
            json.dump(called(name, seconds), told)
        sys.exit()
    os.close(writing)
    with os.fdopen(reading) as heard:
        found: dict[str, object] = json.load(heard)
    if os.wait()[1]:
        raise ChildProcessError(f"the process that called {name} failed")
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    name, num_moments = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    undisturbed = apart(name, None)
    print(json.dumps(undisturbed))
    taken = float(undisturbed["seconds"])  # type: ignore[arg-type]
    for number in range(num_moments if taken > AIMED_SECONDS else 0):
        moment = taken * (number + 0.5) / num_moments
        print(json.dumps({"moment": moment, **apart(name, moment)}))
