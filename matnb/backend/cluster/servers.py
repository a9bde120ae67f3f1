"""The scheduler and workers that matnb starts: no more ports than needed, no files left behind."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from multiprocessing import process, spawn
from multiprocessing.resource_tracker import ensure_running
from pathlib import Path
from types import MappingProxyType
from typing import Any

import dask
import psutil  # type: ignore[import-untyped]  # it has no types
from dask.system import CPU_COUNT
from distributed import Nanny, Scheduler, SpecCluster, Worker
from distributed.batched import BatchedSend
from distributed.core import Status
from distributed.system import MEMORY_LIMIT

from matnb.backend.cluster.cancellation import undisturbed
from matnb.backend.cluster.connection import CLOSING_ERRORS
from matnb.backend.cluster.dask_logs import level_asked, loud_again, quiet_here, quiet_process
from matnb.backend.cluster.freed_memory import (
    MAPPED_BYTES,
    TOP_BYTES,
    FreedMemory,
    is_left_to_nanny,
    set_thresholds,
)
from matnb.backend.cluster.private_sockets import SCHEME, can_hold_sockets
from matnb.config import Config, variables_kept
from matnb.io.temporary import temporary_folder

_LOOPBACK = "127.0.0.1"
_SHORT_FOLDER = "/tmp"  # on every system with such sockets
# A worker's threads each run a kernel, so a library's own threads on top would only get in their way.
_ONE_LIBRARY_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_WORKER_NAME = "Dask Worker process (from Nanny)"  # Dask's, too
_PARENT = "__DASK_PARENT_PID"  # set by Dask, which names its processes by it
# Waited for twice: for the task to end, and for its thread.
_KERNEL_SECONDS = 3.0
_START_SECONDS = 10.0  # of worker processes, which are waited for before they are ended
# A process that was started and does not report within this time is stopped or stuck, so it is ended.
_REPORT_SECONDS = 60.0
_START_TRIES = 3
_LOOK_SECONDS = 0.1
_MOST_PAUSE_SECONDS = 30.0  # between two attempts to start a worker that does not start
_ENDED = (Status.closed, Status.failed)


class PromptStreams(dict[str, BatchedSend]):
    """Message streams that send at once, where Dask collects messages for 2 to 10 ms.

    Dask's intervals spare a busy scheduler; here a chain of tasks would wait for them at every task.
    """

    def __setitem__(self, address: str, stream: BatchedSend) -> None:
        stream.interval = 0.0
        super().__setitem__(address, stream)


class LocalScheduler(Scheduler):  # type: ignore[misc]  # it has no types
    """A scheduler that answers at once and opens no HTTP server, as Dask does on all interfaces."""

    def __init__(self, *arguments: object, **options: object) -> None:
        super().__init__(*arguments, **options)
        self.stream_comms, self.client_comms = PromptStreams(), PromptStreams()

    def start_http_server(self, *arguments: object, **options: object) -> None:
        """Open nothing."""


class LocalWorker(Worker):  # type: ignore[misc]  # it has no types
    """A worker that answers at once, opens no HTTP server, and gives up a kernel soon when it closes.

    Parameters
    ----------
    settings
        Dask's, for this worker; it may be started again when they are gone from ``dask.config``.
    """

    def __init__(
        self, *arguments: object, settings: Mapping[str, object] = MappingProxyType({}), **options: object
    ) -> None:
        with dask.config.set(settings):
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

    def __init__(self, *arguments: object, log_level: int, keeps_freed: bool, **options: Any) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        quiet_process(log_level)
        super().__init__(*arguments, **options)
        if keeps_freed and set_thresholds(MAPPED_BYTES, TOP_BYTES):
            FreedMemory(self).start()


class LocalNanny(Nanny):  # type: ignore[misc]  # it has no types
    """A nanny whose worker has one BLAS thread, and which leaves this process's environment as it was."""

    pre_spawn_env: dict[str, str]
    env: dict[str, str]

    def __init__(self, scheduler_address: str, settings: Mapping[str, object], **options: object) -> None:
        self._was_killed = False  # the last process, by a signal
        with dask.config.set(settings):
            # It reads them again when it restarts a worker, with ours long gone from dask.config.
            config = copy.deepcopy(dask.config.config)
            super().__init__(scheduler_address, worker_class=ProcessWorker, config=config, **options)
        self.worker_kwargs["keeps_freed"] = is_left_to_nanny(self.pre_spawn_env)
        # Libraries read these when they are loaded, before Dask's own `env` is set in the new process.
        self.pre_spawn_env = {**self.pre_spawn_env, **_ONE_LIBRARY_THREAD}
        self.env = {**self.env, **_ONE_LIBRARY_THREAD}

    async def instantiate(self) -> Status:
        """Start or restart the worker process; one that is killed while it starts is started again."""
        status = await self._instantiate()
        tries = 1
        while self.status == Status.init and self._was_killed and tries < _START_TRIES:
            status, tries = await self._instantiate(), tries + 1
        return status

    async def _instantiate(self) -> Status:
        self._was_killed = False
        watching = asyncio.create_task(self._end_if_silent())
        try:
            with variables_kept([*self.pre_spawn_env, _PARENT]), _interrupts_blocked(), _script_left_out:
                return await super().instantiate()
        finally:
            watching.cancel()

    async def _end_if_silent(self) -> None:
        # Dask waits for ever for a process that was stopped while it started.
        await asyncio.sleep(_REPORT_SECONDS)
        await self.end_process()

    @property
    def is_starting(self) -> bool:
        """Whether a worker process is there that has not reported yet."""
        return self.process is not None and self.process.status == Status.starting

    async def end_process(self) -> None:
        """End the worker process at once, if there is one."""
        process = None if self.process is None else self.process.process
        if process is not None:
            with contextlib.suppress(*CLOSING_ERRORS):
                await process.kill()

    def _on_worker_exit_sync(self, exitcode: int) -> None:
        self._was_killed = exitcode < 0
        super()._on_worker_exit_sync(exitcode)


class _ScriptLeftOut:
    """Workers begin without the script that started them, so it needs no main guard and may be no file.

    Multiprocessing has every new process run the script first. Workers have no use for that: what is defined
    in ``__main__`` is sent to them by value. Several nannies start workers at a time, others' processes too.
    """

    def __init__(self) -> None:
        self._lock, self._num_users = threading.Lock(), 0
        self._prepared = spawn.get_preparation_data

    def __enter__(self) -> None:
        with self._lock:
            if not self._num_users:
                self._prepared = spawn.get_preparation_data
                spawn.get_preparation_data = self._without_script
            self._num_users += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._num_users -= 1
            if not self._num_users:
                spawn.get_preparation_data = self._prepared

    def _without_script(self, name: str) -> dict[str, Any]:
        prepared = self._prepared(name)
        if name == _WORKER_NAME:
            prepared = {key: value for key, value in prepared.items() if not key.startswith("init_main_")}
        return prepared


_script_left_out = _ScriptLeftOut()


class LocalCluster(SpecCluster):  # type: ignore[misc]  # it has no types
    """A scheduler and workers, of which nothing is left when an interrupt comes while they start.

    A worker that is lost comes back, however long that takes: Dask's own cluster drops one that is not there
    after 15 seconds, and one that lost its connection for good.

    Attributes
    ----------
    trouble
        Why a worker could not be started again, the last time; empty where all are there.
    """

    def __init__(self, **options: object) -> None:
        self.trouble = ""
        self._restoring: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._thread: int | None = None  # that of the event loop
        try:
            super().__init__(**options)
        except KeyboardInterrupt:
            with undisturbed(), contextlib.suppress(Exception):
                # Else the loop prints that nobody asked why those that were starting did not start.
                self.loop.asyncio_loop.set_exception_handler(lambda *_: None)
                self.sync(self._close_created, callback_timeout=_START_SECONDS)
                self.close(timeout=_START_SECONDS)
            raise

    async def _start(self) -> None:
        if self._thread is None:
            self._thread = quiet_here(asyncio.get_running_loop())
        await super()._start()

    async def _close_created(self) -> None:
        # Dask closes those alone that have started, and waits until others have, which takes seconds.
        for nanny in self._created:
            starting = getattr(getattr(nanny, "process", None), "process", None)
            if starting is not None:
                await starting.kill()
        await asyncio.gather(*(one.close() for one in self._created), return_exceptions=True)

    def _update_worker_status(self, op: str, message: Any) -> None:
        super(SpecCluster, self)._update_worker_status(op, message)
        if op == "remove" and (self._restoring is None or self._restoring.done()):
            self._restoring = asyncio.ensure_future(self._restore())

    async def _restore(self) -> None:
        # A nanny restarts its worker itself, unless the worker told it that it leaves, or it failed to.
        pause, waits_until = _LOOK_SECONDS, 0.0
        since: dict[Any, float] = {}
        while self.scheduler.status == Status.running and (missing := self._missing()):
            now = time.monotonic()
            is_starting = self._lock.locked()  # some, for the first time or again
            waited_for = () if is_starting else self.workers.keys() & missing
            since = {name: since.get(name, now) for name in waited_for}
            if self._starting is not None and self._starting.done():
                error = self._starting.exception()
                self._starting, since = None, {}
                if error is not None:
                    self.trouble, pause = _reason(error), min(2 * pause, _MOST_PAUSE_SECONDS)
                    waits_until = now + pause
            if self._starting is None and not is_starting:
                for name in [name for name, first in since.items() if now - first > _REPORT_SECONDS]:
                    await _end(self.workers[name])
                    del since[name]
                there = ((name, self.workers.get(name)) for name in missing)  # None: it could not be made
                ended = [name for name, one in there if one is None or one.status in _ENDED]
                if ended and now >= waits_until:
                    for name in ended:
                        self.workers.pop(name, None)
                    self._starting = self._correct_state()
            await asyncio.sleep(_LOOK_SECONDS)
        self.trouble = ""

    def _missing(self) -> list[Any]:
        present = {one["name"] for one in self.scheduler_info["workers"].values()}
        return [name for name in self.worker_spec if name not in present]

    @property
    def is_restoring(self) -> bool:
        """Whether workers are missing that are being started again."""
        return self._restoring is not None and not self._restoring.done()

    async def _close(self) -> None:
        # Dask's own way has the workers hand their data to others first, and waits for those that do not
        # answer, as one that is stopped or that just starts.
        for task in (self._restoring, self._starting):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self.worker_spec.clear()
        await asyncio.gather(*(_closed(one) for one in self._created), return_exceptions=True)
        self.workers.clear()
        # Of one that has closed before Dask would ask for half a minute whether it closes.
        self.shutdown_scheduler = self.scheduler is not None and self.scheduler.status == Status.running
        await super()._close()

    async def abandon(self) -> None:
        """Close what can be closed, when closing in order did not come to its end."""
        await asyncio.gather(*(_end(one) for one in self._created), return_exceptions=True)
        if self.scheduler is not None:
            await asyncio.wait_for(self.scheduler.close(), _KERNEL_SECONDS)

    def stop_loop(self) -> None:
        """End the thread of the servers' event loop."""
        self.status = Status.closed
        self._loop_runner.stop()
        loud_again(self._thread)


def _reason(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


async def _closed(one: Worker | Nanny) -> None:
    # A process that has not reported yet is not asked to end, and Dask would wait until it has.
    if isinstance(one, LocalNanny) and one.is_starting:
        await one.end_process()
    try:
        await asyncio.wait_for(one.close(), _START_SECONDS)
    except CLOSING_ERRORS:
        await _end(one)


async def _end(one: Worker | Nanny) -> None:
    # The process first: a nanny that is to go on starts another, and one that closes waits for it.
    if isinstance(one, LocalNanny):
        await one.end_process()
    elif one.status not in _ENDED:
        with contextlib.suppress(*CLOSING_ERRORS):
            await asyncio.wait_for(one.close(), _START_SECONDS)


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
        self.num_workers, self.in_process = config.workers, not config.processes
        with contextlib.ExitStack() as undo:
            folder = undo.enter_context(_private_folder())
            where = _where(config, folder, undo)
            settings = _settings(folder)
            with dask.config.set(settings):
                self.cluster = LocalCluster(
                    scheduler={"cls": LocalScheduler, "options": where},
                    workers=dict.fromkeys(range(config.workers), _worker(config, where, settings)),
                )
            self._undo = undo.pop_all()

    def close(self, timeout_seconds: float) -> None:
        """Close the servers and remove what they left, whatever state they are in."""
        with self._undo:
            try:
                self.cluster.close(timeout=timeout_seconds)
            except CLOSING_ERRORS:
                with contextlib.suppress(*CLOSING_ERRORS):
                    self.cluster.sync(self.cluster.abandon, callback_timeout=_START_SECONDS)
            finally:
                self.cluster.stop_loop()

    def worker_at(self, address: str) -> Worker | None:
        """Return the worker in this process that has an address, or None."""
        return next((one for one in self.cluster.workers.values() if one.address == address), None)

    @property
    def trouble(self) -> str:
        """Why a lost worker could not be started again the last time; empty where none is missing."""
        return self.cluster.trouble

    @property
    def is_restoring(self) -> bool:
        """Whether lost workers are being started again."""
        return self.cluster.is_restoring


def runs_the_script_again() -> bool:
    """Tell whether this is a process that multiprocessing has just begun, and has run its script again."""
    return bool(getattr(process.current_process(), "_inheriting", False))


def num_threads(config: Config) -> int:
    """Return the threads of each worker: as set, or an equal share of the cores."""
    return config.threads if config.threads is not None else max(1, CPU_COUNT // config.workers)


@contextlib.contextmanager
def _private_folder(parent: str | None = None) -> Iterator[Path]:
    with temporary_folder(parent=parent) as folder:
        try:
            yield folder
        finally:
            # Each server puts its folder first on sys.path, but takes it off only if it is first when it
            # closes.
            inside = f"{folder}/"
            sys.path[:] = [entry for entry in sys.path if not str(entry).startswith(inside)]


def _where(config: Config, folder: Path, undo: contextlib.ExitStack) -> dict[str, object]:
    if not config.processes:
        return {"protocol": "inproc://"}
    if not config.security:
        return {"protocol": "tcp://", "host": _LOOPBACK}
    if not can_hold_sockets(folder):
        folder = undo.enter_context(_private_folder(_SHORT_FOLDER))
    return {"protocol": f"{SCHEME}://", "host": str(folder)}


def _free_bytes() -> int:
    # The memory of this machine, or of the control group, that nothing else uses now.
    return min(int(MEMORY_LIMIT), int(psutil.virtual_memory().available))


def _worker(config: Config, where: dict[str, object], settings: Mapping[str, object]) -> dict[str, object]:
    memory_bytes = config.memory_limit_bytes
    options = {
        **where,
        "nthreads": num_threads(config),
        "memory_limit": _free_bytes() // config.workers if memory_bytes is None else memory_bytes,
        "settings": settings,
    }
    if not config.processes:
        return {"cls": LocalWorker, "options": options}
    return {"cls": LocalNanny, "options": {**options, "log_level": level_asked()}}


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
