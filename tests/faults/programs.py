"""Small programs, each with the answer that NumPy and SciPy give, which are run while something breaks."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

import matnb as mn

Answers = dict[str, tuple[Any, Any]]  # what was computed, and what it should be, by name
LARGE = 8_500_000  # float64, 68 MB: sent to the workers when it is given


class Programs:
    """The programs of one schedule; what some of them make is read again by later ones.

    Parameters
    ----------
    seed
        Of the data.
    folder
        For files.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._numbers, self._random = np.random.default_rng(seed), random.Random(seed)
        self._folder = folder
        self._kept: dict[str, tuple[mn.DistArray, np.ndarray]] = {}
        self._num_files = 0

    def run(self, name: str) -> Answers:
        """Run a program and return its values beside the right ones."""
        return PROGRAMS[name](self)

    def _dense(self, *shape: int) -> np.ndarray:
        return self._numbers.random(shape)

    def _sparse(self, n: int, per_row: int) -> sp.csr_array:
        # The first rows are much longer than the others.
        counts = self._numbers.poisson(per_row, n)
        counts[: n // 8] *= 6
        rows = np.repeat(np.arange(n), np.minimum(counts, n))
        values = self._numbers.random(rows.size)
        made = sp.csr_array((values, (rows, self._numbers.integers(0, n, rows.size))), shape=(n, n))
        made.sum_duplicates()
        return made

    def elementwise(self) -> Answers:
        a = self._dense(120_000)
        x = mn.asarray(a, blocks=4)
        return {"chain": ((np.sqrt(x * x + 1) - x / (x + 2)).compute(), np.sqrt(a * a + 1) - a / (a + 2))}

    def reductions(self) -> Answers:
        a = self._dense(6000, 20)
        x = mn.asarray(a, blocks=(4, 1))
        total, mean, most = mn.compute(x.sum(), x.mean(axis=0), x.max(axis=1))
        return {"sum": (total, a.sum()), "mean": (mean, a.mean(axis=0)), "max": (most, a.max(axis=1))}

    def numbers(self) -> Answers:
        a = self._dense(2000)
        x = mn.asarray(a, blocks=4).persist()
        found = {}
        for number in (1.5, 2.5, 3.5, 4.5):  # planned once, then asked for by the same plan
            found[f"sum {number}"] = float((x * number + 1).sum()), float((a * number + 1).sum())
        return found

    def products(self) -> Answers:
        a, v = self._sparse(3000, 6), self._dense(3000)
        A, x = mn.asarray(a, blocks=4), mn.asarray(v, blocks=4)
        squared = ((A @ A) * A).sum()
        return {
            "A @ x": ((A @ x).compute(), a @ v),
            "A.T @ x": ((A.T @ x).compute(), a.T @ v),
            "squared": (float(squared), float(((a @ a) * a).sum())),
        }

    def order(self) -> Answers:
        a = self._numbers.integers(0, 5000, 60_000)
        x = mn.asarray(a, blocks=4)
        return {"sort": (np.sort(x).compute(), np.sort(a)), "unique": (np.unique(x).compute(), np.unique(a))}

    def groups(self) -> Answers:
        keys, values = self._numbers.integers(0, 40, 50_000), self._dense(50_000)
        given = mn.asarray(keys, blocks=3)
        found = np.bincount(given, weights=mn.asarray(values, blocks=3), minlength=40).compute()
        return {"bincount": (found, np.bincount(keys, weights=values, minlength=40))}

    def loop(self) -> Answers:
        a, count = self._sparse(4000, 5), self._random.choice([20, 200, 600])
        a = a * (0.5 / max(1.0, abs(a).sum(axis=1).max()))
        A = mn.asarray(a, blocks=4)
        x, taken = mn.iterate(lambda x: A @ x + 1, mn.ones(4000), max_iterations=count)
        expected = np.ones(4000)
        for _ in range(count):
            expected = a @ expected + 1
        return {"state": (x.compute(), expected), "taken": (int(taken), count)}

    def until(self) -> Answers:
        a = self._dense(20_000)
        x0 = mn.asarray(a, blocks=4)
        x, taken = mn.iterate(
            lambda x: x * 0.5 + x.sum() / 50_000,
            x0,
            until=lambda old, new: abs(new - old).max() < 1e-9,
            max_iterations=300,
        )
        expected, count = a, 0
        while count < 300:
            new = expected * 0.5 + expected.sum() / 50_000
            count, done, expected = count + 1, abs(new - expected).max() < 1e-9, new
            if done:
                break
        return {"state": (x.compute(), expected), "taken": (int(taken), count)}

    def asking(self) -> Answers:
        a = self._dense(40_000)
        x, expected, told = mn.asarray(a, blocks=4), a, []
        for _ in range(8):
            x, expected = x * 0.9 + 0.01, expected * 0.9 + 0.01
            told.append((float(x.sum()), float(expected.sum())))
        return {f"turn {turn}": one for turn, one in enumerate(told)}

    def files(self) -> Answers:
        self._num_files += 1
        path = self._folder / f"{self._num_files}.mtx"
        a, v = self._sparse(1500, 5), self._dense(1500)
        scipy.io.mmwrite(path, a.tocoo(), precision=17)
        A = mn.load(path)
        saved = self._folder / f"{self._num_files}.npy"
        y = A @ mn.asarray(v)
        mn.save(y * 2, saved)
        return {"product": (y.compute(), a @ v), "saved": (np.load(saved), 2 * (a @ v))}

    def large(self) -> Answers:
        if "large" not in self._kept:
            a = self._numbers.random(LARGE)
            self._kept["large"] = mn.asarray(a, blocks=4), a.copy()
            a[:] = -1  # whoever gives an array may write into it afterwards
        x, a = self._kept["large"]
        shift = self._random.random()
        return {"max": (float((x + shift).max()), a.max() + shift), "sum": (float(x.sum()), a.sum())}

    def memo(self) -> Answers:
        if "memo" not in self._kept:
            a = self._dense(80_000)
            self._kept["memo"] = (mn.asarray(a, blocks=4) * 3 + 1).persist(), a * 3 + 1
        x, a = self._kept["memo"]
        part = self._random.randrange(70_000)
        return {
            "again": (x.compute(), a),
            "slice": (x[part : part + 100].compute(), a[part : part + 100]),
            "sum": (float(np.exp(-x).sum()), float(np.exp(-a).sum())),
        }

    def replicated(self) -> Answers:
        a = self._dense(30_000)
        x = mn.asarray(a, blocks=3)
        (y, small), _ = mn.iterate(
            lambda s: (s[0] * 0.99 + s[1].sum() / 1000, mn.replicated(_halved, s[1])),
            (x, mn.ones(5)),
            max_iterations=60,
        )
        expected, few = a, np.ones(5)
        for _ in range(60):
            expected, few = expected * 0.99 + few.sum() / 1000, _halved(few)
        return {"state": (y.compute(), expected), "small": (small.compute(), few)}

    def rebalancing(self) -> Answers:
        a = self._sparse(40_000, 12)
        a = a * (0.5 / max(1.0, abs(a).sum(axis=1).max()))
        A = mn.asarray(a, blocks=8)
        x, _ = mn.iterate(lambda x: A @ x + 1, mn.ones(40_000), max_iterations=80)
        expected = np.ones(40_000)
        for _ in range(80):
            expected = a @ expected + 1
        return {"state": (x.compute(), expected)}


def _halved(x: np.ndarray) -> np.ndarray:
    return x * 0.5


PROGRAMS: dict[str, Callable[[Programs], Answers]] = {
    name: getattr(Programs, name)
    for name in (
        "elementwise", "reductions", "numbers", "products", "order", "groups", "loop", "until", "asking",
        "files", "large", "memo", "replicated", "rebalancing",
    )
}  # fmt: skip


def wrong(answers: Answers) -> list[str]:
    """Return what differs from the right values by more than the order of sums explains."""
    found = []
    for name, (value, expected) in answers.items():
        value, expected = np.asarray(value), np.asarray(expected)
        if value.shape != expected.shape or not np.allclose(value, expected, rtol=1e-9, atol=1e-12):
            found.append(name)
    return found
