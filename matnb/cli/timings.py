"""What was measured in a report's run: as JSON beside it, and in the page itself if that is wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from matnb.cli.execution import KernelReport
from matnb.magics.summary import METADATA
from matnb.pictures.escaping import escaped
from matnb.pictures.quantities import bytes_text, seconds_text

if TYPE_CHECKING:
    from nbformat import NotebookNode

_HEAD = ("cell", "begins with", "seconds", "of these runs", "imbalance", "made")
_NUMBERS = {0, 2, 3, 4, 5}  # columns
_LONGEST = 60  # characters of a cell's line


@dataclass(frozen=True)
class CellTimes:
    """What one cell took.

    Attributes
    ----------
    cell
        Its id.
    line
        The first of its source that is neither empty nor a magic alone.
    seconds
        From its begin to its end.
    runs
        For each ``%%distmat`` run its ``seconds``, ``imbalance`` and ``actual_bytes``.
    """

    cell: str
    line: str
    seconds: float
    runs: tuple[Mapping[str, Any], ...]


def measured(book: NotebookNode, seconds: Mapping[str, float]) -> list[CellTimes]:
    """Return what the executed cells of a notebook took, given the seconds of each by its id."""
    found = []
    for cell in book.cells:
        if cell.id in seconds:
            outputs = cell.get("outputs", [])
            runs = tuple(one.metadata[METADATA] for one in outputs if METADATA in one.get("metadata", {}))
            found.append(CellTimes(cell.id, _line(cell.source), seconds[cell.id], runs))
    return found


def sidecar(cells: Sequence[CellTimes], closing: KernelReport) -> dict[str, object]:
    """Return what the file beside a report holds."""
    return {
        "seconds": sum(one.seconds for one in cells),
        "kernel_bytes": closing.kernel_bytes,
        "cells": [{"cell": one.cell, "seconds": one.seconds, "runs": list(one.runs)} for one in cells],
    }


def timings_html(cells: Sequence[CellTimes], closing: KernelReport) -> str:
    """Return a section for the end of a page: seconds, imbalance and memory, and each worker's loads.

    It is different every time, so a report has it only where it is asked for.
    """
    total = sum(one.seconds for one in cells)
    lines = [f"{seconds_text(total)} in all; the kernel had at most {bytes_text(closing.kernel_bytes)}."]
    lines += closing.status.splitlines()
    parts = [
        '<section class="matnb-measured jp-RenderedHTMLCommon"><h2>What was measured</h2>',
        *(f"<p>{escaped(line)}</p>" for line in lines),
        f'<div style="overflow-x:auto"><table><thead>{_row("th", _HEAD)}</thead>',
        f"<tbody>{''.join(_row('td', row) for row in _rows(cells))}</tbody></table></div>",
    ]
    if closing.history_html:
        parts += ["<h3>Balance and loads</h3>", closing.history_html]
    return "".join([*parts, "</section>"])


def _rows(cells: Sequence[CellTimes]) -> Iterator[tuple[str, ...]]:
    for number, one in enumerate(cells, 1):
        runs = one.runs
        yield (
            str(number),
            one.line,
            seconds_text(one.seconds),
            seconds_text(sum(run["seconds"] for run in runs)) if runs else "",
            f"{max(run['imbalance'] for run in runs):.2f}" if runs else "",
            bytes_text(sum(run["actual_bytes"] for run in runs)) if runs else "",
        )


def _row(tag: str, row: Sequence[str]) -> str:
    scope = ' scope="col"' if tag == "th" else ""
    looks = ("right" if place in _NUMBERS else "left" for place in range(len(row)))
    return (
        "<tr>"
        + "".join(
            f'<{tag}{scope} style="text-align:{look}">{escaped(word)}</{tag}>'
            for word, look in zip(row, looks, strict=True)
        )
        + "</tr>"
    )


def _line(source: str) -> str:
    lines = [line.strip() for line in source.splitlines()]
    line = next((one for one in lines if one and not one.startswith("%%")), "")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."
