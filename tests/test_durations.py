"""The longest files of tests begin, and what they took is written with all that they set up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import durations
import pytest
from counts import PROJECT


def test_the_longest_begin_and_files_keep_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(durations, "DURATIONS", tmp_path / "durations.json")
    durations.DURATIONS.write_text('{"a.py": 1.0, "b.py": 3.0}')
    items = [SimpleNamespace(nodeid=one) for one in ("a.py::x", "b.py::x", "a.py::y", "new.py::x", "b.py::y")]
    durations.longest_first(items)  # type: ignore[arg-type]
    assert [one.nodeid for one in items] == ["new.py::x", "b.py::x", "b.py::y", "a.py::x", "a.py::y"]


def test_what_files_took_is_written_by_the_outermost_run_alone(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((PROJECT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(
        "import os, time\ndef test_it():\n    time.sleep(0.3)\n    assert not os.getenv('TEST_DURATIONS')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", "."],
        cwd=tmp_path,
        env={**os.environ, "TEST_DURATIONS": "took.json", "PYTHONPATH": str(PROJECT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout
    assert json.loads((tmp_path / "took.json").read_text())["test_one.py"] == pytest.approx(0.3, abs=0.25)
