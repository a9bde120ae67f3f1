"""What generators draw beside uniform and normal numbers."""

from __future__ import annotations

import numpy as np
import pytest

import matnb as mn

pytestmark = pytest.mark.session("two threads")


def test_means_follow_the_parameters() -> None:
    rng = mn.random.default_rng(1)
    n = 20000
    assert float(rng.exponential(5.0, n).mean()) == pytest.approx(5, rel=0.05)
    assert float(rng.lognormal(0.0, 0.5, n).mean()) == pytest.approx(np.exp(0.125), rel=0.05)
    means = rng.normal([0.0, 100.0], [1.0, 2.0], (n, 2))
    np.testing.assert_allclose(means.mean(axis=0).compute(), [0, 100], atol=0.1)
    spread = rng.uniform(0, [1.0, 10.0], (n, 2)).compute()
    assert (spread.max(axis=0) <= [1, 10]).all()
    np.testing.assert_allclose(spread.mean(axis=0), [0.5, 5], rtol=0.05)
    assert rng.normal([0.0, 1.0]).shape == (2,)
    assert rng.exponential().shape == ()
    faces = rng.integers(1, 6, n, endpoint=True).compute()
    assert set(faces.tolist()) == {1, 2, 3, 4, 5, 6}


def test_elements_are_chosen() -> None:
    rng = mn.random.default_rng(2)
    picked = rng.choice([10.0, 20.0, 30.0], 5000, p=[0.2, 0.0, 0.8]).compute()
    assert set(picked.tolist()) == {10.0, 30.0}
    assert (picked == 30).mean() == pytest.approx(0.8, abs=0.03)
    assert sorted(rng.choice(6, 6, replace=False).tolist()) == [0, 1, 2, 3, 4, 5]
    rows = rng.choice(np.arange(12).reshape(4, 3), (2, 2))
    assert rows.shape == (2, 2, 3)
    with pytest.raises(ValueError, match="7 of 6"):
        rng.choice(6, 7, replace=False)
    with pytest.raises(ValueError, match="replacement"):
        rng.choice(2, 1, replace=False, p=[0.5, 0.5])


def test_order_is_random_and_follows_the_seed() -> None:
    order = mn.random.default_rng(3).permutation(50).tolist()
    assert sorted(order) == list(range(50))
    assert order != list(range(50))
    assert order == mn.random.default_rng(3).permutation(50).tolist()
    x = mn.arange(20)
    mn.random.default_rng(4).shuffle(x)
    assert sorted(x.tolist()) == list(range(20))
    assert x.tolist() != list(range(20))


def test_what_is_not_drawn_names_the_nearest_way() -> None:
    with pytest.raises(AttributeError, match=r"wald.*mn\.asarray"):
        mn.random.default_rng(0).wald  # noqa: B018  asked for
    with pytest.raises(AttributeError, match=r"default_rng\(seed\)\.standard_normal"):
        mn.random.randn  # noqa: B018  asked for
