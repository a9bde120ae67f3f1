"""Where no widget can be, the load monitor is text: in a terminal, a script, and without ipywidgets."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernels import PROJECT
from watched_kernel import VIEW, WatchedKernel

pytestmark = pytest.mark.notebook

BLOCK = "import sys; sys.modules['ipywidgets'] = None"
WORK = """
import matnb as mn
A = mn.random.rmat(scale=10, edge_factor=8, seed=0)
def work(divisor):
    return mn.iterate(lambda x: A @ x / divisor, mn.ones(2**10), max_iterations=8000)[0].persist()
"""
SCRIPT = f"""
{{begin}}
{WORK}
load = mn.monitor()
print(load)
work(1000)
print(load)
load.close()
mn.stop()
print("after:", str(load).splitlines()[0])
"""


@pytest.mark.parametrize("begin", ["", BLOCK, "import sys; sys.modules['IPython'] = None"])
def test_a_script_prints_it_and_nothing_else(begin: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(begin=begin))
    done = subprocess.run(
        [sys.executable, "-W", "error", script],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(PROJECT)},
    )  # fmt: skip
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[:2] == ["nothing has run yet", "0 workers, no repartition"]
    assert "1 worker, " in lines[3]
    assert "product" in done.stdout
    assert lines[-1].startswith("after: ")
    assert "<" not in done.stdout


class Terminal:
    """An IPython in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        shown, self._screen = pty.openpty()
        environment = {**os.environ, "IPYTHONDIR": str(folder), "PYTHONPATH": str(PROJECT), "TERM": "dumb"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=nocolor"],
            stdin=self._screen, stdout=self._screen, stderr=self._screen, env=environment, cwd=folder,
        )  # fmt: skip
        self._shown, self.text = shown, ""

    def wait_for(self, words: str, seconds: float = 60.0) -> None:
        """Read until some words are there that were not before."""
        begin, deadline = len(self.text), time.monotonic() + seconds
        while words not in self.text[begin:]:
            assert time.monotonic() < deadline, self.text
            if select.select([self._shown], [], [], 0.2)[0]:
                self.text += os.read(self._shown, 65536).decode(errors="replace").replace("\r", "")

    def type(self, line: str, then: str) -> None:
        """Type a line, and wait for words."""
        os.write(self._shown, line.encode() + b"\n")
        self.wait_for(then)

    def close(self) -> int:
        """Leave, and return what the process ended with."""
        os.write(self._shown, b"exit\n")
        ended = self._process.wait(30)
        os.close(self._shown)
        os.close(self._screen)
        return ended


def test_an_ipython_in_a_terminal_prints_it(tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(WORK)
    terminal = Terminal(tmp_path)
    try:
        terminal.wait_for("In [1]: ")
        terminal.type("%load_ext matnb", "In [2]: ")
        terminal.type("%run work.py", "In [3]: ")
        terminal.type("mn.monitor()", "In [4]: ")
        assert "nothing has run yet" in terminal.text
        terminal.type("%distmat monitor", "In [5]: ")
        terminal.type("_ = work(1000)", "In [6]: ")
        before = len(terminal.text)
        terminal.type("mn.monitor()", "In [7]: ")
        shown = terminal.text[before:]
        assert re.search(r"at \d\d:\d\d:\d\d: ended after iteration .*\s+1 worker, ", shown)
        assert "product" in shown
        time.sleep(1.5)  # a thread that printed would do it now
        terminal.type("print('re' + 'st')", "In [8]: ")
        assert re.search(r"In \[7\]: (print\('re' \+ 'st'\)\s+)?rest\s", terminal.text), terminal.text
    finally:
        ended = terminal.close()
    assert ended == 0
    assert "Traceback" not in terminal.text
    assert "<div" not in terminal.text


def test_a_kernel_without_ipywidgets_shows_a_picture(tmp_path: Path) -> None:
    with WatchedKernel(tmp_path) as kernel:
        kernel.run(f"{BLOCK}\n%load_ext matnb\n{WORK}")
        kernel.run("mn.monitor()")
        kernel.run("_ = work(1000)")
        kernel.run("_ = work(1001)")
        # Beside it the plain cells have a line while they run.
        (shown,) = (one for one in kernel.outputs.values() if "worker, " in str(one))
        assert sorted(shown) == ["text/html", "text/plain"]
        assert "product" in shown["text/plain"]
        assert kernel.opened == []
        assert VIEW not in str(kernel.outputs)
        assert (kernel.errors, kernel.text) == ([], "")


def test_a_client_that_speaks_no_widgets_shows_the_text(tmp_path: Path) -> None:
    # As jupyter console does: it answers no comm, prints text/plain, and knows no update of an output.
    with WatchedKernel(tmp_path) as kernel:
        kernel.run("from matnb.widgets import monitor as monitors\nmonitors.CLOSE_SECONDS = 2.0")
        kernel.run(f"%load_ext matnb\n{WORK}\nmn.monitor(buttons=True)")
        first = dict(kernel.outputs)
        kernel.run("_ = work(1000)")
        assert [list(one) for one in first.values()] == [["text/plain", "text/html"], []]
        assert "1 worker, " in next(iter(kernel.outputs.values()))["text/plain"]
        kernel.run("print(mn.monitor())")
        assert "1 worker, " in kernel.text
        kernel.wait_for_closed()
        assert kernel.still_open == []
        assert kernel.errors == []
