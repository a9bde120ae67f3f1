"""Linear models, against scikit-learn on the same data, and against coefficients that were published."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, NotFittedError, OptionError, ShapeError
from matnb.learn.linear.centering import centered, conjugate_least_squares

N, P = 200, 6
REGRESSORS = ("LinearRegression", "Ridge", "Lasso", "ElasticNet", "PoissonRegressor")
SOLVERS = ("lbfgs", "newton-cholesky")
# Arguments with which both come so near that coefficients are the same to six digits.
NEAR = {
    "LinearRegression": {"tol": 1e-12},
    "Ridge": {"alpha": 0.7, "tol": 1e-12},
    "Lasso": {"alpha": 0.1, "tol": 1e-12, "max_iter": 100_000},
    "ElasticNet": {"alpha": 0.1, "l1_ratio": 0.3, "tol": 1e-12, "max_iter": 100_000},
    "PoissonRegressor": {"alpha": 0.1, "tol": 1e-9, "max_iter": 1000},
}

pytestmark = pytest.mark.session("two threads")


class Drawn:
    """Rows with features of several scales and many zeros, and targets of each kind."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.X = rng.normal(size=(N, P)) * (rng.random((N, P)) < 0.6) * [1, 10, 0.1, 1, 2, 3]
        logits = self.X @ rng.normal(size=(P, 3)) / [1, 2, 3]
        self.y = logits[:, 0] + rng.normal(size=N) + 3
        self.Y = np.stack([self.y, logits[:, 1] + rng.normal(size=N)], axis=1)
        self.counts = rng.poisson(np.exp(np.clip(logits[:, 2] / 4, -2, 2)))
        self.three = np.array(["red", "green", "blue"])[(logits + rng.gumbel(size=(N, 3))).argmax(axis=1)]
        self.two = np.where(logits[:, 0] + rng.normal(size=N) > 0, 7, -3)
        self.weights = rng.random(N) * (rng.random(N) < 0.8)

    def targets(self, name: str) -> np.ndarray:
        return self.counts if name == "PoissonRegressor" else self.y


DRAWN = Drawn()
FORMATS = {"dense": lambda X: X, "sparse": sp.csr_array, "float32": lambda X: X.astype(np.float32)}


def check_same_fit(ours: object, theirs: object, tolerance: float = 1e-6) -> None:
    for name in ("coef_", "intercept_"):
        found, expected = np.asarray(getattr(ours, name)), np.asarray(getattr(theirs, name))
        assert found.shape == expected.shape
        if name == "coef_":
            assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


class TestRegressorsAgainstScikitLearn:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("name", REGRESSORS)
    def test_coefficients_and_what_follows_from_them(self, name, kind, weighted, fit_intercept):
        X, y = FORMATS[kind](DRAWN.X), DRAWN.targets(name)
        weights = DRAWN.weights if weighted else None
        options = NEAR[name] | {"fit_intercept": fit_intercept}
        if kind == "float32":
            options["tol"] = 1e-5
        ours = getattr(mn.learn, name)(**options).fit(X, y, sample_weight=weights)
        theirs = getattr(linear_model, name)(**options).fit(X, y, sample_weight=weights)
        tolerance = 1e-3 if kind == "float32" else 1e-6
        check_same_fit(ours, theirs, tolerance)
        assert ours.n_features_in_ == P
        np.testing.assert_allclose(
            ours.predict(X).compute(), theirs.predict(X), rtol=tolerance, atol=tolerance
        )
        assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights), abs=tolerance)

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize("rows", [4, N])
    @pytest.mark.parametrize("name", ["LinearRegression", "Ridge"])
    def test_several_targets_and_more_features_than_rows(self, name, rows, kind):
        X, Y = FORMATS[kind](DRAWN.X[:rows]), DRAWN.Y[:rows]
        ours = getattr(mn.learn, name)(**NEAR[name]).fit(X, Y)
        check_same_fit(ours, getattr(linear_model, name)(**NEAR[name]).fit(X, Y))
        assert ours.predict(X).shape == Y.shape

    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    @pytest.mark.parametrize("exponent", [-170, -160, -154, -150, -100])
    @pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
    def test_a_penalty_of_tiny_features_leaves_the_mean(self, name, exponent, kind):
        X, y = FORMATS[kind](DRAWN.X * 10.0**exponent), DRAWN.targets(name)
        ours, theirs = getattr(mn.learn, name)().fit(X, y), getattr(linear_model, name)().fit(X, y)
        check_same_fit(ours, theirs, 1e-12)
        np.testing.assert_array_equal(ours.coef_, 0.0)

    def test_a_small_penalty_goes_with_small_features(self):
        # alpha |w|_1 of X s: the coefficients of X at alpha / s, over s.
        X, y, scale = DRAWN.X, DRAWN.targets("Lasso"), 1e-100
        found = mn.learn.Lasso(0.1 * scale, tol=1e-9).fit(X * scale, y)
        expected = linear_model.Lasso(0.1, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(np.asarray(found.coef_) * scale, expected.coef_, rtol=1e-4, atol=1e-4)

    def test_a_penalty_for_each_target(self):
        alphas = np.array([0.1, 30.0])
        check_same_fit(
            mn.learn.Ridge(alphas).fit(DRAWN.X, DRAWN.Y), linear_model.Ridge(alphas).fit(DRAWN.X, DRAWN.Y)
        )

    @pytest.mark.parametrize("solver", ["cholesky", "sparse_cg"])
    @pytest.mark.parametrize("kind", ["dense", "sparse"])
    def test_solvers_of_ridge(self, kind, solver):
        X = FORMATS[kind](DRAWN.X)
        ours = mn.learn.Ridge(0.7, solver=solver, tol=1e-12).fit(X, DRAWN.y)
        check_same_fit(ours, linear_model.Ridge(0.7, tol=1e-12).fit(X, DRAWN.y))
        assert (ours.n_iter_ is None) == (solver == "cholesky")

    def test_columns_that_depend_on_each_other_give_the_shortest(self):
        X = np.concatenate([DRAWN.X, DRAWN.X[:, :2]], axis=1)
        ours = mn.learn.LinearRegression().fit(X, DRAWN.y)
        theirs = linear_model.LinearRegression().fit(X, DRAWN.y)
        check_same_fit(ours, theirs)
        assert ours.rank_ == theirs.rank_ == P
        np.testing.assert_allclose(ours.singular_.compute(), theirs.singular_, atol=1e-9)
        check_same_fit(mn.learn.Ridge(0.0).fit(X, DRAWN.y), theirs)

    @pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
    def test_no_coefficient_below_0(self, name):
        options = NEAR[name] | {"positive": True}
        ours = getattr(mn.learn, name)(**options).fit(DRAWN.X, DRAWN.y)
        check_same_fit(ours, getattr(linear_model, name)(**options).fit(DRAWN.X, DRAWN.y))
        assert (ours.coef_.compute() >= 0).all()

    @pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
    def test_the_gap_bounds_how_far_the_loss_is_above_the_least(self, name):
        def loss(model):
            residuals = DRAWN.y - np.asarray(model.predict(DRAWN.X))
            w, share = np.asarray(model.coef_), getattr(model, "l1_ratio", 1.0)
            sizes = share * abs(w).sum() + (1 - share) / 2 * w @ w
            return residuals @ residuals / (2 * N) + 0.1 * sizes

        exact = getattr(linear_model, name)(**NEAR[name]).fit(DRAWN.X, DRAWN.y)
        near = getattr(mn.learn, name)(**NEAR[name] | {"tol": 1e-2}).fit(DRAWN.X, DRAWN.y)
        centered = DRAWN.y - DRAWN.y.mean()
        assert 0 < loss(near) - loss(exact) <= float(near.dual_gap_) <= 1e-2 * centered @ centered / N

    @pytest.mark.parametrize("name", ["Lasso", "ElasticNet"])
    def test_the_gap_is_that_to_the_dual_loss_of_shrunk_residuals(self, name):
        model = getattr(mn.learn, name)(**NEAR[name] | {"tol": 0.9}).fit(DRAWN.X, DRAWN.y)
        w, share = np.asarray(model.coef_), getattr(model, "l1_ratio", 1.0)
        sizes, ridge = N * 0.1 * share, N * 0.1 * (1 - share)
        # The squares of coefficients are those of more rows, whose targets are 0.
        X = np.concatenate([DRAWN.X - DRAWN.X.mean(axis=0), np.sqrt(ridge) * np.eye(P)])
        y = np.concatenate([DRAWN.y - DRAWN.y.mean(), np.zeros(P)])
        residuals = y - X @ w
        shrunk = sizes / abs(X.T @ residuals).max()
        assert shrunk < 0.99
        feasible = residuals * shrunk
        primal = residuals @ residuals / 2 + sizes * abs(w).sum()
        dual = (y @ y - (y - feasible) @ (y - feasible)) / 2
        assert float(model.dual_gap_) == pytest.approx((primal - dual) / N, rel=1e-8)

    def test_many_features_are_gone_through_without_their_products(self, monkeypatch):
        monkeypatch.setattr("matnb.learn.linear.shrinkage.FEW", 3)
        for X in (DRAWN.X, sp.csr_array(DRAWN.X)):
            ours = mn.learn.Lasso(**NEAR["Lasso"] | {"tol": 1e-9}).fit(X, DRAWN.y, DRAWN.weights)
            theirs = linear_model.Lasso(**NEAR["Lasso"]).fit(X, DRAWN.y, DRAWN.weights)
            check_same_fit(ours, theirs, 1e-4)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_solvers_of_counts(self, solver):
        options = {"alpha": 0.0, "solver": solver, "tol": 1e-10}
        ours = mn.learn.PoissonRegressor(**options).fit(DRAWN.X, DRAWN.counts)
        theirs = linear_model.PoissonRegressor(**options).fit(DRAWN.X, DRAWN.counts)
        check_same_fit(ours, theirs)
        assert ours.n_iter_ < 2 * theirs.n_iter_


@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_sparse_rows_are_those_of_the_centered_ones(weighted):
    weights = DRAWN.weights if weighted else np.ones(N)
    mean = np.average(DRAWN.X, axis=0, weights=weights)
    whole = np.sqrt(weights)[:, None] * (DRAWN.X - mean)
    given = mn.asarray(weights) if weighted else None
    rows = centered(mn.asarray(sp.csr_array(DRAWN.X)), mn.asarray(DRAWN.Y), given, True)
    rng = np.random.default_rng(0)
    for shape in ((), (2,)):
        w, r = rng.normal(size=(P, *shape)), rng.normal(size=(N, *shape))
        np.testing.assert_allclose(rows.times(mn.asarray(w)).compute(), whole @ w, atol=1e-10)
        np.testing.assert_allclose(rows.back(mn.asarray(r)).compute(), whole.T @ r, atol=1e-10)
    np.testing.assert_allclose(rows.gram().compute(), whole.T @ whole, atol=1e-9)


class TestLogisticAgainstScikitLearn:
    @pytest.mark.parametrize("fit_intercept", [True, False])
    @pytest.mark.parametrize("weighted", [False, True])
    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize("classes", ["two", "three"])
    def test_coefficients_and_what_follows_from_them(self, classes, solver, kind, weighted, fit_intercept):
        X, y = FORMATS[kind](DRAWN.X), getattr(DRAWN, classes)
        options = {"C": 0.7, "solver": solver, "fit_intercept": fit_intercept, "max_iter": 1000}
        options["tol"] = 1e-6 if kind == "float32" else 1e-9
        weights = DRAWN.weights if weighted else None
        ours = mn.learn.LogisticRegression(**options).fit(X, y, sample_weight=weights)
        if kind == "float32":  # theirs is in float32 throughout and does not come as near
            X, options["tol"] = X.astype(np.float64), 1e-9
        theirs = linear_model.LogisticRegression(**options).fit(X, y, sample_weight=weights)
        assert np.asarray(ours.coef_).dtype == (np.float32 if kind == "float32" else np.float64)
        # Both searches of "lbfgs" end where the loss changes by rounding alone.
        tolerance = 1e-4 if kind == "float32" else 1e-5 if solver == "lbfgs" else 1e-6
        for name in ("coef_", "intercept_"):
            expected = getattr(theirs, name)
            np.testing.assert_allclose(np.asarray(getattr(ours, name)), expected, atol=tolerance)
            assert getattr(ours, name).shape == expected.shape
        assert ours.classes_.tolist() == theirs.classes_.tolist()
        assert ours.n_features_in_ == P
        for name in ("decision_function", "predict_proba", "predict_log_proba"):
            found, expected = getattr(ours, name)(X), getattr(theirs, name)(X)
            np.testing.assert_allclose(found.compute(), expected, rtol=10 * tolerance, atol=10 * tolerance)
        assert np.asarray(ours.predict(X)).tolist() == theirs.predict(X).tolist()
        assert ours.score(X, y, weights) == pytest.approx(theirs.score(X, y, weights))

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_takes_no_more_iterations(self, solver):
        for y in (DRAWN.two, DRAWN.three):
            options = {"solver": solver, "tol": 1e-6}
            ours = mn.learn.LogisticRegression(**options).fit(DRAWN.X, y)
            theirs = linear_model.LogisticRegression(**options).fit(DRAWN.X, y)
            assert type(ours.n_iter_) is int
            expected = int(theirs.n_iter_[0])
            # Fewer, as features are searched through in units of their own.
            assert ours.n_iter_ <= expected + (solver != "lbfgs")

    @pytest.mark.parametrize("class_weight", ["balanced", {"red": 3.0, "blue": 0.5}])
    def test_weights_of_classes(self, class_weight):
        options = {"class_weight": class_weight, "tol": 1e-9, "max_iter": 1000}
        ours = mn.learn.LogisticRegression(**options).fit(DRAWN.X, DRAWN.three, DRAWN.weights)
        theirs = linear_model.LogisticRegression(**options).fit(DRAWN.X, DRAWN.three, DRAWN.weights)
        check_same_fit(ours, theirs, 1e-5)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_without_a_penalty(self, solver):
        options = {"C": np.inf, "solver": solver, "tol": 1e-9, "max_iter": 1000}
        for y in (DRAWN.two, DRAWN.three):
            ours = mn.learn.LogisticRegression(**options).fit(DRAWN.X, y)
            check_same_fit(ours, linear_model.LogisticRegression(**options).fit(DRAWN.X, y), 1e-5)

    def test_labels_that_are_an_array_here(self):
        ours = mn.learn.LogisticRegression().fit(DRAWN.X, mn.asarray(DRAWN.two))
        there = ours.predict(DRAWN.X)
        assert isinstance(there, mn.DistArray)
        assert set(there.compute().tolist()) == {-3, 7}

    def test_margins_beyond_what_powers_of_e_can_hold(self):
        X, y = np.array([[-1000.0], [-999.0], [999.0], [1000.0]]), [0, 0, 1, 1]
        model = mn.learn.LogisticRegression(C=1e6).fit(X, y)
        found = model.predict_proba([[-1e6], [1e6]]).compute()
        np.testing.assert_allclose(found, [[1, 0], [0, 1]], atol=1e-12)


class TestPublishedAnswers:
    @pytest.mark.parametrize("solver", SOLVERS)
    @pytest.mark.parametrize(
        ("name", "least"), [("a9a", 10529.562584637899), ("heart_scale", 98.22679950813682)]
    )
    def test_least_losses_without_a_constant(self, test_data, name, least, solver):
        X, y = load_svmlight_file(str(test_data / name / name))
        X = sp.csr_array(X)
        model = mn.learn.LogisticRegression(solver=solver, fit_intercept=False, tol=1e-8, max_iter=2000)
        model.fit(X, y)
        w = model.coef_.compute()[0]
        assert np.logaddexp(0, -y * (X @ w)).sum() + w @ w / 2 == pytest.approx(least, rel=1e-10)

    def test_accuracy_on_rows_that_were_not_seen(self, test_data):
        X, y = load_svmlight_file(str(test_data / "a9a" / "a9a"), n_features=123)
        held, truth = load_svmlight_file(str(test_data / "a9a" / "a9a.t"), n_features=123)
        model = mn.learn.LogisticRegression(fit_intercept=False, tol=1e-8, max_iter=2000).fit(X, y)
        assert round(100 * model.score(held, truth), 2) == 84.99

    def test_longley(self, test_data):
        known = json.loads((test_data / "nist" / "longley.json").read_text())
        X, y = np.reshape(known["longley_x"], (16, 7))[:, 1:], np.array(known["longley_y"])
        model = mn.learn.LinearRegression().fit(X, y)
        constant, *slopes = known["expected_c"]
        np.testing.assert_allclose(model.coef_.compute(), slopes, rtol=1e-9)
        assert float(model.intercept_) == pytest.approx(constant, rel=1e-9)
        residuals = y - model.predict(X).compute()
        assert residuals @ residuals == pytest.approx(known["expected_chisq"], rel=1e-9)

    def test_grades_of_spector(self, test_data):
        expected = published(test_data, "discrete.Spector.logit")
        table = np.loadtxt(test_data / "glm" / "spector.csv", skiprows=1)
        model = mn.learn.LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-10)
        model.fit(table[:, 1:4], table[:, 4])
        found = [*model.coef_.compute()[0], float(model.intercept_[0])]
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_visits_to_doctors(self, test_data, solver):
        expected = published(test_data, "discrete.RandHIE.poisson")
        table = np.loadtxt(test_data / "glm" / "randhie.csv", skiprows=1, delimiter=",")
        model = mn.learn.PoissonRegressor(alpha=0.0, solver=solver, tol=1e-9, max_iter=1000)
        model.fit(table[:, 1:], table[:, 0])
        found = [*model.coef_.compute(), float(model.intercept_)]
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-7)


def published(test_data: Path, name: str) -> list[float]:
    return json.loads((test_data / "glm" / "expected.json").read_text())[name]["params"]


@pytest.mark.parametrize("name", [*REGRESSORS, "LogisticRegression"])
class TestInScikitLearnsTools:
    def targets(self, name: str) -> np.ndarray:
        return DRAWN.two if name == "LogisticRegression" else DRAWN.targets(name)

    def test_scores_of_folds_are_theirs(self, name):
        options = NEAR.get(name, {"tol": 1e-9})
        y = self.targets(name)
        found = cross_val_score(getattr(mn.learn, name)(**options), DRAWN.X, y, cv=3)
        expected = cross_val_score(getattr(linear_model, name)(**options), DRAWN.X, y, cv=3)
        np.testing.assert_allclose(found, expected, rtol=1e-6)

    def test_a_search_in_a_pipeline(self, name):
        grid = {f"{name.lower()}__fit_intercept": [True, False]}
        pipeline = make_pipeline(StandardScaler(), clone(getattr(mn.learn, name)()))
        search = GridSearchCV(pipeline, grid, cv=2).fit(DRAWN.X, self.targets(name))
        assert search.best_estimator_.predict(DRAWN.X).shape == (N,)


class TestWhatIsWrong:
    @pytest.mark.parametrize("name", [*REGRESSORS, "LogisticRegression"])
    def test_leaves_what_was_learned(self, name):
        y = DRAWN.two if name == "LogisticRegression" else DRAWN.targets(name)
        model = getattr(mn.learn, name)()
        with pytest.raises(NotFittedError, match=f"{name}.predict before fit"):
            model.predict(DRAWN.X)
        model.fit(DRAWN.X, y)
        before = dict(vars(model))
        broken = DRAWN.X.copy()
        broken[3, 2] = np.nan
        with pytest.raises(OptionError, match=rf"{name}: X\[3, 2\]"):
            model.fit(broken, y)
        with pytest.raises(ShapeError, match=f"{name}: y of shape"):
            model.fit(DRAWN.X, y[:-1])
        with pytest.raises(ShapeError, match="sample_weight"):
            model.fit(DRAWN.X, y, sample_weight=[1.0, 2.0])
        assert vars(model) == before
        with pytest.raises(ShapeError, match=f"X has 2 features, but it was fitted to {P}"):
            model.predict(DRAWN.X[:, :2])

    @pytest.mark.parametrize(
        ("model", "wrong"),
        [
            (mn.learn.LogisticRegression(C=0), "C=0; give a number above 0"),
            (mn.learn.LogisticRegression(C=-1.0), "C=-1.0"),
            (mn.learn.LogisticRegression(solver="sag"), "solver='sag'; choose one of 'lbfgs'"),
            (mn.learn.LogisticRegression(tol=0), "tol=0"),
            (mn.learn.LogisticRegression(max_iter=-1), "max_iter=-1"),
            (mn.learn.LogisticRegression(class_weight="even"), "class_weight='even'"),
            (mn.learn.LogisticRegression(class_weight={5: 1.0}), "5, which is not a class of y"),
            (mn.learn.PoissonRegressor(alpha=-1), "alpha=-1"),
            (mn.learn.Ridge(alpha=-1), "alpha=-1"),
            (mn.learn.Ridge(solver="sag"), "solver='sag'"),
            (mn.learn.Lasso(alpha=0), "alpha=0; give a number above 0"),
            (mn.learn.Lasso(max_iter=0), "max_iter=0"),
            (mn.learn.ElasticNet(l1_ratio=1.5), "l1_ratio=1.5; give 0 to 1"),
            (mn.learn.LinearRegression(tol=-1), "tol=-1"),
        ],
    )
    def test_an_argument(self, model, wrong):
        with pytest.raises(OptionError, match=wrong):
            model.fit(DRAWN.X, DRAWN.two if "Logistic" in repr(model) else DRAWN.counts)

    def test_targets(self):
        with pytest.raises(OptionError, match="classes in y: "):
            mn.learn.LogisticRegression().fit(DRAWN.X, np.ones(N))
        counts = DRAWN.counts.copy()
        counts[17] = -2
        with pytest.raises(OptionError, match=r"y\[17\] is -2.0; counts are 0 or more"):
            mn.learn.PoissonRegressor().fit(DRAWN.X, counts)
        with pytest.raises(OptionError, match="y is 0 for all rows"):
            mn.learn.PoissonRegressor().fit(DRAWN.X, counts * 0)
        with pytest.raises(ShapeError, match="y of shape"):
            mn.learn.Lasso().fit(DRAWN.X, DRAWN.Y)
        with pytest.raises(ShapeError, match=r"alpha of shape \(3,\)"):
            mn.learn.Ridge([1.0, 2.0, 3.0]).fit(DRAWN.X, DRAWN.Y)
        with pytest.raises(DTypeError, match="complex"):
            mn.learn.Ridge().fit(DRAWN.X * 1j, DRAWN.y)
        for alpha in ("x", ["x"], None):
            with pytest.raises(DTypeError, match=r"Ridge: alpha=.*; give a number"):
                mn.learn.Ridge(alpha=alpha).fit(DRAWN.X, DRAWN.y)
        with pytest.raises(OptionError, match="Ridge: alpha=inf; give a number"):
            mn.learn.Ridge(alpha=[np.inf, 1.0]).fit(DRAWN.X, DRAWN.Y)

    @pytest.mark.parametrize("solver", SOLVERS)
    def test_too_few_iterations_are_warned_of(self, solver):
        model = mn.learn.LogisticRegression(max_iter=1, solver=solver, tol=1e-9)
        with pytest.warns(ConvergenceWarning, match="LogisticRegression has not converged after 1 iteration"):
            model.fit(DRAWN.X, DRAWN.two)
        assert model.n_iter_ == 1


def test_rows_that_are_sparse_are_never_dense(monkeypatch):
    """Every intermediate of n x p stays sparse: none of these fits could hold the dense one."""
    n, p = 60_000, 40_000  # 19 GB
    rng = np.random.default_rng(0)
    X = sp.random_array((n, p), density=1e-4, rng=rng, format="csr")
    X.data += 1
    y = X @ (rng.random(p) < 0.01) + rng.normal(size=n)
    mn.learn.Ridge(1.0, tol=1e-3).fit(X, y, sample_weight=np.ones(n))
    mn.learn.LinearRegression(tol=0.1).fit(X, y)
    mn.learn.Lasso(0.01, tol=0.1).fit(X, y)
    model = mn.learn.LogisticRegression(max_iter=20, tol=1e-2).fit(X, y > 0)
    assert model.predict_proba(X).shape == (n, 2)


@pytest.mark.parametrize("weighted", [False, True])
def test_columns_with_few_entries_beside_full_ones_take_few_iterations(weighted):
    rng = np.random.default_rng(0)
    n, p = 1500, 1000
    lengths = np.maximum(1, n // (2 * np.arange(1, p + 1)))
    places = np.concatenate([rng.choice(n, length, replace=False) for length in lengths])
    entries = rng.random(len(places)), (places, np.repeat(np.arange(p), lengths))
    X = sp.csr_array(entries, shape=(n, p))
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    weights = rng.random(n) + 0.5 if weighted else np.ones(n)
    given = centered(mn.asarray(X), mn.asarray(y), mn.asarray(weights) if weighted else None, True)
    w, taken = mn.compute(*conjugate_least_squares(given, 0.0, 1e-6, 10 * p, "LinearRegression"))
    assert taken < 1500
    roots = np.sqrt(weights)
    rows = (X.toarray() - np.average(X.toarray(), axis=0, weights=weights)) * roots[:, None]
    targets = (y - np.average(y, weights=weights)) * roots
    exact = np.linalg.lstsq(rows, targets)[0]
    least = ((targets - rows @ exact) ** 2).sum()
    assert ((targets - rows @ w) ** 2).sum() <= least * (1 + 1e-6)
