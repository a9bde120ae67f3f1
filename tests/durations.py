"""How long each file of tests took: the longest begin first, so that no process is left alone with one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

DURATIONS = Path(__file__).with_suffix(".json")


def longest_first(items: list[pytest.Item]) -> None:
    """Order tests by the seconds of their files, those of unknown files before all others."""
    seconds = json.loads(DURATIONS.read_text()) if DURATIONS.exists() else {}
    items.sort(key=lambda item: -seconds.get(_file_of(item.nodeid), float("inf")))


def write_durations(reports: Iterable[pytest.TestReport], path: Path) -> None:
    """Write the seconds of each file, with what its tests set up and tear down."""
    seconds = Counter[str]()
    for report in reports:
        seconds[_file_of(report.nodeid)] += report.duration
    lines = (f"  {json.dumps(file)}: {took:.1f}" for file, took in sorted(seconds.items()))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]
