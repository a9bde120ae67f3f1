"""What a report shows in the load monitor's place: counts, which are the same every time."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, plural_text

NOTE = "Loads, memory and seconds are shown live."


@dataclass(frozen=True)
class MonitorCounts:
    """What was heard and does not follow from any clock.

    Attributes
    ----------
    num_workers
        Of the session, 0 without one.
    num_runs, num_tasks, moved_bytes
        Over all runs, those of loops' bodies counted once.
    num_loops, num_iterations
        That ended.
    num_recuts
        Of those that come out the same every time.
    """

    num_workers: int = 0
    num_runs: int = 0
    num_tasks: int = 0
    moved_bytes: int = 0
    num_loops: int = 0
    num_iterations: int = 0
    num_recuts: int = 0


def counts_text(counts: MonitorCounts) -> str:
    """Return the counts, and what is not told, in two lines."""
    return f"{_line(counts)}\n{NOTE}"


def counts_html(counts: MonitorCounts) -> str:
    """Return the same as HTML."""
    return (
        f'<div><div style="font-size:13px">{escaped(_line(counts))}</div>'
        f'<div style="font-size:12px;opacity:.8">{NOTE}</div></div>'
    )


def _line(counts: MonitorCounts) -> str:
    if not counts.num_workers:
        return "load monitor: no session yet"
    words = [plural_text(counts.num_workers, "worker"), plural_text(counts.num_runs, "run")]
    words.append(f"{plural_text(counts.num_tasks, 'task')}, {bytes_text(counts.moved_bytes)} moved")
    if counts.num_loops:
        iterations = plural_text(counts.num_iterations, "iteration")
        words.append(f"{plural_text(counts.num_loops, 'loop')} of {iterations} together")
    if counts.num_recuts:
        words.append(plural_text(counts.num_recuts, "re-cut"))
    return f"load monitor: {', '.join(words)}"
