"""Generalized linear models of many targets and factorization machines: gradients, masks, weights, bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import ON_THREADS, PARAMS, Library, check_same, library
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

import matnb as mn
from matnb.errors import OptionError, ShapeError
from matnb.learn.models.links import logistic, softplus

RNG = np.random.default_rng(2)
N, P = 120, 6
DENSE = RNG.normal(size=(N, P))
SPARSE = sp.csr_array(DENSE * (RNG.uniform(size=(N, P)) < 0.4))
SCORE = DENSE @ RNG.normal(size=P) * 0.5
TARGETS = {
    "identity": SCORE + 0.1 * RNG.normal(size=N),
    "logit": (RNG.uniform(size=N) < expit(SCORE)).astype(float),
    "log": RNG.poisson(np.exp(SCORE)).astype(float),
    "probit": (SCORE + RNG.normal(size=N) > 0).astype(float),
}
SHARES = np.eye(3)[RNG.integers(0, 3, N)]
ALL = np.stack(list(TARGETS.values()), axis=1)


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


MODELS = {
    **{name: (mn.learn.models.GeneralizedLinear(name), y) for name, y in TARGETS.items()},
    "softmax": (mn.learn.models.GeneralizedLinear("softmax"), SHARES),
    "many": (mn.learn.models.GeneralizedLinear(list(TARGETS)), ALL),
    "weighted": (mn.learn.models.GeneralizedLinear(list(TARGETS)), (ALL, RNG.uniform(size=N))),
    "machine": (mn.learn.models.FactorizationMachine(3, scale=0.3), TARGETS["identity"]),
    "logit machine": (mn.learn.models.FactorizationMachine(2, "logit", 0.3), TARGETS["logit"]),
}


def test_a_logit_is_that_of_scipy_and_does_not_overflow():
    eta = np.concatenate([np.linspace(-40, 40, 401), [-1e4, -745.0, 745.0, 1e4, -np.inf, np.nan]])
    with np.errstate(over="raise", invalid="ignore"):
        np.testing.assert_allclose(softplus(eta), np.logaddexp(0, eta), rtol=1e-14, atol=1e-300)
        np.testing.assert_allclose(logistic(eta), expit(eta), rtol=1e-14, atol=1e-300)


def targets_of(y):
    return tuple(map(mn.asarray, y)) if isinstance(y, tuple) else mn.asarray(y)


@ON_THREADS
@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize("name", MODELS)
def test_a_gradient_is_that_of_its_loss(name, rows):
    model, y = MODELS[name]
    X, y = mn.asarray(DENSE if rows == "dense" else SPARSE), targets_of(y)
    rng, h = np.random.default_rng(1), 1e-6
    start = {key: mn.asarray(one).compute() for key, one in model.start(X, y).items()}
    at = {key: one + 0.3 * rng.normal(size=one.shape) for key, one in start.items()}
    gradient = model.gradient({key: mn.asarray(one) for key, one in at.items()}, X, y)
    assert gradient.keys() == at.keys()
    for _ in range(4):  # along drawn directions
        way = {key: rng.normal(size=one.shape) for key, one in at.items()}
        up, down = (
            float(model.loss({key: mn.asarray(at[key] + sign * h * way[key]) for key in at}, X, y))
            for sign in (1, -1)
        )
        slope = sum(float((gradient[key] * way[key]).sum()) for key in at)
        assert slope == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-8)


@ON_THREADS
def test_a_probit_far_out_is_finite():
    model = mn.learn.models.GeneralizedLinear("probit", fit_intercept=False)
    X, y = mn.asarray([[1.0], [1.0]]), mn.asarray([0.0, 1.0])
    for w in (-30.0, 30.0):
        found = float(model.gradient({"weights": mn.asarray([w])}, X, y)["weights"][0])
        assert found == pytest.approx(np.sign(w) * 15.0166, rel=1e-4)


def one_each(X, **options):
    return [mn.learn.GLM(name, batch_size=16, epochs=2, **options).fit(X, y) for name, y in TARGETS.items()]


@pytest.mark.parametrize("optimizer", [mn.learn.AdaGrad(0.3), mn.learn.SGD(0.05, 0.5)])
def test_many_targets_are_what_each_is_alone(session, optimizer):
    # Sparse products promise the bits; dense ones of several columns add in another order than of one.
    many = mn.learn.GLM(list(TARGETS), optimizer=optimizer, batch_size=16, epochs=2)
    many.fit(SPARSE, ALL)
    alone = one_each(SPARSE, optimizer=optimizer)
    weights = np.stack([one.coef_.compute() for one in alone])
    intercepts = np.array([float(one.intercept_) for one in alone])
    tolerance = 1e-12 if session.kind == "interpreter" else None
    check_same((many.coef_.compute(), many.intercept_.compute()), (weights, intercepts), tolerance)
    dense = mn.learn.GLM(list(TARGETS), optimizer=optimizer, batch_size=16, epochs=2).fit(DENSE, ALL)
    weights = np.stack([one.coef_.compute() for one in one_each(DENSE, optimizer=optimizer)])
    np.testing.assert_allclose(dense.coef_.compute(), weights, rtol=1e-9, atol=1e-12)


known: dict[str, tuple[np.ndarray, ...]] = {}


@pytest.mark.parametrize("rows", ["dense", "sparse"])
def test_the_same_bits_on_any_workers(session, rows):
    X = DENSE if rows == "dense" else SPARSE
    fitted = mn.learn.GLM(list(TARGETS), alpha=[0, 0.1, 0.2, 0.3], batch_size=16, epochs=2).fit(X, ALL)
    found = fitted.coef_.compute(), fitted.intercept_.compute(), fitted.history_.loss
    check_same(found, known.setdefault(rows, found), 1e-11 if session.kind == "interpreter" else None)


def fitted(X, y, **options):
    return mn.learn.GLM(
        optimizer=mn.learn.SGD(options.pop("rate", 0.3), 0.7),
        batch_size=N,
        epochs=options.pop("epochs", 150),
        **options,
    ).fit(X, y)


@ON_THREADS
class TestOnOne:
    @pytest.mark.slow
    def test_whole_passes_come_to_the_optimum(self):
        alpha = 0.1
        y = TARGETS["identity"]
        ridge = Ridge(alpha * N).fit(DENSE, y)
        np.testing.assert_allclose(fitted(DENSE, y, alpha=alpha).coef_.compute(), ridge.coef_, atol=1e-5)
        y = TARGETS["logit"]
        logistic = LogisticRegression(C=1 / (alpha * N), tol=1e-9).fit(DENSE, y)
        found = fitted(DENSE, y, link="logit", alpha=alpha)
        np.testing.assert_allclose(found.coef_.compute(), logistic.coef_[0], atol=1e-5)
        np.testing.assert_allclose(
            found.predict(DENSE).compute(), logistic.predict_proba(DENSE)[:, 1], atol=1e-5
        )
        y = TARGETS["log"]
        poisson = PoissonRegressor(alpha=alpha, tol=1e-9).fit(DENSE, y)
        found = fitted(DENSE, y, link="log", alpha=alpha, rate=0.03, epochs=400)
        np.testing.assert_allclose(found.predict(DENSE).compute(), poisson.predict(DENSE), rtol=1e-4)
        multinomial = LogisticRegression(C=1 / (alpha * N), tol=1e-9).fit(DENSE, SHARES.argmax(axis=1))
        found = fitted(DENSE, SHARES, link="softmax", alpha=alpha)
        np.testing.assert_allclose(found.coef_.compute(), multinomial.coef_, atol=1e-5)
        np.testing.assert_allclose(found.predict(DENSE).sum(axis=1).compute(), np.ones(N), rtol=1e-12)

    def test_a_mask_leaves_out_features_of_a_target(self):
        mask = RNG.uniform(size=(P, 4)) < 0.5
        many = mn.learn.GLM(list(TARGETS), mask=mask, batch_size=16, epochs=2).fit(DENSE, ALL)
        found = many.coef_.compute()
        assert (found[~mask.T] == 0).all()
        assert (found[mask.T] != 0).all()
        for place, (name, y) in enumerate(TARGETS.items()):
            features = np.flatnonzero(mask[:, place])
            alone = mn.learn.GLM(name, batch_size=16, epochs=2).fit(DENSE[:, features], y)
            np.testing.assert_allclose(found[place, features], alone.coef_.compute(), rtol=1e-9, atol=1e-12)

    def test_each_target_has_its_alpha(self):
        many = mn.learn.GLM(["identity"] * 2, alpha=[0.0, 5.0], batch_size=16)
        found = many.fit(DENSE, np.stack([SCORE, SCORE], axis=1)).coef_.compute()
        for place, alpha in enumerate([0.0, 5.0]):
            alone = mn.learn.GLM(alpha=alpha, batch_size=16).fit(DENSE, SCORE).coef_.compute()
            np.testing.assert_allclose(found[place], alone, rtol=1e-9)

    def test_a_weight_of_two_is_a_row_twice(self):
        y, weights = TARGETS["logit"], RNG.integers(0, 3, N).astype(float)
        rows = np.repeat(np.arange(N), weights.astype(int))
        sgd = mn.learn.SGD(0.5)
        weighted = mn.learn.GLM("logit", optimizer=sgd, batch_size=N)
        weighted.fit(DENSE, y, sample_weight=weights * N / len(rows))
        repeated = mn.learn.GLM("logit", optimizer=sgd, batch_size=N * 3).fit(DENSE[rows], y[rows])
        np.testing.assert_allclose(weighted.coef_.compute(), repeated.coef_.compute(), rtol=1e-12)

    def test_targets_have_weights_of_their_own(self):
        weights = RNG.uniform(size=(N, 4))
        many = mn.learn.GLM(list(TARGETS), batch_size=16).fit(SPARSE, ALL, sample_weight=weights)
        for place, (name, y) in enumerate(TARGETS.items()):
            alone = mn.learn.GLM(name, batch_size=16).fit(SPARSE, y, sample_weight=weights[:, place])
            assert many.coef_[place].compute().tolist() == alone.coef_.compute().tolist()

    def test_partial_fit_and_clones(self):
        whole = mn.learn.GLM("logit", batch_size=50).fit(DENSE, TARGETS["logit"])
        parts = clone(whole)
        for start in range(0, N, 50):
            parts.partial_fit(DENSE[start : start + 50], TARGETS["logit"][start : start + 50])
        assert parts.coef_.compute().tobytes() == whole.coef_.compute().tobytes()
        assert parts.n_features_in_ == P
        assert fitted(DENSE, SCORE).score(DENSE, SCORE) > 0.999

    def test_what_does_not_fit_is_said(self):
        with pytest.raises(OptionError, match="link 'cauchit'; choose one of 'identity', 'logit'"):
            mn.learn.GLM("cauchit").fit(DENSE, SCORE)
        with pytest.raises(ShapeError, match=r"2 links for y of shape \(\d+, 4\)"):
            mn.learn.GLM(["logit"] * 2).fit(DENSE, ALL)
        with pytest.raises(ShapeError, match=r"3 alphas for y of shape \(120, 4\)"):
            mn.learn.GLM(alpha=[1, 2, 3]).fit(DENSE, ALL)
        with pytest.raises(ShapeError, match=r"mask of shape \(4,\); give \(6, 4\)"):
            mn.learn.GLM(mask=np.ones(4)).fit(DENSE, ALL)
        with pytest.raises(OptionError, match="softmax uses all columns of y together"):
            mn.learn.GLM("softmax").fit(DENSE, SCORE)
        with pytest.raises(OptionError, match="alpha=-1"):
            mn.learn.GLM(alpha=-1).fit(DENSE, SCORE)
        with pytest.raises(ShapeError, match="X has 2 features, but it was fitted to 6"):
            mn.learn.GLM().fit(DENSE, SCORE).partial_fit(DENSE[:, :2], SCORE)
        with pytest.raises(OptionError, match="link 'log'; choose 'identity' or 'logit'"):
            mn.learn.Learner(mn.learn.models.FactorizationMachine(link="log")).fit(DENSE, SCORE)

    def test_weights_of_targets_are_numbers_of_0_or_more(self):
        for value, match in (
            (np.nan, r"sample_weight\[3, 1\] is the first number that is NaN"),
            (-1.0, r"sample_weight\[3, 1\] is the first number below 0"),
        ):
            weights = np.ones((N, 4))
            weights[3, 1] = value
            with pytest.raises(OptionError, match=match):
                mn.learn.GLM(list(TARGETS)).fit(DENSE, ALL, sample_weight=weights)
        with pytest.raises(OptionError, match="0 for all rows and targets"):
            mn.learn.GLM(list(TARGETS)).fit(DENSE, ALL, sample_weight=np.zeros((N, 4)))

    @pytest.mark.parametrize("link", ["logit", "log", "probit"])
    def test_targets_are_within_the_bounds_of_their_link(self, link):
        bounds = "of 0 or more" if link == "log" else "from 0 to 1"
        for value in (-1.0, 2.0)[: 1 if link == "log" else 2]:
            y, many = TARGETS[link].copy(), ALL.copy()
            place = list(TARGETS).index(link)
            y[7] = many[7, place] = value
            with pytest.raises(OptionError, match=rf"y\[7\] is {value:g}, and .* {link!r} are {bounds}"):
                mn.learn.GLM(link, batch_size=3).fit(DENSE, y)
            with pytest.raises(OptionError, match=rf"y\[7, {place}\] is {value:g}, .* {link!r} are {bounds}"):
                mn.learn.GLM(list(TARGETS), batch_size=3).fit(DENSE, many)
        if link == "log":
            assert np.isfinite(mn.learn.GLM(link).fit(DENSE, 10 * TARGETS[link]).history_.loss).all()
        with pytest.raises(OptionError, match=r"y\[0, 2\] is -\d, and targets of the link 'softmax'"):
            mn.learn.GLM("softmax").fit(DENSE, SHARES - [0, 0, 2])

    def test_a_factorization_machine_finds_products_of_features(self):
        y = 0.5 + DENSE[:, 0] * DENSE[:, 1] - DENSE[:, 2]
        model = mn.learn.models.FactorizationMachine(rank=2, scale=0.1)
        learner = mn.learn.Learner(model, mn.learn.Adam(0.02)).fit(DENSE, y, epochs=60, batch_size=12)
        assert learner.loss(DENSE, y) < 1e-3
        V = learner.parameters_["factors"].compute()
        pairs = np.triu(V @ V.T, 1)
        assert pairs[0, 1] == pytest.approx(1, abs=0.05)
        by_pairs = (
            float(learner.parameters_["intercept"])
            + DENSE @ learner.parameters_["weights"].compute()
            + ((DENSE @ pairs) * DENSE).sum(axis=1)
        )
        np.testing.assert_allclose(learner.predict(DENSE).compute(), by_pairs, rtol=1e-9, atol=1e-12)
