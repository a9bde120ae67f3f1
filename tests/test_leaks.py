"""The leak guard sees what it must see, forgives what it must forgive, and is cheap."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import leaks
import pytest


def left(before: set[leaks.Belonging]) -> list[str]:
    return leaks.leaks_since(before, patience_seconds=0)


def test_a_thread_is_seen_until_it_ends():
    before, stop = leaks.belongings(), threading.Event()
    thread = threading.Thread(target=stop.wait, name="forgotten")
    thread.start()
    try:
        assert left(before) == ["thread 'forgotten'"]
    finally:
        stop.set()
        thread.join()
    assert left(before) == []


def test_a_thread_that_ends_within_the_patience_is_no_leak():
    before = leaks.belongings()
    thread = threading.Thread(target=time.sleep, args=(0.1,))
    thread.start()
    assert leaks.leaks_since(before, patience_seconds=5) == []


def test_a_pool_of_dask_may_grow_only_under_a_cluster_that_was_there_before():
    stop = threading.Event()
    names = ["IO loop", "0-Dask-Default-Threads-7-1"]
    loop, pool = (threading.Thread(target=stop.wait, name=name) for name in names)
    before = leaks.belongings()
    try:
        loop.start()
        with_cluster = leaks.belongings()
        pool.start()
        assert left(with_cluster) == []
        assert left(before) == ["thread '0-Dask-Default-Threads-7-1'", "thread 'IO loop'"]
    finally:
        stop.set()
        loop.join()
        pool.join()


@pytest.mark.parametrize("name", ["Dask-Offload_0", "asyncio_3"])
def test_a_singleton_of_the_process_is_forgiven(name):
    before, stop = leaks.belongings(), threading.Event()
    thread = threading.Thread(target=stop.wait, name=name)
    thread.start()
    try:
        assert left(before) == []
    finally:
        stop.set()
        thread.join()


def test_a_child_process_is_seen():
    before = leaks.belongings()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        found = left(before)
        child.communicate(b"\n")
    assert len(found) == 1
    assert found[0].startswith(f"child process {child.pid}: ")
    assert left(before) == []


def test_a_listening_socket_is_seen_and_a_connected_one_is_not():
    before = leaks.belongings()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        assert left(before) == [f"listening socket {server.getsockname()}"]
    assert left(before) == []


@pytest.mark.parametrize("name", ["matnb-x", "dask-y", f"{leaks.SCRATCH}/worker-z"])
def test_a_temporary_file_of_ours_is_seen(name):
    before = leaks.belongings()
    path = Path(tempfile.gettempdir(), name)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    try:
        assert left(before) == [f"temporary file {path}"]
    finally:
        path.unlink()
    assert left(before) == []


def test_temporary_files_of_other_programs_and_the_locks_of_distributed_are_forgiven():
    before = leaks.belongings()
    scratch = Path(tempfile.gettempdir(), leaks.SCRATCH)
    scratch.mkdir(exist_ok=True)
    paths = [scratch / "global.lock", Path(tempfile.gettempdir(), "fontlist")]
    for path in paths:
        path.touch()
    try:
        assert left(before) == []
    finally:
        for path in paths:
            path.unlink()


def test_a_look_is_cheap():
    seconds = []
    for _ in range(50):
        start = time.process_time()
        leaks.belongings()
        seconds.append(time.process_time() - start)
    print(f"median {sorted(seconds)[25] * 1e3:.3f} ms")
    assert min(seconds) < 0.001


@pytest.fixture(scope="module")
def made_for_the_module():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="kept by a wider fixture")
    thread.start()
    yield thread
    stop.set()
    thread.join()


def test_what_a_wider_fixture_makes_in_the_middle_of_a_test_is_not_blamed_on_it(request):
    assert request.getfixturevalue("made_for_the_module").is_alive()  # the guard itself would fail this test


def test_the_guard_fails_a_test_that_leaks(tmp_path):
    tests = Path(__file__).parent
    (tmp_path / "conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "test_leaky.py").write_text(
        "import tempfile, pathlib\n"
        "def test_leaks(): pathlib.Path(tempfile.gettempdir(), 'matnb-left').touch()\n"
        "def test_is_clean(): pass\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."]
    environment = {**os.environ, "PYTHONPATH": str(tests)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 passed, 1 error" in done.stdout
    assert "left behind by this test: temporary file" in done.stdout
