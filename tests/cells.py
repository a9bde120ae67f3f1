"""Running cells in an IPython shell, as the tests of the magics do."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from IPython.core.interactiveshell import InteractiveShell


def run(shell: InteractiveShell, text: str) -> list[str]:
    """Run a cell that must succeed and return the texts of what it published."""
    shell.display_pub.outputs.clear()
    shell.run_cell(text, store_history=True).raise_error()
    return [output["data"]["text/plain"] for output in shell.display_pub.outputs]


def counts(shell: InteractiveShell) -> str:
    """Return what stands behind the click on the last summary: every count of the cell."""
    html = shell.display_pub.outputs[-1]["data"]["text/html"]
    return ElementTree.fromstring(html).find("details/div").text


def fail(shell: InteractiveShell, capsys: pytest.CaptureFixture[str], text: str) -> tuple[BaseException, str]:
    """Run a cell that must fail and return the error and what was printed for it."""
    capsys.readouterr()
    done = shell.run_cell(text, store_history=True)
    error = done.error_in_exec or done.error_before_exec
    assert error is not None, "the cell should have failed"
    printed = capsys.readouterr()
    return error, printed.out + printed.err
