"""Copies of the arrays a user gave, held in this process while an expression needs them."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from typing import IO, Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, freeze, uninitialized
from matnb.expr.nodes import Data, Expr, Literal, Regrid
from matnb.expr.stable_order import named_at_random

LITERAL_BYTES = 256  # up to here a constant lies inside its node
SHIP_BYTES = 64 * 10**6  # above this an array goes to the workers at once, and its copy here takes no memory
_ALIGNED_BYTES = 64
_HASHED_BYTES = 1 << 20

_held: WeakKeyDictionary[Expr, Block] = WeakKeyDictionary()
_extents: WeakKeyDictionary[Expr, tuple[int, int]] = WeakKeyDictionary()
_shipped: WeakSet[Expr] = WeakSet()  # what was large when it was given


def given(block: Block, names: bytes = b"") -> tuple[Expr, bool]:
    """Return the expression of a user's array, and whether it must be shipped now.

    The array is copied unless it must be shipped, so what the user does with it changes nothing; who
    ships it keeps a copy. Of other ``names`` the same data is another sparse array.
    """
    if isinstance(block, Dense) and block.nbytes <= LITERAL_BYTES:
        return Literal(block.values.tobytes(), block.shape, block.dtype), False
    content = sha256(_content(block) + names).digest()[:16] if names else _content(block)
    node = Data(content, block.shape, block.dtype, not isinstance(block, Dense))
    if block.nbytes > SHIP_BYTES:
        _shipped.add(node)
        return node, True
    if node not in _held:
        _held[node] = freeze(copied(block))
    return node, False


def owned(block: Block) -> Expr:
    """Return the expression of an array that nobody else has: taken as it is, with a name of its own.

    What is read once and then gone is neither copied nor hashed; read again, it is another expression. It is
    not a constant, however small, so that a loop that begins with another one has the same plan.
    """
    node = named_at_random(Data(os.urandom(16), block.shape, block.dtype, not isinstance(block, Dense)))
    _held[node] = freeze(block)
    return node


def lost_copy(node: Expr) -> Block | None:
    """Return the copy of an array that is sent to the workers as a whole, and again when it was lost."""
    return _held.get(node) if node in _shipped else None


def keep_copy(node: Expr, block: Block) -> None:
    """Hold a copy of an array in the memory of this process."""
    _held[node] = freeze(copied(block))


def keep_in_file(node: Expr, block: Block) -> bool:
    """Hold a copy of an array in a file without a name, which goes with the expression and with this process.

    It takes as much of the folder for temporary files as the array has bytes, and no memory that the system
    could not take back.

    Returns
    -------
    bool
        Whether there was room for it; twice as much must be free.
    """
    if shutil.disk_usage(tempfile.gettempdir()).free < 2 * block.nbytes:
        return False
    try:
        with tempfile.TemporaryFile(prefix="matnb-") as file:
            _held[node] = _in_file(block, file)
    except OSError:  # such as a quota
        return False
    return True


def _in_file(block: Block, file: IO[bytes]) -> Block:
    # The same block over read-only pages of the file.
    match block:
        case Dense(values):
            arrays: tuple[NumericArray | None, ...] = (np.ascontiguousarray(values),)
        case Csr(_, pointers, columns, values, _):
            arrays = (pointers, columns, values)
        case Empty():
            return block
    begins = []
    for array in arrays:
        file.write(b"\0" * (-file.tell() % _ALIGNED_BYTES))
        begins.append(file.tell())
        if array is not None:
            file.write(array.data.cast("B") if array.size else b"")
    file.write(b"\0")  # an empty file cannot be mapped
    file.flush()
    pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def there(array: NumericArray, begin: int) -> NumericArray:
        flat: NumericArray = np.frombuffer(pages, array.dtype, array.size, begin)
        return flat.reshape(array.shape)

    found = [
        None if array is None else there(array, begin) for array, begin in zip(arrays, begins, strict=True)
    ]
    if isinstance(block, Dense):
        assert found[0] is not None
        return Dense(found[0])
    changed: dict[str, Any] = dict(zip(("pointers", "columns", "values"), found, strict=True))
    return replace(block, **changed)


def held(node: Expr) -> Block | None:
    """Return the copy of a user's array, however it is to be cut; None where it lives on workers only."""
    while isinstance(node, Regrid):
        node = node.operand
    return _held.get(node)


def extent(node: Expr) -> tuple[int, int] | None:
    """Return the least and the greatest of integers that a user gave, found once; None as :func:`held`."""
    while isinstance(node, Regrid):
        node = node.operand
    block = _held.get(node)
    if not isinstance(block, Dense) or not block.values.size:
        return None
    if node not in _extents:
        _extents[node] = int(block.values.min()), int(block.values.max())
    return _extents[node]


def copied(block: Block) -> Block:
    """Return a block that shares no memory with the given one."""
    match block:
        case Dense(values):
            own = uninitialized(values.shape, values.dtype)
            own[...] = values
            return Dense(own)
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
