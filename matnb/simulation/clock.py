"""Simulates plans and programs on a described cluster with a virtual clock: seconds, bytes, memory.

Nothing runs. A worker does its tasks depth first, as Dask does, on its threads; a value goes to a worker
once, and what leaves or reaches a machine shares its link. So the figures follow from the plan and the
description alone; they are simulated, and say how plans compare rather than what a clock would show.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from math import ceil, inf, isfinite
from types import MappingProxyType
from typing import Any

import numpy as np

from matnb.config import parse_bytes
from matnb.errors import OptionError
from matnb.expr.nodes import Expr, MatMul, Transpose
from matnb.pictures.quantities import bytes_text, plural_text, seconds_text
from matnb.plan.looping import ControlPlan
from matnb.program.kinds import Role
from matnb.program.memory import depth_first
from matnb.program.operators import Cut, FusedKernel, Join, Multiply
from matnb.program.plan import Plan, PlanWork, Slot, Stage, Task, Workers
from matnb.program.program import EXPECTED, TOUCHED_AT_MOST, Action, Batch, Branch, Iterate, batches
from matnb.program.regions import region_size
from matnb.simulation.pictures import SimulationFacts, shares_of, simulation_svg

# Measured on one core of a shared machine: products of matrices of 1500^2 43 to 51, x + 1 2.6 to 3.7.
FLOPS_PER_SECOND = 45e9
BYTES_PER_SECOND = 3e9  # read and written
SPARSE_ENTRY_SECONDS = 10e-9  # of an entry of a sparse product of two: 9 to 23 for graphs of 2^12 to 2^16
TASK_SECONDS = 300e-6  # of Dask
LOOP_TASK_SECONDS = 40e-6  # of a gang
_LAYING_OUT = (Role.LAYS_OUT, Role.MOVES, Role.JOINS)
_BITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9, "tbps": 10**12}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "\u00b5s": 1e-6, "ns": 1e-9}


@dataclass(frozen=True)
class Cluster:
    """A cluster that :func:`matnb.simulate` lays plans out over; it need not exist.

    Parameters
    ----------
    nodes
        How many machines.
    workers
        On each machine.
    threads
        Of each worker.
    memory
        Of each machine, in bytes or as "512GB".
    bandwidth
        Of each machine's link, in each direction: "20Gbps", or bytes a second.
    latency
        Of a message between machines: "50us", or seconds.
    near_bandwidth, near_latency
        The same between two workers of one machine.
    speeds
        How fast each machine computes beside a core of the machine that was measured; None for all alike.

    Raises
    ------
    OptionError
        For what no cluster has: no machine, no memory, no bandwidth, a number of speeds that is not that of
        the machines.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.Cluster(nodes=16, workers=32, memory="512GB", bandwidth="20Gbps", latency="50us").num_workers
    512
    """

    nodes: int = 1
    workers: int = 1
    threads: int = 1
    memory: str | float = "16GB"
    bandwidth: str | float = "10Gbps"
    latency: str | float = "50us"
    near_bandwidth: str | float = 1.2e9
    near_latency: str | float = "0.7ms"
    speeds: Sequence[float] | None = None

    def __post_init__(self) -> None:
        for name in ("nodes", "workers", "threads"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise OptionError(f"Cluster({name}={value!r}): give a whole number of at least 1")
            object.__setattr__(self, name, int(value))
        if not isinstance(self.memory, str | int | float) or self.memory_bytes < 1:
            raise OptionError(f"Cluster(memory={self.memory!r}): a machine needs memory, as in '16GB'")
        for name in ("bandwidth", "near_bandwidth"):
            if not 0 < self.rate(name) < inf:
                raise OptionError(
                    f"Cluster({name}={getattr(self, name)!r}): give '20Gbps', or bytes a second above 0"
                )
        for name in ("latency", "near_latency"):
            if not (isfinite(self.delay(name)) and self.delay(name) >= 0):
                raise OptionError(f"Cluster({name}={getattr(self, name)!r}): give seconds from 0 on")
        if self.speeds is not None:
            self._check_speeds(self.speeds)

    def _check_speeds(self, speeds: object) -> None:
        if not isinstance(speeds, Sequence | np.ndarray) or isinstance(speeds, str):
            raise OptionError(f"Cluster(speeds={speeds!r}): give a number for each node, or None")
        if len(speeds) != self.nodes:
            raise OptionError(f"Cluster(speeds=...): {len(speeds)} speeds for {self.nodes} nodes")
        for one in speeds:
            if not isinstance(one, int | float | np.number) or isinstance(one, bool) or not 0 < one < inf:
                raise OptionError(f"Cluster(speeds={list(speeds)}): give numbers above 0")

    @property
    def num_workers(self) -> int:
        """Workers of all machines."""
        return self.nodes * self.workers

    @property
    def memory_bytes(self) -> int:
        """Memory of each machine."""
        return parse_bytes(self.memory, "Cluster: memory")

    def rate(self, name: str) -> float:
        """Return "bandwidth" or "near_bandwidth" in bytes a second."""
        value = getattr(self, name)
        found = _measure(value, name, _BITS, "'20Gbps', or bytes a second")
        return found / 8 if isinstance(value, str) else found

    def delay(self, name: str) -> float:
        """Return "latency" or "near_latency" in seconds."""
        return _measure(getattr(self, name), name, _SECONDS, "'50us', or seconds")

    def laid_over(self, node_grid: tuple[int, ...] | None = None) -> Workers:
        """Return the workers that plans are laid out over."""
        numbers = tuple(range(self.num_workers))
        machines = tuple(number // self.workers for number in numbers)
        return Workers(numbers, self.threads, self.memory_bytes * self.nodes, machines, node_grid)


def _measure(value: str | float, name: str, units: Mapping[str, float], words: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    text = value.strip().lower() if isinstance(value, str) else ""
    unit = next((unit for unit in sorted(units, key=len, reverse=True) if text.endswith(unit)), "")
    try:
        return float(text[: len(text) - len(unit)]) * units[unit]
    except (KeyError, ValueError):
        raise OptionError(f"Cluster({name}={value!r}): give {words}") from None


@dataclass(frozen=True)
class TaskSpan:
    """A task: its machine, worker, slot and kind, from when to when."""

    machine: int
    worker: int
    slot: Slot
    kind: str
    start_seconds: float
    end_seconds: float

    def after(self, seconds: float) -> TaskSpan:
        """Return the same so much later."""
        return replace(
            self, start_seconds=self.start_seconds + seconds, end_seconds=self.end_seconds + seconds
        )


@dataclass(frozen=True)
class SimulatedRun:
    """Tasks on a described cluster.

    Attributes
    ----------
    seconds
        Until the last task ends.
    traffic
        Bytes from machine to machine.
    near
        Bytes between workers of each machine.
    busy
        Seconds of tasks by machine.
    peaks
        The most bytes that each machine holds at a time.
    spans
        What was done when; of a loop one iteration.
    """

    seconds: float
    traffic: Mapping[tuple[int, int], float]
    near: Mapping[int, float]
    busy: Mapping[int, float]
    peaks: Mapping[int, int]
    spans: tuple[TaskSpan, ...]

    def then(self, other: SimulatedRun, times: float = 1.0) -> SimulatedRun:
        """Return this, and after it the other so many times."""
        later = tuple(one.after(self.seconds) for one in other.spans)
        both = {**self.peaks, **other.peaks}
        peaks = {key: max(self.peaks.get(key, 0), other.peaks.get(key, 0)) for key in both}
        return SimulatedRun(
            self.seconds + times * other.seconds,
            _added(self.traffic, other.traffic, times),
            _added(self.near, other.near, times),
            _added(self.busy, other.busy, times),
            peaks,
            (*self.spans, *later),
        )


def _added(one: Mapping[Any, float], more: Mapping[Any, float], times: float) -> dict[Any, float]:
    return {key: one.get(key, 0.0) + times * more.get(key, 0.0) for key in {**one, **more}}


NOTHING = SimulatedRun(0.0, {}, {}, {}, {}, ())


@dataclass
class Simulator:
    """Runs tasks on a described cluster, one batch after another.

    Attributes
    ----------
    cluster, workers
        What is described, and what plans were laid out over.
    owners, sizes
        The worker and bytes of each value.
    keeps
        Whether copies of what was there before a batch stay for the next, as in a gang.
    shares
        The share of a value that is sent to a worker, where that is less than all.
    there
        The values that are held, each with a worker that has it.
    held
        Bytes by machine.
    """

    cluster: Cluster
    workers: Workers
    owners: dict[Slot, int] = field(default_factory=dict)
    sizes: dict[Slot, int] = field(default_factory=dict)
    keeps: bool = False
    shares: Mapping[tuple[Slot, int], float] = field(default_factory=dict)
    there: set[tuple[Slot, int]] = field(default_factory=set)
    held: dict[int, int] = field(default_factory=dict)

    @cached_property
    def machines(self) -> dict[int, int]:
        """The machine of each worker."""
        machines = self.workers.machines or (0,) * len(self.workers.numbers)
        return dict(zip(self.workers.numbers, machines, strict=True))

    def run(
        self, tasks: Sequence[Task], seconds: Mapping[Slot, float], staying: Iterable[Slot] = ()
    ) -> SimulatedRun:
        """Run tasks whose other inputs are there, and return what happened."""
        return _BatchClock(self, tasks, seconds, set(staying)).run()

    def put(self, slot: Slot, worker: int) -> None:
        """Note that a worker has a value."""
        if (slot, worker) not in self.there:
            self.there.add((slot, worker))
            self._hold(worker, self.sizes.get(slot, 0))

    def take(self, slot: Slot, worker: int) -> None:
        """Note that a worker has a value no more."""
        if (slot, worker) in self.there:
            self.there.remove((slot, worker))
            self._hold(worker, -self.sizes.get(slot, 0))

    def end_iteration(self, changing: Container[Slot], state: Container[Slot]) -> None:
        """Note that of values which change from one iteration to the next only the state is left."""
        for slot, worker in list(self.there):
            if slot in changing and (slot not in state or self.owners.get(slot, worker) != worker):
                self.take(slot, worker)

    def _hold(self, worker: int, num_bytes: int) -> None:
        machine = self.machines.get(worker, 0)
        self.held[machine] = self.held.get(machine, 0) + num_bytes


class _BatchClock:
    # One batch of tasks on the virtual clock.
    def __init__(
        self, simulator: Simulator, tasks: Sequence[Task], seconds: Mapping[Slot, float], staying: set[Slot]
    ) -> None:
        self._simulator, self._seconds, self._staying = simulator, seconds, staying
        cluster = simulator.cluster
        self._places = simulator.machines
        self._tasks = depth_first(tasks)
        self._rank = {task.key: place for place, task in enumerate(self._tasks)}
        self._free = dict.fromkeys(self._places, cluster.threads)
        self._ready: dict[int, list[tuple[int, Slot]]] = {worker: [] for worker in self._places}
        self._by_key = {task.key: task for task in self._tasks}
        self._missing = {task.key: 0 for task in self._tasks}
        self._waiting: dict[tuple[Slot, int], list[Slot]] = {}
        self._readers: dict[Slot, dict[int, int]] = {}
        self._links: dict[tuple[str, int], float] = {}
        self._events: list[tuple[float, int, str, Slot, int]] = []
        self._count = 0
        self._traffic: dict[tuple[int, int], float] = {}
        self._near: dict[int, float] = {}
        self._busy = dict.fromkeys(self._places.values(), 0.0)
        self._peaks = dict(simulator.held)
        self._spans: list[TaskSpan] = []

    def run(self) -> SimulatedRun:
        simulator, made = self._simulator, {task.key for task in self._tasks}
        for task in self._tasks:
            simulator.owners[task.key] = task.owner
            for key in dict.fromkeys(task.inputs):
                readers = self._readers.setdefault(key, {})
                readers[task.owner] = readers.get(task.owner, 0) + 1
                if key in made or (
                    simulator.owners.get(key, task.owner) != task.owner
                    and (key, task.owner) not in simulator.there
                ):
                    self._missing[task.key] += 1
                    self._waiting.setdefault((key, task.owner), []).append(task.key)
        for key, worker in list(self._waiting):
            if key not in made:
                self._send(key, worker, 0.0)
        now = 0.0
        for task in self._tasks:
            if not self._missing[task.key]:
                heappush(self._ready[task.owner], (self._rank[task.key], task.key))
        for worker in self._places:
            self._start(worker, now)
        while self._events:
            now, _, what, key, worker = heappop(self._events)
            if what == "done":
                self._finish(key, worker, now)
            else:
                self._there(key, worker)
                self._start(worker, now)
        return SimulatedRun(now, self._traffic, self._near, self._busy, self._peaks, tuple(self._spans))

    def _event(self, at: float, what: str, key: Slot, worker: int) -> None:
        self._count += 1
        heappush(self._events, (at, self._count, what, key, worker))

    def _put(self, key: Slot, worker: int, working_bytes: int = 0) -> None:
        self._simulator.put(key, worker)
        machine = self._places.get(worker, 0)
        held = self._simulator.held.get(machine, 0) + working_bytes
        self._peaks[machine] = max(self._peaks.get(machine, 0), held)

    def _start(self, worker: int, now: float) -> None:
        while self._free[worker] and self._ready[worker]:
            _, key = heappop(self._ready[worker])
            task, machine = self._by_key[key], self._places[worker]
            speeds = self._simulator.cluster.speeds
            seconds = self._seconds.get(key, 0.0) / (1.0 if speeds is None else speeds[machine])
            self._free[worker] -= 1
            self._busy[machine] += seconds
            self._put(key, worker, task.working_bytes)
            self._spans.append(TaskSpan(machine, worker, key, task.kind.name, now, now + seconds))
            self._event(now + seconds, "done", key, worker)

    def _finish(self, key: Slot, worker: int, now: float) -> None:
        self._free[worker] += 1
        for one in dict.fromkeys(self._by_key[key].inputs):
            self._leave(one, worker)
        for reader in self._readers.get(key, ()):
            if reader == worker:
                self._there(key, worker)
            else:
                self._send(key, reader, now)
        if key not in self._readers and key not in self._staying:
            self._simulator.take(key, worker)
        self._start(worker, now)

    def _leave(self, key: Slot, worker: int) -> None:
        # A copy goes with its last reader; what was made here goes with the last of all, unless it stays.
        readers = self._readers[key]
        readers[worker] -= 1
        owner, is_made = self._simulator.owners.get(key, worker), key in self._by_key
        if not readers[worker] and owner != worker and (is_made or not self._simulator.keeps):
            self._simulator.take(key, worker)
        if is_made and not any(readers.values()) and key not in self._staying:
            self._simulator.take(key, owner)

    def _send(self, key: Slot, worker: int, now: float) -> None:
        simulator, cluster = self._simulator, self._simulator.cluster
        source, size = simulator.owners[key], simulator.sizes.get(key, 0)
        size = ceil(size * simulator.shares.get((key, worker), 1))
        here, there = self._places.get(source, 0), self._places[worker]
        is_near = here == there
        out, into = (
            (("worker out", source), ("worker in", worker)) if is_near else (("out", here), ("in", there))
        )
        rate = cluster.rate("near_bandwidth" if is_near else "bandwidth")
        begin = max(now, self._links.get(out, 0.0), self._links.get(into, 0.0))
        self._links[out] = self._links[into] = begin + size / rate
        delay = cluster.delay("near_latency" if is_near else "latency")
        if is_near:
            self._near[here] = self._near.get(here, 0) + size
        else:
            self._traffic[here, there] = self._traffic.get((here, there), 0) + size
        self._put(key, worker)
        self._event(begin + size / rate + delay, "there", key, worker)

    def _there(self, key: Slot, worker: int) -> None:
        for one in self._waiting.pop((key, worker), ()):
            self._missing[one] -= 1
            if not self._missing[one]:
                heappush(self._ready[worker], (self._rank[one], one))


# What tasks take, and the order of actions.


def seconds_of(
    tasks: Sequence[Task],
    stages: Sequence[Stage],
    work: Sequence[PlanWork],
    sizes: Mapping[Slot, int],
    each: float,
) -> dict[Slot, float]:
    """Return the seconds of tasks on one core: what their stage is to do shared among them, and ``each``."""
    of_array = {
        stage.makes: PlanWork(*(round(_part_of(stage) * number) for number in one))
        for stage, one in zip(stages, work, strict=False)
    }
    sparse = {stage.makes: _entries_made(stage) for stage in stages}
    working = [task for task in tasks if task.kind.role not in _LAYING_OUT]
    counts: dict[int | None, int] = {}
    for task in working:
        counts[task.makes] = counts.get(task.makes, 0) + 1
    found = {}
    for task in tasks:
        moved = sizes.get(task.key, 0) + sum(sizes.get(key, 0) for key in dict.fromkeys(task.inputs))
        flops = entries = 0.0
        if task.kind.role not in _LAYING_OUT and task.makes in of_array:
            share = of_array[task.makes]
            flops = share.flops / counts[task.makes]
            entries = sparse[task.makes] / counts[task.makes]
            moved = max(moved, int(share.accessed_bytes / counts[task.makes]))
        elif task.kind.role is Role.MOVES:
            moved = 0
        working_seconds = (entries * SPARSE_ENTRY_SECONDS, flops / FLOPS_PER_SECOND, moved / BYTES_PER_SECOND)
        found[task.key] = each + max(working_seconds)
    return found


def _entries_made(stage: Stage) -> int:
    # Of a product of two sparse matrices, which takes as long as it has entries.
    is_product = any(isinstance(one, MatMul) and one.left.sparse and one.right.sparse for one in stage.inside)
    return (stage.estimated_nnz or 0) if is_product else 0


def _part_of(stage: Stage) -> float:
    # Of a dense matrix and its own transpose BLAS makes half of the product, and reads one of them.
    for one in stage.inside:
        match one:
            case MatMul(Transpose(inner), right) if inner is right and not right.sparse:
                return 0.5
            case MatMul(left, Transpose(inner)) if inner is left and not left.sparse:
                return 0.5
    return 1.0


def run_plan(plan: Plan, simulator: Simulator) -> SimulatedRun:
    """Run a plan without loops, beside the arrays that it reads."""
    simulator.sizes.update(plan.sizes)
    before = [(one.key, one.owner) for one in plan.shipments]
    for array in plan.reused.values():
        before += zip(array.keys, array.layout.owners, strict=True)
    for key, owner in before:
        simulator.owners[key] = owner
        simulator.put(key, owner)
    staying = [key for array in plan.outputs.values() for key in array.keys]
    seconds = seconds_of(plan.tasks, plan.stages, plan.work, plan.sizes, TASK_SECONDS)
    return simulator.run(plan.tasks, seconds, staying)


def run_control(
    plan: ControlPlan,
    simulator: Simulator,
    iterations: int | None = None,
    entries: Mapping[Expr, int] = MappingProxyType({}),
) -> SimulatedRun:
    """Run a loop or branch, loops for as many iterations as are given, written down, or expected.

    Parameters
    ----------
    entries
        About how many entries sparse arrays have, of the plan's inputs and of what it makes of them.
    """
    simulator.sizes.update(plan.sizes)
    simulator.owners.update(plan.program.owners)
    simulator.keeps = True
    simulator.shares = touched_shares(plan, entries)
    for slot, owner in plan.program.given.items():
        simulator.put(slot, owner)
    tasks = list(plan.tasks())
    work = [plan.stage_works.get(stage.makes, PlanWork(0, 0)) for stage in plan.stages]
    seconds = seconds_of(tasks, plan.stages, work, plan.sizes, LOOP_TASK_SECONDS)
    return _actions(plan.program.actions, simulator, seconds, iterations)


# Of a vector that meets sparse blocks in a loop, a worker is sent the elements that their columns touch.

_JOINING = (Cut, Join)


def touched_shares(plan: ControlPlan, entries: Mapping[Expr, int]) -> dict[tuple[Slot, int], float]:
    """Return at most which share of a value a worker needs, by its slot, where a loop sends less than all.

    A block of few entries in many columns touches at most as many as it has entries, which are spread evenly
    over an array's blocks where nobody knows better.
    """
    sparse = _sparse_blocks(plan, entries)
    found: dict[tuple[Slot, int], float] = {}
    for batch in batches(plan.program.actions):
        readers: dict[Slot, list[Task]] = {}
        for task in batch.tasks:
            for key in dict.fromkeys(task.inputs):
                readers.setdefault(key, []).append(task)
        for key, users in readers.items():
            for worker in {task.owner for task in users}:
                here = [task for task in users if task.owner == worker]
                lefts = _lefts_of(here, key, readers)
                if lefts is None or not lefts <= sparse.keys():
                    continue
                most = sum(sparse[one][0] for one in lefts)
                columns = max((sparse[one][1] for one in lefts), default=0)
                if most < TOUCHED_AT_MOST * columns:
                    found[key, worker] = most / columns
    return found


def _sparse_blocks(plan: ControlPlan, entries: Mapping[Expr, int]) -> dict[Slot, tuple[int, int]]:
    # About how many entries each sparse block has, and its columns.
    arrays = [(one.expression, one.layout.grid, dict(enumerate(one.tasks))) for one in plan.stages]
    for node, array in plan.inputs.items():
        slots = {number: slot for slot, (other, number) in plan.given.items() if other is node}
        arrays.append((node, array.layout.grid, slots))
    found = {}
    for node, grid, slots in arrays:
        regions = list(grid.regions()) if node.sparse and node in entries else []
        for number, slot in slots.items() if regions else ():
            size, (_, (start, stop)) = region_size(regions[number]), regions[number]
            found[slot] = (-(-entries[node] * size // max(1, node.size)), stop - start)
    return found


def _lefts_of(users: Sequence[Task], key: Slot, readers: Mapping[Slot, Sequence[Task]]) -> set[Slot] | None:
    # The left operands of the products in which a worker's tasks use a value, which is all they do with it.
    found: set[Slot] = set()
    for task in users:
        joined, lefts = _followed(task, [task.inputs.index(key)])
        if lefts is None:
            return None
        found |= lefts
        if joined:
            later = _lefts_of(readers.get(task.key, ()), task.key, readers)
            if not later:
                return None
            found |= later
    return found


def _followed(task: Task, places: Sequence[int]) -> tuple[bool, set[Slot] | None]:
    # Whether what is put together of some inputs is the task's value, and in which products they are used.
    count, here, lefts = len(task.inputs), set(places), set[Slot]()
    for number, step in enumerate(task.steps):
        used = [place for place, one in enumerate(step.arguments) if one in here]
        if used and isinstance(step.operator, _JOINING):
            here.add(count + number)
        elif used:
            is_product = isinstance(step.operator, Multiply) and not step.operator.transposed
            is_product |= isinstance(step.operator, FusedKernel) and step.operator.product is not None
            left = step.arguments[0]
            if used != [1] or not is_product or left >= count:
                return False, None
            lefts.add(task.inputs[left])
    return not task.steps or count + len(task.steps) - 1 in here, lefts


def _actions(
    actions: Iterable[Action], simulator: Simulator, seconds: Mapping[Slot, float], iterations: int | None
) -> SimulatedRun:
    run = NOTHING
    for action in actions:
        match action:
            case Batch(tasks, results):
                run = run.then(simulator.run(tasks, seconds, results))
            case Iterate():
                run = run.then(_loop(action, simulator, seconds, iterations))
            case Branch():
                fewer = min(action.then, action.otherwise, key=_num_tasks)
                run = run.then(_actions(fewer, simulator, seconds, iterations))
    return run


def _num_tasks(actions: Sequence[Action]) -> int:
    return sum(len(batch.tasks) for batch in batches(actions))


def _loop(
    loop: Iterate, simulator: Simulator, seconds: Mapping[Slot, float], iterations: int | None
) -> SimulatedRun:
    count = iterations
    if count is None:
        count = EXPECTED if loop.most is None else loop.most
        count = count if loop.until is None else min(count, EXPECTED)
    state = {slot for registers in loop.state for slot in registers}
    changing = state.union(slot for registers in loop.after for slot in registers)
    changing |= {task.key for batch in batches(loop.body) for task in batch.tasks}
    for array, first in zip(loop.state, loop.first, strict=True):
        for slot, begun in zip(array, first, strict=True):
            simulator.sizes.setdefault(slot, simulator.sizes.get(begun, 0))
            simulator.owners[slot] = simulator.owners.get(begun, simulator.owners.get(slot, 0))
            simulator.put(slot, simulator.owners[slot])
    run = NOTHING
    if count > 0:
        run = _actions(loop.body, simulator, seconds, None)
    if count > 1:
        simulator.end_iteration(changing, state)
        run = run.then(_actions(loop.body, simulator, seconds, None), count - 1)
    simulator.end_iteration(changing, state)
    return run


@dataclass(frozen=True, repr=False)
class Simulation:
    """What a computation would take on a described cluster: simulated figures, not measured ones.

    Made by :func:`matnb.simulate`. In a notebook it is a picture: what the machines do when, and what goes
    from each to each.

    Attributes
    ----------
    makespan_seconds
        From the first task to the last.
    sent_bytes, received_bytes
        Between machines, of each machine.
    near_bytes
        Between workers of each machine.
    peak_bytes
        The most that each machine holds at a time.
    idle_shares
        Of each machine, which part of the makespan its threads do nothing.
    traffic
        Bytes by sending and receiving machine.
    cluster
        As described.
    spans
        Which worker does what when; of a loop the first two iterations.
    """

    makespan_seconds: float
    sent_bytes: tuple[int, ...]
    received_bytes: tuple[int, ...]
    near_bytes: tuple[int, ...]
    peak_bytes: tuple[int, ...]
    idle_shares: tuple[float, ...]
    traffic: tuple[tuple[int, ...], ...]
    cluster: Cluster
    spans: tuple[TaskSpan, ...]

    @property
    def text(self) -> str:
        """The figures in a sentence."""
        nodes = plural_text(self.cluster.nodes, "node")
        each = plural_text(self.cluster.workers, "worker")
        return (
            f"simulated on {nodes} of {each}: {seconds_text(self.makespan_seconds)}, "
            f"{bytes_text(sum(self.sent_bytes))} between nodes, at most {bytes_text(max(self.peak_bytes))} "
            f"held by one, threads idle {sum(self.idle_shares) / len(self.idle_shares):.0%}{self._too_much}"
        )

    @property
    def _too_much(self) -> str:
        most, there = max(self.peak_bytes), self.cluster.memory_bytes
        return f"; more than the {bytes_text(there)} that a node has" if most > there else ""

    @property
    def svg(self) -> str:
        """An SVG drawing: lanes of nodes over time, and the traffic between them."""
        seconds = max((one.end_seconds for one in self.spans), default=0.0)
        spans = [(one.machine, one.start_seconds, one.end_seconds) for one in self.spans]
        slots = self.cluster.workers * self.cluster.threads
        busy = shares_of(spans, self.cluster.nodes, slots, seconds)
        return simulation_svg(SimulationFacts(self.text, seconds, busy, self.idle_shares, self.traffic))

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": f"<div>{self.svg}</div>"}


def simulation_of(run: SimulatedRun, cluster: Cluster) -> Simulation:
    """Return the figures of a run."""
    nodes = range(cluster.nodes)
    traffic = tuple(tuple(round(run.traffic.get((one, other), 0)) for other in nodes) for one in nodes)
    slots = cluster.workers * cluster.threads
    idle = tuple(
        1 - run.busy.get(node, 0.0) / (slots * run.seconds) if run.seconds else 0.0 for node in nodes
    )
    return Simulation(
        run.seconds,
        tuple(map(sum, traffic)),
        tuple(sum(row[node] for row in traffic) for node in nodes),
        tuple(round(run.near.get(node, 0)) for node in nodes),
        tuple(run.peaks.get(node, 0) for node in nodes),
        idle,
        traffic,
        cluster,
        run.spans,
    )
