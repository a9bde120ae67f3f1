"""The table that `mn.doctor()` and `mn.stamp()` show: topic, what was found, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import escaped

_WORDS = {"": "", "ok": "ok", "advice": "advice", "wrong": "wrong"}
# Told by a word too, so that nothing depends on seeing colors; both read on white and on black.
_COLORS = {"ok": "#37835a", "advice": "#a06a14", "wrong": "#c94a55"}
_CELL = "text-align:left;vertical-align:top;padding:1px 12px 1px 0;border:none;background:transparent"
_TABLE = "border-collapse:collapse;border:none;margin:0;font-size:13px"


@dataclass(frozen=True)
class Finding:
    """One thing that was found out.

    Attributes
    ----------
    topic
        In a word or two.
    found
        What is so.
    verdict
        "ok", "advice" or "wrong"; empty where nothing is judged.
    todo
        What to do about it.
    measured
        A part of what is so that differs each time.
    """

    topic: str
    found: str
    verdict: str = ""
    todo: str = ""
    measured: str = ""

    def words(self, measured: bool = True) -> str:
        """Return what is so, with what was measured or without."""
        return f"{self.found}; {self.measured}" if measured and self.measured else self.found


def findings_text(findings: Sequence[Finding], measured: bool = True) -> str:
    """Return a line for each finding, and under it what to do."""
    width = max((len(one.topic) for one in findings), default=0)
    judged = max((len(_WORDS[one.verdict]) for one in findings), default=0)
    lines, topic = [], None
    for one in findings:
        head = (one.topic if one.topic != topic else "").ljust(width)
        topic = one.topic
        verdict = f"{_WORDS[one.verdict].ljust(judged)}  " if judged else ""
        lines.append(f"{head}  {verdict}{_one_line(one.words(measured))}")
        if one.todo:
            lines.append(f"{' ' * width}  {' ' * len(verdict)}-> {_one_line(one.todo)}")
    return "\n".join(lines)


def findings_html(findings: Sequence[Finding], measured: bool = True, note: str = "") -> str:
    """Return the table as HTML, with a line under it."""
    rows, topic = [], None
    is_judged = any(one.verdict for one in findings)
    for one in findings:
        head = one.topic if one.topic != topic else ""
        topic = one.topic
        cells = [f'<th style="{_CELL};white-space:nowrap;font-weight:600">{escaped(head)}</th>']
        if is_judged:
            color = f";font-weight:600;color:{_COLORS[one.verdict]}" if one.verdict in _COLORS else ""
            cells.append(f'<td style="{_CELL};white-space:nowrap{color}">{_WORDS[one.verdict]}</td>')
        todo = f"<div>&rarr; {escaped(one.todo)}</div>" if one.todo else ""
        text = f"{escaped(one.words(measured))}{todo}"
        cells.append(f'<td style="{_CELL};overflow-wrap:anywhere">{text}</td>')
        rows.append(f'<tr style="background:transparent">{"".join(cells)}</tr>')
    under = f'<div style="font-size:12px;margin:4px 0;opacity:.8">{escaped(note)}</div>' if note else ""
    return f'<div><table style="{_TABLE}">{"".join(rows)}</table>{under}</div>'


def _one_line(text: str) -> str:
    return " ".join(text.split())
