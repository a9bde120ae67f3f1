"""Messages between the members of a gang, over Dask's own connections."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from distributed import Worker
from distributed.comm import Comm

from matnb.backend.gang import lines
from matnb.backend.gang.lines import Item, Line
from matnb.backend.gang.packing import array_bytes, pack, unpack
from matnb.blocks.formats import Block
from matnb.program.plan import Slot

Tag: TypeAlias = tuple[int, Slot | str]  # the number of a batch's execution, and a register's name

PRESENT_SECONDS = 5.0  # a member that has not come by then does not come
_BEAT_SECONDS = 2.0
# Event loops answer whatever the kernels do, unless one holds Python's lock: a minute is no kernel.
_SILENT_SECONDS = 60.0
_RETRY_SECONDS = 0.05
_FLUSH_SECONDS = 10.0
_FAREWELL_SECONDS = 0.5


class Aborted(Exception):  # noqa: N818  how a gang ends, not what went wrong first
    """The gang was given up."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Mailbox(Protocol):
    """What a member sends and receives by.

    Attributes
    ----------
    owner
        This member.
    members
        All of them, in ascending order; the first is the one that decides.
    """

    owner: int
    members: tuple[int, ...]

    def post(self, target: int, tag: Tag, value: object, sent: Callable[[], None] | None = None) -> None:
        """Send a value to a member and return at once; its arrays stay as they are until ``sent`` comes."""

    def subscribe(self, arrived: Callable[[int, Tag, object], None]) -> None:
        """Have a function called, from another thread, with all that came and comes; arrays are read-only."""

    def check(self) -> None:
        """Raise Aborted when the gang was given up."""


class Keeper(Protocol):
    """Keeps copies of a loop's state."""

    def is_due(self) -> bool:
        """Tell whether the state should be kept after this iteration."""

    def save(self, iteration: int, registers: Mapping[Slot, Block]) -> None:
        """Keep this member's blocks of the state."""


class GangMailbox:
    """The mailbox of one member of one epoch; all but the protocol's methods belongs to the event loop.

    Parameters
    ----------
    worker
        The member's.
    line_name
        What the workers answer to when a line is asked for.
    epoch
        Which gathering.
    owner
        This member.
    addresses
        Where each member is.
    saved
        Is called with the epoch, an iteration and another member's blocks when they come here to be kept.
    """

    def __init__(
        self,
        worker: Worker,
        line_name: str,
        epoch: int,
        owner: int,
        addresses: Mapping[int, str],
        saved: Callable[[int, int, dict[Slot, Block]], None],
    ) -> None:
        self.owner, self.members = owner, tuple(sorted(addresses))
        self.epoch = epoch
        self._worker, self._line_name, self._addresses, self._saved = worker, line_name, addresses, saved
        self._loop = worker.loop.asyncio_loop
        self._lines: dict[int, Line] = {}
        self._carrying: set[asyncio.Task[None]] = set()  # lines that this side asked for
        self._early: list[tuple[int, Tag, object]] = []
        self._received_bytes = 0
        self._arrived: Callable[[int, Tag, object], None] | None = None
        self._reason: str | None = None
        self._has_ended = False
        self._complete = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None

    # the member's threads

    def post(self, target: int, tag: Tag, value: object, sent: Callable[[], None] | None = None) -> None:
        """Send a value to a member and return at once; its arrays stay as they are until ``sent`` comes."""
        wire, shares = pack(value)
        # What shares no memory any more is as good as sent.
        self._lines[target].put(
            (lines.VALUE, *tag, wire, shares), (sent or _nothing) if shares else None, array_bytes(wire)
        )
        if sent is not None and not shares:
            sent()

    def subscribe(self, arrived: Callable[[int, Tag, object], None]) -> None:
        """Have a function called, from another thread, with all that came and comes; arrays are read-only."""
        if len(self.members) > 1:
            self._loop.call_soon_threadsafe(self._subscribe, arrived)

    def check(self) -> None:
        """Raise Aborted when the gang was given up."""
        if self._reason is not None:
            raise Aborted(self._reason)

    def keep_at(self, target: int, iteration: int, blocks: Mapping[Slot, Block]) -> None:
        """Have another member keep blocks, whose arrays are never written again."""
        packed = tuple((name, pack(block)[0]) for name, block in blocks.items())
        self._lines[target].put((lines.SAVED, iteration, packed))

    # the event loop

    async def gather(self) -> None:
        """Meet the other members.

        Raises
        ------
        Aborted
            When one does not come in time.
        """
        deadline = time.monotonic() + PRESENT_SECONDS
        others = [member for member in self.members if member != self.owner]
        if not others:
            return
        try:
            async with asyncio.timeout(PRESENT_SECONDS):
                await asyncio.gather(*(self._call(other, deadline) for other in others if other < self.owner))
                await self._complete.wait()
        except TimeoutError:
            missing = [other for other in others if other not in self._lines]
            self.abort(f"workers {missing} did not join within {PRESENT_SECONDS:g} s")
        self.check()
        self._beating = asyncio.create_task(self._beat())

    async def answer(self, comm: Comm, source: int) -> bool:
        """Carry a line that another member asked for; tell whether the connection can be used again."""
        line = self._line(comm, source)
        await comm.write(((),))
        self._join(source, line)
        return await line.run()

    def abort(self, reason: str) -> None:
        """Give the gang up, and tell the others; the first reason counts."""
        if self._reason is not None or self._has_ended:
            return
        self._reason = reason
        self._complete.set()
        for line in self._lines.values():
            line.put((lines.ABORT, reason))

    async def end(self) -> None:
        """Flush unsent messages, and leave."""
        if self._beating is not None:
            self._beating.cancel()
        open_lines = list(self._lines.values())
        wait_seconds = _FLUSH_SECONDS if self._reason is None else _FAREWELL_SECONDS
        if open_lines:
            await asyncio.gather(*(line.flushed(wait_seconds) for line in open_lines))
        self._has_ended = True
        self._arrived = None
        for line in open_lines:
            line.put((lines.END,))

    @property
    def is_open(self) -> bool:
        """Whether a line is still used, by a member that has not ended yet."""
        return any(line.is_open for line in self._lines.values())

    @property
    def traffic(self) -> tuple[int, int]:
        """Bytes of arrays that came and that went, so far."""
        return self._received_bytes, sum(line.sent_bytes for line in self._lines.values())

    async def close(self) -> None:
        """Close all lines at once."""
        self.abort("the worker leaves")
        if self._beating is not None:
            self._beating.cancel()
        for line in self._lines.values():
            if line.is_open:  # else its connection may be another's by now
                line.abort()
        for task in list(self._carrying):
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)

    def _subscribe(self, arrived: Callable[[int, Tag, object], None]) -> None:
        for early in self._early:
            arrived(*early)
        self._early.clear()
        self._arrived = arrived

    async def _call(self, other: int, deadline: float) -> None:
        address = self._addresses[other]
        request = {
            "op": self._line_name, "epoch": self.epoch, "source": self.owner, "reply": False,
        }  # fmt: skip
        while True:
            comm: Comm | None = None
            try:
                comm = await self._worker.rpc.connect(address, timeout=deadline - time.monotonic())
                await comm.write(request)
                (greeting,) = await comm.read()
            except OSError as error:  # a connection kept from before may be dead, and another may do
                if comm is not None:
                    comm.abort()
                    self._worker.rpc.reuse(address, comm)
                if time.monotonic() > deadline:
                    raise TimeoutError from error
                await asyncio.sleep(_RETRY_SECONDS)
                continue
            except BaseException:
                if comm is not None:
                    comm.abort()
                    self._worker.rpc.reuse(address, comm)
                raise
            break
        if greeting:
            self._worker.rpc.reuse(address, comm)
            self.abort(f"worker {other} is not in this gathering: {greeting[0]}")
            return
        line = self._line(comm, other)
        task = asyncio.create_task(self._carry(comm, line, address))
        self._carrying.add(task)
        task.add_done_callback(self._carrying.discard)
        self._join(other, line)

    async def _carry(self, comm: Comm, line: Line, address: str) -> None:
        is_usable = False
        try:
            is_usable = await line.run()
        finally:
            if not is_usable:
                comm.abort()
            self._worker.rpc.reuse(address, comm)

    def _line(self, comm: Comm, other: int) -> Line:
        def heard(item: Item) -> None:
            self._hear(other, item)

        def broken(reason: str) -> None:
            self.abort(f"the connection to worker {other} broke: {reason}")

        return Line(comm, heard, broken)

    def _join(self, other: int, line: Line) -> None:
        self._lines[other] = line
        if self._reason is not None:
            line.put((lines.ABORT, self._reason))
        if self._has_ended:
            line.put((lines.END,))
        if len(self._lines) == len(self.members) - 1:
            self._complete.set()

    def _hear(self, source: int, item: Item) -> None:
        match item:
            case lines.VALUE, tick, name, wire, _:
                self._received_bytes += array_bytes(wire)
                value = unpack(wire)
                if self._arrived is not None:
                    self._arrived(source, (tick, name), value)
                elif not self._has_ended:
                    self._early.append((source, (tick, name), value))
            case lines.SAVED, iteration, packed:
                blocks: dict[Slot, Any] = {name: unpack(wire) for name, wire in packed}
                self._saved(self.epoch, iteration, blocks)
            case lines.ABORT, reason:
                self.abort(reason)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            for other, line in self._lines.items():
                line.beat(_BEAT_SECONDS)
                silence = time.monotonic() - line.last_heard
                if silence > _SILENT_SECONDS and not line.other_ended:
                    self.abort(f"worker {other} was silent for {silence:.0f} s")


def _nothing() -> None:
    pass
