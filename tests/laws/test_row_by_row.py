"""Steps row by row give the same bits in one run as one after the other, and as many as scikit-learn's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model

import matnb as mn
from matnb.errors import ConvergenceWarning
from matnb.lazy.array import wrap
from matnb.lazy.functions.row_descent import Descent
from matnb.learn.linear import stochastic
from matnb.ops.interpret import interpret
from matnb.ops.row_descent import RowDescent

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 11))
SPARSE = sp.csr_array(X * (RNG.uniform(size=X.shape) < 0.3))
NUMBERS = X @ RNG.normal(size=11) + 0.2 * RNG.normal(size=60)
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [-1, 1])
WEIGHTS = RNG.uniform(0, 2, 60)
ROWS = {"dense": X, "sparse": SPARSE, "float32": X.astype(np.float32)}
MODELS: dict[str, tuple[str, np.ndarray, dict[str, Any]]] = {
    "two classes": ("SGDClassifier", TWO, {}),
    "three classes": ("SGDClassifier", THREE, {"loss": "log_loss", "alpha": 0.01}),
    "numbers": ("SGDRegressor", NUMBERS, {}),
    "l1": ("SGDRegressor", NUMBERS, {"penalty": "l1", "alpha": 0.01}),
    "elasticnet": ("SGDClassifier", TWO, {"penalty": "elasticnet", "alpha": 0.01, "loss": "modified_huber"}),
    "a strong penalty": (
        "SGDRegressor", NUMBERS, {"alpha": 9.0, "learning_rate": "constant", "eta0": 0.1, "loss": "huber"},
    ),
}  # fmt: skip

pytestmark = pytest.mark.session("two threads")


def learned(model: Any) -> list[np.ndarray]:
    return [np.asarray(model.coef_), np.asarray(model.intercept_), np.asarray(model.t_)]


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("name", MODELS)
def test_a_run_of_rows_is_its_rows_one_after_the_other(name: str, kind: str) -> None:
    estimator, y, options = MODELS[name]
    rows = ROWS[kind]
    whole = getattr(mn.learn, estimator)(shuffle=False, tol=None, max_iter=1, **options)
    whole.fit(rows, y, sample_weight=WEIGHTS)
    parts = getattr(mn.learn, estimator)(**options)
    classes = {} if estimator == "SGDRegressor" else {"classes": np.unique(y)}
    for start, stop in [(0, 1), (1, 2), (2, 9), (9, 10), (10, 60)]:
        part = slice(start, stop)
        parts.partial_fit(rows[part], y[part], sample_weight=WEIGHTS[part], **classes)
    for ours, theirs in zip(learned(whole), learned(parts), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ROWS)
def test_parts_of_large_rows_and_other_cuts_are_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"random_state": 3, "max_iter": 4, "tol": None}
    whole = mn.learn.SGDClassifier(**options).fit(ROWS[kind], THREE)
    cut = mn.learn.SGDClassifier(**options).fit(mn.asarray(ROWS[kind], blocks=(4, 1)), THREE)
    monkeypatch.setattr(stochastic, "PART_BYTES", 500)
    parts = mn.learn.SGDClassifier(**options).fit(ROWS[kind], THREE)
    for one, other, third in zip(learned(whole), learned(cut), learned(parts), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, third)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("name", ["two classes", "numbers", "l1", "elasticnet", "a strong penalty"])
def test_it_is_scikit_learns(name: str, kind: str) -> None:
    estimator, y, options = MODELS[name]
    given = {"shuffle": False, "max_iter": 8, "tol": None, **options}
    ours = getattr(mn.learn, estimator)(**given).fit(ROWS[kind], y)
    theirs = getattr(linear_model, estimator)(**given).fit(ROWS[kind], y)
    assert ours.n_iter_ == theirs.n_iter_
    np.testing.assert_allclose(learned(ours)[0], theirs.coef_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_batches_go_on_from_rows_and_rows_from_batches(name: str) -> None:
    estimator, y, options = MODELS[name]
    classes = {} if estimator == "SGDRegressor" else {"classes": np.unique(y)}
    by_rows, alternating = (getattr(mn.learn, estimator)(**options) for _ in range(2))
    # A batch of one row is one step by rows, whose rate depends on the steps before.
    for number, size in enumerate((2, 1, 1, 2, 3, 1, 2)):
        part = slice(number, number + 1)
        by_rows.partial_fit(X[part], y[part], **classes)
        alternating.set_params(batch_size=size).partial_fit(X[part], y[part], **classes)
    assert alternating.n_iter_ == by_rows.n_iter_ == 7
    assert alternating.t_ == by_rows.t_ == 8
    for ours, theirs in zip(learned(alternating), learned(by_rows), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["two classes", "three classes", "numbers"])
@pytest.mark.parametrize(
    "kinds", ["sparse, dense, sparse", "dense, sparse, float32", "sparse, float32, dense"]
)
def test_rows_of_one_kind_go_on_from_those_of_another(kinds: str, name: str) -> None:
    estimator, y, options = MODELS[name]
    # A strong penalty: the scale that weights of sparse rows share is soon far from 1.
    given = {**options, "alpha": 0.05, "learning_rate": "constant", "eta0": 0.02, "fit_intercept": False}
    classes = {} if estimator == "SGDRegressor" else {"classes": np.unique(y)}
    same, mixed = (getattr(mn.learn, estimator)(**given) for _ in range(2))
    for number, kind in enumerate(kinds.split(", ")):
        part = slice(20 * number, 20 * number + 20)
        rows = SPARSE[part].toarray().astype(np.float32)
        same.partial_fit(rows.astype(np.float64), y[part], **classes)
        as_kind = {"dense": rows.astype(np.float64), "float32": rows, "sparse": sp.csr_array(rows)}
        mixed.partial_fit(as_kind[kind], y[part], **classes)
    np.testing.assert_allclose(learned(mixed)[0], learned(same)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("penalties", ["l2, l1", "l2, elasticnet, l2", "l2, l1, l2"])
def test_sparse_rows_go_on_under_another_penalty_as_dense_ones_do(penalties: str) -> None:
    given = {"alpha": 0.05, "learning_rate": "constant", "eta0": 0.02, "fit_intercept": False}
    dense, sparse = (mn.learn.SGDRegressor(**given) for _ in range(2))
    for number, penalty in enumerate(penalties.split(", ")):
        part = slice(20 * number, 20 * number + 20)
        # All elements are stored, since an L1 penalty is taken by a row's entries alone, as scikit-learn's.
        for model, rows in ((dense, X[part]), (sparse, sp.csr_array(X[part]))):
            model.set_params(penalty=penalty).partial_fit(rows, NUMBERS[part])
    np.testing.assert_allclose(learned(sparse)[0], learned(dense)[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 0.25, 1e-8])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.1), (0.05, 0.0), (0.05, 0.1), (0.0, 0.0)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_scale_of_weights_is_that_of_the_reference(kind: str, l1: float, l2: float, scale: float) -> None:
    descent = Descent("squared_error", 0.1, l1, l2, 1.0, False, "constant", 0.02, 0.5, 0.0, passes=2)
    penalty = np.append(np.linspace(-0.1, 0.1, 11), 0.1) if l1 else []
    state = np.concatenate([np.linspace(-1, 1, 11) / scale, [0.5], penalty, [scale, 3]])
    inputs = SPARSE if kind == "sparse" else X, NUMBERS[:, None], state
    node = RowDescent(tuple(mn.asarray(one).expression for one in inputs), descent)
    ours, theirs = np.asarray(wrap(node)), interpret(node)
    place = 1 + len(penalty)  # of the scale, behind the intercept
    scales = ours[14 + place], theirs[14 + place]
    assert scales[1] == 1
    np.testing.assert_allclose(ours[3:14] * scales[0], theirs[3:14], rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(np.delete(ours[14:], place), np.delete(theirs[14:], place), rtol=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_what_diverges_keeps_the_model_before_and_says_so(kind: str) -> None:
    rows = ROWS[kind] * 1e170
    with pytest.warns(ConvergenceWarning, match=r"row \d+ of pass 0 leads to a loss or weights"):
        model = mn.learn.SGDRegressor(learning_rate="constant", eta0=1.0, shuffle=False).fit(rows, NUMBERS)
    assert np.isfinite(learned(model)[0]).all()
