"""The ways in which runs of workers in this process go, for tests of what must not depend on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from matnb.backend.engines.engine_threads import ThreadEngine
from matnb.backend.tasks.shared_tasks import SharedTasks, TaskGraph
from matnb.program.plan import Plan

# By the thread that asks, which else does what is small and has run before; by threads of workers; by Dask.
WAYS = ("asking thread", "threads", "tasks")


def _here(engine: ThreadEngine, sharing: SharedTasks, graph: TaskGraph, plan: Plan, owners: set[int]) -> None:
    with engine._cluster.stopping.holding_back():
        sharing.work_alone()


def _there(
    engine: ThreadEngine, sharing: SharedTasks, graph: TaskGraph, plan: Plan, owners: set[int]
) -> None:
    engine._begin(sharing, plan)
    engine._wait(sharing, owners)


@contextmanager
def going(way: str) -> Iterator[Mapping[str, str]]:
    """Let all runs go one way inside; yields what a session is to be started with for that."""
    with pytest.MonkeyPatch.context() as patch:
        if way != "tasks":
            patch.setattr(ThreadEngine, "_do", _here if way == "asking thread" else _there)
        yield {"engine": "dask"} if way == "tasks" else {}
