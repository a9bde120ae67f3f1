"""MiniBatchNMF against scikit-learn's from the same start, on the same batches in the same order."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition
from sklearn.base import clone

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, NotFittedError, OptionError, ShapeError

ROWS, COLUMNS, K = 50, 24, 3
LOSSES = ["frobenius", "kullback-leibler"]
RNG = np.random.default_rng(0)
LOW = RNG.random((ROWS, K)) @ RNG.random((K, COLUMNS))
X = sp.csr_array(np.where(RNG.random(LOW.shape) < 0.4, LOW, 0))
W, H = RNG.random((ROWS, K)), RNG.random((K, COLUMNS))
PEER = sklearn.decomposition.MiniBatchNMF
CLOSE = {"rtol": 1e-7, "atol": 1e-10}

pytestmark = pytest.mark.session("two threads")


def both(**options: object) -> tuple[mn.learn.MiniBatchNMF, PEER]:
    return tuple(one(K, init="custom", **options) for one in (mn.learn.MiniBatchNMF, PEER))


def check_alike(ours: mn.learn.MiniBatchNMF, peer: PEER, of: tuple[str, ...] = ()) -> None:
    np.testing.assert_allclose(ours.components_.compute(), peer.components_, **CLOSE)
    for name in ("n_components_", "n_features_in_", "n_steps_", *of):
        assert getattr(ours, name) == getattr(peer, name), name
        assert type(getattr(ours, name)) is int, name
    found, expected = ours.transform(X[:9]).compute(), peer.transform(X[:9])
    np.testing.assert_allclose(found, expected, **CLOSE)


OPTIONS = {
    "a shorter last batch": {"batch_size": 16, "max_iter": 5},
    "batches come out even": {"batch_size": 10, "max_iter": 3},
    "one batch": {"max_iter": 6, "forget_factor": 1.0},
    "ends as H is still": {"batch_size": 16, "tol": 2e-2, "max_iter": 300, "max_no_improvement": None},
    "ends without a gain": {"batch_size": 7, "tol": 0, "max_no_improvement": 3, "max_iter": 300},
    "penalties": {"batch_size": 16, "alpha_W": 0.01, "alpha_H": 0.002, "l1_ratio": 0.3, "max_iter": 4},
    "fresh": {"batch_size": 16, "fresh_restarts": True, "fresh_restarts_max_iter": 7, "max_iter": 3},
    "nothing stays": {"batch_size": 16, "forget_factor": 0.0, "max_iter": 2, "transform_max_iter": 4},
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::matnb.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "loss", "is_sparse"),
    [
        pytest.param(
            name,
            loss,
            is_sparse,
            id=f"{name}, {loss}, {'sparse' if is_sparse else 'dense'}",
            marks=() if is_sparse or name == "fresh" else pytest.mark.slow,
        )
        for name in OPTIONS
        for loss in LOSSES
        for is_sparse in (True, False)
    ],
)
def test_learns_what_scikit_learn_does(name: str, loss: str, is_sparse: bool) -> None:
    given = X if is_sparse else X.toarray()
    ours, peer = both(beta_loss=loss, **OPTIONS[name])
    expected = peer.fit_transform(given, W=W.copy(), H=H.copy())
    found = ours.fit_transform(given, W=W, H=H)
    np.testing.assert_allclose(found.compute(), expected, **CLOSE)
    check_alike(ours, peer, ("n_iter_",))
    assert float(ours.reconstruction_err_) == pytest.approx(peer.reconstruction_err_, rel=1e-7)
    if name.startswith("ends"):
        assert 1 < ours.n_steps_ < 300
    for _ in range(2):  # what it has seen still counts
        check_alike(ours.partial_fit(X[:20]), peer.partial_fit(X[:20]))


@pytest.mark.parametrize("loss", LOSSES)
def test_partial_fit(loss: str) -> None:
    ours, peer = both(beta_loss=loss, batch_size=8, forget_factor=0.5)
    for rows in (slice(0, 20), slice(20, 26), slice(26, 50)):
        ours.partial_fit(X[rows], H=H)
        peer.partial_fit(X[rows], W=W[rows].copy(), H=H.copy())
        check_alike(ours, peer)
    again = pickle.loads(pickle.dumps(ours)).partial_fit(X)
    np.testing.assert_array_equal(again.components_, ours.partial_fit(X).components_)
    assert not hasattr(ours, "reconstruction_err_")


def test_a_component_that_no_row_has() -> None:
    none = W.copy()
    none[:, 1] = 0
    ours, peer = both(beta_loss="kullback-leibler", batch_size=16, tol=0, max_iter=3)
    peer.fit_transform(X, W=none.copy(), H=H.copy())
    np.testing.assert_allclose(ours.fit(X, W=none, H=H).components_.compute(), peer.components_, **CLOSE)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_stored_zero_is_a_zero(loss: str) -> None:
    longer = X.copy()
    longer.data[3] = 0
    shorter = longer.copy()
    shorter.eliminate_zeros()
    found, expected = (
        both(beta_loss=loss, batch_size=16, tol=0, max_iter=3)[0].fit(one, W=W, H=H).components_.compute()
        for one in (longer, shorter)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


class TestSources:
    OPTIONS = {"fresh_restarts": True, "fresh_restarts_max_iter": 5, "tol": 0, "max_iter": 3}

    @pytest.mark.parametrize("loss", LOSSES)
    def test_from_disk_is_as_from_memory(self, tmp_path: Path, loss: str) -> None:
        for number, start in enumerate(range(0, ROWS, 20)):
            sp.save_npz(tmp_path / f"{number}.npz", X[start : start + 20])
        ours, peer = both(beta_loss=loss, **self.OPTIONS)
        peer.set_params(batch_size=16).fit_transform(X, W=W.copy(), H=H.copy())
        ours.fit(mn.sources.files(tmp_path, batch_size=16), H=H)
        check_alike(ours, peer, ("n_iter_",))
        in_memory = ours.components_.compute()
        ours.set_params(batch_size=16).fit(X, W=W, H=H)
        np.testing.assert_allclose(ours.components_.compute(), in_memory, rtol=1e-12)

    def test_ends_where_it_has_settled(self) -> None:
        model = mn.learn.MiniBatchNMF(
            K, random_state=0, fresh_restarts=True, fresh_restarts_max_iter=5, tol=0.1
        )
        model.fit(mn.sources.memory(X.astype(np.float32), batch_size=16))
        assert model.components_.dtype == np.float32
        assert 1 < model.n_steps_ < 800
        assert model.n_iter_ == -(-model.n_steps_ // 4)

    def test_what_cannot_be_is_said(self) -> None:
        source = mn.sources.memory(X, batch_size=16)
        with pytest.raises(OptionError, match="W of a batch is not kept for the next pass; give fresh_"):
            mn.learn.MiniBatchNMF(K).fit(source)
        with pytest.raises(OptionError, match=r"MiniBatchNMF\.fit_transform of a source: call fit"):
            mn.learn.MiniBatchNMF(K).fit_transform(source)
        wrong = X.copy()
        wrong.data[-1] = -3
        model = mn.learn.MiniBatchNMF(K, random_state=0, **self.OPTIONS)
        with pytest.raises(OptionError, match=r"MiniBatchNMF: BatchSource.* has the number -3; give 0"):
            model.fit(mn.sources.memory(wrong, batch_size=16))
        assert not hasattr(model, "components_")


@pytest.mark.parametrize("init", [None, "random", "nndsvdar"])
def test_starts_of_its_own(init: str | None) -> None:
    model, again = (
        clone(mn.learn.MiniBatchNMF(K, init=init, batch_size=16, random_state=3, tol=0, max_iter=20))
        for _ in range(2)
    )
    found = model.fit_transform(X)
    np.testing.assert_array_equal(found, again.fit_transform(X))
    even = mn.learn.NMF(K, init="custom", tol=0, max_iter=1).fit(X, W=np.ones((ROWS, K)), H=np.ones_like(H))
    assert float(model.reconstruction_err_) < 0.9 * float(even.reconstruction_err_)
    assert model.inverse_transform(found).shape == X.shape


def test_says_where_it_has_not_converged() -> None:
    with pytest.warns(ConvergenceWarning, match="MiniBatchNMF: after 2 passes H still moves by more than"):
        mn.learn.MiniBatchNMF(K, batch_size=16, max_iter=2, tol=1e-9, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("given", "options", "error", "told"),
    [
        (-X, {}, OptionError, r"MiniBatchNMF: X\[0, \d+\] is the first number below 0"),
        (X * np.nan, {}, OptionError, "that is NaN"),
        (X[:0], {}, ShapeError, "has no row"),
        (X, {"n_components": 0}, OptionError, "MiniBatchNMF: n_components=0"),
        (X, {"batch_size": 0}, OptionError, "MiniBatchNMF: batch_size=0"),
        (X, {"init": "svd"}, OptionError, "MiniBatchNMF: init='svd'"),
        (X, {"beta_loss": "itakura-saito"}, OptionError, "MiniBatchNMF: beta_loss='itakura-saito'"),
        (X, {"tol": -1}, OptionError, "MiniBatchNMF: tol=-1"),
        (X, {"forget_factor": 1.5}, OptionError, "MiniBatchNMF: forget_factor=1.5; give 0 to 1"),
        (X, {"max_no_improvement": 0}, OptionError, "MiniBatchNMF: max_no_improvement=0"),
        (X, {"l1_ratio": 2}, OptionError, "MiniBatchNMF: l1_ratio=2"),
        (X, {"transform_max_iter": 0}, OptionError, "MiniBatchNMF: transform_max_iter=0"),
        (X, {"init": "custom"}, OptionError, "init='custom' without H; give it beside X"),
        (X.astype(complex), {}, DTypeError, "give real numbers"),
    ],
)
def test_bad_input(given: object, options: dict[str, object], error: type[Exception], told: str) -> None:
    model = mn.learn.MiniBatchNMF(**{"n_components": K, "max_iter": 1, "tol": 0, **options})
    with pytest.raises(error, match=told):
        model.fit(given)
    with pytest.raises(NotFittedError):
        model.transform(X)


def test_a_fit_that_fails_leaves_what_was_learned() -> None:
    model = mn.learn.MiniBatchNMF(K, random_state=0, tol=0, max_iter=2).fit(X)
    before = model.components_.compute()
    for fails in (lambda: model.fit(-X), lambda: model.partial_fit(X[:, :5])):
        with pytest.raises((OptionError, ShapeError)):
            fails()
    np.testing.assert_array_equal(model.components_, before)
    assert model.n_steps_ == 2
