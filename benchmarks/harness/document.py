"""The text of docs/performance.md: one table of claims, the contenders of each, the machines and versions."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from harness.comparison import OURS, Claim, Comparison
from harness.record import Line, Past
from harness.statistics import TIE, duration, ratio_of, verdict

HEAD = f"""# Performance

Written by `make bench`; do not edit. Each claim is one script of `benchmarks/`, which runs matnb and
public peers on the same input in the same run, in turn, over several rounds, after checking that their
results agree. Shown is the newest run of each claim: medians, and matnb's time for each second of the peer
with the spread of single rounds (their quartiles). A gap under {TIE:g}x is called a tie. Peers have two
threads where they can use them, and one beside where a name says so; "CPU" are the seconds of processors of
all processes together. [History](#history) has now, before and best of each claim. "busy" marks what was
found while others used the machine. `benchmarks/results.jsonl` holds every round.

"""
HISTORY = """
## History

matnb's time for each second of the best peer of the same run, and its median, in the newest run of each
claim, in the one before, and in the best one, of the same work; perhaps on other machines, so that ratios are
what can be compared. What was found on a busy machine is neither before nor best. A commit with a + had
changes that are not in it; older runs tell of none.

"""


def document(past: Sequence[Past]) -> str:
    """Return the document of the newest line of each claim, and of those before it."""
    lines = [one.now for one in past]
    settings: list[tuple[Mapping[str, str], Mapping[str, str]]] = []
    for line in lines:
        if (line.machine, line.versions) not in settings:
            settings.append((line.machine, line.versions))
    places = [settings.index((line.machine, line.versions)) for line in lines]
    several = len(settings) > 1
    parts = [HEAD, _claims(lines, places if several else None)]
    parts.append(_history(past))
    parts += [_contenders(line) for line in lines]
    parts += [_setting(*one, f" {number + 1}" if several else "") for number, one in enumerate(settings)]
    return "".join(parts).rstrip("\n") + "\n"


def _comparison(line: Line) -> Comparison:
    return Comparison(Claim(line.claim, line.work, line.target), line.seconds, line.judged, line.notes)


def ratio_now(line: Line) -> float:
    """Return matnb's time for each second of the best peer of its run."""
    return _comparison(line).ratio.value


def _history(past: Sequence[Past]) -> str:
    rows = [
        [one.now.claim, _told(one.now), _told(one.before), _told(one.best, one.best is one.now)]
        for one in past
    ]
    return HISTORY + _table(["claim", "now", "before", "best"], rows)


def _told(line: Line | None, is_now: bool = False) -> str:
    if line is None or is_now:
        return "now" if is_now else ""
    place = f"{line.date[:10]} {line.commit}".strip()
    mark = ", busy" if line.is_busy else ""
    return f"{ratio_now(line):.2f}, {duration(statistics.median(line.seconds[OURS]))} ({place}{mark})"


def _claims(lines: Sequence[Line], places: Sequence[int] | None) -> str:
    heads = ["claim", "matnb", "best peer", "", "ratio", "target", "", "date"]
    rows = []
    for number, line in enumerate(lines):
        one = _comparison(line)
        ratio = one.ratio
        row = [
            line.claim,
            duration(statistics.median(line.seconds[OURS])),
            one.peer,
            duration(statistics.median(line.seconds[one.peer])),
            str(ratio),
            "" if line.target is None else f"<= {line.target:g}",
            verdict(ratio, line.target),
            line.date[:10] + ", busy" * line.is_busy,
        ]
        rows.append(row if places is None else [*row, str(places[number] + 1)])
    return _table(heads if places is None else [*heads, "machine"], rows)


def _contenders(line: Line) -> str:
    mine = line.seconds[OURS]
    rows = []
    for name, seconds in line.seconds.items():
        role = "" if name == OURS or name in line.judged else "for information"
        ratio = "" if name == OURS else str(ratio_of(mine, seconds))
        cpu = line.cpu_seconds.get(name)
        used = "" if cpu is None else duration(statistics.median(cpu))
        row = [name, duration(statistics.median(seconds)), used, ratio, role]
        rows.append(row if line.cpu_seconds else [*row[:2], *row[3:]])
    notes = "".join(f"- {note}\n" for note in line.notes)
    busy = ", and others used the machine" * line.is_busy
    told = f"{line.work}; {len(mine)} rounds, load average {line.load:g} at the start{busy}."
    table = _table(["", "median", *["CPU"] * bool(line.cpu_seconds), "matnb / it", ""], rows)
    return f"\n## {line.claim}\n\n{told}\n\n{table}" + (f"\n{notes}" if notes else "")


def _setting(machine: Mapping[str, str], versions: Mapping[str, str], number: str) -> str:
    rows = [[name, value] for name, value in (*machine.items(), *versions.items())]
    return f"\n## Machine{number} and versions\n\n" + _table(["", ""], rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[cell.replace("|", "\\|") for cell in row] for row in (heads, ["---"] * len(heads), *rows)]
    return "".join(f"| {' | '.join(row)} |\n" for row in cells)
