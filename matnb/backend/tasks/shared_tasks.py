"""The in-process scheduler: several threads share the tasks of one run."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from heapq import heapify, heappop, heappush
from math import prod
from typing import Any

from matnb.backend.tasks import worker
from matnb.backend.tasks.executor import PreparedTask
from matnb.backend.tasks.registers import JoinUse, Stacks, bounds_of, parted
from matnb.backend.tasks.step_memory import FRESH, StepMemory
from matnb.blocks.formats import NumericArray, uninitialized
from matnb.blocks.kernels.calls import Function, unpack
from matnb.expr.nodes import Expr
from matnb.program.memory import depth_first
from matnb.program.operators import Call, FusedKernel, Join, Multiply, Operator, Run
from matnb.program.plan import Plan, Slot, Step, StoredArray, Task

_HELPED_BYTES = 512 * 1024  # read or made, from here on several threads do them
_STACKED_BYTES = 2**22  # of an array, from here on its rows are made one after the other in memory
_FEW = 64  # tasks
_CANCELLED = worker.TaskFailure(None, RuntimeError("the run was cancelled"), "")


def num_threads(plan: Plan, owner: int, num_tasks: int, threads: int) -> int:
    """Return how many of a worker's threads do its tasks of a plan: one in a small run.

    Parameters
    ----------
    plan, owner, num_tasks
        What is run, and how much of it that worker has.
    threads
        Of the worker.
    """
    return 1 if is_small(plan, (owner,)) else min(threads, num_tasks)


def is_small(plan: Plan, owners: Iterable[int]) -> bool:
    """Tell whether what some workers do in a run takes less than waking another thread.

    How long a user's function takes nobody knows, however few bytes it is given: its tasks are not small.
    """
    if not all(array.block_bytes for array in plan.reused.values()):
        return False  # nobody knows how large: what an interrupt left
    read = max((sum(array.block_bytes) for array in plan.reused.values()), default=0)
    needed = max((plan.peaks.get(owner, 0) for owner in owners), default=0)
    if not plan.peaks or max(read, needed) >= _HELPED_BYTES:
        return False
    return not any(_calls_users(step.operator) for task in plan.tasks for step in task.steps)


class TaskGraph:
    """The tasks of a plan in order, and who reads what: found once, and used by one run at a time.

    Attributes
    ----------
    tasks
        What one result needs comes before what the next one needs.
    owners
        By what a task makes.
    given
        What is read and no task makes.
    readers
        The numbers of the tasks that read a value, once for each time they do.
    num_missing
        For each task how many of its inputs other tasks make.
    is_simple
        Whether they are few, and none calls a function by name, a user's or one that reads a file.
    has_run
        Whether all have run before, so that their loops are compiled.
    stacks
        Which large values are made one after the other in the same memory: blocks of rows of what stays, and
        of what a task puts together, which then are put together without a copy.

    Parameters
    ----------
    tasks
        Of a plan.
    staying
        Arrays that they make and that stay.
    """

    def __init__(self, tasks: Sequence[Task], staying: Iterable[tuple[Expr, StoredArray]] = ()) -> None:
        self._of = tasks
        self.tasks = tuple(depth_first(tasks))
        self.owners = {task.key: task.owner for task in self.tasks}
        self.stacks = Stacks(self._stacked(tuple(staying)), ())
        self.readers: dict[Slot, list[int]] = {}
        for number, task in enumerate(self.tasks):
            for key in task.inputs:
                self.readers.setdefault(key, []).append(number)
        self.given = tuple(key for key in self.readers if key not in self.owners)
        self.num_missing = tuple(sum(key in self.owners for key in task.inputs) for task in self.tasks)
        operators = (step.operator for task in self.tasks for step in task.steps)
        self.is_simple = len(self.tasks) <= _FEW and not any(map(_calls, operators))
        self.has_run = False
        self._prepared: dict[int, PreparedTask] = {}

    def _stacked(self, staying: Sequence[tuple[Expr, StoredArray]]) -> Iterator[JoinUse]:
        # All parts are made here, and each is in one of these alone; what stays is so with its own array.
        taken: set[Slot] = set()
        arrays = [use for node, array in staying if (use := _as_joined(node, array)) is not None]
        others = {key for _, array in staying for key in array.keys}
        joins = [use for task in self.tasks for use in parted(task).joins if others.isdisjoint(use.parts)]
        for use in (*arrays, *joins):
            parts = {*use.parts}
            is_whole = len(parts) == len(use.parts) and parts <= self.owners.keys()
            if is_whole and parts.isdisjoint(taken) and _is_large(use):
                taken |= parts
                yield use

    @classmethod
    def borrowed(cls, plan: Plan) -> TaskGraph:
        """Take over the tasks that an earlier run of a plan left, or make new ones."""
        found = plan.found.pop("graph", None)
        if isinstance(found, cls) and found._of is plan.tasks:
            return found
        return cls(plan.tasks, plan.outputs.items())

    def give_back(self, plan: Plan) -> None:
        """Leave it to the next run of a plan, which has run."""
        self.has_run = True
        plan.found["graph"] = self

    def prepared(self, number: int) -> PreparedTask:
        """Return the steps of a task ready to run; kept where no block is left in them."""
        found = self._prepared.get(number)
        if found is None:
            task = self.tasks[number]
            found = PreparedTask(task.steps, len(task.inputs))
            if not any(map(_multiplies, task.steps)):
                self._prepared[number] = found
        return found


def _calls(operator: Operator) -> bool:
    # The kernel that takes apart what several reductions gave together takes next to no time.
    return isinstance(operator, Call) or (isinstance(operator, Run) and operator.kernel is not unpack)


def _calls_users(operator: Operator) -> bool:
    # A user's function travels in the parameters of the kernel that calls it.
    if isinstance(operator, Run):
        return any(isinstance(one, Function) for one in operator.parameters)
    return isinstance(operator, Call)


def _is_large(use: JoinUse) -> bool:
    return prod(use.operator.shape) * use.operator.dtype.itemsize >= _STACKED_BYTES


def _as_joined(node: Expr, array: StoredArray) -> JoinUse | None:
    # An array that stays as what reads all of it puts it together; None if its blocks are not rows.
    if node.sparse or not node.shape:
        return None
    grid = array.layout.grid
    offsets = tuple(tuple(start for start, _ in region) for region in grid.regions())
    join = Join(offsets, node.shape, node.dtype, False)
    bounds = bounds_of(join) if grid.num_blocks > 1 else None
    return None if bounds is None else JoinUse(join, array.keys, bounds)


def _multiplies(step: Step) -> bool:
    match step.operator:
        case Multiply():
            return True
        case FusedKernel(product=product):
            return product is not None
    return False


class SharedTasks:
    """Tasks that the threads of one worker or several do; one that comes late finds less to do, or nothing.

    Parameters
    ----------
    graph
        The tasks; the earlier ones first where several are ready.
    values
        Those given; filled with what is made, and let go with the last reader unless it is among ``staying``.

    Attributes
    ----------
    failed
        What the first task left that failed; then no more are begun.
    ended
        Done once all tasks are, or no more are begun.
    """

    def __init__(
        self, run_id: worker.RunId, graph: TaskGraph, values: dict[Slot, Any], staying: Collection[Slot]
    ) -> None:
        self._run_id, self._graph, self._values, self._staying = run_id, graph, values, staying
        self._tasks, self._readers = graph.tasks, graph.readers
        self._wholes: dict[int, tuple[NumericArray | None, int]] = {}
        self._changed = threading.Condition()
        self._num_left = len(graph.tasks)
        self.failed: worker.TaskFailure | None = None
        self.ended: Future[None] = Future()
        self._broken: BaseException | None = None
        self._missing = list(graph.num_missing)
        self._num_readers = {key: len(readers) for key, readers in self._readers.items()}
        self._ready: dict[int, list[int]] = {task.owner: [] for task in self._tasks}
        for number, missing in enumerate(self._missing):
            if not missing:
                self._ready[self._tasks[number].owner].append(number)
        for numbers in self._ready.values():
            heapify(numbers)
        for value in values.values():
            if isinstance(value, worker.TaskFailure):
                self.failed = value

    def work_alone(self) -> None:
        """Do all tasks of all workers, in their order, on this thread alone."""
        values, readers = self._values, self._num_readers
        try:
            for number, task in enumerate(self._tasks):
                if self.failed is not None or worker.is_forgotten(self._run_id):
                    break
                inputs, memory = [values[key] for key in task.inputs], self._memory(task.key)
                value = worker.run_prepared(task, self._graph.prepared(number), self._run_id, inputs, memory)
                del inputs, memory
                if isinstance(value, worker.TaskFailure):
                    self.failed = self.failed or value
                values[task.key] = value
                for key in task.inputs:
                    readers[key] -= 1
                    if not readers[key] and key not in self._staying:
                        del values[key]
                self._num_left -= 1
        except BaseException as error:  # raised by the thread that waits
            self._broken = error
        with self._changed:
            if self._num_left and self.failed is None:
                self.failed = _CANCELLED
            self._end()

    def work(self, owner: int) -> None:
        """Do tasks of a worker until all are done, or one failed, or the run is to end."""
        while (number := self._next(owner)) is not None:
            task = self._tasks[number]
            try:
                with self._changed:
                    inputs, memory = [self._values[key] for key in task.inputs], self._memory(task.key)
                value = worker.run_prepared(task, self._graph.prepared(number), self._run_id, inputs, memory)
            except BaseException as error:  # raised by the thread that waits
                with self._changed:
                    self._broken = error
                    self._end()
                return
            del inputs, memory
            self._done(task, value)

    @property
    def has_tasks(self) -> bool:
        """Whether there is anything to do, or was."""
        return bool(self._tasks)

    @property
    def num_done(self) -> int:
        """Tasks that are done."""
        return len(self._tasks) - self._num_left

    def made(self) -> dict[Slot, Any]:
        """Return what stays of the values, as far as it is made; once ``ended`` is done, that is all."""
        with self._changed:
            if self._broken is not None:
                raise self._broken
            return {key: self._values[key] for key in self._staying if key in self._values}

    def stop(self) -> None:
        """Begin no more tasks, and have no thread wait for one."""
        with self._changed:
            self.failed = self.failed or _CANCELLED
            self._end()

    def _next(self, owner: int) -> int | None:
        with self._changed:
            while True:
                if self._num_left == 0 or self.failed is not None or self._broken is not None:
                    self._end()
                    return None
                if worker.is_forgotten(self._run_id):
                    self.failed = _CANCELLED
                    self._end()
                    return None
                if self._ready[owner]:
                    return heappop(self._ready[owner])
                self._changed.wait()

    def _memory(self, key: Slot) -> StepMemory:
        # Where the value of a task is best made.
        hint = self._graph.stacks.hints.get(key)
        if hint is None:
            return FRESH
        stack = self._graph.stacks.groups[hint.group]
        whole, num_left = self._wholes.pop(hint.family, (None, len(stack.bounds)))
        if whole is None:
            try:
                whole = uninitialized(stack.shape, stack.dtype)
            except MemoryError:  # a part may have room, or tells of it with all that a task knows
                return FRESH
        if num_left > 1:  # held by its parts alone in the end
            self._wholes[hint.family] = whole, num_left - 1
        start, stop = stack.bounds[hint.index]
        return FRESH.into(whole[start:stop])

    def _done(self, task: Task, value: Any) -> None:
        with self._changed:
            if isinstance(value, worker.TaskFailure):
                self.failed = self.failed or value
            self._values[task.key] = value
            for number in self._readers.get(task.key, ()):
                self._missing[number] -= 1
                if not self._missing[number]:
                    heappush(self._ready[self._tasks[number].owner], number)
            for key in task.inputs:
                self._num_readers[key] -= 1
                if not self._num_readers[key] and key not in self._staying:
                    del self._values[key]
            self._num_left -= 1
            self._changed.notify_all()

    def _end(self) -> None:
        self._changed.notify_all()
        if not self.ended.done():
            self.ended.set_result(None)
