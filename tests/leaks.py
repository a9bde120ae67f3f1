"""What a test left behind: a cheap look at threads, child processes, listening sockets and files."""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
import threading
import time
from multiprocessing import forkserver
from pathlib import Path

import psutil

Belonging = tuple[str, threading.Thread | int | str]

# One of each lives as long as the process, whoever made it first; none grows with the number of sessions.
TOLERATED_THREADS = {
    r"Dask-Offload": "distributed's module-wide pool for (de)serializing, never shut down before exit",
    r"asyncio_\d+": "default executor of an event loop; IPython keeps one loop for the whole process",
    r"zarr_io": "Zarr's event loop, one for the whole process",
    r"IPythonHistorySavingThread": "IPython's shell is a singleton and its history writer ends at exit",
}
TOLERATED_THREAD_CLASSES = {
    "TMonitor": "tqdm (used by papermill) watches its bars with one thread until exit",
}
TOLERATED_CHILDREN = {
    "multiprocessing.resource_tracker": "multiprocessing keeps one tracker until exit",
    "multiprocessing.forkserver": "multiprocessing keeps one fork server until exit",
}
# A cluster that a wider fixture keeps open adds threads to its pools when tasks come, so no test is to blame.
CLUSTER_LOOP = "IO loop"
CLUSTER_POOLS = re.compile(r"(\d+-)?Dask-(Default|Actor)-Threads|TCP-Executor|Profile")
# distributed never removes this folder nor the locks in it; clusters of other people, as in tests, share it.
SCRATCH = "dask-scratch-space"
SCRATCH_LOCKS = {"global.lock", "purge.lock"}


def belongings() -> set[Belonging]:
    """Return everything this process now holds that a test might leave behind."""
    return _threads() | _children() | _sockets() | _files()


def leaks_since(before: set[Belonging], patience_seconds: float = 2.0) -> list[str]:
    """Describe what is there now, was not there before, and does not end within the patience."""
    deadline = time.monotonic() + patience_seconds
    while True:
        new = belongings() - before
        left = sorted(text for text in (_describe(belonging, before) for belonging in new) if text)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _threads() -> set[Belonging]:
    return {("thread", thread) for thread in threading.enumerate()}


def _children() -> set[Belonging]:
    # Those of the fork server are this process's too: its worker processes.
    server = getattr(forkserver._forkserver, "_forkserver_pid", None)
    return _children_of(os.getpid()) | (_children_of(server) if server else set())


def _children_of(process: int) -> set[Belonging]:
    try:  # Linux lists them by thread, which saves a walk over all processes
        threads = Path(f"/proc/{process}/task")
        lists = [(threads / name / "children").read_text() for name in os.listdir(threads)]
        return {("process", int(pid)) for pids in lists for pid in pids.split()}
    except OSError:  # another system, or a thread that ended while it was looked at
        try:
            return {("process", child.pid) for child in psutil.Process(process).children()}
        except psutil.NoSuchProcess:
            return set()


def _sockets() -> set[Belonging]:
    found: set[Belonging] = set()
    for name in os.listdir("/dev/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:  # closed meanwhile, as the descriptor of the listing itself
            continue
        if stat.S_ISSOCK(status.st_mode):
            found.add(("socket", status.st_ino))
    return found


def _files() -> set[Belonging]:
    found: set[Belonging] = set()
    top = tempfile.gettempdir()
    for name in os.listdir(top):
        if name == SCRATCH:
            inside = set(os.listdir(Path(top, SCRATCH))) - SCRATCH_LOCKS
            found |= {("file", str(Path(top, SCRATCH, entry))) for entry in inside}
        elif name.startswith(("matnb", "dask-")):
            found.add(("file", str(Path(top, name))))
    return found


def _describe(belonging: Belonging, before: set[Belonging]) -> str | None:
    match belonging:
        case "thread", threading.Thread() as thread:
            return _describe_thread(thread, before)
        case "process", int(pid):
            return _describe_child(pid)
        case "socket", int(inode):
            return _describe_socket(inode)
    return f"temporary file {belonging[1]}"


def _describe_thread(thread: threading.Thread, before: set[Belonging]) -> str | None:
    if not thread.is_alive() or type(thread).__name__ in TOLERATED_THREAD_CLASSES:
        return None
    if any(re.match(pattern, thread.name) for pattern in TOLERATED_THREADS):
        return None
    shared = any(
        isinstance(old, threading.Thread) and old.name == CLUSTER_LOOP and old.is_alive() for _, old in before
    )
    if shared and CLUSTER_POOLS.match(thread.name):
        return None
    return f"thread {thread.name!r}"


def _describe_child(pid: int) -> str | None:
    try:
        child = psutil.Process(pid)
        command = " ".join(child.cmdline())
        if child.status() == psutil.STATUS_ZOMBIE or any(name in command for name in TOLERATED_CHILDREN):
            return None
    except psutil.NoSuchProcess:
        return None
    return f"child process {pid}: {command[:200]}"


def _describe_socket(inode: int) -> str | None:
    for name in os.listdir("/dev/fd"):
        try:
            if os.fstat(int(name)).st_ino != inode:
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    return f"listening socket {copy.getsockname()}"
        except OSError:
            continue
    return None
