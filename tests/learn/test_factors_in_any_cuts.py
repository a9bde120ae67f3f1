"""Each estimator of factors gives the same on any threads, workers, processes and cuts, and interpreted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import PARAMS, Arrays, Library, check_same, cut, expected_of, library

import matnb as mn

ROWS, COLUMNS = 37, 23


def als(**options: object) -> Callable[[mn.DistArray], object]:
    """Return what an ALS learns, predicts and recommends."""

    def learned(R: mn.DistArray) -> tuple[mn.DistArray, ...]:
        model = mn.learn.ALS(4, 0.2, 3, random_state=1, **options).fit(R)
        best = model.recommend([1, 30, 5], 4)
        return model.user_factors_, model.item_factors_, model.loss_, model.predict([1, 2], [3, 0]), *best

    return learned


def item_similarity(R: mn.DistArray) -> tuple[mn.DistArray, ...]:
    """Return what ItemSimilarity learns and recommends."""
    model = mn.learn.ItemSimilarity().fit(R)
    return model.similarity_, model.predict(R), *model.recommend([1, 30, 5], 4)


def nmf(**options: object) -> Callable[[mn.DistArray], object]:
    """Return what an NMF learns and makes of rows."""

    def learned(X: mn.DistArray) -> tuple[mn.DistArray, ...]:
        model = mn.learn.NMF(4, random_state=1, **options)
        W = model.fit_transform(X)
        return W, model.components_, model.reconstruction_err_, model.transform(X)

    return learned


def mini_batch_nmf(**options: object) -> Callable[[mn.DistArray], object]:
    """Return what a MiniBatchNMF learns and makes of rows."""

    def learned(X: mn.DistArray) -> tuple[mn.DistArray, ...]:
        model = mn.learn.MiniBatchNMF(4, init="random", batch_size=8, random_state=1, tol=0, **options)
        W = model.fit_transform(X)
        return W, model.components_, model.partial_fit(X).components_, model.transform(X)

    return learned


def matrix_factorization(R: mn.DistArray) -> tuple[mn.DistArray, ...]:
    """Return what a learner of factors learns and predicts."""
    model = mn.learn.models.MatrixFactorization(4, 0.2)
    learner = mn.learn.Learner(model).fit(R, epochs=2, batch_size=8)
    return learner.parameters_["items"], R.pattern() * learner.predict(R)


ESTIMATORS: dict[str, Callable[[mn.DistArray], object]] = {
    "ALS": als(),
    "ALS, cg": als(solver="cg"),
    "ALS, implicit": als(implicit=True, alpha=2.0),
    "ALS, implicit, cg": als(implicit=True, alpha=2.0, solver="cg"),
    "ItemSimilarity": item_similarity,
    "MatrixFactorization": matrix_factorization,
    "MiniBatchNMF, Kullback-Leibler": mini_batch_nmf(beta_loss="kullback-leibler", max_iter=3),
    "NMF": nmf(init="random", tol=0, max_iter=12),
    "NMF, nndsvda": nmf(tol=1e-2),
    "NMF, Kullback-Leibler": nmf(init="random", beta_loss="kullback-leibler", tol=1e-2),
}
# Bits are the same but for those of the interpreter, which adds in another order, and float32 in float32;
# and where there are products by BLAS, whose order of adding follows the cuts.
BY_BLAS = {"ALS, implicit", "ALS, implicit, cg", "NMF", "NMF, nndsvda"}
TOLERANCES = {"float64": 1e-8, "float32": 2e-3}
CUTS = {"float64": (0, 1, 9, 10, ROWS), "float32": (0, 5, 6, 7, 20, ROWS)}


def matrices() -> dict[str, sp.csr_array]:
    """Return ratings with a row and a column without entries, of two dtypes."""
    rng = np.random.default_rng(3)
    drawn = sp.random_array((ROWS, COLUMNS), density=0.3, rng=rng, format="lil")
    drawn[5, :], drawn[:, 4] = 0, 0
    whole = sp.csr_array(drawn)
    whole.data = rng.integers(1, 6, whole.nnz) / 2
    return {"float64": whole, "float32": whole.astype(np.float32)}


@pytest.fixture(scope="module")
def expected() -> dict[tuple[str, str], Arrays]:
    return expected_of(ESTIMATORS, matrices())


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest, expected: object) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_learns_the_same(
    session: Library, expected: dict[tuple[str, str], Arrays], name: str, dtype: str
) -> None:
    given = cut(matrices()[dtype], CUTS[dtype])
    tolerance = TOLERANCES[dtype] if session.kind == "interpreter" or name in BY_BLAS else None
    check_same(session.values(ESTIMATORS[name](given)), expected[name, dtype], tolerance)
