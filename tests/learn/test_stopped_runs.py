"""A learner whose worker is killed, or whose cell is interrupted, while a loop of it runs."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.errors import CellCancelled
from matnb.events import Event, LoopFinished, WorkersLost
from matnb.learn.models import GeneralizedLinear

RNG = np.random.default_rng(3)
N, P = 800, 4
X = RNG.normal(size=(N, P))
Y = (X @ RNG.normal(size=P) + 0.3 * RNG.normal(size=N) > 0.2).astype(float)
AT = 20  # the batch of a loop in which a signal is sent


@dataclass(frozen=True)
class Logistic(GeneralizedLinear):
    """A logistic model that sends its process a signal once, where the file ``waiting`` is there."""

    waiting: Path | None = None
    sent: signal.Signals = signal.SIGINT

    def loss(self, parameters: dict[str, mn.DistArray], X: mn.DistArray, y: mn.DistArray) -> mn.DistArray:
        """Return the loss, late."""
        waiting, sent = self.waiting, self.sent

        def late(loss: np.ndarray, batch: np.ndarray) -> np.ndarray:
            time.sleep(0.005)
            if waiting is not None and batch == AT and waiting.exists():
                waiting.unlink()
                os.kill(os.getpid(), sent)
            return loss

        return mn.replicated(late, super().loss(parameters, X, y), mn.iteration())


def learner(
    waiting: Path | None = None, sent: signal.Signals = signal.SIGINT, **options: object
) -> mn.learn.Learner:
    model = Logistic("logit", waiting=waiting, sent=sent)
    return mn.learn.Learner(model, mn.learn.Average(mn.learn.Adam(0.05)), **options)


def values_of(fitted: mn.learn.Learner) -> list[bytes]:
    return [fitted.parameters_[name].compute().tobytes() for name in ("weights", "intercept")]


def rows(k: int) -> tuple[np.ndarray, np.ndarray]:
    return X[k * 200 : k * 200 + 200], Y[k * 200 : k * 200 + 200]


@pytest.mark.slow
@pytest.mark.cluster
def test_a_killed_worker_changes_no_bit(tmp_path: Path) -> None:
    with mn.start(workers=1, threads=2):
        whole = learner().fit(X, Y, epochs=2, batch_size=5)
        expected = values_of(whole)
    with mn.start(workers=2, threads=1, processes=True) as session:
        heard: list[Event] = []
        streamed = mn.sources.calls(rows, 4, batch_size=5)
        session.subscribe(heard.append)
        for number, source in enumerate([(X, Y), (streamed,)], 1):
            (tmp_path / "waiting").touch()
            killed = learner(tmp_path / "waiting", signal.SIGKILL).fit(*source, epochs=2, batch_size=5)
            assert sum(isinstance(one, WorkersLost) for one in heard) == number
            assert values_of(killed) == expected
            assert killed.history_.loss.tolist() == whole.history_.loss.tolist()
            assert killed.n_iter_ == whole.n_iter_ == 2 * N // 5
    mn.stop()


def test_an_interrupt_leaves_the_model_there_was_and_a_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    waiting, options = tmp_path / "waiting", {"checkpoint": tmp_path / "kept.npz", "checkpoint_every": 40}

    def hear(event: Event) -> None:
        if isinstance(event, LoopFinished) and event.iterations == 40:
            waiting.touch()

    with mn.start(workers=1, threads=2) as session:
        whole = learner().fit(X[:500], Y[:500], batch_size=5)
        stopped = learner(waiting, **options).fit(X[:5], Y[:5])
        before = values_of(stopped)
        end = session.subscribe(hear)
        with pytest.raises(CellCancelled, match=r"iterations? of a loop, whose state is not kept"):
            stopped.fit(X[:500], Y[:500], batch_size=5)
        end()
        assert not waiting.exists()
        assert values_of(stopped) == before
        assert len(stopped.history_) == stopped.n_iter_ == 1
        again = learner(**options).fit(X[:500], Y[:500], batch_size=5, resume=True)
        assert values_of(again) == values_of(whole)
        assert again.n_iter_ == 100
    mn.stop()
