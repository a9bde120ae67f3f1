"""The extremes of each row of functions of a product of dense matrices, which is made a tile at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Block, Dense, NumericArray, to_numpy
from matnb.blocks.kernels.compiled import compiled, given
from matnb.blocks.kernels.elementwise.elementwise import Link
from matnb.blocks.kernels.rows.row_tiles import TileChain, spans, tile_room
from matnb.blocks.kernels.sorting.ordering import add_firsts, pack_firsts

# Elements and rows of a tile: as many rows as BLAS needs to be fast, in columns that stay in the near caches
# with what functions need beside them.
_TILE, _FEWEST_ROWS, _MOST_ROWS, _MOST_COLUMNS = 1 << 18, 256, 1 << 12, 1 << 11
_NARROW = 32  # columns up to which a call of NumPy's for a row takes longer than to go through it


@dataclass(frozen=True)
class RowSearch:
    """What is looked for in each row.

    Attributes
    ----------
    count
        Of the first elements in order, or 0 for the extreme, which the first NaN is where there is one.
    is_largest
        Whether elements come in descending order, with NaN first, or the extreme is the greatest.
    """

    count: int
    is_largest: bool


def row_extremes(
    values: Sequence[Block], product: np.dtype, links: tuple[Link, ...], search: RowSearch
) -> Dense:
    """Return the places and values of what is looked for in each row, packed as ``pack_firsts`` does.

    Parameters
    ----------
    values
        Two dense matrices, and further operands of the functions: numbers, rows and columns.
    product
        The dtype of the product and of both matrices, in single or double precision.
    links
        The functions. They number the product first, then the further operands, then themselves in order.

    Returns
    -------
    Dense
        Of shape (rows, columns found, bytes). Peak memory: the result twice, and a tile for each value that
        is alive, some of which the thread keeps.
    """
    left, right, *others = (to_numpy(one) for one in values)
    rows, columns = len(left), right.shape[1]
    height, width = _tile_shape(columns)
    chain = TileChain(links, product, 1 + len(others))
    found = _RowFirsts(rows, chain.dtype, search)
    memory = tile_room.take((height * width,), product)
    with np.errstate(all="ignore"):
        for top, bottom in spans(rows, height):
            own = [one[top:bottom] if one.ndim == 2 and len(one) > 1 else one for one in others]
            for begin, end in spans(columns, width):
                shape = (bottom - top, end - begin)
                tile = memory[: shape[0] * shape[1]].reshape(shape)
                np.matmul(left[top:bottom], right[:, begin:end], out=tile)
                read = [one[..., begin:end] if one.ndim and one.shape[-1] > 1 else one for one in own]
                made = chain.run([tile, *read])
                found.add(slice(top, bottom), begin, made)
                if made is not tile:
                    tile_room.give(made)
    tile_room.give(memory)
    return pack_firsts(found.places, found.values)


def _tile_shape(columns: int) -> tuple[int, int]:
    width = max(1, min(columns, _MOST_COLUMNS))
    return min(max(_FEWEST_ROWS, _TILE // width), _MOST_ROWS), width


@compiled
def narrow_extremes(tile: NumericArray, is_largest: bool, values: NumericArray, places: NumericArray) -> None:
    """Find the extreme of each row and where it first is: the first NaN, where there is one."""
    for row in range(tile.shape[0]):
        value, place = tile[row, 0], 0
        has_nan = value != value
        for column in range(1, tile.shape[1]):
            one = tile[row, column]
            has_nan |= one != one
            is_better = one > value if is_largest else one < value
            value = one if is_better else value
            place = column if is_better else place
        if has_nan:
            place = 0
            while tile[row, place] == tile[row, place]:
                place += 1
            value = tile[row, place]
        values[row], places[row] = value, place


class _RowFirsts:
    # What was found in the columns up to now.

    def __init__(self, rows: int, dtype: np.dtype, search: RowSearch) -> None:
        self._search = search
        shape = (rows, max(1, search.count))
        self.values, self.places = np.empty(shape, dtype), np.zeros(shape, np.int64)

    def add(self, rows: slice, begin: int, tile: NumericArray) -> None:
        values, places = self.values[rows], self.places[rows]
        if self._search.count:
            add_firsts(given(tile), begin, self._search.is_largest, values, places)
            return
        if not begin and tile.shape[1] <= _NARROW:
            narrow_extremes(given(tile), self._search.is_largest, values[:, 0], places[:, 0])
            return
        find: Callable[..., npt.NDArray[np.intp]] = np.argmax if self._search.is_largest else np.argmin
        at = find(tile, axis=1, keepdims=True)
        extremes = np.take_along_axis(tile, at, axis=1)
        if begin:
            better = extremes > values if self._search.is_largest else extremes < values
            better |= (extremes != extremes) & (values == values)
            at, extremes = np.where(better, at + begin, places), np.where(better, extremes, values)
        values[...], places[...] = extremes, at
