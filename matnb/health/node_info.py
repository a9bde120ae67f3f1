"""What each process of a cluster is like: versions, threads, BLAS, memory, disk, addresses and open ports."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import threadpoolctl

from matnb.backend.cluster.asking import answers_of
from matnb.backend.cluster.dask_cluster import DaskCluster, workers_apart
from matnb.backend.cluster.greetings import apart_text
from matnb.backend.cluster.handshake import (
    SCHEDULER,
    Versions,
    address_of,
    disagreements,
    local_versions,
    versions_elsewhere,
)
from matnb.errors import ClusterError

_ANSWER_SECONDS = 15.0
_WORKER_SECONDS = 4.0  # twice it is less: one that hangs does not hide the others
HERE = "here"


@dataclass(frozen=True)
class ProcessInfo:
    """One process, as it is now.

    Attributes
    ----------
    name
        "here", "the scheduler", or "worker" with its number.
    versions
        Of what must agree; None for what is not installed.
    host, address
        The machine, and where messages go; none for this process.
    in_process
        Whether it is a part of this process.
    num_cores
        That the process may use.
    num_threads
        Kernels it runs at a time; 0 where it runs none.
    blas_threads
        The most that a BLAS of it takes; 0 where nobody could say.
    memory_limit_bytes, memory_bytes, machine_bytes
        What it may use, 0 for no limit; what it uses; what its machine has.
    folder, free_bytes
        Where it writes files, and what is free there.
    spills
        Whether blocks may go to disk, or the worker stop, when memory gets short.
    listening
        The sockets on which the process, and its nanny's, really take connections, as
        ``"tcp://0.0.0.0:8786"``, with "http" where it shows web pages; None where the system does not tell.
    is_known
        Whether more is known than its versions; of one whose versions do not work here nothing is asked.
    """

    name: str
    versions: Mapping[str, str | None]
    host: str = ""
    address: str = ""
    in_process: bool = False
    num_cores: int = 0
    num_threads: int = 0
    blas_threads: int = 0
    memory_limit_bytes: int = 0
    memory_bytes: int = 0
    machine_bytes: int = 0
    folder: str = ""
    free_bytes: int = 0
    spills: bool = False
    listening: tuple[str, ...] | None = None
    is_known: bool = True


def places(cluster: DaskCluster | None) -> tuple[ProcessInfo, ...]:
    """Return this process, and of a cluster the scheduler and every worker that answers.

    Versions are compared first. Of a process whose versions do not work with those here nothing more is
    asked, and nothing is sent to it: it could not read that, or would be ended by it.

    Raises
    ------
    ClusterError
        When the scheduler does not answer.
    """
    local = local_versions()
    here = ProcessInfo(HERE, local, **look())
    if cluster is None:
        return (here,)
    client = cluster.client
    addresses = {cluster.workers[number].address: number for number in cluster.alive()}
    me = (platform.node(), os.getpid())

    async def ask(place: str, versions: Versions) -> ProcessInfo | None:
        name = place if place == SCHEDULER else f"worker {addresses[address_of(place)]}"
        if disagreements(local, {place: versions})[0]:
            where = cluster.scheduler_address if place == SCHEDULER else address_of(place)
            return ProcessInfo(name, versions, address=where, is_known=False)
        if place == SCHEDULER:
            return ProcessInfo(name, versions, **await client.run_on_scheduler(look, me))
        answers = await answers_of(client, address_of(place), _WORKER_SECONDS, look, me)
        return next((ProcessInfo(name, versions, **one) for one in answers if isinstance(one, dict)), None)

    async def ask_all() -> list[ProcessInfo | None]:
        groups = [[address] for address in addresses]
        versions = await versions_elsewhere(client, groups, _WORKER_SECONDS)
        return await asyncio.gather(*(ask(*each) for each in versions.items()))

    try:
        answered = client.sync(ask_all, callback_timeout=_ANSWER_SECONDS)
    except (OSError, concurrent.futures.CancelledError, AttributeError) as error:
        raise ClusterError(f"{cluster.description} does not answer: {error}") from error
    inside = [
        replace(one, in_process=one.address.startswith("inproc://")) for one in answered if one is not None
    ]
    return (replace(here, host=_host_of(inside)), *inside)


def paths(cluster: DaskCluster) -> str:
    """Return which workers do not reach each other, in words; nothing where all do.

    Raises
    ------
    ClusterError
        When the scheduler does not answer.
    """
    return apart_text(found) if (found := workers_apart(cluster)) else ""


def _host_of(others: list[ProcessInfo]) -> str:
    # This machine by the name that those who share its process have.
    return next((one.host for one in others if one.in_process), "")


def look(
    asker: tuple[str, int] = ("", 0), dask_worker: Any = None, dask_scheduler: Any = None
) -> dict[str, Any]:
    """Return what the process that runs this is like, as the fields of a :class:`ProcessInfo`.

    It travels by its name: code sent by value ends a process that runs another version of Python.

    Parameters
    ----------
    asker
        The machine and the number of the process that asks, which has sockets of its own.
    """
    found: dict[str, Any] = {}
    server = dask_worker if dask_worker is not None else dask_scheduler
    found["num_cores"] = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    found["folder"] = getattr(dask_worker, "local_directory", "") or tempfile.gettempdir()
    try:
        found["free_bytes"] = shutil.disk_usage(found["folder"]).free
    except OSError:
        found["folder"] = ""
    pools = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
    found["blas_threads"] = max((one["num_threads"] for one in pools), default=0)
    psutil = importlib.import_module("psutil")  # Dask's; it has no types
    found["machine_bytes"] = psutil.virtual_memory().total
    found["memory_bytes"] = psutil.Process().memory_info().rss
    if server is not None:
        found["address"] = server.address
        found["listening"] = _listening(server, asker)
        found["host"] = f"{platform.node()} {getattr(server, 'ip', '') or ''}".strip()
    if dask_worker is not None:
        state = getattr(dask_worker, "state", dask_worker)
        found["num_threads"] = getattr(state, "nthreads", 0)
        manager = getattr(dask_worker, "memory_manager", None)
        found["memory_limit_bytes"] = int(getattr(manager, "memory_limit", 0) or 0)
        wishes = (getattr(manager, f"memory_{word}_fraction", None) for word in ("target", "spill", "pause"))
        found["spills"] = manager is not None and any(wishes)
    return found


def _listening(server: Any, asker: tuple[str, int]) -> tuple[str, ...] | None:
    # An address that a server tells others says nothing of what it listens on: by default that is 0.0.0.0.
    psutil = importlib.import_module("psutil")
    nanny = getattr(server, "nanny", None)
    ports = {_port(one): one.split("://")[0] for one in (server.address, nanny) if one}
    if web := getattr(getattr(server, "http_server", None), "port", None):
        ports[web] = "http"
    processes = [os.getpid(), *([os.getppid()] if nanny else [])]
    found = []
    try:
        for number in processes:
            for one in psutil.Process(number).net_connections("inet"):
                # A notebook's process, or a test's, listens for others too.
                is_servers = one.status == psutil.CONN_LISTEN and one.laddr
                if is_servers and (one.laddr.port in ports or (platform.node(), number) != asker):
                    host = f"[{one.laddr.ip}]" if ":" in one.laddr.ip else one.laddr.ip
                    found.append(f"{ports.get(one.laddr.port, 'tcp')}://{host}:{one.laddr.port}")
    except (psutil.Error, OSError):
        return None
    return tuple(dict.fromkeys(found))


def _port(address: str) -> int | None:
    # None where it is no network's, as of a socket in a folder.
    text = address.rpartition(":")[2]
    return int(text) if text.isdigit() else None
