"""Stochastic gradients by scikit-learn's names, against scikit-learn row by row, and by batches."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import ON_THREADS, PARAMS, Library, check_same, library
from sklearn import linear_model
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import matnb as mn
from matnb.errors import ConvergenceWarning, OptionError, ShapeError, UnsupportedError
from matnb.learn.linear import stochastic
from matnb.learn.linear.score_losses import OF_CLASSES, OF_NUMBERS, LinearScore
from matnb.learn.training import Training

RNG = np.random.default_rng(4)
N, P = 60, 4
X = RNG.normal(size=(N, P))
SPARSE = sp.csr_array(X * (RNG.uniform(size=X.shape) < 0.5))
NUMBERS = X @ RNG.normal(size=P) + 0.3 * RNG.normal(size=N) + 1
CLASSES = np.where(NUMBERS > 1, "up", "down")
THREE = np.digitize(NUMBERS, [0, 2])
IN_ORDER = {"shuffle": False, "tol": None, "max_iter": 3}


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


def check_as_sklearn(name, rows, y, **options):
    ours = getattr(mn.learn, name)(**IN_ORDER | options).fit(rows, y)
    theirs = getattr(linear_model, name)(**IN_ORDER | options).fit(rows, y)
    np.testing.assert_allclose(ours.coef_.compute(), theirs.coef_, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(ours.intercept_.compute(), theirs.intercept_, rtol=1e-9, atol=1e-11)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.coef_.shape == theirs.coef_.shape
    assert ours.t_ == theirs.t_
    return ours, theirs


known: dict[str, tuple[np.ndarray, ...]] = {}


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_the_same_bits_on_any_workers(session, rows):
    given = X if rows == "dense" else SPARSE
    fitted = mn.learn.SGDClassifier("log_loss", batch_size=7, max_iter=2, tol=None, random_state=0)
    found = fitted.fit(given, THREE).coef_.compute(), fitted.predict_proba(given).compute()
    check_same(found, known.setdefault(rows, found), 1e-11 if session.kind == "interpreter" else None)


@ON_THREADS
class TestOnOne:
    @pytest.mark.parametrize("loss", [*OF_CLASSES, *OF_NUMBERS])
    def test_a_gradient_is_that_of_its_loss(self, loss):
        # No score is so near to a corner of its loss that the two differences are of different sides.
        model, h, rng = LinearScore(loss, 0.3, 0.0, 0.2, True), 1e-6, np.random.default_rng(7)
        rows, y = mn.asarray(X), mn.asarray(np.where(CLASSES == "up", 1.0, -1.0))
        at = {"weights": rng.normal(size=P), "intercept": rng.normal(size=())}
        gradient = model.gradient({name: mn.asarray(one) for name, one in at.items()}, rows, y)
        for _ in range(3):
            way = {name: rng.normal(size=one.shape) for name, one in at.items()}
            up, down = (
                float(model.loss({name: mn.asarray(at[name] + sign * h * way[name]) for name in at}, rows, y))
                for sign in (1, -1)
            )
            slope = sum(float((gradient[name] * way[name]).sum()) for name in at)
            assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)

    @pytest.mark.parametrize("loss", [*OF_CLASSES, *OF_NUMBERS])
    def test_a_classifier_is_scikit_learns_row_by_row(self, loss):
        slow = {"learning_rate": "constant", "eta0": 0.05} if "squared" in loss else {}
        options = {"loss": loss, "alpha": 0.01, "epsilon": 0.3, **slow}
        ours, theirs = check_as_sklearn("SGDClassifier", X, CLASSES, **options)
        assert ours.predict(X).tolist() == theirs.predict(X).tolist()
        np.testing.assert_allclose(
            ours.decision_function(X).compute(), theirs.decision_function(X), rtol=1e-8
        )

    @pytest.mark.parametrize("loss", OF_NUMBERS)
    def test_a_regressor_is_scikit_learns_row_by_row(self, loss):
        ours, theirs = check_as_sklearn("SGDRegressor", X, NUMBERS, loss=loss, epsilon=0.3)
        assert ours.score(X, NUMBERS) == pytest.approx(theirs.score(X, NUMBERS), rel=1e-9)

    @pytest.mark.parametrize(
        "options",
        [
            {"learning_rate": "constant", "eta0": 0.05},
            {"learning_rate": "invscaling", "eta0": 0.3, "power_t": 0.4},
            {"fit_intercept": False},
            {"penalty": None, "learning_rate": "constant", "eta0": 0.05},
        ],
        ids=str,
    )
    def test_schedules_are_scikit_learns(self, options):
        check_as_sklearn("SGDClassifier", X, CLASSES, **{"loss": "log_loss", "alpha": 0.01, **options})

    def test_sparse_rows_and_three_classes_are_scikit_learns(self):
        check_as_sklearn("SGDClassifier", SPARSE, CLASSES, loss="log_loss", alpha=0.01)
        ours, theirs = check_as_sklearn("SGDClassifier", X, THREE, loss="log_loss", alpha=0.01)
        np.testing.assert_allclose(ours.predict_proba(X).compute(), theirs.predict_proba(X), rtol=1e-8)
        assert ours.predict(X).compute().tolist() == theirs.predict(X).tolist()

    @pytest.mark.parametrize(
        ("name", "y"), [("SGDClassifier", CLASSES), ("SGDClassifier", THREE), ("SGDRegressor", NUMBERS)]
    )
    def test_weights_of_rows_are_scikit_learns(self, name, y):
        weights = np.random.default_rng(1).uniform(0, 2, N)
        ours = getattr(mn.learn, name)(**IN_ORDER, alpha=0.01).fit(X, y, sample_weight=weights)
        theirs = getattr(linear_model, name)(**IN_ORDER, alpha=0.01).fit(X, y, sample_weight=weights)
        np.testing.assert_allclose(ours.coef_.compute(), theirs.coef_, rtol=1e-9, atol=1e-11)
        for weight in (None, weights):
            ours.partial_fit(X, y, sample_weight=weight)
            theirs.partial_fit(X, y, sample_weight=weight)
            np.testing.assert_allclose(ours.coef_.compute(), theirs.coef_, rtol=1e-9, atol=1e-11)
        with pytest.raises(ShapeError, match=r"sample_weight of shape \(2,\) for 60 rows"):
            ours.fit(X, y, sample_weight=[1.0, 2.0])

    def test_it_ends_where_scikit_learns_does(self):
        options = {"tol": 1e-3, "max_iter": 100, "n_iter_no_change": 2, "eta0": 0.02}
        ours, _ = check_as_sklearn("SGDRegressor", X, NUMBERS, **options)
        assert 3 < ours.n_iter_ < 100
        with pytest.warns(ConvergenceWarning, match="after 2 passes the loss still falls"):
            mn.learn.SGDRegressor(max_iter=2, random_state=0).fit(X, NUMBERS)

    @pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
    @pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
    def test_cumulative_penalties_are_scikit_learns(self, penalty, rows):
        options = {"penalty": penalty, "alpha": 0.05, "l1_ratio": 0.6}
        check_as_sklearn("SGDRegressor", rows, NUMBERS, **options)
        check_as_sklearn("SGDClassifier", rows, THREE, loss="log_loss", **options)

    @pytest.mark.parametrize("rows", [X, SPARSE], ids=["dense", "sparse"])
    def test_parts_of_rows_go_on_with_the_penalty(self, rows, monkeypatch):
        options = {"penalty": "elasticnet", "alpha": 0.05, "max_iter": 3, "tol": None, "random_state": 0}
        whole = mn.learn.SGDClassifier(**options).fit(rows, THREE).coef_.compute()
        monkeypatch.setattr(stochastic, "PART_BYTES", 700)
        parts = mn.learn.SGDClassifier(**options).fit(rows, THREE).coef_.compute()
        assert parts.tolist() == whole.tolist()

    @pytest.mark.parametrize("batch_size", [1, 20])
    def test_a_penalty_of_absolute_values_selects_features(self, batch_size):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(800, 40))
        y = rows[:, :3] @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=800)
        options = {"alpha": 0.1, "max_iter": 10, "tol": None, "random_state": 0}
        for penalty, most in [("l1", 5), ("elasticnet", 15)]:
            ours = mn.learn.SGDRegressor(penalty=penalty, batch_size=batch_size, l1_ratio=0.8, **options)
            used = np.flatnonzero(ours.fit(rows, y).coef_.compute())
            assert set(used) >= {0, 1, 2}
            assert len(used) <= most
        kept = mn.learn.SGDClassifier("log_loss", penalty="l1", batch_size=batch_size, **options)
        assert np.count_nonzero(kept.fit(rows, y > 0).coef_) <= 10

    @pytest.mark.parametrize("penalty", ["l1", "elasticnet"])
    def test_penalties_of_absolute_values_come_to_the_same_optimum(self, penalty):
        options = {"penalty": penalty, "alpha": 0.1, "l1_ratio": 0.7, "tol": None, "max_iter": 80}
        ours = mn.learn.SGDRegressor(**options, learning_rate="constant", eta0=0.5, batch_size=N).fit(
            X, NUMBERS
        )
        ratio = 1.0 if penalty == "l1" else 0.7
        best = linear_model.ElasticNet(alpha=0.1, l1_ratio=ratio, tol=1e-10).fit(X, NUMBERS)
        np.testing.assert_allclose(ours.coef_.compute(), best.coef_, atol=1e-6)

    def test_partial_fit_is_a_pass(self):
        ours = mn.learn.SGDClassifier("log_loss", alpha=0.01)
        theirs = linear_model.SGDClassifier(loss="log_loss", alpha=0.01, shuffle=False)
        for rows in (slice(0, 30), slice(30, None)):
            ours.partial_fit(X[rows], CLASSES[rows], classes=["down", "up"])
            theirs.partial_fit(X[rows], CLASSES[rows], classes=["down", "up"])
        np.testing.assert_allclose(ours.coef_.compute(), theirs.coef_, rtol=1e-9)
        with pytest.raises(OptionError, match="y has the class 'left', which classes= did not list"):
            ours.partial_fit(X[:1], ["left"])
        with pytest.raises(OptionError, match="first partial_fit needs classes="):
            clone(ours).partial_fit(X, CLASSES)
        with pytest.raises(ShapeError, match="X has 2 features, but it was fitted to 4"):
            ours.partial_fit(X[:, :2], CLASSES)

    @pytest.mark.parametrize("classes", [[0, 1, np.nan], ["down", None], ["down", float("nan")]])
    def test_a_missing_value_is_no_class(self, classes):
        with pytest.raises(OptionError, match=r"classes= has (nan|None), which is a missing value"):
            mn.learn.SGDClassifier().partial_fit(X, CLASSES, classes=classes)

    def test_other_classes_than_at_first_are_shown_as_they_were_given(self):
        ours = mn.learn.SGDClassifier().partial_fit(X, np.arange(N) % 2, classes=[1, 0])
        with pytest.raises(OptionError, match=r"classes=\[0, 2\], but the first call had \[0, 1\]"):
            ours.partial_fit(X, np.arange(N) % 2, classes=np.array([2, 0]))

    def test_batches_go_on_from_what_was_learned_without_a_start(self, monkeypatch):
        ours = mn.learn.SGDRegressor(batch_size=10, penalty="elasticnet").partial_fit(X, NUMBERS)
        first = ours.coef_.compute()
        monkeypatch.setattr(Training, "begun", lambda self, X, y: pytest.fail("started"))
        assert not np.allclose(ours.partial_fit(X, NUMBERS).coef_, first)

    def test_entries_of_rows_that_are_few_are_not_counted(self, monkeypatch):
        monkeypatch.setattr(mn.DistArray, "nnz", property(lambda self: pytest.fail("counted")))
        mn.learn.SGDRegressor(**IN_ORDER).fit(SPARSE, NUMBERS)

    def test_an_order_is_that_of_its_seed(self):
        options = {"batch_size": 7, "max_iter": 2, "tol": None}
        first, same, other = (
            mn.learn.SGDRegressor(random_state=seed, **options).fit(X, NUMBERS).coef_.compute()
            for seed in (0, 0, 1)
        )
        assert first.tolist() == same.tolist() != other.tolist()

    def test_searches_take_it(self):
        options = {"batch_size": 10, "max_iter": 5, "tol": None, "random_state": 0}
        search = GridSearchCV(mn.learn.SGDClassifier("log_loss", **options), {"alpha": [1e-3, 10.0]}, cv=3)
        assert search.fit(X, CLASSES).best_params_ == {"alpha": 1e-3}

    def test_what_does_not_fit_is_said(self):
        with pytest.raises(OptionError, match="SGDClassifier: classes in y: "):
            mn.learn.SGDClassifier().fit(X, np.ones(N))
        with pytest.raises(OptionError, match="loss='hinge'; choose one of"):
            mn.learn.SGDRegressor("hinge").fit(X, NUMBERS)
        with pytest.raises(OptionError, match="learning_rate='optimal' with alpha=0"):
            mn.learn.SGDClassifier(alpha=0).fit(X, CLASSES)
        with pytest.raises(UnsupportedError, match="loss='hinge' has no probabilities"):
            mn.learn.SGDClassifier(max_iter=1, tol=None).fit(X, CLASSES).predict_proba(X)
