"""How far a cell's loop is, or what it waits for, on a line that changes in place while somebody watches."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell

from matnb.events import Event, LoopAdvanced, LoopFinished, SessionAwaited
from matnb.pictures.escaping import escaped
from matnb.pictures.later import waiting_text
from matnb.pictures.summary import STYLE, progress_text
from matnb.session import Session

FIRST_SECONDS = 0.5  # a shorter cell shows none
BETWEEN_SECONDS = 0.25


class Progress:
    """Listens to a session while a cell runs.

    Parameters
    ----------
    shell
        IPython.
    is_live
        Whether anything is shown at all.
    clock
        Gives seconds.
    """

    def __init__(
        self, shell: InteractiveShell, is_live: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._shell, self._is_live, self._clock = shell, is_live, clock
        self._begin = clock()
        self._next = self._begin + FIRST_SECONDS
        self._thread = threading.get_ident()
        self._followed: dict[Session, Callable[[], None]] = {}
        self._id = f"matnb-progress-{secrets.token_hex(8)}"
        self._num_finished = 0
        self._is_shown = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def follow(self, session: Session | None) -> None:
        """Listen to a session, if there is one."""
        if self._is_live and session is not None and session not in self._followed:
            self._followed[session] = session.subscribe(self.hear)

    def hear(self, event: Event) -> None:
        """Show what an event tells, if it is time."""
        if threading.get_ident() != self._thread:
            return  # what another thread shows would land under any cell
        if isinstance(event, SessionAwaited):
            self._hide() if event.is_over else self._show(waiting_text(event.names, event.cell))
        elif isinstance(event, LoopFinished):
            self._num_finished += 1
        elif isinstance(event, LoopAdvanced) and (now := self._clock()) >= self._next:
            self._next = now + BETWEEN_SECONDS
            seconds = now - self._begin
            self._show(progress_text(self._num_finished, event.iterations, event.seconds, seconds))

    def close(self) -> None:
        """Listen no more, and take the line away."""
        for unsubscribe in self._followed.values():
            unsubscribe()
        self._followed.clear()
        self._hide()

    def _hide(self) -> None:
        if self._is_shown:
            self._show("")
            self._is_shown = False

    def _show(self, text: str) -> None:
        html = f'<div style="{STYLE}">{escaped(text)}</div>' if text else ""
        self._shell.display_pub.publish(
            {"text/plain": text, "text/html": html},
            transient={"display_id": self._id},
            update=self._is_shown,
        )
        self._is_shown = True
