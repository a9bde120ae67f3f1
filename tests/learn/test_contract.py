"""Every estimator of mn.learn that takes rows keeps the contract that others' estimators keep."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import matnb as mn
from matnb.learn.estimator import Estimator
from matnb.testing import EstimatorTests

X = np.random.default_rng(0).normal(size=(36, 4))
NUMBERS = X @ [1.0, -2.0, 0.5, 3.0] + 1.0
CLASSES = (NUMBERS > 1).astype(np.int64)
COUNTS = np.random.default_rng(5).poisson(2.0, (36, 4)).astype(float)
pytestmark = pytest.mark.session("two workers")
Make = Callable[[], Any]
learn = mn.learn
SGD: dict[str, Any] = {"max_iter": 2, "tol": None, "random_state": 0}
TAUGHT: dict[str, tuple[Make, np.ndarray, np.ndarray | None]] = {
    "KMeans": (lambda: learn.KMeans(3, random_state=0), X, None),
    "MiniBatchKMeans": (lambda: learn.MiniBatchKMeans(2, random_state=0, max_iter=3), X, None),
    "IncrementalPCA": (lambda: learn.IncrementalPCA(2), X, None),
    "LatentDirichletAllocation": (
        lambda: learn.LatentDirichletAllocation(2, max_iter=2, random_state=0), COUNTS, None
    ),
    "MiniBatchNMF": (lambda: learn.MiniBatchNMF(2, max_iter=2, random_state=0), COUNTS, None),
    "NMF": (lambda: learn.NMF(2, max_iter=5, random_state=0), COUNTS, None),
    "PCA": (lambda: learn.PCA(2), X, None),
    "TruncatedSVD": (lambda: learn.TruncatedSVD(2, random_state=0), X, None),
    "GLM": (lambda: learn.GLM(), X, NUMBERS),
    "Learner": (lambda: learn.Learner(learn.models.GeneralizedLinear()), X, NUMBERS),
    "ElasticNet": (lambda: learn.ElasticNet(0.1), X, NUMBERS),
    "Lasso": (lambda: learn.Lasso(0.1), X, NUMBERS),
    "LinearRegression": (lambda: learn.LinearRegression(), X, NUMBERS),
    "LogisticRegression": (lambda: learn.LogisticRegression(), X, CLASSES),
    "PoissonRegressor": (lambda: learn.PoissonRegressor(), X, COUNTS[:, 0]),
    "Ridge": (lambda: learn.Ridge(), X, NUMBERS),
    "SGDClassifier": (lambda: learn.SGDClassifier("log_loss", **SGD), X, CLASSES),
    "SGDRegressor": (lambda: learn.SGDRegressor(**SGD), X, NUMBERS),
    "NearestNeighbors": (lambda: learn.NearestNeighbors(), X, None),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::matnb.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", TAUGHT)
class TestEveryEstimator(EstimatorTests):
    @pytest.fixture(autouse=True)
    def taught(self, name: str) -> None:
        self.name = name

    def make(self) -> Any:
        return TAUGHT[self.name][0]()

    def data(self) -> tuple[np.ndarray, np.ndarray | None]:
        _, rows, targets = TAUGHT[self.name]
        return rows.copy(), None if targets is None else targets.copy()


def test_all_that_take_rows_are_there():
    all_of_them = {
        name for name, one in vars(mn.learn).items() if inspect.isclass(one) and issubclass(one, Estimator)
    }
    # of a matrix of users and items, and of a graph's edges
    assert all_of_them - set(TAUGHT) == {"ALS", "ItemSimilarity", "SpectralEmbedding"}
