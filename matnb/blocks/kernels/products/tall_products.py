"""Products of a tall matrix's transpose with row-wise functions, a few rows at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.rows.row_tiles import TileChain, spans, tile_room

# Elements and rows of a tile, which stays in a core's own cache with what functions need beside it; more rows
# where it is narrow, fewer calls then.
_TILE, _FEWEST_ROWS, _MOST_ROWS = 1 << 16, 256, 1 << 13


@dataclass(frozen=True)
class TallFactor:
    """What the transpose is multiplied with: an array, or functions of arrays.

    Attributes
    ----------
    num_operands
        How many are read. The first has all elements: a matrix, or a vector where there are no functions.
    links
        The functions, of which the last one's value is multiplied. They number the operands first, then
        themselves in order.
    """

    num_operands: int
    links: tuple[Link, ...] = ()


def rows_of_tile(columns: int) -> int:
    """Return how many rows a tile has, by the columns of the widest of what is read."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _TILE // max(1, columns)))


def tall_products(values: Sequence[Block], factors: tuple[TallFactor, ...]) -> Dense:
    """Return the products of the transpose of a dense matrix with each factor, side by side.

    Rows are read in their order, a tile at a time by all factors; what functions give is never there as a
    whole. BLAS sums in the matrix's precision, in tiles that are counted from the first row given.

    Parameters
    ----------
    values
        The matrix, in single or double precision, and the operands of all factors in order: arrays of as many
        rows, and what functions stretch to these. What is multiplied has the matrix's dtype.
    factors
        What they make up.

    Returns
    -------
    Dense
        Of shape (columns of the matrix, columns of all factors); a vector has one. Peak memory: the result
        three times, and a tile for each value that is alive, some of which the thread keeps.
    """
    left, *others = (to_numpy(one) for one in values)
    places = np.cumsum([0, *(one.num_operands for one in factors)])
    sums = [
        _Sum(left, factor, others[start : start + factor.num_operands])
        for factor, start in zip(factors, places, strict=False)
    ]
    height = rows_of_tile(max([left.shape[1], *(one.width for one in sums)]))
    with np.errstate(all="ignore"):
        for top, bottom in spans(len(left), height):
            turned = left[top:bottom].T
            for one in sums:
                one.add(turned, top, bottom)
    return Dense(np.concatenate([one.total.reshape(left.shape[1], -1) for one in sums], axis=1))


class _Sum:
    # The product with a factor, of the rows up to now.

    def __init__(self, left: NumericArray, factor: TallFactor, operands: list[NumericArray]) -> None:
        self._operands, self._chain = operands, None
        if factor.links:
            self._chain = TileChain(factor.links, operands[0].dtype, len(operands))
        self.width = operands[0].shape[1] if operands[0].ndim == 2 else 1
        self.total = np.zeros((left.shape[1], *operands[0].shape[1:]), left.dtype)
        self._part = np.empty_like(self.total)

    def add(self, turned: NumericArray, top: int, bottom: int) -> None:
        first, *others = self._operands
        rows = first[top:bottom]
        if self._chain is None:
            np.matmul(turned, rows, out=self._part)
        else:
            tile = tile_room.take(rows.shape, first.dtype)
            tile[...] = rows
            read = [one[top:bottom] if one.ndim == 2 and len(one) > 1 else one for one in others]
            made = self._chain.run([tile, *read])
            np.matmul(turned, made, out=self._part)
            tile_room.give(tile)
            if made is not tile:
                tile_room.give(made)
        np.add(self.total, self._part, out=self.total)
