"""What an engine is: one method that runs a plan or a program; and what it reports while it runs a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, TypeVar

from matnb.backend.engines.recovery import Resume
from matnb.backend.engines.results import Outcome
from matnb.backend.kept import BlockRef
from matnb.program.plan import Slot

Progress: TypeAlias = Callable[[int, float], None]  # iterations done, and seconds of one
_Runnable = TypeVar("_Runnable", contravariant=True)


class Engine(Protocol[_Runnable]):
    """Runs programs, or plans too, which have no loops and branches."""

    def run(
        self,
        program: _Runnable,
        given: Mapping[Slot, BlockRef],
        fetch: Sequence[Slot] = (),
        hold: Sequence[Slot] = (),
        resume: Resume | None = None,
        on_progress: Progress | None = None,
        watch: Watch | None = None,
    ) -> Outcome:
        """Run a program and return when all its tasks are done, or its outermost loop has paused.

        Parameters
        ----------
        given
            What keeps the value of each slot that the program reads and does not make.
        fetch
            Slots whose values come back to this process with the times.
        hold
            Further slots to keep on the workers, as long as ``Outcome.kept`` has them.
        resume
            Where the outermost loop goes on: its first iteration.
        on_progress
            Is called now and then with the number of the iteration and the seconds that one takes.
        watch
            Hears now and then what tasks of a loop take, and may want a pause.

        Raises
        ------
        OwnersLost
            When a worker of the program died; nothing is left behind.
        TaskFailed
            When a task raised.
        RunCancelled
            On an interrupt; whole arrays that were finished are in its ``outcome``.
        """


class Watch(Protocol):
    """Follows the outermost loop of a program; called by the driver's thread alone.

    Attributes
    ----------
    pause_at
        The loop is to pause once so many iterations are done, neither earlier nor later, and not if it has
        ended by then; None where no such number is known before.
    """

    @property
    def pause_at(self) -> int | None:
        """After how many iterations it is to pause."""

    def measured(
        self, owner: int, iteration: int, num_iterations: int, seconds: Mapping[Slot, float]
    ) -> None:
        """Take what one worker measured.

        Parameters
        ----------
        owner
            The worker.
        iteration
            How many iterations are done.
        num_iterations
            Over how many of them the seconds were taken: those since its last news, without first runs of a
            task, in which things are compiled.
        seconds
            By the slot of each of its tasks the kernel seconds, the sum over these iterations.
        """

    def advanced(self, iteration: int, seconds: float) -> None:
        """Take the number of iterations that are done, and what one takes by the clock."""

    def wants_pause(self) -> bool:
        """Tell whether the loop shall pause when the iteration under way is done; asked every few ms."""
