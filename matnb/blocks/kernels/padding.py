"""Blocks with a few more elements around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, narrow

Pairs = tuple[tuple[int, int], ...]
Constants = tuple[tuple[bytes, bytes], ...]


def pad(values: Sequence[Block], widths: Pairs, constants: Constants) -> Block:
    """Return a block with its edges repeated around it, or constants; a sparse one with what is absent.

    Parameters
    ----------
    widths
        For each axis how many are put before and behind.
    constants
        As many, each the bytes of an element; none for the edges.
    """
    (block,) = values
    if isinstance(block, Dense):
        return Dense(padded_values(block.values, widths, constants))
    (top, bottom), (left, right) = widths
    shape = (block.shape[0] + top + bottom, block.shape[1] + left + right)
    if isinstance(block, Empty):
        return Empty(shape, block.dtype)
    return Csr(
        shape,
        np.pad(block.pointers, (top, bottom), mode="edge"),
        narrow(block.columns.astype(np.int64) + left) if left else block.columns,
        block.values,
        block.dtype,
    )


def padded_values(values: NumericArray, widths: Pairs, constants: Constants) -> NumericArray:
    """Return elements with their edges repeated around them, or with constants there."""
    if not constants:
        return np.pad(values, widths, mode="edge")
    numbers = [[np.frombuffer(one, values.dtype)[0] for one in pair] for pair in constants]
    return np.pad(values, widths, constant_values=numbers)
