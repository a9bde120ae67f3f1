"""The minimum of a loss, against SciPy's, and what a search along a line promises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as by_scipy
from scipy.optimize import rosen, rosen_der, rosen_hess

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, OptionError, ShapeError
from matnb.learn.linear.linear_losses import LinearLoss, half_logistic, half_poisson
from matnb.learn.linear.multinomial_loss import MultinomialLoss
from matnb.learn.optimize.line_search import Point, along

METHODS = ("L-BFGS", "newton", "cg")

pytestmark = pytest.mark.session("one thread")


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def its_gradient(x):
    bends = x[1:] - x[:-1] ** 2
    first = mn.concatenate([-400 * x[:-1] * bends - 2 * (1 - x[:-1]), mn.zeros(1)])
    return first + mn.concatenate([mn.zeros(1), 200 * bends])


def its_hessian(x):
    return mn.replicated(rosen_hess, x, like=np.zeros((x.shape[0],) * 2))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [2, 7])
def test_a_valley_that_bends(method, n):
    x0 = np.linspace(-1.2, 1.0, 2) if n == 2 else np.linspace(0.3, 1.5, n)  # there is another minimum near -1
    found = mn.learn.minimize(rosenbrock, its_gradient, x0, method, hessian=its_hessian, tol=1e-7)
    x, loss, taken, converged = mn.compute(*found)
    expected = by_scipy(rosen, x0, jac=rosen_der, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-7})
    assert loss == pytest.approx(rosen(x), abs=1e-12)
    np.testing.assert_allclose(x, expected.x, atol=1e-3 if method == "cg" else 1e-6)
    assert converged
    if method == "L-BFGS":
        assert abs(taken - expected.nit) <= 0.3 * expected.nit


def quadratic(seed, n=5, spread=3.0):
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = Q @ np.diag(10 ** rng.uniform(0, spread, n)) @ Q.T
    b = rng.normal(size=n)
    return A, b, np.linalg.solve(A, b)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15)
def test_a_quadratic_has_its_minimum_where_the_system_is_solved(seed):
    A, b, solution = quadratic(seed)
    M = mn.asarray(A)
    for method in METHODS:
        found = mn.learn.minimize(
            lambda x: x @ (M @ x) / 2 - b @ x, lambda x: M @ x - b, np.zeros(5), method, hessian=lambda x: M,
            tol=1e-9, max_iterations=500,
        )  # fmt: skip
        np.testing.assert_allclose(found.x.compute(), solution, atol=1e-5)
        if method == "newton":
            assert int(found.n_iterations) <= 2


@given(
    seed=st.integers(0, 10_000), t=st.sampled_from([1e-3, 1.0, 50.0]), curvature=st.sampled_from([0.1, 0.9])
)
@settings(max_examples=20)
def test_a_search_ends_where_both_conditions_hold(seed, t, curvature):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=4)

    def evaluate(x):
        return Point(x, (np.cos(x) * w).sum() + (x**2).sum() / 8, -np.sin(x) * w + x / 4)

    start = evaluate(mn.asarray(rng.normal(size=4) * 3))
    direction = -start.gradient
    slope = start.gradient @ direction
    point = along(evaluate, start, direction, slope, t, curvature)
    before, first, loss, end = mn.compute(start.loss, slope, point.loss, point.gradient @ direction)
    step = float(abs(point.x - start.x).max() / abs(direction).max())
    assert loss <= before + 1e-4 * step * first
    assert abs(end) <= curvature * abs(first)


def test_a_search_steps_back_from_where_the_loss_is_infinite():
    found = mn.learn.minimize(
        lambda x: (x - np.log(np.maximum(x, 1e-300))).sum() + np.where(x > 0, 0.0, np.inf).sum(),
        lambda x: 1 - 1 / np.where(x > 0, x, 1.0),
        np.array([0.01, 3.0]),
        tol=1e-8,
    )
    np.testing.assert_allclose(found.x.compute(), [1, 1], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_shrinkage_by_proximal_steps(scale):
    A, b, _ = quadratic(3, spread=1.5)
    M = mn.asarray(scale * A)

    def proximal(x, step):
        return np.sign(x) * np.maximum(abs(x) - 0.3 * scale * step, 0)

    found = mn.learn.minimize(
        lambda x: x @ (M @ x) / 2 - scale * b @ x, lambda x: M @ x - scale * b, np.zeros(5), "FISTA",
        proximal=proximal, tol=1e-9 * scale,
    )  # fmt: skip
    x = found.x.compute()
    gradient = A @ x - b
    # What a minimum is: the slope is undone by the sizes' own.
    np.testing.assert_allclose(gradient[x != 0], -0.3 * np.sign(x[x != 0]), atol=1e-7)
    assert (abs(gradient[x == 0]) <= 0.3 + 1e-7).all()
    assert 0 < (x == 0).sum() < 5
    assert bool(found.converged)


def test_starts_at_the_minimum():
    for method in METHODS:
        found = mn.learn.minimize(
            lambda x: x @ x, lambda x: 2 * x, np.zeros(3), method, hessian=lambda x: mn.asarray(2 * np.eye(3))
        )
        assert int(found.n_iterations) == 0
        assert bool(found.converged)


def test_newton_of_a_curvature_that_is_not_positive():
    found = mn.learn.minimize(
        lambda x: (x**4 / 4 - x**2 / 2).sum(), lambda x: x**3 - x, np.array([0.1, -0.2]), "newton",
        hessian=lambda x: mn.diag(3 * x**2 - 1), tol=1e-10,
    )  # fmt: skip
    np.testing.assert_allclose(found.x.compute(), [1, -1], atol=1e-8)


def test_too_few_iterations_are_warned_of():
    found = mn.learn.minimize(rosenbrock, its_gradient, np.array([-1.2, 1.0]), max_iterations=3)
    with pytest.warns(ConvergenceWarning, match="minimize has not converged after 3 iterations"):
        assert not bool(found.converged)


@pytest.mark.parametrize("method", ["L-BFGS", "cg"])
@pytest.mark.parametrize(
    ("loss", "gradient"),
    [(lambda x: (x**2).sum(), lambda x: -2 * x), (lambda x: np.log(x).sum(), lambda x: 1 / x)],
    ids=["another gradient", "unbounded"],
)
def test_a_search_that_finds_no_step_is_warned_of(method, loss, gradient):
    found = mn.learn.minimize(loss, gradient, np.ones(2), method)
    with pytest.warns(
        ConvergenceWarning, match="minimize has not converged.*no step lowers the loss"
    ) as said:
        x, converged, taken = mn.compute(found.x, found.converged, found.n_iterations)
    assert not converged
    assert len(said) == 1
    counted = "1 iteration;" if taken == 1 else f"{taken} iterations;"
    assert counted in str(said[0].message)
    assert np.isfinite(x).all()


@pytest.mark.parametrize("method", ["L-BFGS", "cg"])
def test_a_loss_that_changes_by_rounding_alone_has_converged(method):
    A, b, _ = quadratic(0)
    M = mn.asarray(A)
    found = mn.learn.minimize(
        lambda x: x @ (M @ x) / 2 - b @ x + 1e4, lambda x: M @ x - b, np.zeros(5), method, tol=0.0
    )
    assert bool(found.converged)
    assert int(found.n_iterations) < 1000
    assert float(abs(A @ found.x.compute() - b).max()) > 0


class TestGradientsAndHessians:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [True, False])
    @pytest.mark.parametrize("kind", ["logistic", "poisson", "multinomial"])
    def test_are_differences_of_losses(self, kind, weighted, fit_intercept):
        rng = np.random.default_rng(1)
        n, p, K = 30, 3, 3
        X = mn.asarray(rng.normal(size=(n, p)))
        weights = mn.asarray(rng.random(n)) if weighted else None
        rest = weights, 7.0, 0.3, fit_intercept
        if kind == "multinomial":
            loss = MultinomialLoss(X, mn.asarray(rng.integers(0, K, n)), K, *rest)
        else:
            pointwise = half_logistic if kind == "logistic" else half_poisson
            loss = LinearLoss(X, mn.asarray(rng.integers(0, 2, n) * 1.0), pointwise, *rest)
        size = (p + fit_intercept) * (K if kind == "multinomial" else 1)
        at, h = rng.normal(size=size), 1e-5

        def difference(function, k):
            step = h * np.eye(size)[k]
            ahead, behind = (np.asarray(function(mn.asarray(at + s))) for s in (step, -step))
            return (ahead - behind) / (2 * h)

        gradient = loss.gradient(mn.asarray(at)).compute()
        np.testing.assert_allclose(gradient, [difference(loss.loss, k) for k in range(size)], atol=1e-8)
        hessian = loss.hessian(mn.asarray(at)).compute()
        np.testing.assert_allclose(hessian, [difference(loss.gradient, k) for k in range(size)], atol=1e-8)


@pytest.mark.parametrize(
    ("options", "error", "wrong"),
    [
        ({"method": "BFGS"}, OptionError, "method='BFGS'; did you mean 'L-BFGS'"),
        ({"method": "newton"}, OptionError, "needs hessian="),
        ({"method": "FISTA"}, OptionError, "needs proximal="),
        ({"tol": -1.0}, OptionError, "tol=-1.0"),
        ({"max_iterations": -1}, OptionError, "max_iterations=-1"),
        ({"history": 0}, OptionError, "history=0"),
        ({"x0": np.zeros((2, 2))}, ShapeError, "x0 of shape"),
        ({"x0": np.zeros(2) * 1j}, DTypeError, "complex"),
        ({"loss": lambda x: x}, ShapeError, "loss returns shape"),
        ({"gradient": lambda x: x.sum()}, ShapeError, "gradient returns shape"),
    ],
)
def test_what_is_wrong(options, error, wrong):
    given = {"loss": lambda x: x @ x, "gradient": lambda x: 2 * x, "x0": np.zeros(2)} | options
    with pytest.raises(error, match=wrong):
        mn.learn.minimize(**given)
