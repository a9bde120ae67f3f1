"""An interrupt while worker processes start is told in one line, prints nothing, and leaves no process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from kernels import PROJECT

pytestmark = pytest.mark.cluster

ONE_LINE = "CellCancelled: interrupted while workers were starting; all of them were stopped"
# A process group of its own, all of which gets the signal, as in a terminal and in Jupyter.
SCRIPT = """
import os, signal, sys, threading
import psutil
import matnb as mn

if __name__ == "__main__":
    os.setpgrp()
    for seconds in map(float, sys.argv[1:]):
        threading.Timer(seconds, os.killpg, (os.getpgrp(), signal.SIGINT)).start()
        try:
            mn.start(workers=2, processes=True)
            signal.sigtimedwait([], 5)
        except KeyboardInterrupt as interrupt:
            print(f"{type(interrupt).__name__}: {interrupt}")
        mn.stop()
    names = [" ".join(one.cmdline()) for one in psutil.Process().children(recursive=True)]
    print([name for name in names if "resource_tracker" not in name])
    print(float(mn.ones(10).sum()))
"""


def test_nothing_is_left_or_printed(tmp_path):
    script = tmp_path / "start.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, script, "0.05", "0.2", "0.6", "1", "1.5"],
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    *told, processes, total = done.stdout.splitlines()
    assert len(told) == 5
    # On an idle machine the last of them may come when all is started, on a busy one as a start ends.
    assert set(told) <= {
        "CellCancelled: interrupted while workers were starting; all of them were stopped",
        "CellCancelled: interrupted; no partial results are left",
        "KeyboardInterrupt: ",
    }
    assert told[0] == "CellCancelled: interrupted while workers were starting; all of them were stopped"
    assert (processes, total) == ("[]", "10.0")
    assert done.stderr == ""
