"""Names of arrays for users: the variable, else the line of the cell that wrote them."""

from __future__ import annotations

import linecache
from collections.abc import Container, Iterable, Mapping
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from matnb.expr.nodes import Expr
from matnb.expr.traverse import topological
from matnb.lazy.recording import Recording, active_recording
from matnb.location import shown_text
from matnb.pictures.escaping import LONGEST_NAME, shortened
from matnb.plan.explain import LAST_VALUE

_names: WeakKeyDictionary[Expr, str] = WeakKeyDictionary()
_holders: WeakValueDictionary[str, Expr] = WeakValueDictionary()  # what each variable was given last
_lost: WeakSet[Expr] = WeakSet()
_MOST_TOLD = 5
_lines: WeakKeyDictionary[Expr, tuple[str, tuple[int, ...]]] = WeakKeyDictionary()


def name_roots(roots: Mapping[str, Expr], record: Recording, there: Container[Expr]) -> list[str]:
    """Remember the variables that a cell gave arrays to; return a sentence about what a stopped session had.

    Parameters
    ----------
    roots
        What the cell ends with.
    record
        What it wrote, and its other variables; the sentence leaves out what it wrote itself.
    there
        What the session has.
    """
    given = {name: node for name, node in {**roots, **record.names}.items() if name != LAST_VALUE}
    _holders.update(given)
    _names.update({node: name for name, node in given.items()})
    if not _lost:
        return []
    for node in (*record.lines, *given.values()):
        _lost.discard(node)
    return _lost_notes(topological(roots.values(), there))


def remember_lines(record: Recording) -> None:
    """Remember the lines of a finished cell, for names and for errors in deferred work."""
    for node, lines in record.lines.items():
        if lines:
            _lines[node] = (record.filename, tuple(lines))


def earlier_lines(node: Expr) -> tuple[str, tuple[int, ...]] | None:
    """Return the file name of the cell that wrote an expression, and its lines there, if they are known."""
    return _lines.get(node)


def variable_of(node: Expr) -> str:
    """Return the variable that a cell gave an array to last, or nothing where it has another one now."""
    name = _names.get(node, "")
    return name if _holders.get(name) is node else ""


def line_of(node: Expr) -> str:
    """Return the line of code that wrote an expression, or nothing where none is known.

    Of several lines it is the first; of a statement over several lines its first one. Urls stand without
    their secrets.
    """
    record = active_recording()
    found = _lines.get(node)
    if record is not None and (lines := record.lines.get(node)):
        found = record.filename, tuple(lines)
    return "" if found is None else shown_text(linecache.getline(found[0], found[1][0]).strip())


def lose(nodes: Iterable[Expr]) -> None:
    """Remember what was on the workers of a session that is stopped."""
    _lost.update(node for node in nodes if node.operands)


def _lost_notes(nodes: Iterable[Expr]) -> list[str]:
    # Once for each.
    again = [node for node in nodes if node in _lost]
    for node in again:
        _lost.discard(node)
    names = list(dict.fromkeys(shortened(name, LONGEST_NAME) for node in again if (name := called(node))))
    if not names:
        return []
    more = f" and {len(names) - _MOST_TOLD} more" if len(names) > _MOST_TOLD else ""
    return [
        f"a new session: {', '.join(names[:_MOST_TOLD])}{more} went with the session that was stopped, "
        "and what is needed of that is computed again"
    ]


def called(node: Expr) -> str:
    """Return what a user calls an array: its variable, else the line of code that wrote it, or nothing."""
    return variable_of(node) or line_of(node)
