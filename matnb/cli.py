"""The command line: ``matnb report NOTEBOOK`` runs a notebook with parameters and writes one HTML file."""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

from matnb.errors import FileFormatError, MatnbError, MissingFileError, OptionError, UnsupportedError

if TYPE_CHECKING:
    from nbformat import NotebookNode

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
# What differs from run to run in what kernels print: process ids, addresses, the first use of a cache.
_KERNEL_FILE = re.compile(r"\S*[/\\]ipykernel_\d+[/\\]\d+\.py")
_FONT_CACHE = re.compile(r"Matplotlib is building the font cache; this may take a moment\.\n")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_STYLE = re.compile(r"(<style[^>]*>)(.*?)(</style>)", re.DOTALL)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_LOAD = re.compile(r"""(?:@import\s+|url\(\s*)["']?([^"')\s]+)""")
_LOADING = {"src", "poster", "data", "srcset", "background"}  # attributes that make a browser fetch
_SCRIPTED = {"application/vnd.jupyter.widget-view+json", "application/javascript"}

# JupyterLab's own look without what it would fetch: a report is read from a disk, maybe years later.
_TEMPLATE = """\
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}{%- endblock -%}
{%- block jupyter_widgets -%}{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
{%- block extra_css -%}
<style>
body.jp-Notebook { max-width: 980px; margin: 0 auto; padding: 24px 16px 64px; box-sizing: border-box; }
.jp-RenderedImage img { max-width: 100%; height: auto; }
.jp-RenderedHTMLCommon table { margin-left: 0; }
</style>
{%- endblock -%}
"""


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


class CellFailed(MatnbError, RuntimeError):  # noqa: N818  it states an event
    """A cell of the notebook raised an error; the message has its traceback."""


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
    seconds = _execute(book)
    measured = {"seconds": sum(seconds.values()), "cells": _measured(book, seconds)}
    _settle(book)
    page = _page(book, notebook)
    output.parent.mkdir(parents=True, exist_ok=True)
    _write(output, page)
    _write(output.with_suffix(".timings.json"), json.dumps(measured, indent=1) + "\n")
    print(f"matnb report: wrote {output}", file=sys.stderr)


def _require_extra() -> None:
    try:
        import nbclient  # noqa: F401  asked for here, used below
        import nbconvert  # noqa: F401
        import papermill  # noqa: F401
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


def _execute(book: NotebookNode) -> dict[str, float]:
    """Run all cells in a kernel of this Python and return the seconds of each by its id."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    started: dict[str, float] = {}
    seconds: dict[str, float] = {}
    num_cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in book.cells)

    def on_start(cell: NotebookNode, cell_index: int) -> None:
        started[cell.id] = time.perf_counter()

    def on_executed(cell: NotebookNode, cell_index: int, execute_reply: object) -> None:
        if cell.id in started:
            seconds[cell.id] = time.perf_counter() - started[cell.id]
            place = f"cell {len(seconds)} of {num_cells}"
            print(f"matnb report: {place}, {seconds[cell.id]:.1f} s", file=sys.stderr)

    with tempfile.TemporaryDirectory(prefix="matnb-report-") as folder:
        settings = Path(folder, "matplotlibrc")
        settings.write_text("svg.hashsalt: matnb\n")  # else the ids in an SVG figure are random
        environment = {
            "MATPLOTLIBRC": str(settings),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "SOURCE_DATE_EPOCH": "0",
            "PYTHONHASHSEED": "0",
        }
        # Whatever kernel the notebook names: the Python that has matnb is the one that runs this.
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=ERROR"]
        spec = KernelSpec(argv=argv, display_name="Python 3", language="python", env=environment)

        class KernelOfThisPython(AsyncKernelManager):
            kernel_spec = spec

        client = NotebookClient(
            book,
            kernel_manager_class=KernelOfThisPython,
            kernel_name="python3",
            timeout=None,
            resources={"metadata": {"path": os.getcwd()}},
            coalesce_streams=True,
            store_widget_state=False,
            record_timing=False,
            on_cell_start=on_start,
            on_cell_executed=on_executed,
        )
        try:
            client.execute()
        except CellExecutionError as error:
            advice = f"matnb report: cell {len(seconds)} of {num_cells} failed; nothing was written"
            raise CellFailed(f"{_failure(book, error)}\n{advice}") from None
        except DeadKernelError:
            raise CellFailed("matnb report: the kernel died; nothing was written") from None
    return seconds


def _failure(book: NotebookNode, error: Exception) -> str:
    # What the notebook itself shows; without any output, what nbclient makes of the kernel's reply.
    shown: list[str] = []
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                shown = list(output.traceback)
            elif output.output_type == "stream" and output.name == "stderr" and "UsageError" in output.text:
                shown = [output.text.rstrip()]
    return "\n".join(shown) or str(error)


def _measured(book: NotebookNode, seconds: Mapping[str, float]) -> list[dict[str, object]]:
    from matnb.magics.summary import METADATA

    rows: list[dict[str, object]] = []
    for cell in book.cells:
        if cell.id in seconds:
            outputs = cell.get("outputs", [])
            runs = [output.metadata[METADATA] for output in outputs if METADATA in output.get("metadata", {})]
            rows.append({"cell": cell.id, "seconds": seconds[cell.id], "runs": runs})
    return rows


def _settle(book: NotebookNode) -> None:
    """Take out what differs from run to run, and what would need a program to be seen."""
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if "text" in output:
                output.text = _settled(output.text)
            data = output.get("data", {})
            if _SCRIPTED & set(data):
                # A widget's plain text is only its class; a picture or a table beside it may stay.
                for kind in [*_SCRIPTED, "text/plain"]:
                    data.pop(kind, None)
            for kind in ("text/plain", "text/html", "text/markdown"):
                if kind in data:
                    data[kind] = _settled(data[kind])
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("data", output.get("text", True))]


def _settled(text: str) -> str:
    return _ADDRESS.sub("0x...", _KERNEL_FILE.sub("cell.py", _FONT_CACHE.sub("", text)))


def _page(book: NotebookNode, notebook: Path) -> str:
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        raw_template=_TEMPLATE,
        embed_images=True,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        exclude_anchor_links=True,
        extra_template_basedirs=[],
    )
    resources = {"metadata": {"name": notebook.stem, "path": str(notebook.parent)}}
    page, _ = exporter.from_notebook_node(book, resources=resources)
    page = _STYLE.sub(lambda found: found[1] + _STYLE_COMMENT.sub("", found[2]) + found[3], page)
    loads = outside_loads(page)
    if loads:
        raise UnsupportedError(
            f"the page would load {', '.join(loads[:3])}; a report holds all it shows, so use a local picture"
        )
    return page


def outside_loads(page: str) -> list[str]:
    """Return the addresses that a browser would fetch to show a page; links to click on are not loads."""
    finder = _LoadFinder()
    finder.feed(page)
    finder.close()
    return sorted(finder.found)


class _LoadFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        for name, value in attributes:
            fetched = name in _LOADING or (name in ("href", "xlink:href") and tag not in ("a", "base"))
            if value and fetched:
                self._note(value)
            elif value and name == "style":
                self.handle_style(value)

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.handle_style(data)

    def handle_style(self, text: str) -> None:
        for address in _STYLE_LOAD.findall(text):
            self._note(address)

    def _note(self, address: str) -> None:
        if not address.startswith(("data:", "#")):
            self.found.add(address)


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


if __name__ == "__main__":
    sys.exit(main())
