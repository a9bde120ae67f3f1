"""The cluster that matnb runs on: one that it starts, or an existing one."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import math
import os
import re
import threading
import time
import weakref
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Client, Scheduler, SchedulerPlugin, Security, WorkerPlugin
from distributed.core import Status
from distributed.protocol.pickle import dumps

from matnb.backend.cluster.cancellation import CancelScope, not_deferred
from matnb.backend.cluster.connection import (
    BROKEN,
    CLOSING_ERRORS,
    HasScheduler,
    MatnbClient,
    connect_client,
    scheduler_address,
)
from matnb.backend.cluster.freed_memory import FreedMemoryPlugin
from matnb.backend.cluster.gang_lock import release_turns
from matnb.backend.cluster.greetings import APART_TODO, GREETINGS_SECONDS, apart_text, greetings, pairs_apart
from matnb.backend.cluster.handshake import check_scheduler, check_versions, sort_out
from matnb.backend.cluster.servers import Servers, num_threads, runs_the_script_again
from matnb.config import Config
from matnb.errors import CellCancelled, ClusterError, VersionMismatchError
from matnb.location import Location

_TOPIC = "all"  # where the scheduler logs workers that come and go
# What a process of the user's own does that runs the script from its top, which would start the next ones.
_UNGUARDED = (
    "this process was started by a script, and runs it from the top to find what it defines: there "
    'start matnb, and processes of your own, only under `if __name__ == "__main__":`'
)
_ANSWER_SECONDS = 10.0
_IMPORT_SECONDS = 60.0  # of the first message from which a scheduler learns of matnb, and imports it
_CLOSE_SECONDS = 30.0
_LEAVE_SECONDS = 5.0  # Dask's client waits for a scheduler that is gone as long as it may
_LEAST_SECONDS = 0.5
_ADAPT_SECONDS = 1.0  # workers that are there, or about to be, come before one is asked for
_HEAR_SECONDS = 0.002
_STARTING_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_LATE_SECONDS = tuple(2.0**number for number in range(10))  # between looks for blocks on their way
_RECENT_SECONDS = 600.0  # in which a loss is news
# A newcomer that is silent is asked again after this, then after twice as long each time, up to the other.
_ASK_AGAIN_SECONDS, _MOST_ASK_AGAIN_SECONDS = 1.0, 60.0
_CONNECT_AGAIN = "or connect again by mn.connect(...)"
# A paused worker keeps its blocks and goes on when it has memory again.
_USABLE = ("running", "paused")


@dataclass(frozen=True)
class WorkerInfo:
    """One Dask worker; its position in :attr:`DaskCluster.workers` is its owner number.

    Attributes
    ----------
    address
        Where its messages go.
    host
        The machine it runs on.
    threads
        Kernels it runs at a time.
    memory_limit_bytes
        Memory it may use; 0 where it has no limit.
    own_bytes
        What of it the process itself had when it came, its modules first of all: half of it at most.
    """

    address: str
    host: str
    threads: int
    memory_limit_bytes: int
    own_bytes: int = 0


@dataclass(frozen=True)
class Attendance:
    """Which workers are there, of those that were asked for or have been there.

    Attributes
    ----------
    num_now
        Those that can be used.
    num_gone
        Those that have been there and are lost, or left, in the time that was asked for.
    num_asked
        How many there are to be; None on a cluster that is not ours, which starts none again.
    trouble
        Why one of ours could not be started again the last time, or nothing.
    refused
        What is wrong with each that has come and cannot be used, or does not answer.
    seconds_away
        For how long the scheduler has not been there.
    seconds
        When this was so, on the monotonic clock.
    """

    num_now: int
    num_gone: int = 0
    num_asked: int | None = None
    trouble: str = ""
    refused: tuple[str, ...] = ()
    seconds_away: float = 0.0
    seconds: float = 0.0


class DaskCluster:
    """What matnb runs on: a scheduler and numbered workers, reached through a client of our own.

    Parameters
    ----------
    client
        Connected, and used by nobody else.
    description
        For a user, in a few words.
    servers
        The scheduler and workers if they are ours.
    compared
        Addresses of workers whose versions work with those here.
    patience_seconds
        How long to wait for the scheduler where the connection has broken, and for workers where none is.

    Attributes
    ----------
    client
        The Dask client. It is not Dask's default client.
    owned
        True when the scheduler and the workers end with this object.
    in_process
        True when the workers are threads of this process.
    description
        For a user: ``"1 worker x 2 threads, in this process"`` or ``"the Dask cluster at tcp://..."``.
    stopping
        Who runs something on it, and is asked to end that.
    num_breaks
        How often the connection to the scheduler has broken. What was on the workers before is gone then:
        all of them have new numbers.
    """

    def __init__(
        self,
        client: MatnbClient,
        description: str,
        servers: Servers | None = None,
        compared: frozenset[str] = frozenset(),
        patience_seconds: float = _ANSWER_SECONDS,
    ) -> None:
        self.client, self.description, self.owned = client, description, servers is not None
        self.in_process = servers is not None and servers.in_process
        self._servers = servers
        self.stopping = CancelScope()
        self._lock = threading.Lock()
        self._workers: tuple[WorkerInfo, ...] = ()
        self._numbers: dict[str, int] = {}  # of the workers that have not gone
        self._alive: frozenset[int] = frozenset()
        self._losses: list[float] = []  # when workers went, on the monotonic clock, one after another
        self._lost_meanwhile: frozenset[str] = frozenset()
        self._has_newcomers = False
        self._compared, self.patience_seconds = compared, patience_seconds
        self._refused: dict[str, str] = {}
        self._silent: dict[str, tuple[float, float]] = {}  # newcomers: when to ask again, and after how long
        self.num_breaks, self._num_mended = 0, 0
        self._broken_at = 0.0
        self._refreshing = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._prefixes: list[str] = []
        self._plugins: dict[str, Callable[[str], WorkerPlugin]] = {}  # what workers of others get
        self._handlers: list[Callable[[tuple[float, Any]], None]] = []
        _open_clusters.add(self)
        client.broken = self._note_break
        try:
            # The other way round, a loss between the two would be missed.
            self._listen()
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def scheduler_address(self) -> str:
        """Where the scheduler is, or was; nothing once the client has closed."""
        return "" if self.client.scheduler is None else str(self.client.scheduler.address)

    @property
    def workers(self) -> tuple[WorkerInfo, ...]:
        """All workers there have been, by owner number; the dead keep theirs."""
        return self._workers

    def alive(self) -> tuple[int, ...]:
        """Return the owner numbers of the workers that can be used now."""
        with self._lock:
            return tuple(sorted(self._alive))

    def attendance(self, since: float = -math.inf) -> Attendance:
        """Return which workers are there, as far as is known; asks nobody.

        Parameters
        ----------
        since
            Losses up to this time of the monotonic clock are not counted.
        """
        with self._lock:
            now, num_now = time.monotonic(), len(self._alive)
            num_gone = len(self._losses) - bisect_right(self._losses, since)
            silent = [f"worker {address} does not answer" for address in self._silent]
            refused, away = (*self._refused.values(), *silent), self.seconds_away
        if self._servers is None:
            return Attendance(num_now, num_gone, None, "", refused, away, now)
        num_asked, trouble = self._servers.num_workers, self._servers.trouble
        return Attendance(num_now, num_gone, num_asked, trouble, seconds=now)

    def recent_attendance(self) -> Attendance:
        """Return which workers are there, and of those that are gone the ones of the last ten minutes."""
        return self.attendance(time.monotonic() - _RECENT_SECONDS)

    @property
    def seconds_away(self) -> float:
        """For how long the scheduler has not been there; 0 while it is."""
        is_there = self.owned or self.client.status == "running" or self._closed
        return 0.0 if is_there else time.monotonic() - self._broken_at

    @property
    def is_restoring(self) -> bool:
        """Whether lost workers of ours are being started again."""
        return self._servers is not None and self._servers.is_restoring

    @property
    def has_newcomers(self) -> bool:
        """Whether workers have come that the scheduler was not asked for yet, or are to be asked again."""
        with self._lock:
            return self._has_newcomers or any(self._is_due(address) for address in self._silent)

    def refresh(self) -> None:
        """Ask the scheduler who is there; newcomers, such as restarted workers, get new numbers.

        Where the connection has broken, it is waited for a while, and what was on the scheduler is put there
        again. Newcomers with versions that do not work with those here are left alone.

        Raises
        ------
        ClusterError
            When the scheduler does not answer, or this cluster is closed.
        VersionMismatchError
            When a scheduler that was started again runs other versions.
        """
        if self._closed:
            raise ClusterError(f"{self.description}: closed")
        with self._refreshing:
            deadline = time.monotonic() + self.patience_seconds
            while True:
                self._mend(deadline)
                try:
                    return self._refresh()
                except ClusterError:
                    time.sleep(_LOOK_SECONDS)  # by then it is known whether the connection has broken
                    if self.num_breaks == self._num_mended or time.monotonic() > deadline:
                        raise

    def refresh_if_changed(self, waits: bool = False) -> None:
        """Ask the scheduler who is there, if a worker has come since it was last asked.

        The scheduler tells of a worker before that takes tasks; ``waits`` tells whether to wait a little.
        """
        deadline = time.monotonic() + (_STARTING_SECONDS if waits else 0.0)
        while self.has_newcomers:
            self._has_newcomers = False
            self.refresh()
            if self._has_newcomers:
                if time.monotonic() >= deadline:
                    return
                time.sleep(_HEAR_SECONDS)

    def submit(self, owner: int, work: Callable[..., object], *arguments: object) -> None:
        """Have a thread of a worker in this process do something, without a task of Dask's.

        A worker that has closed does nothing any more; whoever waits notices that it is gone.
        """
        assert self._servers is not None
        worker = self._servers.worker_at(self._workers[owner].address)
        if worker is not None:
            with contextlib.suppress(RuntimeError):  # its threads have ended
                worker.executors["default"].submit(work, *arguments)

    def listen(self, handler: Callable[[tuple[float, Any]], None]) -> None:
        """Call ``handler`` with what workers tell this client, under its id, until the cluster is left."""
        self._handlers.append(handler)
        if len(self._handlers) == 1:
            # The scheduler forgets the topic some time after the client.
            self.client.subscribe_topic(self.client.id, self._hear)

    def leave_nothing_of(self, prefix: str) -> None:
        """Have another user's scheduler remove everything of this name, should this process die."""
        if not self.owned:
            self._prefixes.append(prefix)
            self._say_farewell(prefix)

    async def installed(self, make: Callable[[str], WorkerPlugin], name: str) -> None:
        """Put a plugin on the workers, on those that come, and after a break; on the client's event loop.

        On a cluster of others Dask would give it to every worker that joins, and one that has no matnb, or
        another Python, could not start then.

        Parameters
        ----------
        make
            Returns the plugin, given what it is called on the workers now.
        name
            Begins with a prefix of which nothing is to be left.
        """
        if self.owned:
            await self.client.register_plugin(make(name), name)
            return
        with self._lock:
            self._plugins[name] = make
        await self._put_on([self._workers[number].address for number in self.alive()], [name])

    def name_now(self, name: str) -> str:
        """Return what a plugin is called on the workers; the scheduler may still take away older ones."""
        return f"{name}{self.num_breaks}" if self.num_breaks else name

    async def uninstalled(self, name: str) -> None:
        """Take a plugin from the workers; on the client's event loop."""
        if self.owned:
            await self.client.unregister_worker_plugin(name)
            return
        with self._lock:
            self._plugins.pop(name, None)
        await self.client.run_on_scheduler(take_from_workers, self._prefix_of(name), self.name_now(name))

    async def _put_on(self, addresses: list[str], names: Sequence[str]) -> None:
        for name in names:
            make, now = self._plugins.get(name), self.name_now(name)
            if make is not None and addresses:
                await self.client.run_on_scheduler(
                    put_on_workers, self._prefix_of(name), now, dumps(make(now)), addresses
                )

    def _prefix_of(self, name: str) -> str:
        return next(prefix for prefix in self._prefixes if name.startswith(prefix))

    def keep_freed_memory(self, prefix: str) -> None:
        """Have worker processes of others keep what they free for their next tasks, until this one leaves.

        One that does not answer gets this when it does; without it tasks are slower, but the same.
        """
        if not self.owned:
            installing = self.installed(FreedMemoryPlugin, f"{prefix}freed-memory")
            asyncio.run_coroutine_threadsafe(installing, self.client.loop.asyncio_loop)  # nobody waits

    def close(self) -> None:
        """Leave the cluster, and end it if it is ours; a second call does nothing.

        A kernel that is still running in this process is given a few seconds; no thread can be ended from
        outside, so then it runs on to its end, and its result is dropped.
        """
        with self._lock:
            # After a fork the servers, and the threads that would answer, are the parent's.
            if self._closed or os.getpid() != self._process:
                return
            self._closed = True
            self._alive = frozenset()
            self._numbers = {}
        _open_clusters.discard(self)
        with contextlib.ExitStack() as stack:
            if self._servers is not None:
                stack.callback(self._servers.close, _CLOSE_SECONDS)
            stack.callback(self.client.leave, _LEAVE_SECONDS)
            if self.client.status == "running":
                # Else the scheduler logs that it cannot tell us that we have left.
                with contextlib.suppress(*CLOSING_ERRORS):
                    for topic in [_TOPIC] + [self.client.id] * bool(self._handlers):
                        self.client.unsubscribe_topic(topic)

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hear(self, event: tuple[float, Any]) -> None:
        for handler in tuple(self._handlers):
            handler(event)

    def _listen(self) -> None:
        heard, own_topic = threading.Event(), self.client.id  # the scheduler forgets it some time after us
        self.client.subscribe_topic(_TOPIC, self._handle_event)
        self.client.subscribe_topic(own_topic, lambda _: heard.set())
        # Subscriptions travel in batches, so questions overtake them: they hold once we hear ourselves.
        deadline, num_breaks = time.monotonic() + _ANSWER_SECONDS, self.num_breaks
        while not heard.is_set():
            if time.monotonic() > deadline or self.num_breaks != num_breaks:
                raise ClusterError(f"the scheduler of {self.description} sends no events")
            self.client.log_event(own_topic, {"action": "listening"})
            heard.wait(_HEAR_SECONDS)
        self.client.unsubscribe_topic(own_topic)

    def _say_farewell(self, prefix: str) -> None:
        farewell = Farewell(self.client.id, prefix, self.client.former_ids)
        try:
            self.client.sync(self._said, farewell, callback_timeout=_IMPORT_SECONDS)
        except (*BROKEN, AttributeError) as error:
            raise self._no_answer(error) from error

    async def _said(self, farewell: Farewell) -> None:
        await self.client.register_plugin(farewell, farewell.name)

    def _note_break(self) -> None:
        # On the event loop. What is kept under the names of now is lost, whatever becomes of the workers.
        with self._lock:
            self._alive, self._numbers = frozenset(), {}
            self._losses.clear()
            self._compared, self._refused, self._silent = frozenset(), {}, {}
            self.num_breaks += 1
            self._broken_at = time.monotonic()
            self._has_newcomers = True

    def _mend(self, deadline: float) -> None:
        # After a break: waits until the client has connected again, and puts there what it had put there.
        if self.owned:
            return
        while self._num_mended != self.num_breaks or self.client.status == "connecting":
            num_breaks = self.num_breaks
            if self.client.status == "running":
                try:
                    self._mend_now()
                    self._num_mended = num_breaks
                    continue
                except VersionMismatchError:
                    raise
                except (*BROKEN, AttributeError, ClusterError):
                    pass  # the connection has broken again, or will have, or the scheduler has no time
            elif self.client.status != "connecting":
                if self.client.refusal is not None:
                    raise VersionMismatchError(str(self.client.refusal))
                raise ClusterError(f"the scheduler of {self.description} does not answer; {_CONNECT_AGAIN}")
            self.stopping.check()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"the scheduler of {self.description} does not answer: the connection broke "
                    f"{self.seconds_away:.0f} s ago. It is tried again all the time, so run this again once "
                    f"the scheduler is there, or wait longer with timeout_seconds= of mn.connect, which was "
                    f"{self.patience_seconds:g}; {_CONNECT_AGAIN}"
                )
            time.sleep(_LOOK_SECONDS)

    def _mend_now(self) -> None:
        compared = check_versions(self.client, _ANSWER_SECONDS)
        for prefix in self._prefixes:
            self._say_farewell(prefix)
        self._listen()
        if self._handlers:
            self.client.subscribe_topic(self.client.id, self._hear)
        self._compared = compared

    def _refresh(self) -> None:
        with self._lock:
            self._lost_meanwhile, num_breaks = frozenset(), self.num_breaks
        known, listed, has_starting = self._ask_scheduler(_ANSWER_SECONDS)
        known = self._sorted_out(known)
        with self._lock:
            if has_starting:  # others set it too, on another thread
                self._has_newcomers = True
            if num_breaks != self.num_breaks:
                return  # it is looked again, after the next mending
            # The answer may have been written before a loss and read after the news of it.
            known = {address: info for address, info in known.items() if address not in self._lost_meanwhile}
            for address in [one for one in self._numbers if one not in listed]:
                self._lose(address)
            newcomers = [one for one in known if one not in self._numbers]
            for address in newcomers:
                self._numbers[address] = len(self._workers)
                self._workers += (known[address],)
            self._alive = frozenset(self._numbers[address] for address in known)
            names = list(self._plugins)
        if newcomers and names:
            with contextlib.suppress(*BROKEN, AttributeError):  # then they take no part in a gang
                self.client.sync(self._put_on, newcomers, names, callback_timeout=_ANSWER_SECONDS)

    def _sorted_out(self, known: dict[str, WorkerInfo]) -> dict[str, WorkerInfo]:
        # The workers whose versions work with those here.
        if self.owned:
            return known
        with self._lock:
            self._refused = {one: why for one, why in self._refused.items() if one in known}
            self._silent = {one: when for one, when in self._silent.items() if one in known}
            asked = [
                one
                for one in known
                if one not in self._compared and one not in self._refused and self._is_due(one)
            ]
        if asked:
            try:
                usable, refused = sort_out(self.client, asked, _ANSWER_SECONDS)
            except (*BROKEN, AttributeError) as error:
                raise self._no_answer(error) from error
            with self._lock:
                self._compared |= usable
                self._refused.update(refused)
                for one in asked:
                    _, pause = self._silent.pop(one, (0.0, _ASK_AGAIN_SECONDS))
                    if one not in usable and one not in refused:
                        twice = min(2 * pause, _MOST_ASK_AGAIN_SECONDS)
                        self._silent[one] = time.monotonic() + pause, twice
        return {address: info for address, info in known.items() if address in self._compared}

    def _is_due(self, address: str) -> bool:
        # Whether a newcomer is to be asked, or asked again; with the lock.
        return address not in self._silent or time.monotonic() >= self._silent[address][0]

    def _no_answer(self, error: BaseException) -> ClusterError:
        return ClusterError(f"the scheduler of {self.description} does not answer: {error}")

    def _lose(self, address: str) -> None:
        # Whoever comes to this address is another worker; with the lock.
        number = self._numbers.pop(address, None)
        if number is not None:
            self._alive -= {number}
            self._losses.append(time.monotonic())
        self._compared -= {address}
        self._refused.pop(address, None)
        self._silent.pop(address, None)

    def _handle_event(self, event: tuple[float, dict[str, object]]) -> None:
        _, message = event
        if message.get("action") == "add-worker":
            self._has_newcomers = True
        if message.get("action") != "remove-worker":
            return
        address = str(message["worker"])
        with self._lock:
            self._lose(address)
            self._lost_meanwhile |= {address}

    def _ask_scheduler(self, timeout_seconds: float) -> tuple[dict[str, WorkerInfo], Collection[str], bool]:
        # The workers that can be used, all that are there, and whether others are about to be usable.
        async def ask() -> dict[str, dict[str, Any]]:
            return dict((await self.client.scheduler.identity(n_workers=-1))["workers"])

        try:
            answer = self.client.sync(ask, callback_timeout=timeout_seconds)
        except (*BROKEN, AttributeError) as error:  # a client that closed has None for its scheduler
            raise self._no_answer(error) from error
        has_starting = any(each["status"] == "init" for each in answer.values())
        return _usable(answer, self.in_process), answer.keys(), has_starting


def start(config: Config) -> DaskCluster:
    """Start a scheduler and workers on this machine: in this process, or with a process for each worker.

    No port is opened: worker processes talk by sockets in a folder that only the user may enter, or over the
    loopback interface without ``security``. They do not run the script that starts them. Spilling to disk and
    pausing are switched off, and nothing stays in the user's Dask configuration.

    Raises
    ------
    ClusterError
        When the servers or a worker process cannot be started.
    """
    if config.processes and runs_the_script_again():
        raise ClusterError(_UNGUARDED)
    # In this process that takes a moment; worker processes take seconds, and nothing else is there yet.
    try:
        with not_deferred() if config.processes else contextlib.nullcontext():
            servers = Servers(config)
    except KeyboardInterrupt as interrupt:
        raise CellCancelled(
            "interrupted while workers were starting; all of them were stopped"
        ) from interrupt
    except (OSError, RuntimeError) as error:
        reason: BaseException = error
        while reason.__cause__ is not None:
            reason = reason.__cause__
        raise ClusterError(f"no cluster could be started: {reason}") from error
    threads = num_threads(config)
    description = f"{_counted(config.workers, 'worker')} x {_counted(threads, 'thread')}, " + (
        "each in a process of its own" if config.processes else "in this process"
    )
    with contextlib.ExitStack() as undo:
        undo.callback(servers.close, _CLOSE_SECONDS)
        client = MatnbClient(servers.cluster, set_as_default=False)
        undo.callback(client.close)
        cluster = DaskCluster(client, description, servers)
        undo.pop_all()
    return cluster


def connect(
    target: str | Client | HasScheduler | None = None,
    *,
    scheduler_file: str | None = None,
    security: Security | None = None,
    timeout_seconds: float = 10.0,
) -> DaskCluster:
    """Use a cluster that is there already, through a client of our own.

    Versions are compared first: matnb, Dask and distributed must be the same on this process, the scheduler
    and the workers; Python, NumPy, SciPy and Numba the same in their first two numbers.

    Parameters
    ----------
    target
        The scheduler's address, such as ``"tcp://host:8786"``; or a client or a cluster object of Dask's,
        which stays open and is not changed.
    scheduler_file
        The file that the scheduler writes its address to, instead of ``target``.
    security
        Certificates and keys for ``tls://``; those of ``target`` where it has some.
    timeout_seconds
        How long to wait for the scheduler, a first worker and the answers about versions.

    Raises
    ------
    OptionError
        When there is not exactly one of ``target`` and ``scheduler_file``.
    ClusterError
        When the scheduler cannot be reached, or has no workers, or these do not reach each other.
    VersionMismatchError
        When the versions do not work together.
    """
    deadline = time.monotonic() + timeout_seconds
    address = scheduler_address(target, scheduler_file, deadline)
    if security is None and target is not None:
        security = getattr(target, "security", None)
    client = connect_client(address, security, timeout_seconds)
    with contextlib.ExitStack() as undo:
        undo.callback(client.close)
        _wait_for_a_worker(client, Location(address), deadline)
        try:
            compared = check_versions(client, _seconds_until(deadline))
        except TimeoutError as error:
            raise ClusterError(f"the workers of {address} do not answer") from error
        description = f"the Dask cluster at {Location(address)}"
        cluster = DaskCluster(client, description, None, compared, timeout_seconds)
        undo.pop_all()
    try:
        if apart := workers_apart(cluster):
            raise ClusterError(f"{cluster.description}: {apart_text(apart)}; {APART_TODO}")
    except BaseException:
        cluster.close()
        raise
    return cluster


def _wait_for_a_worker(client: Client, place: Location, deadline: float) -> None:
    try:
        client.wait_for_workers(1, timeout=min(_ADAPT_SECONDS, _seconds_until(deadline)))
        return
    except TimeoutError:
        client.sync(check_scheduler, client.scheduler, _seconds_until(deadline))  # before anything is sent
    try:
        with worker_wanted(client):
            client.wait_for_workers(1, timeout=_seconds_until(deadline))
    except TimeoutError as error:
        raise ClusterError(
            f"the scheduler at {place} has no workers, and none came though one was asked for: start some, "
            "as by scale() of the cluster's object, or wait longer with timeout_seconds"
        ) from error


@contextlib.contextmanager
def worker_wanted(client: Client) -> Iterator[None]:
    """Have a task wait for a worker, as an adaptive cluster starts workers for tasks and not for clients."""
    task = client.submit(abs, 0, pure=False)
    try:
        yield
    finally:
        task.release()


def workers_apart(cluster: DaskCluster) -> dict[tuple[str, str], str]:
    """Return why there is no way from one worker to another, by both addresses; nothing where all is well.

    Raises
    ------
    ClusterError
        When the scheduler does not answer.
    """
    if cluster.owned:
        return {}
    addresses = [cluster.workers[number].address for number in cluster.alive()]
    try:
        found = cluster.client.sync(
            greetings, cluster.client, addresses, callback_timeout=GREETINGS_SECONDS + _ANSWER_SECONDS
        )
    except (*BROKEN, AttributeError) as error:
        raise ClusterError(f"{cluster.description} does not answer: {error}") from error
    return pairs_apart(found)


def _seconds_until(deadline: float) -> float:
    return max(_LEAST_SECONDS, deadline - time.monotonic())


def _usable(answer: dict[str, dict[str, Any]], in_process: bool) -> dict[str, WorkerInfo]:
    known = [item for item in answer.items() if item[1]["status"] in _USABLE]
    known.sort(key=lambda item: (_natural(str(item[1]["name"])), _natural(item[0])))
    return {address: _worker_info(address, each, in_process) for address, each in known}


def _worker_info(address: str, identity: dict[str, Any], in_process: bool) -> WorkerInfo:
    limit = identity["memory_limit"] or 0
    own = 0 if in_process else min(identity["metrics"].get("memory", 0), limit // 2)
    return WorkerInfo(address, identity["host"], identity["nthreads"], limit, own)


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    # 2 before 10, in names and in ports
    parts = re.split(r"([0-9]+)", text)  # text and digits in turn
    return tuple((int(part), "") if number % 2 else (-1, part) for number, part in enumerate(parts))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_open_clusters: weakref.WeakSet[DaskCluster] = weakref.WeakSet()


@atexit.register
def _close_open_clusters() -> None:
    # Registered after Dask's own, so it runs before them, while its servers still answer.
    for cluster in list(_open_clusters):
        cluster.close()


# What a session leaves on a cluster of others when its process dies: its scheduler takes it away.


class Farewell(SchedulerPlugin):  # type: ignore[misc]  # it has no types
    """Takes a client's worker plugins and turns away once the client is gone, and then itself.

    The scheduler sees a client's connection end when its process does, however that ended.

    Parameters
    ----------
    client
        Its id.
    prefix
        What the names of its worker plugins begin with.
    former_ids
        What the client was called before its connection broke, which the scheduler may not know yet.

    Attributes
    ----------
    installed
        The client's worker plugins, and the addresses of the workers that have them.
    """

    def __init__(self, client: str, prefix: str, former_ids: Sequence[str] = ()) -> None:
        self.name, self._client, self._former_ids = farewell_name(prefix), client, former_ids
        self.installed: dict[str, set[str]] = {}

    def start(self, scheduler: Scheduler) -> None:
        """Take away what the client left under its former names."""
        for client in self._former_ids:
            stream = scheduler.client_comms.get(client)
            if client in scheduler.clients:
                scheduler.remove_client(client)
            if stream is not None:
                stream.abort()
        before = scheduler.plugins.get(self.name)
        if isinstance(before, Farewell):  # which came when its client had gone, or was not heard to have come
            before._leave(scheduler)

    def remove_client(self, scheduler: Scheduler, client: str) -> None:
        """Take away what a client left."""
        if client == self._client:
            self._leave(scheduler)

    def _leave(self, scheduler: Scheduler) -> None:
        release_turns(scheduler, lambda holder: holder == self._client)
        scheduler.remove_plugin(self.name)
        for name in self.installed:
            scheduler.loop.add_callback(self.take, scheduler, name)
        _clear_late(scheduler, self._client)

    async def put(self, scheduler: Scheduler, name: str, plugin: bytes, addresses: Sequence[str]) -> None:
        """Put a plugin on workers."""
        there = [address for address in addresses if address in scheduler.workers]
        self.installed.setdefault(name, set()).update(there)
        message = {"op": "plugin-add", "name": name, "plugin": plugin}
        await scheduler.broadcast(msg=message, workers=there, on_error="ignore")

    async def take(self, scheduler: Scheduler, name: str) -> None:
        """Take a plugin from the workers that have it."""
        there = [one for one in self.installed.get(name, ()) if one in scheduler.workers]
        message = {"op": "plugin-remove", "name": name}
        await scheduler.broadcast(msg=message, workers=there, on_error="ignore")


def farewell_name(prefix: str) -> str:
    """Return the name of the :class:`Farewell` of a session."""
    return f"{prefix}farewell"


async def put_on_workers(
    prefix: str, name: str, plugin: bytes, addresses: Sequence[str], dask_scheduler: Scheduler
) -> None:
    """Put a session's plugin on some workers; on the scheduler."""
    farewell: Farewell | None = dask_scheduler.plugins.get(farewell_name(prefix))
    if farewell is not None:  # else the session has gone
        await farewell.put(dask_scheduler, name, plugin, addresses)


async def take_from_workers(prefix: str, name: str, dask_scheduler: Scheduler) -> None:
    """Take a session's plugin from the workers that have it; on the scheduler."""
    farewell: Farewell | None = dask_scheduler.plugins.get(farewell_name(prefix))
    if farewell is not None:
        await farewell.take(dask_scheduler, name)
        farewell.installed.pop(name, None)


def _clear_late(scheduler: Scheduler, client: str, num_looks: int = 0) -> None:
    # A block that was on its way to a worker is noted as the client's when it has arrived, and a member of a
    # gang publishes what it made: Dask then knows the client again, for ever.
    if scheduler.status != Status.running:
        return
    if client in scheduler.clients and client not in scheduler.client_comms:
        scheduler.remove_client(client)
    if num_looks < len(_LATE_SECONDS):
        scheduler.loop.call_later(_LATE_SECONDS[num_looks], _clear_late, scheduler, client, num_looks + 1)
