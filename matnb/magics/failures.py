"""How an error of a cell is shown: the cell line that wrote it, then the message; ``%tb`` still gives all."""

from __future__ import annotations

import linecache
import traceback
from functools import partial
from types import TracebackType

from IPython.core.interactiveshell import InteractiveShell

from matnb.errors import CellCancelled, MatnbError


class ShownShortly:
    """While the code inside runs, errors that pass get the short form in which IPython shows them, once.

    The whole traceback is what IPython shows when it is asked for the same error again, as ``%tb`` does.

    Parameters
    ----------
    filename
        Name under which the cell was compiled.
    shell
        IPython.
    """

    def __init__(self, filename: str, shell: InteractiveShell) -> None:
        self.filename, self.shell = filename, shell

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # IPython shows a syntax error with its position and without a traceback by itself.
        if error is not None and not isinstance(error, SyntaxError):
            error._render_traceback_ = partial(self._render, error)  # type: ignore[attr-defined]  # IPython's hook

    def _render(self, error: BaseException) -> list[str]:
        del error._render_traceback_  # type: ignore[attr-defined]  # set above
        if isinstance(error, CellCancelled):
            return [f"CellCancelled: {error}"]
        if isinstance(error, MatnbError):
            words = self.shell.compile.format_code_name(self.filename)
            return short_form(error, self.filename, " ".join(words) if words else "the cell")
        # Somebody else's error in IPython's own form, without the frames between IPython and the cell.
        rows: list[str] = self.shell.InteractiveTB.structured_traceback(
            type(error), error, _from_cell(error, self.filename), tb_offset=0
        )
        return rows


def short_form(error: MatnbError, filename: str, cell_name: str) -> list[str]:
    """Return the lines that say where in the cell an error was written, what was wrong and what to do."""
    lines = lines_of(error, filename)
    rows = []
    if lines:
        place = f"{cell_name}, line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        rows.append(f"{type(error).__name__} in {place}")
        rows += [f"----> {line} {linecache.getline(filename, line).rstrip()}" for line in lines]
        rows.append("")
    rows.append(f"{type(error).__name__}: {error}")
    # A note of several lines is a worker's traceback, which belongs to the long form.
    rows += [note for note in getattr(error, "__notes__", []) if "\n" not in note]
    rows.append("(%tb shows the whole traceback)")
    return rows


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
