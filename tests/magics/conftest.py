"""An IPython shell without a history, a terminal or a home."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import matnb as mn


def new_shell(folder: Path) -> InteractiveShell:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    shell = InteractiveShell(config=config, ipython_dir=str(folder))
    shell.display_pub = CapturingDisplayPublisher()
    return shell


@pytest.fixture
def bare_shell(tmp_path: Path) -> Iterator[InteractiveShell]:
    """Return IPython as it is before anything of matnb is loaded."""
    main, hook = sys.modules["__main__"], sys.excepthook
    shell = new_shell(tmp_path)
    yield shell
    mn.unload_ipython_extension(shell)  # what it sets on the class of errors would outlive the shell
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "collect", lambda: 0)  # IPython's end would look through all that tests have made
        shell.atexit_operations()
    atexit.unregister(shell.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
    mn.stop()


@pytest.fixture
def shell(bare_shell: InteractiveShell) -> InteractiveShell:
    """Return IPython with the magics loaded, NumPy and matnb imported, and counts-only summaries."""
    bare_shell.run_cell("%load_ext matnb\n%config DistMat.display = 'static'").raise_error()
    bare_shell.run_cell("import numpy as np\nimport matnb as mn").raise_error()
    return bare_shell
