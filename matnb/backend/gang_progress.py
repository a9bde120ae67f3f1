"""What the driver hears of a gang while it runs, whom it tells, and when it asks for a pause."""

from __future__ import annotations

import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from matnb.backend.watch_protocol import Watch
from matnb.program.program import Program, Repeat, batches

_BEAT_SECONDS = 0.25


class Following:
    """Follows one gathering.

    Parameters
    ----------
    program, epoch, first
        What runs, in which gathering, and the number of its first iteration.
    told
        Called now and then with the number of iterations and the seconds that one takes.
    watch
        Hears what tasks take, and may want a pause.
    ask
        Asks the gang for a pause.

    Attributes
    ----------
    wants_pause
        Whether it was asked for.
    pause_at
        The gang is to pause once so many iterations are done, from the start; None for no such number.
    """

    def __init__(
        self,
        program: Program,
        epoch: int,
        first: int,
        told: Callable[[int, float], None] | None,
        watch: Watch | None,
        ask: Callable[[], None],
    ) -> None:
        self._epoch, self._told, self._watch, self._ask = epoch, told, watch, ask
        self._tasks = {} if watch is None else tasks_by_owner(program)
        self._leader = min(self._tasks, default=0)
        self._news: deque[Mapping[str, Any]] = deque()
        self._known, self._when = (first, 0.0), time.monotonic()
        self.wants_pause = watch is not None and watch.wants_pause()
        self.pause_at = first + 1 if self.wants_pause else None if watch is None else watch.pause_at

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take what a member tells, from any thread; news of a gathering before may come late."""
        if message["epoch"] == self._epoch:
            self._news.append(message)

    def look(self) -> None:
        """Hand on what was heard since, and ask for a pause where one is wanted; by the driver's thread."""
        progress = None
        while self._news:
            message = self._news.popleft()
            progress = message.get("progress", progress)
            if "measured" in message:
                self._measured(*message["measured"])
        # Told again where there is no news, so that a person sees that it runs.
        if self._told is not None and (
            progress is not None or time.monotonic() - self._when >= _BEAT_SECONDS
        ):
            self._known, self._when = progress or self._known, time.monotonic()
            self._told(*self._known)
        if self._watch is not None and not self.wants_pause and self._watch.wants_pause():
            self.wants_pause = True
            self._ask()

    def _measured(
        self, owner: int, iteration: int, num_iterations: int, clock_seconds: float, packed: bytes
    ) -> None:
        if self._watch is None:
            return
        seconds = array("d")
        seconds.frombytes(packed)
        by_key = dict(zip(self._tasks.get(owner, ()), seconds, strict=True))
        self._watch.measured(owner, iteration, num_iterations, by_key)
        if owner == self._leader:
            self._watch.advanced(iteration, clock_seconds)


def tasks_by_owner(program: Program) -> dict[int, tuple[str, ...]]:
    """Return the keys of each worker's tasks of the outermost loop's body, in the program's order."""
    found: dict[int, list[str]] = {}
    for loop in [one for one in program.actions if isinstance(one, Repeat)][:1]:
        for batch in batches(loop.body):
            for task in batch.tasks:
                found.setdefault(task.owner, []).append(task.key)
    return {owner: tuple(keys) for owner, keys in found.items()}
