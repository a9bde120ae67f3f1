"""Sockets in a folder of the user's own carry what ports do, and let nobody else in."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from distributed.comm import Comm, connect, listen
from distributed.comm.addressing import get_address_host
from distributed.protocol import to_serialize
from other_user import NOBODY, as_nobody, needs_root

from matnb.backend.cluster.dask_cluster import DaskCluster, start
from matnb.backend.cluster.private_sockets import SCHEME, can_hold_sockets
from matnb.config import Config

pytestmark = pytest.mark.usefixtures("spawned")
IN_PROCESSES = Config(workers=2, threads=1, processes=True)
OPEN = Config(workers=1, threads=1, processes=True, security=False)


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("s")
    assert can_hold_sockets(made)
    return made


async def echo(comm: Comm) -> None:
    await comm.write(await comm.read())
    await comm.close()


def echoed(folder: Path, *messages: Any) -> list[Any]:
    async def run() -> list[Any]:
        async with listen(f"{SCHEME}://{folder}:0", echo) as listener:
            assert listener.listen_address == listener.contact_address != f"{SCHEME}://{folder}:0"
            (name,) = os.listdir(folder)
            assert listener.contact_address == f"{SCHEME}://{folder}:{name}"
            comms = await asyncio.gather(*(connect(listener.contact_address) for _ in messages))
            assert all(comm.same_host for comm in comms)
            for comm, message in zip(comms, messages, strict=True):
                await comm.write(message)
            found = [await comm.read() for comm in comms]
            for comm in comms:
                await comm.close()
        assert os.listdir(folder) == []
        return found

    return asyncio.run(run())


def test_messages_come_as_they_were_sent_whatever_their_size(folder: Path) -> None:
    arrays = [np.arange(size, dtype=float) for size in (0, 1, 17, 10_000, 3_000_000)]
    found = echoed(folder, *({"op": "echo", "x": to_serialize(one)} for one in arrays))
    for one, message in zip(arrays, found, strict=True):
        np.testing.assert_array_equal(message["x"], one)


def test_who_is_not_there_is_not_waited_for_beyond_the_limit(folder: Path) -> None:
    with pytest.raises(OSError, match="Timed out trying to connect"):
        asyncio.run(connect(f"{SCHEME}://{folder}:5", timeout=0.1))


def test_all_are_on_this_machine(folder: Path) -> None:
    assert get_address_host(f"{SCHEME}://{folder}:5") == get_address_host(f"{SCHEME}://{folder}:6")


@pytest.mark.parametrize(
    ("name", "holds"), [("s", True), ("a:b", False), ("s" * 90, True), ("é" * 90, False)]
)
def test_a_path_must_be_short_and_without_a_colon(name: str, holds: bool) -> None:
    assert can_hold_sockets(Path("/") / name) is holds


def sockets(cluster: DaskCluster) -> list[Path]:
    """Return the sockets of the scheduler and of all that connect to it, having looked that each is there."""
    addresses = [cluster.client.scheduler.address, *(one.address for one in cluster.workers)]
    addresses += cluster.client.run(lambda dask_worker: dask_worker.nanny).values()
    assert {one.partition("://")[0] for one in addresses} == {SCHEME}
    paths = [Path(*one.partition("://")[2].rsplit(":", 1)) for one in addresses]
    assert all(stat.S_ISSOCK(path.lstat().st_mode) for path in paths)
    return paths


def tcp_ports() -> list[Any]:
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return [found for one in family for found in one.net_connections("inet")]


@pytest.mark.cluster
def test_worker_processes_open_no_port_and_leave_nothing(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(tcp_ports())
    with start(IN_PROCESSES) as cluster:
        assert cluster.client.submit(abs, -1).result() == 1
        assert set(tcp_ports()) <= before
        (folder,) = {path.parent for path in sockets(cluster)}
        assert (folder.stat().st_mode & 0o777, folder.stat().st_uid) == (0o700, os.geteuid())
    assert not folder.exists()
    # Where temporary files have a name that no socket can have.
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("s" * 100)))
    with start(IN_PROCESSES) as cluster:
        (short,) = {path.parent for path in sockets(cluster)}
        assert (short.stat().st_mode & 0o777, can_hold_sockets(short)) == (0o700, True)
    assert not short.exists()


LOOK = """
print(json.dumps({
    "open": [outcome(lambda: asyncio.run(opened(one))) for one in given["addresses"]],
    "raw": [outcome(lambda: socket.socket(socket.AF_UNIX).connect(one)) for one in given["sockets"]],
    "folder": [outcome(lambda: os.listdir(one)) for one in given["folders"]],
    "environ": [outcome(lambda: open(f"/proc/{pid}/environ").read()) for pid in given["pids"]],
    "memory": [outcome(lambda: open(f"/proc/{pid}/mem", "rb")) for pid in given["pids"]],
    "open files": [outcome(lambda: os.listdir(f"/proc/{pid}/fd")) for pid in given["pids"]],
    "command": [open(f"/proc/{pid}/cmdline").read() for pid in given["pids"]],
}))
"""


@needs_root
@pytest.mark.slow
@pytest.mark.cluster
def test_another_user_neither_connects_nor_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_PASSWORD", "open sesame")
    with start(IN_PROCESSES) as cluster:
        paths = sockets(cluster)
        given = {
            "addresses": [f"{SCHEME}://{path.parent}:{path.name}" for path in paths],
            "sockets": [*map(str, paths)],
            "folders": [str(paths[0].parent)],
            "pids": [one.pid for one in [psutil.Process(), *_children()]],
        }
        seen = json.loads(as_nobody(LOOK, json.dumps(given)))
        assert cluster.client.submit(abs, -1).result() == 1  # it goes on
    commands = seen.pop("command")
    assert len(commands) >= 3
    assert not any("sesame" in one or "matnb-" in one for one in commands[1:])
    assert set(seen.pop("open")) == {"OSError"}  # as where nobody listens
    assert {name: set(found) for name, found in seen.items()} == {name: {"PermissionError"} for name in seen}


def _children() -> list[psutil.Process]:
    # Not the server that other tests fork their workers from.
    every = psutil.Process().children(recursive=True)
    return [one for one in every if not any("forkserver" in part for part in one.cmdline())]


@needs_root
@pytest.mark.slow
@pytest.mark.cluster
def test_without_security_another_user_runs_code(monkeypatch: pytest.MonkeyPatch) -> None:
    # What docs/security.md says of security=False; and the other tests see what there would be to see.
    with start(OPEN) as cluster:
        given = json.dumps({"address": cluster.client.scheduler.address})
        run = "print(*Client(given['address'], timeout=5).run(os.geteuid).values())"
        assert as_nobody(run, given).split() == [str(os.geteuid())]


@needs_root
@pytest.mark.slow
def test_another_user_is_refused_even_where_the_folder_is_open() -> None:
    # Who moves a folder away, in a place where all may, and puts another there, does not become its owner.
    body = """
    async def served():
        async with listen(given["theirs"], lambda comm: None) as listener:
            os.chmod(listener._path, 0o777)
            print(listener.contact_address, flush=True)
            await asyncio.sleep(3)

    print(outcome(lambda: asyncio.run(opened(given["ours"]))))
    asyncio.run(served())
    """
    asyncio.run(_meet(body))


async def _meet(body: str) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # the tests' own folder is closed
        os.chmod(name, 0o777)
        met: list[str] = []

        async def heard(comm: Comm) -> None:
            met.append(await comm.read())

        async with listen(f"{SCHEME}://{name}:0", heard) as listener:
            os.chmod(listener._path, 0o777)
            given = json.dumps({"ours": listener.contact_address, "theirs": f"{SCHEME}://{name}:7"})
            program = asyncio.create_task(asyncio.to_thread(as_nobody, body, given))
            while not os.path.exists(f"{name}/7") and not program.done():
                await asyncio.sleep(0.05)
            assert os.stat(f"{name}/7").st_uid == NOBODY
            with pytest.raises(OSError, match="process of another user"):
                await connect(f"{SCHEME}://{name}:7", timeout=1)
            told = (await program).split()
        assert (told[0], met) == ("FatalCommClosedError", [])
