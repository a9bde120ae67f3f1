"""Nearest rows, and graphs of them, are those of scikit-learn."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import manifold, neighbors
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll

import matnb as mn
from matnb.errors import NotFittedError, OptionError, ShapeError

RNG = np.random.default_rng(2)
FITTED, ASKED = RNG.normal(size=(120, 6)) + 5.0, RNG.normal(size=(40, 6)) + 5.0

pytestmark = pytest.mark.session("two threads")


def both(X, **options):
    return (
        mn.learn.NearestNeighbors(**options).fit(X),
        neighbors.NearestNeighbors(**options, algorithm="brute").fit(X),
    )


def check_found(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert np.asarray(one).dtype == other.dtype
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-9, atol=1e-6)
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("asked", [None, ASKED], ids=["own", "others"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
class TestNeighbors:
    def test_they_are_scikit_learns(self, make, asked):
        found, expected = both(make(FITTED), n_neighbors=4)
        given_rows = None if asked is None else make(asked)
        check_found(found.kneighbors(given_rows), expected.kneighbors(given_rows))
        places = found.kneighbors(given_rows, 7, return_distance=False)
        np.testing.assert_array_equal(places, expected.kneighbors(given_rows, 7, return_distance=False))

    @pytest.mark.parametrize("mode", ["connectivity", "distance"])
    def test_graphs_are_scikit_learns(self, make, asked, mode):
        found, expected = both(make(FITTED), n_neighbors=4)
        given_rows = None if asked is None else make(asked)
        graph = found.kneighbors_graph(given_rows, mode=mode)
        assert graph.sparse
        np.testing.assert_allclose(
            graph.to_scipy().toarray(), expected.kneighbors_graph(given_rows, mode=mode).toarray(), atol=1e-6
        )


@pytest.mark.parametrize("asked", [None, ASKED - 5], ids=["own", "others"])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_cosine_distances_are_scikit_learns(make, asked):
    found, expected = both(make(FITTED - 5), n_neighbors=4, metric="cosine")
    given_rows = None if asked is None else make(asked)
    distances, places = map(np.asarray, found.kneighbors(given_rows))
    theirs = expected.kneighbors(given_rows)
    np.testing.assert_allclose(distances, theirs[0], atol=1e-12)
    np.testing.assert_array_equal(places, theirs[1])
    assert found.effective_metric_ == "cosine"
    assert found.n_features_in_ == 6


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_rows_of_zeros_are_as_far_as_right_angles(make):
    X = np.array([[0.0, 0.0], [1.0, 0.2], [-1.0, 0.1], [0.0, 0.0], [1e-200, 3e-200]])
    asked = np.array([[0.0, 0.0], [2.0, 0.0], [-1.0, -1.0]])
    found = mn.learn.NearestNeighbors(n_neighbors=4, metric="cosine").fit(make(X.copy()))
    X[4] = 1.0, 3.0  # the same direction: the squares of the other numbers are 0
    expected = neighbors.NearestNeighbors(n_neighbors=4, metric="cosine").fit(X)
    for given_rows in (None, asked):
        distances, places = map(np.asarray, found.kneighbors(given_rows))
        np.testing.assert_allclose(distances, expected.kneighbors(given_rows)[0], atol=1e-12)
        assert all(len({*row}) == 4 for row in places)


def test_single_precision_is_compared_in_double():
    found, expected = both(FITTED.astype(np.float32), n_neighbors=5)
    check_found(found.kneighbors(), expected.kneighbors())


def test_a_row_among_equal_ones_is_left_out_once():
    X = np.zeros((6, 2))
    places = np.asarray(mn.learn.NearestNeighbors(n_neighbors=3).fit(X).kneighbors(return_distance=False))
    assert all(len({*row}) == 3 for row in places)
    assert places[:4].tolist() == [[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("fitted", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("asked", [np.asarray, sp.csr_array], ids=["dense rows", "sparse rows"])
def test_rows_are_searched_in_less_memory_than_their_distances(asked, fitted, metric):
    # Distances would take 96 MB, and rows with every element stored 192 MB.
    rng = np.random.default_rng(0)
    rows = sp.random_array((60_200, 400), density=0.05, format="csr", rng=rng)
    if fitted is np.asarray:
        rows = rng.random((60_200, 4))
    X, Y = rows[:200], rows[200:]
    X = asked(X.toarray() if sp.issparse(X) and asked is np.asarray else X)
    search = mn.learn.NearestNeighbors(n_neighbors=3, metric=metric).fit(Y)
    search.kneighbors(X[:2])[0].compute()
    places = search.kneighbors(X, return_distance=False)
    tracemalloc.start()
    try:
        found = places.compute()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40e6
    theirs = neighbors.NearestNeighbors(n_neighbors=3, metric=metric, algorithm="brute").fit(Y)
    np.testing.assert_array_equal(found, theirs.kneighbors(X, return_distance=False))


def test_large_searches_go_by_tiles():
    X = np.random.default_rng(0).normal(size=(3000, 8))
    found, expected = both(X, n_neighbors=6)
    check_found(found.kneighbors(), expected.kneighbors())


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(1, 9))
def test_distances_ascend_and_reach_what_places_say(seed, k):
    X = np.random.default_rng(seed).normal(size=(10, 3))
    distances, places = map(np.asarray, mn.learn.NearestNeighbors(n_neighbors=k).fit(X).kneighbors())
    assert (np.diff(distances, axis=1) >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(X[:, None] - X[places], axis=2), distances, atol=1e-7)
    assert not (places == np.arange(10)[:, None]).any()


def test_clones_have_its_arguments():
    assert repr(clone(mn.learn.NearestNeighbors(n_neighbors=3))) == "NearestNeighbors(n_neighbors=3)"


def test_what_scikit_learn_has_beyond_is_told_to_take_our_arrays():
    own = r"scikit-learn's own takes DistArrays.*: sklearn\.neighbors\.NearestNeighbors"
    with pytest.raises(OptionError, match=rf"radius=0\.5; leave it out; for radius_neighbors, {own}"):
        mn.learn.NearestNeighbors(radius=0.5)
    fitted = mn.learn.NearestNeighbors(radius=1.0).fit(FITTED)
    for name in ("radius_neighbors", "radius_neighbors_graph"):
        with pytest.raises(AttributeError, match=f"{name}'; {own}"):
            getattr(fitted, name)
    given, expected = (
        neighbors.NearestNeighbors(radius=2.0).fit(X).radius_neighbors_graph()
        for X in (mn.asarray(FITTED), FITTED)
    )
    assert (given != expected).nnz == 0


def test_l2_is_euclidean():
    found, expected = both(FITTED, n_neighbors=4, metric="l2")
    ours, theirs = found.kneighbors(ASKED), expected.kneighbors(ASKED)
    np.testing.assert_allclose(ours[0].compute(), theirs[0], rtol=1e-12)
    np.testing.assert_array_equal(ours[1].compute(), theirs[1])


def test_what_is_wrong_is_said():
    wrong = FITTED.copy()
    wrong[2, 3] = np.inf
    with pytest.raises(OptionError, match=r"NearestNeighbors: X\[2, 3\]"):
        mn.learn.NearestNeighbors().fit(wrong)
    with pytest.raises(OptionError, match=r"metric='manhattan'; .* for others, scikit-learn's own takes"):
        mn.learn.NearestNeighbors(metric="manhattan").fit(FITTED)
    with pytest.raises(NotFittedError):
        mn.learn.NearestNeighbors().kneighbors(FITTED)
    fitted = mn.learn.NearestNeighbors().fit(FITTED[:5])
    with pytest.raises(OptionError, match="n_neighbors=5 of 4 others"):
        fitted.kneighbors()
    with pytest.raises(OptionError, match="n_neighbors=6 of 5"):
        fitted.kneighbors(ASKED, 6)
    with pytest.raises(ShapeError, match="X has 5 features"):
        fitted.kneighbors(ASKED[:, :5])
    with pytest.raises(OptionError, match="mode='weights'"):
        fitted.kneighbors_graph(ASKED, mode="weights")


class TestSpectralEmbedding:
    ROLL = make_swiss_roll(200, noise=0.1, random_state=0)[0]

    @staticmethod
    def check(X, **options):
        found = mn.learn.SpectralEmbedding(random_state=0, **options)
        expected = manifold.SpectralEmbedding(random_state=0, **options)
        np.testing.assert_allclose(found.fit_transform(X), expected.fit_transform(X), atol=1e-8)
        graph, other = found.affinity_matrix_, expected.affinity_matrix_
        graph = graph.to_scipy().toarray() if graph.sparse else np.asarray(graph)
        np.testing.assert_allclose(graph, other.toarray() if sp.issparse(other) else other)

    @pytest.mark.parametrize("n_neighbors", [None, 8])
    @pytest.mark.parametrize("n_components", [1, 3])
    def test_neighbors_are_placed_as_by_scikit_learn(self, n_components, n_neighbors):
        self.check(self.ROLL, n_components=n_components, n_neighbors=n_neighbors)

    @pytest.mark.parametrize("make", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
    def test_graphs_are_placed_as_by_scikit_learn(self, make):
        graph = np.exp(-np.linalg.norm(FITTED[:, None] - FITTED, axis=2))
        self.check(make(graph), affinity="precomputed")

    def test_what_is_wrong_is_said(self):
        with pytest.raises(ShapeError, match="takes a square one"):
            mn.learn.SpectralEmbedding(affinity="precomputed").fit(FITTED)
        with pytest.raises(OptionError, match=r"has the weight -1\.0"):
            mn.learn.SpectralEmbedding(affinity="precomputed").fit(-np.eye(4))
        with pytest.raises(OptionError, match="affinity='rbf'"):
            mn.learn.SpectralEmbedding(affinity="rbf").fit(FITTED)
        with pytest.raises(OptionError, match="n_components=5; give 1 to 3"):
            mn.learn.SpectralEmbedding(5).fit(FITTED[:4])
        with pytest.warns(UserWarning, match="not symmetric"):
            mn.learn.SpectralEmbedding(1, affinity="precomputed").fit(np.triu(np.ones((5, 5))))
        with pytest.warns(UserWarning, match="not connected"):
            mn.learn.SpectralEmbedding(1, affinity="precomputed").fit(np.eye(6) + np.eye(6)[::-1])
