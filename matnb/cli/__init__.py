"""The command line: ``matnb report NOTEBOOK`` writes a notebook's report, ``matnb compile`` machine code."""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from matnb.cli.compiling import compile_commonest
from matnb.cli.execution import CellFailed, KernelReport, execute
from matnb.cli.page import find_browser, has_formulas, page_of, pdf_of, settle
from matnb.cli.timings import measured, sidecar, timings_html
from matnb.config import rebalance_of_reports
from matnb.errors import FileFormatError, MatnbError, MissingFileError, OptionError, UnsupportedError
from matnb.session.machine_code import is_made
from matnb.session.settings import rebalancing_from
from matnb.version import VERSION

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status: 0, 1 for a failed notebook, 2 for wrong arguments."""
    parser, typed = _parser(), sys.argv[1:] if arguments is None else list(arguments)
    for option, text in pairwise(typed):
        if option in ("-p", "--parameter") and (pair := re.fullmatch(r"(\w+)=(.*)", text, re.DOTALL)):
            parser.error(f"{option} {text}: write {option} {pair[1]} {pair[2] or 'VALUE'}")
    chosen = parser.parse_args(typed)
    try:
        if chosen.command == "compile":
            if not (is_made() or compile_commonest(_tell)):
                print("another process compiles them right now", file=sys.stderr)
            return 0
        given = {name: parameter_value(text) for name, text in chosen.parameter}
        record, replay = _traces(chosen.trace)
        report(
            chosen.notebook,
            given,
            chosen.output or Path(chosen.notebook.stem + ".html"),
            timings=chosen.timings,
            record=record,
            replay=replay,
            pdf=chosen.pdf,
        )
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


def _tell(number: int, of: int) -> None:
    if sys.stderr.isatty():
        end = "\n" if number == of else ""
        print(f"\rcompiling, first time only: {number} of {of}", end=end, file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="matnb", description="Matrix code in notebooks, run on Dask.")
    parser.add_argument("--version", action="version", version=f"matnb {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    commands.add_parser(
        "compile",
        help="compile the most common loops ahead of time, for example for a container image",
        description="Compile the most common loops for this processor, and cache the machine code in the "
        "package folder, or in NUMBA_CACHE_DIR.",
    )
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
        help="set a variable of the notebook's cell tagged `parameters`; may be repeated. Numbers, true, "
        "false, none and quoted strings are read as such, everything else as a string",
    )
    command.add_argument("-o", "--output", metavar="FILE", type=Path, help="default: NOTEBOOK's name, .html")
    command.add_argument("--pdf", action="store_true", help="also print it to a .pdf file, with chromium")
    command.add_argument(
        "--timings",
        action="store_true",
        help="also show measured seconds, loads and memory at the end; the report then differs each time",
    )
    command.add_argument(
        "--trace",
        nargs=2,
        metavar=("record|replay", "FILE"),
        help="record: repartition arrays by measured times, and save these decisions; replay: repeat them, "
        "so that the report is always the same. By default a file of NOTEBOOK's name and .trace.json is "
        "replayed if it exists and MATNB_REBALANCE is not set; otherwise entry counts decide",
    )
    return parser


def _traces(given: Sequence[str] | None) -> tuple[Path | None, Path | None]:
    match given:
        case None:
            return None, None
        case ["record", name]:
            return Path(name), None
        case ["replay", name]:
            return None, Path(name)
    raise OptionError(f"--trace {' '.join(given)}: give --trace record FILE or --trace replay FILE")


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


def report(
    notebook: Path,
    parameters: Mapping[str, object],
    output: Path,
    *,
    timings: bool = False,
    record: Path | None = None,
    replay: Path | None = None,
    pdf: bool = False,
) -> None:
    """Execute a notebook and write its report and, beside it, what was measured.

    Parameters
    ----------
    notebook
        An ``.ipynb`` file.
    parameters
        Values for variables of its cell tagged ``parameters``.
    output
        The HTML file; seconds and loads go to its name with ``.timings.json``. Neither is left half-written.
    timings
        Whether the page tells what was measured.
    record
        A file for the decisions of the session that runs when the notebook ends; measured times decide.
    replay
        Such a file, the decisions of which are repeated.
    pdf
        Whether the page is also printed, to the output's name with ``.pdf``.

    Raises
    ------
    CellFailed
        When a cell raises, or the kernel dies.
    MissingFileError, FileFormatError
        When there is no such notebook, or it is none.
    OptionError
        For a file that would be written over a notebook or over another, a parameter that the notebook does
        not have, a trace that is none, and where there is no session of which decisions could be recorded.
    UnsupportedError
        When the extra ``notebook`` or chromium is not installed, or the page would load something from
        elsewhere.
    PrintError
        When chromium does not print the page.
    """
    _require_extra()
    _check_targets(notebook, {"-o": output, "--trace record": record})
    browser = find_browser() if pdf else ""
    book, seconds, closing = run_notebook(notebook, parameters, record=record, replay=replay)
    if record is not None and not closing.trace:
        raise OptionError(
            f"--trace record {record}: no session was running when the notebook ended, so nothing was "
            "written; leave out its mn.stop()"
        )
    cells = measured(book, seconds)
    settle(book)
    page = page_of(book, notebook, timings_html(cells, closing) if timings else "")
    if has_formulas(book):
        print("matnb report: formulas in TeX are shown as typed: a report has no scripts", file=sys.stderr)
    printed = pdf_of(page, browser) if pdf else b""
    written = {output: page.encode()}
    written[output.with_suffix(".timings.json")] = (
        json.dumps(sidecar(cells, closing), indent=1) + "\n"
    ).encode()
    if pdf:
        written[output.with_suffix(".pdf")] = printed
    if record is not None:
        written[record] = closing.trace.encode()
    for path, content in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, content)
        if not path.name.endswith(".timings.json"):
            print(f"matnb report: wrote {path}", file=sys.stderr)


def run_notebook(
    notebook: Path,
    parameters: Mapping[str, object],
    *,
    record: Path | None = None,
    replay: Path | None = None,
) -> tuple[NotebookNode, dict[str, float], KernelReport]:
    """Run a notebook in a fresh kernel; return it with outputs, its cells' seconds, and how it ended.

    Parameters are those of :func:`report`, and so is what is raised.
    """
    book = _read(notebook)
    _set_parameters(book, parameters, notebook)
    for number, cell in enumerate(book.cells):
        cell["id"] = f"cell-{number}"  # a fresh cell's own is random
    return book, *execute(book, _rebalance(notebook, record, replay))


def _check_targets(notebook: Path, targets: Mapping[str, Path | None]) -> None:
    """Refuse to write over a notebook or one file over another, before anything runs."""
    taken = {notebook.resolve(): "NOTEBOOK"}
    for option, path in targets.items():
        if path is None:
            continue
        if path.is_dir() or str(path) == "-":
            what = "a folder" if path.is_dir() else "no file: reports are not written to pipes"
            raise OptionError(f"{path} is {what}; give {option} the name of a file")
        if path.suffix == ".ipynb":
            raise OptionError(f"{option} {path} would write over a notebook; give a name with another suffix")
        if (other := taken.setdefault(path.resolve(), option)) != option:
            raise OptionError(f"{option} {path} would write over the file of {other}; give another name")


def _rebalance(notebook: Path, record: Path | None, replay: Path | None) -> str:
    """Return what decides about cuts in a report's kernel; a trace is looked at before anything runs."""
    if record is not None:
        return rebalance_of_reports(otherwise="auto")
    shipped = notebook.with_suffix(".trace.json")
    if replay is None and shipped.is_file() and not rebalance_of_reports(otherwise=""):
        replay = shipped
    if replay is None:
        return rebalance_of_reports()
    path = str(replay.resolve())
    rebalancing_from(path)
    print(f"matnb report: repeats the decisions of {replay}", file=sys.stderr)
    return path


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
        with warnings.catch_warnings():  # of a name's ending: what is in the file is looked at below
            warnings.simplefilter("ignore", UserWarning)
            return load_notebook_node(str(path))
    except (NotJSONError, ValidationError, ValueError, AttributeError, KeyError):
        raise FileFormatError(path, "this is not a Jupyter notebook") from None


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
                raise FileFormatError(path, f"its cell of parameters is not plain Python: {error}") from None
            known += [name.id for name in names if isinstance(name.ctx, ast.Store)]
    for name in parameters:
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has no cell tagged `parameters`"
            raise OptionError(f"{path} has no parameter {name!r}; {there}")
    filled = parameterize_notebook(book, dict(parameters), kernel_name="python3", language="python")
    book.cells = filled.cells


def _write(path: Path, content: bytes) -> None:
    # Beside the target, so that the last step is a rename, which is whole or not at all.
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
