"""What families register with sessions: listeners to runs, beside the balancer, and what is cheap to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from matnb.backend.cluster.dask_cluster import WorkerInfo
from matnb.errors import warn
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.pictures.facts import HistorySection
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.registration import Registry, is_foreign, name_and_place


class RunListener(Protocol):
    """Notified about each run of a session, except loops and branches."""

    def note(self, plan: Plan, timed: Sequence[TaskTimed]) -> None:
        """Take what a run's tasks took."""

    def section(self, measured: bool) -> HistorySection | None:
        """Return a part of the history, or None; not ``measured``, no more than repeats every time."""


# Each tells whether an array is computed since somebody looks at it, given it, the arrays that are there, the
# workers and how they are arranged.
CHEAP: list[
    Callable[[Expr, Mapping[Expr, StoredArray], Sequence[WorkerInfo], tuple[int, ...] | None], bool]
] = []
Maker = Callable[[Callable[[], Workers]], RunListener]
MAKERS: Registry[str, Maker] = Registry("the listener")
_Maker = TypeVar("_Maker", bound=Maker)


def on_run(name: str) -> Callable[[_Maker], _Maker]:
    """Return a decorator for what makes a session's listener, given what returns its workers.

    It is found as ``session.listeners[name]``. One that raises is left out from then on, with a warning.
    """

    def register(make: _Maker) -> _Maker:
        MAKERS[name] = make
        return make

    return register


class RunListeners(dict[str, RunListener]):
    """The listeners of a session, by name.

    Parameters
    ----------
    workers
        Returns those of the session.
    """

    def __init__(self, workers: Callable[[], Workers]) -> None:
        super().__init__()
        for name, make in MAKERS.items():
            try:
                self[name] = make(workers)
            except Exception as error:  # whatever another package raises, here and below
                self._leave_out(name, make, error)

    def note(self, plan: Plan, timed: Sequence[TaskTimed]) -> None:
        """Tell all what a run's tasks took."""
        for name, listener in tuple(self.items()):
            try:
                listener.note(plan, timed)
            except Exception as error:
                self._leave_out(name, type(listener), error)

    def sections(self, measured: bool) -> tuple[HistorySection, ...]:
        """Return their parts of the history."""
        found = []
        for name, listener in tuple(self.items()):
            try:
                section = listener.section(measured)
                if section is not None and not isinstance(section, HistorySection):
                    raise TypeError(f"section() returned {type(section).__name__}, not a HistorySection")
            except Exception as error:
                self._leave_out(name, type(listener), error)
            else:
                found.append(section)
        return tuple(one for one in found if one is not None)

    def _leave_out(self, name: str, made_by: object, error: Exception) -> None:
        # The user's run goes on; what matnb's own raise is a fault of matnb's.
        if not is_foreign(made_by):
            raise error
        self.pop(name, None)
        place = name_and_place(made_by)
        warn(f"the listener {name!r}, {place}, is left out: {type(error).__name__}: {error}")
