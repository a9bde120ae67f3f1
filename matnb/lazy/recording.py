"""What a cell records while it runs: which expressions it wrote, where, and which were written before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from matnb.events import LoopFinished, Rebalanced, RunFinished
from matnb.expr.nodes import Expr


@dataclass(eq=False)
class Recording:
    """The operations of one cell.

    Attributes
    ----------
    filename
        File name under which the cell was compiled; tells the cell's frames from others.
    num_merged
        How many operations equal one written before in the cell.
    written
        The expressions that were written, in order, repeats included.
    lines
        The cell lines that wrote each expression, in order.
    runs
        What was run while the cell ran, because it asked for a value.
    plan_text
        Gives how the largest of them was laid out, when asked.
    loops
        The loops and branches that were run.
    repartitions
        What was repartitioned meanwhile.
    loads
        The kernel seconds of each worker, of runs and loops.
    names
        The names that the cell gave arrays, with their expressions.
    notes
        What loading told.
    loop_texts
        Give how they were laid out.
    num_seen
        How many expressions were written when a value was asked for last.
    unread
        Those of them that no value has needed yet.
    """

    filename: str
    num_merged: int = 0
    written: list[Expr] = field(default_factory=list)
    lines: dict[Expr, list[int]] = field(default_factory=dict)
    runs: list[RunFinished] = field(default_factory=list)
    plan_text: Callable[[], str] | None = None
    loops: list[LoopFinished] = field(default_factory=list)
    repartitions: list[Rebalanced] = field(default_factory=list)
    loads: dict[int, float] = field(default_factory=dict)
    names: dict[str, Expr] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    loop_texts: list[Callable[[], str]] = field(default_factory=list)
    num_seen: int = 0
    unread: list[Expr] = field(default_factory=list)

    @property
    def num_operations(self) -> int:
        """How many operations were written."""
        return len(self.written)

    def note(self, node: Expr) -> None:
        """Note that the cell wrote an expression, with the line that is running."""
        self.written.append(node)
        filename = self.filename
        frame = sys._getframe(1).f_back
        while frame is not None and frame.f_code.co_filename != filename:
            frame = frame.f_back
        written = self.lines.get(node)
        if written is None:
            self.lines[node] = [] if frame is None else [frame.f_lineno]
            return
        self.num_merged += 1
        if frame is not None and frame.f_lineno not in written:
            written.append(frame.f_lineno)


_active: ContextVar[Recording | None] = ContextVar("matnb_recording", default=None)


def active_recording() -> Recording | None:
    """Return the recording of the cell that is running, if any."""
    return _active.get()


@contextmanager
def recording(filename: str) -> Iterator[Recording]:
    """Record the DistArray operations of the code inside, which was compiled under ``filename``."""
    record = Recording(filename)
    token = _active.set(record)
    try:
        yield record
    finally:
        _active.reset(token)


@contextmanager
def resumed(record: Recording) -> Iterator[None]:
    """Let lines that are noted inside go to a recording that may have ended."""
    token = _active.set(record)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def recording_apart() -> Iterator[None]:
    """Let a cell keep what ran inside, but none of the expressions: they hold what they were made from."""
    record = active_recording()
    if record is None:
        yield
        return
    inner = Recording(record.filename)
    try:
        with resumed(inner):
            yield
    finally:
        record.runs += inner.runs
        record.loops += inner.loops
        record.repartitions += inner.repartitions
        record.notes += inner.notes
        for worker, seconds in inner.loads.items():
            record.loads[worker] = record.loads.get(worker, 0.0) + seconds


def keep_lines(new: Mapping[Expr, Expr]) -> None:
    """Tell the cell that is recorded that expressions were written where those were that they stand for."""
    record = active_recording()
    if record is None:
        return
    for written, node in new.items():
        if node is not written and written in record.lines:
            lines = record.lines.setdefault(node, [])
            lines.extend(line for line in record.lines[written] if line not in lines)
