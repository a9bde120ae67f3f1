"""Tall matrices by slabs of rows on every engine: the same bits for any cuts, and loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matnb as mn
from matnb.ops import tall

pytestmark = pytest.mark.session("two workers")

X = np.random.default_rng(0).standard_normal((6_001, 7))
GRADED = X * 10.0 ** -np.arange(0, 14, 2)


@pytest.fixture(autouse=True)
def small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have several slabs; what workers do follows from what they are given."""
    monkeypatch.setattr(tall, "_SLAB_BYTES", 80_000)


pytestmark = pytest.mark.session("two threads", "three workers", "processes")


def decomposed(x: np.ndarray, cuts: Any) -> list[np.ndarray]:
    given = mn.asarray(x, blocks=cuts)
    b = given[:, 0] + 1
    return list(mn.compute(*np.linalg.qr(given), *np.linalg.svd(given, full_matrices=False),
                           *np.linalg.lstsq(given, b)))  # fmt: skip


def test_bits_are_the_same_for_any_cuts_and_workers() -> None:
    expected = _EXPECTED.setdefault("bits", decomposed(X, None))
    for cuts in ((1, 1), (5, 2), ([0, 1, 1428, 1429, 6_000, 6_001], None)):
        for mine, own in zip(decomposed(X, cuts), expected, strict=True):
            np.testing.assert_array_equal(mine, own)


_EXPECTED: dict[str, list[np.ndarray]] = {}  # of whichever engine comes first


def test_in_a_loop() -> None:
    A = mn.asarray(GRADED, blocks=(5, 1))

    def step(Q: mn.DistArray) -> mn.DistArray:
        return np.linalg.qr(A @ (A.T @ Q))[0]

    Q, _ = mn.iterate(step, np.linalg.qr(A[:, :3])[0], max_iterations=4)
    own = np.linalg.qr(GRADED[:, :3])[0]
    for _ in range(4):
        own = np.linalg.qr(GRADED @ (GRADED.T @ own))[0]
    Q = Q.compute()
    np.testing.assert_allclose(Q @ Q.T @ own, own, atol=1e-9)
