"""``matnb compile``: small cells as users write them, run once so that their loops are compiled and kept."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from matnb.graph import betweenness, bfs, connected_components, pagerank, sssp, triangle_count
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, ones
from matnb.lazy.random import rmat
from matnb.learn import LinearRegression
from matnb.session import start
from matnb.session.machine_code import making
from matnb.tables.table import table

_LENGTH = 2000
_CHECKED_SECONDS = 0.5


def compile_commonest() -> bool:
    """Run the cells, so that later processes find their machine code; False where another process does."""
    with making() as is_mine:
        if is_mine:
            with start(workers=1, threads=2, memo="off"):
                for cell in CELLS:
                    cell()
    return is_mine


def compile_for(parent: int) -> None:
    """Do so as a child of a process, and end when that ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_CHECKED_SECONDS)
        os._exit(0)  # compiling cannot be interrupted; Numba gives files their names when they are whole

    threading.Thread(target=watch, daemon=True).start()
    compile_commonest()


def _matrix() -> DistArray:
    return asarray(sp.random_array((_LENGTH, _LENGTH), density=0.01, format="csr", rng=0))


def _vector() -> DistArray:
    return asarray(np.random.default_rng(0).random(_LENGTH), blocks=2)


def _elementwise() -> None:
    x = _vector()
    float((x * 2 + 1).sum())
    np.asarray(np.where(x > 0.5, np.exp(x), x))


def _product() -> None:
    (_matrix() @ _vector()).compute()


def _product_with_pattern() -> None:
    (rmat(scale=11, seed=1) @ ones(2**11)).compute()


def _transposed_product() -> None:
    A = _matrix()
    (A.T @ _vector()).compute()
    A.T.compute()


def _columns() -> None:
    (_matrix() @ ones((_LENGTH, 4))).compute()


def _sums_of_sparse() -> None:
    A = _matrix()
    for axis in (0, 1):
        A.sum(axis=axis).compute()
    float(A.sum())


def _statistics() -> None:
    x = _vector()
    _ = float(x.mean()), float(x.std()), float(x.min()), float(x.max())


def _pagerank() -> None:
    pagerank(rmat(scale=11, seed=1)).ranks.compute()


def _breadth_first() -> None:
    bfs(rmat(scale=11, seed=1), 0).levels.compute()


def _sums_of_dense() -> None:
    X = asarray(np.random.default_rng(0).random((_LENGTH, 20)), blocks=(2, 1))
    for axis in (0, 1):
        X.sum(axis=axis).compute()
        X.mean(axis=axis).compute()


def _table() -> None:
    draws = np.random.default_rng(0)
    zones = draws.integers(0, 9, _LENGTH)
    rows = table({"zone": zones.astype(str), "hour": zones % 4, "fare": draws.random(_LENGTH) + 1.0})
    rows = rows[rows["fare"] > 1.1]
    rows.groupby("zone")["fare"].mean().head()
    LinearRegression().fit(rows.to_matrix(["hour", "fare"]), rows["fare"]).coef_.compute()
    rows.pivot("zone", "hour", "fare").sum(axis=0).compute()


def _triangles() -> None:
    triangle_count(rmat(scale=11, seed=1)).compute()


def _sparse_algebra() -> None:
    A = _matrix()
    (A + A.T).compute()
    (A @ A).compute()
    (A * A).compute()


def _paths() -> None:
    A = rmat(scale=11, seed=1)
    sssp(A, 0).compute()
    connected_components(A).labels.compute()


def _betweenness() -> None:
    betweenness(rmat(scale=11, seed=1), sources=[0, 1]).compute()


# The commonest first: a user may type faster than they are compiled.
CELLS: tuple[Callable[[], None], ...] = (
    _elementwise,
    _product,
    _product_with_pattern,
    _transposed_product,
    _columns,
    _sums_of_sparse,
    _statistics,
    _pagerank,
    _breadth_first,
    _sums_of_dense,
    _table,
    _sparse_algebra,
    _paths,
    _triangles,
    _betweenness,
)
