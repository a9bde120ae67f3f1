"""Logistic regression by Newton's method and by L-BFGS, against those of scikit-learn and dask-ml."""

from __future__ import annotations

import warnings
from functools import partial

import dask
import dask.array as da
import dask_ml.linear_model
import numpy as np
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from harness.threads import blas_threads, by_threads
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import matnb as mn

ROWS, COLUMNS, SMALL_ROWS, SMALL_COLUMNS = 1_000_000, 32, 2_000, 8
STEPS = 10  # of Newton's method, all of which labels that are nearly told apart need
TOLERANCE = 1e-3  # of coefficients, where fits end
# Targets: of the seconds of the best peer.
NEWTON, LBFGS = 0.6, 1.0
DASK = 0.2
OF_DASK = {"newton-cholesky": "newton", "lbfgs": "lbfgs"}  # what dask-ml calls solvers


class Fits:
    """Fits to labels of each round, which are drawn by the rows' true logits of a certain size."""

    def __init__(self, bench: Bench, X: np.ndarray, size: float) -> None:
        self._bench, self._X, self._stored = bench, X, mn.asarray(X).persist()
        self._in_blocks = da.from_array(X, chunks=(-(-len(X) // 8), X.shape[1]))
        slopes = np.random.default_rng(2).normal(size=X.shape[1])
        self._logits = size * (X @ (slopes / np.linalg.norm(slopes)))

    def labels(self, number: int) -> np.ndarray:
        """Return the labels of a round."""
        drawn = np.random.default_rng(number).random(len(self._logits))
        return (drawn < 1 / (1 + np.exp(-self._logits))).astype(np.int64)

    def compare(self, name: str, target: float, **options: float | str) -> None:
        """Time matnb's estimator and scikit-learn's with the same arguments, and compare coefficients."""
        iterations: dict[str, set[int]] = {"matnb": set(), "scikit-learn": set()}

        def ours(y: mn.DistArray) -> np.ndarray:
            model = mn.learn.LogisticRegression(**options).fit(self._stored, y)
            iterations["matnb"].add(model.n_iter_)
            return model.coef_.compute()

        def theirs(y: np.ndarray) -> np.ndarray:
            model = LogisticRegression(**options).fit(self._X, y)
            iterations["scikit-learn"].add(int(model.n_iter_[0]))
            return model.coef_

        contender, call = public(ours, lambda number: mn.asarray(self.labels(number)).persist())
        peer = Contender(f"scikit-learn, {options['solver']}", theirs, self.labels, tolerance=TOLERANCE)
        rows, columns = self._X.shape
        text = f"{name}, X {rows:,} x {columns}, stored, labels drawn in each round"
        with warnings.catch_warnings():
            # Steps of Newton's method are counted, not ended.
            for category in (ConvergenceWarning, mn.errors.ConvergenceWarning):
                warnings.simplefilter("ignore", category)
            self._bench.compare(
                Claim(name, text, target),
                [contender, *by_threads(peer, blas_threads)],
                lambda: (*call.notes(), f"iterations: {iterations}"),
            )
            dask_peer = Contender(
                f"dask-ml, {options['solver']}, {THREADS} threads",
                partial(self._by_dask, **options),
                self._dask_labels,
                tolerance=None,  # of its L-BFGS: it ends where it wants
            )
            self._bench.compare(
                Claim(f"{name}, against dask-ml", text, DASK), [contender, dask_peer], call.notes
            )

    def _dask_labels(self, number: int) -> da.Array:
        return da.from_array(self.labels(number), chunks=self._in_blocks.chunks[0])

    def _by_dask(
        self, y: da.Array, solver: str, C: float = 1.0, tol: float = 1e-4, max_iter: int = 100
    ) -> object:
        with dask.config.set(scheduler="threads", num_workers=THREADS):
            model = dask_ml.linear_model.LogisticRegression(
                solver=OF_DASK[solver], C=C, tol=tol, max_iter=max_iter
            )
            return model.fit(self._in_blocks, y).coef_


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        rows, columns = bench.sized(ROWS, SMALL_ROWS), bench.sized(COLUMNS, SMALL_COLUMNS)
        X = np.random.default_rng(1).normal(size=(rows, columns))
        Fits(bench, X, 30.0).compare(
            f"logistic regression, {STEPS} steps of Newton's method", NEWTON,
            solver="newton-cholesky", C=1e6, tol=1e-12, max_iter=STEPS,
        )  # fmt: skip
        Fits(bench, X, 2.0).compare("logistic regression, L-BFGS", LBFGS, solver="lbfgs")


if __name__ == "__main__":
    main()
