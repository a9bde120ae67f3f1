"""The progress line of a long run in a terminal: rewritten in place, and cleared at the end."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from matnb.backend.tasks.worker import num_done
from matnb.blocks.kernels.compiled import compiled_so_far
from matnb.config import progress_from_environment
from matnb.errors import DTypeError
from matnb.events import (
    BatchesFinished,
    Event,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionStopped,
)
from matnb.pictures.summary import fitting_text, progress_text, tasks_text

FIRST_SECONDS = 0.5  # a shorter run shows none
_BETWEEN_SECONDS = 0.2
_is_wanted: bool | None = None  # None: as the environment has it


def progress(show: bool = True) -> None:
    """Turn the progress of long runs, in a terminal and under cells, on or off.

    In a terminal it is one line on standard error, rewritten in place, from half a second after the start
    until the run ends. Nothing is written if standard error is not a terminal. ``MATNB_PROGRESS=0`` turns it
    off as well.

    Parameters
    ----------
    show
        Whether to show it.

    Examples
    --------
    >>> import matnb as mn
    >>> mn.progress(False)
    >>> mn.progress()
    """
    global _is_wanted
    if not isinstance(show, int):  # Dask's progress(x) takes what it waits for
        raise DTypeError(
            "mn.progress(show): give True or False; x.persist() computes x and shows how far it is"
        )
    _is_wanted = bool(show)


def shows_progress() -> bool:
    """Tell whether a user wants to see how far long runs are."""
    return progress_from_environment() if _is_wanted is None else _is_wanted


def write_line(text: str) -> None:
    """Write a line on standard error, where there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")


class RunProgress:
    """How far a run is that is no loop, as the line in a terminal and the one under a cell tell it.

    Parameters
    ----------
    run
        What was told when it began.
    began
        When that was, in seconds.
    """

    def __init__(self, run: RunStarted, began: float) -> None:
        self.run, self.began = run, began
        self._num_done: int | None = None
        self._num_compiled = compiled_so_far()[0]

    def text(self, now: float) -> str:
        """Return the line; no number in it falls."""
        if (done := num_done()) is not None:
            self._num_done = max(done, self._num_done or 0)
        num_compiled, is_compiling = compiled_so_far()
        loops = num_compiled - self._num_compiled if is_compiling else 0
        return tasks_text(self.run, now - self.began, self._num_done, loops)


_newest: RunProgress | None = None


def progress_of(run: RunStarted, began: float) -> RunProgress:
    """Return how far a run is: the same for all who show it, so that they say the same."""
    global _newest
    found = _newest
    if found is None or found.run is not run:
        _newest = found = RunProgress(run, began)
    return found


class TerminalLine:
    """Listens to a session, and writes from a thread of its own; quick runs only note when they began.

    Only runs of the main thread are shown: others would write over what a user types meanwhile.

    Parameters
    ----------
    file
        The terminal.
    clock
        Gives seconds.
    """

    def __init__(self, file: IO[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = file, clock
        self._main = threading.main_thread().ident
        self._lock = threading.Lock()
        self._run: RunProgress | None = None
        self._loop: LoopAdvanced | None = None
        self._loop_since = 0.0
        self._num_finished = 0
        self._bar: Any = None
        self._ended = threading.Event()
        self._handlers: dict[type, Callable[[Any], None]] = {
            RunStarted: self._start,
            LoopAdvanced: self._advance,
            LoopFinished: self._end_loop,
            RunFinished: self._end_run,
            RunStopped: self._stop,
            BatchesFinished: self._stop,
            SessionStopped: self._close,
        }

    @classmethod
    def wanted(cls) -> TerminalLine | None:
        """Return a line where there is a terminal to write it to, or None."""
        file = sys.stderr
        if file is None or not file.isatty():
            return None
        line = cls(file)
        threading.Thread(target=line._draw_now_and_then, name="matnb-progress", daemon=True).start()
        return line

    def hear(self, event: Event) -> None:
        """Take what a session tells."""
        if (handle := self._handlers.get(type(event))) is not None:
            handle(event)

    def _start(self, event: RunStarted) -> None:
        if threading.get_ident() == self._main:
            self._run = progress_of(event, self._clock())

    def _advance(self, event: LoopAdvanced) -> None:
        if self._run is not None:
            if event != self._loop:
                self._loop_since = self._clock()
            self._loop = event

    def _end_loop(self, event: LoopFinished) -> None:
        self._num_finished += 1
        self._end()

    def _end_run(self, event: RunFinished) -> None:
        if self._run is not None:
            self._end()

    def _end(self) -> None:
        # Between the loops of one learner the line stays.
        if self._loop is None or self._loop.batches is None:
            self._run = self._loop = None
            self._hide()
        else:
            self._run = None

    def _stop(self, event: Event) -> None:
        self._run, self._loop, self._num_finished = None, None, 0
        self._hide()

    def _close(self, event: Event) -> None:
        self._ended.set()
        self._stop(event)

    def _draw_now_and_then(self) -> None:
        while not self._ended.wait(_BETWEEN_SECONDS):
            self.draw()

    def draw(self) -> None:
        """Redraw the line, if it is due."""
        if self._run is None:
            return
        with self._lock:
            run, loop, now = self._run, self._loop, self._clock()
            if run is None or not shows_progress():
                return
            batches = None if loop is None else loop.batches
            if now - (run.began if batches is None else batches.since) < FIRST_SECONDS:
                return
            if loop is not None:
                self._write(progress_text(self._num_finished, loop, now - run.began, now, self._loop_since))
            else:
                self._write(run.text(now))

    def _write(self, text: str) -> None:
        if self._bar is None:
            self._bar = _bar(self._file)
        width = shutil.get_terminal_size().columns - 1
        self._bar.set_description_str(fitting_text(text, width))

    def _hide(self) -> None:
        if self._bar is not None:
            with self._lock:
                bar, self._bar = self._bar, None
                if bar is not None:
                    bar.close()


def _bar(file: IO[str]) -> Any:
    # tqdm knows where the lines of other bars are; it is not loaded before there is something to show.
    from tqdm import tqdm

    class ProgressBar(tqdm):  # type: ignore[misc]  # it has no types
        monitor_interval = 0  # no thread of tqdm's

    return ProgressBar(file=file, leave=False, bar_format="{desc}")
