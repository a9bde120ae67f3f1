"""What a session's events come to, as far as no clock is in it."""

from __future__ import annotations

from matnb.events import Event, LoopFinished, Rebalanced, RunFinished
from matnb.pictures.history import is_repeatable
from matnb.pictures.monitor_counts import MonitorCounts


class Tally:
    """Counts runs, loops and re-cuts that ended.

    Attributes
    ----------
    num_workers
        Of the session, 0 without one.
    """

    def __init__(self) -> None:
        self.num_workers = 0
        self._num_runs = self._num_tasks = self._moved_bytes = 0
        self._num_loops = self._num_iterations = self._num_recuts = 0

    def take(self, event: Event) -> None:
        """Take an event."""
        match event:
            case RunFinished():
                self._num_runs += 1
                self._num_tasks += event.num_tasks
                self._moved_bytes += event.moved_bytes
            case LoopFinished(is_branch=False):
                self._num_loops += 1
                self._num_iterations += event.iterations
            case Rebalanced(acted=True):
                self._num_recuts += is_repeatable(event.policy, True, event.by_entries)

    def counts(self) -> MonitorCounts:
        """Return what was counted."""
        return MonitorCounts(
            self.num_workers, self._num_runs, self._num_tasks, self._moved_bytes, self._num_loops,
            self._num_iterations, self._num_recuts,
        )  # fmt: skip
