"""What was computed on a cluster of somebody else's is computed here only if that is asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import matnb as mn
from matnb.errors import ClusterError
from matnb.session import active_session

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[object]:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        yield cluster
    mn.stop()


def from_another_thread() -> None:
    thread = threading.Thread(target=mn.stop)
    thread.start()
    thread.join()


def left_by_an_error(session: mn.session.Session) -> None:
    with pytest.raises(ZeroDivisionError), session:
        raise ZeroDivisionError


ENDS: dict[str, Callable[[mn.session.Session], object]] = {
    "stop": lambda session: mn.stop(),
    "another thread's stop": lambda session: from_another_thread(),
    "close": lambda session: session.close(),
    "the end of with": lambda session: session.__exit__(None, None, None),
    "an error in with": left_by_an_error,
    "two stops": lambda session: (mn.stop(), mn.stop()),
}
ASKS: dict[str, Callable[[mn.DistArray, Path], object]] = {
    "float": lambda x, folder: float(x.sum()),
    "compute": lambda x, folder: x.compute(),
    "of nothing that was there": lambda x, folder: float(mn.ones(3).sum()),
    "several": lambda x, folder: mn.compute(x, x + 1),
    "asarray": lambda x, folder: np.asarray(x),
    "persist": lambda x, folder: (x + 1).persist(),
    "a condition": lambda x, folder: bool((x > 0).all()),
    "a loop": lambda x, folder: mn.iterate(lambda s: s + x.sum(), mn.zeros(()), max_iterations=2)[
        0
    ].compute(),
    "load": lambda x, folder: mn.load(folder / "x.npy"),
    "save": lambda x, folder: mn.save(x, folder / "y.npy"),
    "a large array": lambda x, folder: float(mn.asarray(np.ones(300_000)).sum()),
    "repartition": lambda x, folder: mn.repartition(x, 2),
    "explain": lambda x, folder: x.explain(),
}


@pytest.mark.parametrize("end", ENDS)
def test_whatever_ended_it_nothing_starts_by_itself(end: str, cluster: object) -> None:
    session = mn.connect(cluster)
    x = mn.arange(4.0)
    assert float(x.sum()) == 6
    ENDS[end](session)
    assert "DistArray" in repr(x), "looking is no asking"
    for _ in range(2):
        with pytest.raises(
            ClusterError, match=r"the Dask cluster at .* has ended, .* mn\.connect.* mn\.start"
        ):
            float((x + 1).sum())
        assert active_session() is None
    with mn.start(workers=1, threads=1):
        assert float((x + 1).sum()) == 10, "handles go on where a session is asked for"
    assert float((x + 2).sum()) == 14, "after one that was started here the next one starts by itself"
    mn.stop()
    assert float((x + 3).sum()) == 18
    mn.stop()


@pytest.mark.parametrize("ask", ASKS)
def test_whatever_is_asked_for_nothing_starts_by_itself(ask: str, cluster: object, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4.0))
    mn.connect(cluster)
    x = mn.arange(4.0) * 2
    assert float(x.sum()) == 12
    mn.stop()
    with pytest.raises(ClusterError, match=r"mn\.connect"):
        ASKS[ask](x, tmp_path)
    assert active_session() is None
    assert "mn.connect" in str(mn.doctor())


WANTED: dict[str, Callable[[Path], object]] = {
    "nobody there": lambda folder: mn.connect("tcp://127.0.0.1:9", timeout_seconds=0.2),
    "no address": lambda folder: mn.connect("127.0.0.1:x", timeout_seconds=0.2),
    "no certificates": lambda folder: mn.connect("tls://127.0.0.1:9", timeout_seconds=0.2),
    "no file": lambda folder: mn.connect(scheduler_file=str(folder / "none.json"), timeout_seconds=0.2),
}


@pytest.mark.parametrize("wanted", WANTED)
def test_where_a_cluster_was_wanted_nothing_starts_by_itself(wanted: str, tmp_path: Path) -> None:
    mn.stop()
    with pytest.raises(ClusterError):
        WANTED[wanted](tmp_path)
    for _ in range(2):
        with pytest.raises(ClusterError, match=r"did not reach the cluster.* mn\.connect.* mn\.start"):
            float(mn.arange(4.0).sum())
    assert "did not reach" in str(mn.doctor())
    with mn.start(workers=1, threads=1):
        assert float(mn.arange(4.0).sum()) == 6


def test_a_session_that_runs_goes_on_where_another_cluster_does_not_answer() -> None:
    with mn.start(workers=1, threads=1):
        with pytest.raises(ClusterError):
            mn.connect("tcp://127.0.0.1:9", timeout_seconds=0.2)
        assert float(mn.arange(4.0).sum()) == 6
    assert float((mn.arange(4.0) + 1).sum()) == 10
    mn.stop()


def test_a_cluster_gets_the_settings_that_are_this_process_and_is_asked_for_no_others(
    cluster: object,
) -> None:
    x = mn.ones(1000)
    with mn.connect(cluster, compute_limit="1kB", memo="1MB") as session:
        assert session.status().memo_bytes == 10**6
        with pytest.raises(mn.errors.TooLargeError, match=r"set_compute_limit\(\.\.\.\) .*mn\.connect"):
            x.compute()
        session.set_compute_limit("1MB")
        assert x.compute().shape == (1000,)
        with pytest.raises(mn.errors.TooLargeError, match="over the limit of 1 MB"):
            mn.ones(10**6).compute()
        with pytest.raises(mn.errors.OptionError, match="compute_limit"):
            session.set_compute_limit("much")
    with pytest.raises(TypeError, match="--memory-limit"):
        mn.connect(cluster, memory_limit="1GB")


def test_a_session_may_be_waited_for(cluster: object) -> None:
    async def connected() -> mn.session.Session:
        return await mn.connect(cluster)

    with asyncio.run(connected()) as session:
        assert session is active_session()
