"""``mn.monitor()``: the load of every worker, live while something runs, a picture when nothing does."""

from __future__ import annotations

import atexit
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from math import inf
from typing import Any

from matnb.events import Event, SessionStopped
from matnb.session import Session, follow_sessions
from matnb.session.listeners import Subscription
from matnb.widgets.monitor_pictures import counts_html, counts_text, monitor_html, monitor_text
from matnb.widgets.monitor_state import BEGINNINGS, ENDS, CellBegan, CellEnded, Feed, Happening, PictureEnded
from matnb.widgets.output_area import Bundle, LiveDisplay, current_shell, is_live, is_watched, shows_measured

BETWEEN_SECONDS = 0.25  # two pictures
FIRST_SECONDS = 1.0  # of a run that show nothing yet: most cells need no buttons
BRIDGE_SECONDS = 1.0  # between two runs of a cell, in which it still is one that runs
LINGER_SECONDS = 1.0  # for which the thread stays when nothing runs, so that quick cells share one
CLOSE_SECONDS = 10.0  # after which the buttons that are gone from the page are closed: it may ask for them
_MOST_BETWEEN_SECONDS = 2.0
_SPARED = 400.0  # times the CPU seconds of a picture until the next, so that what runs hardly notices
# A notebook saved while buttons are shown names a widget that is gone when it is opened again, for which
# JupyterLab has an error of bare text: below such a picture it is hidden. A widget has elements, or is one
# of the buttons. These are hidden too where the kernel is gone: they would do nothing.
_WITHOUT_BUTTONS = (
    '<style class="matnb-buttons">.jp-OutputArea-child:has(.matnb-buttons)~.jp-OutputArea-child '
    ":is(.jupyter-widgets:not(button,:has(*)),.jupyter-widgets-disconnected){display:none}</style>"
)


class Monitor:
    """The load of every worker. Made by :func:`monitor`; a context manager that closes it.

    The picture is not a widget, so a saved notebook keeps the last one shown, whatever happens to the page
    and the kernel. Only the buttons are widgets; they have an output of their own, which is empty while
    nothing runs, and which is made only where they were asked for.

    Attributes
    ----------
    is_open, is_closed
        Whether the picture changes, and whether it never will again.
    """

    def __init__(self) -> None:
        self.is_closed = self.is_open = False
        self._feed = Feed()
        self._lock = threading.RLock()
        self._drawing = threading.RLock()  # the picture; what is newer is drawn later
        self._session: Session | None = None
        self._subscription: Subscription | None = None
        self._shell: Any | None = None  # one with a kernel
        self._picture: LiveDisplay | None = None
        self._buttons: LiveDisplay | None = None
        self._shown_in = -1  # the number of the cell
        self._wants_buttons = False
        self._face: MonitorButtons | None = None
        self._thread: threading.Thread | None = None
        self._closing = threading.Event()
        self._has_news = False  # what ran was not seen yet in a picture that stays
        self._drawing_seconds = self._drawn_seconds = 0.0  # of the CPU, that a picture takes; the last one
        self._failed: Exception | None = None
        self._is_told = False  # of that
        self._unfollow = follow_sessions(self._follow)

    def show(self, buttons: bool = False) -> None:
        """Show the load in the output of the running cell; a picture stays where it was shown before.

        Parameters
        ----------
        buttons
            Whether buttons are shown below the picture while something runs.
        """
        shell = _shell_with_kernel()
        if shell is None or self.is_closed:
            return
        self._freeze(is_elsewhere=True)
        self._wants_buttons = buttons
        self._register(shell)
        self._failed, self._is_told = None, False
        with_buttons = buttons and is_live(shell)
        if with_buttons:
            import ipywidgets  # noqa: F401  # now, so that no cell that is looked at takes the time
        self._note(CellBegan())
        self._has_news = True
        self._shown_in = shell.execution_count
        if self._session is not None:
            self._follow(self._session)
        with self._drawing:
            self._picture = LiveDisplay(self.bundle, shell=shell)
            self._buttons = self._face = None
            if with_buttons:
                self._buttons = LiveDisplay(dict, self._make_face, shell=shell, begins_open=False)
        if self._feed.state.since is not None:
            self._watch()  # what runs in the background

    def close(self) -> None:
        """Listen no more; a picture stays. Harmless a second time."""
        global _monitor
        with _choosing:
            if _monitor is self:
                _monitor = None
        if self.is_closed:
            return
        self.is_closed = True
        self._closing.set()
        self._unfollow()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(2)
        self._freeze()
        with self._lock:
            self._listen(None)
        self._register(None)

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def bundle(self, is_elsewhere: bool = False) -> Bundle:
        """Return what stays, by media type; only counts where nothing measured is shown."""
        if self._failed is not None:
            return {"text/plain": self._failure()}
        if shows_measured(current_shell()):
            facts = replace(self._feed.last_facts(self._session, self.is_closed), is_elsewhere=is_elsewhere)
            return {"text/plain": monitor_text(facts), "text/html": monitor_html(facts)}
        counts = self._feed.counts(self._session)
        return {"text/plain": counts_text(counts), "text/html": counts_html(counts)}

    def __repr__(self) -> str:
        return str(self.bundle()["text/plain"])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return dict(self.bundle())

    def _ipython_display_(self) -> None:
        shell = _shell_with_kernel()
        if shell is None or self.is_closed:
            raise NotImplementedError  # IPython then takes the forms above
        if self._picture is None or self._shown_in != shell.execution_count:
            self.show(self._wants_buttons)

    # what is heard, on any thread

    def _follow(self, session: Session) -> None:
        with self._lock:
            if session is not self._session:  # its workers have the same numbers, and nothing else
                self._feed.forget()
            self._listen(session)

    def _listen(self, session: Session | None) -> None:
        if session is not self._session or self._failed is not None:
            if self._subscription is not None:
                self._subscription()
            self._subscription = None
        self._session = session
        if session is None or self._failed is not None:
            return
        # Samples cost the workers something, so in a notebook they are asked for while somebody looks.
        shell = current_shell()
        samples = self._thread is not None if is_watched(shell) else shows_measured(shell)
        if self._subscription is None:
            self._subscription = session.subscribe(self._hear, samples=samples)
        else:
            self._subscription.want_samples(samples)

    def _hear(self, event: Event) -> None:
        # Thousands come from a cell of quick runs.
        try:
            if self._failed is not None:
                return
            if self._feed.hears_quick(event):
                self._has_news = True
            else:
                self._take(event)
        except Exception as error:  # what runs goes on
            self._fail(error)

    def _take(self, event: Event) -> None:
        is_new, kind = not self._feed.has_begun, type(event)
        self._feed.hear(event)
        if kind in BEGINNINGS or kind in ENDS:
            self._has_news = True
        if is_new and kind in BEGINNINGS and self._picture is not None and is_watched(self._shell):
            self._watch()
        elif kind is SessionStopped:
            with self._lock:
                self._listen(None)

    def _note(self, happening: Happening) -> None:
        try:
            self._feed.note(happening)
        except Exception as error:  # the cell goes on
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        # It hears no more until it is shown again. No thread prints: the cell that ends next warns of it.
        if self._failed is None:
            self._failed = error
            self._feed.forget()

    def _failure(self) -> str:
        return f"the load monitor stopped: {type(self._failed).__name__}: {self._failed}"

    def _exit(self) -> None:
        self.is_closed = True
        self._freeze(close_after=inf)

    def _freeze(self, is_elsewhere: bool = False, close_after: float = 0.0, is_patient: bool = False) -> None:
        with self._drawing:
            if self._picture is None:
                return
            try:
                self._picture.update(self.bundle(is_elsewhere))
                if self._buttons is not None:
                    self._buttons.freeze(close_after, is_patient=is_patient)
            except Exception as error:  # of a picture, or of what carries it
                self._fail(error)
                with suppress(Exception):
                    self._picture.update(self.bundle())
                with suppress(Exception):
                    if self._buttons is not None:
                        self._buttons.freeze()
            self.is_open = False  # what stays is there now

    # the thread that draws: what runs keeps that of the cell busy

    def _watch(self) -> None:
        with self._lock:
            if self._thread is None and not self.is_closed:
                self._thread = threading.Thread(target=self._draw_on, name="matnb-monitor", daemon=True)
                if self._session is not None:
                    self._listen(self._session)
                self._thread.start()

    def _draw_on(self) -> None:
        try:
            wait, idle_seconds = BETWEEN_SECONDS, 0.0
            while idle_seconds < LINGER_SECONDS and not self._closing.wait(wait):
                idle_seconds = 0.0 if self._look() else idle_seconds + wait
                wait = min(_MOST_BETWEEN_SECONDS, max(BETWEEN_SECONDS, _SPARED * self._drawing_seconds))
        except Exception as error:
            self._fail(error)
        self._end()

    def _look(self) -> bool:
        """Draw, if it is time; return whether there is something to see yet."""
        face = self._face
        if self._picture is None or (face is not None and face.wants_close):
            self._closing.set()
            return False
        is_active, since = self._is_active, self._feed.state.since or 0.0
        if not self.is_open and (not is_active or time.monotonic() - since < FIRST_SECONDS):
            return is_active
        begin = time.thread_time()
        with self._drawing:
            # A cell may have ended meanwhile, with its picture, and the next have begun.
            if self.is_open or self._is_active:
                self._draw()
        # The lesser of two: now and then one has more to do, as when memory is cleared up.
        took, before = time.thread_time() - begin, self._drawn_seconds
        self._drawing_seconds, self._drawn_seconds = min(took, before), took
        return self._is_active

    @property
    def _is_active(self) -> bool:
        state = self._feed.state
        return self._failed is None and state.since is not None and (state.is_in_cell or state.is_running)

    def _draw(self) -> None:
        if not self.is_open and self._buttons is not None:
            self._buttons.thaw()
        self.is_open = True
        state = self._feed.state
        facts = self._feed.live_facts(state.is_in_cell and time.monotonic() - state.ran_at < BRIDGE_SECONDS)
        with_table = False
        if self._face is not None:
            self._face.look()
            with_table = self._face.wants_table
        has_buttons = self._buttons is not None
        html = monitor_html(facts, with_table=with_table, is_open=True, leaves_room=not has_buttons)
        if has_buttons:
            html = f"{html}{_WITHOUT_BUTTONS}"
        assert self._picture is not None
        self._picture.update({"text/plain": monitor_text(facts), "text/html": html})

    def _end(self) -> None:
        with self._lock:
            self._thread = None
            self._note(PictureEnded())
            if self._session is not None and not self.is_closed:
                self._listen(self._session)
        if self.is_closed or self._picture is None:
            return
        if self._closing.is_set():
            self.close()
        elif not self._feed.state.is_in_cell or self._failed is not None:
            self._freeze(close_after=CLOSE_SECONDS, is_patient=True)
        if self._feed.state.since is not None and self._failed is None:
            self._watch()  # a run began meanwhile

    def _make_face(self) -> Any:
        self._face = MonitorButtons(self._cancel)
        return self._face.box

    def _cancel(self) -> None:
        session = self._session
        if session is not None:
            session.cancel()

    # cells

    def _register(self, shell: Any | None) -> None:
        if shell is self._shell:
            return
        hooks = {"pre_run_cell": self._cell_began, "post_run_cell": self._cell_ended}
        for name, hook in hooks.items():
            if self._shell is not None:
                self._shell.events.unregister(name, hook)
            if shell is not None:
                shell.events.register(name, hook)
        atexit.unregister(self._exit)
        if shell is not None:
            atexit.register(self._exit)
        self._shell = shell

    def _cell_began(self, info: object = None) -> None:
        self._note(CellBegan())

    def _cell_ended(self, result: object = None) -> None:
        self._note(CellEnded())
        is_over = self._feed.state.since is None or self._failed is not None or not is_watched(self._shell)
        if self._picture is not None and is_over and (self.is_open or self._has_news):
            self._has_news = False
            self._freeze(close_after=CLOSE_SECONDS, is_patient=True)
        if self._failed is not None and not self._is_told:
            self._is_told = True
            with self._lock:
                self._listen(self._session)
            warnings.warn(f"{self._failure()}; mn.monitor() shows it again", stacklevel=1)


def _shell_with_kernel() -> Any | None:
    shell = current_shell()
    return shell if getattr(shell, "kernel", None) is not None else None


_choosing = threading.RLock()
_monitor: Monitor | None = None


def monitor(*, buttons: bool = False) -> Monitor:
    """Show the load of every worker, and return the monitor.

    In a notebook the picture is updated while a cell runs; interrupting the kernel cancels the cell. When the
    cell ends, the last picture stays, and it is updated again by the next cell that computes. A notebook
    saved while a cell runs contains the picture as it was then, with the time of day. A second call moves the
    monitor to the cell it is called in and leaves a picture in the first. JupyterLab
    tells a page that is loaded again of no more changes: the picture stays as it was at the time that it
    names, and ``mn.monitor()`` shows another. A report shows only counts, which are the same every time;
    plain Python prints a table.

    Parameters
    ----------
    buttons
        Whether to show the buttons Cancel, Table and Close below the picture while something runs. They need
        ipywidgets. A notebook saved while they are shown says "Error displaying widget" in their place when
        it is opened without its kernel; the picture above them is not affected.

    Returns
    -------
    Monitor
        The monitor of this process; ``close()`` ends it.

    Examples
    --------
    >>> import matnb as mn
    >>> with mn.monitor() as load:
    ...     print(str(load).splitlines()[0])
    nothing has run yet
    """
    global _monitor
    with _choosing:
        if _monitor is None:
            _monitor = Monitor()
        found = _monitor
    found.show(buttons)
    return found


def close_monitor() -> None:
    """Close the monitor of this process, if there is one."""
    found = _monitor
    if found is not None:
        found.close()


# The load monitor's widget: a button that cancels what runs, and two more.

_AGAIN_SECONDS = 2.0  # after which what runs can be cancelled once more


class MonitorButtons:
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
