"""``mn.doctor()``: whether everything is as it should be, here and on the cluster, and what to change."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from ipaddress import ip_address

from matnb.backend.cluster.greetings import APART_TODO
from matnb.backend.cluster.handshake import disagreements
from matnb.backend.cluster.private_sockets import SCHEME
from matnb.config import Config
from matnb.errors import MatnbError
from matnb.health.node_info import ProcessInfo, paths, places
from matnb.pictures.findings import Finding, findings_html, findings_text
from matnb.pictures.quantities import bytes_text, plural_text
from matnb.session.current import active_session, next_session_text
from matnb.session.settings import config_with

_LEAST_FREE_BYTES = 10**9
_FULL = 0.8  # of a worker's memory
_MOST_NAMED = 3
_NO_PORTS = ("inproc://", f"{SCHEME}://")
_NARROW = (
    "start scheduler and workers with --host 127.0.0.1 where all are on one machine, else with TLS, and "
    "connect by tls:// with security="
)


@dataclass(frozen=True)
class Circumstances:
    """What was looked at.

    Attributes
    ----------
    places
        This process, the scheduler and the workers.
    config
        The session's settings, or those that one would start with.
    description
        Of the cluster; empty without a session.
    owned
        Whether matnb started it.
    num_gone
        Workers that were lost or left in the last ten minutes.
    folder_free_bytes
        Of the disk with the folder of results, if there is one.
    has_widgets
        Whether ipywidgets is installed.
    problem
        Why the cluster said nothing.
    num_silent
        Workers that are there and did not answer.
    refused
        What is wrong with each worker that has come since, and is not used.
    apart
        Which workers do not reach each other, in words.
    """

    places: tuple[ProcessInfo, ...]
    config: Config
    description: str = ""
    owned: bool = True
    num_gone: int = 0
    folder_free_bytes: int | None = None
    has_widgets: bool = True
    problem: str = ""
    num_silent: int = 0
    refused: tuple[str, ...] = ()
    apart: str = ""

    @property
    def workers(self) -> tuple[ProcessInfo, ...]:
        """The workers that answered, and that can be used."""
        return tuple(one for one in self.places if one.name.startswith("worker ") and one.is_known)


class Diagnosis:
    """What :func:`matnb.doctor` found; shows itself as a table.

    Attributes
    ----------
    findings
        Each with a topic, what is so, a verdict ("ok", "advice" or "wrong") and what to do.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)

    @property
    def is_well(self) -> bool:
        """Whether nothing is wrong; there may be advice."""
        return all(one.verdict != "wrong" for one in self.findings)

    def bundle(self, measured: bool = True) -> dict[str, str]:
        """Return how it is shown in a notebook; what differs each time only ``measured``."""
        return {
            "text/plain": f"{findings_text(self.findings, measured)}\n{self._sum}",
            "text/html": findings_html(self.findings, measured, self._sum),
        }

    @property
    def _sum(self) -> str:
        numbers = {word: sum(one.verdict == word for one in self.findings) for word in ("wrong", "advice")}
        wrong, advice = numbers["wrong"], numbers["advice"]
        words = [f"{plural_text(wrong, 'thing')} wrong"] if wrong else []
        words += [f"{plural_text(advice, 'piece')} of advice"] if advice else []
        return ", ".join(words) or "all is well"

    def __str__(self) -> str:
        return self.bundle()["text/plain"]

    def __repr__(self) -> str:
        return self.bundle()["text/plain"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.bundle()


def doctor() -> Diagnosis:
    """Check the installation, here and on the cluster, and say what to change.

    It checks the versions on client, scheduler and workers, threads and BLAS threads, memory and its limits,
    disk, ports and TLS. It does not start a session.

    Returns
    -------
    Diagnosis
        Displays as a table; ``findings`` has its rows.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.doctor().is_well
    True
    """
    session = active_session()
    config = config_with({}) if session is None else session.config
    folder = config.memo_dir if config.remembers else None
    free = None
    if folder is not None and os.path.isdir(folder):
        free = shutil.disk_usage(folder).free
    has_widgets = find_spec("ipywidgets") is not None
    if session is None:
        return diagnosis(Circumstances(places(None), config, folder_free_bytes=free, has_widgets=has_widgets))
    cluster = session.cluster
    problem, apart = "", ""
    try:
        cluster.refresh()
        found, apart = places(cluster), paths(cluster)
    except MatnbError as error:
        found, problem = places(None), str(error)
    attendance = cluster.recent_attendance()
    num_alive, num_gone = attendance.num_now, attendance.num_gone
    seen = Circumstances(
        found, config, cluster.description, cluster.owned, num_gone, free, has_widgets, problem,
        refused=attendance.refused, apart=apart,
    )  # fmt: skip
    num_answered = sum(one.name.startswith("worker ") for one in found)
    num_silent = 0 if problem else num_alive - num_answered
    return diagnosis(replace(seen, num_silent=num_silent))


def diagnosis(seen: Circumstances) -> Diagnosis:
    """Return what there is to say about circumstances."""
    return Diagnosis(
        [
            *_cluster(seen),
            *_versions(seen),
            *_threads(seen),
            *_blas(seen),
            *_memory(seen),
            *_disk(seen),
            *_ports(seen),
            *_notebook(seen),
        ]
    )


def _cluster(seen: Circumstances) -> Iterator[Finding]:
    if not seen.description:
        yield Finding("cluster", next_session_text(), "ok")
        return
    if seen.problem:
        todo = "mn.stop(), then mn.start()"
        if not seen.owned:
            todo = "start its scheduler and workers again, or mn.connect(...) to another cluster"
        yield Finding("cluster", seen.problem, "wrong", todo)
        return
    words = f"{seen.description}; {plural_text(len(seen.workers), 'worker')} answered"
    if not seen.workers and not seen.num_silent:
        todo = "wait until workers come, or start some; mn.stop() and start again where matnb started them"
        yield Finding("cluster", words, "wrong", todo)
    else:
        yield Finding("cluster", words, "ok")
    if seen.num_silent:
        todo = "look into their logs; mn.stop() and start or connect again when they hang"
        yield Finding(
            "cluster", f"{plural_text(seen.num_silent, 'worker')} did not answer in time", "wrong", todo
        )
    if seen.num_gone:
        todo = "look into their logs: a worker that takes more than its memory is ended"
        words = f"{plural_text(seen.num_gone, 'worker')} gone in the last ten minutes"
        yield Finding("cluster", words, "advice", todo)
    for why in seen.refused:
        yield Finding("cluster", f"a worker that came is not used: {why}", "wrong", "start it again")
    if seen.apart:
        yield Finding("cluster", seen.apart, "wrong", APART_TODO)


def _versions(seen: Circumstances) -> Iterator[Finding]:
    here = seen.places[0].versions
    differences, wanted = disagreements(dict(here), {one.name: dict(one.versions) for one in seen.places[1:]})
    if differences:
        todo = f"install {', '.join(wanted)} there, or their versions here"
        yield from (
            Finding("versions", one, "wrong", todo if one is differences[-1] else "") for one in differences
        )
        return
    words = ", ".join(f"{name} {number}" for name, number in here.items() if number)
    where = ", the same here, on the scheduler and on the workers" if len(seen.places) > 1 else ""
    yield Finding("versions", f"{words}{where}", "ok")


def _threads(seen: Circumstances) -> Iterator[Finding]:
    if not seen.workers:
        yield Finding("threads", f"{plural_text(seen.places[0].num_cores, 'core')} here", "ok")
    for host, ones in _by_host(seen.workers).items():
        threads, cores = sum(one.num_threads for one in ones), max(one.num_cores for one in ones)
        where = "" if seen.owned else f" on {host}"
        words = f"{plural_text(threads, 'kernel')} at a time on {plural_text(cores, 'core')}{where}"
        if threads > cores:
            todo = (
                f"start with as many threads as cores: kernels in each other's way take longer; here {cores}"
            )
            yield Finding("threads", words, "advice", todo)
        elif seen.owned and threads < cores:
            each = max(1, cores // len(ones))
            yield Finding(
                "threads", words, "advice", f"mn.start(workers={len(ones)}, threads={each}) uses more"
            )
        else:
            yield Finding("threads", words, "ok")


def _blas(seen: Circumstances) -> Iterator[Finding]:
    if not seen.workers:
        return
    inside = [one for one in seen.workers if one.in_process]
    if inside:
        count = plural_text(inside[0].blas_threads, "thread")
        yield Finding("BLAS", f"{count}; one each where products run side by side", "ok")
    many = [
        one
        for one in seen.workers
        if not one.in_process and one.blas_threads > 1 and one.blas_threads * one.num_threads > one.num_cores
    ]
    if many:
        words = f"{plural_text(many[0].blas_threads, 'thread')} in each kernel on {_named(many)}"
        todo = "set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 where the workers are started"
        yield Finding("BLAS", words, "advice", todo)
    elif not inside:
        yield Finding("BLAS", "no more threads than cores", "ok")


def _memory(seen: Circumstances) -> Iterator[Finding]:
    if not seen.workers:
        size = seen.places[0].machine_bytes
        yield Finding("memory", f"{bytes_text(size)} here" if size else "nobody knows how much is here", "ok")
        return
    used = f"{bytes_text(max(one.memory_bytes for one in seen.workers))} used by the fullest"
    free = [one for one in seen.workers if not one.memory_limit_bytes]
    total = sum(one.memory_limit_bytes for one in seen.workers)
    if free:
        todo = "start workers with a memory limit: without one no plan is refused that cannot fit"
        yield Finding("memory", f"no limit on {_named(free)}", "advice", todo, used)
    else:
        yield Finding("memory", f"{bytes_text(total)} for all workers", "ok", measured=used)
    for host, ones in _by_host(seen.workers).items():
        limit, there = sum(one.memory_limit_bytes for one in ones), max(one.machine_bytes for one in ones)
        if there and limit > there * 1.01:
            where = "here" if seen.owned else f"on {host}"
            words = (
                f"the limits of workers {where} are {bytes_text(limit)}, the machine has {bytes_text(there)}"
            )
            yield Finding(
                "memory", words, "advice", "give each worker less: the system ends one that has none left"
            )
    # Of workers in this process each has all that the process uses, so what they may use together counts.
    limits = {one.name: total if one.in_process else one.memory_limit_bytes for one in seen.workers}
    full = [one for one in seen.workers if 0 < limits[one.name] * _FULL < one.memory_bytes]
    if full:
        todo = "mn.memo.clear(), del what is not needed, or give workers more memory"
        yield Finding("memory", f"nearly full on {_named(full)}", "advice", todo)
    if seen.config.remembers and total and seen.config.memo_bytes > total:
        asked = bytes_text(seen.config.memo_bytes)
        words = f"memo is {asked}, more than all workers have; it takes {bytes_text(total // 2)}"
        way = "start with" if seen.owned else "mn.connect(...) takes"
        yield Finding("memory", words, "advice", f'{way} memo="{bytes_text(total // 2)}" or less')
    spilling = [one for one in seen.workers if one.spills]
    if spilling:
        todo = (
            "set distributed.worker.memory.target, .spill and .pause to false where the workers are started: "
            "a block that is in use frees no memory when it is written"
        )
        yield Finding("memory", f"blocks may be written to disk on {_named(spilling)}", "advice", todo)


def _disk(seen: Circumstances) -> Iterator[Finding]:
    short = [one for one in seen.workers if one.folder and one.free_bytes < _LEAST_FREE_BYTES]
    if short:
        words = f"less than {bytes_text(_LEAST_FREE_BYTES)} free in the folder of {_named(short)}"
        yield Finding(
            "disk", words, "advice", f"free some in {short[0].folder}, or give workers another folder"
        )
    folder, free = seen.config.memo_dir, seen.folder_free_bytes
    if folder is None or not seen.config.remembers:
        yield Finding("disk", "no results are kept in files", "ok")
    elif free is None:
        yield Finding("disk", f"results are to be kept in {folder}, which is made at the start", "ok")
    elif free < seen.config.memo_bytes:
        words = f"{folder} may take {bytes_text(seen.config.memo_bytes)}, more than is free there"
        todo = "free some, start with a smaller memo=, or choose another memo_dir="
        yield Finding("disk", words, "advice", todo, f"{bytes_text(free)} free")
    else:
        yield Finding("disk", f"results are kept in {folder}", "ok", measured=f"{bytes_text(free)} free")


def _ports(seen: Circumstances) -> Iterator[Finding]:
    if seen.problem:
        yield Finding("ports", "not known, as the cluster does not answer", "ok")
        return
    others = [one for one in seen.places[1:] if one.is_known]
    silent = [one for one in others if one.listening is None and not one.address.startswith(_NO_PORTS)]
    if silent:
        words = f"the system does not tell on which addresses {_named(silent)} can be reached"
        yield Finding("ports", words, "advice", _NARROW)
    sockets = [(one.name, each) for one in others for each in one.listening or ()]
    if not sockets and not silent:
        yield Finding("ports", "none is open; nothing is sent anywhere", "ok")
        return
    wide = [(name, each) for name, each in sockets if not _is_loopback(each)]
    messages = [each for _, each in sockets if not each.startswith("http://")]
    if plain := [each for each in wide if not each[1].startswith(("tls://", "http://"))]:
        words = f"connections are neither secret nor checked (tcp, not TLS): {_sockets(plain)}"
        yield Finding("ports", words, "advice", f"{_NARROW}: who reaches these ports can run programs as you")
    elif messages and all(each.startswith("tls://") for each in messages):
        yield Finding("ports", "TLS: connections are secret, and both ends show certificates", "ok")
    elif not silent:
        words = "open on this machine alone (loopback): who has an account on it can run programs as you"
        yield Finding("ports", words, "ok")
    if pages := [each for each in wide if each[1].startswith("http://")]:
        words = f"Dask's web pages, which ask for no password, are open to others: {_sockets(pages)}"
        todo = "start with --dashboard-address 127.0.0.1:0, which holds of a worker's pages too"
        yield Finding("ports", words, "advice", todo)


def _is_loopback(address: str) -> bool:
    host = ip_address(address.split("://")[1].rpartition(":")[0].strip("[]"))
    return (getattr(host, "ipv4_mapped", None) or host).is_loopback


def _sockets(found: Sequence[tuple[str, str]]) -> str:
    named = [f"{name} at {address}" for name, address in found[:_MOST_NAMED]]
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{', '.join(named)}{more}"


def _notebook(seen: Circumstances) -> Iterator[Finding]:
    if seen.has_widgets:
        yield Finding("notebook", "ipywidgets is installed, so the monitor moves", "ok")
    else:
        todo = 'pip install "matnb[notebook]"'
        yield Finding(
            "notebook", "ipywidgets is missing: the monitor is a picture that stands still", "advice", todo
        )


def _by_host(workers: Sequence[ProcessInfo]) -> dict[str, list[ProcessInfo]]:
    found: dict[str, list[ProcessInfo]] = {}
    for one in workers:
        found.setdefault(one.host, []).append(one)
    return found


def _named(ones: Sequence[ProcessInfo]) -> str:
    names = [one.name for one in ones[:_MOST_NAMED]]
    more = f" and {len(ones) - _MOST_NAMED} more" if len(ones) > _MOST_NAMED else ""
    return f"{', '.join(names)}{more}"
