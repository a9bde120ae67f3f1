"""Values as meanings see them: NumPy arrays, and SciPy CSR arrays whose stored entries are their pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from matnb.blocks.formats import Block, Dense, csr_block, to_numpy, to_scipy

Value: TypeAlias = np.ndarray | sp.csr_array


def dense(value: Value) -> np.ndarray:
    """Return a value as a NumPy array."""
    if not sp.issparse(value):
        return value
    found = np.zeros(value.shape, value.dtype)
    found[positions(value)] = value.data  # toarray() adds them to zeros, which makes 0.0 of -0.0
    return found


def value_of(block: Block) -> Value:
    """Return a block as a value."""
    return to_numpy(block) if isinstance(block, Dense) else to_scipy(block)


def block_of(value: Value) -> Block:
    """Return a value as a block with memory of its own."""
    return csr_block(value.copy()) if sp.issparse(value) else Dense(np.array(value))


def positions(value: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of stored entries."""
    return np.repeat(np.arange(value.shape[0]), np.diff(value.indptr)), value.indices


def flat_positions(value: sp.csr_array) -> np.ndarray:
    """Return the places of stored entries in the array read row by row, in ascending order."""
    rows = np.repeat(np.arange(value.shape[0], dtype=np.int64), np.diff(value.indptr))
    return rows * value.shape[1] + value.indices


def from_flat_positions(places: np.ndarray, data: np.ndarray, shape: Sequence[int]) -> sp.csr_array:
    """Return the sparse array whose entries are at such places, which ascend."""
    columns = max(1, shape[1])
    pointers = np.searchsorted(places, np.arange(shape[0] + 1, dtype=np.int64) * columns)
    return sp.csr_array((data, places % columns, pointers), shape=(shape[0], shape[1]))
