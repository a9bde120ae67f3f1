"""IPython as a user's notebook has it, but in this process; comms and displays are kept."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import comm
import pytest
from comm.base_comm import BaseComm
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config


class Recorded(BaseComm):
    """A comm that keeps what is sent."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        self.is_closed = False
        super().__init__(*arguments, **options)

    def publish_msg(self, msg_type: str, data: Any = None, **others: Any) -> None:
        """Keep a message; of many the newest."""
        self.is_closed = self.is_closed or msg_type == "comm_close"
        if msg_type == "comm_msg":
            self.sent = [*self.sent[-9:], dict(data)]


class Person:
    """A shell with a kernel, what it has shown, and the comms that were opened."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, allow_stdin: bool = True) -> None:
        config = Config()
        config.HistoryManager.enabled = False
        self.shell = InteractiveShell(config=config, ipython_dir=str(folder))
        self.shell.display_pub = CapturingDisplayPublisher()
        self.shell.kernel = SimpleNamespace(_allow_stdin=allow_stdin)
        self.comms: list[Recorded] = []
        patch.setattr(comm, "create_comm", self._create)
        for module in ("matnb.widgets.output_area", "matnb.widgets.monitor"):
            patch.setattr(f"{module}.current_shell", lambda: self.shell)

    def _create(self, *arguments: Any, **options: Any) -> Recorded:
        self.comms.append(Recorded(*arguments, **options))
        return self.comms[-1]

    @property
    def outputs(self) -> list[dict[str, Any]]:
        """What is seen now, in the order in which it was shown first."""
        seen: dict[str, dict[str, Any]] = {}
        for output in self.shell.display_pub.outputs:
            name = (output["transient"] or {}).get("display_id", str(id(output)))  # else it never changes
            seen[name] = output["data"]
        return list(seen.values())

    @property
    def pictures(self) -> list[dict[str, Any]]:
        """What is seen without widgets: the place of buttons is empty, or a widget alone."""
        return [one for one in self.outputs if "text/plain" in one]

    @property
    def num_open(self) -> int:
        """Comms that are not closed."""
        return sum(not one.is_closed for one in self.comms)

    def end_cell(self) -> None:
        """Let IPython tell that a cell has ended."""
        self.shell.events.trigger("post_run_cell", None)

    def begin_cell(self) -> None:
        """Let IPython tell that a cell begins."""
        self.shell.execution_count += 1
        self.shell.events.trigger("pre_run_cell", None)


def num_drawing() -> int:
    """Return how many threads draw a monitor; what one freezes at its end is there when it is gone."""
    return sum(thread.name == "matnb-monitor" for thread in threading.enumerate())
