"""How busy each worker was over the last while: what workers told of themselves, as facts of now."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, inf, isfinite
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from matnb.events import Event, WorkerSample, WorkersBusy, WorkersLost, WorkersSampled
from matnb.widgets.monitor_rows import WorkerFacts

_RATE_SECONDS = 2.0  # over which bytes a second are counted
_SILENT_SECONDS = 10.0  # a worker that others are not is gone


class BusyHistory:
    """The workers' reports in a bounded window of time.

    Parameters
    ----------
    begin
        The time at which it begins.
    window_seconds
        How far back it remembers.
    """

    def __init__(self, begin: float, window_seconds: float = 60.0) -> None:
        self._window = window_seconds
        self._loads = Loads(begin, window_seconds)
        self._workers: dict[int, _Worker] = {}

    @property
    def step_seconds(self) -> float:
        """Of the histories."""
        return self._loads.step_seconds

    def take(self, when: float, event: Event) -> None:
        """Add the workers' reports of one moment."""
        match event:
            case WorkersBusy(number, seconds, by_kind):
                self._worker(number).heard_at = when
                self._loads.add(number, when, seconds, by_kind)
            case WorkersSampled(samples):
                for sample in samples:
                    worker = self._worker(sample.worker)
                    if isfinite(worker.sampled_at):
                        self._loads.note_gap(when - worker.sampled_at)
                    worker.take(when, sample)
            case WorkersLost(_, workers):
                for number in workers:
                    worker = self._worker(number)
                    worker.is_lost, worker.heard_at = True, when

    def facts(self, now: float) -> tuple[tuple[WorkerFacts, ...], tuple[float, ...]]:
        """Return each worker's facts, and the imbalance over time."""
        self._drop_gone(now)
        self._loads.advance(now)
        numbers = sorted(self._workers)
        threads = [self._workers[number].num_threads for number in numbers]
        counted = [not self._workers[number].is_lost for number in numbers]
        found = self._loads.shares(numbers, threads, counted)
        workers = tuple(
            self._workers[number].facts(number, busy, history, now)
            for number, busy, history in zip(numbers, found.busy, found.histories, strict=True)
        )
        return workers, found.imbalance

    def _worker(self, number: int) -> _Worker:
        return self._workers.setdefault(number, _Worker())

    def _drop_gone(self, now: float) -> None:
        sampled = [one.sampled_at for one in self._workers.values() if isfinite(one.sampled_at)]
        newest = max(sampled, default=now)
        for worker in self._workers.values():
            if isfinite(worker.sampled_at) and newest - worker.sampled_at > _SILENT_SECONDS:
                worker.is_lost = True
        gone = [
            number
            for number, one in self._workers.items()
            if now - max(one.heard_at, one.sampled_at) > self._window
            and (one.is_lost or not isfinite(one.sampled_at))
        ]
        for number in gone:
            del self._workers[number]
        self._loads.forget(gone)


class _Worker:
    """What is known of a worker apart from its load."""

    __slots__ = ("_samples", "heard_at", "is_lost", "num_threads", "sampled_at")

    def __init__(self) -> None:
        self.heard_at = self.sampled_at = -inf
        self.is_lost, self.num_threads = False, 1
        self._samples: deque[tuple[float, WorkerSample]] = deque()

    def take(self, when: float, sample: WorkerSample) -> None:
        self.sampled_at, self.num_threads = when, sample.num_threads
        self._samples.append((when, sample))
        while len(self._samples) > 2 and self._samples[1][0] <= when - _RATE_SECONDS:
            self._samples.popleft()

    def facts(
        self, number: int, busy: dict[str, float], history: tuple[float, ...], now: float
    ) -> WorkerFacts:
        if not self._samples:
            return WorkerFacts(number, busy, history=history, is_lost=self.is_lost)
        (first, before), (last, sample) = self._samples[0], self._samples[-1]
        received = sent = 0.0
        if last > first and now - last <= _SILENT_SECONDS and not self.is_lost:
            received = max(0.0, (sample.received_bytes - before.received_bytes) / (last - first))
            sent = max(0.0, (sample.sent_bytes - before.sent_bytes) / (last - first))
        return WorkerFacts(
            number, busy, sample.num_queued, sample.num_running, sample.memory_bytes, sample.limit_bytes,
            received, sent, history, self.is_lost,
        )  # fmt: skip


# How long each worker's kernels ran over the last while, by kind of work: rings of short steps of time.

_Seconds: TypeAlias = NDArray[np.float64]

_FINE = 4  # columns of a ring in a step of the history
_NUM_STEPS = 60
_RECENT_SECONDS = 2.0  # what is busy now
_MOST_GAP_SECONDS = 5.0
_MOST_LATE_SECONDS = 1.5 * _MOST_GAP_SECONDS
_MOST_KINDS = 24
_OTHER = "other"
_IDLE_SHARE = 0.01  # of a step: less is no work that could be balanced


@dataclass(frozen=True)
class Shares:
    """Of each worker, in the order asked for.

    Attributes
    ----------
    busy
        By kind the share of its threads' time, over the last seconds.
    histories
        The share by step, oldest first.
    imbalance
        By step the most kernel seconds of a worker over the mean; 1.0 where next to nothing ran.
    """

    busy: list[dict[str, float]]
    histories: list[tuple[float, ...]]
    imbalance: tuple[float, ...]


class Loads:
    """Kernel seconds in rings, one row a worker.

    Parameters
    ----------
    begin
        The time at which it begins.
    window_seconds
        How far back it remembers.

    Attributes
    ----------
    step_seconds
        Of the history.
    gap_seconds
        About how often workers tell.
    """

    def __init__(self, begin: float, window_seconds: float) -> None:
        self.step_seconds, self.gap_seconds = window_seconds / _NUM_STEPS, 0.0
        self._fine_seconds = self.step_seconds / _FINE
        self._begin, self._now, self._newest = begin, 0.0, 0
        self._rows: dict[int, int] = {}
        self._free: list[int] = []
        late = self._columns(_MOST_LATE_SECONDS)  # where it is not known yet what was done
        self._all = _Ring((_NUM_STEPS + 1) * _FINE + late)
        self._num_recent = self._columns(2 * _MOST_GAP_SECONDS) + late + 2
        self._kinds: dict[str, _Ring] = {}
        self._until = np.zeros(0)  # by row

    def add(self, number: int, when: float, seconds: float, by_kind: Iterable[tuple[str, float]]) -> None:
        """Take what a worker's kernels took in the seconds up to a time."""
        stop = when - self._begin
        start = stop - max(0.0, seconds)
        self._advance(stop)
        row = self._row(number)
        self._until[row] = max(self._until[row], stop)
        first, parts = self._parts(start, stop)
        total = 0.0
        for kind, took in by_kind:
            total += took
            self._kind(kind).add(row, first, parts, took)
        self._all.add(row, first, parts, total)

    def advance(self, now: float) -> None:
        """Advance the clock."""
        self._advance(now - self._begin)

    def note_gap(self, seconds: float) -> None:
        """Note the time between two reports of a worker."""
        self.gap_seconds += (min(max(seconds, 0.0), _MOST_GAP_SECONDS) - self.gap_seconds) / 8

    def forget(self, numbers: Iterable[int]) -> None:
        """Let go of workers."""
        for number in numbers:
            row = self._rows.pop(number, None)
            if row is not None:
                self._free.append(row)
                for ring in (self._all, *self._kinds.values()):
                    ring.seconds[row] = 0.0
                self._until[row] = 0.0

    def shares(self, numbers: Sequence[int], threads: Sequence[int], counted: Sequence[bool]) -> Shares:
        """Return how busy workers of so many threads were, and how uneven those that are counted were."""
        if not numbers:
            return Shares([], [], ())
        rows = np.array([self._row(number) for number in numbers], np.intp)
        counts = np.maximum(np.array(threads, np.float64), 1.0)
        steps, elapsed = self._steps(rows)
        histories = np.minimum(steps / (counts[:, None] * elapsed), 1.0)
        return Shares(
            self._recent(rows, counts),
            [tuple(own) for own in np.round(histories, 4).tolist()],
            _imbalance(steps[np.array(counted)] if any(counted) else steps, elapsed),
        )

    # shares of time

    def _end(self) -> float:
        # Up to where it is known what was done: what runs now is reported a moment later.
        told = float(self._until.max(initial=0.0))
        return max(0.0, told, self._now - max(1.0, 1.5 * self.gap_seconds))

    def _recent(self, rows: NDArray[np.intp], threads: _Seconds) -> list[dict[str, float]]:
        end = self._end()
        length = max(_RECENT_SECONDS, 2 * self.gap_seconds)
        last = self._column(end)
        first = max(0, last - self._columns(length) + 1)
        # Workers tell at different times: one that has not yet is no less busy.
        behind = end - self._until[rows]
        behind[behind > max(0.6, 1.5 * self.gap_seconds)] = 0.0
        covered = np.maximum(end - first * self._fine_seconds - behind, self._fine_seconds / 2) * threads
        names = sorted(self._kinds)
        if not names:
            return [{} for _ in rows]
        found = np.stack([self._kinds[name].sums(rows, first, last) for name in names], axis=1)
        found /= covered[:, None]
        found /= np.maximum(found.sum(axis=1), 1.0)[:, None]
        return [
            {name: share for name, share in zip(names, own, strict=True) if share > 0.0}
            for own in np.round(found, 4).tolist()
        ]

    def _steps(self, rows: NDArray[np.intp]) -> tuple[_Seconds, _Seconds]:
        # Kernel seconds by worker and step, and how long each step is: the last one is under way.
        end = self._end()
        last = self._column(end)
        if end - (last // _FINE) * self.step_seconds < self._fine_seconds:
            last = (last // _FINE) * _FINE - 1  # it has only begun
        step = last // _FINE
        first = max(0, step - _NUM_STEPS + 1)
        elapsed = np.full(step - first + 1, self.step_seconds)
        if elapsed.size:
            elapsed[-1] = min(self.step_seconds, end - step * self.step_seconds)
        seconds = self._all.columns(rows, first * _FINE, (step + 1) * _FINE - 1)
        return np.asarray(sum(seconds[:, place::_FINE] for place in range(_FINE))), elapsed

    # rings

    def _column(self, when: float) -> int:
        return max(0, floor(when / self._fine_seconds))

    def _columns(self, seconds: float) -> int:
        return max(1, round(seconds / self._fine_seconds))

    def _advance(self, now: float) -> None:
        self._now = max(self._now, now)
        newest = self._column(self._now)
        if newest > self._newest:
            self._newest = newest
            for ring in (self._all, *self._kinds.values()):
                ring.advance(newest)

    def _parts(self, start: float, stop: float) -> tuple[int, _Seconds]:
        # The first column of a time, and the part of it in each; what is before the window is left out.
        first, last, width = self._column(start), self._column(stop), self._fine_seconds
        if stop - start <= 0.0 or first == last:
            return last, np.ones(1)
        first = max(first, last - self._all.num_columns + 1)
        parts = np.full(last - first + 1, width / (stop - start))
        parts[0] = ((first + 1) * width - max(start, first * width)) / (stop - start)
        parts[-1] = (stop - last * width) / (stop - start)
        return first, parts

    def _row(self, number: int) -> int:
        row = self._rows.get(number)
        if row is None:
            row = self._free.pop() if self._free else len(self._rows)
            self._rows[number] = row
            if row >= self._until.size:
                self._until = np.append(self._until, np.zeros(max(16, row + 1)))
            for ring in (self._all, *self._kinds.values()):
                ring.grow(self._until.size)
        return row

    def _kind(self, kind: str) -> _Ring:
        ring = self._kinds.get(kind)
        if ring is None:
            if len(self._kinds) >= _MOST_KINDS:
                self._kinds = {name: one for name, one in self._kinds.items() if one.seconds.any()}
            if len(self._kinds) >= _MOST_KINDS and kind != _OTHER:
                return self._kind(_OTHER)
            ring = self._kinds[kind] = _Ring(self._num_recent)
            ring.grow(self._until.size)
            ring.advance(self._newest)
        return ring


def _imbalance(steps: _Seconds, elapsed: _Seconds) -> tuple[float, ...]:
    means = steps.mean(axis=0)
    has_work = means > _IDLE_SHARE * elapsed
    ratios = np.where(has_work, steps.max(axis=0) / np.where(has_work, means, 1.0), 1.0)
    return tuple(np.round(ratios, 4).tolist())


class _Ring:
    """Seconds by row and column; columns are numbered on and on, and the last ones are kept."""

    def __init__(self, num_columns: int) -> None:
        self.num_columns = num_columns
        self.seconds: _Seconds = np.zeros((0, num_columns))
        self._newest = 0

    def grow(self, num_rows: int) -> None:
        more = num_rows - len(self.seconds)
        if more > 0:
            self.seconds = np.vstack([self.seconds, np.zeros((more, self.num_columns))])

    def advance(self, newest: int) -> None:
        passed = min(newest - self._newest, self.num_columns)
        if passed > 0:
            self.seconds[:, np.arange(newest - passed + 1, newest + 1) % self.num_columns] = 0.0
            self._newest = newest

    def add(self, row: int, first: int, parts: _Seconds, seconds: float) -> None:
        """Add seconds, so large a part in each column from the first; those that went by are left out."""
        left_out = max(0, self._newest - self.num_columns + 1 - first)
        parts = parts[left_out:] * seconds
        start = (first + left_out) % self.num_columns
        own, until_end = self.seconds[row], self.num_columns - start
        if parts.size <= until_end:
            own[start : start + parts.size] += parts
        else:
            own[start:] += parts[:until_end]
            own[: parts.size - until_end] += parts[until_end:]

    def columns(self, rows: NDArray[np.intp], first: int, last: int) -> _Seconds:
        """Return columns, those that are still to come as zeros."""
        numbers = np.arange(first, last + 1)
        found: _Seconds = self.seconds[rows][:, numbers % self.num_columns]
        found[:, numbers > self._newest] = 0.0
        return found

    def sums(self, rows: NDArray[np.intp], first: int, last: int) -> _Seconds:
        total: _Seconds = self.columns(rows, first, last).sum(axis=1)
        return total
