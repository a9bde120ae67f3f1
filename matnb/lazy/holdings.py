"""Copies of the arrays a person gave, held in this process while an expression needs them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from weakref import WeakKeyDictionary

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, freeze
from matnb.lazy.expr import Data, Expr, Literal, Regrid

LITERAL_BYTES = 256  # up to here a constant lies inside its node
SHIP_BYTES = 64 * 10**6  # above this an array goes to the workers at once, and no copy stays here
_HASHED_BYTES = 1 << 20

_held: WeakKeyDictionary[Expr, Block] = WeakKeyDictionary()


def given(block: Block) -> tuple[Expr, bool]:
    """Return the expression of a person's array, and whether it must be shipped now.

    The array is copied unless it must be shipped, so what the person does with theirs changes nothing.
    """
    if isinstance(block, Dense) and block.nbytes <= LITERAL_BYTES:
        return Literal(block.values.tobytes(), block.shape, block.dtype), False
    node = Data(_content(block), block.shape, block.dtype, not isinstance(block, Dense))
    if block.nbytes > SHIP_BYTES:
        return node, True
    if node not in _held:
        _held[node] = freeze(copied(block))
    return node, False


def keep_copy(node: Expr, block: Block) -> None:
    """Hold a copy of an array here that would be shipped otherwise."""
    _held[node] = freeze(copied(block))


def held(node: Expr) -> Block | None:
    """Return the copy of a person's array, however it is to be cut; None where it lives on workers only."""
    while isinstance(node, Regrid):
        node = node.operand
    return _held.get(node)


def copied(block: Block) -> Block:
    """Return a block that shares no memory with the given one."""
    match block:
        case Dense(values):
            return Dense(np.array(values, order="C"))
        case Csr(shape, pointers, columns, values, dtype):
            return Csr(
                shape, pointers.copy(), columns.copy(), None if values is None else values.copy(), dtype
            )
        case Empty():
            return block


def _content(block: Block) -> bytes:
    hashed = sha256()  # with the processor's own instructions, two to three times as fast as blake2b
    hashed.update(repr((type(block).__name__, block.shape, block.dtype.str)).encode())
    match block:
        case Dense(values):
            hashed.update(_content_of(values))
        case Csr(_, pointers, columns, values, _):
            for array in (pointers, columns, values):
                hashed.update(b"pattern" if array is None else _content_of(array))
    return hashed.digest()[:16]


def _content_of(array: np.ndarray[tuple[int, ...], np.dtype]) -> bytes:
    # In pieces on all cores: without those instructions 8 MB take 20 ms.
    if not array.size:
        return b""
    content = np.ascontiguousarray(array).data.cast("B")
    pieces = [content[begin : begin + _HASHED_BYTES] for begin in range(0, len(content), _HASHED_BYTES)]
    if len(pieces) == 1:
        return _hash_of(content)
    with ThreadPoolExecutor(min(len(pieces), os.cpu_count() or 1)) as pool:
        return b"".join(pool.map(_hash_of, pieces))


def _hash_of(content: memoryview) -> bytes:
    return sha256(content).digest()
