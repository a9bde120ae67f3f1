"""The parts of a loop between its pauses: where each begins, and what all of them took together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from matnb.backend.driver_loops import Driven, added
from matnb.backend.recovery import Resume
from matnb.backend.results import GangOutcome
from matnb.backend.store import Entry
from matnb.blocks.layout import Layout
from matnb.events import TaskTimed
from matnb.expr.control import Cond, Loop
from matnb.expr.nodes import Expr
from matnb.program.plan import Stored

_BEFORE = "before-"  # in the names of a state's registers, where a loop goes on from it


@dataclass(frozen=True)
class Begin:
    """Where a loop goes on after a loss or a pause: the arrays of its state as workers hold them."""

    resume: Resume
    states: tuple[Stored, ...]

    def entries(self, node: Loop | Cond) -> dict[Expr, Entry]:
        """Return the arrays by the loop's variables."""
        found: dict[Expr, Entry] = {}
        for variable, array in zip(node.variables, self.states, strict=False):
            futures = tuple(self.resume.futures[key.removeprefix(_BEFORE)] for key in array.keys)
            found[variable] = Entry(array, futures)
        return found


def begin_at(
    resume: Resume, states: Sequence[Stored], counts: Mapping[str, tuple[int, int]] | None = None
) -> Begin:
    """Return where a loop goes on whose ``states`` were laid out so; ``counts`` are of its registers."""
    found = []
    for array in states:
        layout = Layout(array.layout.grid, tuple(resume.owners[key] for key in array.keys))
        keys = tuple(f"{_BEFORE}{key}" for key in array.keys)
        nnz, sizes = array.block_nnz, array.block_bytes
        if counts is not None and all(key in counts for key in array.keys):
            nnz, sizes = zip(*(counts[key] for key in array.keys), strict=True)
        found.append(Stored(layout, keys, nnz, sizes))
    return Begin(resume, tuple(found))


@dataclass
class Taken:
    """What the parts of a loop took so far.

    Attributes
    ----------
    states
        How the state was laid out in each gathering of a gang.
    num_pauses
        After so many parts it went on.
    """

    states: dict[int, tuple[Stored, ...]] = field(default_factory=dict)
    num_pauses: int = 0
    seconds: float = 0.0
    sent_bytes: int = 0
    allocated: list[int] = field(default_factory=list)
    _timed: dict[str, TaskTimed] = field(default_factory=dict)

    def add(self, done: GangOutcome | Driven) -> None:
        """Add what a part took."""
        self.seconds += done.seconds
        for one in done.timed:
            before = self._timed.get(one.key)
            self._timed[one.key] = one if before is None else added(before, one)
        if isinstance(done, GangOutcome):
            self.sent_bytes += done.sent_bytes
            self.allocated += done.allocated

    @property
    def timed(self) -> tuple[TaskTimed, ...]:
        """One record a task: seconds over all parts."""
        return tuple(self._timed.values())
