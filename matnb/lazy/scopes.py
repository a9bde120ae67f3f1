"""Which bodies are being recorded: of loops, whose iterations have numbers, and of branches."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from matnb.expr.nodes import Expr

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Scope:
    """A body that is being recorded, and the number of its loop's iteration, if it has one."""

    iteration: Expr | None


_scopes: ContextVar[tuple[Scope, ...]] = ContextVar("matnb_scopes", default=())


def new_scope() -> int:
    """Return a number that no other recording in this process has."""
    return next(_numbers)


def loop_numbers() -> tuple[Expr, ...]:
    """Return the iteration numbers of the loops whose bodies are being recorded, the outermost first."""
    return tuple(scope.iteration for scope in _scopes.get() if scope.iteration is not None)


@contextmanager
def recording_body(iteration: Expr | None) -> Iterator[None]:
    """Record a body; ``iteration`` is the number of its loop's iteration, None for a branch."""
    token = _scopes.set((*_scopes.get(), Scope(iteration)))
    try:
        yield
    finally:
        _scopes.reset(token)
