"""What a member does between iterations of the outermost loop: checkpoint, report, pause."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from matnb.backend.gang.jobs import TaskJob
from matnb.backend.gang.mailbox import Keeper, Mailbox
from matnb.backend.gang.member import MemberRegisters, Signal
from matnb.backend.tasks.registers import Pool
from matnb.program.plan import Slot

_SETTLED = 2  # iterations, until every kind of register was filled and what is compiled is compiled
# Between two news of what the tasks take: at first the least, then a tenth of the time that the loop has run.
_TELL_SECONDS, _MOST_TELL_SECONDS = 0.05, 0.1
_FIRST_TOLD = 2  # iterations after which the first news is sent sooner
# What the first member says as an iteration begins; it holds at its end. That is a message to each other one,
# so it says with it for how many iterations it will say nothing: as many as take this long.
_NOTHING, _KEEP, _PAUSE = range(3)
_QUIET_SECONDS = 0.02


class Listener(Protocol):
    """Whom a member tells what its tasks take, and who may want a pause.

    Attributes
    ----------
    pause_at
        The loop pauses once so many iterations are done; None where no such number is known before.
    """

    @property
    def pause_at(self) -> int | None:
        """See above."""

    def asks_pause(self, iteration: int) -> bool:
        """Tell whether the loop shall pause after the iteration that begins; the first member asks.

        Parameters
        ----------
        iteration
            How many will be done then.
        """

    def measured(
        self, iteration: int, num_iterations: int, clock_seconds: float, seconds: Sequence[float]
    ) -> None:
        """Take what the tasks of the loop's body took here since the last news.

        Parameters
        ----------
        iteration
            How many iterations are done.
        num_iterations
            How many of them since the last news.
        clock_seconds
            What one of these took by the clock.
        seconds
            Of each task of this member, in the program's order, the sum over these iterations.
        """


class IterationBoundary:
    """Watches over one member's way through the outermost loop.

    Parameters
    ----------
    member, pool, mailbox
        Of the member.
    jobs
        Those of the loop's body, loops inside among them, in the program's order.
    keeper
        Keeps the state now and then, or None.
    on_progress
        Called by the first member after each iteration with its number and its seconds.
    listener
        Hears what tasks take, and may ask for a pause.
    num_threads
        Of the member.

    Attributes
    ----------
    allocated
        How many arrays of 64 KiB or more were newly made, by iteration.
    """

    def __init__(
        self,
        member: MemberRegisters,
        pool: Pool,
        mailbox: Mailbox,
        jobs: Sequence[TaskJob],
        keeper: Keeper | None,
        on_progress: Callable[[int, float], None] | None,
        listener: Listener | None,
        num_threads: int,
    ) -> None:
        self.allocated: list[int] = []
        self._member, self._pool, self._jobs = member, pool, jobs
        self._keeper, self._listener = keeper, listener
        self._first = mailbox.members[0]
        self._on_progress = on_progress if mailbox.owner == self._first else None
        self._num_allocated = self._num_ended = 0
        # How many more registers may live at once when threads or messages come in another order.
        self._spare = 2 * (num_threads - 1) + len(mailbox.members) - 1
        self._begun = self._since = time.perf_counter()
        self._word: Signal | None = None  # None in an iteration in which nothing is said
        self._quiet_until = 0
        self._seconds = 0.0  # of the last iteration
        self._news: _News | None = None

    def begin(self, taken: int) -> None:
        """Poll now and then for what to do after this iteration; the first member decides for all.

        Parameters
        ----------
        taken
            How many iterations are done, without this one.
        """
        self._word = None
        if (self._keeper is not None or self._listener is not None) and taken >= self._quiet_until:
            self._word = self._member.tell(self._first, partial(self._wanted, taken + 1))

    def end(self, taken: int, state: Sequence[Slot], is_content: bool, is_last: bool) -> bool:
        """Keep the state where that is due, tell how it goes, and return whether the loop pauses.

        Parameters
        ----------
        taken
            How many iterations are done.
        state
            The registers of the state.
        is_content
            Whether ``until`` was: no loop goes on from such a state.
        is_last
            Whether the loop ends now.
        """
        word = _NOTHING
        if self._word is not None:
            word, num_quiet = self._member.hear(self._word)
            self._quiet_until = taken + num_quiet
        pauses = word == _PAUSE and not is_last
        if self._keeper is not None and (pauses or (word != _NOTHING and not is_content)):
            held = self._member.held
            self._keeper.save(taken, {name: held[name].value for name in state if name in held})
        self._num_ended += 1
        if self._num_ended == _SETTLED:
            self._pool.reserve(self._spare)
        self.allocated.append(self._pool.num_allocated - self._num_allocated)
        self._num_allocated = self._pool.num_allocated
        now = time.perf_counter()
        self._seconds = now - self._since
        if self._on_progress is not None:
            self._on_progress(taken, self._seconds)
        if self._listener is not None and self._num_ended >= _SETTLED:
            self._tell_times(self._listener, taken, now)
        self._since = now
        return pauses

    def _wanted(self, iteration: int) -> tuple[int, int]:
        # What is done after an iteration, and after how many more the next word comes.
        if self._listener is not None and self._listener.asks_pause(iteration):
            return _PAUSE, 0
        if self._keeper is not None and self._keeper.is_due():
            return _KEEP, 0
        num_quiet = int(_QUIET_SECONDS / self._seconds) if self._seconds else 0
        pause_at = None if self._listener is None else self._listener.pause_at
        if pause_at is not None and pause_at > iteration:
            num_quiet = min(num_quiet, pause_at - iteration - 1)
        return _NOTHING, num_quiet

    def _tell_times(self, listener: Listener, taken: int, now: float) -> None:
        news = self._news
        if news is None:
            self._news = _News(taken, now, self._spent(), True)
            return
        count = taken - news.iteration
        due = min(max(_TELL_SECONDS, (now - self._begun) / 10), _MOST_TELL_SECONDS)
        if now - news.when < due and not (news.is_first and count >= _FIRST_TOLD):
            return
        spent = self._spent()
        seconds = [after - before for before, after in zip(news.spent, spent, strict=True)]
        listener.measured(taken, count, (now - news.when) / count, seconds)
        self._news = _News(taken, now, spent, False)

    def _spent(self) -> list[float]:
        return [job.seconds - job.first_seconds for job in self._jobs]


class _News:
    """The last news: after which iteration, when, and what each job had taken by then."""

    __slots__ = ("is_first", "iteration", "spent", "when")

    def __init__(self, iteration: int, when: float, spent: list[float], is_first: bool) -> None:
        self.iteration, self.when, self.spent, self.is_first = iteration, when, spent, is_first
