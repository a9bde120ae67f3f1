"""Optimizers, regularizers and mixins against plain NumPy and central differences."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn
from matnb.errors import OptionError

RNG = np.random.default_rng(5)
GRADIENTS = RNG.normal(size=(7, 4, 3))
FIRST = RNG.normal(size=(4, 3))

pytestmark = pytest.mark.session("two threads")


def stepped(optimizer: object) -> np.ndarray:
    """Return what parameters come to by seven gradients, in one recorded loop."""
    w = {"w": mn.asarray(FIRST)}

    def step(state, gradient):
        w, kept, count = state
        moved = optimizer.step(kept, w, {"w": gradient}, count)
        return moved.parameters, optimizer.settle(moved.state, moved.parameters, count), count + 1

    start = w, optimizer.start(w), mn.asarray(0.0)
    (w, kept, _), _ = mn.iterate(step, start, over=mn.asarray(GRADIENTS))
    return optimizer.result(kept, w)["w"].compute()


def by_sgd(rate=0.1, momentum=0.0, nesterov=False, factor=lambda count: 1.0):
    w, velocity, path = FIRST.copy(), np.zeros_like(FIRST), []
    for count, g in enumerate(GRADIENTS):
        eta = rate * factor(count)
        velocity = momentum * velocity - eta * g
        w = w + (momentum * velocity - eta * g if nesterov else velocity)
        path.append(w)
    return w, path


def by_adagrad(rate=0.1, power=0.5, epsilon=1e-8):
    w, squares = FIRST.copy(), np.zeros_like(FIRST)
    for g in GRADIENTS:
        squares += g**2
        w = w - rate * g / (epsilon + squares**power)
    return w


def by_adam(rate=0.05, one=0.9, two=0.99, epsilon=1e-8):
    w, mean, square = FIRST.copy(), np.zeros_like(FIRST), np.zeros_like(FIRST)
    for count, g in enumerate(GRADIENTS, 1):
        mean = one * mean + (1 - one) * g
        square = two * square + (1 - two) * g * g
        w = w - rate * (mean / (1 - one**count)) / (np.sqrt(square / (1 - two**count)) + epsilon)
    return w


CASES = {
    "sgd": (mn.learn.SGD(0.1), lambda: by_sgd()[0]),
    "momentum": (mn.learn.SGD(0.1, momentum=0.9), lambda: by_sgd(momentum=0.9)[0]),
    "nesterov": (mn.learn.SGD(0.1, 0.9, nesterov=True), lambda: by_sgd(momentum=0.9, nesterov=True)[0]),
    "schedule": (
        mn.learn.SGD(0.1, schedule=lambda count: 1 / np.sqrt(count + 1)),
        lambda: by_sgd(factor=lambda count: 1 / np.sqrt(count + 1))[0],
    ),
    "adagrad": (mn.learn.AdaGrad(0.1), by_adagrad),
    "adagrad of power 0.3": (mn.learn.AdaGrad(0.1, 0.3, 1e-3), lambda: by_adagrad(0.1, 0.3, 1e-3)),
    "adam": (mn.learn.Adam(0.05, beta_2=0.99), by_adam),
    "average": (mn.learn.Average(mn.learn.SGD(0.1)), lambda: np.mean(by_sgd()[1], axis=0)),
    "late average": (mn.learn.Average(mn.learn.SGD(0.1), after=3), lambda: np.mean(by_sgd()[1][3:], axis=0)),
}


@pytest.mark.parametrize("name", CASES)
def test_an_optimizer_goes_where_a_loop_of_numpy_does(name):
    optimizer, expected = CASES[name]
    np.testing.assert_allclose(stepped(optimizer), expected(), rtol=1e-12, atol=1e-13)


def test_rates_are_how_far_a_step_goes():
    w, g = {"w": mn.asarray(FIRST)}, {"w": mn.asarray(GRADIENTS[0])}
    for optimizer in (mn.learn.SGD(0.1), mn.learn.AdaGrad(0.2)):
        moved = optimizer.step(optimizer.start(w), w, g, mn.asarray(0.0))
        gone = (w["w"] - moved.parameters["w"]).compute()
        np.testing.assert_allclose(gone, np.asarray(moved.rates["w"] * g["w"]), rtol=1e-12, atol=1e-14)


def nearest_by_search(penalty, value, rate, low=-3.0, high=3.0):
    """Return the least of ``penalty(x) + (x - value)^2 / (2 rate)`` on a fine grid."""
    x = np.linspace(low, high, 600_001)
    return x[np.argmin(penalty(x) + (x - value) ** 2 / (2 * rate))]


@pytest.mark.parametrize("value", [-1.3, -0.05, 0.02, 0.8])
@pytest.mark.parametrize(
    ("regularizer", "penalty"),
    [
        (mn.learn.L1(0.4), lambda x: 0.4 * abs(x)),
        (mn.learn.ElasticNetPenalty(0.4, 0.5), lambda x: 0.2 * abs(x)),
        (mn.learn.NonNegative(), lambda x: np.where(x < 0, np.inf, 0.0)),
        (mn.learn.MaxNorm(0.5), lambda x: np.where(abs(x) > 0.5, np.inf, 0.0)),
    ],
    ids=["L1", "ElasticNetPenalty", "NonNegative", "MaxNorm"],
)
def test_a_proximal_step_is_the_nearest_that_is_cheaper(regularizer, penalty, value):
    found = float(regularizer.proximal(mn.asarray([value]), 0.7)[0])
    assert found == pytest.approx(nearest_by_search(penalty, value, 0.7), abs=2e-5)


def test_the_slopes_of_smooth_penalties():
    w = mn.asarray([1.0, -2.0])
    assert mn.learn.L2(0.5).slope(w).compute().tolist() == [0.5, -1.0]
    assert mn.learn.ElasticNetPenalty(0.5, 0.25).slope(w).compute().tolist() == [0.375, -0.75]
    assert mn.learn.L1(0.5).slope(w) == 0


PENALTIES = {
    "L2": (mn.learn.L2(0.5), lambda w: 0.25 * (w * w).sum()),
    "ElasticNetPenalty": (mn.learn.ElasticNetPenalty(0.5, 0.25), lambda w: 0.1875 * (w * w).sum()),
}


@pytest.mark.parametrize("name", PENALTIES)
def test_a_slope_is_the_gradient_of_what_is_smooth(name):
    regularizer, penalty = PENALTIES[name]
    w, h = np.random.default_rng(3).normal(size=6), 1e-6
    differences = [(penalty(w + step) - penalty(w - step)) / (2 * h) for step in h * np.eye(6)]
    np.testing.assert_allclose(regularizer.slope(mn.asarray(w)).compute(), differences, rtol=1e-6)


def test_max_norm_is_of_columns():
    scaled = mn.learn.MaxNorm(1.0).proximal(mn.asarray([[3.0, 0.1], [4.0, 0.2]]), 1.0).compute()
    np.testing.assert_allclose(scaled, [[0.6, 0.1], [0.8, 0.2]], rtol=1e-15)


def cosines(w):
    units = w / np.linalg.norm(w, axis=0)
    pairs = units.T @ units
    return pairs[np.triu_indices(len(pairs), 1)].mean()


def entropies(w):
    p = abs(w) / abs(w).sum(axis=0)
    return -(p * np.log(p)).sum(axis=0)


MIXINS = {
    "CosineSimilarity": (mn.learn.CosineSimilarity(), cosines),
    "Correlation": (mn.learn.Correlation(), lambda w: cosines(w - w.mean(axis=0))),
    "Entropy": (mn.learn.Entropy(), lambda w: entropies(w).mean()),
    "Perplexity": (mn.learn.Perplexity(), lambda w: np.exp(entropies(w)).mean()),
    "Top": (mn.learn.Top(2), lambda w: np.sort(abs(w), axis=0)[:-2].sum() / w.shape[1]),
}


@pytest.mark.parametrize("name", MIXINS)
def test_a_mixin_has_its_figure_and_its_gradient(name):
    mixin, by_numpy = MIXINS[name]
    w, h = np.random.default_rng(3).normal(size=(6, 4)), 1e-6
    assert float(mixin.figure(mn.asarray(w))) == pytest.approx(by_numpy(w), rel=1e-12)
    slope = np.zeros_like(w)
    for place in np.ndindex(w.shape):
        step = np.zeros_like(w)
        step[place] = h
        slope[place] = (by_numpy(w + step) - by_numpy(w - step)) / (2 * h)
    np.testing.assert_allclose(mixin.slope(mn.asarray(w)).compute(), slope, rtol=1e-6, atol=1e-8)


def test_mixins_of_a_component_of_zeros_are_finite():
    w = mn.asarray([[0.0, 1.0], [0.0, 2.0]])
    for mixin, _ in MIXINS.values():
        assert np.isfinite(float(mixin.figure(w)))
        assert np.isfinite(mixin.slope(w).compute()).all()


def test_of_equal_elements_as_many_are_at_the_top_as_fit():
    w = mn.asarray([[2.0, 1.0], [2.0, -1.0], [1.0, 1.0]])
    assert float(mn.learn.Top(1).figure(w[:, :1])) == 3.0
    assert mn.learn.Top(2).slope(w).compute().tolist() == [[0, 0], [0, 0], [0.5, 0.5]]
    assert float(mn.learn.Top(3).figure(w)) == 0.0
    assert float(mn.learn.Top(0).figure(w)) == 4.0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: mn.learn.L1(-0.1), "L1: alpha=-0.1"),
        (lambda: mn.learn.L2(-0.1), "L2: alpha=-0.1"),
        (lambda: mn.learn.MaxNorm(np.nan), "MaxNorm: limit=nan"),
        (lambda: mn.learn.ElasticNetPenalty(1.0, -1.0), "ElasticNetPenalty: l1_ratio=-1"),
        (lambda: mn.learn.SGD(-1.0), "SGD: learning_rate=-1.0"),
        (lambda: mn.learn.SGD(1.0, momentum=1.0), "SGD: momentum=1.0; give a number below 1"),
        (lambda: mn.learn.AdaGrad(power=-1), "AdaGrad: power=-1"),
        (lambda: mn.learn.Adam(beta_2=1), "Adam: beta_2=1"),
        (lambda: mn.learn.Average(after=-1), "Average: after=-1"),
    ],
)
def test_numbers_that_are_none_of_theirs_are_refused(make, match):
    with pytest.raises(OptionError, match=match):
        make()
