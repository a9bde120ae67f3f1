"""The code that runs on a worker: one timed task, and its report; values leave it read-only."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matnb.backend.kept import resolved
from matnb.backend.tasks.executor import PreparedTask
from matnb.backend.tasks.step_memory import FRESH, StepMemory
from matnb.blocks.formats import Block, Csr, Dense, Empty, freeze
from matnb.blocks.kernels.compiled import num_specializations
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.errors import MatnbError
from matnb.events import TaskTimed
from matnb.io.entries import ReaderValue
from matnb.program.operators import Operator
from matnb.program.plan import Slot, Step, Task

_CARRIED_BYTES = 64 * 1024  # up to here a value that is wanted at home goes there with the report


@dataclass(frozen=True)
class RunId:
    """One run of a session: which session's, and its number there; as text it begins the names of tasks."""

    session: str
    number: int

    def __str__(self) -> str:
        return f"{self.session}r{self.number}"

    def is_before(self, other: RunId) -> bool:
        """Tell whether it is an earlier run of the same session."""
        return self.session == other.session and self.number < other.number


_timed: dict[tuple[RunId, int], list[TaskTimed]] = {}
_under_way: dict[int, tuple[RunId, int, str, float]] = {}  # by thread: run, worker, kind, and when it began
_forgotten: set[RunId] = set()
_newest: RunId | None = None  # that this process has begun
_done_elsewhere: dict[int, int] = {}  # tasks of it, by the workers of other processes that told of theirs
_lock = threading.Lock()


def begin_run(session: str, number: int) -> RunId:
    """Return the name of a run that begins, the newest of this process."""
    global _newest
    _newest = RunId(session, number)
    _done_elsewhere.clear()
    return _newest


def note_done(run_id: str, owner: int, count: int) -> None:
    """Take how many tasks a worker in another process has done of a run."""
    if run_id == str(_newest):
        _done_elsewhere[owner] = max(count, _done_elsewhere.get(owner, 0))


@dataclass(frozen=True)
class TaskFailure:
    """What a task leaves instead of a value when it raised; its users hand it on."""

    key: Slot | None
    error: BaseException
    trace: str
    operator: Operator | Link | None = None


class TaskFailed(Exception):  # noqa: N818  carries a worker's error to the room that knows the cell
    """A task raised on its worker."""

    def __init__(self, failed: TaskFailure) -> None:
        super().__init__(f"{failed.key}: {failed.error}")
        self.failed = failed


def run(key: Slot, kind: str, run_id: RunId, owner: int, steps: Sequence[Step], *inputs: Any) -> Any:
    """Run the steps of a task and return the last value, or a TaskFailure."""
    return _run(key, kind, run_id, owner, PreparedTask(steps, len(inputs)), tuple(map(resolved, inputs)))


def run_prepared(
    task: Task, prepared: PreparedTask, run_id: RunId, inputs: Sequence[Any], memory: StepMemory = FRESH
) -> Any:
    """Run a task whose steps are ready, and return its value, or a TaskFailure."""
    return _run(task.key, task.kind.name, run_id, task.owner, prepared, inputs, memory)


def _run(
    key: Slot,
    kind: str,
    run_id: RunId,
    owner: int,
    prepared: PreparedTask,
    inputs: Sequence[Any],
    memory: StepMemory = FRESH,
) -> Any:
    for value in inputs:
        if isinstance(value, TaskFailure):
            return value
    codes, begin, thread = num_specializations(), time.perf_counter(), threading.get_ident()
    _under_way[thread] = run_id, owner, kind, begin
    try:
        value = prepared.run(inputs, memory)
        if isinstance(value, Dense | Csr | Empty):
            value = freeze(value)
    except Exception as error:  # reported home, where the cell's line is known
        _under_way.pop(thread, None)
        return TaskFailure(key, portable(error), traceback.format_exc(), prepared.running)
    _under_way.pop(thread, None)  # first, so that no more is reported on the way than it takes
    seconds = time.perf_counter() - begin
    timed = TaskTimed(key, kind, owner, seconds, *_counts(value), num_specializations() > codes)
    with _lock:
        _timed.setdefault((run_id, owner), []).append(timed)
    return value


@dataclass(frozen=True)
class Report:
    """How a worker's part in a run went.

    Attributes
    ----------
    owner
        The worker.
    values
        Blocks, by slot: copies of the small ones that are wanted at home; of a gang's member, before it
        publishes them, all results that it owns, read-only, or the state of a loop that paused.
    timed
        One record a task that ran, its seconds over all iterations; a value that was still there from an
        earlier run has none.
    counts
        Entries and bytes of what stays, by slot.
    failed
        The first of its tasks that raised.
    aborted
        Why the gang was given up.
    iterations
        Of the outermost loop, those before a checkpoint among them.
    sent_bytes
        Of the arrays of blocks that it sent to other members.
    allocated
        How many arrays of 64 KiB or more were newly made, by iteration of the outermost loop.
    paused
        Whether the outermost loop is to go on from its state.
    ended_itself
        Whether the outermost loop's condition ended it.
    """

    owner: int
    values: Mapping[Slot, Block] = field(default_factory=dict)
    timed: tuple[TaskTimed, ...] = ()
    counts: Mapping[Slot, tuple[int, int]] = field(default_factory=dict)
    failed: TaskFailure | None = None
    aborted: str | None = None
    iterations: int = 0
    sent_bytes: int = 0
    allocated: tuple[int, ...] = ()
    paused: bool = False
    ended_itself: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the worker did all it was asked to."""
        return self.aborted is None and self.failed is None


def report(
    run_id: RunId,
    owner: int,
    keys: Sequence[Slot],
    *finished: Any,
    fetched: Collection[Slot] = (),
    failed: TaskFailure | None = None,
) -> Report:
    """Return what a worker tells of a run whose last and kept values are given.

    Parameters
    ----------
    fetched
        Keys whose values are wanted at home.
    failed
        The first failure, where it is known.
    """
    if failed is None:
        failed = next((value for value in finished if isinstance(value, TaskFailure)), None)
    counts = {key: _counts(value)[1:] for key, value in zip(keys, finished, strict=True)}
    values: dict[Slot, Block] = {
        key: Dense(value.values.copy())
        for key, value in zip(keys, finished, strict=True)
        if key in fetched and isinstance(value, Dense) and value.nbytes <= _CARRIED_BYTES
    }
    with _lock:
        timed = tuple(_timed.pop((run_id, owner), ()))
        # A kernel that was running when its run was cancelled told its time afterwards.
        for other in [other for other, _ in _timed if other.is_before(run_id)]:
            _drop_times(other)
        _forgotten.difference_update([other for other in _forgotten if other.is_before(run_id)])
    return Report(owner, values, timed, counts, failed)


def num_done() -> int | None:
    """Return how many tasks of the run that began last are done, as far as that is known here."""
    with _lock:
        done = [len(timed) for (run_id, _), timed in _timed.items() if run_id == _newest]
        done += _done_elsewhere.copy().values()
        is_here = done or _newest in [run_id for run_id, *_ in list(_under_way.copy().values())]
        return sum(done) if is_here and _newest not in _forgotten else None


def timed_now(
    session: str,
) -> tuple[dict[tuple[str, int], tuple[list[TaskTimed], int]], list[tuple[str, int, str, float]]]:
    """Return the tasks of a session's runs that are in progress in this process.

    Returns
    -------
    dict
        By run and worker the times of the tasks that are done, in their order, and how many these are: the
        list goes on growing.
    list
        Of each task that runs now the run, the worker, the kind, and the seconds so far.
    """
    with _lock:
        done = {
            (str(run_id), owner): (timed, len(timed))
            for (run_id, owner), timed in _timed.items()
            if run_id.session == session
        }
        now, running = time.perf_counter(), list(_under_way.copy().values())
    return done, [
        (str(run_id), owner, kind, now - begin)
        for run_id, owner, kind, begin in running
        if run_id.session == session
    ]


def num_running(session: str) -> dict[int, int]:
    """Return how many tasks of a session's runs are under way in this process, by worker."""
    found: dict[int, int] = {}
    for run_id, owner, _, _ in list(_under_way.copy().values()):
        if run_id.session == session:
            found[owner] = found.get(owner, 0) + 1
    return found


def _drop_times(run_id: RunId) -> None:
    for key in [key for key in _timed if key[0] == run_id]:
        del _timed[key]


def forget(run_id: RunId) -> None:
    """Drop the times of a run that was cancelled, and begin no more of its tasks."""
    with _lock:
        _forgotten.add(run_id)
        _drop_times(run_id)


def is_forgotten(run_id: RunId) -> bool:
    """Tell whether a run was cancelled."""
    return run_id in _forgotten


def rename(names: dict[str, str], dask_worker: Any) -> dict[str, int]:
    """Give blocks that a worker holds new keys without a history, and return their bytes."""
    held = {new: dask_worker.data[old] for old, new in names.items() if old in dask_worker.data}
    return dict(dask_worker.update_data(held)["nbytes"])


def _counts(value: object) -> tuple[int, int, int]:
    # Rows, entries and bytes of a block; of what is read from a file on its way the bytes alone.
    if isinstance(value, Dense | Csr | Empty):
        return (value.shape[0] if value.shape else 1), value.nnz, value.nbytes
    parts = value if isinstance(value, tuple) else (value,)  # a piece may come with its number
    return 0, 0, sum(one.__sizeof__() for one in parts if isinstance(one, ReaderValue))


def portable(error: Exception) -> Exception:
    """Return an error that can be unpickled at home, where another would hide itself."""
    if isinstance(
        error, MatnbError | ArithmeticError | LookupError | ValueError | TypeError | MemoryError | OSError
    ):
        return error
    return RuntimeError(f"{type(error).__name__}: {error}")
