"""ALS against least squares solved row by row in NumPy, held-out ratings of MovieLens, and any cuts."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.model_selection import GridSearchCV

import matnb as mn
from matnb.errors import DTypeError, IndexingError, NotFittedError, OptionError, ShapeError, UnsupportedError

USERS, ITEMS, FACTORS = 37, 23, 4
WAYS = {
    "explicit": {},
    "implicit": {"implicit": True, "alpha": 2.0},
    "explicit, cg": {"solver": "cg"},
    "implicit, cg": {"implicit": True, "alpha": 2.0, "solver": "cg"},
}


def ratings(dtype: type = np.float64) -> sp.csr_array:
    """Return ratings 1 to 5, one of them a stored zero; user 5 and items 4 and 22 have none."""
    rng = np.random.default_rng(3)
    R = sp.random_array((USERS, ITEMS), density=0.3, rng=rng, format="lil")
    R[5, :], R[:, 4], R[:, 22] = 0, 0, 0
    R = sp.csr_array(R)
    R.data = rng.integers(1, 6, R.nnz).astype(dtype)
    R.data[7] = 0
    return R


pytestmark = pytest.mark.session("two threads")


def row_by_row(R: sp.csr_array, Y: np.ndarray, c: float, a: float | None) -> np.ndarray:
    """Return the best factors of each row."""
    X = np.zeros((R.shape[0], Y.shape[1]))
    for u in range(R.shape[0]):
        columns, r = R.indices[R.indptr[u] : R.indptr[u + 1]], R.data[R.indptr[u] : R.indptr[u + 1]]
        if not len(columns):
            continue
        if a is None:
            used = Y[columns]
            X[u] = np.linalg.solve(used.T @ used + c * len(r) * np.eye(Y.shape[1]), used.T @ r)
        else:
            confidence, preference = np.ones(R.shape[1]), np.zeros(R.shape[1])
            confidence[columns] += a * r
            preference[columns] = r > 0
            system = (Y.T * confidence) @ Y + c * np.eye(Y.shape[1])
            X[u] = np.linalg.solve(system, Y.T @ (confidence * preference))
    return X


def loss(R: sp.csr_array, X: np.ndarray, Y: np.ndarray, c: float, a: float | None) -> float:
    """Return what ALS lessens, from all pairs."""
    stored = sp.csr_array((np.ones(R.nnz), R.indices, R.indptr), R.shape).toarray() > 0
    r, found = R.toarray(), X @ Y.T
    if a is None:
        shrunk = (stored.sum(axis=1) * (X**2).sum(axis=1)).sum() + (
            stored.sum(axis=0) * (Y**2).sum(axis=1)
        ).sum()
        return float((stored * (r - found) ** 2).sum() + c * shrunk)
    return float(((1 + a * r) * ((r > 0) - found) ** 2).sum() + c * ((X**2).sum() + (Y**2).sum()))


@pytest.mark.parametrize("implicit", [False, True])
def test_a_round_solves_each_row(implicit: bool) -> None:
    R, a = ratings(), 2.0 if implicit else None
    one, two = (
        mn.learn.ALS(FACTORS, 0.2, n, implicit=implicit, alpha=2.0, random_state=1).fit(R) for n in (1, 2)
    )
    U = row_by_row(R, one.item_factors_.compute(), 0.2, a)
    V = row_by_row(sp.csr_array(R.T), U, 0.2, a)
    np.testing.assert_allclose(two.user_factors_.compute(), U, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(two.item_factors_.compute(), V, rtol=1e-8, atol=1e-10)
    assert float(two.loss_) == pytest.approx(loss(R, U, V, 0.2, a), rel=1e-9)
    assert two.n_iter_ == 2


@pytest.mark.parametrize("way", WAYS)
def test_the_loss_falls_each_round_and_ends_where_both_solvers_do(way: str) -> None:
    R, options = ratings(), WAYS[way]
    losses = [
        float(mn.learn.ALS(FACTORS, 0.2, n, random_state=1, **options).fit(R).loss_) for n in range(1, 8)
    ]
    assert all(after < before for before, after in pairwise(losses))
    exact = mn.learn.ALS(FACTORS, 0.2, 300, random_state=1, **{**options, "solver": "cholesky"}).fit(R)
    settled = mn.learn.ALS(FACTORS, 0.2, 300, random_state=1, **options).fit(R)
    assert float(settled.loss_) == pytest.approx(float(exact.loss_), rel=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_who_has_no_ratings_has_no_factors(way: str) -> None:
    als = mn.learn.ALS(FACTORS, 0.2, 3, random_state=1, **WAYS[way]).fit(ratings())
    assert not als.user_factors_.compute()[5].any()
    assert not als.item_factors_.compute()[[4, 22]].any()
    # What nothing is known of is predicted as the mean of the ratings, or as no sign of interest.
    mean = 0.0 if als.implicit else ratings().data.mean()
    np.testing.assert_allclose(als.predict([5, 0], [0, 4]).compute(), [mean] * 2, rtol=1e-12)
    assert float(als.mean_) == pytest.approx(ratings().data.mean(), rel=1e-12)
    assert als.recommend([5], 3).items.compute().tolist() == [[0, 1, 2]]
    assert np.isfinite(float(als.loss_))


def test_ends_where_the_loss_settles() -> None:
    als = mn.learn.ALS(FACTORS, 0.2, 200, tol=1e-3, random_state=1).fit(ratings())
    n = als.n_iter_
    before, at = (
        float(mn.learn.ALS(FACTORS, 0.2, k, random_state=1).fit(ratings()).loss_) for k in (n - 1, n)
    )
    assert 1 < n < 200
    assert before - at <= 1e-3 * before
    assert float(als.loss_) == at
    with pytest.warns(mn.errors.ConvergenceWarning, match="ALS"):
        mn.learn.ALS(FACTORS, 0.2, 2, tol=1e-9, random_state=1).fit(ratings())


def test_recommends_the_best_that_were_not_seen() -> None:
    R = ratings()
    als = mn.learn.ALS(FACTORS, 0.2, 3, random_state=1).fit(R)
    products = als.user_factors_.compute() @ als.item_factors_.compute().T
    users = [3, 0, 3, 36]
    every = als.recommend(users, ITEMS, exclude_seen=False)
    np.testing.assert_array_equal(every.items.compute(), np.argsort(-products[users], axis=1, kind="stable"))
    stored = sp.csr_array((np.ones(R.nnz), R.indices, R.indptr), R.shape).toarray() > 0
    unseen = np.where(stored, -np.inf, products)[users]
    found = als.recommend(users, ITEMS)
    np.testing.assert_allclose(found.scores.compute(), -np.sort(-unseen, axis=1), rtol=1e-12)
    expected = np.argsort(-unseen, axis=1, kind="stable")
    expected[np.take_along_axis(unseen, expected, axis=1) == -np.inf] = -1
    np.testing.assert_array_equal(found.items.compute(), expected)
    few = als.recommend(users, 2)
    np.testing.assert_array_equal(few.items.compute(), expected[:, :2])


def test_recommends_in_batches_that_do_not_come_out_even(monkeypatch: pytest.MonkeyPatch) -> None:
    als = mn.learn.ALS(FACTORS, 0.2, 3, random_state=1).fit(ratings())
    whole = als.recommend(np.arange(USERS), 5).items.compute()
    monkeypatch.setattr("matnb.learn.recommend.recommending._SCORES", 5 * ITEMS)
    mn.memo.clear()
    np.testing.assert_array_equal(als.recommend(np.arange(USERS), 5).items.compute(), whole)


def test_items_and_their_scores_are_shown_alike() -> None:
    als = mn.learn.ALS(2, random_state=0).fit(ratings())
    found = als.recommend([1, 2], 3)
    shown = repr(found), found._repr_mimebundle_()["text/html"]
    assert all("not computed" not in text for text in shown)


def test_held_out_ratings_of_movielens(test_data: Path) -> None:
    table = np.loadtxt(test_data / "ml-latest-small" / "ratings.csv", delimiter=",", skiprows=1)
    users, items = (np.unique(table[:, column], return_inverse=True)[1] for column in (0, 1))
    held = np.random.default_rng(0).random(len(table)) < 0.1
    R = sp.csr_array((table[~held, 2], (users[~held], items[~held])), shape=(610, 9724))
    als = mn.learn.ALS(20, 0.15, 15, random_state=0).fit(R)
    known = held & (np.diff(R.tocsc().indptr)[items] > 0)
    missed = als.predict(users[known], items[known]).compute() - table[known, 2]
    assert 0.84 < np.sqrt(np.mean(missed**2)) < 0.92
    # Films without a rating among them.
    missed = als.predict(users[held], items[held]).compute() - table[held, 2]
    assert np.sqrt(np.mean(missed**2)) < np.std(table[held, 2] - R.data.mean()) - 0.1


@pytest.mark.parametrize(
    ("change", "options", "error", "told"),
    [
        (lambda R: R.toarray(), {}, DTypeError, "ALS of a dense array of shape"),
        (lambda R: R * np.nan, {}, OptionError, r"ALS: X\[0, \d+\] is the first number that is NaN"),
        (lambda R: R[:0], {}, ShapeError, "has no row"),
        (
            lambda R: -R,
            {"implicit": True},
            OptionError,
            r"ALS: R\[0, \d+\] is the first number below 0",
        ),
        (lambda R: R, {"factors": USERS + 1}, OptionError, "ALS: factors=38; give 1 to 37"),
        (lambda R: R, {"solver": "lu"}, OptionError, "ALS: solver='lu'"),
        (lambda R: R, {"regularization": -1}, OptionError, "ALS: regularization=-1"),
        (lambda R: R, {"iterations": 0}, OptionError, "ALS: iterations=0"),
        (lambda R: R, {"alpha": np.inf, "implicit": True}, OptionError, "ALS: alpha=inf"),
    ],
)
def test_bad_input(change: object, options: dict[str, object], error: type[Exception], told: str) -> None:
    als = mn.learn.ALS(**{"factors": 3, "iterations": 1, **options})
    with pytest.raises(error, match=told):
        als.fit(change(ratings()))  # type: ignore[operator]
    with pytest.raises(NotFittedError):
        als.predict([0], [0])


def test_users_and_items_that_there_are_not() -> None:
    als = mn.learn.ALS(3, iterations=1).fit(ratings())
    with pytest.raises(IndexingError, match=r"ALS.predict: users\[1\] is 37; there are 37 of them"):
        als.predict([0, USERS], [0, 0])
    with pytest.raises(IndexingError, match=r"ALS.recommend: users\[0\] is -1"):
        als.recommend([-1])
    with pytest.raises(DTypeError, match="items has dtype float64; give integers"):
        als.predict([0], [0.5])
    with pytest.raises(ShapeError):
        als.predict([0, 1], [0, 1, 2])
    with pytest.raises(OptionError, match="n=24; give 1 to 23"):
        als.recommend([0], ITEMS + 1)
    assert als.predict([], []).compute().shape == (0,)
    assert als.recommend([], 2).items.compute().shape == (0, 2)


def test_a_fit_that_fails_leaves_what_was_learned() -> None:
    als = mn.learn.ALS(3, iterations=1, random_state=0).fit(ratings())
    before = als.user_factors_.compute()
    with pytest.raises(OptionError):
        als.fit(ratings() * np.nan)
    np.testing.assert_array_equal(als.user_factors_.compute(), before)


def test_says_how_it_is_scored() -> None:
    R = ratings()
    als = mn.learn.ALS(FACTORS, iterations=2, random_state=0).fit(R)
    with pytest.raises(AttributeError, match="ALS has no attribute 'score'; ") as raised:
        als.score(R)
    code = str(raised.value).partition("; ")[2].partition(", the error")[0]
    T = R.tocoo()
    predicted = np.sum(als.user_factors_.compute()[T.row] * als.item_factors_.compute()[T.col], axis=1)
    found = float(eval(code, {"np": np, "als": als, "T": T}))
    assert found == pytest.approx(np.sqrt(np.mean((predicted - T.data) ** 2)))
    for search in (GridSearchCV(mn.learn.ALS(), {"factors": [2]}), GridSearchCV(als, {"factors": [2]}, cv=2)):
        with pytest.raises(UnsupportedError, match=r"must see each.*ParameterGrid\(parameters\)"):
            search.fit(mn.asarray(R))
    assert not hasattr(als, "score")  # to others


def rated(seed: int = 0) -> pd.DataFrame:
    """Return ratings of users and films whose numbers are anything but places."""
    rng = np.random.default_rng(seed)
    users, films = rng.permutation(np.arange(1, 100, 3))[:20], rng.permutation(np.arange(1000))[:15]
    pairs = rng.permutation(20 * 15)[:120]
    stars = rng.integers(1, 6, 120).astype(float)
    return pd.DataFrame({"user": users[pairs // 15], "film": films[pairs % 15], "stars": stars})


def test_users_and_items_of_a_pivot_are_given_by_their_labels() -> None:
    frame = rated()
    t = mn.table(frame)
    R = t.pivot("user", "film", "stars")
    labeled, plain = (mn.learn.ALS(3, random_state=0).fit(one) for one in (R, R.without_labels()))
    places = np.searchsorted(R.rows, frame["user"]), np.searchsorted(R.columns, frame["film"])
    expected = plain.predict(*places).compute()
    films = t["film"]
    for given in ([t["user"], films], [frame["user"], frame["film"]], [frame["user"].tolist(), films]):
        np.testing.assert_array_equal(labeled.predict(*given), expected)
    asked = frame["user"].to_numpy()[:6]
    for exclude in (True, False):
        found = labeled.recommend(asked, 15, exclude)
        at = plain.recommend(np.searchsorted(R.rows, asked), 15, exclude).items.compute()
        np.testing.assert_array_equal(found.items, np.where(at < 0, -1, R.columns[at]))
    likeness, other = (mn.learn.ItemSimilarity().fit(one) for one in (R, R.without_labels()))
    at = other.recommend(np.searchsorted(R.rows, asked), 5).items.compute()
    np.testing.assert_array_equal(likeness.recommend(asked, 5).items, np.where(at < 0, -1, R.columns[at]))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(labeled)).predict(t["user"], t["film"]), expected)


def test_labels_that_there_are_not() -> None:
    t = mn.table({"user": ["b", "a", "b", "c"], "film": [70, 70, 90, 80], "stars": [5.0, 4.0, 1.0, 3.0]})
    R = t.pivot("user", "film", "stars")
    als = mn.learn.ALS(2, regularization=0.01, random_state=0).fit(R)
    for users in ("b", ["b"], np.array(["b"], object), t["user"][2:3], [1]):
        assert float(als.predict(users, [90])[0]) == pytest.approx(1.0, abs=0.1)
    with pytest.raises(IndexingError, match=r"ALS.predict: users\[1\] is 'B', which is no label.*'b'"):
        als.predict(["a", "B"], [70, 70])
    for items in ([70, 2], mn.asarray(np.array([70, 2])), ["70", "2"], [70, 2.5]):
        with pytest.raises(IndexingError, match=r"items\[[01]\] is .*: the labels are 70, 80, 90"):
            als.predict(["a", "b"], items)
    turned = mn.learn.ALS(2, random_state=0).fit(t.pivot("film", "user", "stars"))
    found = turned.recommend([90], 1)
    assert turned.item_labels_[found.items.compute()].tolist()[0][0] in "ac"
    with pytest.raises(DTypeError, match="the fitted matrix has no labels"):
        mn.learn.ALS(2).fit(R.without_labels()).predict(["b"], [0])
