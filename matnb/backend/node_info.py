"""What each process of a cluster is like: versions, threads, BLAS, memory, disk and addresses."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from matnb.backend.cluster import DaskCluster
from matnb.backend.handshake import CHECKED
from matnb.errors import ClusterError

_ANSWER_SECONDS = 10.0
_WORKER_SECONDS = 5.0  # less: one that hangs does not hide the others
HERE, SCHEDULER = "here", "the scheduler"


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


def places(cluster: DaskCluster | None) -> tuple[ProcessInfo, ...]:
    """Return this process, and of a cluster the scheduler and every worker that answers.

    Raises
    ------
    ClusterError
        When the scheduler does not answer.
    """
    here = ProcessInfo(HERE, **_looker()())
    if cluster is None:
        return (here,)
    client, look = cluster.client, _looker()
    addresses = {cluster.workers[number].address: number for number in cluster.alive()}

    async def ask_worker(address: str) -> dict[str, Any]:
        answers = client.run(look, workers=[address], on_error="ignore")
        found: dict[str, Any] = await asyncio.wait_for(answers, _WORKER_SECONDS)
        return found

    async def ask() -> tuple[dict[str, Any], dict[str, Any]]:
        scheduler = await client.run_on_scheduler(look)
        answers = await asyncio.gather(*map(ask_worker, addresses), return_exceptions=True)
        found = [one for one in answers if not isinstance(one, BaseException)]
        return {address: one for answer in found for address, one in answer.items()}, scheduler

    try:
        workers, scheduler = client.sync(ask, callback_timeout=_ANSWER_SECONDS)
    except (OSError, concurrent.futures.CancelledError, AttributeError) as error:
        raise ClusterError(f"{cluster.description} does not answer: {error}") from error
    every = [ProcessInfo(SCHEDULER, **scheduler)]
    every += [
        ProcessInfo(f"worker {addresses[address]}", **workers[address])
        for address in addresses
        if address in workers
    ]
    inside = [replace(one, in_process=one.address.startswith("inproc://")) for one in every]
    return (replace(here, host=_host_of(inside)), *inside)


def _host_of(others: list[ProcessInfo]) -> str:
    # This machine by the name that those who share its process have.
    return next((one.host for one in others if one.in_process), "")


def _looker() -> Callable[..., dict[str, Any]]:
    names = CHECKED

    def look(dask_worker: Any = None, dask_scheduler: Any = None) -> dict[str, Any]:
        # Travels by value, being local: where it runs there may be no matnb, or another one.
        import importlib
        import importlib.metadata
        import importlib.util
        import os
        import platform
        import shutil
        import tempfile

        found: dict[str, Any] = {"versions": {}}
        for name in names:
            if name == "python":
                found["versions"][name] = platform.python_version()
            elif importlib.util.find_spec(name) is None:
                found["versions"][name] = None
            else:
                try:
                    found["versions"][name] = importlib.metadata.version(name)
                except importlib.metadata.PackageNotFoundError:
                    found["versions"][name] = "a source tree"
        server = dask_worker if dask_worker is not None else dask_scheduler
        found["num_cores"] = (
            len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        )
        found["folder"] = getattr(dask_worker, "local_directory", "") or tempfile.gettempdir()
        try:
            found["free_bytes"] = shutil.disk_usage(found["folder"]).free
        except OSError:
            found["folder"] = ""
        try:
            import threadpoolctl

            pools = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
            found["blas_threads"] = max((one["num_threads"] for one in pools), default=0)
        except ImportError:
            pass
        try:
            psutil = importlib.import_module("psutil")
            found["machine_bytes"] = psutil.virtual_memory().total
            found["memory_bytes"] = psutil.Process().memory_info().rss
        except ImportError:
            pass
        if server is not None:
            found["address"] = server.address
            found["host"] = f"{platform.node()} {getattr(server, 'ip', '') or ''}".strip()
        if dask_worker is not None:
            state = getattr(dask_worker, "state", dask_worker)
            found["num_threads"] = getattr(state, "nthreads", 0)
            manager = getattr(dask_worker, "memory_manager", None)
            found["memory_limit_bytes"] = int(getattr(manager, "memory_limit", 0) or 0)
            wishes = (
                getattr(manager, f"memory_{word}_fraction", None) for word in ("target", "spill", "pause")
            )
            found["spills"] = manager is not None and any(wishes)
        return found

    return look
