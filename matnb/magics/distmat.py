"""The magics ``%distmat COMMAND`` and ``%%distmat``, their settings, and how they are loaded and unloaded."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from weakref import ReferenceType

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import (
    Magics,
    line_cell_magic,
    magics_class,
    needs_local_scope,
    no_var_expand,
    output_can_be_silenced,
)
from traitlets import Any, Bool, Enum, Int, TraitError, Unicode, Union, default, observe, validate
from traitlets.config import Configurable

from matnb.config import DISPLAYS, ENGINES, display_from_environment
from matnb.errors import CellCancelled, OptionError, meant
from matnb.expr.nodes import Expr
from matnb.health.doctor import Diagnosis, doctor
from matnb.lazy.array import DistArray
from matnb.magics import options
from matnb.magics.cell import Cell, Progress, array_of
from matnb.magics.failures import ShortTracebacks, leave_plain_cells, shorten_plain_cells
from matnb.magics.options import CELL, COMMANDS, OptionParser
from matnb.magics.summary import asked_text, session_bundle, setting_text, show_memo, status_text
from matnb.pictures.escaping import LONGEST_NAME, shortened
from matnb.pictures.quantities import bytes_text
from matnb.plan.explain import LAST_VALUE
from matnb.session import (
    Session,
    active_session,
    connect,
    current_session,
    follow_sessions,
    history,
    start,
    stop,
)
from matnb.session.background import Later
from matnb.session.current import memo, next_session_text
from matnb.session.history_view import HistoryView
from matnb.session.settings import OPTIONS, clear_defaults, config_with, rebalancing_from, set_default
from matnb.session.stamp import stamp
from matnb.simulation.clock import Cluster
from matnb.simulation.simulate import simulate
from matnb.tables.table import Table
from matnb.widgets.monitor import close_monitor, monitor
from matnb.widgets.output_area import freeze_open, is_headless
from matnb.widgets.views import history_view, later_view, plan_view, table_view

_LATER = "From the next start on."


def _size(words: str, when: str = _LATER) -> Union:
    return Union([Int(), Unicode()], allow_none=True, help=f"{words} {when}").tag(config=True)


class DistMat(Configurable):
    """Settings of matnb's magics; ``%config DistMat`` lists them.

    Each begins as the environment has it (MATNB_WORKERS and so on). A name on the right of ``%config
    DistMat.workers = n`` is a variable's. What ``%distmat start --workers 2`` is given goes before.
    """

    display = Enum(
        DISPLAYS,
        help="What a cell shows: 'live' adds measured seconds and leaves out the summary of a short run; "
        "'static' shows counts only, the same every time; 'auto' is live where a user can answer. At once.",
    ).tag(config=True)
    workers = Int(help=f"Number of Dask workers. {_LATER}").tag(config=True)
    threads = Int(allow_none=True, help=f"Threads of each worker; None shares all cores. {_LATER}").tag(
        config=True
    )
    processes = Bool(help=f"Whether each worker has a process of its own. {_LATER}").tag(config=True)
    security = Bool(
        help=f"Whether other users of this machine are kept away from worker processes. {_LATER}"
    ).tag(config=True)
    memory_limit = _size("Memory of each worker, such as '4GB'; None shares the machine's.")
    memo = _size("Memory for results kept between runs, or 'off'.")
    memo_dir = Unicode(
        allow_none=True, help=f"Folder that keeps results for other processes; None: no files. {_LATER}"
    ).tag(config=True)
    compute_limit = _size("Largest result that is brought into this process.", "At once.")
    engine = Enum(
        ENGINES,
        help="Who runs cells: 'auto' lets a gang of workers run loops, and runs them as tasks where none "
        "comes together, which 'gang' refuses; 'dask' runs all as tasks; 'interpret' is plain NumPy and "
        f"SciPy here. {_LATER}",
    ).tag(config=True)
    rebalance = Any(
        help="Who repartitions arrays: 'auto' by measured times, 'entries' by counts, 'presto' by that "
        "paper's rule, 'off', or the path of a trace. At once."
    ).tag(config=True)

    node_grid = Any(
        help="How workers lie beside the axes of arrays: 'auto' goes by their lengths, '4x4' or (4, 4) is a "
        f"grid. {_LATER}"
    ).tag(config=True)

    @default("node_grid")
    def _node_grid_default(self) -> object:
        return config_with({}).node_grid

    @default("display")
    def _display_default(self) -> str:
        return display_from_environment()

    @default("workers")
    def _workers_default(self) -> int:
        return config_with({}).workers

    @default("threads")
    def _threads_default(self) -> int | None:
        return config_with({}).threads

    @default("processes")
    def _processes_default(self) -> bool:
        return config_with({}).processes

    @default("security")
    def _security_default(self) -> bool:
        return config_with({}).security

    @default("memory_limit")
    def _memory_limit_default(self) -> str | None:
        size = config_with({}).memory_limit_bytes
        return None if size is None else bytes_text(size)

    @default("memo")
    def _memo_default(self) -> str:
        config = config_with({})
        return bytes_text(config.memo_bytes) if config.remembers else "off"

    @default("memo_dir")
    def _memo_dir_default(self) -> str | None:
        return config_with({}).memo_dir

    @default("compute_limit")
    def _compute_limit_default(self) -> str:
        return bytes_text(config_with({}).compute_limit_bytes)

    @default("engine")
    def _engine_default(self) -> str:
        return config_with({}).engine

    @default("rebalance")
    def _rebalance_default(self) -> object:
        return config_with({}).rebalance

    @validate(*OPTIONS)
    def _checked(self, proposal: dict[str, object]) -> object:
        name, value = proposal["trait"].name, proposal["value"]  # type: ignore[attr-defined]  # a trait
        try:
            config_with({name: value})
            if name == "rebalance":
                rebalancing_from(value)
        except OptionError as error:
            raise TraitError(f"DistMat.{name}: {error}") from None
        return value

    @observe(*OPTIONS)
    def _take_on(self, change: dict[str, object]) -> None:
        name, value = str(change["name"]), change["new"]
        set_default(name, value)
        session = active_session()
        if name == "rebalance" and session is not None:
            session.set_rebalance(value)
        elif name == "compute_limit" and session is not None:
            session.set_compute_limit(config_with({}).compute_limit_bytes)

    def forget(self) -> None:
        """Let sessions begin as the environment has it again."""
        clear_defaults()


_NOTHING = "nothing was recorded yet; run a %%distmat cell or name a DistArray"


@magics_class
class DistMatMagics(Magics):
    """``%distmat`` and ``%%distmat``."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.settings = DistMat(parent=shell)
        self.matcher = matcher_of(shell)
        self.values = ValueDisplay(shell, lambda: self.live)
        self.between = CellScope(shell, lambda: self.live)
        # Of the last cell's roots, and its last values; the arrays themselves are the user's to keep.
        self.names: list[str] = []
        self.values_of_cell: Mapping[str, ReferenceType[DistArray]] = {}

    @line_cell_magic
    @no_var_expand
    @needs_local_scope
    @output_can_be_silenced
    def distmat(self, line: str, cell: str | None = None, local_ns: dict[str, object] | None = None) -> None:
        """See the help of the options, which is put in this place below."""
        if (text := options.help_asked(line, cell is not None)) is not None:
            print(text)
            return
        namespace = {**self.shell.user_ns, **(local_ns or {})}
        if cell is not None:
            chosen = options.parse_cell_line(line, namespace)
            self.between.leave_line()
            running = Cell(cell, line, chosen, self.shell, self.live)
            try:
                running.run()
            finally:
                if running.names:
                    self.names, self.values_of_cell = running.names, running.values
            return
        command, chosen = options.parse_line(line, namespace)
        with ShortTracebacks(None, self.shell):
            self._do(command, chosen, namespace)

    distmat.__doc__ = f"Record matrix code in a cell and run it on workers.\n\n{options.help_text()}"

    def _do(self, command: str, chosen: Namespace, namespace: Mapping[str, object]) -> None:
        match command:
            case "start":
                print(start(**vars(chosen)).status().description)
            case "connect" if (chosen.address is None) == (chosen.scheduler_file is None):
                raise UsageError("%distmat connect: give the scheduler's ADDRESS or --scheduler-file FILE")
            case "connect":
                print(connect(chosen.address, scheduler_file=chosen.scheduler_file).status().description)
            case "status":
                session = active_session()
                print(status_text(session.status()) if session else next_session_text())
            case "explain":
                self._explain(self._roots(chosen.names, namespace), chosen.stage, chosen.picture)
            case "simulate":
                self._simulate(self._roots(chosen.names, namespace, "simulate"), vars(chosen))
            case "memo" if chosen.disk and not chosen.clear:
                raise UsageError("%distmat memo: --disk requires --clear")
            case "memo" if chosen.clear:
                memo.clear(chosen.disk)
            case "memo":
                variables = {
                    name: handle.expression
                    for name, one in namespace.items()
                    if (handle := array_of(one)) is not None and not name.startswith("_")
                }
                show_memo(memo.entries(variables), self.live, self.shell)
            case "history":
                self._history(chosen.save)
            case "rebalance":
                self._rebalance(chosen.setting)
            case "monitor":
                self._monitor()
            case "stamp":
                self._stamp(chosen.json, chosen.time, chosen.save)
            case "doctor":
                self.shell.display_pub.publish(doctor().bundle(self.live))
            case "stop":
                stop()

    def _explain(self, roots: Mapping[str, Expr], stage: str | None, is_drawn: bool) -> None:
        session = current_session()
        if is_drawn:
            plan_view(session.picture(roots, stage, measured=self.live), self.shell)
        else:
            print(session.explain(roots, stage, measured=self.live))

    def _history(self, path: str | None) -> None:
        if path is None:
            history_view(history(), self.shell)
        else:
            history().save(path)
            print(f"history saved to {path}")

    def _simulate(self, roots: Mapping[str, Expr], chosen: Mapping[str, object]) -> None:
        given = {
            name: chosen[name]
            for name in ("nodes", "workers", "threads", "memory", "bandwidth", "latency")
            if chosen[name] is not None
        }
        handles = [DistArray(node) for node in roots.values()]
        cluster = Cluster(**given) if given else None  # type: ignore[arg-type]  # it checks
        found = simulate(*handles, cluster=cluster, iterations=chosen["iterations"])  # type: ignore[arg-type]
        self.shell.display_pub.publish(found._repr_mimebundle_())

    def _rebalance(self, setting: str | None) -> None:
        if setting == "now":
            session = active_session()
            print(asked_text(session.rebalance_now() if session else (), self.live))
            return
        if setting is not None:
            current_session().set_rebalance(setting)
        print(setting_text(history(), self.live))

    def _monitor(self) -> None:
        shown = monitor()
        if getattr(self.shell, "kernel", None) is None:  # nothing is shown there but what is printed
            print(shown)

    def _stamp(self, as_json: bool, with_time: bool, path: str | None) -> None:
        made = stamp(with_time=with_time)
        if path is not None:
            made.save(path)
            print(f"stamp saved to {path}")
        elif as_json:
            print(made.json)
        else:
            self.shell.display_pub.publish(made.bundle())

    @property
    def live(self) -> bool:
        """Whether measured numbers are shown."""
        if self.settings.display == "auto":
            return not is_headless(self.shell)
        return bool(self.settings.display == "live")

    def _roots(
        self, names: list[str], namespace: Mapping[str, object], command: str = "explain"
    ) -> Mapping[str, Expr]:
        if not names and not self.names:
            raise UsageError(f"%distmat {command}: {_NOTHING}")
        roots = {}
        for name in names or self.names:
            value = self.values_of_cell.get(name) if not names else None
            handle = array_of(namespace.get(name) if value is None else value())
            if handle is not None:
                roots[name] = handle.expression
            elif names:
                if name == LAST_VALUE and not self.names:
                    raise UsageError(f"%distmat {command}: {_NOTHING}")
                near = meant(name, _arrays(self.shell), before="; ")
                raise UsageError(
                    f"%distmat {command}: {shortened(name, LONGEST_NAME)} is not a DistArray{near}"
                )
        if not roots:
            raise UsageError(f"%distmat {command}: the results of the last cell are gone; name a DistArray")
        return roots


def load(shell: InteractiveShell) -> None:
    """Add the magics, their settings and their completion to IPython; a second time changes nothing."""
    if DistMatMagics.__name__ in shell.magics_manager.registry:
        return
    magics = DistMatMagics(shell)
    shell.register_magics(magics)
    shell.configurables.append(magics.settings)
    shell.input_transformers_cleanup.insert(0, help_with_a_body)
    shell.Completer.custom_matchers.append(magics.matcher)
    magics.values.register()
    magics.between.register()
    shorten_plain_cells(shell)


def unload(shell: InteractiveShell) -> None:
    """Take out of IPython everything that :func:`load` put in; the session goes on."""
    close_monitor()
    freeze_open()
    magics = shell.magics_manager.registry.pop(DistMatMagics.__name__, None)
    if magics is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("distmat", None)
    shell.configurables.remove(magics)
    shell.configurables.remove(magics.settings)
    shell.input_transformers_cleanup.remove(help_with_a_body)
    shell.Completer.custom_matchers.remove(magics.matcher)
    magics.values.unregister()
    magics.between.unregister()
    magics.settings.forget()
    leave_plain_cells()


def help_with_a_body(lines: list[str]) -> list[str]:
    """Give ``%%distmat --help``, alone in its cell, the body without which IPython refuses a cell magic."""
    found = _OURS.fullmatch("".join(lines).strip())
    if found is None or found[1] != "%%" or options.help_asked(found[2], is_cell=True) is None:
        return lines
    return [*lines, "\n"]


# Cells without the magic can be cancelled between two values that they ask for, and show how far a loop is.


class CellScope:
    """Lets every cell be one scope that a session's ``cancel()`` reaches; the next value obeys it.

    Under a cell that takes long a line says how far its loop is, as under one with the magic.

    Parameters
    ----------
    shell
        IPython.
    is_live
        Tells whether measured numbers are shown.
    """

    def __init__(self, shell: InteractiveShell, is_live: Callable[[], bool]) -> None:
        self._shell, self._is_live = shell, is_live
        self._progress: Progress | None = None  # of the outermost cell
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

    def leave_line(self) -> None:
        """Show no line for the cell that runs: it shows one of its own."""
        if self._progress is not None:
            self._progress.close()

    def _began(self, info: object = None) -> None:
        scopes = ExitStack()
        if not self._cells:
            # A terminal has a line of its own for all that runs.
            is_live = hasattr(self._shell, "kernel") and self._is_live()
            self._progress = scopes.enter_context(Progress(self._shell, is_live))
            scopes.callback(follow_sessions(self._progress.follow))
        self._cells.append(scopes)
        # A session may also start in the cell, and another take its place.
        scopes.callback(follow_sessions(lambda session: scopes.enter_context(session.stoppable(around=True))))

    def _ended(self, result: object = None) -> None:
        if self._cells:  # the cell that loaded this had not begun here
            with suppress(CellCancelled):  # a wish for its end, which it came to by itself
                self._cells.pop().close()


# Tab completion of the magics' commands, options and their values, read from their parsers.

_OURS = re.compile(r"\s*(%{1,2})distmat\s(.*)")
_OF_ARRAYS = ("--keep",)

Matcher = Callable[[CompletionContext], SimpleMatcherResult]


def matcher_of(shell: InteractiveShell) -> Matcher:
    """Return what completes a command after ``%distmat``, and options and values after it or ``%%distmat``.

    Parameters
    ----------
    shell
        IPython, whose variables are completed where an array's name is wanted.
    """

    @context_matcher(identifier="matnb.options")
    def match_options(context: CompletionContext) -> SimpleMatcherResult:
        found = _OURS.fullmatch(context.text_until_cursor)
        words = known_words(found[1], found[2], _arrays(shell)) if found else []
        completions = [
            SimpleCompletion(word, type="option") for word in words if word.startswith(context.token)
        ]
        return SimpleMatcherResult(completions=completions, suppress=bool(completions))

    matcher: Matcher = match_options
    return matcher


def known_words(percents: str, text: str, arrays: Sequence[str] = ()) -> list[str]:
    """Return the words that may stand at the end of a magic's line.

    Parameters
    ----------
    percents
        "%" or "%%".
    text
        The line after the magic's name.
    arrays
        Names of DistArrays.
    """
    before = text.split()[: -1 if text and not text[-1].isspace() else None]
    if percents == "%%":
        return _words(CELL, before, arrays)
    if not before:
        return list(COMMANDS)
    if before[0] not in COMMANDS:
        return []
    return _words(COMMANDS[before[0]], before[1:], arrays)


def _words(parser: OptionParser, before: Sequence[str], arrays: Sequence[str]) -> list[str]:
    option = before[-1] if before else ""
    if option in parser.words:
        return list(parser.words[option])
    if option in parser.flags and option in _OF_ARRAYS:
        return list(arrays)
    if option in parser.takes_value:
        return []
    return [*parser.flags, *parser.settings, *(arrays if parser.takes_arrays else ())]


def _arrays(shell: InteractiveShell) -> list[str]:
    named = sorted(shell.user_ns.items())
    return [name for name, one in named if array_of(one) is not None and not name.startswith("_")]


# What a cell ends with, shown as the commands show it: measured numbers and controls only live.

_SHOWN = (HistoryView, Later, Diagnosis)  # measured values of these are shown only live


class ValueDisplay:
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
        formatters.mimebundle_formatter.for_type(Session, session_bundle)
        formatters.ipython_display_formatter.for_type(Table, self.show_table)
        formatters.ipython_display_formatter.for_type(HistoryView, self.show_history)
        formatters.ipython_display_formatter.for_type(Later, self.show_later)

    def unregister(self) -> None:
        """Let the values show themselves again."""
        formatters = self._shell.display_formatter
        for kind in _SHOWN:
            formatters.mimebundle_formatter.pop(kind, None)
        for changing in (HistoryView, Later, Table):
            formatters.ipython_display_formatter.pop(changing, None)
        formatters.mimebundle_formatter.pop(Session, None)

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

    def show_table(self, value: Table) -> None:
        """Show what is known of a table at once, where its rows take a while, and then these."""
        self._check_changes()
        if not value._takes_long():
            raise NotImplementedError
        table_view(value, self._shell)

    def _check_changes(self) -> None:
        # IPython takes this error for a no, and shows the bundle as the cell's result.
        if getattr(self._shell, "kernel", None) is None or not self._is_live():
            raise NotImplementedError
