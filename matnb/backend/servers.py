"""The scheduler and the workers that matnb starts itself: no port more than needed, no file that stays."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from typing import Any

import dask
from dask.system import CPU_COUNT
from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.batched import BatchedSend
from distributed.core import Status
from distributed.system import MEMORY_LIMIT
from distributed.utils import silence_logging_cmgr

from matnb.backend.stopping import undisturbed
from matnb.config import Config, variables_kept

_LOOPBACK = "127.0.0.1"
# A worker's threads each run a kernel, so a library's own threads on top would only get in their way.
_ONE_LIBRARY_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_PARENT = "__DASK_PARENT_PID"  # set by Dask, which names its processes by it
# What the driver does about a lost worker it says itself; Dask's warnings name every key.
_LOG_LEVEL = logging.ERROR
# Waited for twice: for the task to end, and for its thread.
_KERNEL_SECONDS = 3.0
_START_SECONDS = 10.0  # of worker processes, which are waited for before they are ended


class PromptStreams(dict[str, BatchedSend]):
    """Message streams that send at once, where Dask collects messages for 2 to 10 ms.

    Dask's intervals spare a busy scheduler; here a chain of tasks would wait for them at every task.
    """

    def __setitem__(self, address: str, stream: BatchedSend) -> None:
        stream.interval = 0.0
        super().__setitem__(address, stream)


class LocalScheduler(Scheduler):  # type: ignore[misc]  # mypy does not look into distributed
    """A scheduler that answers at once and opens no HTTP server, as Dask does on all interfaces."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.stream_comms, self.client_comms = PromptStreams(), PromptStreams()

    def start_http_server(self, *arguments: object, **options: object) -> None:
        """Open nothing."""


class LocalWorker(Worker):  # type: ignore[misc]  # mypy does not look into distributed
    """A worker that answers at once, opens no HTTP server, and gives up a kernel soon when it closes."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.batched_stream.interval = 0.0

    def start_http_server(self, *arguments: object, **options: object) -> None:
        """Open nothing."""

    async def close(self, timeout: float = 30, **options: Any) -> str | None:
        """Close, leaving a kernel that runs on to end in its thread."""
        closed: str | None = await super().close(timeout=min(timeout, _KERNEL_SECONDS), **options)
        return closed


class ProcessWorker(LocalWorker):
    """A worker in a process of its own, which an interrupt of this one leaves alone.

    A terminal and Jupyter send an interrupt to the whole group of processes, so to the workers' too.
    """

    def __init__(self, *arguments: object, **options: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        super().__init__(*arguments, **options)


class LocalNanny(Nanny):  # type: ignore[misc]  # mypy does not look into distributed
    """A nanny whose worker has one BLAS thread, and which leaves this process's environment as it was."""

    pre_spawn_env: dict[str, str]
    env: dict[str, str]

    def __init__(self, scheduler_address: str, **options: object) -> None:
        super().__init__(scheduler_address, worker_class=ProcessWorker, **options)
        # Libraries read these when they are loaded, before Dask's own `env` is set in the new process.
        self.pre_spawn_env = {**self.pre_spawn_env, **_ONE_LIBRARY_THREAD}
        self.env = {**self.env, **_ONE_LIBRARY_THREAD}

    async def instantiate(self) -> Status:
        """Start the worker process, the first time or again."""
        with variables_kept([*self.pre_spawn_env, _PARENT]), _interrupts_blocked():
            return await super().instantiate()


class LocalCluster(SpecCluster):  # type: ignore[misc]  # mypy does not look into distributed
    """A scheduler and workers, of which nothing is left when an interrupt comes while they start."""

    def __init__(self, **options: object) -> None:
        try:
            super().__init__(**options)
        except KeyboardInterrupt:
            with undisturbed(), contextlib.suppress(Exception):
                # Else the loop prints that nobody asked why those that were starting did not start.
                self.loop.asyncio_loop.set_exception_handler(lambda *_: None)
                self.sync(self._close_created, callback_timeout=_START_SECONDS)
                self.close(timeout=_START_SECONDS)
            raise

    async def _close_created(self) -> None:
        # Dask closes those alone that have started, and waits until others have, which takes seconds.
        for nanny in self._created:
            starting = getattr(getattr(nanny, "process", None), "process", None)
            if starting is not None:
                await starting.kill()
        await asyncio.gather(*(one.close() for one in self._created), return_exceptions=True)


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    # A process begins with those signals blocked that its thread has, before it can ignore any. What
    # counts multiprocessing's resources would unblock them where it is begun.
    ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Servers:
    """The servers of one :class:`~matnb.config.Config` and the folder they work in."""

    def __init__(self, config: Config) -> None:
        with contextlib.ExitStack() as undo:
            # SpecCluster could silence them itself, but would end that before its event loop ends.
            undo.enter_context(silence_logging_cmgr(_LOG_LEVEL))
            self._folder = Path(tempfile.mkdtemp(prefix="matnb-"))
            undo.callback(self._remove_folder)
            with dask.config.set(_settings(self._folder)):
                self.cluster = LocalCluster(
                    scheduler={"cls": LocalScheduler, "options": _where(config)},
                    workers=dict.fromkeys(range(config.workers), _worker(config)),
                )
            self._undo = undo.pop_all()

    def close(self, timeout_seconds: float) -> None:
        """Close the servers and remove what they left."""
        with self._undo:
            self.cluster.close(timeout=timeout_seconds)

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        # Each server puts its folder first on sys.path, but takes it off only if it is first when it closes.
        inside = f"{self._folder}/"
        sys.path[:] = [entry for entry in sys.path if not str(entry).startswith(inside)]


def num_threads(config: Config) -> int:
    """Return the threads of each worker: as set, or an equal share of the cores."""
    return config.threads if config.threads is not None else max(1, CPU_COUNT // config.workers)


def _where(config: Config) -> dict[str, object]:
    if config.processes:
        return {"protocol": "tcp://", "host": _LOOPBACK}
    return {"protocol": "inproc://"}


def _worker(config: Config) -> dict[str, object]:
    memory_bytes = config.memory_limit_bytes
    options = {
        **_where(config),
        "nthreads": num_threads(config),
        "memory_limit": MEMORY_LIMIT // config.workers if memory_bytes is None else memory_bytes,
        "silence_logs": _LOG_LEVEL,
    }
    if config.processes:
        # A nanny reads its settings again when it restarts a worker, with ours long gone from dask.config.
        options["config"] = copy.deepcopy(dask.config.config)
    return {"cls": LocalNanny if config.processes else LocalWorker, "options": options}


def _settings(folder: Path) -> dict[str, object]:
    return {
        "temporary-directory": str(folder),
        "distributed.worker.memory.target": False,
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False,
        "distributed.worker.profile.enabled": False,  # shown only by the dashboard that we do not open
        "distributed.scheduler.http.routes": [],
        "distributed.worker.http.routes": [],
    }
