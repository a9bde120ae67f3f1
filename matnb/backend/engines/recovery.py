"""Where a loop resumes: the newest checkpoint that the survivors hold in full."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distributed import Future

from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.engines.gang_graph import Gathering
from matnb.backend.kept import BlockRef
from matnb.program.plan import Slot

Inventory = Mapping[str, Mapping[int, Sequence[Slot]]]  # what each address keeps, by iteration


@dataclass(frozen=True)
class Resume:
    """Where a loop can go on after a loss or a pause.

    Attributes
    ----------
    iteration
        The number of iterations that were done.
    futures
        The state then, by register.
    owners
        The worker that holds each.
    epoch
        The gathering that was there; 0 where it was none.
    """

    iteration: int
    futures: Mapping[Slot, BlockRef]
    owners: Mapping[Slot, int]
    epoch: int = 0


class KeptStates:
    """The states that workers keep of a loop, over all gatherings between its pauses.

    Parameters
    ----------
    cluster
        Where they are.
    tell
        Asks workers, by their addresses, and returns what they answer.
    future
        Makes the future of a Dask key.
    """

    def __init__(
        self, cluster: DaskCluster, tell: Callable[..., dict[str, Any]], future: Callable[[str], Future]
    ) -> None:
        self._cluster, self._tell, self._future = cluster, tell, future
        self._gatherings: list[Gathering] = []  # the newest last

    @property
    def epochs(self) -> tuple[int, ...]:
        """The gatherings of the loop so far."""
        return tuple(one.epoch for one in self._gatherings)

    def go_on(self, resume: Resume | None) -> tuple[int, ...]:
        """Return the gatherings to resume from a checkpoint; the gatherings of other loops are dropped."""
        if resume is None or resume.epoch not in self.epochs:
            self._gatherings.clear()
        return self.epochs

    def add(self, gathering: Gathering) -> None:
        """Note a gathering that begins."""
        self._gatherings.append(gathering)

    def recover(self) -> Resume | None:
        """Return the newest state of which the workers left have all; they forget what they kept."""
        gatherings, self._gatherings = self._gatherings, []
        left = self._left(gatherings)
        if not any(one.state for one in gatherings):
            return None
        newest, chosen, held = None, gatherings[-1], {}
        for gathering in reversed(gatherings):
            kept = self._tell(left, "kept", epoch=gathering.epoch) if gathering.state else {}
            newest = newest_whole(kept, gathering.state) if gathering.state else None
            if newest is not None:
                chosen, held = gathering, holders(kept, newest, gathering.state)
                break
        places: dict[str, dict[Slot, str]] = {address: {} for address in left}
        for name, address in held.items():
            places[address][name] = chosen.key(f"kept-{name}")
        restored = self._tell(
            left, "restore", epoch=chosen.epoch, iteration=newest or 0, keys=places,
            client=self._cluster.client.id,
        )  # fmt: skip
        futures = {name: self._future(places[address][name]) for name, address in held.items()}
        if newest is None or len(restored) < len(left):
            return None  # what others have restored goes with the futures
        return Resume(newest, futures, {name: left[one] for name, one in held.items()}, chosen.epoch)

    def forget(self) -> None:
        """Have all workers let go of what they keep."""
        gatherings, self._gatherings = self._gatherings, []
        if any(one.state for one in gatherings):
            left, newest = self._left(gatherings), gatherings[-1].epoch
            self._tell(left, "abort", epoch=newest, reason="", forget=True)

    def _left(self, gatherings: Collection[Gathering]) -> dict[str, int]:
        alive = set(self._cluster.alive())
        return {
            address: owner
            for gathering in gatherings
            for owner, address in gathering.addresses.items()
            if owner in alive
        }


def newest_whole(kept: Inventory, state: frozenset[Slot]) -> int | None:
    """Return the last iteration of whose state every register is kept somewhere."""
    iterations = {iteration for one in kept.values() for iteration in one}
    for iteration in sorted(iterations, reverse=True):
        if state <= {name for one in kept.values() for name in one.get(iteration, ())}:
            return iteration
    return None


def holders(kept: Inventory, iteration: int, state: frozenset[Slot]) -> dict[Slot, str]:
    """Return an address that keeps each register of an iteration's state."""
    found = {name: address for address, one in kept.items() for name in one.get(iteration, ())}
    return {name: found[name] for name in sorted(state)}
