"""What a cell ends with, shown as the commands show it: measured numbers and controls only live."""

from __future__ import annotations

from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell

from matnb.session.background import Later
from matnb.session.doctor import Diagnosis
from matnb.session.history_view import HistoryView
from matnb.widgets.history import history_view
from matnb.widgets.later import later_view

_SHOWN = (HistoryView, Later, Diagnosis)  # what is measured of these is told only live


class Values:
    """Has IPython show some values of ours in another way than they show themselves.

    Parameters
    ----------
    shell
        IPython.
    is_live
        Tells whether measured numbers are shown.
    """

    def __init__(self, shell: InteractiveShell, is_live: Callable[[], bool]) -> None:
        self._shell, self._is_live = shell, is_live

    def register(self) -> None:
        """Let IPython ask here."""
        formatters = self._shell.display_formatter
        for kind in _SHOWN:
            formatters.mimebundle_formatter.for_type(kind, self.bundle)
        formatters.ipython_display_formatter.for_type(HistoryView, self.show_history)
        formatters.ipython_display_formatter.for_type(Later, self.show_later)

    def unregister(self) -> None:
        """Let the values show themselves again."""
        formatters = self._shell.display_formatter
        for kind in _SHOWN:
            formatters.mimebundle_formatter.pop(kind, None)
        for kind in (HistoryView, Later):
            formatters.ipython_display_formatter.pop(kind, None)

    def bundle(
        self, value: HistoryView | Later | Diagnosis, include: object = None, exclude: object = None
    ) -> dict[str, str]:
        """Return a picture by media type."""
        return value.bundle(self._is_live())

    def show_history(self, value: HistoryView) -> None:
        """Show a history with a slider, as ``%distmat history`` does."""
        self._check_changes()
        history_view(value, self._shell)

    def show_later(self, value: Later) -> None:
        """Show a line that changes when the work ends."""
        self._check_changes()
        later_view(value, self._shell)

    def _check_changes(self) -> None:
        # IPython takes this error for a no, and shows the bundle as the cell's result.
        if getattr(self._shell, "kernel", None) is None or not self._is_live():
            raise NotImplementedError
