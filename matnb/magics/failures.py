"""How an error of a cell is shown: the cell line that wrote it, then the message; ``%tb`` still gives all."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Sequence
from functools import partial
from types import TracebackType
from weakref import WeakKeyDictionary

from IPython.core.interactiveshell import InteractiveShell

from matnb.calls.boundary import whole_traceback
from matnb.calls.display import user_frames
from matnb.errors import (
    ArgumentError,
    CellCancelled,
    CellSyntaxError,
    KernelError,
    MatnbError,
    MissingAttributeError,
    OptionError,
)
from matnb.pictures.escaping import LONGEST_LINE, shortened

HOOK = "_render_traceback_"  # what IPython asks an error for how it is to be shown
_ShortError = MatnbError | MissingAttributeError | CellCancelled
# What was shown in a short form, and which: the next time that a cell asks it is the whole.
_shown: WeakKeyDictionary[_ShortError, list[str]] = WeakKeyDictionary()


class ShortTracebacks:
    """While the code inside runs, errors that pass get the short form in which IPython shows them, once.

    The whole traceback is what IPython shows when it is asked for the same error again, as ``%tb`` does.

    Parameters
    ----------
    filename
        Name under which the cell was compiled; None for a line magic, of which there is no line to show.
    shell
        IPython.
    """

    def __init__(self, filename: str | None, shell: InteractiveShell) -> None:
        self.filename, self.shell = filename, shell

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            setattr(error, HOOK, partial(self._render, error))

    def _render(self, error: BaseException) -> list[str]:
        delattr(error, HOOK)
        if isinstance(error, CellCancelled):
            return _short(error, [f"CellCancelled: {error}"])
        if isinstance(error, MatnbError | MissingAttributeError):
            return _short(error, _rows(error, _written_in(error) or self.filename or "", self.shell))
        # Somebody else's error in IPython's own form, without the frames between IPython and the cell.
        rows: list[str] = self.shell.InteractiveTB.structured_traceback(
            type(error), error, _from_cell(error, self.filename or ""), tb_offset=0
        )
        return rows


def shorten_plain_cells(shell: InteractiveShell) -> None:
    """Have IPython show errors of matnb shortly in cells without the magic too; ``%tb`` still gives all."""
    # IPython asks the error, so the hook is an attribute of its class and nothing of IPython changes.
    for kind in (MatnbError, MissingAttributeError, CellCancelled):
        setattr(kind, HOOK, lambda error: _render_plain(error, shell))


def leave_plain_cells() -> None:
    """Undo :func:`shorten_plain_cells`."""
    for kind in (MatnbError, MissingAttributeError, CellCancelled):
        if HOOK in vars(kind):
            delattr(kind, HOOK)


def _render_plain(error: _ShortError, shell: InteractiveShell) -> list[str]:
    if error not in _shown:
        if isinstance(error, CellCancelled):
            return _short(error, [f"CellCancelled: {error}"])
        if rows := _rows_of_calls(error, shell):
            return _short(error, rows)
    elif shell.displayhook.exec_result is None:  # no cell runs: IPython keeps what it has shown
        return _shown[error]
    trace = whole_traceback(error)
    whole: list[str] = shell.InteractiveTB.structured_traceback(type(error), error, trace)
    return whole


def _short(error: _ShortError, rows: list[str]) -> list[str]:
    _shown[error] = rows
    return rows


def _rows_of_calls(error: MatnbError | MissingAttributeError, shell: InteractiveShell) -> list[str]:
    # Of a cell that called matnb through files of the user's own, the innermost line and the cell's; else the
    # cell's alone. Nothing where no cell called.
    frames = user_frames(error.__traceback__)
    cells = [one for one in frames if shell.compile.format_code_name(one.filename)]
    if not cells:
        return []
    inner, cell = frames[-1], cells[-1]
    if inner is cell or (isinstance(error, MatnbError) and error.lines):
        return _rows(error, _written_in(error) or cell.filename, shell)
    place = inner.filename.replace(os.path.expanduser("~") + os.sep, "~" + os.sep, 1)
    words = " ".join(shell.compile.format_code_name(cell.filename) or ())
    return [
        f"{type(error).__name__} in {place}, line {inner.lineno}, in {inner.name}",
        _row(inner.filename, inner.lineno or 0),
        f"called by {words}, line {cell.lineno}",
        _row(cell.filename, cell.lineno or 0),
        "",
        *_message(error, True),
    ]


def _written_in(error: MatnbError | MissingAttributeError) -> str:
    return error.cell if isinstance(error, MatnbError) else ""


def _rows(error: MatnbError | MissingAttributeError, filename: str, shell: InteractiveShell) -> list[str]:
    if isinstance(error, CellSyntaxError):
        cause = error.__cause__
        rows: list[str] = shell.SyntaxTB.structured_traceback(type(cause), cause, [])
        return rows
    words = shell.compile.format_code_name(filename)
    return short_form(error, filename, " ".join(words) if words else "the cell", _raised(error, shell))


def _raised(error: MatnbError | MissingAttributeError, shell: InteractiveShell) -> list[str]:
    # The line of a user's function that a worker called, where a cell defines it.
    if not isinstance(error, MatnbError) or error.raised_at is None:
        return []
    filename, line = error.raised_at
    words = shell.compile.format_code_name(filename)
    if words is None:
        return []
    what = "raised" if isinstance(error, KernelError) else "the function"
    return [f"{what} in {' '.join(words)}, line {line}", _row(filename, line), ""]


def short_form(
    error: MatnbError | MissingAttributeError, filename: str, cell_name: str, raised: Sequence[str] = ()
) -> list[str]:
    """Return the lines that say where in the cell an error was written, what was wrong and what to do.

    Parameters
    ----------
    raised
        Lines that say where it was raised, if that is elsewhere.
    """
    lines = lines_of(error, filename)
    rows = []
    if lines:
        place = f"{cell_name}, line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        rows.append(f"{type(error).__name__} in {place}")
        rows += [_row(filename, line) for line in lines]
        rows.append("")
    # Of a wrong option one line tells all.
    return [*rows, *raised, *_message(error, bool(lines) or not isinstance(error, OptionError))]


def _message(error: MatnbError | MissingAttributeError, has_more: bool) -> list[str]:
    # A note of several lines is a worker's traceback, which belongs to the long form.
    notes = [note for note in getattr(error, "__notes__", []) if "\n" not in note]
    hint = ["(%tb shows the whole traceback)"]  # which tells nothing of a call that was not made
    is_of_call = isinstance(error, MissingAttributeError | ArgumentError)
    return [f"{type(error).__name__}: {error}", *notes, *(hint if has_more and not is_of_call else [])]


def _row(filename: str, line: int) -> str:
    return f"----> {line} {shortened(linecache.getline(filename, line).rstrip(), LONGEST_LINE)}"


def lines_of(error: BaseException, filename: str) -> tuple[int, ...]:
    """Return the cell lines that wrote what went wrong.

    An error found on a worker carries them, since its traceback only tells which line asked for the value.
    """
    carried: tuple[int, ...] = getattr(error, "lines", ())
    if carried:
        return carried
    frames = traceback.extract_tb(error.__traceback__)
    found = [frame.lineno for frame in frames if frame.filename == filename and frame.lineno is not None]
    return (found[-1],) if found else ()


def _from_cell(error: BaseException, filename: str) -> TracebackType | None:
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != filename:
        frame = frame.tb_next
    return frame or error.__traceback__
