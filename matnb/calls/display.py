"""How Python shows an error of matnb's, or an interrupt, that nothing catches: by the user's lines alone."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from traceback import FrameSummary
from types import TracebackType

from matnb.calls.frames import REMOVED, is_users, passes_through_own

_interrupted = False  # whether a script ends by an interrupt
_MOST_FRAMES = 2  # of a user's, two lines each: with what was wrong, no more than a glance takes in


def show_shortly() -> None:
    """Have what nothing catches shown by its user's lines: in scripts, in Python's prompt and in threads.

    Errors that are none of matnb's are shown by who showed them before.
    """
    before, before_in_threads = sys.excepthook, threading.excepthook
    atexit.register(_end_by_signal)  # among the first, so it is called when nearly all has ended

    def shown(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        global _interrupted
        _interrupted = isinstance(error, KeyboardInterrupt) and not hasattr(sys, "ps1")
        if (rows := _rows(error, trace)) is None:
            before(kind, error, trace)
        else:
            sys.stderr.write("\n".join([*rows, ""]))

    def shown_in_thread(about: threading.ExceptHookArgs) -> None:
        error = about.exc_value
        if error is None or (rows := _rows(error, about.exc_traceback)) is None:
            before_in_threads(about)
        elif sys.stderr is not None:
            name = about.thread.name if about.thread is not None else "a thread"
            sys.stderr.write("\n".join([f"Exception in thread {name}:", *rows, ""]))

    sys.excepthook, threading.excepthook = shown, shown_in_thread


def _end_by_signal() -> None:
    # A shell's loop ends only with what the signal has ended. Python sees to it for KeyboardInterrupt itself,
    # and not for classes of that, such as what tells how far a run had come.
    if not _interrupted or os.name != "posix":
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _rows(error: BaseException, trace: TracebackType | None) -> list[str] | None:
    # An import of matnb that was interrupted must not begin again here.
    errors, config = sys.modules.get("matnb.errors"), sys.modules.get("matnb.config")
    if config is not None and config.shows_full_tracebacks():
        return None
    frames = user_frames(trace)
    if isinstance(error, KeyboardInterrupt) and (REMOVED in vars(error) or passes_through_own(trace)):
        return [*interrupted_rows(frames), f"{type(error).__name__}{': ' * bool(str(error))}{error}"]
    if errors is None or not isinstance(error, errors.MatnbError | errors.MissingAttributeError):
        return None
    if (raised := getattr(error, "raised_at", None)) is not None:  # by a user's function, on a worker
        filename, line = raised
        frames.append(FrameSummary(filename, line, "a function that matnb called"))
    kind = type(error)
    notes = [note for note in getattr(error, "__notes__", []) if "\n" not in note]
    return [*frame_rows(frames), f"{kind.__module__}.{kind.__qualname__}: {error}", *notes]


def user_frames(trace: TracebackType | None) -> list[FrameSummary]:
    """Return what a traceback says of a user's frames, the outermost first."""
    entries = [one for one in traceback.walk_tb(trace) if is_users(one[0])]
    return list(traceback.StackSummary.extract(iter(entries)))


def frame_rows(frames: Sequence[FrameSummary]) -> list[str]:
    """Return Python's lines for frames: all of few, else the outermost and the innermost."""
    rows = []
    for frame in shown_frames(frames):
        rows += [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}']
        rows += [f"    {frame.line}"] if frame.line else []
    if len(frames) > _MOST_FRAMES:
        more = len(frames) - _MOST_FRAMES
        rows.insert(2, f"  [{more} more of your lines; MATNB_FULL_TRACEBACK=1 shows all]")
    return ["Traceback (most recent call last):", *rows] if rows else []


def shown_frames(frames: Sequence[FrameSummary]) -> list[FrameSummary]:
    """Return the outermost and the innermost of some frames."""
    return list(frames) if len(frames) <= _MOST_FRAMES else [frames[0], frames[-1]]


def interrupted_rows(frames: Sequence[FrameSummary]) -> list[str]:
    """Return a line that says where an interrupt came, or none where it came outside of a user's code."""
    if not frames:
        return []
    return [f"interrupted at {frames[-1].filename}, line {frames[-1].lineno}: {frames[-1].line}"]
