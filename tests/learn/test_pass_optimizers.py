"""Optimizers that step after whole passes: their minima, what they refuse, and runs that are stopped."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import scipy.sparse as sp
from any_cuts import ON_THREADS, PARAMS, Library, check_same, library
from scipy.optimize import approx_fprime
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression, PoissonRegressor

import matnb as mn
from matnb.errors import ConvergenceWarning, DTypeError, OptionError

RNG = np.random.default_rng(21)
N, P = 143, 4
X = RNG.normal(size=(N, P))
Y = (X @ RNG.normal(size=P) + 0.5 * RNG.normal(size=N) > 0.2).astype(float)
OPTIMIZERS = {
    "LBFGS": mn.learn.LBFGS(tol=1e-9),
    "ConjugateGradient": mn.learn.ConjugateGradient(tol=1e-9),
    "Newton": mn.learn.Newton(tol=1e-9),
}
ALPHA = 0.02


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


def learner(optimizer, link="logit", **options):
    options = {"regularizers": [mn.learn.L2(ALPHA)], **options}
    return mn.learn.Learner(mn.learn.models.GeneralizedLinear(link), optimizer=optimizer, **options)


def values_of(fitted):
    return tuple(np.asarray(value) for value in fitted.parameters_.values())


WANTED = LogisticRegression(C=1 / (N * ALPHA), tol=1e-12, max_iter=10_000).fit(X, Y)
expected: dict[str, tuple[np.ndarray, ...]] = {}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_minimum_of_all_rows_with_the_same_bits_on_any_workers(session, name):
    fitted = learner(OPTIMIZERS[name]).fit(X, Y, epochs=80, batch_size=20)
    np.testing.assert_allclose(fitted.parameters_["weights"].compute(), WANTED.coef_[0], rtol=1e-6)
    assert float(fitted.parameters_["intercept"]) == pytest.approx(WANTED.intercept_[0], rel=1e-6)
    found = (*values_of(fitted), fitted.history_.loss)
    if session.kind != "interpreter":
        check_same(found, expected.setdefault(name, found), None)
    history = fitted.history_
    passes = len(history) // 8
    assert len(history) == fitted.n_iter_ == passes * 8
    assert passes < 80  # it ends by itself
    assert history.rows.tolist() == ([20] * 7 + [3]) * passes
    steps = history.step.reshape(passes, 8)
    assert (steps[:, 1:] == 0).all()
    assert (steps[1:, 0] > 0).all()
    assert history.norm[0] == 0


@ON_THREADS
class TestOnOne:
    def test_counts_with_weights_of_rows_and_a_mask(self):
        counts = RNG.poisson(np.exp(0.4 * X[:, 0] + 0.3))
        weights = RNG.uniform(0.5, 2, N)
        weights *= N / weights.sum()
        wanted = PoissonRegressor(alpha=ALPHA, tol=1e-12, max_iter=10_000)
        wanted.fit(X * [1, 0, 1, 1], counts, sample_weight=weights)
        for optimizer in OPTIMIZERS.values():
            model = mn.learn.models.GeneralizedLinear("log", mask=[1, 0, 1, 1])
            fitted = mn.learn.Learner(model, optimizer=optimizer, regularizers=mn.learn.L2(ALPHA))
            fitted.fit(X, (counts * 1.0, weights), epochs=100, batch_size=50)
            np.testing.assert_allclose(
                fitted.parameters_["weights"].compute(), wanted.coef_, rtol=1e-5, atol=1e-8
            )

    @pytest.mark.parametrize("link", ["identity", "logit", "log", "probit"])
    def test_the_hessian_is_the_slope_of_the_gradient(self, link):
        model = mn.learn.models.GeneralizedLinear(link)
        rows, y = mn.asarray(X), mn.asarray(Y)
        point = 0.3 * RNG.normal(size=P + 1)

        def parameters(x):
            return {"weights": mn.asarray(x[:P]), "intercept": mn.asarray(x[P])}

        def gradient(x):
            found = model.gradient(parameters(x), rows, y)
            return np.append(found["weights"].compute(), float(found["intercept"]))

        found = model.hessian(parameters(point), rows, y).compute()
        np.testing.assert_allclose(found, approx_fprime(point, gradient, 1e-6), rtol=1e-4, atol=1e-6)

    def test_sparse_rows_from_a_source_in_parts(self):
        sparse = sp.random_array((N, 30), density=0.2, rng=RNG, format="csr")
        source = mn.sources.memory(sparse, Y, batch_size=16)
        found = learner(mn.learn.LBFGS(tol=1e-8)).fit(source, epochs=60)
        wanted = LogisticRegression(C=1 / (N * ALPHA), tol=1e-12, max_iter=10_000).fit(sparse, Y)
        np.testing.assert_allclose(found.parameters_["weights"].compute(), wanted.coef_[0], atol=1e-5)

    def test_mixins_are_part_of_what_is_minimized(self):
        model = mn.learn.models.GeneralizedLinear("identity")
        targets = X @ RNG.normal(size=(P, 3))
        plain = mn.learn.Learner(model, optimizer=mn.learn.LBFGS()).fit(X, targets, epochs=40)
        mixed = mn.learn.Learner(model, optimizer=mn.learn.LBFGS(), mixins=[mn.learn.CosineSimilarity(5.0)])
        mixed.fit(X, targets, epochs=40)
        figure = mn.learn.CosineSimilarity().figure
        assert (
            float(figure(mixed.parameters_["weights"])) < float(figure(plain.parameters_["weights"])) - 0.01
        )
        assert mixed.history_.figures["CosineSimilarity"][-1] == pytest.approx(
            float(figure(mixed.parameters_["weights"])), rel=1e-3
        )

    def test_the_best_of_all_points_predicts_though_a_search_was_cut_short(self):
        for passes in range(1, 8):
            fitted = learner(mn.learn.ConjugateGradient()).fit(X, Y, epochs=passes, batch_size=20)
            history = fitted.history_
            losses = [history.mean_loss(one) for one in range(passes)]
            assert fitted.loss(X, Y) <= min(losses) + 0.05  # the penalty apart

    @pytest.mark.parametrize(
        ("name", "moment"),
        list(zip(["LBFGS", "Newton"] * 5, RNG.permutation(40)[:10].tolist(), strict=True)),
    )
    def test_a_run_that_was_stopped_goes_on_to_the_same_bits(self, tmp_path, monkeypatch, name, moment):
        whole = learner(OPTIMIZERS[name]).fit(X, Y, epochs=5, batch_size=20)
        path = tmp_path / "learner.npz"
        stopped = learner(OPTIMIZERS[name], checkpoint=path, checkpoint_every=1)
        run, left = mn.learn.pass_training.PassTraining.run, moment

        def stopping(*given):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return run(*given)

        monkeypatch.setattr(mn.learn.pass_training.PassTraining, "run", stopping)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, Y, epochs=5, batch_size=20)
        monkeypatch.undo()
        assert not vars(stopped).keys() & {"parameters_", "history_", "n_iter_"}
        again = learner(OPTIMIZERS[name], checkpoint=path, checkpoint_every=4)
        again.fit(X, Y, epochs=5, batch_size=20, resume=True)
        check_same(values_of(again), values_of(whole), None)
        assert again.history_.loss.tolist() == whole.history_.loss.tolist()

    def test_rows_held_out_do_not_move_it(self):
        found = []
        for poison in (0.0, 1e6):
            rows, targets = np.vstack([X, X]), np.append(Y, Y)
            rows[2::3] += poison
            training, held_out = mn.sources.memory(rows, targets, batch_size=10).holdout(every=3)
            assert held_out.num_rows == len(rows[2::3])
            found.append(learner(mn.learn.LBFGS()).fit(training, epochs=10, validation=held_out))
        check_same(values_of(found[0]), values_of(found[1]), None)
        assert found[0].history_.loss.tolist() == found[1].history_.loss.tolist()
        assert found[0].history_.held_out[-1] < 1 < found[1].history_.held_out[-1]
        assert len(found[0].history_.held_out) == len(np.unique(found[0].history_.epoch))

    def test_what_does_not_go_with_it_is_refused(self):
        for given, match in (
            ({"regularizers": [mn.learn.L1()]}, r"L1\(.*proximal step, and LBFGS takes none; give AdaGrad"),
            ({"replicas": 2}, "replicas=2 with LBFGS"),
        ):
            with pytest.raises(OptionError, match=match):
                learner(mn.learn.LBFGS(), **given).fit(X, Y)
        with pytest.raises(OptionError, match="partial_fit is for SGD"):
            learner(mn.learn.LBFGS()).partial_fit(X, Y)
        machine = mn.learn.models.FactorizationMachine(rank=2)
        with pytest.raises(OptionError, match="no hessian, which Newton needs; LBFGS needs none"):
            mn.learn.Learner(machine, optimizer=mn.learn.Newton()).fit(X, Y)
        with pytest.raises(OptionError, match="needs one target"):
            learner(mn.learn.Newton()).fit(X, np.stack([Y, Y], axis=1))
        with pytest.raises(DTypeError, match="optimizer="):
            learner(mn.learn.LBFGS).fit(X, Y)
        with pytest.raises(DTypeError, match="Average: optimizer="):
            mn.learn.Average(mn.learn.LBFGS())
        with pytest.raises(OptionError, match="history"):
            mn.learn.LBFGS(history=0)

    def test_rows_without_a_finite_loss_stop_the_first_pass(self):
        bad = X.copy()
        bad[45, 0] = 1e308
        model = mn.learn.Model(
            lambda X, y: {"w": np.ones(P)},
            lambda parameters, X, y: ((X @ parameters["w"]) ** 2).mean(),
            lambda parameters, X, y: {"w": X.T @ (X @ parameters["w"]) / X.shape[0]},
        )
        with pytest.warns(ConvergenceWarning, match="batch 2 of pass 0"):
            fitted = mn.learn.Learner(model, optimizer=mn.learn.LBFGS()).fit(bad, Y, epochs=3, batch_size=20)
        assert fitted.parameters_["w"].compute().tolist() == [1.0] * P
        assert len(fitted.history_) == 3

    @pytest.mark.parametrize(
        ("name", "optimizer", "least"),
        [
            ("a9a", mn.learn.Newton(tol=1e-8), 10529.562584637899),
            ("heart_scale", mn.learn.LBFGS(tol=1e-9), 98.22679950813682),
        ],
    )
    def test_published_optima(self, test_data, name, optimizer, least):
        rows, y = load_svmlight_file(str(test_data / name / name))
        model = mn.learn.models.GeneralizedLinear("logit", fit_intercept=False)
        given = mn.learn.Learner(model, optimizer=optimizer, regularizers=[mn.learn.L2(1 / len(y))])
        given.fit(sp.csr_array(rows), (y > 0) * 1.0, epochs=60, batch_size=len(y) // 3)
        w = given.parameters_["weights"].compute()
        assert np.logaddexp(0, -y * (rows @ w)).sum() + w @ w / 2 == pytest.approx(least, rel=1e-9)
