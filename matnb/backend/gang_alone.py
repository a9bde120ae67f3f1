"""A gang of one member in this process: its part runs on a thread of the worker, with nobody to meet."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from matnb.backend.gang import Perform, teller
from matnb.backend.mailbox import Aborted, Tag
from matnb.backend.performer import Performed
from matnb.blocks.formats import Block
from matnb.program.plan import Slot
from matnb.program.program import Program

# Members that perform now, by the prefix of their session: number of the gathering, worker and thread.
performing_alone: dict[str, tuple[int, int, int]] = {}


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
    prefix, epoch, owner
        Of the session, and which gathering it would be, of which worker.
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
        prefix: str,
        epoch: int,
        owner: int,
        hear: Callable[[Mapping[str, Any]], None],
        pause_at: int | None,
    ) -> None:
        self._prefix, self._epoch, self._hear, self.pause_at = prefix, epoch, hear, pause_at
        self._is_asked = False
        self.mailbox = LoneMailbox(owner)
        self.ended: concurrent.futures.Future[Performed] = concurrent.futures.Future()

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
        told = teller(first, self._tell) if tells else None
        performing_alone[self._prefix] = self._epoch, self.mailbox.owner, threading.get_ident()
        try:
            performed = perform(
                program, registers, self.mailbox, num_threads, None, first, told, self if watches else None
            )
            self.mailbox.check()
        except BaseException as error:  # raised again by the driver
            performing_alone.pop(self._prefix, None)
            self.ended.set_exception(error)
        else:
            performing_alone.pop(self._prefix, None)
            self.ended.set_result(performed)

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


def wait(
    member: LoneMember, poll_seconds: float, check: Callable[[], None], look: Callable[[], None]
) -> Performed:
    """Return what a member leaves, or raise what it raised; ``check`` and ``look`` are called meanwhile."""
    while True:
        try:
            return member.ended.result(timeout=poll_seconds)
        except concurrent.futures.TimeoutError:
            if member.ended.done():
                raise
            check()
            look()


def give_up(member: LoneMember, seconds: float) -> None:
    """End a member, waiting a while for the kernel that it is in."""
    member.mailbox.abort("interrupted")
    end = time.monotonic() + seconds
    while not member.ended.done() and time.monotonic() < end:
        time.sleep(0.001)
