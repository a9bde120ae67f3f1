"""The life of a gang's member on its worker: join, perform the program, publish results, clean up."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
import traceback
from array import array
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from distributed import Worker, WorkerPlugin, get_worker
from distributed.comm import Comm
from distributed.core import Status
from distributed.protocol import pickle

from matnb.backend.gang.checkpoints import Checkpoints, RingKeeper
from matnb.backend.gang.iteration_boundary import Listener
from matnb.backend.gang.mailbox import PRESENT_SECONDS, Aborted, GangMailbox, Keeper, Mailbox, Tag
from matnb.backend.gang.performer import seconds_so_far
from matnb.backend.kept import LocalRef, resolved
from matnb.backend.tasks.worker import Report, TaskFailed, TaskFailure, portable
from matnb.blocks.formats import Block
from matnb.program.plan import Slot
from matnb.program.program import Program

_T = TypeVar("_T")
_TELL_SECONDS = 0.2
_LEAVE_SECONDS = 30.0  # for what must be sent and published at the end
_SPARE_SECONDS = 5.0
# States of a task that the scheduler no longer wants.
_UNWANTED = ("cancelled", "released", "forgotten")

# Programs that members in this process share; others get theirs pickled.
shared_programs: dict[str, Program] = {}
# Drivers in this process, by the name of the gang's plugin: they hear without the scheduler.
drivers_here: dict[str, Callable[[dict[str, Any]], None]] = {}


class Perform(Protocol):
    """Runs one member's part of a program."""

    def __call__(
        self,
        program: Program,
        registers: dict[Slot, Block],
        mailbox: Mailbox,
        num_threads: int,
        keeper: Keeper | None,
        begin: int = 0,
        on_progress: Callable[[int, float], None] | None = None,
        listener: Listener | None = None,
    ) -> Report:
        """Return what the member owns of the results, or of the state where the loop pauses."""


@dataclass(frozen=True)
class MemberCall:
    """What a member is asked to do.

    Attributes
    ----------
    key
        The Dask key of its task.
    epoch
        Which gathering.
    owner
        Which member.
    addresses
        Where each member is.
    program
        The program, pickled; or its name among those that this process shares.
    published
        The Dask keys of results, and of a loop's state where it may pause, by register.
    client
        The Dask client that wants them.
    begin
        The number of the first iteration.
    keeps
        Whether copies of the state are kept.
    continues
        The gatherings before it of a loop that paused; what is kept of them stays.
    watches
        Whether the driver hears what tasks take, and may ask for a pause.
    pause_at
        The loop pauses once so many iterations are done, as was asked for from the start; None for no such
        number.
    topic
        Where progress is reported, or None.
    perform
        What runs the program.
    """

    key: str
    epoch: int
    owner: int
    addresses: Mapping[int, str]
    program: bytes | str
    published: Mapping[Slot, str]
    client: str
    begin: int
    keeps: bool
    continues: tuple[int, ...]
    watches: bool
    pause_at: int | None
    topic: str | None
    perform: Perform


class GangPlugin(WorkerPlugin):  # type: ignore[misc]  # it has no types
    """Makes a worker ready to be a member; its name tells one session's gangs from another's."""

    def __init__(self, name: str) -> None:
        self.name = name

    def setup(self, worker: Worker) -> None:
        """Begin to answer other members and the driver."""
        self._worker = worker
        self._newest = -1  # epochs up to here have begun, or were given up before they did
        self._mailbox: GangMailbox | None = None
        self._key: str | None = None
        self._left: list[GangMailbox] = []  # whose lines other members may still use
        self._traffic = (0, 0)  # of those that have ended
        self.performing: tuple[int, int, int] | None = None  # epoch, member and thread
        self._awaited: dict[int, asyncio.Event] = {}
        self._checkpoints = Checkpoints()
        self._forgotten = -1  # of epochs up to here nothing is kept any more
        self._asked = -1  # the epoch that was asked to pause
        worker.handlers.update(self._handlers())

    async def teardown(self, worker: Worker) -> None:
        """Leave nothing on the worker."""
        for name in self._handlers():
            worker.handlers.pop(name, None)
        self._checkpoints = Checkpoints()
        for mailbox in (*self._left, self._mailbox):
            if mailbox is not None:
                await mailbox.close()

    def transition(self, key: str, start: str, finish: str, **_: Any) -> None:
        """Give the gang up when the scheduler no longer wants the member's task."""
        if key == self._key and finish in _UNWANTED and self._mailbox is not None:
            self._mailbox.abort("its task was cancelled")

    # the member's thread

    def perform(self, call: MemberCall, registers: dict[Slot, Block]) -> Report:
        """Take part in an epoch."""
        performed: Report | None = None
        failed: TaskFailure | None = None
        aborted: str | None = None
        try:
            mailbox = self._on_loop(self._begin(call), PRESENT_SECONDS)
        except Aborted as error:
            return Report(call.owner, aborted=error.reason)
        try:
            self._on_loop(mailbox.gather(), PRESENT_SECONDS + _SPARE_SECONDS)
            program = _program(call.program)
            keeper = RingKeeper(self._checkpoints, mailbox) if call.keeps else None
            on_progress = None
            if call.topic is not None and call.owner == mailbox.members[0]:
                on_progress = teller(call.begin, partial(self.tell, call))
            num_threads = self._worker.state.nthreads
            listener = _DriverListener(self, call) if call.watches else None
            self.performing = call.epoch, call.owner, threading.get_ident()
            performed = call.perform(
                program, registers, mailbox, num_threads, keeper, call.begin, on_progress, listener
            )
            mailbox.check()
        except Aborted as error:
            performed, aborted = None, error.reason
        except TaskFailed as error:
            failed = error.failed
        except Exception as error:  # reported home
            failed = TaskFailure(None, portable(error), traceback.format_exc())
        finally:
            del registers
            self.performing = None
            reason = aborted if failed is None else f"a task of worker {call.owner} raised"
            self._on_loop(self._leave(call, mailbox, performed, reason), _LEAVE_SECONDS)
        if performed is None:
            return Report(call.owner, aborted=aborted, failed=failed)
        return replace(performed, values={})  # the blocks stay here

    def _on_loop(self, work: Coroutine[Any, Any, _T], seconds: float) -> _T:
        loop = self._worker.loop.asyncio_loop
        return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, seconds), loop).result(
            seconds + _SPARE_SECONDS
        )

    def tell(self, call: MemberCall, what: str, *news: object) -> None:
        """Have the driver hear news of an epoch."""
        message = {"gang": self.name, "epoch": call.epoch, what: news}
        driver = drivers_here.get(self.name)
        if driver is not None:
            driver(message)
        else:
            self._worker.log_event(call.topic, message)

    def traffic(self) -> tuple[int, int]:
        """Return the bytes of arrays from and to other members, since the worker was made ready."""
        received, sent = (0, 0) if self._mailbox is None else self._mailbox.traffic
        return self._traffic[0] + received, self._traffic[1] + sent

    def is_asked_to_pause(self, epoch: int) -> bool:
        """Tell whether the driver wants an epoch to pause."""
        return self._asked == epoch

    # the event loop

    async def _begin(self, call: MemberCall) -> GangMailbox:
        if call.epoch <= self._newest:
            raise Aborted("this gathering is over")
        self._newest, self._key = call.epoch, call.key
        self._checkpoints.keep_only(call.continues)
        self._left = [mailbox for mailbox in self._left if mailbox.is_open]
        self._mailbox = GangMailbox(
            self._worker, self._line_name, call.epoch, call.owner, call.addresses, self._save
        )
        for epoch in [one for one in self._awaited if one <= call.epoch]:
            self._awaited.pop(epoch).set()
        return self._mailbox

    async def _leave(
        self, call: MemberCall, mailbox: GangMailbox, performed: Report | None, reason: str | None
    ) -> None:
        if reason is not None:
            mailbox.abort(reason)
        await mailbox.end()
        self._traffic = self.traffic()
        self._mailbox = self._key = None
        self._left.append(mailbox)
        if performed is not None:
            # What it kept stays until the driver says that all have published: another may be lost before.
            await self._publish(
                {call.published[name]: block for name, block in performed.values.items()}, call.client
            )

    async def _publish(self, blocks: Mapping[str, Block], client: str) -> None:
        # Keys of their own, without the history that Dask would keep of a task's value. The worker first:
        # a key that only the worker knows goes with it, one that only the scheduler knows would be asked for.
        if not blocks:
            return
        self._worker.update_data(dict(blocks))
        await self._worker.scheduler.update_data(
            who_has={key: [self._worker.address] for key in blocks},
            nbytes={key: block.nbytes for key, block in blocks.items()},
            client=client,
        )

    def _save(self, epoch: int, iteration: int, blocks: dict[Slot, Block]) -> None:
        # This member may have ended already: what a pause leaves comes as the last.
        if epoch == self._newest and epoch > self._forgotten:
            self._checkpoints.add(epoch, iteration, blocks)

    def _forget(self, epoch: int) -> None:
        self._forgotten = max(self._forgotten, epoch)
        self._checkpoints.keep_only(())

    # what others ask for

    @property
    def _line_name(self) -> str:
        return f"{self.name}-line"

    def _handlers(self) -> dict[str, Callable[..., Any]]:
        return {
            self._line_name: self._answer,
            f"{self.name}-abort": self._give_up,
            f"{self.name}-pause": self._pause,
            f"{self.name}-kept": self._list_kept,
            f"{self.name}-restore": self._restore,
        }

    async def _answer(self, comm: Comm, epoch: int, source: int) -> Status:
        mailbox = await self._mailbox_of(epoch)
        try:
            if mailbox is None:
                await comm.write((("it is over, or never began",),))
            elif not await mailbox.answer(comm, source):
                comm.abort()
        except OSError:
            comm.abort()
        return Status.dont_reply

    async def _mailbox_of(self, epoch: int) -> GangMailbox | None:
        # The other member may have been faster.
        if epoch > self._newest:
            begun = self._awaited.setdefault(epoch, asyncio.Event())
            try:
                await asyncio.wait_for(begun.wait(), PRESENT_SECONDS)
            except TimeoutError:
                return None
        is_current = self._mailbox is not None and self._mailbox.epoch == epoch
        return self._mailbox if is_current else None

    def _give_up(self, epoch: int, reason: str, forget: bool) -> None:
        self._newest = max(self._newest, epoch)
        if self._mailbox is not None and self._mailbox.epoch <= epoch:
            self._mailbox.abort(reason)
        if forget:
            self._forget(epoch)

    def _pause(self, epoch: int) -> None:
        self._asked = epoch

    def _list_kept(self, epoch: int) -> dict[int, tuple[Slot, ...]]:
        return self._checkpoints.inventory(epoch)

    async def _restore(
        self, epoch: int, iteration: int, keys: Mapping[str, Mapping[Slot, str]], client: str
    ) -> None:
        own = keys[self._worker.address]
        blocks = self._checkpoints.blocks(epoch, iteration)
        await self._publish({key: blocks[name] for name, key in own.items()}, client)
        self._forget(self._newest)


class _DriverListener:
    """Tells the driver what one member's tasks take, and asks for the driver's word on a pause."""

    def __init__(self, plugin: GangPlugin, call: MemberCall) -> None:
        self._plugin, self._call = plugin, call

    @property
    def pause_at(self) -> int | None:
        return self._call.pause_at

    def asks_pause(self, iteration: int) -> bool:
        at = self.pause_at
        return (at is not None and iteration >= at) or self._plugin.is_asked_to_pause(self._call.epoch)

    def measured(
        self, iteration: int, num_iterations: int, clock_seconds: float, seconds: Sequence[float]
    ) -> None:
        # On the way that progress takes: from another process through the scheduler, on connections that are
        # there. By the first member it would be a message more, and the driver may not reach the members.
        packed = array("d", seconds).tobytes()
        owner = self._call.owner
        self._plugin.tell(self._call, "measured", owner, iteration, num_iterations, clock_seconds, packed)


# A gang of one member in this process: its part runs on a thread of the worker, with nobody to meet.


class LoneMailbox:
    """The mailbox of a member without others, which only its driver can give up."""

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.members: tuple[int, ...] = (owner,)
        self._reason: str | None = None

    def post(self, target: int, tag: Tag, value: object, sent: Callable[[], None] | None = None) -> None:
        """Send a value to nobody."""
        raise AssertionError("a member alone sends nothing")

    def subscribe(self, arrived: Callable[[int, Tag, object], None]) -> None:
        """Hear nothing."""

    def check(self) -> None:
        """Raise Aborted when the driver gave up."""
        if self._reason is not None:
            raise Aborted(self._reason)

    def abort(self, reason: str) -> None:
        """Give up."""
        self._reason = reason


class LoneMember:
    """One part of a program on a thread of a worker.

    Parameters
    ----------
    epoch, owner
        Which gathering it would be, and which worker.
    hear
        Is told how it goes, as a gang's driver is.
    pause_at
        The outermost loop pauses once so many iterations are done; None for no such number.

    Attributes
    ----------
    pause_at
        As given.
    ended
        Has what it leaves, or why it does not; also when the driver gave up.
    """

    def __init__(
        self,
        epoch: int,
        owner: int,
        hear: Callable[[Mapping[str, Any]], None],
        pause_at: int | None,
    ) -> None:
        self._epoch, self._hear, self.pause_at = epoch, hear, pause_at
        self._thread: int | None = None  # while it performs
        self._is_asked = False
        self.mailbox = LoneMailbox(owner)
        self.ended: concurrent.futures.Future[Report] = concurrent.futures.Future()

    def perform(
        self,
        perform: Perform,
        program: Program,
        registers: dict[Slot, Block],
        num_threads: int,
        first: int,
        tells: bool,
        watches: bool,
    ) -> None:
        """Run the program, on the thread that calls this."""
        on_progress = teller(first, self._tell) if tells else None
        self._thread = threading.get_ident()
        try:
            performed = perform(
                program, registers, self.mailbox, num_threads, None, first, on_progress,
                self if watches else None,
            )  # fmt: skip
            self.mailbox.check()
        except BaseException as error:  # raised again by the driver
            self._thread = None
            self.ended.set_exception(error)
        else:
            self._thread = None
            self.ended.set_result(performed)

    def wait(self, poll_seconds: float, check: Callable[[], None], look: Callable[[], None]) -> Report:
        """Return what it leaves, or raise what it raised; ``check`` and ``look`` are called meanwhile."""
        while not self.ended.done():
            with contextlib.suppress(concurrent.futures.TimeoutError):
                return self.ended.result(poll_seconds)
            check()
            look()
        return self.ended.result()

    def give_up(self, seconds: float) -> None:
        """End it, waiting a while for the kernel that it is in."""
        self.mailbox.abort("interrupted")
        concurrent.futures.wait([self.ended], seconds)

    def seconds_so_far(self) -> tuple[int, Mapping[str, float]]:
        """Return the worker, and what its tasks have taken by kind; for looking only."""
        thread = self._thread
        return self.mailbox.owner, {} if thread is None else seconds_so_far(thread)

    def ask_pause(self) -> None:
        """Have the outermost loop pause after an iteration."""
        self._is_asked = True

    # as the member's listener

    def asks_pause(self, iteration: int) -> bool:
        """Tell whether the loop shall pause after the iteration that begins."""
        return self._is_asked or (self.pause_at is not None and iteration >= self.pause_at)

    def measured(
        self, iteration: int, num_iterations: int, clock_seconds: float, seconds: Sequence[float]
    ) -> None:
        """Tell what the tasks took since the last news."""
        packed = array("d", seconds).tobytes()
        self._tell("measured", self.mailbox.owner, iteration, num_iterations, clock_seconds, packed)

    def _tell(self, what: str, *news: object) -> None:
        self._hear({"epoch": self._epoch, what: news})


def teller(begin: int, tell: Callable[..., None]) -> Callable[[int, float], None]:
    """Return what tells the driver now and then how far a loop is, of all that it hears.

    Parameters
    ----------
    begin
        The number of the first iteration.
    tell
        Called with ``"progress"``, the number of iterations, and what one took of late.
    """
    last = [time.monotonic(), begin]

    def on_progress(iteration: int, _: float) -> None:
        now = time.monotonic()
        if now - last[0] >= _TELL_SECONDS and iteration > last[1]:
            seconds = (now - last[0]) / (iteration - last[1])
            last[:] = now, iteration
            tell("progress", iteration, seconds)

    return on_progress


def run_member(plugin: str, call: MemberCall, names: tuple[Slot, ...], *given: Block | LocalRef) -> Report:
    """Take part in a gang; what a Dask task of it does."""
    ready: GangPlugin | None = get_worker().plugins.get(plugin)
    if ready is None:
        return Report(call.owner, aborted="the worker has come just now")
    return ready.perform(call, dict(zip(names, map(resolved, given), strict=True)))


def _program(program: bytes | str) -> Program:
    found: Program = shared_programs[program] if isinstance(program, str) else pickle.loads(program)
    return found
