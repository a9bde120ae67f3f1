"""What tests of sessions watch: runs, the scheduler's tasks, and work that takes a while."""

from __future__ import annotations

import time

import numpy as np

import matnb as mn
from matnb.events import RunFinished


def runs(session: mn.session.Session) -> list[RunFinished]:
    seen: list[RunFinished] = []
    session.subscribe(lambda event: seen.append(event) if isinstance(event, RunFinished) else None)
    return seen


def tasks_on_scheduler(session: mn.session.Session) -> int:
    return session.cluster.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))


def long_work() -> mn.DistArray:
    rng = np.random.default_rng(int(time.time()))
    a = mn.asarray(rng.random((1500, 1500)), blocks=2)
    b = a
    for number in range(60):  # of which no two are alike, so that they are not a loop
        b = (a @ b) / (1500 + number)
    return b.sum()
