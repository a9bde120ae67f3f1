"""Where a loop goes on after a loss: the newest state that the workers left have all of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from distributed import Future

Kept = Mapping[str, Mapping[int, Sequence[str]]]  # what each address keeps, by iteration


@dataclass(frozen=True)
class Resume:
    """Where a loop can go on after a loss.

    Attributes
    ----------
    iteration
        The number of iterations that were done.
    futures
        The state then, by register.
    owners
        The worker that holds each.
    """

    iteration: int
    futures: Mapping[str, Future]
    owners: Mapping[str, int]


def newest_whole(kept: Kept, state: frozenset[str]) -> int | None:
    """Return the last iteration of whose state every register is kept somewhere."""
    iterations = {iteration for one in kept.values() for iteration in one}
    for iteration in sorted(iterations, reverse=True):
        if state <= {name for one in kept.values() for name in one.get(iteration, ())}:
            return iteration
    return None


def holders(kept: Kept, iteration: int, state: frozenset[str]) -> dict[str, str]:
    """Return an address that keeps each register of an iteration's state."""
    found = {name: address for address, one in kept.items() for name in one.get(iteration, ())}
    return {name: found[name] for name in sorted(state)}
