"""The thread pool of a member: jobs run in order, as soon as their inputs and messages are there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np

PATIENCE_SECONDS = 0.05  # between looks for an abort while there is nothing to do


@dataclass(eq=False)
class Schedule:
    """What waits for what, by the numbers of jobs; the lowest that may run comes first.

    Attributes
    ----------
    missing
        How many jobs and messages each job waits for.
    users
        The jobs that wait for each.
    reads
        The slots of the registers that each job reads.
    uses
        How many jobs read each slot; a job's ``reads`` are let go of with the last.
    """

    missing: Sequence[int]
    users: Sequence[Sequence[int]]
    reads: Sequence[Sequence[int]]
    uses: Sequence[int]


class _SharedJob:
    """Parts of a job that threads take one by one; ``next`` is the first that nobody took."""

    __slots__ = ("count", "do", "done", "error", "is_awaited", "next", "num_helpers")

    def __init__(self, do: Callable[[int], None], count: int) -> None:
        self.do, self.count = do, count
        self.next = self.num_helpers = 0
        self.error: BaseException | None = None
        self.is_awaited = False
        self.done = _asleep()

    def take(self) -> int:
        """Return the number of a part that is to be done, or -1; by whoever holds the mutex."""
        if self.next == self.count or self.error is not None:
            return -1
        self.next += 1
        return self.next - 1


class ThreadPool:
    """The calling thread, and others beside it, which begin with the first work for them.

    Parameters
    ----------
    num_threads
        The calling one among them.
    check
        Raises when all must stop; called again and again by the calling thread while it waits.

    Attributes
    ----------
    mutex
        Held while jobs are given out and messages taken in.
    uses
        How many jobs of the batch are still to read each slot.
    """

    def __init__(self, num_threads: int, check: Callable[[], None]) -> None:
        self._check = check
        self.mutex = threading.Lock()
        self._sleepers: list[threading.Lock] = []
        self._shared: list[_SharedJob] = []
        self._own = _asleep()
        self._ready: list[int] = []
        self._missing: list[int] = []
        self.uses: list[int] = []
        self._remaining = self._running = 0
        self._error: BaseException | None = None
        self._closing = False
        self._num_threads = num_threads
        self._threads: list[threading.Thread] = []

    def run(
        self,
        schedule: Schedule,
        do: Callable[[int], None],
        let_go: Callable[[int], None],
        begin: Callable[[], Sequence[int]],
    ) -> None:
        """Run all jobs of a schedule, by their numbers, and return when the last is done.

        Parameters
        ----------
        schedule
            What waits for what.
        do
            Runs a job.
        let_go
            Told each slot whose last reader is done.
        begin
            Called while no message can come between; returns the jobs whose messages are there already.
        """
        with self.mutex:
            self._schedule, self._do, self._let_go = schedule, do, let_go
            self._missing = list(schedule.missing)
            self.uses = list(schedule.uses)
            for job in begin():
                self._missing[job] -= 1
            self._ready = [job for job, count in enumerate(self._missing) if not count]
            heapify(self._ready)
            self._remaining = len(schedule.missing)
        self._start()
        self._work(self._own, True)
        if self._error is not None:
            raise self._error

    def share(self, do: Callable[[int], None], count: int) -> None:
        """Do parts of this thread's job, by their numbers; threads without a job do some of them."""
        if count < 2 or self._num_threads < 2:
            for number in range(count):
                do(number)
            return
        self._start()
        shared = _SharedJob(do, count)
        with self.mutex:
            self._shared.append(shared)
            for wake in self._sleepers[: count - 1]:
                wake.release()
            del self._sleepers[: count - 1]
        try:
            while (number := self._part(shared)) >= 0:
                do(number)
        finally:
            with self.mutex:
                shared.next = count
                self._shared.remove(shared)
                shared.is_awaited = shared.num_helpers > 0
            if shared.is_awaited:
                shared.done.acquire()
        if shared.error is not None:
            raise shared.error

    def _start(self) -> None:
        # Small work is done before a thread has begun.
        if len(self._threads) == self._num_threads - 1:
            return
        with self.mutex:
            missing = range(len(self._threads) + 1, self._num_threads)
            begun = [
                threading.Thread(target=self._help, name=f"matnb-member-{number}", daemon=True)
                for number in missing
            ]
            self._threads += begun
        for thread in begun:
            thread.start()

    def _part(self, shared: _SharedJob) -> int:
        with self.mutex:
            return shared.take()

    def _help_with(self, shared: _SharedJob, number: int) -> None:
        try:
            while number >= 0:
                shared.do(number)
                with self.mutex:
                    number = -1 if self._ready else shared.take()
        except BaseException as error:  # raised again by the thread whose job it is
            shared.error = error
        finally:
            with self.mutex:
                shared.num_helpers -= 1
                if shared.is_awaited and not shared.num_helpers:
                    shared.done.release()

    def arrive(self, take: Callable[[], int]) -> None:
        """Let one job wait for one message less: which, ``take`` says, or -1; nothing runs beside it."""
        with self.mutex:
            job = take()
            if job >= 0:
                self._free(job)
                if self._ready and self._sleepers:
                    self._sleepers.pop().release()

    def close(self) -> None:
        """Let the other threads go, and wait for them."""
        with self.mutex:
            self._closing = True
            for wake in self._sleepers:
                wake.release()
            self._sleepers.clear()
        for thread in self._threads:
            thread.join()

    def _help(self) -> None:
        with np.errstate(all="ignore"):
            self._work(_asleep(), False)

    def _work(self, wake: threading.Lock, is_own: bool) -> None:
        done = -1
        while True:
            with self.mutex:
                if done >= 0:
                    self._finish(done)
                    done = -1
                if is_own and (not self._remaining or (self._error is not None and not self._running)):
                    return
                if self._closing and not is_own:
                    return
                if self._ready and self._error is None:
                    job = heappop(self._ready)
                    self._running += 1
                    if self._ready and self._sleepers:  # who wakes, wakes the next
                        self._sleepers.pop().release()
                else:
                    job, part = -1, -1
                    for shared in self._shared:
                        part = shared.take()
                        if part >= 0:
                            shared.num_helpers += 1
                            break
                    else:
                        self._sleepers.append(wake)
            if job < 0 and part >= 0:
                self._help_with(shared, part)
                continue
            if job < 0:
                if is_own:
                    self._sleep_watching(wake)
                else:
                    wake.acquire()
                continue
            try:
                self._do(job)
                done = job
            except BaseException as error:  # raised again by the calling thread
                self._fail(error)

    def _finish(self, job: int) -> None:
        schedule, uses = self._schedule, self.uses
        for slot in schedule.reads[job]:
            uses[slot] -= 1
            if not uses[slot]:
                self._let_go(slot)
        for user in schedule.users[job]:
            self._free(user)
        self._running -= 1
        self._remaining -= 1
        if not self._remaining or (self._error is not None and not self._running):
            self._wake_own()

    def _free(self, job: int) -> None:
        self._missing[job] -= 1
        if not self._missing[job]:
            heappush(self._ready, job)

    def _wake_own(self) -> None:
        if self._own in self._sleepers:
            self._sleepers.remove(self._own)
            self._own.release()

    def _fail(self, error: BaseException) -> None:
        with self.mutex:
            self._running -= 1
            self._error = self._error or error
            self._wake_own()

    def _sleep_watching(self, wake: threading.Lock) -> None:
        try:
            while not wake.acquire(timeout=PATIENCE_SECONDS):
                self._check()
        except BaseException as error:  # an abort, or an interrupt of the thread itself
            with self.mutex:
                self._error = self._error or error
                if wake in self._sleepers:
                    self._sleepers.remove(wake)
                else:
                    wake.acquire()  # it was released meanwhile


def _asleep() -> threading.Lock:
    wake = threading.Lock()
    wake.acquire()
    return wake
