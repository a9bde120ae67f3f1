"""The Dask graph that starts a gang: one task per member, with what that member is to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dask._task_spec import Task as GraphTask
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer

from matnb.backend.engines.graphs import Verbatim, reference_to
from matnb.backend.gang.member_life import MemberCall, Perform, run_member
from matnb.backend.kept import BlockRef
from matnb.program.plan import Slot
from matnb.program.program import Iterate, Program, batches


@dataclass(frozen=True)
class Gathering:
    """Which gathering, and of whom.

    Attributes
    ----------
    prefix
        Put before every name.
    epoch
        Its number.
    addresses
        Where each member is, in ascending order of members.
    state
        The registers whose copies let a loop go on after a loss; none where copies are not kept.
    continues
        The gatherings before it of a loop that paused.
    """

    prefix: str
    epoch: int
    addresses: Mapping[int, str]
    state: frozenset[Slot]
    continues: tuple[int, ...] = ()

    def key(self, name: Slot | str) -> str:
        """Return the Dask key for a name."""
        return f"{self.prefix}g{self.epoch}-{name}"


def graph_of(
    gathering: Gathering,
    program: Program,
    shipped: bytes | str,
    given: Mapping[Slot, BlockRef],
    plugin: str,
    client: str,
    perform: Perform,
    begin: int,
    tells: bool,
    watches: bool = False,
    pause_at: int | None = None,
) -> tuple[HighLevelGraph, dict[int, str]]:
    """Return the graph and the key of each member's task.

    Parameters
    ----------
    shipped
        The program as :class:`~matnb.backend.gang.member_life.MemberCall` has it.
    given
        What keeps each given register.
    plugin
        What makes the workers ready.
    client
        The Dask client that wants the results and, if ``tells``, hears of the progress.
    perform
        What runs a member's part.
    begin
        The number of the first iteration.
    watches
        Whether the driver follows the loop.
    pause_at
        The loop is to pause once so many iterations are done; None for no such number.
    """
    names = (*program.results, *(state_of(program) if watches else ()))
    published = {name: gathering.key(name) for name in names}
    keys = {owner: gathering.key(f"member{owner}") for owner in gathering.addresses}
    layers = {}
    for owner, address in gathering.addresses.items():
        key, names = keys[owner], tuple(name for name, holder in program.given.items() if holder == owner)
        call = MemberCall(
            key, gathering.epoch, owner, gathering.addresses, shipped, published, client, begin,
            bool(gathering.state), gathering.continues, watches, pause_at,
            client if tells or watches else None, perform,
        )  # fmt: skip
        references = (reference_to(given[name]) for name in names)
        task = GraphTask(key, run_member, plugin, call, Verbatim(names), *references)
        pinned = {"workers": [address], "allow_other_workers": False}
        layers[key] = MaterializedLayer({key: task}, annotations=pinned)
    return HighLevelGraph(layers, {name: set() for name in layers}), keys


def owners_of(program: Program) -> frozenset[int]:
    """Return the workers that hold or make anything of a program."""
    tasks = {task.owner for batch in batches(program.actions) for task in batch.tasks}
    return frozenset(tasks | set(program.owners.values()) | set(program.given.values()))


def state_of(program: Program) -> frozenset[Slot]:
    """Return the registers of the outermost loop's state; none when it is not kept, or of two such loops.

    Then the number of iterations would not say where a program was.
    """
    if not program.keeps:
        return frozenset()
    loops = [action for action in program.actions if isinstance(action, Iterate)]
    return frozenset(name for names in loops[0].state for name in names) if len(loops) == 1 else frozenset()
