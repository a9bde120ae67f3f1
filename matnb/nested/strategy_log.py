"""The strategies of nested arrays that a session took: as predicted, and as their first reductions ran."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from matnb.events import TaskTimed
from matnb.nested.choice_texts import StrategyFacts, strategies_section
from matnb.nested.choices import StrategyChoice, busiest_seconds
from matnb.nested.segments import Knots, SegmentReduce
from matnb.pictures.facts import HistorySection
from matnb.program.plan import Plan, Stage, Workers
from matnb.session.run_listeners import on_run
from matnb.session.session import Session

_MOST = 200  # choices that are kept
_LEAST_PACES, _MOST_PACES = 3, 9  # of the last reductions: one may have been interrupted
_LEAST_SECONDS = 1e-3  # what is predicted to take less tells little of how fast the workers are


@dataclass(frozen=True)
class StrategyItem:
    """A choice that was made, and what became of it.

    Attributes
    ----------
    choice
        With what was predicted by measured constants, from counts alone.
    pace
        How much longer than that the last reductions of the session took before it was made, 1.0 where there
        were none: what is predicted here is so much more.
    measured_seconds
        Kernel seconds of the busiest slot in the first reduction; None while there was none.
    is_compiled
        Whether machine code was made or read meanwhile; the next reduction's seconds take its place then.
    num_times
        How often it was made for the same structure.
    """

    choice: StrategyChoice
    pace: float = 1.0
    measured_seconds: float | None = None
    is_compiled: bool = False
    num_times: int = 1


@on_run("nested")
class NestedStrategies:
    """Choices, the newest of them; may be read by any thread.

    Parameters
    ----------
    workers
        Returns those that a plan is laid out over now.
    """

    def __init__(self, workers: Callable[[], Workers]) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._items: dict[tuple[Knots, tuple[int, ...]], StrategyItem] = {}
        self._paces: list[float] = []

    def add(self, knots: Knots, choice: StrategyChoice) -> None:
        """Take a choice for a structure; of values in one block there is none."""
        if len(choice.cuts) < 3:
            return
        with self._lock:
            key = knots, choice.cuts
            if key in self._items:
                last = self._items[key]
                self._items[key] = replace(last, num_times=last.num_times + 1)
                return
            self._items[key] = StrategyItem(choice, self._pace())
            if len(self._items) > _MOST:
                del self._items[next(iter(self._items))]

    def _pace(self) -> float:
        # The lower quartile: what else a machine does makes reductions slower, and nothing makes them faster.
        paces = sorted(self._paces)
        return paces[len(paces) // 4] if len(paces) >= _LEAST_PACES else 1.0

    def choices(self) -> tuple[StrategyItem, ...]:
        """Return the choices, the oldest first."""
        with self._lock:
            return tuple(self._items.values())

    def of(self, knots: Knots) -> tuple[StrategyItem, ...]:
        """Return the choices for a structure."""
        with self._lock:
            return tuple(one for (theirs, _), one in self._items.items() if theirs == knots)

    def section(self, measured: bool) -> HistorySection | None:
        """Return the choices as a part of the history."""
        return strategies_section([strategy_facts(one, measured) for one in self.choices()])

    def note(self, plan: Plan, timed: Sequence[TaskTimed]) -> None:
        """Take what a run's reductions took, each for how its values were cut."""
        stages = [one for one in plan.stages if isinstance(one.expression, SegmentReduce)]
        if not stages or not self._items:
            return
        makes = {task.key: task.makes for task in plan.tasks}
        for stage in stages:
            own = [one for one in timed if makes.get(one.key) == stage.makes]
            if own:
                seconds = busiest_seconds([(one.worker, one.seconds) for one in own], self.workers().threads)
                self._measured(stage, seconds, any(one.compiled for one in own))

    def _measured(self, stage: Stage, seconds: float, is_compiled: bool) -> None:
        node = stage.expression
        assert isinstance(node, SegmentReduce)
        with self._lock:
            for (knots, cuts), item in self._items.items():
                if knots != node.knots or _result_cuts(knots, cuts) != stage.layout.grid.cuts[0]:
                    continue
                if item.measured_seconds is None or (item.is_compiled and not is_compiled):
                    found = replace(item, measured_seconds=seconds, is_compiled=is_compiled)
                    self._items[knots, cuts] = found
                predicted = item.choice.cost.work_seconds
                if predicted > _LEAST_SECONDS and not is_compiled:
                    self._paces = [*self._paces[1 - _MOST_PACES :], seconds / predicted]
                return


def strategies_of(session: Session) -> NestedStrategies:
    """Return the choices of a session."""
    found = session.listeners["nested"]
    assert isinstance(found, NestedStrategies)
    return found


def strategy_facts(one: StrategyItem, measured: bool = True) -> StrategyFacts:
    """Return what a picture of a choice is drawn from; not ``measured``, no more than repeats every time."""
    choice, pace = one.choice, one.pace if measured else 1.0
    whole, shares = choice.segmented, choice.uniform
    return StrategyFacts(
        choice.num_segments,
        choice.num_values,
        choice.longest,
        choice.strategy,
        choice.reason,
        (whole.work_seconds * pace, (whole.num_rounds - 1) * whole.round_seconds),
        (shares.work_seconds * pace, (shares.num_rounds - 1) * shares.round_seconds),
        one.measured_seconds if measured else None,
        one.is_compiled,
        one.num_times,
    )


def _result_cuts(knots: Knots, cuts: tuple[int, ...]) -> tuple[int, ...]:
    # How what is left of segments is cut where their values are cut so.
    return tuple(knots.segments[one] for one in knots.cuts_near(cuts))
