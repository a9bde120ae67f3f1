"""Learners: the recorded step, what becomes of a run that is stopped, and of one that goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from any_cuts import ON_THREADS, PARAMS, Library, check_same, library
from scipy.special import expit

import matnb as mn
from matnb.errors import (
    ConvergenceWarning,
    DTypeError,
    FileFormatError,
    MissingFileError,
    NotFittedError,
    OptionError,
    ShapeError,
)

RNG = np.random.default_rng(11)
N, P = 143, 5
X = RNG.normal(size=(N, P))
Y = (X @ RNG.normal(size=P) + 0.3 * RNG.normal(size=N) > 0.2).astype(float)
LOGIT = mn.learn.models.GeneralizedLinear("logit")


@pytest.fixture(scope="module", params=PARAMS, autouse=True)
def session(request: pytest.FixtureRequest) -> Iterator[Library]:
    with library(request.param) as started:
        yield started


def batches(size, passes=1, n=N):
    return [slice(start, min(start + size, n)) for _ in range(passes) for start in range(0, n, size)]


def gradient_of(w, b, rows):
    z = X[rows] @ w + b
    residuals = (expit(z) - Y[rows]) / len(z)
    return (np.logaddexp(0, z) - Y[rows] * z).mean(), X[rows].T @ residuals, residuals.sum()


def by_numpy(passes=2, size=20, l2=0.0, l1=0.0, rate=0.5):
    """Return what AdaGrad comes to, and the loss of each batch before it."""
    w, b, G, g2, losses = np.zeros(P), 0.0, np.zeros(P), 0.0, []
    for rows in batches(size, passes):
        loss, g, gb = gradient_of(w, b, rows)
        losses.append(loss)
        g = g + l2 * w
        G, g2 = G + g * g, g2 + gb * gb
        rates = rate / (1e-8 + np.sqrt(G))
        w, b = w - rates * g, b - rate / (1e-8 + np.sqrt(g2)) * gb
        w = np.sign(w) * np.maximum(abs(w) - rates * l1, 0)
    return w, b, losses


def learner(**options):
    options = {"optimizer": mn.learn.AdaGrad(0.5), **options}
    return mn.learn.Learner(LOGIT, **options)


def values_of(fitted):
    return tuple(np.asarray(value) for value in fitted.parameters_.values())


def test_it_learns_what_a_loop_of_numpy_does_from_the_same_batches():
    fitted = learner(regularizers=[mn.learn.L2(0.02), mn.learn.L1(0.01)]).fit(X, Y, epochs=2, batch_size=20)
    w, b, losses = by_numpy(l2=0.02, l1=0.01)
    np.testing.assert_allclose(fitted.parameters_["weights"].compute(), w, rtol=1e-12, atol=1e-13)
    assert float(fitted.parameters_["intercept"]) == pytest.approx(b, rel=1e-12)
    np.testing.assert_allclose(fitted.history_.loss, losses, rtol=1e-12)
    assert fitted.history_.rows.tolist() == [20] * 7 + [3] + [20] * 7 + [3]
    assert fitted.history_.epoch.tolist() == [0] * 8 + [1] * 8
    assert fitted.n_iter_ == 16
    assert (fitted.history_.rows_per_second > 0).all()
    assert (fitted.history_.waiting == 0).all()


expected: dict[str, tuple[np.ndarray, ...]] = {}


@pytest.mark.parametrize("name", ["plain", "replicas", "mixins"])
def test_the_same_bits_on_any_workers(session, name):
    options = {
        "plain": {"regularizers": [mn.learn.L1(0.01)]},
        "replicas": {"replicas": 3, "merge_every": 2, "optimizer": mn.learn.Adam(0.05)},
        "mixins": {"mixins": [mn.learn.Correlation(0.1), mn.learn.Top(2)]},
    }[name]
    if name == "mixins":
        model = mn.learn.models.FactorizationMachine(rank=3, link="logit", scale=0.1)
        fitted = mn.learn.Learner(model, **options).fit(X, Y, epochs=2, batch_size=20)
    else:
        fitted = learner(**options).fit(X, Y, epochs=2, batch_size=20)
    found = (*values_of(fitted), fitted.history_.loss)
    tolerance = 1e-11 if session.kind == "interpreter" else None
    check_same(found, expected.setdefault(name, found), tolerance)


class LeastSquares:
    """A model of a user's own, which does not look at whether there are targets."""

    def start(self, X, y):
        return {"w": mn.zeros(X.shape[1])}

    def loss(self, parameters, X, y):
        return ((X @ parameters["w"] - y) ** 2).mean()

    def gradient(self, parameters, X, y):
        return {"w": 2 / X.shape[0] * (X.T @ (X @ parameters["w"] - y))}

    def predict(self, parameters, X):
        return X @ parameters["w"]


@pytest.mark.parametrize("optimizer", [mn.learn.SGD(0.1), mn.learn.LBFGS()])
def test_a_loss_that_uses_targets_of_a_source_without_any(optimizer):
    made = mn.learn.Learner(LeastSquares(), optimizer=optimizer)
    message = "y is None, and LeastSquares.loss fails without targets .*: give y, or a source with targets"
    with pytest.raises(OptionError, match=message):
        made.fit(mn.sources.memory(X, batch_size=20))
    made.fit(mn.sources.memory(X, Y, batch_size=20))
    with pytest.raises(OptionError, match=message):
        made.loss(X)


@ON_THREADS
class TestOnOne:
    def test_regularizers_take_their_steps_in_their_order(self):
        smaller, farther = mn.learn.MaxNorm(0.3), mn.learn.L1(0.1)
        first = learner(regularizers=[smaller, farther], optimizer=mn.learn.SGD(5.0)).fit(X, Y, batch_size=N)
        second = learner(regularizers=[farther, smaller], optimizer=mn.learn.SGD(5.0)).fit(X, Y, batch_size=N)
        _, g, _ = gradient_of(np.zeros(P), 0.0, slice(None))

        def shrunk(w):
            return np.sign(w) * np.maximum(abs(w) - 0.5, 0)

        def scaled(w):
            return w * min(1, 0.3 / np.linalg.norm(w))

        np.testing.assert_allclose(first.parameters_["weights"].compute(), shrunk(scaled(-5 * g)), atol=1e-14)
        np.testing.assert_allclose(
            second.parameters_["weights"].compute(), scaled(shrunk(-5 * g)), rtol=1e-12
        )
        assert not np.allclose(shrunk(scaled(-5 * g)), scaled(shrunk(-5 * g)))

    def test_a_regularizer_is_for_the_parameters_it_names(self):
        given = [mn.learn.NonNegative(where="intercept"), mn.learn.MaxNorm(0.1)]
        fitted = learner(regularizers=given).fit(X, 1 - Y, epochs=2, batch_size=20)
        assert float(fitted.parameters_["intercept"]) >= 0
        assert np.linalg.norm(fitted.parameters_["weights"].compute()) == pytest.approx(0.1)
        with pytest.raises(OptionError, match=r"for the parameter 'w'; there are 'weights', 'intercept'"):
            learner(regularizers=[mn.learn.L1(where="w")]).fit(X, Y)

    def test_replicas_take_batches_in_turn_and_become_their_mean(self):
        fitted = learner(replicas=2, merge_every=2, optimizer=mn.learn.SGD(0.5)).fit(X, Y, batch_size=20)
        models = [(np.zeros(P), 0.0)] * 2
        for number, rows in enumerate(batches(20)):
            w, b = models[number % 2]
            _, g, gb = gradient_of(w, b, rows)
            models[number % 2] = w - 0.5 * g, b - 0.5 * gb
            if (number + 1) % 4 == 0:
                models = [tuple((one + two) / 2 for one, two in zip(*models, strict=True))] * 2
        np.testing.assert_allclose(fitted.parameters_["weights"].compute(), models[0][0], rtol=1e-12)

    def test_partial_fit_is_a_batch_more(self):
        whole = learner().fit(X, Y, epochs=2, batch_size=20)
        parts = learner()
        for rows in batches(20, passes=2):
            assert parts.partial_fit(X[rows], Y[rows]) is parts
        check_same(values_of(parts), values_of(whole), None)
        assert parts.n_iter_ == whole.n_iter_
        assert parts.history_.loss.tolist() == whole.history_.loss.tolist()

    @pytest.mark.parametrize("moment", RNG.permutation(24)[:10].tolist())
    def test_a_run_that_was_stopped_goes_on_to_the_same_bits(self, tmp_path, monkeypatch, moment):
        options = {"optimizer": mn.learn.Average(mn.learn.Adam(0.05)), "replicas": 2}
        whole = learner(**options).fit(X, Y, epochs=3, batch_size=20)
        path = tmp_path / "learner.npz"
        stopped = learner(**options, checkpoint=path, checkpoint_every=1)
        run, left = mn.learn.training.Training.run, moment

        def stopping(*given):
            nonlocal left
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
            return run(*given)

        monkeypatch.setattr(mn.learn.training.Training, "run", stopping)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(X, Y, epochs=3, batch_size=20)
        monkeypatch.undo()
        assert not vars(stopped).keys() & {"parameters_", "history_", "n_iter_"}
        again = learner(**options, checkpoint=path, checkpoint_every=4)
        again.fit(X, Y, epochs=3, batch_size=20, resume=True)
        check_same(values_of(again), values_of(whole), None)
        assert again.history_.loss.tolist() == whole.history_.loss.tolist()
        assert again.n_iter_ == whole.n_iter_ == 24

    def test_what_is_saved_is_what_is_loaded(self, tmp_path):
        saved = learner(mixins=[]).fit(X, Y, batch_size=20)
        saved.save(tmp_path / "learner.npz")
        loaded = learner().load(tmp_path / "learner.npz", X[:1], Y[:1])
        check_same(values_of(loaded), values_of(saved), None)
        check_same(
            values_of(loaded.partial_fit(X[:9], Y[:9])), values_of(saved.partial_fit(X[:9], Y[:9])), None
        )

    def test_a_checkpoint_of_another_model_is_refused(self, tmp_path):
        path = tmp_path / "learner.npz"
        learner().fit(X, Y, batch_size=20).save(path)
        with pytest.raises(
            FileFormatError, match="has a GeneralizedLinear, and this is a Learner of a Factorization"
        ):
            mn.learn.Learner(mn.learn.models.FactorizationMachine()).load(path, X, Y)
        with pytest.raises(
            FileFormatError, match=r"its .weights. has shape \(5,\), and that of this Learner \(2,\)"
        ):
            learner().load(path, X[:, :2], Y)
        with pytest.raises(
            FileFormatError, match=r"which this Learner lacks; give the same model, optimizer"
        ):
            learner(optimizer=mn.learn.SGD()).load(path, X, Y)
        for content in (path.read_bytes()[:900], b"no file of NumPy's"):
            path.write_bytes(content)
            with pytest.raises(FileFormatError, match="not saved by a Learner"):
                learner().load(path, X, Y)

    def test_a_checkpoint_of_an_earlier_run_is_not_gone_on_from(self, tmp_path, monkeypatch):
        path = tmp_path / "learner.npz"
        learner(checkpoint=path).fit(X, Y, epochs=3, batch_size=20)

        def stopping(*given):
            raise KeyboardInterrupt

        monkeypatch.setattr(mn.learn.training.Training, "run", stopping)
        with pytest.raises(KeyboardInterrupt):
            learner(checkpoint=path).fit(X, 1 - Y, batch_size=20)  # before it has written anything
        monkeypatch.undo()
        resumed = learner(checkpoint=path).fit(X, 1 - Y, batch_size=20, resume=True)
        check_same(values_of(resumed), values_of(learner().fit(X, 1 - Y, batch_size=20)), None)

    @pytest.mark.parametrize("at", [0, 1, 5])
    def test_a_loss_that_becomes_nan_stops_at_that_batch(self, at):
        model = mn.learn.Model(
            lambda X, y: {"w": np.zeros(P)},
            lambda parameters, X, y: np.log((y + 1 - (X @ parameters["w"]) * 0).min()),
            lambda parameters, X, y: {"w": X.sum(axis=0)},
            lambda parameters, X: X @ parameters["w"],
        )
        y = np.zeros(N)
        y[at * 20 + 3] = -1.0
        with pytest.warns(ConvergenceWarning, match=f"batch {at} of pass 0 has the loss -inf"):
            fitted = mn.learn.Learner(model, mn.learn.SGD(1.0)).fit(X, y, epochs=2, batch_size=20)
        np.testing.assert_allclose(fitted.parameters_["w"].compute(), -X[: at * 20].sum(axis=0), atol=1e-12)
        assert len(fitted.history_) == at + 1
        assert fitted.n_iter_ == at

    def test_a_step_that_is_infinite_leaves_the_model_before_it(self):
        with pytest.warns(ConvergenceWarning, match=r"Learner: batch \d+ of pass \d"):
            fitted = mn.learn.Learner(mn.learn.models.GeneralizedLinear(), optimizer=mn.learn.SGD(1e30)).fit(
                X, Y, epochs=9, batch_size=20
            )
        assert np.isfinite(fitted.parameters_["weights"].compute()).all()

    def test_patience_ends_the_passes(self):
        fitted = learner(patience=2, optimizer=mn.learn.SGD(0.0)).fit(X, Y, epochs=9, batch_size=20)
        assert fitted.history_.epoch.max() == 2
        held = learner(patience=1, optimizer=mn.learn.SGD(0.0))
        held.fit(X, Y, epochs=9, batch_size=20, validation=(X[:30], Y[:30]))
        assert held.history_.held_out.tolist() == pytest.approx([np.log(2)] * 2)

    def test_rows_of_validation_are_not_learned_from(self):
        plain = learner().fit(X, Y, batch_size=20)
        held = learner().fit(X, Y, batch_size=20, validation=(X * 3, 1 - Y))
        check_same(values_of(held), values_of(plain), None)
        assert held.history_.held_out[-1] == pytest.approx(held.loss(X * 3, 1 - Y))
        assert held.loss(X, Y, batch_size=11) == pytest.approx(held.loss(X, Y), rel=1e-12)

    def test_a_model_with_an_update_has_no_optimizer(self):
        mean = mn.learn.Model(
            lambda X, y: {"total": np.zeros(P), "count": 0},
            lambda parameters, X, y: (
                (X - parameters["total"] / np.maximum(parameters["count"], 1)) ** 2
            ).mean(),
            update=lambda parameters, X, y: {
                "total": parameters["total"] + X.sum(axis=0),
                "count": parameters["count"] + X.shape[0],
            },
        )
        fitted = mn.learn.Learner(mean).fit(X, batch_size=20)
        found = fitted.parameters_["total"] / fitted.parameters_["count"]
        np.testing.assert_allclose(found.compute(), X.mean(axis=0), rtol=1e-12)

    def test_mixins_are_figures_of_the_history(self):
        model = mn.learn.models.FactorizationMachine(rank=2, scale=0.1)
        figures = [mn.learn.CosineSimilarity(), mn.learn.Perplexity(where="factors")]
        plain = mn.learn.Learner(model).fit(X, Y, batch_size=20)
        fitted = mn.learn.Learner(model, mixins=figures).fit(X, Y, batch_size=20)
        check_same(values_of(fitted), values_of(plain), None)
        assert fitted.history_.figures.keys() == {"CosineSimilarity", "Perplexity of factors"}
        first = model.start(mn.asarray(X), mn.asarray(Y))["factors"]
        assert fitted.history_.figures["CosineSimilarity"][0] == pytest.approx(
            float(figures[0].figure(first))
        )
        turned = mn.learn.Learner(model, mixins=[mn.learn.CosineSimilarity(1.0)]).fit(X, Y, epochs=9)
        alike = mn.learn.Learner(model, mixins=figures).fit(X, Y, epochs=9)
        assert figures[0].figure(turned.parameters_["factors"]) < figures[0].figure(
            alike.parameters_["factors"]
        )

    def test_what_does_not_fit_is_said(self):
        with pytest.raises(ShapeError, match=r"y of shape \(3,\) for X of shape \(143, 5\)"):
            learner().fit(X, Y[:3])
        with pytest.raises(OptionError, match=r"Learner: X\[2, 1\] is the first number that is NaN"):
            learner().fit(np.where(np.arange(N * P).reshape(N, P) == 11, np.nan, X), Y)
        with pytest.raises(OptionError, match="batch_size=-1"):
            learner().fit(X, Y, batch_size=-1)
        with pytest.raises(OptionError, match="neither gradient nor update"):
            mn.learn.Learner(mn.learn.Model(LOGIT.start, LOGIT.loss)).fit(X, Y)
        wrong = mn.learn.Model(LOGIT.start, LOGIT.loss, lambda parameters, X, y: {"w": X.sum(axis=0)})
        with pytest.raises(OptionError, match="the gradient has 'w', and the parameters are 'weights', 'int"):
            mn.learn.Learner(wrong).fit(X, Y)
        with pytest.raises(OptionError, match="resume=True without checkpoint="):
            learner().fit(X, Y, resume=True)
        with pytest.raises(NotFittedError, match=r"Learner.predict before fit"):
            learner().predict(X)

    def test_what_is_no_part_of_a_learner_is_said(self, tmp_path):
        for wrong in ("sgd", mn.learn.SGD):
            with pytest.raises(DTypeError, match=r"optimizer=.*; give an instance"):
                mn.learn.GLM(optimizer=wrong).fit(X, Y)
            with pytest.raises(DTypeError, match="Average: optimizer="):
                mn.learn.Average(wrong)
        for model in (LOGIT, mn.learn.models.FactorizationMachine()):
            with pytest.raises(OptionError, match="y is missing"):
                mn.learn.Learner(model).fit(X)
        with pytest.raises(DTypeError, match=r"regularizers=\['L2'\]; give a list"):
            learner(regularizers=["L2"]).fit(X, Y)
        with pytest.raises(DTypeError, match=r"mixins=3; give a list"):
            learner(mixins=3).fit(X, Y)
        with pytest.raises(MissingFileError, match="there is no file"):
            learner().load(tmp_path / "nothing.npz", X, Y)
        with pytest.raises(OptionError, match="epochs=0; give 1 or more"):
            learner().fit(X, Y, epochs=0)

    def test_one_regularizer_alone_is_a_list_of_one(self):
        alone, listed = (
            learner(regularizers=one).fit(X, Y, batch_size=20)
            for one in (mn.learn.L2(0.1), [mn.learn.L2(0.1)])
        )
        check_same(values_of(alone), values_of(listed), None)

    def test_rows_of_another_width_are_refused(self):
        fitted = learner().fit(X, Y)
        assert fitted.n_features_in_ == P
        with pytest.raises(ShapeError, match="X has 2 features, but it was fitted to 5"):
            fitted.predict(X[:, :2])
        with pytest.raises(ShapeError, match="X has 2 features, but it was fitted to 5"):
            fitted.partial_fit(X[:, :2], Y)

    def test_a_source_is_learned_from_as_arrays_are(self, tmp_path):
        whole = learner().fit(X, Y, epochs=2, batch_size=20)
        arrays = learner().fit(mn.sources.memory(X, Y, batch_size=20), epochs=2)
        check_same(values_of(arrays), values_of(whole), None)
        for number, rows in enumerate(batches(50)):
            np.savez(tmp_path / f"{number}.npz", X=X[rows], y=Y[rows])
        files = mn.sources.files(str(tmp_path / "*.npz"), batch_size=20)
        streamed = learner().fit(files, epochs=2)
        check_same(values_of(streamed), values_of(whole), None)
        assert streamed.history_.loss.tolist() == whole.history_.loss.tolist()
        assert ((streamed.history_.waiting >= 0) & (streamed.history_.waiting <= 1)).all()
        assert streamed.loss(files) == pytest.approx(whole.loss(X, Y), rel=1e-12)
        many = mn.learn.GLM("logit", optimizer=mn.learn.AdaGrad(0.5), epochs=2).fit(files)
        assert many.coef_.compute().tolist() == values_of(whole)[0].tolist()
        with pytest.raises(OptionError, match="leave y out: the source has its own targets"):
            learner().fit(files, Y)

    def test_rows_held_out_never_reach_a_gradient(self):
        def holding(wrong):
            y = np.where(np.arange(N) % 7 == 6, wrong, Y)
            training, held_out = mn.sources.memory(X, y, batch_size=20).holdout(every=7)
            return learner().fit(training, epochs=2, validation=held_out)

        one, other = holding(0.0), holding(1.0)
        check_same(values_of(one), values_of(other), None)
        assert one.history_.held_out.tolist() != other.history_.held_out.tolist()
        check_same(
            values_of(one),
            values_of(
                learner().fit(X[np.arange(N) % 7 != 6], Y[np.arange(N) % 7 != 6], epochs=2, batch_size=20)
            ),
            None,
        )

    @pytest.mark.parametrize("moment", [1, 4, 9, 13])
    def test_a_stream_that_was_stopped_goes_on_to_the_same_bits(self, tmp_path, moment):
        def rows(k):
            return X[k * 10 : k * 10 + 10], Y[k * 10 : k * 10 + 10]

        def source(fn):
            return mn.sources.calls(fn, 14, batch_size=8, shuffle=True, seed=3)

        whole = learner().fit(source(rows), epochs=3)
        stopped = learner(checkpoint=tmp_path / "learner.npz", checkpoint_every=2)
        count = 0

        def counting(k):
            nonlocal count
            count += 1
            if count > 14 + 2 * moment:
                raise KeyboardInterrupt
            return rows(k)

        with pytest.raises(KeyboardInterrupt):
            stopped.fit(source(counting), epochs=3)
        again = learner(checkpoint=tmp_path / "learner.npz").fit(source(rows), epochs=3, resume=True)
        check_same(values_of(again), values_of(whole), None)
