"""Large arrays that a user gave outlive the workers that hold them, whatever the user does with theirs."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from waiting import wait_until

import matnb as mn
from matnb.errors import SessionEnded
from matnb.expr import client_data
from matnb.session import run

N = 12_000


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(client_data, "SHIP_BYTES", 1000)
    yield
    mn.stop()


def sparse() -> sp.csr_array:
    return sp.random_array((N, 40), density=0.01, format="csr", rng=np.random.default_rng(0))


GIVEN: dict[str, Callable[[], object]] = {
    "dense": lambda: np.arange(float(N)),
    "matrix": lambda: np.arange(float(N)).reshape(-1, 4),
    "columns": lambda: np.asfortranarray(np.arange(float(N)).reshape(-1, 4)),
    "bool": lambda: np.arange(N) % 3 == 0,
    "sparse": sparse,
    "pattern": lambda: sparse().astype(bool),
}


def lose(session: mn.session.Session) -> None:
    """Take every worker away, and with it what it holds."""
    cluster = session.cluster._servers.cluster
    num_gone = len(cluster.workers)
    for one in list(cluster.workers.values()):
        if session.config.processes:
            os.kill(one.pid, signal.SIGKILL)
        else:
            cluster.loop.add_callback(one.close)
    wait_until(lambda: session.cluster.attendance().num_gone >= num_gone)


def check(kind: str) -> None:
    given, expected = GIVEN[kind](), GIVEN[kind]()
    x = mn.asarray(given, blocks=3)
    (given.data if sp.issparse(given) else given)[...] = 0
    y = (
        mn.iterate(lambda y: y + x.sum() * 1.0, mn.zeros(()), max_iterations=3)[0]
        if kind == "dense"
        else None
    )
    lose(mn.current_session())
    total = expected.sum()
    if y is not None:
        assert float(y) == pytest.approx(3 * total)
        lose(mn.current_session())
    assert float(x.sum()) == pytest.approx(total)
    found = x.to_scipy().toarray() if sp.issparse(expected) else x.compute()
    np.testing.assert_array_equal(found, expected.toarray() if sp.issparse(expected) else expected)


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("keeps", ["shared", "file"])
def test_a_large_array_survives_the_loss_of_all_workers(
    kind: str, keeps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if keeps == "file":  # as with worker processes
        monkeypatch.setattr(run, "keep_copy", run.keep_in_file)
    with mn.start(workers=2, threads=1):
        check(kind)


@pytest.mark.cluster
def test_a_large_array_survives_the_loss_of_its_processes() -> None:
    with mn.start(workers=1, threads=1, processes=True):
        check("dense")


def test_workers_in_this_process_share_the_copy_with_it() -> None:
    with mn.start(workers=1, threads=1) as session:
        x = mn.asarray(np.arange(float(N)), blocks=3)
        kept = client_data.held(x.expression).values
        blocks = [one.block for entry in session._store.entries() for one in entry.futures]
        assert blocks
        assert all(np.shares_memory(one.values, kept) for one in blocks)


def test_a_copy_outlives_its_session_and_goes_with_the_array() -> None:
    with mn.start():
        x = mn.asarray(np.arange(float(N)))
    num_held = len(client_data._held)
    with mn.start(workers=2):
        assert float(x.sum()) == N * (N - 1) / 2
    mn.stop()
    del x
    gc.collect()
    assert len(client_data._held) < num_held


def test_without_room_for_a_copy_a_loss_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "keep_copy", run.keep_in_file)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    with mn.start(workers=1) as session:
        x = mn.asarray(np.arange(float(N)))
        assert float(x.sum()) == N * (N - 1) / 2
        lose(session)
        with pytest.raises(SessionEnded, match="give it again"):
            float((x + 1).sum())
