"""What a report asks its kernel when all cells are done: what failed behind them, history, measures."""

from __future__ import annotations

import re
import resource
import sys
from dataclasses import dataclass
from pathlib import Path

from matnb.magics.summary import status_text
from matnb.session import active_session, history
from matnb.session.background import unasked

KIND = "application/vnd.matnb.closing+json"
# Run as a last cell that is not shown. A notebook without matnb has nothing to tell.
SOURCE = """\
import sys
if "matnb" in sys.modules:
    from matnb.cli.closing import raise_unasked, told
    get_ipython().display_pub.publish(told())
    raise_unasked()
"""


@dataclass(frozen=True)
class Closing:
    """What was told.

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
