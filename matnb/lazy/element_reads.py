"""Values that Python reads one after another, made or fetched together: not each is a run of its own."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import prod
from weakref import WeakKeyDictionary

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.expr.kinds import kind_of
from matnb.expr.nodes import Data, Expr, Index, Literal
from matnb.expr.traverse import Either, topological
from matnb.lazy.evaluator import evaluator
from matnb.lazy.limits import check_limit
from matnb.lazy.small_parts import note_computation

CHUNK_BYTES = 2**18  # read ahead in a loop over x[i], and first in one over x
_LARGEST_CHUNK_BYTES = 2**24
_GROWTH = 16
_MOST_SOURCES = 8  # of which a chunk is kept: what a loop reads side by side
_AHEAD_BYTES = 2**26  # of values that are made before they are asked for
_AHEAD_GROWTH = 4
_MOST_IN_STEP = 512  # expressions
_MANY = 8  # elements, one by one, after which a small array comes as a whole


@dataclass(eq=False)
class _Chunk:
    # The row of an array that was asked for last; and rows that were read, with the number of the first.
    last: int
    num_asked: int = 1
    is_iterated: bool = False
    rows: tuple[int, NumericArray] | None = None


@dataclass(eq=False)
class _Series:
    # Values of one kind that were asked for in turn, and how many of them are made in the next run.
    kind: Hashable = None
    num_ahead: int = 1


class _There:
    # The expressions whose values exist.

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Expr) and _is_there(node)


_chunks: WeakKeyDictionary[Expr, _Chunk] = WeakKeyDictionary()
_series = _Series()
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


def value_of(node: Expr, live: dict[int, Expr] | None = None) -> Block:
    """Return a value; as others before it, with those that follow.

    An element or a row comes from a chunk of what it is of. Chunks are read where rows follow each other of
    an array that is there, or over which a loop goes; and of a small one where many are asked for, in any
    order. What later steps of a loop of Python's gave is made in the same run, ever more of it: alone, each
    would go through the steps before it again.

    Parameters
    ----------
    live
        What handles stand for, in the order in which they were made; without it nothing else is made.
    """
    if not isinstance(node, Index) or not node.key or not isinstance(node.key[0], int) or node.free:
        return _made(node, live)
    source, place, rest = node.operand, node.key[0], node.key[1:]
    with _lock:
        chunk = _chunks.get(source)
        if chunk is None:
            _noted(source, _Chunk(place))
    if chunk is None:
        return _made(node, live)
    step, rows = place - chunk.last, chunk.rows
    chunk.last, chunk.num_asked = place, chunk.num_asked + 1
    if rows is None or not rows[0] <= place < rows[0] + len(rows[1]):
        num_rows = min(CHUNK_BYTES, evaluator().limit(node)) // _row_bytes(source)
        is_near = abs(step) == 1 and (chunk.is_iterated or _is_there(source))
        if num_rows < 2 or not (is_near or (chunk.num_asked > _MANY and num_rows >= source.shape[0])):
            return _made(node, live)
        start = place if step > 0 else max(0, place + 1 - num_rows)
        if num_rows >= source.shape[0]:
            start = 0
        rows = chunk.rows = start, to_numpy(evaluator().value(_rows(source, start, start + num_rows)))
    return Dense(rows[1][(place - rows[0], *rest, ...)].copy())  # of an element an array without axes


def _made(node: Expr, live: dict[int, Expr] | None) -> Block:
    note_computation(node)
    if live and node.operands and not node.free and not _is_there(node):
        kind = kind_of(node)
        with _lock:
            _series.num_ahead = _series.num_ahead * _AHEAD_GROWTH if kind == _series.kind else 1
            _series.kind = kind
            num_ahead = _series.num_ahead
        most = min(num_ahead, _AHEAD_BYTES // max(1, node.size * node.dtype.itemsize)) - 1
        # In a loop that asks in every turn nothing is newer, and nothing is copied.
        is_newest = next(reversed(live.values()), None) is node
        later = [] if most < 1 or is_newest else _later_steps(node, kind, list(live.copy().values()), most)
        if later:
            evaluator().persist([node, *later])
    return evaluator().value(node)


def _later_steps(node: Expr, kind: Hashable, live: list[Expr], most: int) -> list[Expr]:
    # What handles stand for that were made after one, each from a little more than what the one before is
    # made from, as a loop makes them.
    waiting: list[Expr] = []
    while live and live[-1] is not node:
        waiting.append(live.pop())
    later: list[Expr] = []
    if not live or not waiting:
        return later
    there = _There()
    seen = set(topological([node], there))
    last = seen.copy()
    while waiting and len(later) < most:
        one = waiting.pop()
        if type(one) is not type(node) or kind_of(one) != kind or one in there:
            continue
        order = topological([one], Either(there, seen))
        new = {part for part in order if part not in seen}
        if len(new) > _MOST_IN_STEP or not any(part in last and part.operands for part in order):
            break
        later.append(one)
        seen |= new
        last = new
    return later if len(later) > 1 else []


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
