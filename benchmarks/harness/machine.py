"""The machine and the versions that a figure belongs to, and whether the machine is idle."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

import psutil

PACKAGES = (
    "matnb", "numpy", "scipy", "numba", "dask", "distributed", "python-graphblas", "suitesparse-graphblas",
    "scikit-network", "igraph",
)  # fmt: skip
BUSY = 0.5  # cores that others may keep busy


def machine() -> dict[str, str]:
    """Return what is told of this machine: processor, cores, memory, kind of system, Python."""
    return {
        "processor": processor_model(),
        "cores": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": platform.system(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def processor_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Return the processor's name, as the system tells it."""
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def versions() -> dict[str, str]:
    """Return the versions of the packages that figures depend on."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def print_load() -> float:
    """Print and return the load average, with a warning when other work is under way.

    The average still counts the benchmark that ended a moment ago, so the warning asks how many cores are
    busy now, while this process sleeps.
    """
    load = os.getloadavg()[0]
    cores = psutil.cpu_count() or 1
    busy = psutil.cpu_percent(interval=1.0) / 100 * cores
    print(f"load average {load:.2f}, {busy:.2f} of {cores} cores busy now")
    if busy > BUSY:
        print("WARNING: the machine is not idle, so figures will be too high and spread")
    return load
