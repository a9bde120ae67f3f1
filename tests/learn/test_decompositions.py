"""Principal components and truncated SVDs are those of scikit-learn, whichever way they are found."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import decomposition
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline

import matnb as mn
from matnb.errors import NotFittedError, OptionError, ShapeError

RNG = np.random.default_rng(4)
TALL = RNG.normal(size=(200, 8)) @ np.diag([9.0, 7, 5, 4, 3, 2, 1, 0.5]) @ RNG.normal(size=(8, 8)) + 30.0
WIDE = TALL.T[:, :60] - 20.0
SPARSE = sp.random_array((120, 30), density=0.2, rng=5, format="csr") @ sp.diags_array(np.arange(30.0, 0, -1))
ATTRIBUTES = (
    "components_", "explained_variance_", "explained_variance_ratio_", "mean_", "singular_values_",
)  # fmt: skip

pytestmark = pytest.mark.session("two threads")


def check_same(found, expected, names, tolerance=1e-8):
    for name in names:
        one, other = np.asarray(getattr(found, name)), np.asarray(getattr(expected, name))
        assert one.shape == other.shape, name
        assert one.dtype == other.dtype or not one.ndim, name  # what has no axis is a float
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=name)


def check_pca(X, tolerance=1e-8, **options):
    found = mn.learn.PCA(random_state=0, **options).fit(X)
    expected = decomposition.PCA(random_state=0, **options).fit(X)
    check_same(found, expected, (*ATTRIBUTES, "noise_variance_"), tolerance)
    assert (found.n_components_, found.n_samples_) == (expected.n_components_, expected.n_samples_)
    made = found.transform(X)
    np.testing.assert_allclose(made, expected.transform(X), rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(
        found.inverse_transform(made), expected.inverse_transform(expected.transform(X)), atol=10 * tolerance
    )
    return found, expected


@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "arpack", "randomized", "auto"])
@pytest.mark.parametrize("X", [TALL, WIDE], ids=["tall", "wide"])
def test_components_are_scikit_learns(X, solver, whiten):
    check_pca(X, n_components=3, svd_solver=solver, whiten=whiten, tolerance=1e-7)


@pytest.mark.parametrize("solver", ["full", "covariance_eigh", "auto"])
def test_all_components_are_kept(solver):
    check_pca(TALL, svd_solver=solver)


@pytest.mark.parametrize("share", [0.5, 0.9, 0.999])
@pytest.mark.parametrize("solver", ["full", "covariance_eigh"])
def test_as_many_as_explain_a_share(solver, share):
    found, _ = check_pca(TALL, n_components=share, svd_solver=solver)
    assert float(found.explained_variance_ratio_.sum()) > share


@pytest.mark.parametrize("solver", ["arpack", "covariance_eigh", "auto"])
def test_sparse_rows_are_centered_without_being_filled(solver):
    check_pca(SPARSE, n_components=4, svd_solver=solver)


def test_single_precision_stays():
    check_pca(TALL.astype(np.float32), n_components=2, svd_solver="full", tolerance=2e-3)


def test_likelihoods_and_covariances_are_those_of_the_model():
    found, expected = check_pca(TALL, n_components=5, svd_solver="full")
    np.testing.assert_allclose(found.get_covariance(), expected.get_covariance(), rtol=1e-8)
    np.testing.assert_allclose(found.get_precision(), expected.get_precision(), rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(found.score_samples(TALL), expected.score_samples(TALL), rtol=1e-8)
    assert found.score(TALL) == pytest.approx(expected.score(TALL))


def test_large_offsets_do_not_hide_what_varies():
    X = TALL + 1e7
    found = mn.learn.PCA(3, svd_solver="covariance_eigh").fit(X)
    np.testing.assert_allclose(
        found.explained_variance_,
        decomposition.PCA(3, svd_solver="full").fit(X).explained_variance_,
        rtol=1e-6,
    )


def test_long_rows_are_taken_by_slabs():
    X = np.random.default_rng(0).normal(size=(150_000, 9)) * np.arange(9.0, 0, -1)
    check_pca(X, n_components=4, svd_solver="full")


@pytest.mark.parametrize("X", [TALL, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("algorithm", ["arpack", "randomized"])
def test_truncated_svds_are_scikit_learns(algorithm, X):
    options = {"n_components": 3, "algorithm": algorithm, "n_iter": 20, "random_state": 0}
    found, expected = (one(**options).fit(X) for one in (mn.learn.TruncatedSVD, decomposition.TruncatedSVD))
    names = ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_")
    check_same(found, expected, names, 1e-7)
    made = found.transform(X)
    np.testing.assert_allclose(made, expected.transform(X), atol=1e-5)
    np.testing.assert_allclose(
        found.inverse_transform(made), expected.inverse_transform(expected.transform(X)), atol=1e-5
    )


class TestIncrementalPCA:
    NAMES = (*ATTRIBUTES, "var_", "noise_variance_")

    @pytest.mark.parametrize("X", [TALL, SPARSE], ids=["dense", "sparse"])
    @pytest.mark.parametrize("size", [None, 40, 66, 33, 500, 119])
    @pytest.mark.parametrize("k", [None, 3])
    def test_batches_of_fit_lead_where_scikit_learn_goes(self, k, size, X):
        options = {"n_components": k, "batch_size": size, "whiten": True}
        models = (mn.learn.IncrementalPCA(**options), decomposition.IncrementalPCA(**options))
        found, expected = (one.fit(X) for one in models)
        check_same(found, expected, self.NAMES, 1e-7)
        assert found.n_samples_seen_ == expected.n_samples_seen_ == X.shape[0]
        assert (found.n_components_, found.batch_size_) == (expected.n_components_, expected.batch_size_)
        np.testing.assert_allclose(found.transform(X), expected.transform(X), atol=1e-6)

    def test_given_batches_do_too(self):
        found, expected = mn.learn.IncrementalPCA(2), decomposition.IncrementalPCA(2)
        for begin, end in ((0, 30), (30, 90), (90, 95), (95, 200)):
            check_same(found.partial_fit(TALL[begin:end]), expected.partial_fit(TALL[begin:end]), self.NAMES)
        assert found.n_samples_seen_ == 200

    def test_what_is_wrong_is_said(self):
        with pytest.raises(OptionError, match="n_components=5; give 1 to 4"):
            mn.learn.IncrementalPCA(5).partial_fit(TALL[:4])
        with pytest.raises(OptionError, match=r"IncrementalPCA: X\[3, 1\]"):
            mn.learn.IncrementalPCA(2).fit(WITH_NAN)


def test_pipelines_searches_and_clones_take_them():
    y = (TALL[:, 0] > TALL[:, 0].mean()).astype(int)
    for reduce in (mn.learn.PCA(3), mn.learn.TruncatedSVD(3, random_state=0)):
        pipeline = Pipeline([("reduce", clone(reduce)), ("fit", LogisticRegression())])
        assert cross_val_score(pipeline, TALL, y, cv=3).min() > 0.5
        found = GridSearchCV(pipeline, {"reduce__n_components": [1, 3]}, cv=3).fit(TALL, y)
        assert found.best_score_ > 0.6
    found = GridSearchCV(mn.learn.PCA(), {"n_components": [1, 6]}, cv=3).fit(TALL)
    assert found.best_params_ == {"n_components": 6}


WITH_NAN = TALL.copy()
WITH_NAN[3, 1] = np.nan


@pytest.mark.parametrize(
    ("model", "X", "error", "message"),
    [
        (mn.learn.PCA(), WITH_NAN, OptionError, r"PCA: X\[3, 1\] is the first number that is NaN"),
        (mn.learn.PCA(9), TALL, OptionError, "n_components=9; give 1 to 8"),
        (mn.learn.PCA(8, svd_solver="arpack"), TALL, OptionError, "n_components=8; give 1 to 7"),
        (mn.learn.PCA(0.5, svd_solver="arpack"), TALL, OptionError, "a share between 0 and 1 with 'full'"),
        (mn.learn.PCA(1.5), TALL, OptionError, "n_components=1.5"),
        (mn.learn.PCA("mle"), TALL, OptionError, r"n_components='mle'.* such as 0\.95, or None for all"),
        (mn.learn.PCA(svd_solver="fast"), TALL, OptionError, "svd_solver='fast'"),
        (mn.learn.PCA(2, svd_solver="full"), SPARSE, OptionError, "'full' of a sparse X"),
        (mn.learn.PCA(), TALL[:1], OptionError, "one row"),
        (mn.learn.TruncatedSVD(9), TALL, OptionError, r"n_components=9 of X of shape \(200, 8\)"),
        (mn.learn.TruncatedSVD(2, algorithm="fast"), TALL, OptionError, "algorithm='fast'"),
    ],
)
def test_what_is_wrong_is_said(model, X, error, message):
    with pytest.raises(error, match=message):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(TALL)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ShapeError, match="X has 7 features, but it was fitted to 8"):
        mn.learn.PCA(2).fit(TALL).transform(TALL[:, :7])


@pytest.mark.parametrize(
    "model",
    [
        mn.learn.TruncatedSVD(2, random_state=0),
        mn.learn.PCA(2, random_state=0),
        mn.learn.KMeans(2, init="random", random_state=0, tol=1.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sparse_rows_that_would_be_too_large_as_dense_ones_are_fitted(model):
    X = sp.random_array((200_000, 40_000), density=1e-6, format="csr", rng=0)
    found = model.fit(mn.asarray(X))
    if hasattr(found, "explained_variance_ratio_"):
        of_columns = np.asarray((X * X).mean(axis=0) - X.mean(axis=0) ** 2).sum()
        shares = mn.compute(found.explained_variance_, found.explained_variance_ratio_)
        n = X.shape[0]
        total = of_columns * n / (n - 1) if isinstance(model, mn.learn.PCA) else of_columns
        np.testing.assert_allclose(shares[1], shares[0] / total)
