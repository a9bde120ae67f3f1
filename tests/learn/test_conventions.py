"""Estimators keep scikit-learn's conventions, so that its clone, pipelines and searches take them."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn import cluster, decomposition, linear_model
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils import all_estimators

import matnb as mn
from matnb.errors import DTypeError, NotFittedError, OptionError, ShapeError, TooLargeError, UnsupportedError
from matnb.learn.estimator import Estimator

pytestmark = pytest.mark.session("two threads")

ESTIMATORS = [one for one in vars(mn.learn).values() if inspect.isclass(one) and issubclass(one, Estimator)]


class Scaler(Estimator):
    def __init__(self, factor=1.0, inner=None):
        self.factor = factor
        self.inner = inner


def test_parameters_are_those_of_the_constructor_and_of_what_is_inside():
    scaler = Scaler(2.0, Scaler(3.0))
    assert scaler.get_params(deep=False) == {"factor": 2.0, "inner": scaler.inner}
    assert scaler.get_params()["inner__factor"] == 3.0
    assert scaler.set_params(inner__factor=4.0, factor=5.0) is scaler
    assert (scaler.factor, scaler.inner.factor) == (5.0, 4.0)
    with pytest.raises(OptionError, match="no argument 'faktor'; did you mean 'factor'"):
        scaler.set_params(faktor=1)


def test_parts_of_a_learner_are_changed_by_name_in_copies():
    average = mn.learn.Average(mn.learn.SGD(0.5), after=3)
    learner = mn.learn.Learner(mn.learn.models.FactorizationMachine(rank=4), optimizer=average)
    assert learner.get_params()["optimizer__optimizer__learning_rate"] == 0.5
    copied = clone(learner).set_params(optimizer__optimizer__learning_rate=0.1, model__rank=8)
    assert copied.optimizer == mn.learn.Average(mn.learn.SGD(0.1), after=3)
    assert (copied.model.rank, learner.model.rank, average.optimizer.learning_rate) == (8, 4, 0.5)
    with pytest.raises(OptionError, match="SGD has no argument 'rate'"):
        copied.set_params(model__rank=2, optimizer__optimizer__rate=1)
    assert copied.model.rank == 8
    with pytest.raises(OptionError, match="below 1"):
        mn.learn.SGD().set_params(momentum=2)
    with pytest.raises(OptionError, match="optimizer=None has no arguments of its own"):
        mn.learn.Learner(copied.model).set_params(optimizer__learning_rate=1)


def test_a_search_goes_over_what_is_nested():
    learner = mn.learn.GLM(optimizer=mn.learn.SGD(1e-4))
    search = GridSearchCV(learner, {"optimizer__learning_rate": [1e-4, 0.3]}, cv=2, scoring=_least_squares)
    assert search.fit(X, Y).best_params_ == {"optimizer__learning_rate": 0.3}


def _least_squares(model, X, y):
    return -float(((np.asarray(model.predict(X)) - y) ** 2).mean())


def test_true_is_no_whole_number():
    for one in (mn.learn.KMeans(True), mn.learn.NMF(2, max_iter=True)):
        with pytest.raises(DTypeError, match="=True; give an integer"):
            one.fit(abs(X))


def test_shows_the_arguments_that_were_changed():
    assert repr(Scaler(2.0)) == "Scaler(factor=2.0)"
    assert repr(Scaler()) == "Scaler()"


def test_shows_long_arguments_shortened():
    centers = np.random.default_rng(0).normal(size=(10, 50))
    shown = repr(mn.learn.KMeans(10, init=centers))
    assert "..., " in shown
    assert "shape=(10, 50)" in shown
    assert len(shown) < 300
    assert repr(mn.learn.KMeans(10, init=mn.asarray(centers))).endswith("init=<DistArray 10 x 50 float64>)")
    assert (
        repr(mn.learn.KMeans(2, init=np.eye(2))) == "KMeans(n_clusters=2, init=array([[1., 0.], [0., 1.]]))"
    )
    weights = dict.fromkeys(range(500), 1.0)
    assert len(repr(mn.learn.LogisticRegression(class_weight=weights))) < 800


@pytest.mark.parametrize("name", ["m.npz", "m.csv", "m.joblib"])
def test_estimators_are_saved_by_joblib(tmp_path, name):
    for given in ((mn.learn.Ridge(), tmp_path / name), (tmp_path / name, mn.learn.Ridge())):
        with pytest.raises(DTypeError, match=r"write an estimator with joblib\.dump\(model, path\)"):
            mn.save(*given)


def test_what_was_not_fitted_says_so():
    with pytest.raises(NotFittedError, match=r"Scaler.predict before fit"):
        Scaler()._check_fitted("predict")


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: one.__name__)
class TestEveryEstimator:
    def test_a_clone_has_its_arguments(self, estimator):
        required = {
            name: 2
            for name, one in inspect.signature(estimator).parameters.items()
            if one.default is inspect.Parameter.empty
        }
        made = estimator(**required)
        assert repr(clone(made)) == repr(made)
        assert np.all(
            [value is getattr(made, name) for name, value in clone(made).get_params(deep=False).items()]
        )

    def test_its_constructor_only_keeps_what_it_is_given(self, estimator):
        parameters = inspect.signature(estimator).parameters
        given = {name: object() for name in parameters}
        assert vars(estimator(**given)) == given


X = np.random.default_rng(0).normal(size=(40, 3))
Y = X @ [1.0, 2.0, 3.0] + 1.0


def test_scores_compare_element_with_element():
    model = mn.learn.Ridge().fit(X, Y)
    assert model.score(X, Y[:, None]) == model.score(X, Y)
    assert np.isnan(model.score(X[:1], Y[:1]))
    with pytest.raises(mn.errors.ShapeError, match=r"Ridge.score: y of shape \(1,\) for predictions"):
        model.score(X, Y[:1])
    classes = (Y > 1).astype(int)
    classifier = mn.learn.LogisticRegression().fit(X, classes[:, None])
    assert classifier.score(X, classes[:, None]) == classifier.score(X, classes) > 0.9
    with pytest.raises(mn.errors.ShapeError, match=r"LogisticRegression\.score"):
        classifier.score(X, classes[:1])


def test_columns_of_a_frame_come_in_the_order_of_the_fit():
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1] > 0, "c": pd.array(np.arange(40), dtype="Int64")})
    model = mn.learn.LinearRegression().fit(frame, Y)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_allclose(model.predict(frame), model.predict(frame.to_numpy(float)))
    with pytest.raises(OptionError, match=r"predict: columns b, a, c; it was fitted to a, b, c"):
        model.predict(frame[["b", "a", "c"]])
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


COUNTS = np.random.default_rng(5).poisson(2.0, (40, 5)).astype(float)
TRANSFORMERS = {
    "KMeans": (cluster.KMeans, {"n_clusters": 3}),
    "MiniBatchKMeans": (cluster.MiniBatchKMeans, {"n_clusters": 2}),
    "PCA": (decomposition.PCA, {"n_components": 0.7}),
    "IncrementalPCA": (decomposition.IncrementalPCA, {"n_components": 2}),
    "TruncatedSVD": (decomposition.TruncatedSVD, {"n_components": 3}),
    "NMF": (decomposition.NMF, {"n_components": 2, "solver": "mu", "max_iter": 3}),
    "MiniBatchNMF": (decomposition.MiniBatchNMF, {"n_components": 2, "max_iter": 3}),
    "LatentDirichletAllocation": (
        decomposition.LatentDirichletAllocation,
        {"n_components": 2, "max_iter": 2},
    ),
}


@pytest.mark.filterwarnings("ignore::matnb.errors.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", TRANSFORMERS)
class TestNamesOfResultingColumns:
    def fitted(self, name, X):
        theirs, options = TRANSFORMERS[name]
        known = inspect.signature(getattr(mn.learn, name)).parameters
        own = {key: value for key, value in options.items() if key in known}
        return getattr(mn.learn, name)(**own).fit(X), theirs(**options).fit(X)

    def test_they_are_those_of_scikit_learn(self, name):
        ours, theirs = self.fitted(name, COUNTS)
        names = ours.get_feature_names_out()
        assert names.dtype == object
        assert list(names) == list(theirs.get_feature_names_out())
        assert len(names) == ours.transform(COUNTS).shape[1]
        assert list(ours.get_feature_names_out(list("vwxyz"))) == list(names)
        with pytest.raises(OptionError, match=f"{name}.get_feature_names_out: 4 input_features; .* to 5"):
            ours.get_feature_names_out(list("wxyz"))

    def test_those_of_a_frame_are_compared(self, name):
        ours, _ = self.fitted(name, pd.DataFrame(COUNTS, columns=list("abcde")))
        assert len(ours.get_feature_names_out(list("abcde"))) > 1
        with pytest.raises(OptionError, match="input_features e, d, c, b, a; it was fitted to a, b, c, d, e"):
            ours.get_feature_names_out(list("edcba"))

    def test_before_fit_there_are_none(self, name):
        with pytest.raises(NotFittedError, match=f"{name}.get_feature_names_out before fit"):
            getattr(mn.learn, name)().get_feature_names_out()


def test_a_pipeline_names_the_columns_of_its_last_step():
    frame = pd.DataFrame(X, columns=list("abc"))
    steps = make_pipeline(mn.learn.PCA(2)).fit(frame)
    assert list(steps.get_feature_names_out()) == ["pca0", "pca1"]
    parts = ColumnTransformer([("few", mn.learn.TruncatedSVD(1), ["a", "c"])]).fit(frame)
    assert list(parts.get_feature_names_out()) == ["few__truncatedsvd0"]


def test_transformers_give_no_frames_and_say_so():
    steps = make_pipeline(mn.learn.PCA(2)).set_output(transform="default")
    assert isinstance(steps.fit_transform(X), mn.DistArray)
    with pytest.raises(UnsupportedError, match=r"'pandas'.: it transforms to DistArrays; make a data"):
        steps.set_output(transform="pandas")


@pytest.mark.filterwarnings("ignore::matnb.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", ["NMF", "MiniBatchNMF", "KMeans", "LatentDirichletAllocation"])
def test_names_come_with_fit_transform_too(name):
    model = getattr(mn.learn, name)(2, max_iter=2, random_state=0)
    model.fit_transform(pd.DataFrame(COUNTS, columns=list("abcde")))
    assert list(model.feature_names_in_) == list("abcde")
    model.fit_transform(COUNTS)
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("frame", [pl.DataFrame, lambda X, names: mn.table(pd.DataFrame(X, columns=names))])
def test_frames_of_any_library_are_rows_with_names(frame):
    model = mn.learn.PCA(2).fit(frame(X, list("abc")))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(model.components_, mn.learn.PCA(2).fit(X).components_)
    with pytest.raises(OptionError, match=r"PCA\.transform: columns c, b, a; it was fitted to a, b, c"):
        model.transform(frame(X, list("cba")))


def test_a_fitted_estimator_is_pickled_and_copied_with_what_it_learned():
    model = mn.learn.KMeans(2, random_state=0).fit(X)
    for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        assert isinstance(other.cluster_centers_, mn.DistArray)
        assert repr(other) == repr(model)


CLASSES = (Y > 1).astype(int)
PREDICTING = {
    "GLM": lambda: mn.learn.GLM().fit(X, Y),
    "Learner": lambda: mn.learn.Learner(mn.learn.models.GeneralizedLinear()).fit(X, Y),
    "LogisticRegression": lambda: mn.learn.LogisticRegression(class_weight={0: 1.0, 1: 2.0}).fit(X, CLASSES),
    "MiniBatchKMeans": lambda: mn.learn.MiniBatchKMeans(2, random_state=0).partial_fit(X),
    "SGDClassifier": lambda: mn.learn.SGDClassifier(batch_size=10, max_iter=2, tol=None).fit(X, CLASSES),
    "SGDRegressor": lambda: mn.learn.SGDRegressor(batch_size=10, max_iter=2, tol=None).fit(X, Y),
}


@pytest.mark.parametrize("name", PREDICTING)
def test_what_is_nested_in_an_estimator_is_pickled_with_it(name):
    model = PREDICTING[name]()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "partial_fit"):
        targets = {"MiniBatchKMeans": (), "SGDClassifier": (CLASSES,)}.get(name, (Y,))
        for one in (model, again):
            one.partial_fit(X, *targets)
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_what_cannot_be_learned_from_is_refused():
    with pytest.raises(mn.errors.ShapeError, match=r"Ridge: X of shape \(5, 0\) has no feature"):
        mn.learn.Ridge().fit(np.ones((5, 0)), np.ones(5))
    with pytest.raises(OptionError, match="classes in y: 1; give two or more"):
        mn.learn.LogisticRegression().fit(X, np.ones(40, int))
    with pytest.raises(mn.errors.DTypeError, match="y mixes classes of different types"):
        mn.learn.LogisticRegression().fit(X, np.array(["a", 1] * 20, dtype=object))
    with pytest.raises(OptionError, match="KMeans: n_clusters=3 has no arguments of its own"):
        mn.learn.KMeans(3).set_params(n_clusters__x=1)


def drawn_scores():
    draws = np.random.default_rng(3)
    X = draws.normal(size=(60, 3))
    return X, X @ [1.0, -2.0, 0.5] + draws.normal(size=60), draws.uniform(0.1, 2, 60)


def test_scores_refuse_weights_that_are_none_of_their_rows():
    X, y, weights = drawn_scores()
    above = (y > 0).astype(int)
    texts = np.where(above, "above", "below")
    fitted = [
        (mn.learn.Ridge().fit(X, y), y),
        (mn.learn.LogisticRegression().fit(X, above), above),
        (mn.learn.LogisticRegression().fit(X, texts), texts),
    ]
    for model, truth in fitted:
        name = type(model).__name__
        for wrong in (weights[:, None], weights[:5], weights[:1]):
            with pytest.raises(ShapeError, match=f"{name}.score: sample_weight of shape .* for 60 rows"):
                model.score(X, truth, sample_weight=wrong)
        for wrong in (weights * np.nan, weights * 0, -weights):
            with pytest.raises(OptionError, match=f"{name}.score: sample_weight"):
                model.score(X, truth, sample_weight=wrong)
        metric = accuracy_score if hasattr(model, "classes_") else r2_score
        expected = metric(truth, np.asarray(model.predict(X)), sample_weight=weights)
        assert model.score(X, truth, sample_weight=weights) == pytest.approx(expected, rel=1e-12)
        assert model.score(X, truth, 2.0) == pytest.approx(model.score(X, truth), rel=1e-12)


def test_no_score_is_perfect_because_the_truth_is_missing():
    X, y, _ = drawn_scores()
    model = mn.learn.LinearRegression().fit(X, y)
    y[7] = np.nan
    with pytest.raises(OptionError, match=r"LinearRegression.score: y\[7\] is the first number that is NaN"):
        model.score(X, y)


@pytest.mark.parametrize("name", ["LogisticRegression", "SGDClassifier"])
@pytest.mark.parametrize("as_given", [np.asarray, mn.asarray])
def test_measurements_are_no_classes(name, as_given):
    X, y, _ = drawn_scores()
    model = getattr(mn.learn, name)()
    with pytest.raises(OptionError, match=f"{name}: y has -.*, which is not a class; .* use a regressor"):
        model.fit(X, as_given(y))
    with pytest.raises(DTypeError, match=f"{name}: y has dtype complex128"):
        model.fit(X, as_given(np.sign(y) + 0j))
    assert not model.__sklearn_is_fitted__()
    classes = model.fit(X, as_given(np.sign(y))).classes_
    assert classes.tolist() == [-1.0, 1.0]


def test_what_is_left_out_and_what_comes_in_batches_is_named():
    X, y, _ = drawn_scores()
    for name in ("KMeans", "PCA", "Ridge", "LogisticRegression", "IncrementalPCA", "MiniBatchKMeans"):
        model, targets = getattr(mn.learn, name)(), (y > 0).astype(int)
        with pytest.raises(DTypeError, match=f"{name}: X is None; give a matrix"):
            model.fit(None, targets)
        with pytest.raises(DTypeError, match=f"{name}: X is a source of batches; .* partial_fit"):
            model.fit(mn.sources.memory(X, batch_size=20), targets)
    for name in (
        "LinearRegression",
        "Ridge",
        "Lasso",
        "PoissonRegressor",
        "LogisticRegression",
        "SGDClassifier",
    ):
        with pytest.raises(DTypeError, match=f"{name}: y is None; give a .* for each row of X"):
            getattr(mn.learn, name)().fit(X, None)


@pytest.mark.parametrize("solver", ["cholesky", "sparse_cg"])
def test_ridge_takes_one_column_of_targets_as_scikit_learn_does(solver):
    X, y, weights = drawn_scores()
    ours = mn.learn.Ridge(2.0, solver=solver, tol=1e-12).fit(X, y[:, None], weights)
    theirs = linear_model.Ridge(2.0).fit(X, y[:, None], weights)
    for name in ("coef_", "intercept_"):
        found, expected = np.asarray(getattr(ours, name)), getattr(theirs, name)
        assert found.shape == expected.shape, name
        np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)
    assert ours.predict(X).shape == theirs.predict(X).shape == (60,)
    assert ours.score(X, y[:, None]) == pytest.approx(theirs.score(X, y[:, None]), rel=1e-9)


def _twins() -> list[tuple[type, type]]:
    theirs = dict(all_estimators())
    ours = (getattr(mn.learn, name) for name in mn.learn.__all__ if name in theirs)
    return [(one, theirs[one.__name__]) for one in ours]


@pytest.mark.parametrize(("ours", "theirs"), _twins(), ids=lambda one: one.__module__.partition(".")[0])
def test_defaults_of_scikit_learn_are_taken_and_not_kept(ours: type, theirs: type) -> None:
    own = inspect.signature(ours).parameters
    others = {
        name: one.default
        for name, one in inspect.signature(theirs).parameters.items()
        if name not in own and one.default is not inspect.Parameter.empty
    }
    assert others
    made = ours(**others)
    assert made.get_params() == ours().get_params()
    assert repr(clone(made)) == repr(made)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: mn.learn.LogisticRegression(penalty=None), "penalty=None; write C=np.inf"),
        (lambda: mn.learn.LogisticRegression(penalty="l1"), r'SGDClassifier\("log_loss", penalty="l1"\)'),
        (lambda: mn.learn.LogisticRegression(l1_ratio=1), r'l1_ratio=1; .*penalty="l1"\)'),
        (lambda: mn.learn.LogisticRegression(l1_ratio=0.5), 'penalty="elasticnet", l1_ratio=0.15'),
        (lambda: mn.learn.LogisticRegression(multi_class="ovr"), "it is multinomial"),
        (lambda: mn.learn.SGDClassifier(class_weight="balanced"), r'compute_sample_weight\("balanced", y\)'),
        (lambda: mn.learn.SGDClassifier(class_weight={0: 2.0}), r"compute_sample_weight\("),
        (lambda: mn.learn.SGDRegressor(average=10), r"mn.learn.Average\(mn.learn.SGD\(\)\)"),
        (lambda: mn.learn.SGDRegressor(early_stopping=True), "n_iter_no_change passes"),
        (lambda: mn.learn.NearestNeighbors(p=1), "distances are euclidean"),
    ],
)
def test_values_that_would_change_something_are_refused_with_the_way(make: Any, told: str) -> None:
    with pytest.raises(OptionError, match=told):
        make()


def test_arguments_that_change_nothing_may_have_any_value() -> None:
    made = mn.learn.LogisticRegression(penalty="l2", random_state=3, n_jobs=-1, verbose=1, multi_class="auto")
    assert made.get_params() == mn.learn.LogisticRegression().get_params()
    assert mn.learn.KMeans(2, algorithm="elkan", copy_x=False).n_clusters == 2
    with pytest.raises(TypeError, match="'penality'"):
        mn.learn.LogisticRegression(penality="l2", n_jobs=1)


@pytest.mark.parametrize("name", ["coef_", "classes_", "n_iter_"])
def test_what_is_learned_is_not_there_before_fit(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"LogisticRegression.{name} before fit: call fit first"):
        getattr(mn.learn.LogisticRegression(), name)
    with pytest.raises(NotFittedError, match=r"KMeans\.labels_ before fit"):
        _ = mn.learn.KMeans(2).labels_
    fitted = mn.learn.LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.raises(AttributeError, match=r"no attribute 'coeff_'; did you mean '?coef_"):
        _ = fitted.coeff_
    assert not hasattr(mn.learn.LogisticRegression(), name)


def test_what_learns_by_batches_is_named() -> None:
    with pytest.raises(AttributeError, match=r'write mn.learn.SGDClassifier\("log_loss"\), which has it'):
        _ = mn.learn.LogisticRegression().partial_fit
    assert not hasattr(mn.learn.KMeans(2), "partial_fit")


def test_a_hessian_that_is_too_large_names_the_other_solver() -> None:
    with pytest.raises(TooLargeError, match=r"Hessian of 3001 x 3001, .* use solver='lbfgs'"):
        mn.learn.LogisticRegression(solver="newton-cholesky").fit(sp.eye_array(4, 3000), [0, 1, 0, 1])


def test_numpys_own_state_decides_where_no_seed_is_given() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    found = []
    for seed in (0, 0, 1):
        np.random.seed(seed)  # noqa: NPY002  as scikit-learn's users do
        model = mn.learn.MiniBatchKMeans(5, n_init=1, max_iter=1).fit(X)
        found.append(model.cluster_centers_.compute())
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()
