"""Likenesses of items against dense products, without the likenesses of users."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.errors import DTypeError, IndexingError, OptionError, ShapeError

R = sp.random_array((40, 15), density=0.2, rng=np.random.default_rng(2), format="csr")
R.data = np.ceil(5 * R.data)

pytestmark = pytest.mark.session("two threads")


def test_likenesses_are_products_of_items() -> None:
    model = mn.learn.ItemSimilarity().fit(R)
    assert model.similarity_.sparse
    dense = R.toarray()
    np.testing.assert_array_equal(model.similarity_.to_scipy().toarray(), dense.T @ dense)
    scores = model.predict(R)
    assert scores.sparse
    np.testing.assert_array_equal(scores.to_scipy().toarray(), dense @ dense.T @ dense)
    np.testing.assert_array_equal(model.predict(R[3:5]).to_scipy().toarray(), (dense @ dense.T @ dense)[3:5])


def test_likenesses_of_users_are_never_made() -> None:
    tall = mn.asarray(sp.csr_array(np.ones((3000, 2))))
    scores = mn.learn.ItemSimilarity().fit(tall).predict(tall)
    told = scores.explain()
    assert "(3000, 2)" in told
    assert "(3000, 3000)" not in told


@pytest.mark.parametrize("exclude_seen", [True, False])
def test_recommends_the_best(exclude_seen: bool) -> None:
    dense = R.toarray()
    scores = dense @ dense.T @ dense
    if exclude_seen:
        scores[dense != 0] = -np.inf
    found = mn.learn.ItemSimilarity().fit(R).recommend(np.arange(40), 15, exclude_seen)
    expected = np.argsort(-scores, axis=1, kind="stable")
    ranked = np.take_along_axis(scores, expected, axis=1)
    np.testing.assert_array_equal(found.scores.compute(), ranked)
    np.testing.assert_array_equal(found.items.compute(), np.where(ranked == -np.inf, -1, expected))


def test_bad_input() -> None:
    model = mn.learn.ItemSimilarity()
    with pytest.raises(DTypeError, match="ItemSimilarity of a dense array"):
        model.fit(R.toarray())
    with pytest.raises(OptionError, match="that is NaN"):
        model.fit(R * np.nan)
    model.fit(R)
    with pytest.raises(ShapeError, match="X has 14 features, but it was fitted to 15"):
        model.predict(R[:, :14])
    with pytest.raises(IndexingError, match=r"users\[0\] is 40"):
        model.recommend([40])
