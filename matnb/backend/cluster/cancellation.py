"""Cancellation requests, from another thread or an interrupt; code that waits for workers polls them."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # ``signal`` without looking handlers up as constants
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from types import FrameType

from matnb.errors import CellCancelled

_AGAIN_SECONDS = 0.01


class _Wish(Enum):
    NONE = 0
    ASKED = 1
    OBEYED = 2  # all is being cleaned up, which a second wish would only disturb


class CancelScope:
    """The threads that run something on a cluster, and the cancellation requests for them.

    A thread that runs something says so by :meth:`scope`, and looks with :meth:`check` wherever it waits.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wishes: dict[int, _Wish] = {}  # by thread
        self._running: Counter[int] = Counter()  # its scopes that are not only around what may run
        self._heeds = self._is_interrupted = self._holds_back = False

    @contextmanager
    def scope(self, around: bool = False) -> Iterator[None]:
        """Let what this thread does inside be ended by others; scopes may lie in each other.

        Parameters
        ----------
        around
            Whether it is only around code that may run something: then the thread's own wish that everything
            ends is about others.

        Raises
        ------
        CellCancelled
            At the end, for a wish that nothing inside has obeyed.
        """
        thread = threading.get_ident()
        with self._lock:
            is_outermost = thread not in self._wishes
            self._wishes.setdefault(thread, _Wish.NONE)
            self._running[thread] += not around
        is_whole = False
        try:
            yield
            is_whole = True
        finally:
            with self._lock:
                wish = self._wishes[thread]
                self._running[thread] -= not around
                if is_outermost:
                    del self._wishes[thread], self._running[thread]
                elif wish is _Wish.OBEYED or is_whole:
                    self._wishes[thread] = _Wish.NONE
        if wish is _Wish.ASKED:
            raise _cancelled()

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Let an interrupt end what the main thread does inside also where Python drops it.

        What is raised while memory is cleared up, such as in a destructor, is printed and forgotten: then the
        next :meth:`check` obeys, at the latest the end of this.

        Raises
        ------
        CellCancelled
            At the end, for an interrupt that was dropped.
        """
        before = _signal.getsignal(signal.SIGINT) if _is_main() and not self._heeds else None
        if not callable(before):  # heeded already, or interrupts are ignored
            yield
            return

        def interrupt(number: int, frame: FrameType | None) -> None:
            self._is_interrupted = True
            if not self._holds_back:
                before(number, frame)

        interrupted = _InterruptHandler(interrupt)
        try:
            self._heeds, self._is_interrupted = True, False
            _signal.signal(signal.SIGINT, interrupted)
            yield
        finally:
            self._holds_back = True  # an error in here would leave the handler where it is
            if (now := _signal.signal(signal.SIGINT, before)) is not interrupted:
                _signal.signal(signal.SIGINT, now)  # somebody else's by now
            is_dropped = self._is_interrupted
            self._heeds = self._is_interrupted = self._holds_back = False
        if is_dropped:
            raise _cancelled()

    @contextmanager
    def holding_back(self) -> Iterator[None]:
        """Defer interrupts until this short block has finished.

        Raises
        ------
        CellCancelled
            At the end, for an interrupt that came meanwhile.
        """
        if not (self._heeds and _is_main()):  # interrupts do not come here, or are deferred by who called
            yield
            return
        self._holds_back = True
        try:
            yield
        finally:
            self._holds_back = False
        self.check()

    @contextmanager
    def undisturbed(self) -> Iterator[None]:
        """Let no further interrupt or wish end what this thread cleans up after one."""
        thread = threading.get_ident()
        with self._lock:
            if thread in self._wishes:
                self._wishes[thread] = _Wish.OBEYED
        with undisturbed():
            if _is_main():
                self._is_interrupted = False
            yield

    def ask(self, thread: int | None = None) -> bool:
        """Ask a thread, or every one that runs something, to end it; tell whether there was one."""
        here = threading.get_ident()
        with self._lock:
            asked = [
                one
                for one in self._wishes
                if one == thread or (thread is None and (one != here or self._running[one] > 0))
            ]
            for one in asked:
                if self._wishes[one] is _Wish.NONE:
                    self._wishes[one] = _Wish.ASKED
            return bool(asked)

    def is_asked(self, thread: int | None) -> bool:
        """Tell whether a thread was asked to end what it runs, and does so now or will."""
        return thread is not None and self._wishes.get(thread, _Wish.NONE) is not _Wish.NONE

    def check(self) -> None:
        """Raise CellCancelled if this thread was asked to end what it runs, or interrupted; once for each."""
        thread = threading.get_ident()
        is_interrupted = self._is_interrupted and _is_main()
        if self._wishes.get(thread) is not _Wish.ASKED and not is_interrupted:
            return
        with self._lock:
            if thread in self._wishes:
                self._wishes[thread] = _Wish.OBEYED
            self._is_interrupted = self._is_interrupted and not is_interrupted
        raise _cancelled()


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def _cancelled() -> CellCancelled:
    return CellCancelled("cancelled; no task was running")


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore further interrupts while the code inside runs, such as the cleaning up after one."""
    before = signal.getsignal(signal.SIGINT) if _is_main() else None
    if before is None:  # interrupts come to other threads, or to somebody who is not Python
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def deferred() -> Iterator[None]:
    """Defer an interrupt until the code inside has run: what is short and must not be half done.

    Raises
    ------
    CellCancelled
        At the end, for an interrupt that came meanwhile.
    """
    before = signal.getsignal(signal.SIGINT) if _is_main() else None
    if not callable(before):
        yield
        return
    note = _Note(before)
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if note.has_come:
        raise CellCancelled("interrupted; no partial results are left")


@contextmanager
def not_deferred() -> Iterator[None]:
    """Let an interrupt cancel the code inside at once, even within :func:`deferred`."""
    note = signal.getsignal(signal.SIGINT) if _is_main() else None
    if not isinstance(note, _Note) or note.has_come:  # who was asked to end is asked once
        yield
        return
    signal.signal(signal.SIGINT, note.before)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, note)


class _InterruptHandler:
    """A handler of an interrupt that is obeyed though what it raises may be dropped."""

    def __init__(self, interrupt: Callable[[int, FrameType | None], None]) -> None:
        self._interrupt = interrupt

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._interrupt(number, frame)


class _Note:
    """A handler that notes that an interrupt has come, and what handled it before."""

    def __init__(self, before: Callable[[int, FrameType | None], object]) -> None:
        self.before, self.has_come = before, False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.has_come = True


def resend_dropped() -> Callable[[], None]:
    """Have an interrupt that Python drops in a destructor sent again; the returned function ends that.

    Handles and Dask's futures go wherever a user's code is, and an interrupt may strike as they do.
    What runs on workers takes notice itself (:meth:`CancelScope.heeding`).
    """
    before, is_wanted = sys.unraisablehook, True

    def dropped(told: sys.UnraisableHookArgs) -> None:
        is_ours = is_wanted and _is_main() and issubclass(told.exc_type, KeyboardInterrupt)
        if is_ours and isinstance(signal.getsignal(signal.SIGINT), _InterruptHandler):
            return  # the next look obeys it
        if is_ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            here = threading.get_ident()
            again = threading.Timer(_AGAIN_SECONDS, signal.pthread_kill, (here, signal.SIGINT))
            again.daemon = True
            again.start()  # raised in here it would be dropped once more
        else:
            before(told)

    def end() -> None:
        nonlocal is_wanted
        is_wanted = False
        if sys.unraisablehook is dropped:  # else somebody's who calls this one
            sys.unraisablehook = before

    sys.unraisablehook = dropped
    return end


@contextmanager
def cancellable() -> Iterator[None]:
    """Let an interrupt that nothing inside took notice of be a CellCancelled, as all others are.

    Raises
    ------
    CellCancelled
        For a bare KeyboardInterrupt.
    """
    try:
        yield
    except CellCancelled:
        raise
    except KeyboardInterrupt as interrupt:
        raise CellCancelled("interrupted; finished results are kept") from interrupt
