"""The current session: started on demand, replaced, stopped; and what users and handles ask of it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from matnb.backend.cluster import dask_cluster as clusters
from matnb.backend.cluster.cancellation import cancellable, deferred
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.blocks.formats import Block
from matnb.blocks.grid import MOST_PARTS, Grid, grid_from
from matnb.blocks.layout import Layout
from matnb.config import Config, data_folder_from_environment
from matnb.errors import ClusterError, LoopBodyError, OptionError, ShapeError
from matnb.events import BatchesFinished
from matnb.expr.nodes import Data, Expr
from matnb.io.results import ResultFolder
from matnb.lazy.array import DistArray
from matnb.lazy.creation import asarray
from matnb.lazy.evaluator import set_evaluator
from matnb.lazy.handles import live_expressions
from matnb.lazy.indexing.keys import normalize_axes
from matnb.pictures.facts import ArrayFacts
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import axes_text, plural_text
from matnb.program.plan import StoredArray
from matnb.session.array_facts import array_facts
from matnb.session.memo import Memo, RememberedResults
from matnb.session.naming import lose
from matnb.session.progress_line import TerminalLine, write_line
from matnb.session.session import Session
from matnb.session.settings import config_with, rebalancing_from


@dataclass
class _Process:
    """What this process has of sessions.

    Attributes
    ----------
    session
        The one in use, if there is one.
    followers
        Called with the one in use, and with each that starts.
    was_used
        Whether there has been one.
    is_forked
        Whether this process is the child of one that had one.
    has_stopped
        Whether one has ended.
    left
        Why nothing starts by itself: what became of a cluster of somebody else's that a user wanted, if no
        session was started since.
    lock
        Held while a session is started, stopped or looked up.
    """

    session: Session | None = None
    followers: list[Callable[[Session], None]] = field(default_factory=list)
    was_used: bool = False
    is_forked: bool = False
    has_stopped: bool = False
    left: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)


_process = _Process()


def _after_fork() -> None:
    # The workers, Dask's event loop and whoever held the lock are the parent's.
    _process.session, _process.lock = None, threading.RLock()
    _process.is_forked = _process.was_used or _process.is_forked


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@cancellable()
def start(
    workers: int | None = None,
    threads: int | None = None,
    processes: bool | None = None,
    memory_limit: str | int | None = None,
    memo: str | int | None = None,
    compute_limit: str | int | None = None,
    engine: str | None = None,
    memo_dir: str | os.PathLike[str] | None = None,
    rebalance: object = None,
    security: bool | None = None,
    node_grid: str | Sequence[int] | None = None,
) -> Session:
    """Start an embedded Dask cluster and use it; a session that is already running is stopped first.

    Calling it is optional: the first value you ask for starts a session with the defaults, which you can set
    by the ``MATNB_*`` environment variables of the same names. The result is a context manager that stops the
    session.

    Parameters
    ----------
    workers
        Number of Dask workers, 1 by default.
    threads
        Threads per worker; by default all cores are divided among the workers.
    processes
        True runs each worker in a process of its own; by default all run in this one. Workers do not run the
        script that starts them, so it needs no ``if __name__ == "__main__"``. Neither opens a port.
    memory_limit
        Memory per worker, such as "4GB"; by default they share what the machine has free.
    memo
        Memory for remembered results, "4GB" by default: the results of cells and of ``compute()`` are kept
        even when no variable refers to them, and are reused when the same expression is computed again. "off"
        keeps none. At most half of the workers' memory is used. Beyond it, and where a run needs the room,
        results go that are made again most quickly for their bytes: those without a variable first, then
        others, which are computed again when they are read. What ``persist()`` made stays.
    compute_limit
        Largest result that ``compute()`` brings into this process, "2GB" by default; and the largest array
        that is read into it from elsewhere, such as a Dask array or a dataset in a file. What is here already
        is not refused.
    engine
        "auto" runs cells on the workers' threads if these are in this process, else as Dask tasks. It runs a
        loop as a gang: one long task on each worker, which exchange data directly; where the workers cannot
        all be had at once, as Dask tasks. "gang" raises an error in that case. "dask" runs everything as
        tasks. "interpret" evaluates with NumPy and SciPy in this process.
    memo_dir
        Folder in which remembered results are also kept as files, up to ``memo`` bytes, for later processes.
        It is created if missing, and refused if other users can write to it. Nothing in a file is ever
        executed. A file that is damaged, or that you did not write, is not used and gives a warning: files
        are signed with a key in your ``~/.local/share/matnb``.
    rebalance
        How stored arrays are repartitioned, so that all workers take equally long: "auto", the default, goes
        by entry counts before the first run and by measured times after it; "entries" by counts alone, before
        a loop begins; "presto" by the rule of the Presto paper (Venkataraman et al. 2013); "off" never. A
        trace, or the path of one written by ``mn.history().save(path)``, repeats its decisions. An object
        with ``name`` and ``decide(situation)`` is a policy of your own. Values never change.
    security
        True, the default, makes worker processes communicate through sockets in a folder that only you can
        access. False makes them listen on ports, as Dask does: then any user of this machine can run code as
        you.
    node_grid
        How workers lie beside the axes of arrays that are cut along several: (4, 4) gives the blocks of each
        quarter of the rows and columns to one of 16 workers, or of 16 machines where workers are on several.
        "auto", the default, goes by the lengths of each array. Arrays that are cut alike lie alike.

    Raises
    ------
    OptionError
        For a value that is not allowed.
    ClusterError
        If the workers do not start.

    Examples
    --------
    >>> import matnb as mn
    >>> with mn.start(workers=1, threads=2):
    ...     float(mn.ones(3).sum())
    3.0
    """
    config = config_with(
        {
            "workers": workers, "threads": threads, "processes": processes, "memory_limit": memory_limit,
            "memo": memo, "compute_limit": compute_limit, "engine": engine, "memo_dir": memo_dir,
            "rebalance": rebalance, "security": security, "node_grid": node_grid,
        }
    )  # fmt: skip
    rebalancing_from(config.rebalance)
    _check_node_grid(config, config.workers, 1)
    with _process.lock:
        _check_process()
        folder = _folder_of(config)
        with deferred():
            stop()
            _process.session, _process.left = _session_on(config, clusters.start(config), folder), ""
            _tell_followers(_process.session)
        return _process.session


@cancellable()
def connect(
    target: Any = None,
    *,
    scheduler_file: str | None = None,
    security: Any = None,
    timeout_seconds: float = 10.0,
    memo: str | int | None = None,
    compute_limit: str | int | None = None,
    rebalance: object = None,
    node_grid: str | Sequence[int] | None = None,
) -> Session:
    """Connect to a running Dask cluster; the current session, if any, is stopped once it answers.

    Where it does not, and no session was running, none starts by itself until this is called again or
    :func:`matnb.start` is. Of one without workers a worker is asked for, which an adaptive cluster then
    starts.

    Parameters
    ----------
    target
        The scheduler's address, a ``distributed.Client``, or a cluster object (LocalCluster, jobqueue, ...).
        By default what Dask's own client takes: ``DASK_SCHEDULER_ADDRESS``, or ``scheduler-address`` in
        Dask's configuration.
    scheduler_file
        The file written by ``dask scheduler --scheduler-file``, instead of ``target``.
    security
        A ``distributed.Security`` for TLS.
    timeout_seconds
        How long to wait for the scheduler and the first worker; later too, where the scheduler is away or
        all workers are gone. Workers that come from a queue of jobs may need minutes.
    memo, compute_limit, rebalance, node_grid
        As in :func:`matnb.start`. The memory, threads and number of workers are the cluster's.

    Raises
    ------
    OptionError
        For a value that is not allowed.
    ClusterError
        If the scheduler or the workers do not answer in time.
    VersionMismatchError
        If client, scheduler and workers run incompatible versions.
    """
    config = config_with(
        {"memo": memo, "compute_limit": compute_limit, "rebalance": rebalance, "node_grid": node_grid}
    )
    rebalancing_from(config.rebalance)
    with _process.lock:
        _check_process()
        folder = _folder_of(config)
        # Only a cluster that answers takes the place of the one in use.
        try:
            cluster = clusters.connect(
                target, scheduler_file=scheduler_file, security=security, timeout_seconds=timeout_seconds
            )
        except BaseException:
            if active_session() is None:
                _process.left = "mn.connect(...) did not reach the cluster"
            raise
        try:
            _check_node_grid(config, len(cluster.workers), len({one.host for one in cluster.workers}))
        except OptionError:
            cluster.close()
            raise
        with deferred():
            stop()
            _process.session, _process.left = _session_on(config, cluster, folder), ""
            _tell_followers(_process.session)
        return _process.session


def _check_process() -> None:
    if _process.is_forked:
        raise ClusterError(
            "this process was forked from one that uses matnb, whose threads it does not have; start "
            'processes with multiprocessing.get_context("spawn"), or compute in the parent'
        )
    _process.was_used = True


def _check_node_grid(config: Config, num_workers: int, num_machines: int) -> None:
    grid, is_one = config.node_grid, num_machines == 1
    count = num_workers if is_one else num_machines
    if grid is not None and prod(grid) != count:
        raise OptionError(
            f"node_grid={grid} is for {prod(grid)}, but there are {plural_text(num_workers, 'worker')} on "
            f"{plural_text(num_machines, 'machine')}: give numbers that multiply to {count}, or 'auto'"
        )


def _folder_of(config: Config) -> ResultFolder | None:
    if config.memo_dir is None or not config.remembers or config.engine == "interpret":
        return None
    return ResultFolder(config.memo_dir, config.memo_bytes, data_folder_from_environment())


def _session_on(config: Config, cluster: DaskCluster, folder: ResultFolder | None) -> Session:
    try:
        return Session(config, cluster, folder)
    except BaseException:
        cluster.close()
        raise


def stop() -> None:
    """Stop the current session, if there is one, with the workers that matnb started and all their data.

    It never raises; workers that do not answer are killed. Arrays can still be used: the next value that is
    asked for starts a new session, in which what is needed is computed again, and one line says so. After a
    session on a cluster that :func:`matnb.connect` reached, nothing starts by itself: that would move work
    and data to this machine.
    """
    with _process.lock, deferred():
        stopped, _process.session = _process.session, None
        if stopped is not None:
            _note_end(stopped)
            if not stopped.ended:
                lose(node for node in live_expressions() if stopped.stored(node) is not None)
            stopped.close()


def _note_end(session: Session) -> None:
    _process.has_stopped = True
    if not session.cluster.owned:
        _process.left = f"the session on {session.cluster.description} has ended"


def follow_sessions(follower: Callable[[Session], None]) -> Callable[[], None]:
    """Call ``follower`` with the session in use and each that starts; the returned function ends that."""
    with _process.lock:
        _process.followers.append(follower)
        session = active_session()
        if session is not None:
            follower(session)
    return lambda: _process.followers.remove(follower)


def _tell_followers(session: Session) -> None:
    for follower in tuple(_process.followers):
        follower(session)


def _show_progress(session: Session) -> None:
    if (line := TerminalLine.wanted()) is not None:
        session.subscribe(line.hear)


_process.followers.append(_show_progress)


def active_session() -> Session | None:
    """Return the current session, or None."""
    with _process.lock:
        if _process.session is not None and _process.session.ended:
            _note_end(_process.session)
            _process.session = None
        return _process.session


def current_session() -> Session:
    """Return the current session; start one with the default settings if there is none.

    That is told on standard error if there has been one: whoever stopped it may not expect another.

    Raises
    ------
    ClusterError
        Where the last one was on a cluster of somebody else's, or was to be: that is not computed here unless
        it is asked for.
    """
    with _process.lock:
        session = active_session()
        if session is None and _process.left:
            raise ClusterError(
                f"{_process.left}, and nothing is computed on this machine in its place unless you ask for "
                "it: call mn.connect(...) to go on there, or mn.start() for here"
            )
        if session is None:
            session = start()
            if _process.has_stopped:
                words = f"it starts again with {session.cluster.description}"
                write_line(f"matnb was stopped; {words}: mn.start(...) chooses otherwise")
        return session


def next_session_text() -> str:
    """Return what happens next where no session is running."""
    active_session()  # one that has ended is noted
    if not _process.left:
        return "no session is running; the first result starts one"
    return f"no session is running, for {_process.left}: mn.connect(...) or mn.start() begins another"


def _memo_in_use() -> Memo | None:
    session = active_session()
    return None if session is None else session.memo


memo = RememberedResults(_memo_in_use)


@cancellable()
def compute(*arrays: object) -> tuple[object, ...]:
    """Compute several arrays in one run, sharing common subexpressions, and return their values.

    Parameters
    ----------
    *arrays
        DistArrays, or what :func:`matnb.asarray` takes.

    Returns
    -------
    tuple
        What ``compute()`` returns, for each array.
    """
    handles = [one if isinstance(one, DistArray) else asarray(one) for one in arrays]
    for handle in handles:
        check_closed(handle.expression)
    session = current_session()
    for handle in handles:
        session.check_result(handle.expression)
    session.make([handle.expression for handle in handles])
    return tuple(handle.compute() for handle in handles)


@cancellable()
def visualize(*arrays: object, stage: str | None = None, measured: bool = False) -> Picture:
    """Draw how arrays will be computed, without computing them.

    The result displays itself in a notebook, prints as a tree, and has ``save(path)`` for ``.svg`` and
    ``.txt``. It marks what is read more than once, what is already stored, results, transfers between workers
    and the critical path. What has already run is drawn as it ran.

    Parameters
    ----------
    *arrays
        DistArrays, or what :func:`matnb.asarray` takes.
    stage
        "recorded" for the expressions as written, the name of an optimization pass for its result, "plan",
        the default, for what runs where, or "place" for how workers were chosen as well. In a notebook the
        others are a click away.
    measured
        Whether to show the seconds of the last run as well.

    Returns
    -------
    Picture
        Of the expressions, or of the plan's stages with their blocks, workers, tasks and bytes: those of the
        last run beside the estimates.

    Raises
    ------
    OptionError
        For an unknown stage.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.zeros(4)
    >>> picture = mn.visualize((x + 1) * (x + 1), stage="recorded")
    >>> print(picture.text.splitlines()[1])
    e2  multiply(e1, e1)  (4,) float64, about 32 B, = value
    """
    handles = [one if isinstance(one, DistArray) else asarray(one) for one in arrays]
    if not handles:
        raise OptionError("visualize: give at least one array")
    for handle in handles:
        check_closed(handle.expression)
    names = ["value"] if len(handles) == 1 else [f"value {place}" for place in range(len(handles))]
    roots = {name: handle.expression for name, handle in zip(names, handles, strict=True)}
    return current_session().picture(roots, stage, measured)


@cancellable()
def repartition(
    array: DistArray,
    n: int | Sequence[int] | None = None,
    cuts: Sequence[int] | Sequence[int | Sequence[int] | None] | None = None,
) -> DistArray:
    """Split an array into other blocks; its values do not change.

    A lazy array is computed first. Arrays aligned with it by :func:`matnb.align` are repartitioned too. As
    Presto's ``repartition(n, merge)`` (section 5.3 of its paper) it splits parts where ``n`` is larger than
    before, merges neighbors where it is smaller, and copies only parts with other bounds or another worker.

    Parameters
    ----------
    array
        Of at least one axis.
    n
        The number of parts of about equal work: along the rows, or one number per axis. Work is estimated
        from measured times for a sparse array where there are any, else from its stored entries, or elements.
        By default there are as many parts as threads in all workers, along the rows, or where only other axes
        are aligned the longest of those. Since measured times vary, the last bits
        of results that depend on the split, such as BLAS products, can vary too; use ``cuts`` to avoid that.
    cuts
        Exact boundaries instead: row positions such as ``[0, 10, 25, 100]``, or per axis a list of positions,
        a number of equal parts, or None.

    Returns
    -------
    DistArray
        The same array; its ``layout`` shows the new cuts.

    Raises
    ------
    OptionError
        For anything other than a DistArray, for both ``n`` and ``cuts``, and where n < 1; for parts along an
        axis that is to stay whole since others are aligned; and while the cuts have to stay.
    ShapeError
        When counts or cuts do not fit the shape.
    LoopBodyError
        For an array of the body of a loop or branch.
    TooLargeError
        When the old and the new blocks do not fit the workers' memory together.

    Examples
    --------
    >>> import matnb as mn
    >>> x = mn.repartition(mn.arange(10.0), cuts=[0, 3, 10])
    >>> x.layout.grid.cuts
    ((0, 3, 10),)
    """
    (node,) = _expressions((array,), "repartition")
    if n is not None and cuts is not None:
        raise OptionError("repartition: give n or cuts, not both")
    if not node.ndim:
        raise ShapeError("repartition: a number has no rows; give an array of at least one axis")
    parts: tuple[int, ...] | Grid | None = None if n is None else _counts(n, node.ndim)
    if cuts is not None:
        rows_alone = all(isinstance(one, int | np.integer) for one in cuts) and _is_positions(cuts)
        parts = grid_from(node.shape, [cuts, *[None] * (node.ndim - 1)] if rows_alone else cuts)  # type: ignore[list-item]  # it is looked at
    session = current_session()
    session.lay_out([node], lambda balancer: balancer.repartition(node, parts))
    return array


@cancellable()
def align(*arrays: DistArray, axis: int | Sequence[int] = 0) -> None:
    """Keep arrays aligned along an axis: cut at the same places, the parts on the same workers.

    Presto's ``invariant`` (section 3.3 of its paper). The arrays are cut as the one with the most bytes is (a
    sparse one before dense ones); where that is cut along other axes, as the heaviest of the others that is
    cut along these alone, else into a part a thread. Stored arrays are moved now, lazy ones once they are
    computed. All stay aligned when one is repartitioned, by a user or a policy, when workers join, and when
    blocks of a lost worker are made again. Moves are in :func:`matnb.history`.

    - ``axis=0``: rows. Part i of one array is on the worker of part i of the others; no other axis is cut.
    - ``axis=1``: columns, of arrays that may have different numbers of rows. Rows are not cut. Columns are
      not balanced by measured times: a sparse array gets parts of about equal numbers of entries.
    - ``axis=(0, 1)``: both, of arrays of one shape. Block (i, j) of one is on the worker of block (i, j) of
      the others.

    Calls add up: arrays that share a partner are all aligned, along those axes on which all have one length.

    Parameters
    ----------
    *arrays
        At least two DistArrays of any dtypes, equally long on each axis that is named.
    axis
        One axis or several; negative ones count from the last, of arrays with as many axes.

    Raises
    ------
    OptionError
        For fewer than two arrays, anything other than a DistArray, and no axis; and where an array has other
        partners already with which it cannot be aligned so, or has to keep its cuts.
    AxisError
        For an axis that one of the arrays does not have.
    ShapeError
        When their lengths on an axis differ, or an axis is named twice.
    DTypeError
        For an axis that is no integer.
    LoopBodyError
        For an array of the body of a loop or branch.

    Examples
    --------
    >>> import matnb as mn
    >>> R, M = mn.ones((4, 6)), mn.ones((2, 6))
    >>> mn.align(R, M, axis=1)
    >>> _ = mn.repartition(R, cuts=[None, [0, 1, 6]]), M.persist()
    >>> M.layout.grid.cuts
    ((0, 2), (0, 1, 6))
    """
    nodes = _expressions(arrays, "align")
    if len(nodes) < 2:
        raise OptionError("align: give at least two arrays")
    axes = _axes_of(nodes, axis)
    for one in axes:
        if len({node.shape[one] for node in nodes}) > 1:
            shapes = ", ".join(str(node.shape) for node in nodes)
            raise ShapeError(
                f"align: arrays of shapes {shapes} do not have the same number of {axes_text([one])}"
            )
    current_session().lay_out(nodes, lambda balancer: balancer.layouts.align(nodes, axes), stored=False)


def _axes_of(nodes: Sequence[Expr], axis: int | Sequence[int]) -> tuple[int, ...]:
    # The axes that are named, alike of all arrays.
    given = axis if isinstance(axis, int) else tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    if given == ():
        raise OptionError("align: axis=() names no axis; give 0 for rows, 1 for columns, (0, 1) for both")
    found = {normalize_axes(given, node.ndim) for node in nodes}
    if len(found) > 1:
        raise OptionError(
            f"align: axis={axis} is another axis in each array; count axes from the first, from 0"
        )
    return found.pop()


def _expressions(arrays: Sequence[object], called: str) -> list[Expr]:
    for one in arrays:
        if not isinstance(one, DistArray):
            raise OptionError(f"{called}: {type(one).__name__} is not a DistArray; make one with mn.asarray")
    nodes = [one.expression for one in arrays if isinstance(one, DistArray)]
    if any(node.free for node in nodes):
        raise LoopBodyError(
            f"{called}: an array inside the body of a loop or branch, which is only being recorded and has "
            f"no blocks yet; call mn.{called} before the loop, with arrays from outside"
        )
    return nodes


def _counts(n: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    counts = tuple(n) if isinstance(n, Sequence) else (n,)
    if any(
        not isinstance(one, int | np.integer) or isinstance(one, bool) or not 1 <= one <= MOST_PARTS
        for one in counts
    ):
        raise OptionError(f"repartition: n={n!r}: give whole numbers from 1 to {MOST_PARTS:,}")
    if isinstance(n, int | np.integer):
        return (int(n), *(1,) * (ndim - 1))
    if len(counts) != ndim:
        raise ShapeError(f"repartition: n={n!r} names {len(counts)} axes, the array has {ndim}")
    return tuple(map(int, counts))


def _is_positions(cuts: Sequence[object]) -> bool:
    # [0, 3, 10] are positions of the rows; [2, 3] are counts of two axes.
    return len(cuts) > 0 and cuts[0] == 0


class _Evaluator:
    """Gives values to handles through the session in use; looking never starts one."""

    def limit(self, node: Expr | None = None) -> int:
        if node is not None:
            check_closed(node)
        return current_session().config.compute_limit_bytes

    @cancellable()
    def value(self, node: Expr) -> Block:
        check_closed(node)
        return current_session().value(node)

    @cancellable()
    def persist(self, nodes: Sequence[Expr]) -> None:
        for node in nodes:
            check_closed(node)
        current_session().persist(nodes)

    @cancellable()
    def ship(self, node: Data, block: Block) -> None:
        current_session().ship(node, block)

    def memory_here(self) -> int:
        cluster = current_session().cluster
        there = [cluster.workers[number] for number in cluster.alive()]
        return sum(one.memory_limit_bytes for one in there) if cluster.in_process else 0

    def went_through_batches(self) -> None:
        if (session := active_session()) is not None:
            session.tell(BatchesFinished())

    @cancellable()
    def explain(self, roots: Mapping[str, Expr], stage: str | None, measured: bool) -> str:
        for node in roots.values():
            check_closed(node)
        return current_session().explain(roots, stage, measured)

    def has_session(self) -> bool:
        return _looked_at() is not None

    def layout(self, node: Expr) -> Layout | None:
        stored = _stored(node)
        return None if stored is None else stored.layout

    def planned_layout(self, node: Expr) -> Layout:
        check_closed(node)
        return self.layout(node) or current_session().planned_layout(node)

    def facts(self, node: Expr, with_values: bool = False, starts: bool | None = None) -> ArrayFacts:
        session = current_session() if starts and not _process.was_used else _looked_at()
        made = None if session is None or starts is None else session.glance(node)
        return array_facts(node, None if session is None else session.values_there, with_values, made)


def check_closed(node: Expr) -> None:
    """Refuse to give the value of what depends on the variables of a loop or branch.

    Raises
    ------
    LoopBodyError
        When it does.
    """
    if node.free:
        raise LoopBodyError(
            "a value was requested inside the body of a loop or branch, which is only being recorded and has "
            "no values yet: end the loop with until=, choose with mn.cond or np.where, and return what you "
            "need outside; convert NumPy and SciPy operands, such as S in S @ x and b in b[mn.iteration()], "
            "with mn.asarray"
        )


def _looked_at() -> Session | None:
    # Readers do not block while a session starts or stops.
    session = _process.session
    return None if session is None or session.ended else session


def _stored(node: Expr) -> StoredArray | None:
    session = _looked_at()
    return None if session is None else session.stored(node)


set_evaluator(_Evaluator())
