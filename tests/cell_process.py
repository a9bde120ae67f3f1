"""A process that runs one cell after another, as a kernel does, with a limit for each."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

_START_SECONDS = 120  # of a process that imports everything, on a busy machine
_LOOP = """
import json, sys
import numpy as np
import matnb as mn
names = {"np": np, "mn": mn}
print(json.dumps("ready"), flush=True)
for line in sys.stdin:
    try:
        *before, last = json.loads(line).strip().splitlines()
        exec("\\n".join(before), names)
        found = {"value": repr(eval(last, names))}
    except BaseException as error:
        found = {"error": type(error).__name__, "words": str(error), "ours": isinstance(error, mn.MatnbError)}
    print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """What a cell gave: the text of its last value, or its error; and how long that took."""

    seconds: float
    value: str = ""
    error: str = ""
    words: str = ""
    ours: bool = False


class CellProcess:
    """Runs cells; ended with the scope.

    Parameters
    ----------
    before
        A command such as ``ip netns exec NAME``.
    """

    def __init__(self, before: Sequence[str] = ()) -> None:
        root = str(Path(__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": root, "MATNB_PROGRESS": "0"}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-c", _LOOP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            self._read(_START_SECONDS)
        except BaseException:
            self.__exit__(None, None, None)
            raise

    def run(self, code: str, seconds: float = 60) -> Answer:
        """Run a cell, of which the last line is an expression."""
        begin = time.monotonic()
        self.send(code)
        found = self._read(seconds)
        return Answer(time.monotonic() - begin, **found)

    def send(self, code: str) -> None:
        """Begin a cell, and do not wait for it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def _read(self, seconds: float) -> dict[str, str]:
        assert self.process.stdout is not None
        there, _, _ = select.select([self.process.stdout], [], [], seconds)
        assert there, f"a cell hangs: nothing was heard of it for {seconds} s"
        line = self.process.stdout.readline()
        assert line, "the process has ended"
        found: dict[str, str] = json.loads(line)
        return found

    def __enter__(self) -> CellProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.communicate()
