"""Where faults strike, in the words of the protocol, and what they do there."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from distributed import Worker

import matnb as mn
from matnb.backend.cluster import servers
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.blocks import WorkerBlocks
from matnb.backend.engines.engine_dask import DaskEngine
from matnb.backend.engines.engine_gang import GangEngine
from matnb.backend.engines.engine_threads import ThreadEngine
from matnb.backend.engines.futures import Answers
from matnb.backend.engines.recovery import KeptStates
from matnb.backend.gang import checkpoints
from matnb.backend.gang.mailbox import GangMailbox
from matnb.backend.gang.member import MemberRegisters
from matnb.backend.gang.member_life import GangPlugin, LoneMember
from matnb.backend.tasks import worker
from matnb.backend.tasks.executor import PreparedTask
from matnb.session.rebalance import Balancer
from matnb.session.repartitioner import Repartitioner

INJECTED = "a fault that was put here"
_OFTEN_SECONDS = 0.05  # between two checkpoints, which are seconds apart otherwise


@dataclass(frozen=True)
class Point:
    """A place in the protocol.

    Attributes
    ----------
    owner, attribute
        The function there.
    is_after
        Whether the fault strikes when the function has returned.
    """

    owner: Any
    attribute: str
    is_after: bool = False


# On the workers: what a task, a member of a gang, or a keeper of states does.
WORKER_POINTS = {
    "a task begins": Point(worker, "run"),
    "a kernel runs": Point(PreparedTask, "run"),
    "a task has ended": Point(worker, "run", True),
    "a worker reports": Point(worker, "report"),
    "a member begins": Point(GangPlugin, "_begin"),
    "members meet": Point(GangMailbox, "gather"),
    "members have met": Point(GangMailbox, "gather", True),
    "a task of a loop begins": Point(MemberRegisters, "_run"),
    "a member sends": Point(GangMailbox, "post"),
    "a state is kept": Point(checkpoints.RingKeeper, "save"),
    "a state was kept": Point(checkpoints.RingKeeper, "save", True),
    "a member leaves": Point(GangMailbox, "end"),
    "a member publishes": Point(GangPlugin, "_publish"),
    "a member has published": Point(GangPlugin, "_publish", True),
    "a member restores": Point(GangPlugin, "_restore"),
}
# In the driver's process.
DRIVER_POINTS = {
    "a worker process starts": Point(servers.LocalNanny, "instantiate"),
    "a worker process has started": Point(servers.LocalNanny, "instantiate", True),
    "data is shipped": Point(WorkerBlocks, "ship"),
    "data was shipped": Point(WorkerBlocks, "ship", True),
    "tasks are sent": Point(DaskEngine, "_submit"),
    "tasks were sent": Point(DaskEngine, "_submit", True),
    "tasks are done": Point(ThreadEngine, "_do"),  # by whomever: those that are small by who asks
    "tasks are handed over": Point(ThreadEngine, "_begin"),
    "tasks are waited for": Point(ThreadEngine, "_wait"),
    "tasks were done": Point(ThreadEngine, "_wait", True),
    "a loop is handed over": Point(LoneMember, "perform"),
    "workers are asked": Point(Answers, "ask"),
    "workers have answered": Point(Answers, "ask", True),
    "values are waited for": Point(Answers, "gather"),
    "values have come": Point(Answers, "gather", True),
    "a gang is sent": Point(GangEngine, "_submit", True),
    "a loop is to be repartitioned": Point(Repartitioner, "repartition"),
    "a loop was repartitioned": Point(Repartitioner, "repartition", True),
    "a loop begins": Point(Balancer, "prepare"),
    "a state is sought": Point(KeptStates, "recover"),
    "workers are looked for": Point(DaskCluster, "refresh", True),
    "the session stops": Point(mn.session.Session, "close"),
    "the cluster closes": Point(DaskCluster, "close"),
}
# What may happen there; to a worker, or to the driver.
PROCESS_FAULTS = ("kill", "suspend", "disconnect", "close the nanny", "terminate")
WORKER_FAULTS = (*PROCESS_FAULTS, "fill memory", "break the lines")
DRIVER_FAULTS = (*PROCESS_FAULTS, "interrupt", "cancel")
RAISING = "a kernel runs"  # the one point where a fault is an error of the task


@contextmanager
def striking(point: Point, number: int, strike: Callable[[], None]) -> Iterator[list[float]]:
    """Strike when a point is reached for the ``number``-th time; the list gets the moment when it was."""
    original, found = inspect.getattr_static(point.owner, point.attribute), []
    lock, calls = threading.Lock(), [0]

    def is_due() -> bool:
        with lock:
            calls[0] += 1
            return calls[0] == number

    def reached() -> None:
        if is_due():
            found.append(time.monotonic())
            strike()

    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def wrapped(*arguments: Any, **options: Any) -> Any:
            if not point.is_after:
                reached()
            value = await original(*arguments, **options)
            if point.is_after:
                reached()
            return value

    else:

        @functools.wraps(original)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            if not point.is_after:
                reached()
            value = original(*arguments, **options)
            if point.is_after:
                reached()
            return value

    setattr(point.owner, point.attribute, wrapped)
    try:
        yield found
    finally:
        setattr(point.owner, point.attribute, original)


# on a worker

_installed = ExitStack()


def install(
    name: str, number: int, fault: str, seconds: float, mark: str, dask_worker: Worker | None = None
) -> None:
    """Have a fault strike on this worker; called there through Dask, which gives the worker."""
    assert dask_worker is not None

    def strike() -> None:
        Path(mark).touch()
        strike_here(dask_worker, fault, seconds)

    _installed.enter_context(striking(WORKER_POINTS[name], number, strike))


def keep_states_often() -> None:
    """Have loops keep their states all the time."""
    checkpoints.DUE_SECONDS = _OFTEN_SECONDS


def uninstall() -> None:
    """Take away what :func:`install` put in."""
    _installed.close()


def strike_here(here: Worker, fault: str, seconds: float) -> None:
    """Do what a fault does to the worker that this code runs on."""
    match fault:
        case "raise":
            raise RuntimeError(INJECTED)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
        case "suspend":
            suspend(os.getpid(), seconds)
        case "fill memory":
            fill_memory(here.memory_manager.memory_limit)
        case "disconnect":
            here.loop.add_callback(disconnect, here)
        case "close":
            here.loop.add_callback(here.close)
        case "break the lines":
            here.loop.add_callback(_break_lines, here)
        case "close the nanny":
            here.loop.add_callback(_close_nanny, here)


async def _close_nanny(here: Worker) -> None:
    with contextlib.suppress(OSError):
        async with here.rpc(here.nanny) as nanny:
            await nanny.terminate()


def disconnect(here: Worker) -> None:
    """Break the connection of a worker to the scheduler."""
    if here.batched_stream.comm is not None:
        here.batched_stream.comm.abort()


def suspend(pid: int, seconds: float) -> None:
    """Stop a process for a while, from outside it."""
    waking = ["sh", "-c", f"kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}"]
    subprocess.Popen(waking, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)  # until it is stopped, if it is this process


def fill_memory(limit: int) -> None:
    """Take more memory than the limit for a while; the nanny ends who does."""
    held = [np.ones(limit // 80) for _ in range(12)]
    time.sleep(3.0)
    held.clear()


def _break_lines(here: Worker) -> None:
    for plugin in here.plugins.values():
        if isinstance(plugin, GangPlugin) and plugin._mailbox is not None:
            for line in plugin._mailbox._lines.values():
                line.abort()


# from the driver


def strike_worker(session: mn.session.Session, fault: str, rank: int, seconds: float) -> None:
    """Do what a fault does to a worker, from the driver's process."""
    cluster = session.cluster._servers.cluster
    one = list(cluster.workers.values())[rank % max(1, len(cluster.workers))] if cluster.workers else None
    strike_server(one, fault, seconds)


def strike_server(one: Any, fault: str, seconds: float) -> None:
    """Do what a fault does to a nanny's worker, or to a worker in this process."""
    if one is None:
        return
    if isinstance(one, Worker):
        one.loop.add_callback(*((one.close,) if fault == "close" else (disconnect, one)))
        return
    pid = one.pid if one.process is not None else None
    match fault:
        case "kill" | "disconnect" if pid is not None:
            os.kill(pid, signal.SIGKILL)
        case "terminate" if pid is not None:
            os.kill(pid, signal.SIGTERM)
        case "suspend" if pid is not None:
            suspend(pid, seconds)
        case "close the nanny":
            one.loop.add_callback(one.close)
