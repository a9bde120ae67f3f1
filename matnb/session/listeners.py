"""The listeners to a session's events."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from weakref import WeakSet

from matnb.errors import ConvergenceWarning, warn
from matnb.events import Event
from matnb.expr.control import unconverged_text
from matnb.expr.nodes import Expr

# Whose frames are between a user's line and what runs: matnb's, and those of decorators.
_INSIDE = (str(Path(__file__).parents[1]), contextlib.__file__)


class Listeners:
    """Calls listeners; one that raises stops nothing.

    What one raised is kept, and becomes a warning with the next event that comes on the process's main
    thread, where cells run: no other thread prints. Where warnings are errors it would break what runs there,
    so then it waits until the listener is taken away.

    Parameters
    ----------
    sampling
        Called with whether anybody wants samples, when that changes.
    """

    def __init__(self, sampling: Callable[[bool], None]) -> None:
        self._sampling = sampling
        self._changing = threading.RLock()  # a listener may take itself away
        self._all: tuple[Subscription, ...] = ()
        self._is_sampling = False

    def add(self, listener: Callable[[Event], None], samples: bool = False) -> Subscription:
        """Call a listener from now on, if it wants ``samples`` with these too; the result ends that."""
        entry = Subscription(self, listener)
        with self._changing:
            self._all = (*self._all, entry)
            self.want(entry, samples)
        return entry

    def remove(self, entry: Subscription) -> None:
        """Call a listener no more; nothing if it was taken away before."""
        with self._changing:
            self.want(entry, False)
            self._all = tuple(one for one in self._all if one is not entry)
        entry.warn()

    def want(self, entry: Subscription, samples: bool) -> None:
        """Let a listener hear samples from now on, or no more; it misses no other event meanwhile."""
        with self._changing:
            if entry not in self._all or entry.samples == samples:
                return
            entry.samples = True  # it hears what is still to come
            others = any(one.samples for one in self._all if one is not entry)
            if not others and samples != self._is_sampling:
                self._is_sampling = samples
                self._sampling(samples)
            entry.samples = samples

    def tell(self, event: Event) -> None:
        """Call every listener."""
        for one in self._all:
            one.tell(event)
            if one.failed is not None and threading.current_thread() is threading.main_thread():
                one.warn_in_a_run()

    def tell_sample(self, event: Event) -> None:
        """Call the listeners that want samples; from any thread, where nothing may be printed."""
        for one in self._all:
            if one.samples:
                one.tell(event)


class Subscription:
    """A listener that is called until this is.

    Attributes
    ----------
    samples
        Whether it hears samples too.
    failed
        What it raised and no warning has said yet.
    """

    __slots__ = ("_is_refused", "_listener", "_listeners", "failed", "samples")

    def __init__(self, listeners: Listeners, listener: Callable[[Event], None]) -> None:
        self._listeners, self._listener = listeners, listener
        self.samples = self._is_refused = False
        self.failed: Exception | None = None

    def __call__(self) -> None:
        """Call the listener no more."""
        self._listeners.remove(self)

    def want_samples(self, samples: bool) -> None:
        """Hear samples from now on, or no more."""
        self._listeners.want(self, samples)

    def tell(self, event: Event) -> None:
        """Call the listener, and keep what it raises: what is looked at goes on."""
        try:
            self._listener(event)
        except Exception as error:
            self.failed = error

    def warn_in_a_run(self) -> None:
        """Warn of what was raised, where that raises nothing."""
        if not self._is_refused:
            error = self.failed
            try:
                self.warn()
            except Warning:  # as under -W error
                self._is_refused, self.failed = True, error

    def warn(self) -> None:
        """Warn of what was raised, if anything was."""
        error, self.failed = self.failed, None
        if error is not None:
            warn(f"a listener to events raised {type(error).__name__}: {error}")


class Convergence:
    """Warns of iterative algorithms that ended before they converged, of each once.

    As what a listener raised, it becomes a warning on the process's main thread: where this leaves the
    context with the values, and of what ran in the background with the next ones. It is at the line of the
    cell that wrote the loop, or else at the line that asked.
    """

    def __init__(self) -> None:
        self._known: WeakSet[Expr] = WeakSet()
        self._waiting: list[tuple[str, tuple[str, int] | None]] = []
        self._depth = 0  # of contexts of the main thread

    def note(
        self,
        loop: Expr,
        num_iterations: int,
        ended_itself: bool,
        place_of: Callable[[Expr], tuple[str, int] | None] = lambda loop: None,
    ) -> None:
        """Take a loop that has ended; ``place_of`` gives the file and line that wrote it, or None."""
        if ended_itself or loop in self._known:
            return
        if text := unconverged_text(loop, num_iterations):
            self._known.add(loop)
            self._waiting.append((text, place_of(loop)))

    def __enter__(self) -> None:
        """Begin to compute values."""
        self._depth += threading.current_thread() is threading.main_thread()

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        """Warn of what was noted, where this was the outermost context and nothing was raised.

        Raises
        ------
        ConvergenceWarning
            Where warnings are errors: the values are there.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        self._depth -= 1
        if self._depth or error_type is not None or not self._waiting:
            return
        frame = sys._getframe()
        while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
            frame = frame.f_back
        asked = frame.f_code.co_filename, frame.f_lineno
        waiting, self._waiting = self._waiting, []
        for text, place in waiting:
            # Not by warnings.warn, which would hide the same words of another loop at that line.
            warnings.warn_explicit(text, ConvergenceWarning, *(place or asked))
