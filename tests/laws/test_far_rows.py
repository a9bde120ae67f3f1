"""Rows far away, or a common origin far away, take nothing from the distances of rows that are near."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matnb as mn
from matnb.lazy.functions.row_distances import nearest_rows, row_distances
from matnb.learn.neighbors.distances import nearest
from matnb.ops.interpret import interpret

pytestmark = pytest.mark.session("two threads")


def near() -> np.ndarray:
    """Return 400 rows in four groups, each around a corner of a square."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 2)) * 0.1 + np.array([[0, 0], [0, 4], [4, 0], [4, 4]])[np.arange(400) % 4]


def with_far(value: float) -> np.ndarray:
    return np.concatenate([near(), [[value, -value]]])


# Rows, and how many groups they have.
DATA = {
    "one row at 1e9": (with_far(1e9), 5),
    "one row at 1e15": (with_far(1e15), 5),
    "two rows far from all others and from each other": (
        np.concatenate([with_far(1e12), [[-3e11, 2.0]]]), 6,
    ),
    "groups as far from each other as they are close inside": (
        np.concatenate([near()[:200], near()[200:] + 2.0**30]), 8,
    ),
    "an origin far away": (near() + 2.0**33, 4),
    "a feature that counts nanoseconds": (
        np.concatenate([np.column_stack([np.repeat([0, 2.0**60], 200), near()[:, 0]])]), 4,
    ),
}  # fmt: skip


def exact(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return squared distances in more digits."""
    return ((X[:, None].astype(np.longdouble) - Y.astype(np.longdouble)) ** 2).sum(axis=2)


def as_given(X: np.ndarray, kind: str) -> Any:
    return sp.csr_array(X) if kind == "sparse" else X


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", DATA)
def test_nearest_neighbors_are_those_by_more_digits(name: str, kind: str) -> None:
    X, _ = DATA[name]
    squares = exact(X, X)
    np.fill_diagonal(squares, np.inf)
    search = mn.learn.NearestNeighbors(n_neighbors=3).fit(as_given(X, kind))
    distances, places = mn.compute(*search.kneighbors())
    expected = np.argsort(squares, axis=1, kind="stable")[:, :3]
    # Of rows that are as far in doubles, the earlier comes first.
    has_digits = squares.min(axis=1) < 1e18
    np.testing.assert_array_equal(places[has_digits], expected[has_digits])
    np.testing.assert_allclose(
        distances, np.sqrt(np.take_along_axis(squares, expected, axis=1)).astype(float), rtol=1e-12
    )
    np.testing.assert_array_equal(mn.compute(*search.kneighbors(X, 1))[0], 0)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("model", ["KMeans", "MiniBatchKMeans"])
def test_k_means_of_what_is_near(model: str, name: str, kind: str) -> None:
    X, k = DATA[name]
    start = X[_far_apart(X, k)]
    estimator = getattr(mn.learn, model)(k, init=start, n_init=1, random_state=0).fit(as_given(X, kind))
    squares = exact(X, estimator.cluster_centers_.compute())
    labels = estimator.labels_.compute()
    np.testing.assert_array_equal(labels, squares.argmin(axis=1))
    assert estimator.inertia_ == pytest.approx(float(squares.min(axis=1).sum()), rel=1e-9)
    if model == "KMeans":
        assert estimator.inertia_ < 20
    np.testing.assert_array_equal(estimator.predict(as_given(X, kind)).compute(), labels)
    np.testing.assert_allclose(
        estimator.transform(as_given(X, kind)).compute(), np.sqrt(squares).astype(float), rtol=1e-9
    )
    assert estimator.score(X) == pytest.approx(-estimator.inertia_, rel=1e-9)


def _far_apart(X: np.ndarray, k: int) -> list[int]:
    # Each is the farthest from those before.
    chosen = [0]
    for _ in range(k - 1):
        chosen.append(int(exact(X, X[chosen]).min(axis=1).argmax()))
    return chosen


# Places of rows that are centers, of 400 near ones and one far away.
TWINS = {
    "each twice but the far one": [0, 0, 1, 1, 2, 2, 400],
    "some twice, and the far one too": [0, 4, 4, 8, 400, 400],
    "one three times": [3, 3, 3, 7, 400],
    "none": [0, 4, 8, 400],
    "all the same": [5, 5, 5],
}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("value", [1e9, 1e15])
def test_equal_centers_take_nothing_from_the_others(value: float, name: str, kind: str) -> None:
    X = with_far(value)
    centers = X[TWINS[name]]
    expected = exact(X, centers).argmin(axis=1)  # of equal ones the first
    found = nearest(mn.asarray(as_given(X, kind)), mn.asarray(centers)).compute()
    np.testing.assert_array_equal(found, expected)
    batches = mn.learn.MiniBatchKMeans(len(centers), init=centers, n_init=1, random_state=0, max_iter=1)
    batches.fit(as_given(X, kind))
    squares = exact(X, batches.cluster_centers_.compute())
    np.testing.assert_array_equal(batches.labels_.compute(), squares.argmin(axis=1))


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("value", [1e6, 1e9, 1e15])
def test_a_far_row_ends_no_search_early(value: float, kind: str) -> None:
    X = with_far(value)
    for start in ([0, 4, 8, 12, 400], [1, 5, 2, 6, 400], [3, 7, 11, 0, 400]):
        given_start: dict[str, Any] = {"init": X[start], "n_init": 1}
        to_the_end = mn.learn.KMeans(5, tol=0.0, **given_start).fit(as_given(X, kind))
        found = mn.learn.KMeans(5, **given_start).fit(as_given(X, kind))
        assert to_the_end.n_iter_ > 2
        assert found.inertia_ == pytest.approx(to_the_end.inertia_, rel=1e-3)


@pytest.mark.parametrize("init", ["k-means++", "k-means||"])
def test_centers_to_begin_with_are_spread_over_what_is_near(init: str) -> None:
    X = with_far(1e9)
    model = mn.learn.KMeans(5, init=init, n_init=5, random_state=1).fit(X)
    assert model.inertia_ < 20


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 300), st.integers(1, 5)),
    exponents=st.lists(st.sampled_from([-9, 0, 0, 3, 12]), min_size=5, max_size=5),
    dtype=st.sampled_from([np.float64, np.float32]),
    share=st.sampled_from([0.2, 1.0]),
    blocks=st.integers(1, 3),
)
@settings(max_examples=25, deadline=None)
def test_distances_have_the_digits_of_their_rows(
    seed: int,
    shape: tuple[int, int, int],
    exponents: list[int],
    dtype: type,
    share: float,
    blocks: int,
) -> None:
    n, m, p = shape
    rng = np.random.default_rng(seed)
    scale = 10.0 ** np.array(exponents[:p])
    X = (rng.normal(size=(n, p)) * scale * (rng.random((n, p)) < share)).astype(dtype)
    Y = np.concatenate([X, (rng.normal(size=(m, p)) * scale * (rng.random((m, p)) < share)).astype(dtype)])
    expected = exact(X, Y)
    count = min(3, len(Y))
    for given_rows in (X, sp.csr_array(X)):
        rows, others = mn.asarray(given_rows, blocks=(min(blocks, n), 1)), mn.asarray(Y)
        places = nearest_rows(rows, others, count)
        all_of, places, own = mn.compute(
            row_distances(rows, others), places, row_distances(rows, others, places)
        )
        # Entries of a sparse row may cancel all but a thousandth of what is left.
        np.testing.assert_allclose(all_of, expected.astype(float), rtol=1e-9)
        np.testing.assert_allclose(own, np.take_along_axis(expected, places, axis=1).astype(float), rtol=1e-9)
        least = np.sort(expected, axis=1)[:, :count].astype(float)
        np.testing.assert_allclose(own, least, rtol=1e-9)
        assert (own[:, 0] == 0).all()
        interpreted = [
            interpret(one.expression)
            for one in (nearest_rows(rows, others, count), row_distances(rows, others))
        ]
        np.testing.assert_array_equal(
            np.take_along_axis(expected, interpreted[0], axis=1).astype(float), least
        )
        np.testing.assert_allclose(interpreted[1], expected.astype(float), rtol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_distances_at_places_have_the_bits_of_those_to_all(kind: str) -> None:
    drawn = sp.random_array((60, 200), density=0.1, format="csr", rng=0)
    Y = drawn.toarray()[:7]
    rows, others = mn.asarray(as_given(drawn.toarray(), kind), blocks=2), mn.asarray(Y)
    places = np.arange(120).reshape(60, 2) % 7
    all_of, own = mn.compute(row_distances(rows, others), row_distances(rows, others, mn.asarray(places)))
    np.testing.assert_array_equal(own, np.take_along_axis(all_of, places, axis=1))
    assert all_of[0, 0] == own[0, 0] == 0


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["drawn", "on a grid, with ties", "one row far away", "all the same"])
def test_neighbors_by_products_are_those_by_all_distances(name: str, kind: str) -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    X = np.round(X) if name.startswith("on a grid") else X
    X[0] += 1e8 if name.startswith("one row") else 0
    X = X * 0 + 0.1 if name == "all the same" else X
    # Of rows that are as far in doubles, the earlier comes first.
    expected = np.argsort(((X[:, None] - X) ** 2).sum(axis=2), axis=1, kind="stable")
    search = mn.learn.NearestNeighbors().fit(as_given(X, kind))
    for k in (1, 4, 300):
        np.testing.assert_array_equal(search.kneighbors(X, k)[1].compute(), expected[:, :k])
