"""One output of a cell: what stays, or a widget in its place while somebody watches."""

from __future__ import annotations

import atexit
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextvars import copy_context
from importlib.util import find_spec
from math import inf, isfinite
from typing import Any

from matnb.config import display_from_environment

VIEW = "application/vnd.jupyter.widget-view+json"
SETTLE_SECONDS = 1.0  # in which a page has made a widget: taken away sooner, ipywidgets fails in the page
SETTINGS = "DistMat"  # the name under which IPython keeps the settings of the magics

Bundle = Mapping[str, Any]


def current_shell() -> Any | None:
    """Return IPython's shell, or None in a script; imports nothing."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def is_headless(shell: Any) -> bool:
    """Tell whether a program runs the notebook, as nbclient does: then nobody can be asked for input."""
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return False
    allowed = getattr(kernel, "_allow_stdin", None)
    if allowed is None:
        allowed = kernel.get_parent().get("content", {}).get("allow_stdin", True)
    return not allowed


def shows_measured(shell: Any | None) -> bool:
    """Tell whether measured numbers are shown: ``%config DistMat.display``, where that is loaded."""
    if shell is None:
        return True
    settings = [one for one in shell.configurables if type(one).__name__ == SETTINGS]
    display = settings[0].display if settings else display_from_environment()
    return not is_headless(shell) if display == "auto" else bool(display == "live")


def is_watched(shell: Any | None) -> bool:
    """Tell whether a user looks on while a cell runs: in a kernel that is to show what is measured."""
    if shell is None or getattr(shell, "kernel", None) is None or is_headless(shell):
        return False
    return shows_measured(shell)


def is_live(shell: Any | None) -> bool:
    """Tell whether widgets are made: where a user looks on, and ipywidgets is there."""
    return is_watched(shell) and find_spec("ipywidgets") is not None


class LiveDisplay:
    """One display of a kernel, from when it is made until it is closed.

    While a widget is in it, it is open. A notebook that is saved then loses what is seen, so what is in it
    must not be needed, and at the kernel's exit what stays takes its place. In plain IPython and in a script
    nothing is shown.

    Parameters
    ----------
    frozen
        Gives the forms that stay, by media type.
    make_widget
        Makes the widget, or None if there is to be none. It is called again where :meth:`thaw` is.
    begins_open
        Whether the widget is there from the beginning; else from :meth:`thaw` on.
    shell
        IPython's, that of this process by default.
    """

    def __init__(
        self,
        frozen: Callable[[], Bundle],
        make_widget: Callable[[], Any] | None = None,
        *,
        begins_open: bool = True,
        shell: Any | None = None,
    ) -> None:
        self._frozen, self._make_widget = frozen, make_widget
        self._shell = current_shell() if shell is None else shell
        self._publisher: Any | None = None  # %%capture puts another in its place, for its own cell
        self._id = f"matnb-{secrets.token_hex(8)}"  # it goes into no file
        self._lock = threading.RLock()
        self.widget: Any | None = None
        self._last: Bundle | None = None
        self._is_published = False
        self._thawed_at = -inf
        self._freezing: threading.Timer | None = None
        if getattr(self._shell, "kernel", None) is None:
            self._shell = None
        elif make_widget is None or not begins_open or not is_live(self._shell):
            self.update(frozen())
        else:
            self.thaw()

    @property
    def is_open(self) -> bool:
        """Whether a widget is in it."""
        return self.widget is not None

    def update(self, bundle: Bundle) -> None:
        """Show other forms; nothing where a widget is open, which is changed itself, or nothing changed."""
        with self._lock:
            if self.widget is None and self._shell is not None and bundle != self._last:
                self._publish(bundle)
                self._last = dict(bundle)

    def thaw(self) -> None:
        """Put a new widget in; nothing where one is open or there is nobody to see it."""
        with self._lock:
            self._freeze_no_more()
            if self.widget is not None or self._make_widget is None or not is_live(self._shell):
                return
            self.widget, self._last, self._thawed_at = self._make_widget(), None, time.monotonic()
            # What speaks no widgets shows the other forms.
            view = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
            self._publish({**self._frozen(), VIEW: view})
            _remember(self)

    def freeze(self, close_after: float = 0.0, is_patient: bool = False) -> None:
        """Put the forms that stay in the widget's place, and close that.

        Parameters
        ----------
        close_after
            In how many seconds the widget is closed, or never if that is infinite. A page that does not know
            it takes that for an error: one that was loaded again asks for it when the cell has ended, and one
            whose kernel is restarted has let go of it.
        is_patient
            Whether a widget that was just put in stays until a page has had the time to make it. A notebook
            that a program runs has no page.
        """
        with self._lock:
            self._freeze_no_more()
            settles = self._thawed_at + SETTLE_SECONDS - time.monotonic()
            is_patient = is_patient and not is_headless(self._shell)
            if self.widget is not None and is_patient and settles > 0.0:
                context = copy_context()  # in it the kernel knows which cell this belongs to
                self._freezing = _after(settles, lambda: context.run(self.freeze, close_after))
                return
            widget, self.widget = self.widget, None
            try:
                self.update(self._frozen())
            finally:
                if widget is not None:
                    _forget(self)
                    if close_after <= 0.0:
                        close_widgets(widget)
                    elif isfinite(close_after):
                        _after(close_after, lambda: close_widgets(widget))

    def _freeze_no_more(self) -> None:
        if self._freezing is not None:
            self._freezing.cancel()
            self._freezing = None

    def _publish(self, bundle: Bundle) -> None:
        assert self._shell is not None
        if self._publisher is None:
            self._publisher = self._shell.display_pub
        self._publisher.publish(dict(bundle), transient={"display_id": self._id}, update=self._is_published)
        self._is_published = True


def _after(seconds: float, act: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


def close_widgets(widget: Any) -> None:
    """Close a widget with all that belongs to it: what is inside, its layout and its style."""
    for inner in getattr(widget, "children", ()):
        close_widgets(inner)
    for name in ("layout", "style"):
        part = getattr(widget, name, None)
        if part is not None:
            part.close()
    widget.close()


def freeze_open(close_after: float = 0.0) -> None:
    """Freeze everything that is open; see :meth:`LiveDisplay.freeze`."""
    for shown in list(_open):
        shown.freeze(close_after=close_after)


_open: set[LiveDisplay] = set()
_lock = threading.RLock()
_waits_for_exit = False


def _remember(shown: LiveDisplay) -> None:
    global _waits_for_exit
    with _lock:
        _open.add(shown)
        if not _waits_for_exit:
            _waits_for_exit = True
            atexit.register(freeze_open, close_after=inf)


def _forget(shown: LiveDisplay) -> None:
    with _lock:
        _open.discard(shown)
