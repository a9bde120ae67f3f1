"""One thread at a time uses a session; who waits for it is told for what, and can be cancelled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from matnb.backend.cancellation import Stopping
from matnb.errors import CellCancelled
from matnb.events import SessionAwaited
from matnb.pictures.later import interrupted_text

_TOLD_SECONDS = 0.4  # a shorter waiting is not told
_STEP_SECONDS = 0.1


class SessionLock:
    """Held by the thread that uses a session, which may take it again; a context manager.

    Parameters
    ----------
    stopping
        Of the cluster; looked at while a thread waits.
    tell
        Is told that the thread which calls it waits, and that this has ended.
    found
        Returns what a thread does in the background, and the number of the cell that wrote it.

    Raises
    ------
    CellCancelled
        From who waits, when another thread or an interrupt wants an end of it.
    """

    def __init__(
        self,
        stopping: Stopping,
        tell: Callable[[SessionAwaited], None],
        found: Callable[[int | None], tuple[tuple[str, ...], int | None]],
    ) -> None:
        self._stopping, self._tell, self._found = stopping, tell, found
        self._lock = threading.RLock()
        self._owner: int | None = None

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self._wait()
        self._owner = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _wait(self) -> None:
        begin, is_told, is_held = time.monotonic(), False, False
        names, cell = self._found(self._owner)
        try:
            try:
                while not (is_held := self._lock.acquire(timeout=_STEP_SECONDS)):
                    self._stopping.check()  # for who has a scope around this: else only what runs is meant
                    names, cell = self._found(self._owner)
                    if not is_told and time.monotonic() - begin > _TOLD_SECONDS:
                        is_told = True
                        self._tell(SessionAwaited(names, cell))
            finally:
                if is_told:
                    self._tell(SessionAwaited(is_over=True))
        except BaseException as error:
            if is_held:
                self._lock.release()
            if isinstance(error, KeyboardInterrupt) and not isinstance(error, CellCancelled):
                raise CellCancelled(interrupted_text(names)) from error
            raise
