"""Bytes that sources have read ahead in this process: no array has them yet, and plans leave them room."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class BytesAhead:
    """What one loop over a source reads ahead."""

    def __init__(self) -> None:
        self.num_bytes = 0

    def at_least(self, num_bytes: int) -> None:
        """Leave room for so many bytes from now on, if it is more than before."""
        self.num_bytes = max(self.num_bytes, num_bytes)


_lock = threading.Lock()
_loops: list[BytesAhead] = []


@contextmanager
def reading_ahead() -> Iterator[BytesAhead]:
    """Give what one loop reads ahead; when it ends there is nothing ahead any more."""
    ahead = BytesAhead()
    with _lock:
        _loops.append(ahead)
    try:
        yield ahead
    finally:
        with _lock:
            _loops.remove(ahead)


def bytes_ahead() -> int:
    """Return how many bytes all loops over sources read ahead in this process."""
    with _lock:
        return sum(one.num_bytes for one in _loops)
