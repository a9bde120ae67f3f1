"""Compares the versions of this process, the scheduler and the workers before anything is sent."""

from __future__ import annotations

import asyncio
import pkgutil
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from distributed import Client
from distributed.versions import get_versions

from matnb.backend.cluster.asking import answers_of
from matnb.errors import VersionMismatchError
from matnb.version import VERSION

Versions = dict[str, str | None]

# What must agree, and in how many of its numbers; None: in all. Dask changes what it sends in any release,
# and matnb's plans and blocks travel as pickles; those of the others stay readable within a minor version.
_PLACES: dict[str, int | None] = {
    "python": 2,
    "dask": None,
    "distributed": None,
    "numpy": 2,
    "scipy": 2,
    "numba": 2,
}
CHECKED = (*_PLACES, "matnb")
# Python's own version comes with any answer, unless a package of this name is asked for, which there is not.
_PACKAGES = [name for name in CHECKED if name != "python"]
SCHEDULER, _WORKER = "the scheduler", "worker "
_NUM_NAMED = 2
_NEWCOMER_SECONDS = 1.0


def check_versions(client: Client, timeout_seconds: float) -> frozenset[str]:
    """Raise unless this process, the scheduler and all workers run versions that work together.

    The same in all numbers: matnb, dask, distributed. The same in the first two: Python, NumPy, SciPy, Numba.
    Other packages are left alone.

    Returns
    -------
    frozenset of str
        The addresses of the workers that were compared.

    Raises
    ------
    VersionMismatchError
        Naming what differs, where, and what to install.
    TimeoutError
        When the cluster does not answer within ``timeout_seconds``.
    """
    local = local_versions()
    remote = client.sync(versions_elsewhere, client, callback_timeout=timeout_seconds)
    _compare(local, remote, _PLACES)
    _compare(local, remote, {"matnb": None})
    return frozenset(address_of(place) for place in remote if place != SCHEDULER)


async def check_scheduler(scheduler: Any, timeout_seconds: float) -> bool:
    """Raise if a scheduler runs versions that do not work with those here; tell whether it answers.

    Parameters
    ----------
    scheduler
        Dask's own way to it, by which the versions of any release can be asked for.

    Raises
    ------
    VersionMismatchError
        Naming what differs, and what to install.
    """
    try:
        answer = await asyncio.wait_for(scheduler.versions(packages=_PACKAGES), timeout_seconds)
        remote = {SCHEDULER: _of_interest(answer)}
    except (OSError, TypeError, KeyError, AttributeError, ValueError):
        return False  # it is no Dask, or nobody is there
    _compare(local_versions(), remote, _PLACES)
    return True


def sort_out(
    client: Client, addresses: Sequence[str], timeout_seconds: float
) -> tuple[frozenset[str], dict[str, str]]:
    """Compare workers that have joined, and return which can be used, and what is wrong with others.

    Each is asked alone and has a moment for its answer; those that are silent are in neither.

    Raises
    ------
    TimeoutError
        When the scheduler does not answer within ``timeout_seconds``.
    """
    local = local_versions()
    groups = [[address] for address in addresses]
    remote = client.sync(
        versions_elsewhere, client, groups, _NEWCOMER_SECONDS, callback_timeout=timeout_seconds
    )
    usable, refused = set(), {}
    for address in addresses:
        if (versions := remote.get(f"{_WORKER}{address}")) is None:
            continue
        differences, wanted = disagreements(local, {f"{_WORKER}{address}": versions})
        if differences:
            refused[address] = f"{'; '.join(differences)} (install {', '.join(wanted)} there)"
        else:
            usable.add(address)
    return frozenset(usable), refused


def local_versions() -> Versions:
    """Return the versions in this process; None for what is not installed."""
    versions = _of_interest(get_versions(_PACKAGES))
    return {**versions, "matnb": versions["matnb"] or VERSION}


def _of_interest(answer: Mapping[str, Mapping[str, str | None]]) -> Versions:
    versions = {name: answer["packages"].get(name) for name in CHECKED}
    if versions["python"] is not None:  # as in 3.11.7.final.0
        versions["python"] = ".".join(versions["python"].split(".")[:3])
    return versions


def address_of(place: str) -> str:
    """Return the address of a worker that :func:`versions_elsewhere` names."""
    return place.removeprefix(_WORKER)


async def versions_elsewhere(
    client: Client, groups: Iterable[Sequence[str] | None] = (None,), seconds: float | None = None
) -> dict[str, Versions]:
    """Return the versions by place: of the scheduler, and of each worker that answers.

    Nothing is sent that another version could not read: Dask's own question is plain text. Where matnb is not
    among the installed packages, as in a source tree, its file is read, only where all the others agree.

    Parameters
    ----------
    groups
        Addresses of workers that are asked together; None for all.
    seconds
        How long each group may take; a worker of it that is silent then is not among the places.
    """
    answers = await client.scheduler.versions(packages=_PACKAGES)
    found: dict[str, Versions] = {SCHEDULER: _of_interest(answers)}

    async def asked(addresses: Sequence[str] | None) -> dict[str, Any]:
        message = {"op": "versions", "packages": _PACKAGES}
        asking = client.scheduler.broadcast(msg=message, workers=addresses, on_error="ignore")
        try:
            return dict(await asyncio.wait_for(asking, seconds))
        except (OSError, KeyError):  # nobody there, or not in time
            return {}

    for answered in await asyncio.gather(*map(asked, groups)):
        for address, answer in sorted(answered.items()):
            found[f"{_WORKER}{address}"] = _of_interest(answer)
    local = local_versions()
    unlisted = [
        place
        for place, versions in found.items()
        if versions["matnb"] is None and not _differences(local, {place: versions}, _PLACES)[0]
    ]
    files = await asyncio.gather(*(_version_file(client, place, seconds) for place in unlisted))
    for place, file in zip(unlisted, files, strict=True):
        if not file:  # silent since its first answer
            del found[place]
        elif isinstance(file[0], bytes):
            written = re.search(rb'^VERSION = "(.*)"', file[0], re.MULTILINE)
            found[place]["matnb"] = written[1].decode() if written else None
    return found


async def _version_file(client: Client, place: str, seconds: float | None) -> list[Any]:
    # A matnb that is imported from a source tree is not among the installed packages. What is sent is the
    # name of a function of Python's own.
    wanted = (pkgutil.get_data, "matnb", "version.py")
    if place != SCHEDULER:
        return await answers_of(client, address_of(place), seconds, *wanted)
    try:
        return [await asyncio.wait_for(client.run_on_scheduler(*wanted), seconds)]
    except (OSError, ImportError, ValueError):  # not there, or not whole
        return [None]


def disagreements(local: Versions, remote: dict[str, Versions]) -> tuple[list[str], list[str]]:
    """Return what differs so that it does not work together, and what would have to be installed there.

    Parameters
    ----------
    local, remote
        Versions by package: here, and at each other place.
    """
    return _differences(local, remote, {**_PLACES, "matnb": None})


def _compare(local: Versions, remote: dict[str, Versions], places: dict[str, int | None]) -> None:
    differences, wanted = _differences(local, remote, places)
    if differences:
        raise VersionMismatchError(
            f"this cluster runs versions that are incompatible with those here: {'; '.join(differences)}. "
            f"Install {', '.join(wanted)} there, or the cluster's versions here"
        )


def _differences(
    local: Versions, remote: dict[str, Versions], places: dict[str, int | None]
) -> tuple[list[str], list[str]]:
    differences, wanted = [], []
    for name, num_numbers in places.items():
        elsewhere: dict[str | None, list[str]] = defaultdict(list)
        for place, versions in remote.items():
            if _shortened(versions[name], num_numbers) != _shortened(local[name], num_numbers):
                elsewhere[versions[name]].append(place)
        for version, where in elsewhere.items():
            differences.append(
                f"{name} is {version or 'not installed'} on {_listed(where)}, {local[name]} here"
            )
        if elsewhere:
            wanted.append(f"{name} {_shortened(local[name], num_numbers)}")
    return differences, wanted


def _shortened(version: str | None, num_numbers: int | None) -> str | None:
    return version if version is None else ".".join(version.split(".")[:num_numbers])


def _listed(where: Iterable[str]) -> str:
    first, rest = list(where)[:_NUM_NAMED], list(where)[_NUM_NAMED:]
    return ", ".join(first) + (f" and {len(rest)} more" if rest else "")
