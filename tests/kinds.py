"""The kinds of sessions that tests run on, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

import matnb as mn
from matnb.session.session import Session

KINDS: Mapping[str, Mapping[str, Any]] = {
    "interpreter": {"engine": "interpret"},
    "one thread": {"workers": 1, "threads": 1},
    "two threads": {"workers": 1, "threads": 2},
    "two workers": {"workers": 2, "threads": 1},
    "three workers": {"workers": 3, "threads": 1},
    "processes": {"workers": 2, "threads": 1, "processes": True},
    "four processes": {"workers": 4, "threads": 1, "processes": True},
}


@dataclass(frozen=True)
class SessionWanted:
    """What a test's mark `session` says: a kind, and further options of :func:`matnb.start`."""

    kind: str
    options: tuple[tuple[str, Any], ...]


# One object for equal ones, which pytest tells apart: else each test would start its own.
session_wanted = cache(SessionWanted)


def options_of(kind: str) -> dict[str, Any]:
    """Return the options of a kind, which may name an engine too: "dask: two workers"."""
    engine, _, workers = kind.rpartition(": ")
    return {**KINDS[workers], **({"engine": engine} if engine else {})}


@contextmanager
def started(kind: str, **options: Any) -> Iterator[Session]:
    """Start a session of a kind, which ends with the block."""
    with mn.start(**options_of(kind), **options) as session:
        yield session
    mn.stop()
