"""Blocks looked at without the code under test: what is stored, whether it is well formed, what it shares."""

from __future__ import annotations

import numpy as np

from matnb.blocks.formats import Block, Csr, Dense, Empty


def stored(block: Block) -> dict[tuple[int, int], object]:
    """Return the stored entries of a sparse block by row and column."""
    if isinstance(block, Empty):
        return {}
    assert isinstance(block, Csr)
    values = np.ones(block.columns.size, block.dtype) if block.values is None else block.values
    return {
        (row, int(block.columns[place])): values[place]
        for row in range(block.shape[0])
        for place in range(block.pointers[row], block.pointers[row + 1])
    }


def array_of(block: Block) -> np.ndarray:
    """Return every element, absent ones as 0."""
    if isinstance(block, Dense):
        return block.values
    array = np.zeros(block.shape, block.dtype)
    for place, value in stored(block).items():
        array[place] = value
    return array


def mask_of(block: Block) -> np.ndarray:
    """Tell for every element whether it is stored."""
    if isinstance(block, Dense):
        return np.ones(block.shape, np.bool_)
    mask = np.zeros(block.shape, np.bool_)
    for place in stored(block):
        mask[place] = True
    return mask


def assert_well_formed(block: Block) -> None:
    """Check what every kernel's result must hold."""
    match block:
        case Dense(values):
            assert isinstance(values, np.ndarray)
        case Csr(shape, pointers, columns, values, dtype):
            rows, width = shape
            assert pointers.dtype == columns.dtype == np.int32
            assert pointers.shape == (rows + 1,)
            assert pointers[0] == 0
            assert pointers[-1] == columns.size > 0
            assert all(isinstance(length, int) for length in shape)
            for row in range(rows):
                inside = columns[pointers[row] : pointers[row + 1]]
                assert (np.diff(inside) > 0).all()
                assert ((inside >= 0) & (inside < width)).all()
            if values is not None:
                assert values.dtype == dtype
                assert values.shape == columns.shape
        case Empty(shape, _):
            assert all(isinstance(length, int) for length in shape)
        case _:
            raise AssertionError(f"{block!r} is not a block")


def arrays_in(block: Block) -> list[np.ndarray]:
    """Return the arrays that a block holds."""
    match block:
        case Dense(values):
            return [values]
        case Csr(_, pointers, columns, values, _):
            return [pointers, columns] if values is None else [pointers, columns, values]
    return []


def assert_shares_nothing(block: Block, *others: Block) -> None:
    """Check that a block has memory of its own."""
    for mine in arrays_in(block):
        for other in others:
            assert not any(np.shares_memory(mine, theirs) for theirs in arrays_in(other))


def assert_same(found: Block, shape: tuple[int, ...], dtype: np.dtype, array: np.ndarray) -> None:
    """Check shape, dtype and every element; NaN equals NaN."""
    assert_well_formed(found)
    assert found.shape == shape
    assert found.dtype == dtype
    np.testing.assert_array_equal(array_of(found), array)
