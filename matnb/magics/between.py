"""Cells can be cancelled between two values that they ask for, as while one is computed."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from IPython.core.interactiveshell import InteractiveShell

from matnb.errors import CellCancelled
from matnb.session import follow_sessions


class Between:
    """Lets every cell be one scope that a session's ``cancel()`` reaches; the next value obeys it.

    Parameters
    ----------
    shell
        IPython.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._cells: list[ExitStack] = []  # one runs others in itself

    def register(self) -> None:
        """Follow the shell's cells."""
        self._shell.events.register("pre_run_cell", self._began)
        self._shell.events.register("post_run_cell", self._ended)

    def unregister(self) -> None:
        """Follow them no more."""
        self._shell.events.unregister("pre_run_cell", self._began)
        self._shell.events.unregister("post_run_cell", self._ended)
        while self._cells:
            self._ended()

    def _began(self, info: object = None) -> None:
        scopes = ExitStack()
        self._cells.append(scopes)
        # A session may also start in the cell, and another take its place.
        scopes.callback(follow_sessions(lambda session: scopes.enter_context(session.stoppable(around=True))))

    def _ended(self, result: object = None) -> None:
        if self._cells:  # the cell that loaded this had not begun here
            with suppress(CellCancelled):  # a wish for its end, which it came to by itself
                self._cells.pop().close()
