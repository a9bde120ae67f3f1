"""Results of cells that are computed in the background, one cell after another."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import copy_context
from typing import Any

from matnb.backend.cluster.cancellation import CancelScope
from matnb.errors import CellCancelled, MatnbError
from matnb.events import Event, LoopAdvanced, LoopFinished
from matnb.pictures.summary import LaterFacts, interrupted_text, later_html, later_text, progress_text
from matnb.plan.report import RunReport

_CLOSE_SECONDS = 5.0  # in which what is cancelled has ended
_STEP_SECONDS = 0.1
_BETWEEN_SECONDS = 1.0  # at least, between two calls of listeners while a loop advances


class Later:
    """A cell's results, which another thread computes. Made by ``%%distmat --nowait``.

    Names that the cell assigned are DistArrays at once; asking for a value of theirs waits for it. An
    interrupt of the kernel does not end the work: :meth:`cancel` does. An error comes out at :meth:`result`,
    and ``await`` on this object gives what that gives.

    Attributes
    ----------
    names
        What is computed: names of the cell, and "_" for its last value.
    cell
        The number of the cell, if it is known.
    report
        The report of the run, when it is done.
    """

    def __init__(
        self,
        names: Sequence[str],
        value: object,
        work: Callable[[], RunReport],
        filename: str = "",
        cell: int | None = None,
    ) -> None:
        self.names, self.cell = tuple(names), cell
        self.report: RunReport | None = None
        self._value, self._work, self._filename = value, work, filename
        self._context = copy_context()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._state = "waiting"
        self._error: BaseException | None = None
        self._is_asked_for = False
        self._thread: int | None = None
        self._begin_seconds: float | None = None
        self._seconds = 0.0
        self._listeners: list[Callable[[], None]] = []
        self._stopping: CancelScope | None = None
        self._loop: LoopAdvanced | None = None
        self._num_loops = 0
        self._told_seconds = 0.0

    @property
    def done(self) -> bool:
        """Whether it has ended: with a result, with an error, or cancelled."""
        return self._ended.is_set()

    @property
    def state(self) -> str:
        """How far it is: "waiting" for others, "running", "done", "failed" or "cancelled"."""
        return self._state

    def cancel(self) -> bool:
        """End the work, as an interrupt would end a cell: what is finished stays on the workers.

        Returns
        -------
        bool
            Whether there was anything to end. The work ends within two seconds.
        """
        with self._lock:
            if self._state == "running" and self._stopping is not None:
                return self._stopping.ask(self._thread)
            if self._state != "waiting":
                return False
            self._state = "cancelled"
            if self._stopping is not None:
                self._stopping.ask(self._thread)  # which waits for the session
        self._end(CellCancelled("cancelled before it was begun"))
        return True

    def result(self, timeout_seconds: float | None = None) -> Any:
        """Wait for the work to end and return the last value of the cell.

        Parameters
        ----------
        timeout_seconds
            How long to wait; for ever by default.

        Raises
        ------
        TimeoutError
            When it has not ended by then; the work goes on.
        CellCancelled
            When it was cancelled.
        MatnbError
            What the cell raised, with its lines.
        """
        if not self._wait(timeout_seconds):
            raise TimeoutError(f"not finished after {timeout_seconds} s; it keeps running")
        if self._error is not None:
            self._is_asked_for = True
            raise self._error.with_traceback(None)
        return self._value

    def wait(self) -> None:
        """Wait for the work to end, whatever it ends with.

        Raises
        ------
        CellCancelled
            When the waiting is interrupted; the work goes on.
        """
        try:
            self._wait()
        except KeyboardInterrupt as interrupt:
            raise CellCancelled(interrupted_text(self.names)) from interrupt

    def _wait(self, timeout_seconds: float | None = None) -> bool:
        # In steps, so that an interrupt is seen wherever it came.
        end = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while not self._ended.wait(
            _STEP_SECONDS if end is None else min(_STEP_SECONDS, end - time.monotonic())
        ):
            if end is not None and time.monotonic() >= end:
                return False
        return True

    def __await__(self) -> Generator[Any, None, Any]:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()

        def wake() -> None:
            if self.done:
                with suppress(RuntimeError):  # the loop may be closed by then
                    loop.call_soon_threadsafe(lambda: None if woken.done() else woken.set_result(None))

        if self.follow(wake):
            yield from woken
        return self.result()

    def follow(self, listener: Callable[[], None]) -> bool:
        """Call ``listener`` when the work begins, as its loops advance, and when it ends, on its thread.

        The listener must not raise. Returns whether it will be called: not if the work has ended.
        """
        with self._lock:
            if not self.done:
                self._listeners.append(listener)
            return not self.done

    def facts(self, live: bool = True) -> LaterFacts:
        """Return what is shown of it; what depends on the time only ``live``."""
        state, seconds = self._state, None
        if not (live or state in ("done", "failed")):
            return LaterFacts(self.names)
        if live and self._begin_seconds is not None:
            seconds = self._seconds if self.done else time.monotonic() - self._begin_seconds
        if state == "running" and self._stopping is not None and self._stopping.is_asked(self._thread):
            state = "cancelling"
        error = "" if self._error is None else f"{type(self._error).__name__}: {self._error}"
        progress, loop = "", self._loop
        if state == "running" and loop is not None and seconds is not None:
            progress = progress_text(self._num_loops, loop, seconds, time.monotonic())
        return LaterFacts(self.names, state, seconds, error, progress)

    def hear(self, event: Event) -> None:
        """Take what a session tells: how far the loop is that this runs; other threads' are not."""
        if self._state != "running" or threading.get_ident() != self._thread:
            return
        if isinstance(event, LoopAdvanced):
            self._loop = event
            if (now := time.monotonic()) - self._told_seconds >= _BETWEEN_SECONDS:
                self._told_seconds = now
                for one in tuple(self._listeners):
                    one()
        elif isinstance(event, LoopFinished):
            self._loop = None
            self._num_loops += not event.is_branch

    def bundle(self, live: bool = True) -> dict[str, str]:
        """Return how it is shown in a notebook."""
        facts = self.facts(live)
        return {"text/plain": later_text(facts), "text/html": later_html(facts)}

    def __repr__(self) -> str:
        return later_text(self.facts())

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return self.bundle()

    def run(self, stopping: CancelScope, turn: AbstractContextManager[object] | None = None) -> None:
        """Do the work, on the thread that calls this.

        Parameters
        ----------
        turn
            Is held meanwhile, and waited for before.
        """
        error, report = None, None
        try:
            with stopping.scope():
                with self._lock:
                    if self._state != "waiting":
                        return
                    self._thread, self._stopping = threading.get_ident(), stopping
                with turn or nullcontext():
                    if not self._begin():
                        return
                    report = self._context.run(self._work)
        except BaseException as raised:  # whatever it is, the user who asks for the result is to see it
            error = raised
            if self._state == "cancelled":  # it was taken back meanwhile
                return
            if isinstance(error, MatnbError) and not error.cell:
                error.cell = self._filename
        else:
            self.report = report
        if self._begin_seconds is not None:
            self._seconds = time.monotonic() - self._begin_seconds
        self._end(error)

    def _begin(self) -> bool:
        with self._lock:
            if self._state != "waiting":
                return False
            self._state, self._begin_seconds = "running", time.monotonic()
            listeners = tuple(self._listeners)
        for one in listeners:
            one()
        return True

    def _end(self, error: BaseException | None) -> None:
        with self._lock:
            if error is not None:
                self._state = "cancelled" if isinstance(error, CellCancelled) else "failed"
                self._error, self._value = error.with_traceback(None), None
            else:
                self._state = "done"
            del self._work, self._context  # they hold arrays and the cell's record
            listeners, self._listeners = self._listeners, []
            self._ended.set()
        for one in listeners:
            one()


_failed: list[Later] = []  # of cells that waited, whose handle has no name


def wait_here(later: Later) -> None:
    """Wait for some work to end; what it raises is :func:`unasked` until somebody asks for its result."""
    later.wait()
    if later.state == "failed":
        _failed.append(later)


def unasked() -> Later | None:
    """Return the first work that cells waited for and that failed, without anybody asking for its result."""
    return next((one for one in _failed if not one._is_asked_for), None)


class Background:
    """Does a session's work for later in the order in which it came, on a thread that is there meanwhile.

    Parameters
    ----------
    turn
        Held while some work is done.
    """

    def __init__(self, stopping: CancelScope, turn: AbstractContextManager[object] | None = None) -> None:
        self._stopping, self._turn = stopping, turn
        self._lock = threading.Lock()
        self._waiting: deque[Later] = deque()
        self._running: Later | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, later: Later) -> None:
        """Do some work when what came before it has ended."""
        with self._lock:
            if self._is_closed:
                later.cancel()
                return
            self._waiting.append(later)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="matnb-later", daemon=True)
                self._thread.start()

    def found(self, thread: int | None) -> tuple[tuple[str, ...], int | None]:
        """Return what this thread computes in the background and the number of the cell; else nothing."""
        running = self._running
        if running is None or thread is None or self._thread is None or self._thread.ident != thread:
            return (), None
        return running.names, running.cell

    def close(self) -> None:
        """Cancel everything, and wait a little until it has ended."""
        with self._lock:
            self._is_closed = True
            every = [*self._waiting, *([] if self._running is None else [self._running])]
            thread = self._thread
        for one in every:
            one.cancel()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_SECONDS)

    def _work(self) -> None:
        while True:
            with self._lock:
                self._running = None
                if not self._waiting:
                    self._thread = None
                    return
                self._running = self._waiting.popleft()
            self._running.run(self._stopping, self._turn)
