"""Linear models learn the same on any threads, workers, processes and cuts, and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Library, cut, library

import matnb as mn
from matnb.learn.linear.linear_model import LinearModel

N, P = 47, 4
RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(N, P)) * (RNG.random((N, P)) < 0.7)
ROWS = {"dense": DENSE, "sparse": sp.csr_array(DENSE)}
LOGITS = DENSE @ RNG.normal(size=(P, 3)) + RNG.gumbel(size=(N, 3))
TARGETS = {"two": (LOGITS[:, 0] > 0) * 1, "three": LOGITS.argmax(axis=1), "numbers": LOGITS[:, 0]}
TARGETS["counts"] = RNG.poisson(np.exp(LOGITS[:, 1] / 3))
CUTS = (0, 1, 9, 10, N)
MODELS: dict[str, tuple[Callable[[], LinearModel], str]] = {
    "LinearRegression": (lambda: mn.learn.LinearRegression(tol=1e-12), "numbers"),
    "Ridge": (lambda: mn.learn.Ridge(tol=1e-12), "numbers"),
    "Lasso": (lambda: mn.learn.Lasso(0.1, tol=1e-10), "numbers"),
    "ElasticNet": (lambda: mn.learn.ElasticNet(0.1, tol=1e-10), "numbers"),
    "lbfgs": (lambda: mn.learn.LogisticRegression(tol=1e-9), "two"),
    "newton-cholesky": (lambda: mn.learn.LogisticRegression(tol=1e-9, solver="newton-cholesky"), "two"),
    "multinomial": (lambda: mn.learn.LogisticRegression(tol=1e-9, solver="newton-cholesky"), "three"),
    "PoissonRegressor": (lambda: mn.learn.PoissonRegressor(tol=1e-9), "counts"),
}
# Transposed products and those of dense rows are not promised to the last bit.
TOLERANCE = 1e-6


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], np.ndarray]:
    with mn.start(workers=1, threads=1):
        found = {
            (name, kind): model().fit(X, TARGETS[target]).coef_.compute()
            for name, (model, target) in MODELS.items()
            for kind, X in ROWS.items()
        }
    mn.stop()
    return found


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_the_same(session: Library, expected: dict, name: str, kind: str) -> None:
    model, target = MODELS[name]
    fitted = model().fit(cut(ROWS[kind], CUTS), TARGETS[target], sample_weight=np.ones(N))
    (found,) = session.values(fitted.coef_)
    np.testing.assert_allclose(found, expected[name, kind], rtol=TOLERANCE, atol=TOLERANCE)


def test_predictions_of_sparse_rows_have_the_same_bits(session: Library) -> None:
    model = mn.learn.Ridge().fit(DENSE, TARGETS["numbers"])
    model.coef_, model.intercept_ = mn.asarray([0.1, 0.7, -0.3, 1.9]), mn.asarray(0.3)
    (found,) = session.values(model.predict(cut(ROWS["sparse"], CUTS)))
    (other,) = session.values(model.predict(mn.asarray(ROWS["sparse"])))
    assert found.tobytes() == other.tobytes()
