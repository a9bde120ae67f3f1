"""What the stages of a plan read from other workers: how much, and from which arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from matnb.plan.measured import MadeStage
from matnb.program.operators import Cut, Join
from matnb.program.plan import Stage, Stored, Task
from matnb.program.regions import region_size

_WHOLE = ("product", "part", "combine", "accumulate")  # tasks that give sums of blocks, as large as these
_VERBS = {"reduce": "reduces", "regrid": "re-cuts", "load": "sends", "data": "sends"}


@dataclass(frozen=True)
class Exchange:
    """What one stage reads from other workers.

    Attributes
    ----------
    num_bytes
        About so much, each value counted once for each worker that reads it; 0 where that is not known.
    sources
        Keys of the blocks that they come from, as far as other stages or arrays that are there made them.
    """

    num_bytes: int
    sources: tuple[str, ...]


class Exchanges:
    """Finds what goes from worker to worker.

    Parameters
    ----------
    stages
        Of a plan.
    stored
        Arrays that are there already.
    owners
        Workers of what is there under other keys.
    sizes
        Bytes of values by their keys, where they were measured.
    """

    def __init__(
        self,
        stages: Sequence[Stage],
        stored: Iterable[Stored] = (),
        owners: Mapping[str, int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        self._owners = dict(owners or {})
        self._sizes = dict(sizes or {})
        self._shapes: dict[str, int] = {}  # elements of blocks
        for stage in stages:
            regions = list(stage.layout.grid.regions())
            # Shares of a reduction lie as what is reduced does; each is as large as the value at most.
            is_array = stage.layout.grid.shape == stage.expression.shape
            whole = max(1, stage.expression.size)
            for key, region in zip(stage.tasks, regions, strict=False):
                self._shapes[key] = region_size(region)
                share = region_size(region) / whole if is_array else 1.0
                self._sizes.setdefault(key, int(stage.estimated_bytes * share))
        for array in stored:
            self._owners.update(zip(array.keys, array.layout.owners, strict=False))
            for key, region in zip(array.keys, array.layout.grid.regions(), strict=False):
                self._shapes[key] = region_size(region)
            for key, size in zip(array.keys, array.block_bytes, strict=False):
                self._sizes.setdefault(key, size)

    def place(self, tasks: Iterable[Task]) -> None:
        """Note which workers make the values of tasks."""
        self._owners.update((task.key, task.owner) for task in tasks)

    def of(self, stage: Stage | MadeStage, tasks: Sequence[Task]) -> Exchange | None:
        """Return what a stage reads from other workers, or None.

        Parameters
        ----------
        stage
            One of the stages.
        tasks
            That make it, with those that only lead to them.
        """
        by_key = {task.key: task for task in tasks}
        self.place(tasks)
        moved = dict.fromkeys(
            (key, task.owner)
            for task in tasks
            for key in task.inputs
            if self._owners.get(key, task.owner) != task.owner
        )
        if not moved:
            return None
        part = stage.estimated_bytes // max(1, len(stage.tasks))
        size = sum(self._size(key, by_key, part) for key, _ in moved)
        sources = dict.fromkeys(one for key, _ in moved for one in _sources(key, by_key, stage.tasks))
        return Exchange(size, tuple(sources))

    def _size(self, key: str, tasks: Mapping[str, Task], part: int) -> int:
        if key not in self._sizes:
            self._sizes[key] = self._size_made(tasks[key], tasks, part) if key in tasks else 0
        return self._sizes[key]

    def _size_made(self, task: Task, tasks: Mapping[str, Task], part: int) -> int:
        match task.steps[-1].operator if task.steps else None:
            case Cut(bounds) if len(task.inputs) == 1:
                (source,) = task.inputs
                whole = max(1, self._shapes.get(source, 0))
                share = min(1.0, region_size(bounds) / whole)
                return int(self._size(source, tasks, part) * share)
            case Join(_, shape, dtype, sparse) if not sparse:
                elements = 1
                for length in shape:
                    elements *= length
                return elements * dtype.itemsize
        return part if task.kind in _WHOLE else 0


def _sources(key: str, tasks: Mapping[str, Task], own: Sequence[str]) -> list[str]:
    # Where a value that is moved comes from: itself, or what was read to make it.
    found, waiting, seen = [], [key], set(own)
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        if one in tasks:
            waiting += tasks[one].inputs
        else:
            found.append(one)
    return found


def verb_of(kind: str) -> str:
    """Return what a stage of a kind does with what comes from other workers, in a word."""
    return _VERBS.get(kind, "gathers")
