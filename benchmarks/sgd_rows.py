"""Stochastic gradients row by row, the default of SGDClassifier and SGDRegressor, against scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness.comparison import Bench, Claim, Contender
from harness.inputs import THREADS
from harness.sessions import public
from sklearn import linear_model

import matnb as mn

FEW, MANY, SMALL_MANY = 500, 100_000, 4_000
FEW_TARGET, MANY_TARGET = 3.0, 1.0  # of the seconds of scikit-learn
WORSE = 0.08  # that share of a score may differ: rows come in another order


def drawn(rows: int, features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and numbers that follow from them but for noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    return X, X @ rng.normal(size=features) + rng.normal(size=rows)


def words(rows: int, features: int = 20_000, entries: int = 20) -> tuple[sp.csr_array, np.ndarray]:
    """Return sparse rows, and numbers that follow from them but for noise."""
    rng = np.random.default_rng(1)
    columns = np.sort(rng.integers(0, features, (rows, entries)), axis=1).astype(np.int32)
    starts = np.arange(0, rows * entries + 1, entries, dtype=np.int32)
    X = sp.csr_array((rng.normal(size=rows * entries), columns.ravel(), starts), shape=(rows, features))
    X.sum_duplicates()
    return X, X @ rng.normal(size=features) + rng.normal(size=rows)


def compare(bench: Bench, name: str, kind: str, X: Any, y: np.ndarray, target: float) -> None:
    """Time fits with default arguments, each round with another seed, and compare scores."""

    def fitted(library: Any) -> Callable[[int], Any]:
        def fit(number: int) -> Any:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return getattr(library, kind)(random_state=number).fit(X, y)

        return fit

    def score(model: Any) -> float:
        return float(model.score(X, y))

    ours, call = public(fitted(mn.learn), value=score)
    peer = Contender("scikit-learn", fitted(linear_model), value=score, tolerance=WORSE)
    work = f"{X.shape[0]:,} x {X.shape[1]:,} given from this process, default arguments, a seed a round"
    bench.compare(Claim(name, work, target), [ours, peer], call.notes)


def main() -> None:
    bench = Bench(__doc__)
    with mn.start(threads=THREADS):
        X, y = drawn(FEW, 2)
        compare(bench, "SGDClassifier, few rows", "SGDClassifier", X, (y > 0).astype(int), FEW_TARGET)
        compare(bench, "SGDRegressor, few rows", "SGDRegressor", X, y, FEW_TARGET)
        rows = bench.sized(MANY, SMALL_MANY)
        X, y = drawn(rows, 20)
        compare(bench, "SGDClassifier row by row", "SGDClassifier", X, (y > 0).astype(int), MANY_TARGET)
        compare(bench, "SGDRegressor row by row", "SGDRegressor", X, y, MANY_TARGET)
        S, z = words(rows)
        name = "SGDClassifier row by row, sparse"
        compare(bench, name, "SGDClassifier", S, (z > 0).astype(int), MANY_TARGET)


if __name__ == "__main__":
    main()
