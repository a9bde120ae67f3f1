"""The command line: ``matnb report NOTEBOOK`` runs a notebook with parameters and writes one HTML file."""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from matnb.cli.execution import CellFailed, execute
from matnb.cli.page import page_of, settle
from matnb.errors import FileFormatError, MatnbError, MissingFileError, OptionError, UnsupportedError

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 for a failed notebook, 2 for wrong arguments."""
    chosen = _parser().parse_args(arguments)
    try:
        given = {name: parameter_value(text) for name, text in chosen.parameter}
        report(chosen.notebook, given, chosen.output or Path(chosen.notebook.stem + ".html"))
    except CellFailed as failure:
        text = str(failure)
        print(text if sys.stderr.isatty() else _ANSI.sub("", text), file=sys.stderr)
        return 1
    except (MatnbError, OSError) as error:
        print(f"matnb report: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("matnb report: interrupted; nothing was written", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="matnb", description="Matrix code in notebooks, run on Dask.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser(
        "report",
        help="run a notebook and write one self-contained HTML file",
        description="Run a notebook in a fresh kernel of this Python, in this folder, and write its report: "
        "one HTML file that needs nothing else. Two runs give the same bytes; what was measured goes to a "
        "JSON file beside it.",
    )
    command.add_argument("notebook", metavar="NOTEBOOK", type=Path, help="an .ipynb file")
    command.add_argument(
        "-p",
        "--parameter",
        nargs=2,
        metavar=("NAME", "VALUE"),
        action="append",
        default=[],
        help="set a variable of the notebook's cell tagged `parameters`; may repeat. Numbers, true, false, "
        "none and quoted texts are read as such, everything else as text",
    )
    command.add_argument("-o", "--output", metavar="FILE", type=Path, help="default: NOTEBOOK's name, .html")
    return parser


def parameter_value(text: str) -> object:
    """Return a parameter as papermill would read it: a number, truth value, None, list or text.

    Examples
    --------
    >>> parameter_value("1e-8"), parameter_value("none"), parameter_value("'10'"), parameter_value("wiki.txt")
    (1e-08, None, '10', 'wiki.txt')
    """
    words: dict[str, object] = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def report(notebook: Path, parameters: Mapping[str, object], output: Path) -> None:
    """Execute a notebook and write its report and, beside it, what was measured.

    Parameters
    ----------
    notebook
        An ``.ipynb`` file.
    parameters
        Values for variables of its cell tagged ``parameters``.
    output
        The HTML file; seconds and loads go to its name with ``.timings.json``. Neither is left half-written.

    Raises
    ------
    CellFailed
        When a cell raises, or the kernel dies.
    MissingFileError, FileFormatError
        When there is no such notebook, or it is none.
    OptionError
        For a parameter that the notebook does not have.
    UnsupportedError
        When the extra ``notebook`` is not installed, or the page would load something from elsewhere.
    """
    _require_extra()
    if output.is_dir():
        raise OptionError(f"{output} is a folder; give -o the name of a file")
    book = _read(notebook)
    _set_parameters(book, parameters, notebook)
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"  # a fresh cell's own is random
    seconds = execute(book)
    measured = {"seconds": sum(seconds.values()), "cells": _measured(book, seconds)}
    settle(book)
    page = page_of(book, notebook)
    output.parent.mkdir(parents=True, exist_ok=True)
    _write(output, page)
    _write(output.with_suffix(".timings.json"), json.dumps(measured, indent=1) + "\n")
    print(f"matnb report: wrote {output}", file=sys.stderr)


def _require_extra() -> None:
    try:
        import nbclient  # noqa: F401  asked for here, used below
        import nbconvert  # noqa: F401  likewise
        import papermill  # noqa: F401  likewise
    except ModuleNotFoundError as missing:
        advice = f"it needs the extra `notebook`: pip install 'matnb[notebook]' ({missing.name} is missing)"
        raise UnsupportedError(advice) from None


def _read(path: Path) -> NotebookNode:
    from nbformat import ValidationError
    from nbformat.reader import NotJSONError
    from papermill.iorw import load_notebook_node

    if not path.is_file():
        raise MissingFileError(f"{path}: no such notebook")
    try:
        return load_notebook_node(str(path))
    except (NotJSONError, ValidationError, ValueError, AttributeError, KeyError):
        raise FileFormatError(path, "this is no Jupyter notebook") from None


def _set_parameters(book: NotebookNode, parameters: Mapping[str, object], path: Path) -> None:
    if not parameters:
        return
    from papermill.parameterize import parameterize_notebook

    known: list[str] = []
    for cell in book.cells:
        if "parameters" in cell.metadata.tags:
            try:
                names = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.Name)]
            except SyntaxError as error:
                raise FileFormatError(path, f"its cell of parameters is no plain Python: {error}") from None
            known += [name.id for name in names if isinstance(name.ctx, ast.Store)]
    for name in parameters:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has no cell tagged `parameters`"
            raise OptionError(f"{path} has no parameter {name!r}; {there}")
    filled = parameterize_notebook(book, dict(parameters), kernel_name="python3", language="python")
    book.cells = filled.cells


def _measured(book: NotebookNode, seconds: Mapping[str, float]) -> list[dict[str, object]]:
    from matnb.magics.summary import METADATA

    rows: list[dict[str, object]] = []
    for cell in book.cells:
        if cell.id in seconds:
            outputs = cell.get("outputs", [])
            runs = [output.metadata[METADATA] for output in outputs if METADATA in output.get("metadata", {})]
            rows.append({"cell": cell.id, "seconds": seconds[cell.id], "runs": runs})
    return rows


def _write(path: Path, text: str) -> None:
    # Beside the target, so that the last step is a rename, which is whole or not at all.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
