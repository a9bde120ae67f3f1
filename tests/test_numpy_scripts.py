"""Scripts of a hundred lines, written for NumPy, run with their import changed, and print the same."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

SCRIPTS = sorted(Path(__file__).with_name("numpy_scripts").glob("*.py"))
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")

pytestmark = pytest.mark.session("two threads")


def output(script: Path, text: str) -> str:
    """Return what a script prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(text, str(script), "exec"), {"__name__": "__main__"})
    return printed.getvalue()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_runs_with_only_its_import_changed(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    assert text.count("import numpy as np\n") == text.count("import ") == 1
    expected = output(script, text)
    found = output(script, text.replace("import numpy as np\n", "import matnb as np\n"))
    assert NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    numbers = [[float(one) for one in NUMBER.findall(text)] for text in (found, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-3, atol=1e-4)


def test_the_scripts_are_of_a_hundred_lines() -> None:
    assert len(SCRIPTS) == 3
    for script in SCRIPTS:
        assert 95 <= len(script.read_text(encoding="utf-8").splitlines()) <= 105, script.name
