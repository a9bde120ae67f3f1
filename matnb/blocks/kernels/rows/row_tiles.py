"""Functions of some rows of dense matrices at a time, in memory that each thread keeps."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from matnb.blocks.formats import NumericArray, cast
from matnb.blocks.kernels.compiled import compiled
from matnb.blocks.kernels.elementwise.elementwise import Link, compute, function_named

TILE_BYTES = 16 * 2**20  # of a thread at most: tiles of values that are alive


class TileRoom(threading.local):
    """Memory of a thread for tiles: kept, since loops call for it often."""

    def __init__(self) -> None:
        self._free: dict[np.dtype, list[NumericArray]] = {}

    def take(self, shape: tuple[int, ...], dtype: np.dtype) -> NumericArray:
        """Return an array in C order with any elements."""
        size = int(np.prod(shape))
        own = self._free.setdefault(dtype, [])
        memory = own.pop() if own else np.empty(0, dtype)
        if memory.size < size:
            memory = np.empty(size, dtype)
        return memory[:size].reshape(shape)

    def give(self, array: NumericArray) -> None:
        """Get an array back that ``take`` gave."""
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        own = self._free.setdefault(array.dtype, [])
        if base.nbytes <= TILE_BYTES and len(own) < 4:
            own.append(base.reshape(-1))


tile_room = TileRoom()


def spans(length: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield where each piece of an axis begins and ends; all but the last have the size."""
    for begin in range(0, length, size):
        yield begin, min(length, begin + size)


# Steps of arithmetic, each of what the one before gave and a row, a column or a number, go row by row while a
# row is in the nearest cache. NumPy's loops take three times as long where an operand is stretched.
_ADD, _SUBTRACT, _SUBTRACT_FROM, _MULTIPLY = range(4)
_STEPS = {"add": (_ADD, _ADD), "subtract": (_SUBTRACT, _SUBTRACT_FROM), "multiply": (_MULTIPLY, _MULTIPLY)}


@compiled
def run_steps(
    tile: NumericArray,
    steps: NumericArray,
    is_across: NumericArray,
    across: NumericArray,
    down: NumericArray,
) -> None:
    """Do steps of arithmetic to a tile, in its place: with rows ``across`` it, or columns ``down``."""
    width = tile.shape[1]
    for row in range(tile.shape[0]):
        for number in range(steps.size):
            step, x = steps[number], down[number, row]
            if is_across[number]:
                if step == _ADD:
                    for j in range(width):
                        tile[row, j] += across[number, j]
                elif step == _SUBTRACT:
                    for j in range(width):
                        tile[row, j] -= across[number, j]
                elif step == _SUBTRACT_FROM:
                    for j in range(width):
                        tile[row, j] = across[number, j] - tile[row, j]
                else:
                    for j in range(width):
                        tile[row, j] *= across[number, j]
            elif step == _ADD:
                for j in range(width):
                    tile[row, j] += x
            elif step == _SUBTRACT:
                for j in range(width):
                    tile[row, j] -= x
            elif step == _SUBTRACT_FROM:
                for j in range(width):
                    tile[row, j] = x - tile[row, j]
            else:
                for j in range(width):
                    tile[row, j] *= x


class _Arithmetic:
    # Links that are such steps, looked at once; what they read beside the tile, for one tile at a time.

    def __init__(self, steps: list[tuple[int, int]], dtype: np.dtype) -> None:
        self._steps, self._dtype = np.array([step for step, _ in steps], np.uint8), dtype
        self._places = [place for _, place in steps]

    def run(self, arrays: list[NumericArray]) -> None:
        tile, count = arrays[0], len(self._places)
        across, down = (
            np.zeros((count, tile.shape[1]), self._dtype),
            np.zeros((count, len(tile)), self._dtype),
        )
        is_across = np.zeros(count, np.bool_)
        for number, place in enumerate(self._places):
            one = arrays[place]
            if one.ndim and one.shape[-1] > 1:
                across[number], is_across[number] = one.reshape(-1), True
            else:
                down[number] = one.reshape(-1)
        run_steps(tile, self._steps, is_across, across, down)


def _arithmetic_of(links: tuple[Link, ...], product: np.dtype, num_operands: int) -> _Arithmetic | None:
    # None where a link is another function, or reads anything else.
    found: list[tuple[int, int]] = []
    before = 0
    for number, link in enumerate(links):
        if link.name not in _STEPS or {link.dtype, *link.input_dtypes} != {product}:
            return None
        others = [place for place in link.arguments if place != before]
        if len(others) != 1 or not 0 < others[0] < num_operands:
            return None
        found.append((_STEPS[link.name][link.arguments[0] != before], others[0]))
        before = num_operands + number
    return _Arithmetic(found, product) if found else None


class TileChain:
    """Functions of a tile and of what is stretched to it, looked at once.

    Parameters
    ----------
    links
        The functions. They number the tile first, then the further operands, then themselves in order.
    first
        The dtype of the tile.
    num_operands
        How many there are, with the tile.

    Attributes
    ----------
    dtype
        Of what the last function gives; without any, of the tile.
    """

    def __init__(self, links: tuple[Link, ...], first: np.dtype, num_operands: int) -> None:
        self.dtype = links[-1].dtype if links else first
        self._arithmetic = _arithmetic_of(links, first, num_operands)
        self._links = [(link, _ufunc_of(link)) for link in links]
        self._last = {place: link for link in links for place in link.arguments}

    def run(self, arrays: list[NumericArray]) -> NumericArray:
        """Return what the last function gives: in the first array, or in room that was taken."""
        # Each value goes with its last reader, whose value may be where it was.
        values, tile = list(arrays), arrays[0]
        if self._arithmetic is not None:
            self._arithmetic.run(arrays)
            return tile
        for link, ufunc in self._links:
            operands = [
                cast(values[place], dtype)
                for place, dtype in zip(link.arguments, link.input_dtypes, strict=True)
            ]
            gone = [
                values[place]
                for place in dict.fromkeys(link.arguments)
                if self._last[place] is link and (place == 0 or place >= len(arrays))
            ]
            fitting = [one for one in gone if one.dtype == link.dtype]
            out = fitting[0] if fitting else tile_room.take(tile.shape, link.dtype)
            if ufunc is None:
                out[...] = compute(link.name, operands, link.input_dtypes, link.dtype, link.output)
            else:
                ufunc(*operands, out=out)
            for one in gone:
                if one is not out and one is not tile:
                    tile_room.give(one)
            values.append(out)
        return values[-1] if self._links else tile


def _ufunc_of(link: Link) -> np.ufunc | None:
    # What makes the value of a link at once, in its dtype.
    function = function_named(link.name)
    if not isinstance(function, np.ufunc) or function.nout > 1:
        return None
    made = function(*(np.empty(0, dtype) for dtype in link.input_dtypes)).dtype
    return function if made == link.dtype else None
