"""A ``%%distmat`` cell: compiled with its positions, run under a recording, and what is shown under it."""

from __future__ import annotations

import ast
import inspect
import math
import secrets
import sys
import threading
import time
import weakref
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, replace
from types import CodeType
from weakref import ReferenceType, ref

from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell

from matnb.errors import CellCancelled, CellSyntaxError, OptionError, UnsupportedError, suggestion
from matnb.events import (
    BatchesFinished,
    Event,
    LoopAdvanced,
    LoopFinished,
    RunFinished,
    RunStarted,
    RunStopped,
    SessionAwaited,
)
from matnb.expr.nodes import Expr
from matnb.graph.searches import BreadthFirst
from matnb.lazy.array import DistArray
from matnb.lazy.evaluator import looking_only
from matnb.lazy.loop_rolling import roll
from matnb.lazy.recording import Recording, recording
from matnb.magics.failures import ShortTracebacks
from matnb.magics.summary import show_recorded, show_run
from matnb.nested import NestedArray
from matnb.pictures.escaping import LONGEST_NAME, escaped, shortened
from matnb.pictures.picture import Picture
from matnb.pictures.quantities import plural_text, seconds_text
from matnb.pictures.summary import STYLE, progress_text, waiting_text
from matnb.plan.explain import LAST_VALUE
from matnb.plan.report import RunReport
from matnb.session import Session, active_session, current_session, follow_sessions
from matnb.session.background import Later, wait_here
from matnb.session.inspect import PLAN
from matnb.session.listeners import Subscription
from matnb.session.naming import remember_lines
from matnb.session.overrides import choosing
from matnb.session.progress_line import RunProgress, progress_of, shows_progress


@dataclass(frozen=True)
class CellCode:
    """A cell's statements and, apart, its last expression; either may be missing."""

    filename: str
    statements: CodeType
    value: CodeType | None


@dataclass(frozen=True)
class CellRoots:
    """The named roots of one cell: what its end computes."""

    roots: Mapping[str, Expr]


@dataclass(frozen=True)
class RecordedCell:
    """What running a cell's code left: its last value, what it recorded, and its roots."""

    value: object
    record: Recording
    program: CellRoots


def compile_cell(source: str, filename: str, flags: int = 0) -> CellCode:
    """Compile a cell so that its last expression can be evaluated for its value.

    Parameters
    ----------
    source
        Python code; its first line is line 1 of ``filename``.
    filename
        Name under which the code's frames are found again.
    flags
        Compiler flags, such as those of ``from __future__`` imports in earlier cells.

    Raises
    ------
    CellSyntaxError
        Caused by the SyntaxError, which has the position in ``filename``.
    UnsupportedError
        For an ``await`` that is not inside of a function.
    """
    try:
        return _compiled(source, filename, flags)
    except SyntaxError as error:
        if _awaits(source, flags):
            words = "await is not supported here: await in a plain cell, and use the result here"
            refused = UnsupportedError(words)
            refused.lines = () if error.lineno is None else (error.lineno,)
            raise refused from None
        raise CellSyntaxError(f"{error.msg} (line {error.lineno})") from error


def _compiled(source: str, filename: str, flags: int) -> CellCode:
    tree = compile(source, filename, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    value = None
    if tree.body and isinstance(last := tree.body[-1], ast.Expr):
        del tree.body[-1]
        value = compile(ast.Expression(last.value), filename, "eval", flags, dont_inherit=True)
    return CellCode(filename, compile(tree, filename, "exec", flags, dont_inherit=True), value)


def _awaits(source: str, flags: int) -> bool:
    # Whether the code is in order but for awaiting outside of any function, as plain cells may.
    try:
        code = compile(source, "", "exec", flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False
    return bool(code.co_flags & inspect.CO_COROUTINE)


def run_cell(
    code: CellCode, namespace: dict[str, object], keep: Sequence[str] = (), out: str | None = None
) -> RecordedCell:
    """Run a cell's code in a namespace, recording its operations, and find its roots.

    Parameters
    ----------
    keep
        Names that are roots, too.
    out
        A name that the last value is given, instead of being a root of its own.

    Raises
    ------
    OptionError
        When ``keep`` names something that is not a DistArray after the cell, and when there is no last value
        for ``out``.
    """
    if out is not None and code.value is None:
        raise OptionError(
            f"--out {out}: the cell's last line is not an expression, so there is no value to name"
        )
    # References that keep nothing alive: what the cell lets go of can be freed while it runs.
    before = {name: (weakref.ref(handle), handle.expression.digest) for name, handle in _handles(namespace)}
    with recording(code.filename) as record:
        exec(code.statements, namespace)
        value = eval(code.value, namespace) if code.value is not None else None
    if out is not None:
        namespace[out] = value
    assigned = {
        name: handle.expression
        for name, handle in _handles(namespace)
        if name not in before
        or before[name][0]() is not handle
        or before[name][1] != handle.expression.digest
    }
    record.names.update(assigned)
    roots = {name: handle.expression for name, handle in last_values(value, out or LAST_VALUE)}
    consumed = _consumed(record)
    roots |= {name: node for name, node in assigned.items() if node not in consumed and name not in roots}
    for name in keep:
        handle = array_of(namespace.get(name))
        if handle is None:
            known = [shortened(one, LONGEST_NAME) for one in sorted(assigned)]
            wrong = f"--keep {shortened(name, LONGEST_NAME)}: no DistArray of that name"
            raise OptionError(f"{wrong}; {suggestion(name, known, 'assigned in this cell:', str)}")
        roots[name] = handle.expression
    return RecordedCell(value, record, CellRoots(roots))


def _handles(namespace: Mapping[str, object]) -> list[tuple[str, DistArray]]:
    found = ((name, array_of(value)) for name, value in namespace.items())
    return [(name, handle) for name, handle in found if handle is not None]


def array_of(value: object) -> DistArray | None:
    """Return the array that a variable of a cell stands for: itself, or the values of a nested array."""
    if isinstance(value, NestedArray):
        return value.values
    return value if isinstance(value, DistArray) else None


def last_values(value: object, name: str = LAST_VALUE) -> list[tuple[str, DistArray]]:
    """Return the arrays that a cell's last value is or holds, each with what it is called.

    Looked into are tuples, lists and dicts, also those inside of them.
    """
    found: dict[str, DistArray] = {}
    _collect(value, name, found, ())
    return list(found.items())


def _collect(value: object, name: str, found: dict[str, DistArray], around: tuple[object, ...]) -> None:
    if (handle := array_of(value)) is not None:
        found[name if name not in found else f"{name}#{len(found)}"] = handle
    elif any(value is one for one in around):  # a list may hold itself
        return
    elif isinstance(value, tuple | list | BreadthFirst):
        for place, one in enumerate(value):
            _collect(one, f"{name}[{place}]", found, (*around, value))
    elif isinstance(value, dict):
        for place, (key, one) in enumerate(value.items()):
            called = shortened(repr(key), LONGEST_NAME) if isinstance(key, str | int) else f"#{place}"
            _collect(one, f"{name}[{called}]", found, (*around, value))


def _consumed(record: Recording) -> set[Expr]:
    # One operation may build several nodes (a mean is a sum and a quotient) and only the last is recorded, so
    # what it consumes lies below; the walk ends at nodes that are recorded or known to be consumed already.
    consumed: set[Expr] = set()
    waiting = list(record.lines)
    while waiting:
        for operand in waiting.pop().operands:
            if operand not in consumed:
                consumed.add(operand)
                waiting.append(operand)
    return consumed


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
            ShortTracebacks(self._filename, self._shell),
            choosing(chosen.engine, chosen.remembers),
            # A terminal has a line of its own for all that runs.
            Progress(self._shell, self._live and hasattr(self._shell, "kernel")) as progress,
            ExitStack() as scopes,
        ):
            code = compile_cell(f"\n{self._body}", self._filename, self._shell.compile.flags)
            try:
                scopes.callback(follow_sessions(progress.follow))  # one that starts in the cell, too
                _stop_with(active_session(), scopes)
                out = None if chosen.nowait else chosen.out
                with looking_only() if chosen.lazy else nullcontext():
                    done = run_cell(code, self._shell.user_ns, chosen.keep, out)
                self.names = list(done.program.roots)
                self.values = {name: ref(one) for name, one in last_values(done.value, out or LAST_VALUE)}
                value = self._computed(done, scopes)
            except CellCancelled:
                raise
            except KeyboardInterrupt as interrupt:
                raise _cancelled(interrupt) from interrupt
            progress.close()
            if chosen.nowait and chosen.out is not None:
                self._shell.user_ns[chosen.out] = value
            is_silent = DisplayHook.semicolon_at_end_of_expression(self._cell)
            if isinstance(value, Later) and chosen.nowait and not self._live:
                wait_here(value)  # what is shown here and further down must not depend on the time
            if not is_silent and chosen.out is None:
                with looking_only() if chosen.lazy else nullcontext():
                    displayhook_of(self._shell)(value)
        if not is_silent and not chosen.nowait:
            self._tell(done)

    def _computed(self, done: RecordedCell, scopes: ExitStack) -> object:
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
        _stop_with(session, scopes)
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
        handles = {**self._shell.user_ns, **dict(last_values(done.value, self._chosen.out or LAST_VALUE))}
        roots = {}
        for name in done.program.roots:
            handle = array_of(handles.get(name))
            if handle is not None and _is_there(session, handle.expression):
                roots[name] = handle.expression
        facts = session.picture(roots, PLAN, measured=True).facts if roots else None
        if facts is None or not any(panel.title for panel in facts.panels):
            return None  # no run made it
        return Picture(replace(facts, title="the plan as it ran: what was estimated, then what was measured"))


def _stop_with(session: Session | None, scopes: ExitStack) -> None:
    if session is not None:
        scopes.enter_context(session.stoppable())


def displayhook_of(shell: InteractiveShell) -> Callable[[object], None]:
    """Return what shows a value: while a cell runs it is Python's own, which ``%%capture`` replaces.

    Outside of any cell, as where a program calls the magic, Python's own prints what IPython formats.
    """
    return shell.displayhook if sys.displayhook is sys.__displayhook__ else sys.displayhook


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
_PAUSE_SECONDS, _MANY_RUNS = 1.0, 10
# A line that is not renewed any more was left by a kernel that is gone, which cannot take it away.
_RENEWED = (
    "<style>.matnb-progress{animation:matnb-gone 1s 20s forwards}@keyframes matnb-gone{to{opacity:0}}</style>"
)


class ShortRuns:
    """Counts runs one soon after the other, each too short to be told of, as a loop of Python's has them."""

    def __init__(self) -> None:
        self._num_runs, self._began, self._ended = 0, 0.0, -math.inf

    def add(self, began: float, ended: float) -> None:
        """Count a run by when it began and ended."""
        if began - self._ended > _PAUSE_SECONDS or ended - began >= FIRST_SECONDS:
            self._num_runs, self._began = 0, began
        self._num_runs += 1
        self._ended = ended

    def text(self, now: float) -> str:
        """Return how many there were, or nothing where they are few or long ago."""
        is_over = now - self._ended > _PAUSE_SECONDS
        if is_over or self._num_runs < _MANY_RUNS or now - self._began < FIRST_SECONDS:
            return ""
        return f"{plural_text(self._num_runs, 'short run')}, {seconds_text(now - self._began)} so far"


class Progress:
    """Listens to a session while a cell runs; a thread shows how far a run is that tells nothing itself.

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
        self._followed: dict[Session, Subscription] = {}
        self._id = f"matnb-progress-{secrets.token_hex(8)}"
        self._num_finished = 0
        self._run: RunProgress | None = None  # that runs, and is no loop
        self._loop: LoopAdvanced | None = None
        self._loop_since = 0.0  # when it came so far
        self._short = ShortRuns()
        self._showing = threading.Lock()
        self._ended = threading.Event()
        self._drawer: threading.Thread | None = None
        self._is_published = self._is_shown = self._counts = False

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def follow(self, session: Session | None) -> None:
        """Listen to a session, if there is one."""
        if self._is_live and session is not None and session not in self._followed and shows_progress():
            self._followed[session] = session.subscribe(self.hear)

    def hear(self, event: Event) -> None:
        """Show what an event tells, if it is time."""
        if threading.get_ident() != self._thread:
            return  # what another thread shows would land under any cell
        match event:
            case SessionAwaited():
                self._hide() if event.is_over else self._show(waiting_text(event.names, event.cell), False)
            case RunStarted():
                self._run = progress_of(event, self._clock())
                self._watch()
            case RunFinished() | RunStopped():
                if self._run is not None:
                    now = self._clock()
                    self._short.add(self._run.began, now)
                    self._run = None
                    if not self._short.text(now):
                        self._hide()
            case LoopFinished():
                self._num_finished += 1
                self._run = None
            case BatchesFinished():
                self._hide()
            case LoopAdvanced():
                self._run, now = None, self._clock()
                self._short, self._counts = ShortRuns(), False
                if event != self._loop:
                    self._loop, self._loop_since = event, now
                if now >= self._next:
                    self._next = now + BETWEEN_SECONDS
                    text = progress_text(self._num_finished, event, now - self._begin, now, self._loop_since)
                    self._show(text)

    def draw(self) -> None:
        """Show how far the run is, if one runs that is no loop and it is time, or how many were short."""
        with self._showing:
            run, now = self._run, self._clock()
            if self._ended.is_set():
                return
            if run is not None and now - run.began >= FIRST_SECONDS:
                for subscription in self._followed.values():
                    subscription.want_samples(True)  # workers in other processes tell how far they are
                self._publish(run.text(now))
            elif text := self._short.text(now):
                self._counts = True
                self._publish(text)
            elif self._counts:
                self._publish("")
                self._counts = self._is_shown = False

    def close(self) -> None:
        """Listen no more, to no session, and take the line away."""
        self._is_live = False
        for unsubscribe in self._followed.values():
            unsubscribe()
        self._followed.clear()
        self._ended.set()
        self._hide()

    def _watch(self) -> None:
        # What it shows belongs to the cell whose context this is.
        if self._drawer is None and self._is_live:
            self._drawer = threading.Thread(
                target=copy_context().run, args=(self._draw_on,), name="matnb-progress", daemon=True
            )
            self._drawer.start()

    def _draw_on(self) -> None:
        while not self._ended.wait(BETWEEN_SECONDS):
            self.draw()

    def _hide(self) -> None:
        with self._showing:
            if self._is_shown:
                self._publish("")
                self._is_shown = False

    def _show(self, text: str, is_renewed: bool = True) -> None:
        with self._showing:
            self._publish(text, is_renewed)

    def _publish(self, text: str, is_renewed: bool = True) -> None:
        html = f'<div style="{STYLE}">{escaped(text)}</div>' if text else ""
        if text and is_renewed:
            html = f'{_RENEWED}<div class="matnb-progress">{html}</div>'
        self._shell.display_pub.publish(
            {"text/plain": text, "text/html": html},
            transient={"display_id": self._id},
            update=self._is_published,
        )
        self._is_published = self._is_shown = True
