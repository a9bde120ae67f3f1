"""Arrays of 64 KiB or more that a step of learning makes: none after the first two batches of a loop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.events import LoopFinished
from matnb.session.session import Session
from matnb.sources import batches

ROWS, WIDTH, SIZE = 80_000, 8, 10_000

pytestmark = pytest.mark.session("one thread")


@pytest.mark.parametrize("kind", ["GLM from memory", "GLM from files", "SGDClassifier"])
def test_steps_make_nothing_large_after_two_batches(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
):
    monkeypatch.setattr(batches, "PIECE_BYTES", 4 * SIZE * WIDTH * 8)  # four batches of a file at once
    X = np.random.default_rng(len(kind)).normal(size=(ROWS, WIDTH))
    y = (X[:, 0] > 0) * 1.0
    heard: list[LoopFinished] = []
    stop = session.subscribe(lambda event: heard.append(event) if isinstance(event, LoopFinished) else None)
    glm = mn.learn.Learner(mn.learn.models.GeneralizedLinear("logit"), optimizer=mn.learn.AdaGrad(0.1))
    if kind == "GLM from memory":
        glm.fit(mn.sources.memory(X, y, batch_size=SIZE))
    elif kind == "GLM from files":
        np.savez(tmp_path / "rows.npz", X=X, y=y)
        glm.fit(mn.sources.files(tmp_path, batch_size=SIZE))
        assert len(heard) == 2
    else:
        mn.learn.SGDClassifier(batch_size=SIZE, max_iter=1, tol=None, shuffle=False).fit(X, y)
    stop()
    assert sum(one.iterations for one in heard) == ROWS // SIZE
    for one in heard:
        assert one.allocated[0] > 0
        assert one.allocated[2:] == (0,) * (one.iterations - 2)
