"""What families register with sessions: listeners to runs, beside the balancer, and what is cheap to show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from matnb.backend.cluster.dask_cluster import WorkerInfo
from matnb.events import TaskTimed
from matnb.expr.nodes import Expr
from matnb.pictures.facts import HistorySection
from matnb.program.plan import Plan, StoredArray, Workers
from matnb.registration import Registry


class RunListener(Protocol):
    """Notified about each run of a session."""

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

    It is found as ``session.listeners[name]``.
    """

    def register(make: _Maker) -> _Maker:
        MAKERS[name] = make
        return make

    return register
