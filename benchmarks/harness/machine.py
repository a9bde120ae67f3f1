"""The machine and the versions that a figure belongs to, and whether the machine is idle."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import psutil

PACKAGES = (
    "matnb", "numpy", "scipy", "numba", "dask", "distributed", "python-graphblas", "suitesparse-graphblas",
    "scikit-network", "igraph",
)  # fmt: skip
BUSY = 0.5  # cores that others may keep busy, or the load average at which nothing is started


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


def commit() -> str:
    """Return the short name of matnb's commit, with a + if its files differ from it; or nothing."""
    found = find_spec("matnb")
    folder = Path(found.origin or ".").parent if found else Path()
    questions = ("rev-parse", "--short=10", "HEAD"), ("status", "--porcelain", "-uno", ".")
    try:
        head, changes = (
            subprocess.run(["git", *one], cwd=folder, check=True, capture_output=True, text=True).stdout
            for one in questions
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head.strip() + "+" * bool(changes.strip())


def load_average() -> float:
    """Return how many processes ran or waited to run, averaged over the last minute."""
    return os.getloadavg()[0]


def refuse_busy(read_load: Callable[[], float] = load_average) -> None:
    """Refuse to go on where others use the machine.

    Raises
    ------
    SystemExit
        When the load average is above 0.5, saying what can be done.
    """
    load = read_load()
    if load > BUSY:
        raise SystemExit(
            f"The load average is {load:.2f}: others use this machine, so that figures would be too high and "
            f"spread. Nothing was started. Wait until it is at most {BUSY:g} (it follows by a minute), or "
            "run `make bench BUSY=1`, which marks all that it finds as found on a busy machine."
        )


def busy_cores() -> float:
    """Return how many cores are busy while this process sleeps for a second.

    Unlike the load average it does not count the benchmark that ended a moment ago.
    """
    return psutil.cpu_percent(interval=1.0) / 100 * (psutil.cpu_count() or 1)


def print_load(
    read_load: Callable[[], float] = load_average, read_busy: Callable[[], float] = busy_cores
) -> tuple[float, bool]:
    """Print and return the load average, and whether others use the machine now, with a warning if so."""
    load, busy = read_load(), read_busy()
    print(f"load average {load:.2f}, {busy:.2f} of {psutil.cpu_count() or 1} cores busy now")
    if busy > BUSY:
        print("WARNING: the machine is not idle, so figures will be too high and spread; they are marked so")
    return load, busy > BUSY
