"""What a cell records while it runs: which expressions it wrote, where, and which were written before."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from matnb.events import LoopFinished, RunFinished
from matnb.lazy.expr import Expr


@dataclass(eq=False)
class Recording:
    """The operations of one cell.

    Attributes
    ----------
    filename
        File name under which the cell was compiled; tells the cell's frames from others.
    num_operations, num_merged
        Operations written, and how many of them equal one written before in the cell.
    lines
        The cell lines that wrote each expression, in order.
    runs
        What was run while the cell ran, because it asked for a value.
    plan_text
        How the largest of them was laid out.
    loops
        The loops and branches that were run.
    loop_texts
        How they were laid out, each that differs once.
    """

    filename: str
    num_operations: int = 0
    num_merged: int = 0
    lines: dict[Expr, list[int]] = field(default_factory=dict)
    runs: list[RunFinished] = field(default_factory=list)
    plan_text: str = ""
    loops: list[LoopFinished] = field(default_factory=list)
    loop_texts: dict[str, None] = field(default_factory=dict)

    def note(self, node: Expr) -> None:
        """Note that the cell wrote an expression, with the line that is running."""
        self.num_operations += 1
        line = self._running_line()
        if node in self.lines:
            self.num_merged += 1
            if line is not None and line not in self.lines[node]:
                self.lines[node].append(line)
            return
        self.lines[node] = [] if line is None else [line]

    def _running_line(self) -> int | None:
        frame = sys._getframe(2)
        while frame is not None:
            if frame.f_code.co_filename == self.filename:
                return frame.f_lineno
            frame = frame.f_back  # type: ignore[assignment]  # None ends the walk
        return None


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
