"""A trace: decisions and measured times, to be looked at, repeated and decided upon again."""

from __future__ import annotations

from dataclasses import dataclass

from matnb.balance.decision import Passed
from matnb.balance.recorded import Recorded
from matnb.balance.trace_text import read_trace, write_trace


@dataclass(frozen=True, eq=False)
class Trace:
    """All that was decided, and what was measured meanwhile.

    Attributes
    ----------
    passed
        Decisions, the oldest first.
    recorded
        Times, for each stretch with the same cuts.
    num_dropped
        Decisions that were too old to be kept.

    Examples
    --------
    >>> Trace.from_json(Trace((), ()).to_json()).passed
    ()
    """

    passed: tuple[Passed, ...]
    recorded: tuple[Recorded, ...] = ()
    num_dropped: int = 0

    def to_json(self) -> str:
        """Return the trace as JSON, a line for each decision and each row of times; ASCII only.

        Every number is kept exactly. Seconds are in it; the time of day is not.
        """
        return write_trace(self.passed, self.recorded, self.num_dropped)

    @classmethod
    def from_json(cls, text: str, name: str = "the trace") -> Trace:
        """Return the trace that a text holds.

        Parameters
        ----------
        text
            What :meth:`to_json` gave.
        name
            Of the file it is from, for errors.

        Raises
        ------
        FileFormatError
            When it is not JSON, no trace, of another version, or holds what a trace cannot.
        """
        return cls(*read_trace(text, name))
