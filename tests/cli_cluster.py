"""A cluster by Dask's own commands, each server a process, each in a network namespace if wanted."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from waiting import wait_until


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class CliCluster:
    """A scheduler and workers, which are ended with it.

    Parameters
    ----------
    folder
        Where the workers and the logs are.
    host, port
        Where the scheduler listens.
    """

    def __init__(self, folder: Path, host: str = "127.0.0.1", port: int | None = None) -> None:
        self.folder, self.host, self.port = folder, host, free_port() if port is None else port
        self.address = f"tcp://{host}:{self.port}"
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def start_scheduler(self, before: Sequence[str] = (), python: Sequence[str] = ()) -> None:
        """Start the scheduler behind a command such as ``ip netns exec NAME``, or by another one."""
        options = ["--host", self.host, "--port", str(self.port), "--no-dashboard", "--no-show"]
        self.scheduler = self._run("scheduler", [*before, *(python or _dask("scheduler")), *options])
        wait_until(lambda: b"Scheduler at" in self.log("scheduler"))

    def start_worker(
        self,
        name: str,
        host: str | None = "127.0.0.1",
        port: int = 0,
        before: Sequence[str] = (),
        python: Sequence[str] = (),
        more: Sequence[str] = ("--no-nanny", "--no-dashboard"),
    ) -> None:
        """Start a worker of one thread without a nanny, by another command than Dask's if one is given.

        Without a host it listens where Dask has it listen; ``more`` options are instead of those without.
        """
        options = ["--name", name, *(() if host is None else ("--host", host)), "--nthreads", "1", *more]
        options += [
            "--worker-port",
            str(port),
            "--local-directory",
            str(self.folder),
            "--death-timeout",
            "60",
        ]
        command = [*before, *(python or _dask("worker")), self.address, *options, "--memory-limit", "1GB"]
        self.workers[name] = self._run(name, command)

    def end(self, server: subprocess.Popen[bytes] | None, number: int = signal.SIGKILL) -> None:
        """End a server by a signal, and wait until it is gone."""
        if server is not None:
            server.send_signal(number)
            server.wait(30)

    def log(self, name: str) -> bytes:
        """Return what a server has written."""
        return (self.folder / f"{name}.log").read_bytes()

    def __enter__(self) -> CliCluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in (*self.workers.values(), self.scheduler):
            if one is not None and one.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    one.send_signal(signal.SIGCONT)
                    one.kill()
                one.wait(30)

    def _run(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        (self.folder / f"{name}.log").write_bytes(b"")
        with (self.folder / f"{name}.log").open("ab") as log:
            settings = {"OMP_NUM_THREADS": "1", "DASK_TEMPORARY_DIRECTORY": str(self.folder)}
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **settings})


def _dask(command: str) -> list[str]:
    return [sys.executable, "-m", f"distributed.cli.dask_{command}"]
