"""The load monitor's widget: a button that cancels what runs, and two more."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

_AGAIN_SECONDS = 2.0  # after which what runs can be cancelled once more


class Face:
    """Buttons. Pressing one only sets a flag, but for Cancel, which asks the session at once.

    Parameters
    ----------
    cancel
        Asks for an end of what runs, from any thread.

    Attributes
    ----------
    box
        The widget.
    wants_close, wants_table
        Whether Close was pressed, and Table an odd number of times.
    """

    def __init__(self, cancel: Callable[[], object]) -> None:
        import ipywidgets as widgets

        self.wants_close = self.wants_table = False
        self._ask, self._asked_at = cancel, float("-inf")
        # Each layout and style is a message of its own, so all share one.
        layout = widgets.Layout(width="auto")
        style = widgets.ButtonStyle()
        look = {"layout": layout, "style": style}
        stop = "Cancel what runs, as Interrupt does"
        self._cancel = widgets.Button(description="Cancel", icon="stop", tooltip=stop, **look)
        table = widgets.Button(description="Table", tooltip="Show the numbers as a table, or hide it", **look)
        close = widgets.Button(description="Close", tooltip="Listen no more and leave a picture", **look)
        self._cancel.on_click(self._cancel_pressed)
        table.on_click(self._table_pressed)
        close.on_click(self._close_pressed)
        self._buttons = (self._cancel, table, close)
        self._hear_while_busy()
        self.box = widgets.HBox(self._buttons, layout=layout)

    def look(self) -> None:
        """Let Cancel be pressed once more where what it was pressed for goes on."""
        if self._cancel.disabled and time.monotonic() - self._asked_at > _AGAIN_SECONDS:
            self._cancel.disabled = False
            self._hear_while_busy()

    def _hear_while_busy(self) -> None:
        # ipykernel 7.4 lets the thread hear of a widget that sent its last message, and by its parent that is
        # the one which is busy with the cell. Without its mark it is the thread that the browser asks for.
        for button in self._buttons:
            vars(button.comm).pop("_reply_subshell_id", None)

    def _cancel_pressed(self, button: Any) -> None:
        self._asked_at = time.monotonic()
        self._ask()
        button.disabled = True

    def _table_pressed(self, button: Any) -> None:
        self.wants_table = not self.wants_table

    def _close_pressed(self, button: Any) -> None:
        self.wants_close = True
