"""NMF against scikit-learn's from the same start, and what it must keep from any."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, NotFittedError, OptionError, ShapeError
from matnb.learn.decomposition import nonnegative

ROWS, COLUMNS, K = 60, 40, 4
LOSSES = ["frobenius", "kullback-leibler"]
RNG = np.random.default_rng(0)
X = sp.random_array((ROWS, COLUMNS), density=0.2, rng=RNG, format="csr")
W, H = RNG.random((ROWS, K)), RNG.random((K, COLUMNS))

pytestmark = pytest.mark.session("two threads")


@pytest.mark.parametrize("is_sparse", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "options",
    [
        {"tol": 0, "max_iter": 7},
        {"tol": 1e-4, "max_iter": 500},
        {"tol": 1e-3, "max_iter": 200, "alpha_W": 0.01, "alpha_H": 0.002, "l1_ratio": 0.3},
        {"tol": 0, "max_iter": 30, "alpha_W": 0.01, "l1_ratio": 1.0},
    ],
)
def test_learns_what_scikit_learn_does_from_the_same_start(
    is_sparse: bool, loss: str, options: dict[str, float]
) -> None:
    given = X if is_sparse else X.toarray()
    theirs = sklearn.decomposition.NMF(K, init="custom", solver="mu", beta_loss=loss, **options)
    ours = mn.learn.NMF(K, init="custom", beta_loss=loss, **options)
    expected = theirs.fit_transform(given, W=W.copy(), H=H.copy())
    found = ours.fit_transform(given, W=W, H=H)
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.components_.compute(), theirs.components_, rtol=1e-9, atol=1e-12)
    assert ours.n_iter_ == theirs.n_iter_
    assert float(ours.reconstruction_err_) == pytest.approx(theirs.reconstruction_err_, rel=1e-9)
    assert (ours.n_components_, ours.n_features_in_) == (K, COLUMNS)
    if "alpha_W" not in options or loss == "frobenius":  # scikit-learn adds l1 to its sums at each update
        np.testing.assert_allclose(
            ours.transform(given[:9]).compute(), theirs.transform(given[:9]), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(
        ours.inverse_transform(found).compute(), expected @ theirs.components_, rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("init", [None, "random", "nndsvda", "nndsvdar"])
def test_the_error_falls_with_each_update(loss: str, init: str | None) -> None:
    errors = [
        float(
            mn.learn.NMF(K, init=init, beta_loss=loss, tol=0, max_iter=n, random_state=1)
            .fit(X)
            .reconstruction_err_
        )
        for n in range(1, 6)
    ]
    assert all(after < before for before, after in pairwise(errors))


@pytest.mark.parametrize("init", ["nndsvd", "nndsvda"])
def test_begins_from_the_singular_vectors_as_scikit_learn_does(init: str) -> None:
    # Its own singular vectors are drawn ones, near enough where values fall off fast.
    low = RNG.random((50, 3)) @ RNG.random((3, 30))
    theirs = sklearn.decomposition.NMF(3, init=init, solver="cd", max_iter=1, random_state=0)
    expected, others = sklearn.decomposition._nmf._initialize_nmf(low, 3, init, random_state=0)
    found, turned = nonnegative.start_of(mn.asarray(low), 3, init, 0, "NMF")
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(turned.T.compute(), others, rtol=1e-6, atol=1e-6)
    assert theirs.init == init


@pytest.mark.parametrize("loss", LOSSES)
def test_a_stored_zero_is_a_zero(loss: str) -> None:
    longer = X.copy()
    longer.data[3] = 0
    shorter = longer.copy()
    shorter.eliminate_zeros()
    found, expected = (
        mn.learn.NMF(K, init="custom", beta_loss=loss, tol=1e-3).fit(one, W=W, H=H)
        for one in (longer, shorter)
    )
    np.testing.assert_allclose(found.components_.compute(), expected.components_.compute(), rtol=1e-12)
    assert float(found.reconstruction_err_) == pytest.approx(float(expected.reconstruction_err_), rel=1e-12)


def test_draws_follow_from_the_seed_alone() -> None:
    first, again, other = (
        mn.learn.NMF(K, init="random", random_state=seed, max_iter=2, tol=0).fit(X).components_.compute()
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_components_when_no_number_is_given() -> None:
    assert mn.learn.NMF(tol=0, max_iter=1).fit(X[:, :5]).n_components_ == 5
    model = mn.learn.NMF(init="custom", tol=0, max_iter=1)
    assert model.fit(X, W=W, H=H).n_components_ == K
    above_both = mn.learn.NMF(70, tol=0, max_iter=2, random_state=0).fit(X)
    assert above_both.components_.shape == (70, COLUMNS)


def test_in_a_pipeline() -> None:
    pipeline = make_pipeline(clone(mn.learn.NMF(K, random_state=0, tol=0, max_iter=5)))
    assert pipeline.fit_transform(X).shape == (ROWS, K)
    assert pipeline.transform(X[:7]).shape == (7, K)


def test_float32_stays() -> None:
    model = mn.learn.NMF(K, random_state=0, tol=1e-2)
    found = model.fit_transform(X.astype(np.float32))
    assert found.dtype == model.components_.dtype == model.transform(X.astype(np.float32)).dtype == np.float32


def test_says_where_it_has_not_converged() -> None:
    with pytest.warns(ConvergenceWarning, match="NMF"):
        mn.learn.NMF(K, max_iter=15, tol=1e-12, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("given", "options", "error", "told"),
    [
        (-X, {}, OptionError, r"NMF: X\[0, \d+\] is the first number below 0"),
        (X * np.nan, {}, OptionError, "that is NaN"),
        (X[:0], {}, ShapeError, "has no row"),
        (X[:, :0], {}, ShapeError, "has no feature"),
        (X, {"n_components": 0}, OptionError, "NMF: n_components=0"),
        (X, {"n_components": 41, "init": "nndsvd"}, OptionError, "init='nndsvd' with 41 components"),
        (X, {"init": "svd"}, OptionError, "NMF: init='svd'"),
        (X, {"solver": "cd"}, OptionError, "NMF: solver='cd'; choose one of 'mu'"),
        (X, {"beta_loss": "itakura-saito"}, OptionError, "NMF: beta_loss='itakura-saito'"),
        (X, {"tol": -1}, OptionError, "NMF: tol=-1"),
        (X, {"l1_ratio": 2}, OptionError, "NMF: l1_ratio=2"),
        (X, {"init": "custom", "n_components": K}, OptionError, "init='custom' without H"),
    ],
)
def test_bad_input(given: object, options: dict[str, object], error: type[Exception], told: str) -> None:
    model = mn.learn.NMF(**{"max_iter": 1, "tol": 0, **options})
    with pytest.raises(error, match=told):
        model.fit(given)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_starts_that_do_not_fit() -> None:
    model = mn.learn.NMF(K, init="custom")
    with pytest.raises(ShapeError, match=r"NMF: H of shape \(3, 40\); give one of \(4, 40\)"):
        model.fit(X, W=W, H=H[:3])
    with pytest.raises(DTypeError, match="NMF: W of float32 for X of float64"):
        model.fit(X, W=W.astype(np.float32), H=H)
    with pytest.raises(OptionError, match="W has a negative element"):
        model.fit(X, W=-W, H=H)
    model.set_params(init="random", tol=0, max_iter=1).fit(X)
    with pytest.raises(ShapeError, match="X has 39 features, but it was fitted to 40"):
        model.transform(X[:, :39])


def test_a_start_with_zeros_is_warned_of_as_scikit_learn_does() -> None:
    for start in ("nndsvd", "nndsvda"):
        with warnings.catch_warnings(record=True) as theirs:
            warnings.simplefilter("always")
            sklearn.decomposition.NMF(K, init=start, solver="mu", max_iter=1, tol=0).fit(X)
        with warnings.catch_warnings(record=True) as ours:
            warnings.simplefilter("always")
            mn.learn.NMF(K, init=start, max_iter=1, tol=0).fit(X)
        expected = ["init='nndsvda'" in str(one.message) for one in theirs if "zeros" in str(one.message)]
        assert ["init='nndsvda'" in str(one.message) for one in ours] == expected
