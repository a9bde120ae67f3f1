"""K-means gives what scikit-learn does from the same start, and published inertias from its own starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import cluster
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import matnb as mn
from matnb.errors import ConvergenceWarning, NotFittedError, OptionError, ShapeError
from matnb.learn.cluster.starts import starting_centers

BLOBS, _ = make_blobs(300, 5, centers=4, cluster_std=2.0, random_state=3)

pytestmark = pytest.mark.session("two threads")


@pytest.fixture(scope="module")
def iris(test_data: Path) -> np.ndarray:
    return np.loadtxt(test_data / "kmeans" / "iris.csv", delimiter=",", skiprows=1, usecols=range(4))


@pytest.fixture(scope="module")
def digits(test_data: Path) -> np.ndarray:
    return np.loadtxt(test_data / "kmeans" / "digits.csv.gz", delimiter=",")[:, :64]


def check_as_scikit(
    X: object, tolerance: float = 1e-10, sample_weight: object = None, **options: object
) -> None:
    found = mn.learn.KMeans(**options).fit(X, sample_weight=sample_weight)
    expected = cluster.KMeans(**{"n_init": 1, **options}).fit(X, sample_weight=sample_weight)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(
        found.cluster_centers_, expected.cluster_centers_, rtol=tolerance, atol=tolerance
    )
    assert found.inertia_ == pytest.approx(expected.inertia_, rel=tolerance)
    assert (found.n_iter_, found.n_features_in_) == (expected.n_iter_, expected.n_features_in_)
    assert found.labels_.dtype == expected.labels_.dtype
    assert found.cluster_centers_.dtype == expected.cluster_centers_.dtype
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    here = X.toarray() if sp.issparse(X) else X
    distances = np.linalg.norm(here[:, None] - expected.cluster_centers_, axis=2)
    np.testing.assert_allclose(found.transform(X), distances, rtol=100 * tolerance, atol=tolerance**0.5)
    assert found.score(X, sample_weight=sample_weight) == pytest.approx(
        expected.score(X, sample_weight=sample_weight), rel=10 * tolerance
    )


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
class TestFromTheSameStart:
    def test_it_goes_where_scikit_learn_goes(self, make, digits):
        check_as_scikit(make(digits), n_clusters=10, init=digits[:10])

    def test_rows_have_weights(self, make):
        weights = np.random.default_rng(1).integers(0, 4, len(BLOBS)) / 2.0
        check_as_scikit(make(BLOBS), sample_weight=weights, n_clusters=4, init=BLOBS[:4])

    def test_tolerance_is_of_the_mean_variance(self, make):
        check_as_scikit(make(BLOBS), n_clusters=6, init=BLOBS[:6], tol=0.02)

    def test_centers_without_rows_go_to_the_farthest(self, make):
        far = np.vstack([BLOBS[:2], np.full((1, 5), 1e3), np.full((1, 5), -1e3)])
        check_as_scikit(make(BLOBS), n_clusters=4, init=far)

    def test_single_precision_stays(self, make):
        X = BLOBS.astype(np.float32)
        check_as_scikit(make(X), tolerance=1e-5, n_clusters=4, init=X[:4])


def test_rows_far_from_zero_are_told_apart():
    check_as_scikit(BLOBS + 1e7, tolerance=1e-8, n_clusters=4, init=BLOBS[:4] + 1e7)


def test_the_last_iteration_labels_by_the_last_centers():
    options = {"n_clusters": 4, "init": BLOBS[:4], "max_iter": 2, "tol": 0.0}
    with pytest.warns(ConvergenceWarning, match="KMeans.*give a larger max_iter or tol"):
        found = mn.learn.KMeans(**options).fit(BLOBS)
    expected = cluster.KMeans(**options).fit(BLOBS)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert found.inertia_ == pytest.approx(expected.inertia_)
    assert found.n_iter_ == 2


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_it_goes_where_scikit_learn_goes_from_anywhere(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    check_as_scikit(X, n_clusters=k, init=X[rng.choice(40, k, replace=False)])


@pytest.mark.parametrize("init", ["k-means++", "random", "k-means||"])
class TestStarts:
    def test_iris_has_its_published_inertia(self, init, iris):
        found = mn.learn.KMeans(3, init=init, n_init=10, random_state=0).fit(iris)
        assert found.inertia_ == pytest.approx(78.851441, abs=1e-6)

    def test_digits_come_near_to_the_best_known(self, init, digits):
        found = mn.learn.KMeans(10, init=init, n_init=4, random_state=1).fit(digits)
        assert found.inertia_ <= 1.01 * 1165463

    def test_what_is_drawn_follows_from_the_seed(self, init):
        models = [mn.learn.KMeans(4, init=init, random_state=seed).fit(BLOBS) for seed in (5, 5)]
        assert len({np.asarray(one.cluster_centers_).tobytes() for one in models}) == 1

    def test_rows_without_weight_do_not_count(self, init):
        X = np.vstack([BLOBS, np.full((50, 5), 1e4) + np.arange(50)[:, None]])
        weights = np.r_[np.ones(len(BLOBS)), np.zeros(50)]
        found = mn.learn.KMeans(4, init=init, random_state=0).fit(X, sample_weight=weights)
        assert np.abs(found.cluster_centers_).max() < 1e3

    def test_one_cluster_is_the_mean(self, init):
        found = mn.learn.KMeans(1, init=init, random_state=0).fit(BLOBS)
        np.testing.assert_allclose(found.cluster_centers_[0], BLOBS.mean(axis=0))

    def test_as_many_clusters_as_rows_leave_nothing(self, init):
        assert mn.learn.KMeans(7, init=init, random_state=0).fit(BLOBS[:7]).inertia_ < 1e-20


@pytest.mark.parametrize("init", ["k-means++", "k-means||"])
def test_spread_starts_are_in_proportion_to_squared_distances(init):
    # Where one row is 0, as near as any, the others are drawn, however many there are of it.
    X = mn.asarray(np.repeat([[0.0], [1.0], [2.0]], [500, 1, 1], axis=0))
    for seed in range(10):
        found = starting_centers(X, mn.ones(502), 3, init, mn.random.default_rng(seed))
        np.testing.assert_array_equal(np.sort(np.asarray(found)[:, 0]), [0.0, 1.0, 2.0])


def test_several_starts_keep_the_best(digits):
    models = [mn.learn.KMeans(10, n_init=count, random_state=0).fit(digits) for count in (1, 5)]
    assert models[1].inertia_ < models[0].inertia_


def test_equal_rows_leave_clusters_empty():
    with pytest.warns(ConvergenceWarning, match="2 clusters of n_clusters=3 have rows"):
        mn.learn.KMeans(3, random_state=0).fit(np.repeat([[0.0, 1.0], [2.0, 3.0]], 5, axis=0))


def test_pipelines_searches_and_clones_take_it():
    model = mn.learn.KMeans(4, random_state=0)
    pipeline = Pipeline([("scale", StandardScaler()), ("cluster", clone(model))]).fit(BLOBS)
    assert len(set(np.asarray(pipeline.predict(BLOBS)))) == 4
    scores = cross_val_score(model, BLOBS, cv=3)
    assert scores.shape == (3,)
    assert (scores < 0).all()
    found = GridSearchCV(model, {"n_clusters": [1, 4]}, cv=3).fit(BLOBS)
    assert found.best_params_ == {"n_clusters": 4}
    np.testing.assert_array_equal(clone(model).fit_predict(BLOBS), model.fit(BLOBS).labels_)
    np.testing.assert_array_equal(clone(model).fit_transform(BLOBS), model.transform(BLOBS))


WITH_NAN = BLOBS.copy()
WITH_NAN[7, 2] = np.nan


@pytest.mark.parametrize(
    ("options", "X", "error", "message"),
    [
        ({}, WITH_NAN, OptionError, r"KMeans: X\[7, 2\] is the first number that is NaN"),
        ({"n_clusters": 8}, BLOBS[:5], OptionError, "n_clusters=8 with 5 rows"),
        ({"n_clusters": 0}, BLOBS, OptionError, "n_clusters=0"),
        ({"init": BLOBS[:3]}, BLOBS, ShapeError, r"init of shape \(3, 5\); give 8 centers of 5 features"),
        ({"init": WITH_NAN[:8]}, BLOBS, OptionError, r"init\[7, 2\]"),
        ({"init": "far"}, BLOBS, OptionError, "init='far'; choose one of 'k-means\\+\\+'"),
        ({"n_init": "many"}, BLOBS, OptionError, "n_init='many'"),
        ({"tol": -1.0}, BLOBS, OptionError, "tol=-1.0"),
        ({}, BLOBS[0], ShapeError, "must be a matrix of rows and features"),
    ],
)
def test_what_is_wrong_is_said(options, X, error, message):
    model = mn.learn.KMeans(**options)
    with pytest.raises(error, match=message):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(BLOBS)


def test_rows_of_another_width_are_refused():
    model = mn.learn.KMeans(2, random_state=0).fit(BLOBS)
    with pytest.raises(ShapeError, match="X has 4 features, but it was fitted to 5"):
        model.predict(BLOBS[:, :4])


def drawn_rows(X, n_clusters, random_state):
    return np.asarray(X)[random_state.choice(X.shape[0], n_clusters, replace=False)]


class TestInitByFunction:
    def test_it_begins_where_the_function_says(self):
        # Of rows without clusters, where it ends depends on where it begins.
        X = np.random.default_rng(4).normal(size=(200, 5))
        far = X[np.argsort(X[:, 0])[:4]]
        # scikit-learn passes dense rows less their mean to a function, so here it is given the array.
        expected = cluster.KMeans(4, init=far, n_init=1).fit(X)
        asked = []

        def init(rows, n_clusters, random_state):
            asked.append((rows.shape, n_clusters, type(random_state)))
            return far

        found = mn.learn.KMeans(4, init=init, n_init=1).fit(X)
        assert asked == [((200, 5), 4, np.random.RandomState)]
        np.testing.assert_array_equal(found.labels_, expected.labels_)
        np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-10)

    @pytest.mark.parametrize(("kind", "runs"), [("KMeans", 10), ("MiniBatchKMeans", 3)])
    def test_each_run_has_its_own_random_state_and_a_seed_repeats_them(self, kind, runs):
        drawn = []

        def init(rows, n_clusters, random_state):
            drawn.append(random_state.randint(2**31))
            return rows[:n_clusters]

        for _ in range(2):
            getattr(mn.learn, kind)(4, init=init, random_state=3).fit(BLOBS)
        assert drawn[:runs] == drawn[runs:]
        assert len(set(drawn)) == runs

    def test_the_best_of_its_starts_is_kept(self):
        models = [mn.learn.KMeans(4, init=drawn_rows, n_init=n, random_state=1).fit(BLOBS) for n in (1, 8)]
        assert models[1].inertia_ <= models[0].inertia_
        assert clone(models[1]).init is drawn_rows

    def test_what_it_returns_is_looked_at(self):
        with pytest.raises(
            ShapeError, match=r"KMeans: init returned an array of shape \(3, 5\); give 4 cent"
        ):
            mn.learn.KMeans(4, init=lambda X, k, random_state: BLOBS[:3]).fit(BLOBS)
        with pytest.raises(OptionError, match=r"init\[3, 0\] is the first number that is NaN"):
            mn.learn.KMeans(4, init=lambda X, k, random_state: BLOBS[:4] * [[1], [1], [1], [np.nan]]).fit(
                BLOBS
            )


def test_an_array_is_begun_with_once():
    with pytest.warns(RuntimeWarning, match="one initialization is run, not n_init=3"):
        mn.learn.KMeans(2, init=BLOBS[:2], n_init=3).fit(BLOBS)


class TestByBatches:
    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_given_batches_lead_where_scikit_learn_goes(self, make):
        options = {"n_clusters": 4, "init": BLOBS[:4], "reassignment_ratio": 0.0, "n_init": 1}
        found, expected = mn.learn.MiniBatchKMeans(**options), cluster.MiniBatchKMeans(**options)
        for start in range(0, 300, 50):
            weights = np.random.default_rng(start).random(50)
            batch = make(BLOBS[start : start + 50])
            found.partial_fit(batch, sample_weight=weights)
            expected.partial_fit(batch, sample_weight=weights)
            np.testing.assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-10)
            np.testing.assert_array_equal(found.labels_, expected.labels_)
            assert found.inertia_ == pytest.approx(expected.inertia_)
        assert found.n_steps_ == expected.n_steps_ == 6

    @pytest.mark.parametrize("init", ["k-means++", "random", "k-means||"])
    def test_drawn_batches_come_near_to_all_rows(self, init, digits):
        options = {"init": init, "batch_size": 256, "random_state": 0, "n_init": 3}
        found = mn.learn.MiniBatchKMeans(10, **options).fit(digits)
        assert found.inertia_ < 1.12 * 1165463
        np.testing.assert_array_equal(found.labels_, found.predict(digits))
        assert found.n_iter_ == int(np.ceil(found.n_steps_ * 256 / len(digits)))
        again = mn.learn.MiniBatchKMeans(10, **options).fit(digits)
        assert np.asarray(found.cluster_centers_).tobytes() == np.asarray(again.cluster_centers_).tobytes()

    def test_centers_of_little_weight_begin_anew(self):
        far = np.vstack([BLOBS[:3], np.full((1, 5), 1e4)])
        options = {"init": far, "random_state": 0, "batch_size": 64}
        kept, moved = (
            mn.learn.MiniBatchKMeans(4, reassignment_ratio=ratio, **options).fit(BLOBS)
            for ratio in (0.0, 0.01)
        )
        assert np.abs(kept.cluster_centers_).max() == 1e4
        assert np.abs(moved.cluster_centers_).max() < 100

    def test_it_ends_by_its_options(self):
        options = {"init": BLOBS[:4], "random_state": 0, "batch_size": 30, "max_iter": 7}
        assert mn.learn.MiniBatchKMeans(4, max_no_improvement=None, **options).fit(BLOBS).n_steps_ == 70
        assert mn.learn.MiniBatchKMeans(4, max_no_improvement=2, **options).fit(BLOBS).n_steps_ < 70
        assert mn.learn.MiniBatchKMeans(4, tol=100.0, **options).fit(BLOBS).n_steps_ == 2

    def test_labels_are_left_out_when_they_are_not_wanted(self):
        found = mn.learn.MiniBatchKMeans(4, compute_labels=False, random_state=0).fit(BLOBS)
        assert not hasattr(found, "labels_")
        assert found.inertia_ > 0

    def test_searches_take_it_and_bad_rows_are_said(self):
        model = mn.learn.MiniBatchKMeans(random_state=0)
        assert GridSearchCV(model, {"n_clusters": [1, 4]}, cv=3).fit(BLOBS).best_params_ == {"n_clusters": 4}
        with pytest.raises(OptionError, match=r"MiniBatchKMeans: X\[7, 2\]"):
            model.fit(WITH_NAN)
        with pytest.raises(OptionError, match="n_clusters=8 with 3 rows"):
            model.partial_fit(BLOBS[:3])
