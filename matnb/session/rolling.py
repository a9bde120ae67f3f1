"""Loops of Python's that a cell ran while it was recorded, made loops before their values are computed."""

from __future__ import annotations

from collections.abc import Container, Sequence

from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.lazy.array import live_expressions, renew
from matnb.lazy.loop_rolling import rolled
from matnb.lazy.recording import Recording, resumed
from matnb.lazy.repeat_detection import FEWEST

_MOST_UNREAD = 20_000  # events that wait for a value that needs them


def roll(roots: Sequence[Expr], record: Recording | None, known: Container[Expr]) -> list[Expr]:
    """Return what is wanted with the cell's own loops as loops; handles stand for that from now on.

    Looked at are the events that no value has needed before, so a loop that asks for a value in every
    iteration costs the same in each.

    Parameters
    ----------
    roots
        What is wanted now.
    record
        Of the cell that asks, if one does.
    known
        Expressions whose values exist.
    """
    if record is None:
        return list(roots)
    events = [*record.unread, *record.events[record.num_seen :]]
    record.num_seen = len(record.events)
    new: dict[Expr, Expr] = {}
    if len(events) >= FEWEST:
        with resumed(record):
            new = rolled(roots, events, known, live_expressions())
        renew(new)
    needed = set(topological(roots, known))
    record.unread = [node for node in events if node not in needed][-_MOST_UNREAD:]
    return [new.get(root, root) for root in roots]
