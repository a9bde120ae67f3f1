"""Telemetry of workers while someone is watching: load, memory, and traffic between them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from distributed import Worker, WorkerPlugin

from matnb.backend.cluster.connection import BROKEN, CLOSING_ERRORS
from matnb.backend.cluster.dask_cluster import DaskCluster
from matnb.backend.gang.member_life import GangPlugin
from matnb.backend.gang.performer import seconds_so_far
from matnb.backend.tasks import worker as tasks
from matnb.events import Event, TaskTimed, WorkerSample, WorkersBusy, WorkersSampled

_TELL_SECONDS = 0.25  # between two samples of a worker, at least
_MOST_FINISHED = 4096  # runs that wait to be taken in
_MOST_SAMPLES = 400.0  # a second, of all workers
_CLOSE_SECONDS = 5.0

# Telemetries of workers in this process, by the name of the plugin: they hear without the scheduler.
telemetries_here: dict[str, Callable[[dict[str, Any]], None]] = {}


def gang_name(prefix: str, epoch: int) -> str:
    """Return what a gathering of a session is called beside its runs."""
    return f"{prefix}g{epoch}"


class SamplingPlugin(WorkerPlugin):  # type: ignore[misc]  # it has no types
    """Tells now and then how a worker does, from its event loop, until it is removed.

    Parameters
    ----------
    name
        Of the plugin; tells one session's samples from another's.
    prefix
        Of the names of the session's runs.
    gang
        Name of the plugin of its gangs.
    topic
        Where they are sent.
    seconds
        Between two samples.
    """

    def __init__(self, name: str, prefix: str, gang: str, topic: str, seconds: float) -> None:
        self.name, self._prefix, self._gang, self._topic, self._seconds = name, prefix, gang, topic, seconds

    def setup(self, worker: Worker) -> None:
        """Begin to tell."""
        self._worker = worker
        self._read: dict[tuple[str, int], _Read] = {}
        self._sizes: dict[str, int] = {}  # of what has come, by Dask's key
        self._last_transfer: object = next(reversed(worker.transfer_incoming_log), None)
        self._sampling = asyncio.create_task(self._sample())

    def teardown(self, worker: Worker) -> None:
        """Tell no more."""
        self._sampling.cancel()

    def transition(self, key: str, start: str, finish: str, **_: Any) -> None:
        """Take the size of what has come from another worker: Dask does not know those of our blocks."""
        if start == "flight" and finish == "memory":
            size = getattr(self._worker.data.get(key), "nbytes", None)
            if isinstance(size, int):
                self._sizes[key] = size

    async def _sample(self) -> None:
        while True:
            busy, timed = self._busy(), tasks.timed_now(self._prefix)[0]
            message = {
                "samples": self.name,
                "worker": self._worker.address,
                "now": self._facts(),
                "busy": busy,
                "done": [
                    (*key, timed[key][1] if key in timed else 0)
                    for key in ((run, owner) for run, owner, _ in busy)
                ],
                "come": self._come(),
            }
            told_here = telemetries_here.get(self.name)
            if told_here is not None:
                told_here(message)
            else:
                self._worker.log_event(self._topic, message)
            await asyncio.sleep(self._seconds)

    def _facts(self) -> tuple[int, ...]:
        # As the fields of a WorkerSample after its first; traffic is the gang's.
        worker, state = self._worker, self._worker.state
        gang = worker.plugins.get(self._gang)
        received, sent = gang.traffic() if isinstance(gang, GangPlugin) else (0, 0)
        return (
            worker.monitor.get_process_memory(),
            worker.memory_manager.memory_limit or 0,
            len(state.ready) + len(state.constrained) + len(state.waiting),
            state.executing_count,
            received,
            sent,
            state.nthreads,
        )

    def _come(self) -> dict[str, int]:
        # Bytes that came by Dask from each other worker since the last sample.
        found: dict[str, int] = {}
        for transfer in reversed(self._worker.transfer_incoming_log):
            if transfer is self._last_transfer:
                break
            sizes = (self._sizes.pop(key, size) for key, size in transfer["keys"].items())
            found[transfer["who"]] = found.get(transfer["who"], 0) + sum(sizes)
        self._last_transfer = next(reversed(self._worker.transfer_incoming_log), None)
        self._sizes.clear()
        return found

    def _busy(self) -> list[tuple[str, int, dict[str, float]]]:
        # Of runs that are under way, so far; workers of one process tell the same.
        done, running = tasks.timed_now(self._prefix)
        gang = self._worker.plugins.get(self._gang)
        self._read = {key: self._read.get(key) or _Read() for key in done}
        found = {key: self._read[key].go_on(*timed) for key, timed in done.items()}
        for run_id, owner, kind, seconds in running:
            by_kind = found.setdefault((run_id, owner), {})
            by_kind[kind] = by_kind.get(kind, 0.0) + seconds
        if isinstance(gang, GangPlugin) and (performing := gang.performing) is not None:
            epoch, owner, thread = performing
            found[gang_name(self._prefix, epoch), owner] = seconds_so_far(thread)
        return [(*key, by_kind) for key, by_kind in found.items()]


class _Read:
    """Kernel seconds of a run by kind, for the tasks that were read so far."""

    __slots__ = ("_by_kind", "_num_read")

    def __init__(self) -> None:
        self._by_kind: dict[str, float] = {}
        self._num_read = 0

    def go_on(self, timed: list[TaskTimed], count: int) -> dict[str, float]:
        new = timed[self._num_read : count]
        self._num_read += len(new)
        for one in new:
            self._by_kind[one.kind] = self._by_kind.get(one.kind, 0.0) + one.seconds
        return dict(self._by_kind)


class Telemetry:
    """Collects what workers of a session tell, while somebody looks; else nothing is sent or collected.

    Kernel seconds come with the samples while something runs, and with its results when it ends; each second
    is counted once.

    Parameters
    ----------
    cluster
        Whose workers.
    prefix
        Put before every name of the session.
    tell
        Called with each event, from any thread.
    clock
        Seconds.
    """

    def __init__(
        self,
        cluster: DaskCluster,
        prefix: str,
        tell: Callable[[Event], None],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._cluster, self._client, self._prefix = cluster, cluster.client, prefix
        self._tell, self._clock = tell, clock
        self._plugin = f"{prefix}samples"
        self._lock = threading.Lock()
        self._is_on = self._is_installed = self._is_listening = False
        self._installing = asyncio.Lock()
        self._samples: dict[int, WorkerSample] = {}
        self._received: dict[int, int] = {}  # bytes by Dask
        self._sent: dict[int, int] = {}
        self._pending: dict[int, _UnsentSeconds] = {}
        self._run: _RunTelemetry | None = None
        self._finished: deque[tuple[_RunTelemetry, Iterable[TaskTimed]]] = deque()  # not taken in yet

    def begin(self) -> None:
        """Have the workers tell from now on; returns before they do."""
        if self._is_on or self._client.status != "running":
            return
        self._is_on = True
        if self._cluster.in_process:
            telemetries_here[self._plugin] = self.hear
        elif not self._is_listening:
            self._is_listening = True
            self._cluster.listen(self._handle_event)
        self._install()

    def end(self) -> None:
        """Report what is pending, and stop the workers' reports."""
        if not self._is_on:
            return
        self.flush()
        with self._lock:
            self._is_on = False
            self._samples, self._pending, self._run, self._finished = {}, {}, None, deque()
        telemetries_here.pop(self._plugin, None)
        self._install()

    def close(self) -> None:
        """Leave nothing on the workers."""
        with contextlib.suppress(*CLOSING_ERRORS):
            self.end()
            installing = self._install()
            if installing is not None:
                installing.result(_CLOSE_SECONDS)

    # runs and gangs, by the driver's thread

    def began(self, run_id: str, so_far: Callable[[], tuple[int, Mapping[str, float]]] | None = None) -> None:
        """Take note of a run that begins, or a gang.

        Parameters
        ----------
        so_far
            Gives the worker of the only member of a gang in this process, and what its tasks have taken by
            kind; None where workers tell of it.
        """
        if self._is_on:
            self._run = _RunTelemetry(run_id, self._clock(), so_far)

    def ended(self, timed: Iterable[TaskTimed]) -> None:
        """Take what the tasks of the run or the gang took; the caller changes it no more."""
        run, self._run = self._run, None
        if run is None:
            return  # nobody looked when it began
        # A cell may have thousands of quick runs: many are taken in together, mostly with a sample.
        self._finished.append((run, timed))
        if len(self._finished) > _MOST_FINISHED:
            self.flush()

    def flush(self) -> None:
        """Tell what was held back because it had reported a moment before."""
        with self._lock:
            self._take_in()
            found = self._due(list(self._pending), at_once=True)
        self._tell_all(found)

    # samples, by an event loop's thread

    def hear(self, message: Mapping[str, Any]) -> None:
        """Take what a worker tells."""
        numbers = {one.address: number for number, one in enumerate(self._cluster.workers)}
        number = numbers.get(message["worker"])
        with self._lock:
            if not self._is_on or number is None:
                return
            self._take_in()
            run = self._run
            for done in () if self._cluster.in_process else message["done"]:
                tasks.note_done(*done)
            for run_id, owner, by_kind in message["busy"]:
                if run is not None and run_id == run.run_id:  # others have told all
                    self._note(run, owner, by_kind)
            if run is not None and run.so_far is not None:
                self._note(run, *run.so_far())
            found: list[Event] = list(self._due([number], at_once=True))
            if number in self._samples:
                found.append(self._sampled())
            come = {numbers[one]: size for one, size in message["come"].items() if one in numbers}
            self._received[number] = self._received.get(number, 0) + sum(come.values())
            for other, size in come.items():
                self._sent[other] = self._sent.get(other, 0) + size
            sample = self._sample(number, *message["now"])
            if self._cluster.in_process:  # where Dask knows of few of them
                running = tasks.num_running(self._prefix).get(number, 0)
                sample = replace(sample, num_running=max(sample.num_running, running))
            self._samples[number] = sample
            if len(self._samples) >= len(self._cluster.alive()):
                found.append(self._sampled())
        self._tell_all(found)

    def _handle_event(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("samples") == self._cluster.name_now(self._plugin):
            self.hear(message)

    def _sample(
        self, number: int, memory: int, limit: int, queued: int, running: int, received: int, sent: int,
        threads: int,
    ) -> WorkerSample:  # fmt: skip
        if self._cluster.in_process:
            memory //= max(1, len(self._cluster.alive()))
        received += self._received.get(number, 0)
        sent += self._sent.get(number, 0)
        return WorkerSample(number, memory, limit, queued, running, received, sent, threads)

    def _sampled(self) -> WorkersSampled:
        samples, self._samples = self._samples, {}
        return WorkersSampled(tuple(samples[number] for number in sorted(samples)))

    # held back for a moment

    def _take_in(self) -> None:
        # What finished runs took, in addition to what was reported while they ran.
        finished = [self._finished.popleft() for _ in range(len(self._finished))]
        untold = [(run, timed) for run, timed in finished if not run.told]  # quick ones, maybe thousands
        sums: dict[tuple[int, str], float] = {}
        for _, timed in untold:
            for one in timed:
                key = one.worker, one.kind
                sums[key] = sums.get(key, 0.0) + one.seconds
        for (owner, kind), seconds in sums.items():
            self._add(owner, {kind: seconds}, untold[0][0].begin)
        for run, timed in finished:
            if not run.told:
                continue
            totals: dict[int, dict[str, float]] = {}
            for one in timed:
                own = totals.setdefault(one.worker, {})
                own[one.kind] = own.get(one.kind, 0.0) + one.seconds
            for owner, by_kind in totals.items():
                if owner in run.told:
                    self._note(run, owner, by_kind)
                else:
                    self._add(owner, by_kind, run.begin)

    def _note(self, run: _RunTelemetry, owner: int, totals: Mapping[str, float]) -> None:
        # What a run has taken so far, of which a part may have been told.
        told = run.told.setdefault(owner, {})
        new = {kind: total - told.get(kind, 0.0) for kind, total in totals.items()}
        new = {kind: seconds for kind, seconds in new.items() if seconds > 0}
        if new:
            told.update({kind: totals[kind] for kind in new})
            self._add(owner, new, run.last.get(owner, run.begin))
            run.last[owner] = self._clock()

    def _add(self, owner: int, by_kind: Mapping[str, float], since: float) -> None:
        if not self._is_on or not by_kind:
            return
        pending = self._pending.setdefault(owner, _UnsentSeconds(since))
        pending.since = min(pending.since, since)
        for kind, seconds in by_kind.items():
            pending.by_kind[kind] = pending.by_kind.get(kind, 0.0) + seconds

    def _due(self, owners: Iterable[int], at_once: bool = False) -> list[WorkersBusy]:
        now, found = self._clock(), []
        for owner in owners:
            pending = self._pending.get(owner)
            if pending is not None and (at_once or now - pending.since >= _TELL_SECONDS):
                del self._pending[owner]
                by_kind = tuple(sorted((kind, took) for kind, took in pending.by_kind.items() if took > 0))
                found.append(WorkersBusy(owner, now - pending.since, by_kind))
        return found

    def _tell_all(self, found: Iterable[Event]) -> None:
        for event in found:
            self._tell(event)

    # on the workers

    def _install(self) -> concurrent.futures.Future[None] | None:
        if self._client.status != "running":
            return None
        return asyncio.run_coroutine_threadsafe(self._installed(), self._client.loop.asyncio_loop)

    def _sampling(self, seconds: float, name: str) -> SamplingPlugin:
        gang = self._cluster.name_now(f"{self._prefix}gang")
        return SamplingPlugin(name, self._prefix, gang, self._client.id, seconds)

    async def _installed(self) -> None:
        # Listeners may come and go while the workers are asked: what is wanted last holds.
        async with self._installing:
            while self._is_on != self._is_installed:
                self._is_installed = self._is_on
                with contextlib.suppress(RuntimeError, ValueError, *BROKEN):  # workers that go meanwhile
                    if self._is_installed:
                        seconds = max(_TELL_SECONDS, len(self._cluster.alive()) / _MOST_SAMPLES)
                        await self._cluster.installed(partial(self._sampling, seconds), self._plugin)
                    else:
                        await self._cluster.uninstalled(self._plugin)


class _UnsentSeconds:
    """Kernel seconds of a worker since a time of the clock, not reported yet."""

    __slots__ = ("by_kind", "since")

    def __init__(self, since: float) -> None:
        self.since, self.by_kind = since, dict[str, float]()


class _RunTelemetry:
    """A run in progress: what each worker has reported about it, and when."""

    __slots__ = ("begin", "last", "run_id", "so_far", "told")

    def __init__(
        self, run_id: str, begin: float, so_far: Callable[[], tuple[int, Mapping[str, float]]] | None
    ) -> None:
        self.run_id, self.begin, self.so_far = run_id, begin, so_far
        self.told: dict[int, dict[str, float]] = {}
        self.last: dict[int, float] = {}
