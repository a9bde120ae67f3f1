"""``matnb compile``: small cells as users write them, run once so that their loops are compiled and kept."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from matnb.blocks.kernels.compiled import compile_always
from matnb.graph import betweenness, bfs, connected_components, pagerank, sssp, triangle_count
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray, full, ones
from matnb.lazy.functions.ordering import topk
from matnb.lazy.loop import iterate
from matnb.lazy.random import rmat
from matnb.learn import LinearRegression
from matnb.nested import from_lists
from matnb.session import start
from matnb.session.machine_code import making
from matnb.tables.table import table

_LENGTH = 2000
_CHECKED_SECONDS = 0.5


def compile_commonest(tell: Callable[[int, int], None] = lambda number, of: None) -> bool:
    """Run the cells, so that later processes find their machine code; False where another process does.

    Parameters
    ----------
    tell
        Called before each cell, with its number from 1 and how many there are.
    """
    with making() as is_mine:
        if is_mine:
            compile_always()
            with start(workers=1, threads=2, memo="off"):
                for number, cell in enumerate(CELLS, 1):
                    tell(number, len(CELLS))
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
    ranks = pagerank(rmat(scale=11, seed=1)).ranks
    topk(ranks, 3)[0].compute()  # which its picture shows


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


def _description() -> None:
    draws = np.random.default_rng(0)
    for length in (_LENGTH, 70_000):  # of one block, and of several
        values = np.where(draws.random(length) < 0.1, np.nan, draws.random(length))
        kinds = {"number": values, "whole": np.arange(length), "text": np.arange(length).astype(str)}
        repr(table({**kinds, "time": np.arange(length).astype("M8[s]"), "truth": values > 0.5}).describe())


def _iterated() -> None:
    A = rmat(scale=11, seed=1)
    degree = A.sum(axis=1)
    share = np.where(degree > 0, 1 / np.maximum(degree, 1), 0.0)

    def step(rank: DistArray) -> DistArray:
        lost = (rank * (degree == 0)).sum()
        new: DistArray = 0.15 / len(rank) + 0.85 * (A.T @ (rank * share) + lost / len(rank))
        return new

    rank = full(A.shape[0], 1 / A.shape[0])
    for _ in range(3):
        new = step(rank)
        float(abs(new - rank).sum())
        rank = new
    iterate(step, rank, until=lambda old, new: abs(new - old).sum() < 1e-10, max_iterations=9)[0].compute()


def _segments() -> None:
    N = from_lists([[3.0, 1.0], [], [2.0], [5.0, 4.0]])
    for found in (N.sum(), N.cumsum(), N - N.mean(), N[N > 2].sort()):
        found.tolist()


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
    _table,
    _iterated,
    _description,
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
    _segments,
    _sparse_algebra,
    _paths,
    _triangles,
    _betweenness,
)
