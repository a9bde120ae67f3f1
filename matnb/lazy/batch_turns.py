"""Which batches of which pass a loop goes through, for those who look on, and how much work they were."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from matnb.events import BatchSpan
from matnb.lazy.evaluator import evaluator


class BatchTurns:
    """Goes through batches loop by loop; :func:`batches_in_turn` finds it while one of its loops runs.

    Parameters
    ----------
    epochs
        Passes.
    num_batches
        Of a pass, or None where that is not known before its end.
    epoch
        The number of the first pass.
    waited
        Gives for how many seconds data was waited for so far.
    clock
        Gives seconds.

    Attributes
    ----------
    span
        What the loop goes through.
    """

    def __init__(
        self,
        epochs: int = 1,
        num_batches: int | None = None,
        epoch: int = 0,
        waited: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._waited, self._waited_before = clock, waited, waited()
        self.span = BatchSpan(epoch, epochs, 0, num_batches, 0, 0, 0, clock())
        self._flops = self._accessed_bytes = 0
        self._is_counted = False

    def __enter__(self) -> BatchTurns:
        return self

    def __exit__(self, *_: object) -> None:
        evaluator().went_through_batches()

    @contextmanager
    def loop(self, rows: int, epoch: int, start: int | None = None) -> Iterator[None]:
        """Run a loop over the next batches of a pass, of so many rows; ``start`` are those before it."""
        span = self.span
        known, next_one = span.num_batches, span.start
        if epoch != span.epoch:
            known, next_one = known or span.start or None, 0  # as many as the pass had that is over
        next_one = next_one if start is None else start
        took, waited = self._clock() - span.since, self._waited() - self._waited_before
        waiting = min(waited / took, 1.0) if took > 0 else 0.0
        self.span = replace(span, epoch=epoch, start=next_one, num_batches=known, rows=rows, waiting=waiting)
        token = _in_turn.set(self)
        try:
            yield
        finally:
            _in_turn.reset(token)

    def done(self, count: int, loss: float | None = None) -> None:
        """Note that some batches are done, and the mean loss of their rows."""
        span = self.span
        rows = span.rows_done + count * span.rows
        more = {"start": span.start + count, "num_done": span.num_done + count, "rows_done": rows}
        self.span = replace(span, **more, loss=loss)

    def held_out(self, loss: float) -> None:
        """Note the loss on rows that are not learned from."""
        self.span = replace(self.span, held_out=loss)

    def note(self, flops: int, accessed_bytes: int) -> None:
        """Add what a loop took, as its plan counts it."""
        self._flops, self._accessed_bytes = self._flops + flops, self._accessed_bytes + accessed_bytes
        self._is_counted = True

    def taken(self) -> tuple[float, float]:
        """Return floating-point operations and bytes since this was asked; NaN where nothing counted them."""
        found = (self._flops, self._accessed_bytes) if self._is_counted else (float("nan"),) * 2
        self._flops, self._accessed_bytes, self._is_counted = 0, 0, False
        return found


_in_turn: ContextVar[BatchTurns | None] = ContextVar("matnb_batches", default=None)


def batches_in_turn() -> BatchTurns | None:
    """Return what goes through batches now by a loop, if anything does."""
    return _in_turn.get()
