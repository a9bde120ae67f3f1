"""The record of all runs: one JSON line a comparison, appended to ``benchmarks/results.jsonl``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.machine import commit, machine, versions

RESULTS = Path(__file__).parents[1] / "results.jsonl"


@dataclass(frozen=True)
class Line:
    """One comparison of one run; fields as in a Comparison, and where and when it was.

    Attributes
    ----------
    cpu_seconds
        By contender and round, of all processes; older lines have none.
    commit
        That was measured, with a + where files differed from it; older lines have none.
    is_busy
        Whether others used the machine; older lines do not tell.
    """

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
    cpu_seconds: Mapping[str, Sequence[float]] = field(default_factory=dict)
    commit: str = ""
    is_busy: bool = False

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
        **others: Any,
    ) -> Line:
        """Return the line of a comparison that was made on this machine just now; ``others`` are fields."""
        return cls(
            claim, work, target, seconds, judged, notes, round(load, 2),
            datetime.now(UTC).isoformat(timespec="seconds"), machine(), versions(), commit=commit(), **others,
        )  # fmt: skip

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


@dataclass(frozen=True)
class Past:
    """What a claim's record tells: its newest line, the one before, and the best.

    Lines of other work, such as another size, are left out; and those of a busy machine, but for the newest
    line itself.

    Attributes
    ----------
    before
        None where the newest is the first of its work.
    best
        That of the least ratio, the newest among equals.
    """

    now: Line
    before: Line | None
    best: Line


def newest(lines: Iterable[Line]) -> dict[str, Line]:
    """Return the last line of every claim, in the order in which the claims first occur."""
    return {name: each[-1] for name, each in _by_claim(lines).items()}


def pasts(lines: Iterable[Line], ratio: Callable[[Line], float]) -> dict[str, Past]:
    """Return now, before and best of every claim, in the order in which the claims first occur."""
    found = {}
    for name, (*earlier, now) in _by_claim(lines).items():
        alike = [line for line in earlier if line.work == now.work and not line.is_busy]
        counted = alike if now.is_busy and alike else [*alike, now]
        best = min(reversed(counted), key=ratio)
        found[name] = Past(now, alike[-1] if alike else None, best)
    return found


def _by_claim(lines: Iterable[Line]) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.claim, []).append(line)
    return found
