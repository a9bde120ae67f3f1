"""The connection to an existing scheduler: its address, and a client that respects its timeout."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import re
import socket
import ssl
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import dask
from distributed import CancelledError, Client, Security
from distributed.client import ClosedClientError
from distributed.comm import get_address_host_port
from distributed.versions import VersionMismatchWarning

from matnb.backend.cluster.dask_logs import loud_again, quiet_here
from matnb.backend.cluster.handshake import check_scheduler
from matnb.errors import ClusterError, OptionError, VersionMismatchError
from matnb.location import Location

_POLL_SECONDS = 0.05
_ABANDON_SECONDS = 5.0
_ATTEMPT_SECONDS = 3.0  # to connect again; a longer one would wait on, though the way is open by then
_PAUSE_SECONDS = 0.2
_PROBE_SECONDS = 0.5
_NO_TLS = ("WRONG_VERSION_NUMBER", "record layer failure", "cannot convert to SSL")  # what Dask says of it
_SILENT_SECONDS = 1.5  # after which it is said that a scheduler is waited for
# What closing raises where servers or connections are gone already, or do not answer.
CLOSING_ERRORS = (
    *(OSError, RuntimeError, ValueError, AssertionError, AttributeError),
    *(asyncio.CancelledError, concurrent.futures.CancelledError),
)
# What talking to the scheduler or a worker raises when that, or the connection to it, is gone.
BROKEN = (
    *(CancelledError, asyncio.CancelledError, concurrent.futures.CancelledError),
    *(ClosedClientError, OSError),
)
# What connecting raises: where there is nobody, where there is no Dask, or one that takes other parameters.
_DASK_DIFFERS = (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, ImportError)


class HasScheduler(Protocol):
    """A cluster object as Dask's own, jobqueue's or Kubernetes': it knows where its scheduler is."""

    scheduler_address: str


class MatnbClient(Client):  # type: ignore[misc]  # it has no types
    """A client that keeps to its time limit, leaves nothing when it cannot connect, and tells of a break.

    Dask's own client connects again by itself, tells nobody, and gives up after its time limit; after a
    scheduler that closed in order it waits for ever. This one tries until it is closed.

    Attributes
    ----------
    broken
        Is called on the event loop when the connection has broken, before it is made again.
    refusal
        Why it closed, where a scheduler came that runs other versions.
    former_ids
        What it was called before: the scheduler may learn later than this that a connection has broken, and
        then takes away all that belongs to the name.
    """

    broken: Callable[[], None] = staticmethod(lambda: None)
    refusal: Exception | None = None
    former_ids: tuple[str, ...] = ()
    id: str
    scheduler_comm: Any
    _thread: int | None = None  # that of the event loop

    def start(self, **options: Any) -> None:
        """Connect."""
        try:
            super().start(**options)
        except BaseException:
            self._end_loop()
            raise

    async def _start(self, timeout: float, **options: Any) -> None:
        self._thread = quiet_here(asyncio.get_running_loop())
        # Dask's own limit ends when the line is open: it waits for ever for a server that then says nothing.
        # A moment more than that limit, for its message is the better one.
        try:
            await asyncio.wait_for(super()._start(timeout=timeout, **options), timeout + _POLL_SECONDS)
        except BaseException as error:
            try:
                if isinstance(error, _DASK_DIFFERS) and not isinstance(error, OSError):
                    await check_scheduler(self.rpc(self._start_arg), timeout)
            finally:
                await self._close()
            raise

    async def _ensure_connected(self, timeout: float | None = None) -> None:
        await super()._ensure_connected(timeout=timeout)
        if self.scheduler_comm is not None:
            # A run is one message; Dask would collect others for 10 ms.
            self.scheduler_comm.interval = 0.0

    async def _handle_report(self) -> None:
        await super()._handle_report()
        while self.status == "running" and self.cluster is None:  # a scheduler that closes says so
            await self._reconnect()
            if self.status == "running":
                await super()._handle_report()

    async def _reconnect(self) -> None:
        self.status = "connecting"
        stream, self.scheduler_comm = self.scheduler_comm, None
        if stream is not None:
            stream.abort()
        self.former_ids = (*self.former_ids, self.id)
        self.id = f"{type(self).__name__}-{uuid.uuid4()}"
        self._pending_msg_buffer.clear()
        self.broken()
        for state in list(self.futures.values()):
            state.cancel(reason="scheduler-connection-lost", msg="the connection to the scheduler broke")
        self.futures.clear()
        self._drop_connections()
        while self.status == "connecting":
            try:
                if await check_scheduler(self.scheduler, _ATTEMPT_SECONDS):
                    with _no_version_warning():
                        await self._ensure_connected(timeout=_ATTEMPT_SECONDS)
            except (VersionMismatchError, ImportError) as error:
                self.refusal = error
                await self._close()
            except (AssertionError, *_DASK_DIFFERS):
                pass  # another time it may be there, whole, and a Dask
            if self.status == "connecting":
                await asyncio.sleep(_PAUSE_SECONDS)

    def _drop_connections(self) -> None:
        # Those of the pool may be as dead as that to the scheduler, which Dask notices after half a minute.
        for known in (self.rpc.available, self.rpc.occupied):
            for address, comms in list(known.items()):
                for comm in list(comms):
                    comm.abort()
                self.rpc.remove(address)

    def leave(self, timeout_seconds: float) -> None:
        """Close, whatever state the connection is in."""
        try:
            self.close(timeout_seconds)
        except CLOSING_ERRORS:
            with contextlib.suppress(*CLOSING_ERRORS):
                self.sync(self._abandon, callback_timeout=_ABANDON_SECONDS)
        finally:
            self._end_loop()

    def _end_loop(self) -> None:
        self._loop_runner.stop()
        loud_again(self._thread)
        self._thread = None

    async def _abandon(self) -> None:
        if self.scheduler_comm is not None and self.scheduler_comm.comm is not None:
            self.scheduler_comm.comm.abort()
        await self.rpc.close()
        self.status = "closed"


@contextlib.contextmanager
def _no_version_warning() -> Iterator[None]:
    # Our own handshake says more, and says what to do.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionMismatchWarning)
        yield


def connect_client(address: str, security: Security | None, timeout_seconds: float) -> MatnbClient:
    """Return a client of the scheduler at ``address``.

    Raises
    ------
    ClusterError
        When there is none, or it does not answer in time.
    VersionMismatchError
        When it runs another Dask, which does not understand this one.
    """
    place, first = Location(address), min(_SILENT_SECONDS, timeout_seconds)
    try:
        with _no_version_warning():
            try:
                return MatnbClient(address, security=security, timeout=first, set_as_default=False)
            except (OSError, OverflowError) as error:
                if (left := timeout_seconds - first) <= 0 or (str(error) and _speaks_tls(address)):
                    raise
            if sys.stderr is not None:  # on this thread: what others write may land under another cell
                sys.stderr.write(
                    f"matnb: no scheduler answers at {place} yet; it is waited for {timeout_seconds:g} s\n"
                )
            return MatnbClient(address, security=security, timeout=left, set_as_default=False)
    except _DASK_DIFFERS as error:
        if isinstance(error, ClusterError):
            raise
        reason = _reason(error, address, security is not None, timeout_seconds)
        raise ClusterError(f"no Dask scheduler could be reached at {place}: {reason}") from None


def _reason(error: BaseException, address: str, has_security: bool, seconds: float) -> str:
    text, port = str(error), re.search(r":([0-9]+)$", address)
    if "ssl_context" in text or (text and not has_security and _speaks_tls(address)):
        security = "security=distributed.Security(...)"
        return f"it takes TLS with certificates only; write mn.connect('tls://...', {security})"
    if any(words in text for words in _NO_TLS):
        return "what answers there does not speak TLS; write tcp:// if the scheduler is to be reached without"
    is_wrong = "invalid literal" in text or "missing port" in text
    if is_wrong or (port is not None and not 0 < int(port[1]) < 1 << 16):
        return "missing port, or one that is no number from 1 to 65535; write it as in tcp://host:8786"
    if text.startswith("Timed out"):
        return f"Timed out after {seconds:g} s"
    return Location(address).reason(error) if text else "no answer"


def _speaks_tls(address: str) -> bool:
    # Whether what listens at an address without TLS wants it; nobody is trusted with anything.
    if not address.startswith("tcp://") and "://" in address:
        return False
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        host, port = get_address_host_port(address)
        with socket.create_connection((host, port), timeout=_PROBE_SECONDS) as plain:
            plain.settimeout(_PROBE_SECONDS)
            with context.wrap_socket(plain):
                return True
    except ssl.SSLError as error:
        return "ALERT" in str(error)
    except (OSError, ValueError, OverflowError):
        return False


def scheduler_address(
    target: str | Client | HasScheduler | None, scheduler_file: str | None, deadline: float
) -> str:
    """Return where the scheduler of ``target`` is, or the one that the file names before ``deadline``."""
    if target is None and scheduler_file is None:  # as Dask's own client does
        target = dask.config.get("scheduler-address", None)
    if (target is None) == (scheduler_file is None):
        raise OptionError(
            "connect() needs an address, a client or a cluster, or else a scheduler_file; without, "
            "DASK_SCHEDULER_ADDRESS has to be set"
        )
    if scheduler_file is not None:
        return _address_in(Path(scheduler_file), deadline)
    if isinstance(target, str):
        return target
    if isinstance(target, Client):
        if target.scheduler is None:
            raise ClusterError(
                "this Dask client is closed: connect a new one, or give the scheduler's address"
            )
        return str(target.scheduler.address)
    if getattr(target, "asynchronous", False) and getattr(target, "scheduler", None) is not None:
        raise OptionError(
            f"connect({type(target).__name__}): its scheduler may run on the event loop of this thread, "
            "which would wait for itself; start it with asynchronous=False"
        )
    address = getattr(target, "scheduler_address", None)
    if not isinstance(address, str):
        raise OptionError(f"connect({target!r}): give an address, a Dask client or a Dask cluster")
    return address


def _address_in(path: Path, deadline: float) -> str:
    while True:  # the scheduler may be about to write it
        try:
            return str(json.loads(path.read_text())["address"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            if time.monotonic() > deadline:
                raise ClusterError(f"{path} does not describe a Dask scheduler: {error}") from error
        time.sleep(_POLL_SECONDS)
