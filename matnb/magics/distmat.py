"""The magics: ``%distmat COMMAND`` and ``%%distmat`` over a cell, with their loading and unloading."""

from __future__ import annotations

from collections.abc import Mapping

from IPython.core.displayhook import DisplayHook
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
from traitlets import Enum, default
from traitlets.config import Configurable

from matnb.config import DISPLAYS, display_from_environment
from matnb.errors import CellCancelled
from matnb.lazy.array import DistArray
from matnb.lazy.expr import Expr
from matnb.magics import options
from matnb.magics.completion import match_options
from matnb.magics.failures import ShownShortly, leave_plain_cells, shorten_plain_cells
from matnb.magics.progress import Progress
from matnb.magics.recorder import compile_cell, run_cell
from matnb.magics.summary import (
    asked_text,
    is_headless,
    setting_text,
    show_history,
    show_memo,
    show_recorded,
    show_run,
    status_text,
)
from matnb.session import active_session, connect, current_session, history, memo, start, stop
from matnb.session.failures import remember_lines
from matnb.session.memory import entries_with
from matnb.session.passed import HistoryView
from matnb.session.rolling import roll


class DistMat(Configurable):
    """Settings of matnb's magics; ``%config DistMat`` lists them."""

    display = Enum(
        DISPLAYS,
        help="What a cell shows: 'live' adds measured seconds and leaves out the summary of a short run; "
        "'static' shows counts only, the same every time; 'auto' is live where a person can answer.",
    ).tag(config=True)

    @default("display")
    def _display_default(self) -> str:
        return display_from_environment()


@magics_class
class DistMatMagics(Magics):
    """``%distmat`` and ``%%distmat``."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.settings = DistMat(parent=shell)
        self.names: list[str] = []  # of the last cell's roots; the arrays themselves are the person's to keep

    @line_cell_magic
    @no_var_expand
    @needs_local_scope
    @output_can_be_silenced
    def distmat(self, line: str, cell: str | None = None, local_ns: dict[str, object] | None = None) -> None:
        """See the help of the options, which is put in this place below."""
        namespace = {**self.shell.user_ns, **(local_ns or {})}
        if cell is not None:
            chosen = options.parse_cell_line(line, namespace)
            self._run(cell, line, lazy=chosen.lazy, keep=tuple(chosen.keep))
            return
        command, chosen = options.parse_line(line, namespace)
        match command:
            case "start":
                print(start(**vars(chosen)).status().description)
            case "connect":
                print(connect(chosen.address, scheduler_file=chosen.scheduler_file).status().description)
            case "status":
                session = active_session()
                print(status_text(session.status()) if session else "no session; the first result starts one")
            case "explain":
                roots = self._roots(chosen.names, namespace)
                print(current_session().explain(roots, chosen.stage, measured=self.live))
            case "memo" if chosen.disk and not chosen.clear:
                raise UsageError("%distmat memo: --disk goes with --clear")
            case "memo" if chosen.clear:
                memo.clear(chosen.disk)
            case "memo":
                variables = {
                    name: handle.expression
                    for name, handle in namespace.items()
                    if isinstance(handle, DistArray) and not name.startswith("_")
                }
                show_memo(entries_with(variables), self.live, self.shell)
            case "history":
                self._history(chosen.save)
            case "rebalance":
                self._rebalance(chosen.setting)
            case "stop":
                stop()

    distmat.__doc__ = f"Record matrix code in a cell and run it on workers.\n\n{options.help_text()}"

    def show(self, view: HistoryView, include: object = None, exclude: object = None) -> dict[str, str]:
        """Return how a history that a cell ends with is shown: measured numbers only live."""
        return view.bundle(self.live)

    def _history(self, path: str | None) -> None:
        if path is None:
            show_history(history(), self.live, self.shell)
        else:
            history().save(path)
            print(f"history saved to {path}")

    def _rebalance(self, setting: str | None) -> None:
        if setting == "now":
            session = active_session()
            print(asked_text(session.rebalance_now() if session else (), self.live))
            return
        if setting is not None:
            current_session().set_rebalance(setting)
        print(setting_text(history(), self.live))

    @property
    def live(self) -> bool:
        """Whether measured numbers are shown."""
        if self.settings.display == "auto":
            return not is_headless(self.shell)
        return bool(self.settings.display == "live")

    def _run(self, cell: str, line: str, lazy: bool, keep: tuple[str, ...]) -> None:
        blank = len(cell) - len(cell.lstrip("\n"))  # IPython drops these lines, which would shift the others
        body = "\n" * blank + self.shell.transform_cell(cell)
        # The magic's own line is line 1, so that our line numbers are those beside the cell in the notebook.
        # The number of the cell is that of its output: IPython counts on before it runs what is in the cell.
        filename = self.shell.compile.cache(f"%%distmat {line}\n{body}", self.shell.displayhook.prompt_count)
        with ShownShortly(filename, self.shell), Progress(self.shell, self.live) as progress:
            code = compile_cell(f"\n{body}", filename, self.shell.compile.flags)
            try:
                progress.follow(active_session())
                done = run_cell(code, self.shell.user_ns, keep)
                self.names = [name for name in done.program.roots if name.isidentifier()]
                if lazy:
                    wanted, running = list(done.program.roots.values()), active_session()
                    if running is None:
                        roll(wanted, done.record, ())
                    else:  # what is stored needs no loop, and its handles are in the way of none
                        running.rolled(wanted, done.record)
                remember_lines(done.record)
                session = None if lazy else current_session() if done.program.roots else active_session()
                progress.follow(session)
                report = session.run(done.program.roots, done.record, keep) if session else None
            except CellCancelled:
                raise
            except KeyboardInterrupt as interrupt:
                raise CellCancelled("interrupted; no task was running") from interrupt
            progress.close()
            if DisplayHook.semicolon_at_end_of_expression(cell):
                return
            self.shell.displayhook(done.value)
        if report is None:
            show_recorded(done.record, self.shell)
        else:
            show_run(report, self.live, self.shell)

    def _roots(self, names: list[str], namespace: dict[str, object]) -> Mapping[str, Expr]:
        if not names and not self.names:
            raise UsageError("%distmat explain: no cell has computed anything yet; name a DistArray")
        roots = {}
        for name in names or self.names:
            handle = namespace.get(name)
            if not isinstance(handle, DistArray):
                raise UsageError(f"%distmat explain: {name} is no DistArray")
            roots[name] = handle.expression
        return roots


def load(shell: InteractiveShell) -> None:
    """Add the magics, their settings and their completion to IPython; a second time changes nothing."""
    if DistMatMagics.__name__ in shell.magics_manager.registry:
        return
    magics = DistMatMagics(shell)
    shell.register_magics(magics)
    shell.configurables.append(magics.settings)
    shell.Completer.custom_matchers.append(match_options)
    shell.display_formatter.mimebundle_formatter.for_type(HistoryView, magics.show)
    shorten_plain_cells(shell)


def unload(shell: InteractiveShell) -> None:
    """Take out of IPython everything that :func:`load` put in; the session goes on."""
    magics = shell.magics_manager.registry.pop(DistMatMagics.__name__, None)
    if magics is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("distmat", None)
    shell.configurables.remove(magics)
    shell.configurables.remove(magics.settings)
    shell.Completer.custom_matchers.remove(match_options)
    shell.display_formatter.mimebundle_formatter.pop(HistoryView, None)
    leave_plain_cells()
