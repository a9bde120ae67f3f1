"""The record of all runs: one JSON line a comparison, appended to ``benchmarks/results.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness.machine import machine, versions

RESULTS = Path(__file__).parents[1] / "results.jsonl"


@dataclass(frozen=True)
class Line:
    """One comparison of one run; fields as in a Comparison, and where and when it was."""

    claim: str
    work: str
    target: float | None
    seconds: Mapping[str, Sequence[float]]
    judged: Sequence[str]
    notes: Sequence[str]
    load: float
    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]

    @classmethod
    def now(
        cls,
        claim: str,
        work: str,
        target: float | None,
        seconds: Mapping[str, Sequence[float]],
        judged: Sequence[str],
        notes: Sequence[str],
        load: float,
    ) -> Line:
        """Return the line of a comparison that was made on this machine just now."""
        date = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(claim, work, target, seconds, judged, notes, round(load, 2), date, machine(), versions())

    def to_json(self) -> str:
        """Return the line's text."""
        return json.dumps(asdict(self))


def append(line: Line, path: Path = RESULTS) -> None:
    """Add a line at the end of the record."""
    with path.open("a", encoding="utf-8") as file:
        file.write(line.to_json() + "\n")


def read(path: Path = RESULTS) -> list[Line]:
    """Return every line of the record, the oldest first.

    Raises
    ------
    ValueError
        For a line that is not a comparison, naming the file and the line.
    """
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            lines.append(Line(**json.loads(text)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}:{number}: no comparison ({error}); delete the line") from None
    return lines


def newest(lines: Iterable[Line]) -> dict[str, Line]:
    """Return the last line of every claim, in the order in which the claims first occur."""
    found: dict[str, Line] = {}
    for line in lines:
        found[line.claim] = line
    return found
