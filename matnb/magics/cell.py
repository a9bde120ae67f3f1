"""A ``%%distmat`` cell from its text to what is shown under it."""

from __future__ import annotations

import secrets
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from weakref import ReferenceType, ref

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from matnb.errors import CellCancelled
from matnb.events import Event, LoopAdvanced, LoopFinished, SessionAwaited
from matnb.expr.nodes import Expr
from matnb.lazy.array import DistArray
from matnb.lazy.loop_rolling import roll
from matnb.magics.failures import ShownShortly
from matnb.magics.recorder import VALUE, RecordedCell, compile_cell, last_values, run_cell
from matnb.magics.summary import show_recorded, show_run
from matnb.pictures.escaping import escaped
from matnb.pictures.later import waiting_text
from matnb.pictures.picture import Picture
from matnb.pictures.summary import STYLE, progress_text
from matnb.plan.report import RunReport
from matnb.session import Session, active_session, current_session
from matnb.session.background import Later, wait_here
from matnb.session.failures import remember_lines
from matnb.session.inspect import PLAN
from matnb.session.overrides import choosing


class Cell:
    """Runs one cell.

    Parameters
    ----------
    cell, line
        Its text without the magic's line, and that line's options as they were written.
    chosen
        These options, parsed.
    shell
        IPython.
    live
        Whether measured numbers are shown.

    Attributes
    ----------
    names
        Names of what the cell ends with, when it has run.
    values
        Of these the cell's last values, which no name of the user's stands for.
    """

    def __init__(self, cell: str, line: str, chosen: Namespace, shell: InteractiveShell, live: bool) -> None:
        self._cell, self._chosen, self._shell, self._live = cell, chosen, shell, live
        self.names: list[str] = []
        self.values: dict[str, ReferenceType[DistArray]] = {}
        self._report: RunReport | None = None
        self._explained = ""
        blank = len(cell) - len(cell.lstrip("\n"))  # IPython drops these lines, which would shift the others
        self._body = "\n" * blank + shell.transform_cell(cell)
        # The magic's own line is line 1, so that our line numbers are those beside the cell in the notebook.
        # The number of the cell is that of its output: IPython counts on before it runs what is in the cell.
        text = f"%%distmat {line}\n{self._body}"
        self._filename = shell.compile.cache(text, shell.displayhook.prompt_count)

    def run(self) -> None:
        """Run the cell and show what it gives."""
        chosen = self._chosen
        with (
            ShownShortly(self._filename, self._shell),
            choosing(chosen.engine, chosen.remembers),
            Progress(self._shell, self._live) as progress,
            ExitStack() as scopes,
        ):
            code = compile_cell(f"\n{self._body}", self._filename, self._shell.compile.flags)
            try:
                _follow(active_session(), progress, scopes)
                out = None if chosen.nowait else chosen.out
                done = run_cell(code, self._shell.user_ns, chosen.keep, out)
                self.names = list(done.program.roots)
                self.values = {name: ref(one) for name, one in last_values(done.value, out or VALUE)}
                value = self._computed(done, progress, scopes)
            except CellCancelled:
                raise
            except KeyboardInterrupt as interrupt:
                raise _cancelled(interrupt) from interrupt
            progress.close()
            if chosen.nowait and chosen.out is not None:
                self._shell.user_ns[chosen.out] = value
            is_silent = DisplayHook.semicolon_at_end_of_expression(self._cell)
            if not is_silent and chosen.out is None:
                self._shell.displayhook(value)
            if isinstance(value, Later) and chosen.nowait and not self._live:
                wait_here(value)  # what is shown further down must not depend on the time
        if not is_silent and not chosen.nowait:
            self._tell(done)

    def _computed(self, done: RecordedCell, progress: Progress, scopes: ExitStack) -> object:
        # What the cell shows, when all that it ends with is computed or on its way.
        chosen, roots, keep = self._chosen, done.program.roots, tuple(self._chosen.keep)
        if chosen.lazy or chosen.nowait:
            roots = dict(zip(roots, _rolled(done), strict=True))
        remember_lines(done.record)
        needs = roots and (chosen.explain or not chosen.lazy)
        session = current_session() if needs else None if chosen.lazy else active_session()
        if chosen.nowait:
            number = self._shell.displayhook.prompt_count
            return (session or current_session()).later(roots, done.record, keep, done.value, number)
        _follow(session, progress, scopes)
        if chosen.explain and roots and session is not None:
            self._explained = session.explain(roots, measured=self._live)
        if session is not None and not chosen.lazy:
            self._report = session.run(roots, done.record, keep)
        return done.value

    def _tell(self, done: RecordedCell) -> None:
        if self._explained:
            print(self._explained)
        if self._report is None:
            show_recorded(done.record, self._shell)
        else:
            show_run(self._report, self._live, self._shell, lambda: self._drawn(done))

    def _drawn(self, done: RecordedCell) -> Picture | None:
        # As it ran, so after it: what was estimated beside what was measured. Handles know the loops.
        session = active_session()
        if session is None:
            return None
        handles = {**self._shell.user_ns, **dict(last_values(done.value, self._chosen.out or VALUE))}
        roots = {}
        for name in done.program.roots:
            handle = handles.get(name)
            if isinstance(handle, DistArray) and _is_there(session, handle.expression):
                roots[name] = handle.expression
        facts = session.picture(roots, PLAN, measured=True).facts if roots else None
        if facts is None or not any(panel.title for panel in facts.panels):
            return None  # no run made it
        return Picture(replace(facts, title="the plan as it ran: what was estimated, then what was measured"))


def _follow(session: Session | None, progress: Progress, scopes: ExitStack) -> None:
    if session is not None:
        progress.follow(session)
        scopes.enter_context(session.stoppable())


def _rolled(done: RecordedCell) -> list[Expr]:
    # The loops of the cell's own as loops, which handles stand for now.
    wanted, running = list(done.program.roots.values()), active_session()
    if running is None:
        return roll(wanted, done.record, ())
    return running.rolled(wanted, done.record)  # what is stored needs no loop, and its handles none


def _is_there(session: Session, node: Expr) -> bool:
    return session.stored(node) is not None or session.small_value(node) is not None


def _cancelled(interrupt: KeyboardInterrupt) -> CellCancelled:
    # Of two interrupts the first ended the work, and knows what was done.
    earlier = interrupt.__context__
    while earlier is not None and not isinstance(earlier, CellCancelled):
        earlier = earlier.__context__
    return earlier or CellCancelled("interrupted; no task was running")


# How far a cell's loop is, or what it waits for, on a line that changes in place while somebody watches.

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
