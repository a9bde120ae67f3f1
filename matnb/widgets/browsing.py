"""A picture that stays, and below it a control for what is too much for it, until the next cell runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matnb.widgets import output_area
from matnb.widgets.output_area import Bundle, Shown, is_live


class Browsing:
    """A picture in the output of a cell, with a control where a user is there to use it.

    The picture holds no widget, so a notebook that is saved keeps it. The control goes when the next cell
    runs, when another one is made, at :meth:`close` and at the kernel's exit. A terminal shows the picture's
    text; in a script nothing is shown.

    Parameters
    ----------
    bundle
        The picture by media type.
    make_control
        Makes the widget; None where the picture holds all there is.
    shell
        IPython's, that of this process by default.
    """

    def __init__(
        self, bundle: Bundle, make_control: Callable[[], Any] | None = None, shell: Any | None = None
    ) -> None:
        global _browsing
        if _browsing is not None:
            _browsing.close()
        self._shell = output_area.current_shell() if shell is None else shell
        self._control: Shown | None = None
        if self._shell is None:
            return
        if getattr(self._shell, "kernel", None) is None:
            self._shell.display_pub.publish(dict(bundle))
            return
        Shown(lambda: bundle, shell=self._shell)
        if make_control is not None and is_live(self._shell):
            self._control = Shown(dict, make_control, stays=True, shell=self._shell)
            self._shell.events.register("pre_run_cell", self._cell_began)
            _browsing = self

    @property
    def is_open(self) -> bool:
        """Whether there is a control."""
        return self._control is not None

    def close(self) -> None:
        """Take the control away; the picture stays. Harmless a second time."""
        global _browsing
        control, self._control = self._control, None
        if control is not None and self._shell is not None:
            self._shell.events.unregister("pre_run_cell", self._cell_began)
            control.freeze()
        if _browsing is self:
            _browsing = None

    def _cell_began(self, info: object = None) -> None:
        self.close()


_browsing: Browsing | None = None  # the one that has a control
