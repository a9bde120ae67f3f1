"""Elements that Python reads one after another, fetched in chunks, so that not each is a run of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.expr.nodes import Data, Expr, Index, Literal
from matnb.lazy.evaluator import evaluator
from matnb.lazy.limits import check_limit

CHUNK_BYTES = 2**18  # read ahead in a loop over x[i], and first in one over x
_LARGEST_CHUNK_BYTES = 2**24
_GROWTH = 16
_MOST_SOURCES = 8  # of which a chunk is kept: what a loop reads side by side
_MANY = 8  # elements, one by one, after which a small array comes as a whole


@dataclass(eq=False)
class _Chunk:
    # The row of an array that was asked for last; and rows that were read, with the number of the first.
    last: int
    num_asked: int = 1
    is_iterated: bool = False
    rows: tuple[int, NumericArray] | None = None


_chunks: WeakKeyDictionary[Expr, _Chunk] = WeakKeyDictionary()
_lock = threading.Lock()


def chunks_of(node: Expr) -> Iterator[NumericArray]:
    """Yield the values of an array in chunks along its first axis, each fetched when it is needed.

    Of an array that is not computed the second chunk is all the rest, so that it is computed once.

    Raises
    ------
    TooLargeError
        At once, when all of it exceeds the session's ``compute_limit``.
    """
    check_limit(evaluator().limit(node), node, node.size * node.dtype.itemsize, "elements one by one")
    return _fetched(node)


def _fetched(node: Expr) -> Iterator[NumericArray]:
    start, size = 0, CHUNK_BYTES
    while start < node.shape[0]:
        stop = start + max(1, size // _row_bytes(node))
        if start and not _is_there(node):
            stop = node.shape[0]
        yield to_numpy(value_of(_rows(node, start, stop)))
        start, size = stop, min(size * _GROWTH, _LARGEST_CHUNK_BYTES)


def note_iteration(node: Expr) -> None:
    """Let the rows of an array come in chunks, as a loop over them begins."""
    with _lock:
        _noted(node, _Chunk(-1, is_iterated=True))


def value_of(node: Expr) -> Block:
    """Return a value; one of an element or a row, as others before it, from a chunk of what they are of.

    Chunks are read where rows follow each other of an array that is there, or over which a loop goes; and of
    a small one where many are asked for, in any order.
    """
    if not isinstance(node, Index) or not node.key or not isinstance(node.key[0], int) or node.free:
        return evaluator().value(node)
    source, place, rest = node.operand, node.key[0], node.key[1:]
    with _lock:
        chunk = _chunks.get(source)
        if chunk is None:
            _noted(source, _Chunk(place))
    if chunk is None:
        return evaluator().value(node)
    step, rows = place - chunk.last, chunk.rows
    chunk.last, chunk.num_asked = place, chunk.num_asked + 1
    if rows is None or not rows[0] <= place < rows[0] + len(rows[1]):
        num_rows = min(CHUNK_BYTES, evaluator().limit(node)) // _row_bytes(source)
        is_near = abs(step) == 1 and (chunk.is_iterated or _is_there(source))
        if num_rows < 2 or not (is_near or (chunk.num_asked > _MANY and num_rows >= source.shape[0])):
            return evaluator().value(node)
        start = place if step > 0 else max(0, place + 1 - num_rows)
        if num_rows >= source.shape[0]:
            start = 0
        rows = chunk.rows = start, to_numpy(evaluator().value(_rows(source, start, start + num_rows)))
    return Dense(rows[1][(place - rows[0], *rest)].copy())


def _noted(node: Expr, chunk: _Chunk) -> None:
    while len(_chunks) >= _MOST_SOURCES:
        del _chunks[next(iter(_chunks))]
    _chunks[node] = chunk


def _rows(node: Expr, start: int, stop: int) -> Expr:
    stop = min(stop, node.shape[0])
    if (start, stop) == (0, node.shape[0]):
        return node
    return Index(node, (slice(start, stop, 1), *(slice(0, length, 1) for length in node.shape[1:])))


def _row_bytes(node: Expr) -> int:
    return max(1, node.dtype.itemsize * prod(node.shape[1:]))


def _is_there(node: Expr) -> bool:
    return isinstance(node, Data | Literal) or evaluator().layout(node) is not None
