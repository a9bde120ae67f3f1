"""Ten iterations of k-means from given centers, against scikit-learn and dask-ml from the same ones."""

from __future__ import annotations

import warnings
from typing import Any

import dask
import dask.array as da
import dask_ml.cluster
import numpy as np
import sklearn.cluster
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads, by_threads

import matnb as mn

ROWS, SMALL_ROWS, FEATURES, CLUSTERS, ITERATIONS = 1_000_000, 3_000, 32, 20, 10
TARGET = 1.0  # of the seconds of scikit-learn
TOLERANCE = 1e-8  # sums are taken in other orders


def rows_of(number: int) -> np.ndarray:
    """Return rows around as many places as there are clusters, which overlap, so that it takes long."""
    rng = np.random.default_rng(1)
    return (
        rng.normal(size=(number, FEATURES))
        + rng.normal(size=(CLUSTERS, FEATURES))[rng.integers(0, CLUSTERS, number)]
    )


def fitted(model: Any, X: Any) -> np.ndarray:
    """Return the inertia and the centers of a model after all its iterations, of which it may complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    assert model.n_iter_ == ITERATIONS
    return np.concatenate([[model.inertia_], np.asarray(model.cluster_centers_).ravel()])


def main() -> None:
    bench = Bench(__doc__)
    rows = bench.sized(ROWS, SMALL_ROWS)
    X = rows_of(rows)

    def start(number: int) -> np.ndarray:
        return X[np.random.default_rng(number).choice(rows, CLUSTERS, replace=False)]

    options: dict[str, Any] = {"n_clusters": CLUSTERS, "n_init": 1, "tol": 0.0, "max_iter": ITERATIONS}

    def of_scikit(init: np.ndarray) -> np.ndarray:
        return fitted(sklearn.cluster.KMeans(init=init, algorithm="lloyd", **options), X)

    in_blocks = da.from_array(X, chunks=(-(-rows // 8), FEATURES))

    def of_dask(init: np.ndarray) -> np.ndarray:
        with dask.config.set(scheduler="threads", num_workers=THREADS):
            model = dask_ml.cluster.KMeans(CLUSTERS, init=init, tol=0.0, max_iter=ITERATIONS).fit(in_blocks)
        return np.asarray(model.cluster_centers_)

    with mn.start(threads=THREADS):
        stored = mn.asarray(X).persist()
        ours, call = public(lambda init: fitted(mn.learn.KMeans(init=init, **options), stored), start)
        scikit = Contender("scikit-learn", of_scikit, start, tolerance=TOLERANCE)
        bench.compare(
            Claim(
                "k-means, Lloyd",
                f"{rows:,} x {FEATURES} doubles, stored, {CLUSTERS} clusters, {ITERATIONS} iterations "
                "from rows drawn in each round, then labels and inertia",
                TARGET,
            ),
            [
                ours,
                *by_threads(scikit, blas_threads),
                Contender(f"dask-ml, {THREADS} threads", of_dask, start, judged=False, tolerance=None),
            ],
            call.notes,
        )


if __name__ == "__main__":
    main()
