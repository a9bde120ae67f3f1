"""A Dask transport over Unix sockets in a folder that only its owner can enter, in place of ports."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import finalize, ref

import dask
from distributed.comm.addressing import parse_host_port, unparse_host_port
from distributed.comm.core import BaseListener, Comm, CommClosedError, Connector, FatalCommClosedError
from distributed.comm.registry import Backend, backends
from distributed.comm.tcp import MAX_BUFFER_SIZE, TCP, _close_comm
from tornado.iostream import IOStream
from tornado.netutil import bind_unix_socket
from tornado.tcpserver import TCPServer

SCHEME = "matnb-unix"
# An address is FOLDER:NUMBER, as a host and its port, and the socket is the file FOLDER/NUMBER. Numbers are
# drawn: a worker that takes the place of a dead one must not have its address.
_MOST_NUMBERS = 10**9
# Of the path of a socket: 108 on Linux, 104 on macOS, with the end.
_LONGEST_PATH = 103
_LONGEST_FOLDER = _LONGEST_PATH - len(f"/{_MOST_NUMBERS}")
_HOST = "127.0.0.1"  # of all of them, for those who ask whether two are on one machine
_BUFFER_BYTES = 2**22  # of the system's, each way, as far as it lets us
_CREDENTIALS = struct.Struct("3i")  # process, user and group of the other side


def can_hold_sockets(folder: Path) -> bool:
    """Tell whether the path of a folder is one that sockets can be reached by."""
    return ":" not in str(folder) and len(os.fsencode(folder)) <= _LONGEST_FOLDER


def _path(location: str) -> str:
    folder, number = parse_host_port(location)
    return os.path.join(folder, str(number))


def _check_peer(connection: socket.socket) -> None:
    # The folder keeps others out. That another user has put its own in its place is seen by who answers.
    if hasattr(socket, "SO_PEERCRED"):
        found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, user, _ = _CREDENTIALS.unpack(found)
        if user != os.geteuid():
            raise FatalCommClosedError("the other side is a process of another user")


def _widen(connection: socket.socket) -> None:
    # The default holds a message of a fortieth of what a loop sends.
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        connection.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)


class PrivateComm(TCP):  # type: ignore[misc]  # it has no types
    """A connection; it carries messages as those over TCP do, and has no settings of TCP."""

    def __init__(self, stream: IOStream, address: str, peer: str, deserialize: bool) -> None:
        self._closed = False
        Comm.__init__(self, deserialize=deserialize)
        self._local_addr, self._peer_addr, self.stream = address, peer, stream
        self._finalizer = finalize(self, self._get_finalizer())
        self._finalizer.atexit = False
        self._extra: dict[str, object] = {}
        stream.set_close_callback(partial(_close_comm, ref(self)))


class _Connector(Connector):  # type: ignore[misc]  # it has no types
    async def connect(self, address: str, deserialize: bool = True, **_: object) -> PrivateComm:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.setblocking(False)
            _widen(connection)
            connection.connect(_path(address))  # at once, or never: Dask tries again after an OSError
            _check_peer(connection)
            stream = IOStream(connection, max_buffer_size=MAX_BUFFER_SIZE)
        except BaseException:
            connection.close()
            raise
        folder, _ = parse_host_port(address)
        return PrivateComm(stream, _address(folder, 0), f"{SCHEME}://{address}", deserialize)


class _SocketListener(BaseListener):  # type: ignore[misc]  # it has no types
    prefix = f"{SCHEME}://"  # which a worker's log begins with

    def __init__(
        self, location: str, handler: Callable[[Comm], Any], deserialize: bool, allow_offload: bool
    ) -> None:
        super().__init__()
        self._folder, self._number = parse_host_port(location, 0)
        self._handler, self._deserialize, self._allow_offload = handler, deserialize, allow_offload
        self._server: TCPServer | None = None

    async def start(self) -> None:
        self._number = self._number or 1 + secrets.randbelow(_MOST_NUMBERS - 1)
        backlog = int(dask.config.get("distributed.comm.socket-backlog"))
        listening = bind_unix_socket(self._path, mode=0o600, backlog=backlog)
        self._server = TCPServer(max_buffer_size=MAX_BUFFER_SIZE)
        self._server.handle_stream = self._answer  # type: ignore[method-assign, assignment]  # as Dask does
        self._server.add_sockets([listening])

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    @property
    def listen_address(self) -> str:
        return _address(self._folder, self._number)

    @property
    def contact_address(self) -> str:
        return self.listen_address

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, str(self._number))

    async def _answer(self, stream: IOStream, _: object) -> None:
        try:
            _check_peer(stream.socket)
            _widen(stream.socket)
        except OSError:
            stream.close()
            return
        if self._server is None:  # stopped since it was accepted
            stream.close()
            return
        comm = PrivateComm(stream, self.listen_address, _address(self._folder, 0), self._deserialize)
        comm.allow_offload = self._allow_offload
        try:
            await self.on_connection(comm)
        except CommClosedError:
            return
        await self._handler(comm)


class PrivateSockets(Backend):  # type: ignore[misc]  # it has no types
    """What Dask finds under ``matnb-unix://``."""

    def get_connector(self) -> Connector:
        """Return what connects."""
        return _Connector()

    def get_listener(
        self,
        loc: str,
        handle_comm: Callable[[Comm], Any],
        deserialize: bool,
        allow_offload: bool = True,
        **_: object,
    ) -> BaseListener:
        """Return what listens, at a socket of a new number where ``loc`` names none."""
        return _SocketListener(loc, handle_comm, deserialize, allow_offload)

    def get_address_host(self, loc: str) -> str:
        """Return the machine, which is this one."""
        return _HOST

    def resolve_address(self, loc: str) -> str:
        """Return the location as it is."""
        return loc

    def get_local_address_for(self, loc: str) -> str:
        """Return where to listen to be reached from there."""
        folder, _ = parse_host_port(loc)
        return str(unparse_host_port(folder, 0))


def _address(folder: str, number: int) -> str:
    return f"{SCHEME}://{folder}:{number}"


backends[SCHEME] = PrivateSockets()
