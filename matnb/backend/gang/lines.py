"""One connection between two members: messages that are ready together are batched, arrays acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

from distributed.comm import Comm

Item: TypeAlias = tuple[Any, ...]  # its kind, then what Dask's messages carry
OnSent: TypeAlias = Callable[[], None]

VALUE, SAVED, ABORT, END, ACKNOWLEDGED = "v", "s", "a", "e", "k"


class Line:
    """A connection in both directions; all but :meth:`put` belongs to the event loop of the worker.

    Parameters
    ----------
    comm
        Dask's connection.
    heard
        Is called with every item that comes, acknowledgments and the other side's end excepted.
    broken
        Is called with the reason when the connection breaks before both sides have ended.

    Attributes
    ----------
    is_open
        False when it carries nothing any more.
    other_ended
        Whether the other side has said that nothing more comes.
    last_heard
        When something came, on the monotonic clock.
    sent_bytes
        Of arrays that were put on it.
    """

    def __init__(self, comm: Comm, heard: Callable[[Item], None], broken: Callable[[str], None]) -> None:
        self._comm, self._heard, self._broken = comm, heard, broken
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()  # of the next two
        self._outgoing: list[tuple[Item, OnSent | None]] = []
        self._is_woken = False
        self._wake = asyncio.Event()
        self._quiet = asyncio.Event()  # nothing waits to be sent or acknowledged
        self._quiet.set()
        self._unacknowledged: deque[OnSent] = deque()
        self._has_ended = self.other_ended = False
        self.is_open, self.sent_bytes = True, 0
        self.last_heard = self._last_sent = time.monotonic()

    def put(self, item: Item, sent: OnSent | None = None, num_bytes: int = 0) -> None:
        """Send an item soon; from any thread.

        Parameters
        ----------
        sent
            Is called when the other side has acknowledged it, or can no longer do so.
        num_bytes
            Of the arrays in it, for the count.
        """
        with self._lock:
            self.sent_bytes += num_bytes
            self._outgoing.append((item, sent))
            if self._is_woken:
                return
            self._is_woken = True
        with contextlib.suppress(RuntimeError):  # the loop is closed with its worker
            self._loop.call_soon_threadsafe(self._rouse)

    def beat(self, seconds: float) -> None:
        """Send an empty message if nothing was sent for a while."""
        if time.monotonic() - self._last_sent > seconds:
            self._rouse()

    async def run(self) -> bool:
        """Carry items until both sides have ended; tell whether the connection can be used again."""
        writing = asyncio.create_task(self._write())
        # Dask reads and writes large messages on another thread, which has nothing to do for raw buffers.
        offloads, self._comm.allow_offload = self._comm.allow_offload, False
        try:
            while not self.other_ended:
                self._receive(await self._comm.read())
            await writing
        except OSError as error:
            self._broken(str(error) or type(error).__name__)
            return False
        else:
            return True
        finally:
            writing.cancel()
            self._comm.allow_offload = offloads
            self.is_open = False
            self._let_go()

    async def flushed(self, seconds: float) -> None:
        """Wait until everything was sent and acknowledged."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), seconds)

    def abort(self) -> None:
        """Close at once."""
        self._comm.abort()

    def _rouse(self) -> None:
        self._quiet.clear()
        self._wake.set()

    async def _write(self) -> None:
        try:
            while not self._has_ended:
                await self._wake.wait()
                self._wake.clear()
                with self._lock:
                    batch, self._outgoing, self._is_woken = self._outgoing, [], False
                self._unacknowledged.extend(sent for _, sent in batch if sent is not None)
                self._has_ended = any(item[0] == END for item, _ in batch)
                await self._comm.write(tuple(item for item, _ in batch))
                self._last_sent = time.monotonic()
                if self.other_ended:
                    self._acknowledge(len(self._unacknowledged))
                self._settle()
        except OSError:
            self._comm.abort()  # the reading side tells

    def _receive(self, items: tuple[Item, ...]) -> None:
        self.last_heard = time.monotonic()
        num_arrays = 0
        for item in items:
            if item[0] == ACKNOWLEDGED:
                self._acknowledge(item[1])
            elif item[0] == END:
                self.other_ended = True
                self._acknowledge(len(self._unacknowledged))  # it reads no more
            else:
                self._heard(item)
                num_arrays += item[0] == VALUE and bool(item[-1])
        if num_arrays and not self._has_ended:
            self.put((ACKNOWLEDGED, num_arrays))

    def _acknowledge(self, number: int) -> None:
        for _ in range(min(number, len(self._unacknowledged))):  # an end acknowledges all, whatever follows
            self._unacknowledged.popleft()()
        self._settle()

    def _settle(self) -> None:
        with self._lock:
            if not self._outgoing and not self._unacknowledged:
                self._quiet.set()

    def _let_go(self) -> None:
        with self._lock:
            waiting = [*self._unacknowledged, *(sent for _, sent in self._outgoing if sent is not None)]
            self._outgoing = []
        self._unacknowledged.clear()
        self._quiet.set()
        for sent in waiting:
            sent()
