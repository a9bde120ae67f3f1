"""The one hook through which handles get values, which the session sets; small values asked for at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol

from matnb.blocks.formats import Block, NumericArray, to_numpy
from matnb.blocks.kernels.calls import is_calling
from matnb.blocks.layout import Layout
from matnb.errors import (
    ClusterError,
    LoopBodyError,
    MatnbError,
    SessionEnded,
    TooLargeError,
    UnsupportedError,
)
from matnb.expr.nodes import Data, Expr
from matnb.lazy.recording import active_recording
from matnb.pictures.facts import ArrayFacts


class Evaluator(Protocol):
    """What gives values to expressions; the session sets one."""

    def limit(self, node: Expr | None = None) -> int:
        """Return the most bytes that the value of an expression, or what comes in, may take here."""

    def value(self, node: Expr) -> Block:
        """Compute an expression and return a copy of its value in this process."""

    def persist(self, nodes: Sequence[Expr]) -> None:
        """Compute expressions and keep them on the workers."""

    def ship(self, node: Data, block: Block) -> None:
        """Send a user's large array to the workers."""

    def facts(self, node: Expr, with_values: bool = False, starts: bool | None = None) -> ArrayFacts:
        """Return what is known of an expression; with values of what is on the workers.

        Nothing is computed unless ``starts`` is given: then what is cheap is. Where it is true, a session
        starts for that, if there was none.
        """

    def has_session(self) -> bool:
        """Tell whether there is a session, so that asking for a value starts none."""

    def layout(self, node: Expr) -> Layout | None:
        """Return where the blocks of an expression are, or None while it is lazy."""

    def planned_layout(self, node: Expr) -> Layout:
        """Return where the blocks of an expression are, or would be if it were computed now."""

    def went_through_batches(self) -> None:
        """Tell that a learner, or a loop over a source, has gone through its batches."""

    def memory_here(self) -> int:
        """Return what workers in this process may use together; 0 for other workers, and without a limit."""

    def explain(self, roots: Mapping[str, Expr], stage: str | None, measured: bool) -> str:
        """Return how expressions would be computed, at one stage or all, and what was measured of it."""


_evaluator: Evaluator


def set_evaluator(evaluator: Evaluator) -> None:
    """Set what gives values to expressions."""
    global _evaluator
    _evaluator = evaluator


def evaluator() -> Evaluator:
    """Return what gives values to expressions.

    Raises
    ------
    UnsupportedError
        In a function that a worker calls: it would wait for itself.
    """
    if is_calling():
        raise UnsupportedError(
            "a DistArray's value was asked for in a function given to mn.replicated: it works on NumPy arrays"
        )
    return _evaluator


_NOT_OF_DATA = (ClusterError, SessionEnded, TooLargeError)  # errors that say nothing of the user's data
_looks_only: ContextVar[bool] = ContextVar("matnb_looks_only", default=False)


@contextmanager
def looking_only() -> Iterator[None]:
    """While the code inside runs, displays compute nothing, not even cheap values."""
    token = _looks_only.set(True)
    try:
        yield
    finally:
        _looks_only.reset(token)


def shown(node: Expr, starts: bool = False) -> ArrayFacts:
    """Return what is known of an expression, to be shown; what is cheap is computed, and nothing raised.

    Parameters
    ----------
    starts
        Whether a session may start for it.
    """
    looks = _looks_only.get() or bool(node.free) or is_calling()
    facts, raised = ArrayFacts(node.shape, node.dtype.name, node.sparse), ""
    for may_start in (None,) if looks else (starts, None):
        try:
            facts = _evaluator.facts(node, True, may_start)
            break
        except Exception as error:  # whatever a user's own types or options do, a name can be looked at
            if isinstance(error, MatnbError) and not isinstance(error, _NOT_OF_DATA):
                raised = str(error).partition("\n")[0]
    return replace(facts, in_cell=active_recording() is not None, error=raised)


def asked(node: Expr, what: str) -> NumericArray:
    """Return the value of a small expression now.

    Parameters
    ----------
    what
        What depends on it, for the message: "the length of x[mask]".

    Raises
    ------
    LoopBodyError
        Inside the body of a loop or branch, where nothing is computed.
    """
    if node.free:
        raise LoopBodyError(
            f"{what} depends on data, and shapes are fixed inside the body of a loop or branch: "
            "use np.where(mask, new, old), or do it before the loop"
        )
    return to_numpy(evaluator().value(node))
