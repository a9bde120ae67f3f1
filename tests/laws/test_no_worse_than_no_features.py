"""A fitted model is no worse than the model of no features, in any unit, or a warning says so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as by_scipy

import matnb as mn
from matnb.errors import ConvergenceWarning, OptionError
from matnb.learn.linear.linear_losses import LinearLoss

ROWS = 120
SOLVERS = ("lbfgs", "newton-cholesky")
# What people have in columns, as origin and spread.
COLUMNS = {
    "minutes of a day": (1800.0, 1000.0),
    "years": (2005.0, 10.0),
    "populations": (0.0, 4e7),
    "seconds since 1970": (1.6e9, 1e7),
    "nanoseconds since 1970": (1.6e18, 1e16),
    "mole": (0.0, 1e-9),
    "meters and light years": (0.0, np.array([1.0, 1e16])),
}

pytestmark = pytest.mark.session("two threads")


def drawn(column: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return columns, and the same ones with mean 0 and variance 1."""
    origin, spread = COLUMNS[column]
    Z = np.random.default_rng(seed).normal(size=(ROWS, 2))
    X = origin + spread * Z
    deviations = X - X.mean(axis=0)
    return X, deviations / np.sqrt((deviations**2).mean(axis=0))


def targets(model: str, Z: np.ndarray, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    linear = Z @ [0.8, -0.5] + 0.3
    if model == "poisson":
        return rng.poisson(np.exp(linear + 1))
    if model == "two":
        return (linear + rng.logistic(size=len(Z)) > 0).astype(int)
    return (np.stack([linear, -linear, 0 * linear], axis=1) + rng.gumbel(size=(len(Z), 3))).argmax(axis=1)


def fitted(model: str, solver: str, X: Any, y: np.ndarray, **options: Any) -> Any:
    if model == "poisson":
        options.setdefault("alpha", 0)
        return mn.learn.PoissonRegressor(solver=solver, **options).fit(X, y)
    options.setdefault("C", np.inf)
    return mn.learn.LogisticRegression(solver=solver, **options).fit(X, y)


def mean_loss(model: str, estimator: Any, X: Any, y: np.ndarray) -> float:
    """Return the mean of minus the logarithm of how likely targets are, but for what only they have."""
    if model == "poisson":
        mean = np.asarray(estimator.predict(X))
        return float((mean - y * np.log(mean)).mean())
    return float(-np.log(np.asarray(estimator.predict_proba(X))[np.arange(len(y)), y]).mean())


def least_loss(model: str, Z: np.ndarray, y: np.ndarray) -> float:
    """Return the least one, as SciPy finds it in columns of mean 0 and variance 1."""
    ones = np.column_stack([Z, np.ones(len(Z))])

    def loss(w: np.ndarray) -> float:
        if model == "poisson":
            return float((np.exp(ones @ w) - y * (ones @ w)).mean())
        margins = ones @ w.reshape(3, -1)
        margins = np.column_stack([0 * margins[:, 0], margins[:, 0]]) if model == "two" else margins.T
        margins = margins if model == "two" else margins.T
        return float((np.logaddexp.reduce(margins, axis=1) - margins[np.arange(len(y)), y]).mean())

    return float(by_scipy(loss, np.zeros(9 if model != "poisson" else 3), method="BFGS").fun)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("model", ["poisson", "two", "three"])
def test_both_solvers_find_the_least_loss_whatever_columns_count(model: str, column: str) -> None:
    X, Z = drawn(column)
    y = targets(model, Z)
    expected = least_loss(model, Z, y)
    for solver in SOLVERS:
        # Warnings are errors here.
        estimator = fitted(model, solver, X, y, tol=1e-6)
        assert mean_loss(model, estimator, X, y) == pytest.approx(expected, abs=1e-6), solver
        assert estimator.n_iter_ <= 30


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_feature_up_to_3600_is_no_overflow(solver: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 3600, size=(500, 1))
    y = rng.poisson(np.exp(X[:, 0] / 1800))
    assert mn.learn.PoissonRegressor(alpha=0, solver=solver).fit(X, y).score(X, y) > 0.4


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_penalty_and_weights_count_as_before_in_any_unit(solver: str, fit_intercept: bool) -> None:
    # A penalty is of the coefficients as they are, so that a unit of its own is a penalty of its own.
    from sklearn.linear_model import PoissonRegressor

    rng = np.random.default_rng(3)
    X = np.where(rng.random((ROWS, 3)) < 0.5, rng.normal(size=(ROWS, 3)), 0) * [1, 30, 0.01]
    y, weights = rng.poisson(np.exp(0.3 * X[:, 0])), rng.random(ROWS)
    options = {"alpha": 0.3, "tol": 1e-9, "fit_intercept": fit_intercept}
    theirs = PoissonRegressor(solver="newton-cholesky", **options).fit(X, y, weights)
    for rows in (X, sp.csr_array(X)):
        ours = mn.learn.PoissonRegressor(solver=solver, **options).fit(rows, y, weights)
        np.testing.assert_allclose(ours.coef_.compute(), theirs.coef_, rtol=1e-5, atol=1e-7)
        assert float(ours.intercept_) == pytest.approx(float(theirs.intercept_), abs=1e-6)


def test_columns_of_one_number_and_copies_of_columns() -> None:
    X, Z = drawn("years")
    y = targets("poisson", Z)
    expected = least_loss("poisson", Z, y)
    for columns in ([X, np.full((ROWS, 1), 0.1)], [X, 12 * X], [X, np.zeros((ROWS, 2))]):
        for solver in SOLVERS:
            rows = np.column_stack(columns)
            estimator = fitted("poisson", solver, rows, y, tol=1e-6)
            assert mean_loss("poisson", estimator, rows, y) == pytest.approx(expected, abs=1e-6)


def steep(scale: float) -> tuple[Any, Any, Any]:
    """Return a loss that overflows a step away from 0, its gradient and its Hessian: least at 1 / scale."""
    e = np.e
    return (
        lambda x: (np.exp(scale * x) - e * scale * x).sum(),
        lambda x: scale * (np.exp(scale * x) - e),
        lambda x: mn.diag(scale**2 * np.exp(scale * x)),
    )


@pytest.mark.parametrize("scale", [1.0, 3600.0, 1e9, 1e15])
@pytest.mark.parametrize("method", ["L-BFGS", "newton", "cg"])
def test_an_overflow_on_the_way_does_not_end_a_search(method: str, scale: float) -> None:
    loss, gradient, hessian = steep(scale)
    found = mn.learn.minimize(loss, gradient, np.zeros(2), method, hessian=hessian, tol=1e-6 * scale)
    np.testing.assert_allclose(found.x.compute() * scale, [1, 1], rtol=1e-5)
    assert bool(found.converged)


WRONG = {
    "a gradient of the wrong sign": (lambda x: ((x - 3) ** 2).sum(), lambda x: -2 * (x - 3)),
    "a loss that is no number but there": (
        lambda x: np.where((x == 0).all(), 1.0, np.nan), lambda x: 2 * (x - 3),
    ),
    "a step in the loss": (lambda x: np.where(x[0] > 0, 2.0, 1.0) + 0 * x.sum(), lambda x: x * 0 - 5.0),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("method", ["L-BFGS", "newton", "cg"])
def test_a_search_that_fails_says_so_and_leaves_the_best_point(method: str, name: str) -> None:
    loss, gradient = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        before = float(loss(mn.zeros(2)))
    found = mn.learn.minimize(
        loss, gradient, np.zeros(2), method, hessian=lambda x: mn.asarray(2 * np.eye(2))
    )
    with pytest.warns(ConvergenceWarning):
        _, value, _, converged = mn.compute(*found)
    assert value <= before * (1 + 1e-9)
    assert not converged


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_estimator_warns_where_its_search_fails(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # No data make this one fail, so that its gradient is spoiled.
    of = LinearLoss.gradient
    monkeypatch.setattr(LinearLoss, "gradient", lambda loss, x: -of(loss, x))
    X, Z = drawn("years")
    with pytest.warns(ConvergenceWarning, match="no step lowers the loss"):
        estimator = fitted("poisson", solver, X, targets("poisson", Z))
    y = targets("poisson", Z)
    none = float((y.mean() - y * np.log(y.mean())).mean())
    assert mean_loss("poisson", estimator, X, y) <= none + 1e-9


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", ["two", "several", "poisson"])
def test_features_whose_squares_overflow_are_refused(model: str, solver: str, kind: Any) -> None:
    Z = np.random.default_rng(0).normal(size=(ROWS, 2))
    with pytest.raises(OptionError, match="squares of feature 1 are beyond float64"):
        fitted(model, solver, kind(Z * [1.0, 1e160]), targets(model, Z))


def test_ridge_of_features_whose_products_overflow_is_refused() -> None:
    Z = np.random.default_rng(0).normal(size=(ROWS, 2))
    model = mn.learn.Ridge()
    with pytest.raises(OptionError, match="products of features are beyond float64"):
        model.fit(Z * [1.0, 1e160], Z[:, 0]).coef_.compute()


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", ["two", "three", "poisson"])
@pytest.mark.parametrize("unit", [1e20, 3e30])
def test_squares_of_single_precision_are_not_out_of_range(unit: float, model: str, solver: str) -> None:
    # No square of such a number is one of float32.
    _, Z = drawn("years")
    X, y = (unit * Z).astype(np.float32), targets(model, Z)
    dense, sparse = (fitted(model, solver, rows, y) for rows in (X, sp.csr_array(X)))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-3)
    assert np.isfinite(dense.coef_).all()
    assert (np.asarray(dense.coef_) != 0).all()
