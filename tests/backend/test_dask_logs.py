"""Dask's own lines of clusters of ours are shown when they are asked for; a user's own are shown always."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
from collections.abc import Iterator

import pytest
from waiting import wait_until

import matnb as mn
from matnb.session.current import active_session

pytestmark = pytest.mark.usefixtures("spawned")


@pytest.fixture(params=["Dask's own", "the user's", "the user's, added later"])
def shown(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    dasks = [logging.getLogger(name) for name in ("distributed", "distributed.client", "asyncio")]
    # Dask has one handler of several loggers, which hand on nothing; where the user's logging was set up
    # before Dask is imported, it leaves all to that.
    is_dasks = request.param == "Dask's own"
    for logger in dasks:
        monkeypatch.setattr(logger, "propagate", not is_dasks)
    loggers = dasks if is_dasks else [logging.getLogger()]
    if request.param == "the user's, added later":
        mn.start(workers=1, threads=1)
    for logger in loggers:
        logger.addHandler(handler)
    yield text
    mn.stop()
    for logger in loggers:
        logger.removeHandler(handler)
    assert not handler.filters


def session_of_one() -> mn.session.Session:
    return active_session() or mn.start(workers=1, threads=1)


def break_things(session: mn.session.Session) -> None:
    cluster = session.cluster._servers.cluster

    async def unwaited() -> None:
        raise RuntimeError("nobody waits for this")

    async def noise() -> None:
        logging.getLogger("distributed.worker").error("what Dask says of a loss")
        task = asyncio.ensure_future(unwaited())
        await asyncio.sleep(0.01)
        assert task.done()

    cluster.sync(noise)
    cluster.sync(cluster.workers[0].close)
    wait_until(lambda: session.cluster.attendance().num_gone == 1)
    wait_until(lambda: session.status().num_workers == 1)
    assert float(mn.ones(10).sum()) == 10


def test_nothing_is_shown_of_a_loss_and_all_of_a_users_own_dask(shown: io.StringIO) -> None:
    with session_of_one() as session:
        break_things(session)
        logging.getLogger("distributed.client").error("a client of the user's")
    logging.getLogger("distributed.client").error("and after it")
    assert shown.getvalue().splitlines() == ["a client of the user's", "and after it"]


def test_who_asks_is_shown_all_from_a_level_on(shown: io.StringIO) -> None:
    asked = logging.getLogger("matnb.dask")
    asked.setLevel(logging.ERROR)
    try:
        with session_of_one() as session:
            break_things(session)
    finally:
        asked.setLevel(logging.NOTSET)
    assert "what Dask says of a loss" in shown.getvalue()


@pytest.mark.cluster
def test_a_killed_worker_process_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with mn.start(workers=2, threads=1, processes=True) as session:
        x = mn.ones(1000, blocks=4).persist()
        os.kill(session.cluster._servers.cluster.workers[0].pid, signal.SIGKILL)
        wait_until(lambda: session.cluster.attendance().num_gone == 1)
        assert float(x.sum()) == 1000
        wait_until(lambda: session.status().num_workers == 2, 90)
    mn.stop()
    out, error = capfd.readouterr()
    assert (out, error) == ("", "")
