"""A cell's results that are computed in the background: which they are, and how far they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matnb.pictures.escaping import LONGEST_NAME, escaped, shortened
from matnb.pictures.quantities import plural_text, seconds_text
from matnb.pictures.summary import STYLE

_MOST_NAMES = 8
_LONGEST_ERROR = 300  # characters


@dataclass(frozen=True)
class LaterFacts:
    """What is shown of work in the background.

    Attributes
    ----------
    names
        Of the results; "_" is the last value.
    state
        "waiting", "running", "cancelling", "done", "failed", "cancelled", or empty where it must not depend
        on the time.
    seconds
        For how long it has been running, or ran, if that is to be told.
    error
        What it ended with.
    """

    names: tuple[str, ...]
    state: str = ""
    seconds: float | None = None
    error: str = ""


def later_text(facts: LaterFacts) -> str:
    """Return one line: what is computed, how far it is, and what to do."""
    words = _what(facts)
    match facts.state:
        case "":
            return f"in the background: {words}; result() waits for it"
        case "waiting":
            return f"waiting in the background: {words}; cancel() takes it back"
        case "running":
            return f"running in the background{_time(facts, ' for')}: {words}; cancel() ends it"
        case "cancelling":
            return f"being cancelled in the background: {words}"
        case "done":
            return f"done{_time(facts, ' in')}: {words}"
        case _:
            return f"{facts.state}{_time(facts, ' after')}: {words}; {shortened(facts.error, _LONGEST_ERROR)}"


def later_html(facts: LaterFacts) -> str:
    """Return that line as HTML."""
    return f'<div style="{STYLE}">{escaped(later_text(facts))}</div>'


def waiting_text(names: Sequence[str], cell: int | None) -> str:
    """Return for what a cell waits that another computes in the background, and what ends that."""
    if not names:
        return "waits for another thread, which uses the session"
    which = "another cell" if cell is None else f"cell {cell}"
    ends = "its handle's .cancel() ends that"
    return f"waits for {_listed(names)}, which {which} computes in the background; {ends}"


def interrupted_text(names: Sequence[str]) -> str:
    """Return what is told to who interrupts that waiting."""
    if not names:
        return "interrupted while waiting for another thread, which uses the session; nothing was cancelled"
    work = f"the background work of {_listed(names)}"
    return f"interrupted while waiting for {work}; nothing was cancelled; cancel() of its handle ends it"


def _what(facts: LaterFacts) -> str:
    if not facts.names:
        return "no result"
    return f"{plural_text(len(facts.names), 'result')}, {_listed(facts.names)}"


def _listed(names: Sequence[str]) -> str:
    first = [
        "the last value" if name == "_" else shortened(name, LONGEST_NAME) for name in names[:_MOST_NAMES]
    ]
    more = f" and {len(names) - len(first)} more" if len(first) < len(names) else ""
    return f"{', '.join(first)}{more}"


def _time(facts: LaterFacts, word: str) -> str:
    return "" if facts.seconds is None else f"{word} {seconds_text(facts.seconds)}"
