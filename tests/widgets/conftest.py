"""IPython for widgets: its own for each test, and put away after it."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebook_shell import Person

from matnb.widgets import output_area
from matnb.widgets.monitor import close_monitor
from matnb.widgets.output_area import freeze_open


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    """Return a user's IPython."""
    monkeypatch.setattr(output_area, "SETTLE_SECONDS", 0.0)  # no page makes the widgets
    main, hook = sys.modules["__main__"], sys.excepthook
    found = Person(tmp_path, monkeypatch)
    yield found
    close_monitor()
    freeze_open()
    found.shell.atexit_operations()
    atexit.unregister(found.shell.atexit_operations)
    sys.modules["__main__"], sys.excepthook = main, hook
