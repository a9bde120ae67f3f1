"""What an engine reports while it runs a loop, and how it is asked to pause between iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from matnb.program.plan import Slot


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
