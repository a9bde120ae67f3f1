"""A real kernel as a user's notebook talks to it: what it sends is kept in the order in which it came."""

from __future__ import annotations

import json
import queue
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from jupyter_client.manager import KernelManager
from kernels import KernelOfThisPython

VIEW = "application/vnd.jupyter.widget-view+json"


class SyncKernel(KernelManager):
    """Runs the Python that runs the tests."""

    kernel_spec = KernelOfThisPython.kernel_spec


class WatchedKernel:
    """A kernel that may ask for input, as one is that a user uses.

    Attributes
    ----------
    outputs
        By display id the data that are seen now, as a saved notebook would keep them.
    changes
        Times at which pictures changed, in a widget or without one.
    opened, closed
        Comms.
    """

    def __init__(self, folder: Path, allow_stdin: bool = True) -> None:
        self._manager = SyncKernel(kernel_name="python3")
        self._manager.start_kernel(cwd=str(folder))
        self.client = self._manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)
        self.allow_stdin = allow_stdin
        self.outputs: dict[str, dict[str, Any]] = {}
        self.texts: list[str] = []
        self.changes: list[float] = []
        self.opened: list[str] = []
        self.closed: list[str] = []
        self.models: dict[str, dict[str, Any]] = {}
        self.num_updates = 0
        self.errors: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.stop_channels()
        self._manager.shutdown_kernel()

    def begin(self, code: str) -> str:
        """Send a cell."""
        return str(self.client.execute(code, allow_stdin=self.allow_stdin))

    def end(self, sent: str, timeout: float = 120) -> None:
        """Take all that comes until the cell has ended."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            message = self.client.get_iopub_msg(timeout=timeout)
            self._take(message)
            is_idle = message["content"].get("execution_state") == "idle"
            if is_idle and message["parent_header"].get("msg_id") == sent:
                return
        raise TimeoutError(sent)

    def run(self, code: str) -> None:
        """Run a cell."""
        self.end(self.begin(code))

    def take_for(self, seconds: float) -> None:
        """Take all that comes for a while."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                self._take(self.client.get_iopub_msg(timeout=left))
            except queue.Empty:
                return

    def wait_for_closed(self, most: float = 30) -> None:
        """Take what comes until somebody closed every comm, which the caller is to see."""
        deadline = time.monotonic() + most
        while self.still_open and time.monotonic() < deadline:
            self.take_for(0.2)

    def interrupt(self) -> None:
        """Interrupt the cell that runs."""
        self._manager.interrupt_kernel()

    def new_subshell(self) -> str:
        """Start a thread of the kernel's that takes messages while a cell runs, as JupyterLab does."""
        self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
        return str(self.client.get_control_msg(timeout=10)["content"]["subshell_id"])

    def send(self, comm: str, data: dict[str, Any], subshell: str) -> None:
        """Send what a widget in a browser does."""
        message = self.client.session.msg("comm_msg", {"comm_id": comm, "data": data})
        message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)

    @property
    def text(self) -> str:
        """What print put out."""
        return "".join(self.texts)

    @property
    def still_open(self) -> list[str]:
        """Comms that nobody closed."""
        return [one for one in self.opened if one not in self.closed]

    def saved_bytes(self) -> int:
        """Return what the outputs take in a notebook's file."""
        return sum(len(json.dumps(data).encode()) for data in self.outputs.values())

    def _take(self, message: dict[str, Any]) -> None:
        content = message["content"]
        match message["msg_type"]:
            case "display_data":
                name = content["transient"].get("display_id", message["header"]["msg_id"])
                self.outputs[name] = content["data"]
            case "update_display_data":
                self.num_updates += 1
                self.outputs[content["transient"]["display_id"]] = content["data"]
                if "text/html" in content["data"]:
                    self.changes.append(time.monotonic())
            case "execute_result":
                self.outputs[message["header"]["msg_id"]] = content["data"]
            case "stream":
                self.texts.append(content["text"])
            case "error":
                self.errors.append(content["ename"])
            case "comm_open":
                self.opened.append(content["comm_id"])
                self.models[content["comm_id"]] = dict(content["data"]["state"])
            case "comm_msg":
                state = content["data"].get("state", {})
                self.models[content["comm_id"]].update(state)
                if "value" in state and "<" in str(state["value"]):
                    self.changes.append(time.monotonic())
            case "comm_close":
                self.closed.append(content["comm_id"])
