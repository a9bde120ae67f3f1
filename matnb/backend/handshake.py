"""Compares the versions of this process, the scheduler and the workers before anything is sent to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from distributed import Client
from distributed.versions import get_versions

from matnb.errors import VersionMismatchError

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
_NUM_NAMED = 2


def check_versions(client: Client, timeout_seconds: float) -> None:
    """Raise unless this process, the scheduler and all workers run versions that work together.

    The same in all numbers: matnb, dask, distributed. The same in the first two: Python, NumPy, SciPy, Numba.
    Other packages are left alone.

    Raises
    ------
    VersionMismatchError
        Naming what differs, where, and what to install.
    TimeoutError
        When the cluster does not answer within ``timeout_seconds``.
    """
    local, remote = local_versions(), _remote_versions(client, timeout_seconds)
    # The others first: versions travel as plain text, but asking for matnb may send a pickled function.
    _compare(local, remote, _PLACES)
    _look_for_matnb(client, remote, timeout_seconds)
    _compare(local, remote, {"matnb": None})


def local_versions() -> Versions:
    """Return the versions in this process; None for what is not installed."""
    return {**get_versions(_PLACES)["packages"], "matnb": _matnb_finder()()}


def _remote_versions(client: Client, timeout_seconds: float) -> dict[str, Versions]:
    async def ask() -> dict[str, Versions]:
        answers = await client.get_versions(packages=[*_PLACES, "matnb"])
        found = {"the scheduler": answers["scheduler"]["packages"]}
        workers = sorted((address, answer) for address, answer in answers["workers"].items())
        return found | {f"worker {address}": answer["packages"] for address, answer in workers}

    versions: dict[str, Versions] = client.sync(ask, callback_timeout=timeout_seconds)
    return versions


def _look_for_matnb(client: Client, remote: dict[str, Versions], timeout_seconds: float) -> None:
    # A matnb that is imported from a source tree is not among the installed packages.
    missing = [place for place, versions in remote.items() if versions["matnb"] is None]
    workers = [place.removeprefix("worker ") for place in missing if place != "the scheduler"]
    finder = _matnb_finder()

    async def ask() -> Versions:
        found = await client.run(finder, workers=workers) if workers else {}
        found = {f"worker {address}": version for address, version in found.items()}
        if "the scheduler" in missing:
            found["the scheduler"] = await client.run_on_scheduler(finder)
        return found

    for place, version in client.sync(ask, callback_timeout=timeout_seconds).items():
        remote[place]["matnb"] = version


def _matnb_finder() -> Callable[[], str | None]:
    def find() -> (
        str | None
    ):  # travels by value, being local: where it runs there may be no matnb to import it from
        import importlib.metadata
        import importlib.util

        if importlib.util.find_spec("matnb") is None:
            return None
        try:
            return importlib.metadata.version("matnb")
        except importlib.metadata.PackageNotFoundError:
            return "a source tree"

    return find


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
