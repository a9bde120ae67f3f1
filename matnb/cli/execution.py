"""A notebook's cells, run one after another in a fresh kernel, and what that tells when all are done."""

from __future__ import annotations

import os
import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from matnb.errors import MatnbError
from matnb.io.temporary import temporary_folder
from matnb.magics.summary import status_text
from matnb.session import active_session, history
from matnb.session.background import unasked

if TYPE_CHECKING:
    from nbformat import NotebookNode

KIND = "application/vnd.matnb.closing+json"
# Run as a last cell that is not shown. A notebook without matnb has nothing to tell.
SOURCE = """\
import sys
if "matnb" in sys.modules:
    from matnb.cli.execution import raise_unasked, told
    get_ipython().display_pub.publish(told())
    raise_unasked()
"""


@dataclass(frozen=True)
class KernelReport:
    """What the notebook's kernel reported before it closed.

    Attributes
    ----------
    trace
        The history of balancing as JSON; empty where no session was running any more.
    history_html
        The same with all that was measured; empty without a decision.
    status
        What the session ran on and keeps, in lines.
    kernel_bytes
        The most memory that the kernel had.
    failed_cell
        The number that the kernel gave to the cell whose work in the background failed without anybody asking
        for its result; 0 if there is none.
    """

    trace: str = ""
    history_html: str = ""
    status: str = ""
    kernel_bytes: int = 0
    failed_cell: int = 0


def told() -> dict[str, dict[str, str | int]]:
    """Return what a report asks for, as the data of an output."""
    session, failed = active_session(), unasked()
    found: dict[str, str | int] = {"kernel_bytes": _most_bytes()}
    if failed is not None:
        found["failed_cell"] = failed.cell or 0
    if session is not None:
        view = history()
        found["trace"] = view.trace.to_json()
        found["status"] = status_text(session.status())
        if view.decisions:
            found["history_html"] = view.bundle(measured=True)["text/html"]
    return {KIND: found}


def raise_unasked() -> None:
    """Raise the first error of work in the background whose result nobody asked for, if there is one."""
    failed = unasked()
    if failed is not None:
        failed.result()


def _most_bytes() -> int:
    """Return the most memory that this process had, in bytes."""
    try:  # Linux: getrusage also counts what the process that started this one had
        status = Path("/proc/self/status").read_text()
        return 1024 * int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0])
    except (OSError, IndexError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else 1024 * most


class CellFailed(MatnbError, RuntimeError):  # noqa: N818  it states an event
    """A cell of the notebook raised an error; the message has its traceback, in lines."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.args = (text,)


def execute(book: NotebookNode, rebalance: str) -> tuple[dict[str, float], KernelReport]:
    """Run all cells in a kernel of this Python.

    Parameters
    ----------
    book
        Its cells get their outputs.
    rebalance
        The kernel's ``MATNB_REBALANCE``.

    Returns
    -------
    seconds
        Of each cell by its id.
    closing
        What the kernel told when all were done.

    Raises
    ------
    CellFailed
        When one raises, or the kernel dies.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError
    from nbformat.v4 import new_code_cell

    started: dict[str, float] = {}
    seconds: dict[str, float] = {}
    num_cells = sum(cell.cell_type == "code" and bool(cell.source.strip()) for cell in book.cells)
    closing = new_code_cell(SOURCE, id="closing")
    for cell in book.cells:
        if cell.cell_type == "code":  # what was saved is of another run, as is an error in it
            cell.outputs, cell.execution_count = [], None

    def on_start(cell: NotebookNode, cell_index: int) -> None:
        started[cell.id] = time.perf_counter()

    def on_executed(cell: NotebookNode, cell_index: int, execute_reply: object) -> None:
        if cell.id in started and cell is not closing:
            seconds[cell.id] = time.perf_counter() - started[cell.id]
            place = f"cell {len(seconds)} of {num_cells}"
            print(f"matnb report: {place}, {seconds[cell.id]:.1f} s", file=sys.stderr)

    with temporary_folder("report-") as folder:
        settings = Path(folder, "matplotlibrc")
        settings.write_text("svg.hashsalt: matnb\n")  # else the ids in an SVG figure are random
        environment = {
            "MATPLOTLIBRC": str(settings),
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "SOURCE_DATE_EPOCH": "0",
            "PYTHONHASHSEED": "0",
            "MATNB_REBALANCE": rebalance,
            "MATNB_COMPILE": "off",  # nobody types meanwhile
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
        book.cells.append(closing)
        try:
            client.execute()
        except CellExecutionError as error:
            what = f"cell {len(seconds)}"
            if (number := _told(closing).failed_cell) > 0:
                what = f"the background work of cell {_place(book, number)}"
            advice = f"matnb report: {what} of {num_cells} failed; nothing was written"
            raise CellFailed(f"{_failure(book, error)}\n{advice}") from None
        except DeadKernelError:
            raise CellFailed("matnb report: the kernel died; no report was written") from None
        finally:
            book.cells.pop()
    return seconds, _told(closing)


def _told(closing: NotebookNode) -> KernelReport:
    told = [output.data[KIND] for output in closing.outputs if KIND in output.get("data", {})]
    return KernelReport(**told[0]) if told else KernelReport()


def _place(book: NotebookNode, number: int) -> int:
    # Which of the cells that ran it is to which the kernel gave a number.
    ran = [cell for cell in book.cells if cell.cell_type == "code" and cell.source.strip()]
    return next((place for place, cell in enumerate(ran, 1) if cell.execution_count == number), number)


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
