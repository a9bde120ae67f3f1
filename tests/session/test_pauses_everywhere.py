"""The programs of tests/test_loops.py once more, in loops that pause after every iteration."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import test_loops
from random_balancer import Restless
from test_loops import *  # noqa: F403  its tests run here as well, with the fixtures below

import matnb as mn

ENGINES = {
    "dask, workers": {"engine": "dask", "workers": 3, "threads": 1},
    "gang, threads": {"engine": "gang", "workers": 1, "threads": 2},
    "gang, workers": {"engine": "gang", "workers": 3, "threads": 1},
    "gang, processes": {"engine": "gang", "workers": 2, "threads": 1, "processes": True},
}


@pytest.fixture(
    scope="module",
    params=[pytest.param(one, marks=[pytest.mark.cluster] if "processes" in one else []) for one in ENGINES],
)
def session(request: pytest.FixtureRequest) -> Iterator[test_loops.Watched]:
    with mn.start(**ENGINES[request.param]) as started:
        watched = test_loops.Watched(request.param, started)
        watched.restless = Restless(started, seed=len(request.param))
        yield watched
    mn.stop()


@pytest.fixture
def engine(session: test_loops.Watched) -> Iterator[test_loops.Watched]:
    restless = session.restless
    restless.watches.clear()
    session.loops.clear()
    yield session
    wanted = session.name.split(",", maxsplit=1)[0]
    assert {one.engine for one in session.loops} <= {wanted}, [one.reason for one in session.loops]
    # Each part is one iteration.
    loops = [one for one in session.loops if not one.is_branch]
    assert not loops or len(restless.watches) == sum(max(1, one.iterations) for one in loops)
    assert all(watch.num_finished == 1 for watch in restless.watches)
