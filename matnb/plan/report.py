"""The facts of the line under a cell: all runs and loops of one cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from matnb.events import LoopFinished, Rebalanced, RunFinished
from matnb.pictures.imbalance import imbalance


@dataclass(frozen=True)
class RunReport:
    """The outcome of a cell.

    Attributes
    ----------
    finished
        Counts, bytes and seconds of everything the cell ran.
    left_lazy
        Names that were not computed because they exceed the memo's budget.
    plan_texts
        Give how the largest of the runs and each of the loops was laid out; they hold the plans.
    loops
        The loops and branches that the cell ran.
    repartitions
        What was repartitioned meanwhile.
    workers_text
        What became of workers that were lost since the last cell; nothing where all are there.
    notes
        What loading told.
    """

    finished: RunFinished
    left_lazy: tuple[str, ...]
    plan_texts: tuple[Callable[[], str], ...]
    loops: tuple[LoopFinished, ...] = ()
    repartitions: tuple[Rebalanced, ...] = ()
    workers_text: str = ""
    notes: tuple[str, ...] = ()

    def without_plans(self) -> RunReport:
        """Return the same, holding the text of the plans and not the plans."""
        text = self.plan_text()
        return replace(self, plan_texts=(lambda: text,))

    def plan_text(self) -> str:
        """Return how the runs and the loops were laid out; loops that were laid out alike are shown once."""
        return "\n".join(dict.fromkeys(text() for text in self.plan_texts))


def total(
    runs: tuple[RunFinished, ...],
    loops: tuple[LoopFinished, ...],
    num_operations: int,
    num_merged: int,
    loads: Mapping[int, float],
) -> RunFinished:
    """Return the sum of several runs of one cell; tasks are those outside of loops, other counts are of all.

    ``loads`` are kernel seconds by worker, those in loops too.
    """
    every: tuple[RunFinished | LoopFinished, ...] = (*runs, *loops)
    return RunFinished(
        run=runs[-1].run if runs else "",
        num_operations=num_operations,
        num_merged=num_merged,
        num_stored=sum(run.num_stored for run in runs),
        num_tasks=sum(run.num_tasks for run in runs),
        moved_bytes=sum(run.moved_bytes for run in runs) + sum(loop.sent_bytes for loop in loops),
        projected_bytes=max((one.projected_bytes for one in every), default=0),
        actual_bytes=sum(run.actual_bytes for run in runs),
        imbalance=imbalance(loads) if loads else 1.0,
        seconds=sum(one.seconds for one in every),
        num_run=sum(run.num_run for run in runs),
        num_arrays=sum(run.num_arrays for run in runs),
        num_remembered=sum(run.num_remembered for run in runs),
        flops=sum(one.flops for one in every),
        accessed_bytes=sum(one.accessed_bytes for one in every),
        num_gave_way=sum(run.num_gave_way for run in runs),
    )
