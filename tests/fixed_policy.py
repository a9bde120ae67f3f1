"""A policy that repartitions at some iterations whatever it sees, a skewed matrix, and loops to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse as sp

import matnb as mn
from matnb.balance.decision import Decision, Gain
from matnb.balance.policy import Off
from matnb.balance.situation import Situation
from matnb.blocks.layout import Cuts
from matnb.events import BlocksMoved, Event, Rebalanced
from matnb.session import groups, loop_parts

NUM_ROWS = 2000
rng = np.random.default_rng(3)


def skewed(num_rows: int = NUM_ROWS, num_entries: int = 40_000) -> sp.csr_array:
    rows = (num_rows * rng.random(num_entries) ** 3).astype(np.int64)
    columns = rng.integers(0, num_rows, num_entries)
    found = sp.csr_array((rng.random(num_entries), (rows, columns)), shape=(num_rows, num_rows))
    found.sum_duplicates()
    return found


A = skewed()
B = rng.random(NUM_ROWS)


@dataclass(eq=False)
class Stubborn:
    """Re-cuts at some iterations, whatever it sees, and remembers what that was."""

    cuts: dict[int, tuple[int, ...]]
    name: str = "stubborn"
    seen: list[Situation] = field(default_factory=list)
    gains: list[Gain] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    def decide(self, situation: Situation) -> Decision:
        self.seen.append(situation)
        kept = replace(Off().decide(situation), policy=self.name)
        due = [one for one in self.cuts if one <= situation.iteration]
        if not due:
            return kept
        wanted = self.cuts[max(due)]
        if situation.cuts.cuts == wanted:
            return kept
        half = (len(wanted) - 1) // 2
        owners = (0,) * half + (1,) * (len(wanted) - 1 - half)
        return replace(kept, acts=True, reason="stubborn: it wants to", after=Cuts(wanted, owners))

    def brought(self, decision: Decision, gain: Gain) -> None:
        self.decisions.append(decision)
        self.gains.append(gain)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    # So that arrays of tests are looked at, and at once.
    monkeypatch.setattr(groups, "LEAST_BYTES", 0)
    monkeypatch.setattr(loop_parts, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def sessions() -> Iterator[Callable[..., mn.session.Session]]:
    yield lambda **options: mn.start(**{"workers": 2, "threads": 1, **options})
    mn.stop()


def told(session: mn.session.Session) -> list[Event]:
    events: list[Event] = []
    wanted = Rebalanced | BlocksMoved
    session.subscribe(lambda event: events.append(event) if isinstance(event, wanted) else None)
    return events


def looped(array: mn.DistArray, num_iterations: int = 300) -> np.ndarray:
    def step(x: mn.DistArray) -> mn.DistArray:
        y = array @ x
        return y / y.max() + 0.1

    return mn.iterate(step, mn.asarray(B, blocks=4), max_iterations=num_iterations)[0].compute()
