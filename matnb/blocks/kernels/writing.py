"""Sparse blocks with elements written over: entries that go, and new ones that come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from matnb.blocks.formats import Block, Csr, Dense, Empty, NumericArray, csr_block, to_numpy, to_scipy
from matnb.blocks.grid import Region
from matnb.blocks.kernels.access import local_place

Places: TypeAlias = npt.NDArray[np.integer]
New: TypeAlias = tuple[Places, Places, NumericArray]  # rows, columns and values, no place twice


def put_sparse(
    values: Sequence[Block],
    key: tuple[tuple[int, int, int] | int | None, ...],
    region: Region,
    shape: tuple[int, ...],
) -> Block:
    """Return a sparse block with a value written at a place of the whole array, as PutAt does to dense ones.

    Parameters
    ----------
    values
        The block, the value, which broadcasts and may be sparse, and the places that ``key`` leaves out.
    """
    block, new = values[0], values[1]
    place = local_place(key, region, shape, values[2:])
    assert not isinstance(block, Dense), "a sparse array's"
    if place is None:
        return block
    axes = [
        range(length)[one if isinstance(one, slice) else slice(one, one + 1)]
        for one, length in zip(place, block.shape, strict=True)
    ]
    target = tuple(len(one) for one in axes)
    rows: Places
    columns: Places
    if isinstance(new, Dense):
        dropped = tuple(number for number, one in enumerate(place) if not isinstance(one, slice))
        values_there = new.values
        if values_there.any():
            kept = tuple(length for number, length in enumerate(target) if number not in dropped)
            whole = np.broadcast_to(values_there, kept).reshape(target)
            rows, columns = np.nonzero(whole)
            entries = whole[rows, columns]
        else:
            rows = columns = np.zeros(0, np.int64)
            entries = np.zeros(0, block.dtype)
    else:
        matrix = to_scipy(new)
        rows = np.repeat(np.arange(new.shape[0]), np.diff(matrix.indptr))
        columns, entries = matrix.indices, matrix.data
    there = [
        one.start + one.step * local.astype(np.int64)
        for one, local in zip(axes, (rows, columns), strict=True)
    ]
    return replaced(block, None, None, (axes[0], axes[1]), (there[0], there[1], entries))


def put_where(values: Sequence[Block]) -> Block:
    """Return a sparse block with a value, which broadcasts, written where booleans are true."""
    block, mask, new = values
    assert not isinstance(block, Dense), "a sparse array's"
    rows, columns = np.nonzero(np.broadcast_to(to_numpy(mask), block.shape))
    entries = np.broadcast_to(to_numpy(new), block.shape)[rows, columns]
    return replaced(block, rows, columns, None, (rows, columns, entries))


def replaced(
    block: Csr | Empty,
    rows: Places | None,
    columns: Places | None,
    crossing: tuple[Places | range | None, Places | range | None] | None,
    new: New,
) -> Csr | Empty:
    """Return a sparse block without what was at some places, and with new entries there; no zeros among them.

    Parameters
    ----------
    rows, columns
        Of each place, or None for
    crossing
        all where these rows and columns cross; None stands for all rows, or all columns.
    new
        The entries that come.
    """
    matrix = to_scipy(block)
    height, width = block.shape
    old_rows = np.repeat(np.arange(height), np.diff(matrix.indptr))
    if crossing is None:
        assert rows is not None
        assert columns is not None
        stays = ~np.isin(old_rows * width + matrix.indices, rows * width + columns)
    else:
        stays = ~(_among(old_rows, crossing[0]) & _among(matrix.indices, crossing[1]))
    wanted = new[2] != 0
    made = sp.coo_array(
        (
            np.concatenate([matrix.data[stays], new[2][wanted].astype(block.dtype)]),
            (
                np.concatenate([old_rows[stays], new[0][wanted]]),
                np.concatenate([matrix.indices[stays], new[1][wanted]]),
            ),
        ),
        shape=block.shape,
    )
    result = sp.csr_array(made)
    result.sort_indices()
    return csr_block(result)


def _among(places: Places, chosen: Places | range | None) -> npt.NDArray[np.bool_]:
    if chosen is None:
        return np.ones(len(places), np.bool_)
    if isinstance(chosen, range):  # not listed, as it may be all of a long axis
        turn, rest = np.divmod(places.astype(np.int64) - chosen.start, chosen.step)
        return np.asarray((rest == 0) & (turn >= 0) & (turn < len(chosen)))
    return np.isin(places, chosen)
