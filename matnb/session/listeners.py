"""The listeners to a session's events."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable

from matnb.events import Event


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
        entry.warn(stacklevel=4)

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
                self.warn(stacklevel=6)
            except Warning:  # as under -W error
                self._is_refused, self.failed = True, error

    def warn(self, stacklevel: int) -> None:
        """Warn of what was raised, if anything was."""
        error, self.failed = self.failed, None
        if error is not None:
            words = f"a listener to events raised {type(error).__name__}: {error}"
            warnings.warn(words, stacklevel=stacklevel)
