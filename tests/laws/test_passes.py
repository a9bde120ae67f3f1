"""However passes over a source are counted, each has its own order, the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matnb as mn

N, P = 23, 3
RNG = np.random.default_rng(2)
X = RNG.normal(size=(N, P))
Y = X @ RNG.normal(size=P) + RNG.normal(size=N)

pytestmark = pytest.mark.session("two threads")


def learner(**options: Any) -> Any:
    model = mn.learn.models.GeneralizedLinear()
    return mn.learn.Learner(model, optimizer=mn.learn.SGD(0.1, momentum=0.5), **options)


def source(kind: str, seed: int) -> Any:
    options: dict[str, Any] = {"batch_size": 10, "shuffle": True, "seed": seed}
    if kind == "memory":
        return mn.sources.memory(X, Y, **options)
    return mn.sources.calls(lambda k: (X[10 * k : 10 * k + 10], Y[10 * k : 10 * k + 10]), 3, **options)


def step_by_step(batches: Any) -> np.ndarray:
    found = learner()
    for batch in batches:
        found.partial_fit(batch.X, batch.y)
    return np.asarray(found.parameters_["weights"])


@pytest.mark.parametrize(
    ("kind", "repeats", "epochs"), [("memory", 2, 2), ("memory", 3, 2), ("memory", 1, 3), ("calls", 2, 3)]
)
def test_epochs_of_a_repeated_source_are_its_passes(kind: str, repeats: int, epochs: int) -> None:
    rows = source(kind, seed=repeats)
    found = learner().fit(rows.repeat(repeats), epochs=epochs)
    expected = step_by_step(rows.repeat(repeats * epochs))
    np.testing.assert_array_equal(np.asarray(found.parameters_["weights"]), expected)
    firsts = [one.X.compute()[0].tolist() for one in rows.repeat(repeats * epochs) if one.number == 0]
    assert len(np.unique(firsts, axis=0)) > 1, "orders differ"


def test_loops_make_the_same_passes() -> None:
    rows = source("memory", seed=5)

    def step(total: Any, batch: Any) -> Any:
        return 0.5 * total + batch.X.sum(axis=0)

    found, _ = mn.iterate(step, mn.zeros(P), over=rows.repeat(2), epochs=2)
    expected = np.zeros(P)
    for batch in rows.repeat(4):
        expected = 0.5 * expected + batch.X.compute().sum(axis=0)
    np.testing.assert_allclose(found.compute(), expected, rtol=1e-12)


def test_a_stopped_fit_goes_on_in_its_order(tmp_path: Path) -> None:
    rows, path = source("memory", seed=6).repeat(2), tmp_path / "run.npz"
    whole = learner().fit(rows, epochs=3)
    learner(checkpoint=path, checkpoint_every=2).fit(rows, epochs=2)
    gone_on = learner(checkpoint=path, checkpoint_every=2).fit(rows, epochs=3, resume=True)
    np.testing.assert_array_equal(*(np.asarray(one.parameters_["weights"]) for one in (whole, gone_on)))
