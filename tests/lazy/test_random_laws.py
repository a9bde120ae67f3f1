"""Random numbers of laws with parameters: their laws, bits for any cuts, arrays as parameters, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import matnb as mn

COUNT = 40_000
LEAST = 1e-4  # a p-value of a right sampler is below it once in ten thousand seeds; seeds are fixed

pytestmark = pytest.mark.session("three workers")


def draw(name: str, *parameters: Any, size: Any = COUNT, seed: int = 7, **options: Any) -> Any:
    return getattr(mn.random.default_rng(seed), name)(*parameters, size=size, **options)


@pytest.mark.parametrize(
    ("name", "parameters", "law"),
    [
        ("gamma", (0.2, 3.0), stats.gamma(0.2, scale=3.0)),
        ("gamma", (1.0, 1.0), stats.gamma(1.0)),
        ("gamma", (40.0, 0.5), stats.gamma(40.0, scale=0.5)),
        ("standard_gamma", (2.5,), stats.gamma(2.5)),
        ("beta", (0.5, 0.5), stats.beta(0.5, 0.5)),
        ("beta", (0.01, 3.0), stats.beta(0.01, 3.0)),
        ("beta", (200.0, 7.0), stats.beta(200.0, 7.0)),
        ("standard_t", (1.0,), stats.t(1.0)),
        ("standard_t", (0.4,), stats.t(0.4)),
        ("standard_t", (30,), stats.t(30.0)),
        ("standard_t", (np.inf,), stats.norm()),
    ],
)
def test_real_numbers_have_the_law(name: str, parameters: tuple[Any, ...], law: Any) -> None:
    found = draw(name, *parameters).compute()
    assert found.shape == (COUNT,)
    assert found.dtype == np.float64
    assert stats.kstest(found, law.cdf).pvalue > LEAST


@pytest.mark.parametrize(
    ("name", "parameters", "law"),
    [
        ("poisson", (0.3,), stats.poisson(0.3)),
        ("poisson", (9.9,), stats.poisson(9.9)),
        ("poisson", (10.0,), stats.poisson(10.0)),
        ("poisson", (12345.6,), stats.poisson(12345.6)),
        ("binomial", (1, 0.3), stats.binom(1, 0.3)),
        ("binomial", (19, 0.5), stats.binom(19, 0.5)),
        ("binomial", (20, 0.5), stats.binom(20, 0.5)),
        ("binomial", (300, 0.97), stats.binom(300, 0.97)),
        ("binomial", (10**9, 0.25), stats.binom(10**9, 0.25)),
    ],
)
def test_counts_have_the_law(name: str, parameters: tuple[Any, ...], law: Any) -> None:
    found = draw(name, *parameters).compute()
    assert found.dtype == np.int64
    assert chi_square(found, law) > LEAST


def chi_square(found: np.ndarray, law: Any) -> float:
    # Between quantiles of the law, so that every bin has its part.
    edges = np.unique(law.ppf(np.linspace(0.0, 1.0, 40)[1:-1]))
    shares = np.diff([0.0, *law.cdf(edges), 1.0])
    seen = np.bincount(np.searchsorted(edges, found), minlength=shares.size)
    return float(stats.chisquare(seen[shares > 0], shares[shares > 0] * found.size).pvalue)


def test_what_has_one_value_has_it() -> None:
    assert (draw("poisson", 0.0).compute() == 0).all()
    assert (draw("binomial", 0, 0.5).compute() == 0).all()
    assert (draw("binomial", 9, 0.0).compute() == 0).all()
    assert (draw("binomial", 9, 1.0).compute() == 9).all()
    assert (draw("gamma", 0.0).compute() == 0).all()


def test_multinomial_numbers_have_their_margins_and_covariances() -> None:
    chances = np.array([0.1, 0.0, 0.35, 0.05, 0.5])
    found = draw("multinomial", 30, chances).compute()
    assert found.shape == (COUNT, 5)
    assert (found.sum(axis=1) == 30).all()
    for place, chance in enumerate(chances):
        assert chi_square(found[:, place], stats.binom(30, chance)) > LEAST if chance else True
    wanted = 30 * (np.diag(chances) - np.outer(chances, chances))
    np.testing.assert_allclose(np.cov(found.T), wanted, atol=0.15)
    assert (found[:, 1] == 0).all()


def test_multinomial_takes_arrays() -> None:
    counts = np.array([[5], [70]])
    chances = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [1.0, 0.0, 0.0]])
    for given_chances in (chances, mn.asarray(chances)):
        found = mn.random.default_rng(1).multinomial(counts, given_chances).compute()
        assert found.shape == (2, 3, 3)
        np.testing.assert_array_equal(found.sum(axis=-1), np.broadcast_to(counts, (2, 3)))
        np.testing.assert_array_equal(found[:, 2, 0], counts[:, 0])
    assert mn.random.default_rng(1).multinomial(4, [1.0]).tolist() == [4]


def test_dirichlet_numbers_add_up_and_have_beta_margins() -> None:
    alpha = np.array([0.05, 1.0, 3.0])
    found = draw("dirichlet", alpha).compute()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    for place, one in enumerate(alpha):
        assert stats.kstest(found[:, place], stats.beta(one, alpha.sum() - one).cdf).pvalue > LEAST
    tiny = draw("dirichlet", [1e-4, 1e-4]).compute()
    assert np.isfinite(tiny).all()
    rows = mn.random.default_rng(0).dirichlet(np.ones((6, 4))).compute()
    assert rows.shape == (6, 4)


def test_parameters_may_be_arrays() -> None:
    means = np.array([0.5, 5.0, 500.0])
    for lam in (means, list(means), mn.asarray(means)):
        found = draw("poisson", lam, size=(COUNT // 4, 3)).compute()
        np.testing.assert_allclose(found.mean(axis=0), means, rtol=0.05)
    shapes, scales = mn.asarray([[1.0], [9.0]]), np.array([1.0, 10.0, 100.0])
    assert mn.random.default_rng(0).gamma(shapes, scales).shape == (2, 3)
    found = draw("gamma", shapes, scales, size=(4000, 2, 3)).compute().mean(axis=0)
    np.testing.assert_allclose(found, [[1, 10, 100], [9, 90, 900]], rtol=0.1)
    found = draw("binomial", [10, 1000], mn.asarray([0.5, 0.9]), size=(4000, 2)).compute().mean(axis=0)
    np.testing.assert_allclose(found, [5, 900], rtol=0.05)
    assert mn.random.default_rng(0).beta(1.0, 2.0).shape == ()


LAWS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "gamma": lambda rng, size, blocks: rng.gamma(0.7, 2.0, size, blocks=blocks),
    "beta": lambda rng, size, blocks: rng.beta(0.7, 2.0, size, blocks=blocks),
    "standard_t": lambda rng, size, blocks: rng.standard_t(3.0, size, blocks=blocks),
    "poisson": lambda rng, size, blocks: rng.poisson(20.0, size, blocks=blocks),
    "binomial": lambda rng, size, blocks: rng.binomial(50, 0.4, size, blocks=blocks),
    "dirichlet": lambda rng, size, blocks: rng.dirichlet([1.0, 2.0, 0.5], size, blocks=blocks),
    "multinomial": lambda rng, size, blocks: rng.multinomial(
        rng.integers(0, 50, size, blocks=blocks), [0.3, 0.3, 0.4], size
    ),
}


@settings(max_examples=12, deadline=None)
@given(name=st.sampled_from(sorted(LAWS)), cuts=st.integers(2, 9), seed=st.integers(0, 2**64 - 1))
def test_cuts_leave_the_bits(name: str, cuts: int, seed: int) -> None:
    whole = LAWS[name](mn.random.default_rng(seed), 1001, 1).compute()
    cut = LAWS[name](mn.random.default_rng(seed), 1001, cuts).compute()
    np.testing.assert_array_equal(whole.view(np.int64), cut.view(np.int64))


def test_iterations_draw_other_numbers() -> None:
    rng = mn.random.default_rng(3)

    def step(state: Any) -> Any:
        total, last = state
        drawn = rng.poisson(50.0, 500)
        return total + (drawn == last).mean(), drawn

    (total, _), count = mn.iterate(step, (mn.asarray(0.0), mn.zeros(500, int)), max_iterations=20)
    assert count == 20
    assert float(total) < 20 * 0.1


def test_parameters_change_in_loops() -> None:
    rng = mn.random.default_rng(3)

    def step(lam: Any) -> Any:
        return rng.poisson(lam).mean(keepdims=True) * mn.ones(2000) + 1

    lam, _ = mn.iterate(step, mn.full(2000, 5.0), max_iterations=10)
    np.testing.assert_allclose(lam.compute(), 15.0, atol=2.0)


def test_bad_parameters_are_refused_before_work() -> None:
    rng = mn.random.default_rng(0)
    for call, told in (
        (lambda: rng.gamma(-1.0), "shape=-1.0"),
        (lambda: rng.gamma(1.0, -2.0), "scale=-2.0"),
        (lambda: rng.beta(0.0, 1.0), "a=0.0"),
        (lambda: rng.standard_t([1.0, 0.0]), "df=0.0"),
        (lambda: rng.poisson(np.nan), "lam=nan"),
        (lambda: rng.binomial(-1, 0.5), "n=-1"),
        (lambda: rng.binomial(3, 1.5), "p=1.5"),
        (lambda: rng.multinomial(3, [0.7, 0.7, 0.0]), "above 1"),
        (lambda: rng.multinomial(3, [-0.1, 1.1]), "pvals=-0.1"),
        (lambda: rng.dirichlet([1.0, 0.0]), "0.0"),
        (lambda: rng.poisson(1j), "real"),
    ):
        with pytest.raises(ValueError, match=told):
            call()
    for call in (
        lambda: rng.poisson([1.0, 2.0], size=3),
        lambda: rng.beta([1.0, 2.0], [[1.0], [2.0]], size=2),
        lambda: rng.multinomial(3, 0.5),
        lambda: rng.dirichlet(1.0),
        lambda: rng.multinomial([1, 2], [0.5, 0.5], size=3),
    ):
        with pytest.raises(mn.errors.ShapeError):
            call()


def test_bad_parameters_on_workers_are_told() -> None:
    rng = mn.random.default_rng(0)
    with pytest.raises(mn.errors.MatnbError, match=r"lam=-1\.0 is not a mean"):
        rng.poisson(mn.asarray([1.0, -1.0])).compute()
    with pytest.raises(mn.errors.MatnbError, match=r"n=3, p=2\.0"):
        rng.binomial(3, mn.asarray([0.5, 2.0])).compute()
    assert np.isnan(rng.gamma(mn.asarray([-1.0, 1.0])).compute()).tolist() == [True, False]
