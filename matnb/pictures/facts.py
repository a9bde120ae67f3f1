"""What a picture of an array is drawn from: numbers and words only, never the array."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArrayFacts:
    """Facts of one array.

    Parameters
    ----------
    shape, dtype, sparse
        As of the array; ``dtype`` by its NumPy name.
    pattern
        True when only the pattern is stored and every entry is 1.
    stored
        True when its blocks are on the workers; then the fields below are known.
    nnz, num_bytes
        Stored entries and bytes over all blocks, or None.
    cuts
        For each axis the increasing positions (0, ..., length), or None while the array is lazy.
    owners, block_nnz
        Of every block, last axis fastest.
    expression
        One line that says how the array is made.
    value
        The elements as text, where the array is small and was computed.
    """

    shape: tuple[int, ...]
    dtype: str
    sparse: bool
    pattern: bool = False
    stored: bool = False
    nnz: int | None = None
    num_bytes: int | None = None
    cuts: tuple[tuple[int, ...], ...] | None = None
    owners: tuple[int, ...] = ()
    block_nnz: tuple[int, ...] = ()
    expression: str = ""
    value: str = ""
