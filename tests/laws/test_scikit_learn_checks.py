"""scikit-learn's own checks of estimators: all hold, but for exceptions that are stated here."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, NotFittedError, OptionError

# Refused as they should be, in words of our own.
WORDS = {
    "check_n_features_in_after_fitting", "check_complex_data", "check_dtype_object", "check_fit2d_1sample",
    "check_estimators_empty_data_messages", "check_fit2d_predict1d", "check_requires_y_none",
    "check_all_zero_sample_weights_error", "check_classifiers_regression_target",
    "check_positive_only_tag_during_fit",
}  # fmt: skip
# A column of targets is taken as a vector, and no warning says so.
WORDS |= {"check_supervised_y_2d"}
WEIGHTS = {
    "check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data",
}  # fmt: skip
EXCEPTIONS: dict[str, tuple[Any, set[str]]] = {
    # Few iterations from a start, and other ones for each batch.
    "NMF": (mn.learn.NMF(max_iter=5), {"check_transformer_data_not_an_array", "check_transformer_general"}),
    "PoissonRegressor": (mn.learn.PoissonRegressor(), set()),
    # Labels are NumPy's strings, and not objects.
    "LogisticRegression": (mn.learn.LogisticRegression(), {"check_classifiers_classes"}),
    # Factors need no iterations, so that n_iter_ is None.
    "Ridge": (mn.learn.Ridge(), {"check_non_transformer_estimators_n_iter"}),
    "Lasso": (mn.learn.Lasso(), set()),
    "LinearRegression": (mn.learn.LinearRegression(), set()),
    # Rows come in a drawn order, which repeated rows change; so do starts.
    "SGDRegressor": (mn.learn.SGDRegressor(), WEIGHTS),
    "KMeans": (mn.learn.KMeans(2, n_init=1), WEIGHTS),
    "MiniBatchKMeans": (mn.learn.MiniBatchKMeans(2), WEIGHTS),
    "PCA": (mn.learn.PCA(1), set()),
    "TruncatedSVD": (mn.learn.TruncatedSVD(1), set()),
    "LatentDirichletAllocation": (mn.learn.LatentDirichletAllocation(2, max_iter=2), set()),
    "ElasticNet": (mn.learn.ElasticNet(), set()),
    "NearestNeighbors": (mn.learn.NearestNeighbors(), set()),
    "SpectralEmbedding": (mn.learn.SpectralEmbedding(), set()),
}

pytestmark = pytest.mark.session("one thread")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXCEPTIONS)
def test_checks_hold_but_for_the_stated_ones(name: str) -> None:
    estimator, stated = EXCEPTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {one["check_name"]: str(one["exception"]) for one in found if one["status"] == "failed"}
    assert {check: failed[check] for check in failed.keys() - WORDS - stated} == {}
    assert sum(one["status"] == "passed" for one in found) >= 30


@pytest.mark.parametrize("name", ["NMF", "MiniBatchNMF", "LatentDirichletAllocation", "PoissonRegressor"])
def test_tags_say_what_must_not_be_negative(name: str) -> None:
    tags = get_tags(getattr(mn.learn, name)())
    assert (tags.input_tags.positive_only, tags.target_tags.positive_only) == (
        name != "PoissonRegressor", name == "PoissonRegressor",
    )  # fmt: skip
    assert not get_tags(mn.learn.KMeans()).input_tags.positive_only


@pytest.mark.parametrize("kind", ["Ridge", "KMeans", "PCA", "SGDClassifier"])
def test_what_is_not_fitted_is_so_for_both(kind: str) -> None:
    method = "transform" if kind == "PCA" else "predict"
    with pytest.raises(TheirNotFittedError, match=f"{kind}.* before fit: call fit first") as raised:
        getattr(getattr(mn.learn, kind)(), method)(np.ones((2, 2)))
    for error in (raised.value, pickle.loads(pickle.dumps(raised.value)), copy.copy(raised.value)):
        assert isinstance(error, NotFittedError)
        assert isinstance(error, TheirNotFittedError)
    with pytest.raises(NotFittedError):
        mn.learn.SGDClassifier().predict_proba(np.ones((2, 2)))


@pytest.mark.parametrize("kind", ["Ridge", "KMeans", "SGDRegressor", "PoissonRegressor"])
def test_data_of_a_wrong_dtype_are_a_wrong_value_too(kind: str) -> None:
    model = getattr(mn.learn, kind)()
    for wrong in (np.ones((20, 2)) * 1j, None):
        with pytest.raises(DTypeError) as raised:
            model.fit(wrong, np.arange(20.0))
        assert isinstance(raised.value, ValueError)


def test_objects_that_are_numbers_are_numbers() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    for given in (X.astype(object), np.array(X.tolist(), dtype=object)):
        ours = mn.learn.LinearRegression().fit(given, X[:, 0])
        np.testing.assert_array_equal(ours.coef_.compute(), mn.learn.LinearRegression().fit(X, X[:, 0]).coef_)
    with pytest.raises(DTypeError):
        mn.learn.LinearRegression().fit(np.array([["a", 1], ["b", 2]], dtype=object), [1.0, 2.0])


@pytest.mark.parametrize("other", [[0, 1, 2], [0], [0, 2], ["0", "1"]])
def test_other_classes_are_refused(other: list[Any]) -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = mn.learn.SGDClassifier().partial_fit(X, X[:, 0] > 0, classes=[0, 1])
    model.partial_fit(X, X[:, 0] > 0, classes=[1, 0])
    with pytest.raises(OptionError, match=r"the first call had \[0, 1\]"):
        model.partial_fit(X, X[:, 0] > 0, classes=other)


@pytest.mark.parametrize("most", [1, 3, 10, 23])
def test_a_warning_counts_the_iterations_that_were_made(most: int) -> None:
    X = np.random.default_rng(0).random((30, 8))
    text = "after 1 iteration;" if most == 1 else f"after {most} iterations"
    with pytest.warns(ConvergenceWarning, match=text):
        mn.learn.NMF(3, solver="mu", init="random", max_iter=most, tol=1e-12, random_state=0).fit(X)
