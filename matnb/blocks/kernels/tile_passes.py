"""A program of the tile machine for operands of certain forms, and how it runs over a range part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from matnb.blocks.formats import NumericArray
from matnb.blocks.kernels import tile_loops as loops
from matnb.blocks.kernels.compiled import given
from matnb.blocks.kernels.sum_loops import ROOM, push_run, sum_stack

FLOAT, TRUTH = np.dtype(np.float64), np.dtype(np.bool_)
_MOST_NODES = 128  # of a sum on the way


@dataclass(frozen=True)
class TileSum:
    """A sum over all elements, of which the first has the global place ``start``.

    Its share has ``num_nodes``; None for the value of the whole tree.
    """

    start: int
    num_nodes: int | None


@dataclass(frozen=True)
class Tiles:
    """A program of the machine for operands of certain forms.

    Attributes
    ----------
    shape, dtype
        Of the result.
    length
        How many elements each operand has that has more than one.
    code, num_first, num_buffers
        As ``run_tiles`` has them; how many values there are besides inputs.
    input_places, truth_places
        Operands of double precision, and of truths, of all elements.
    last, direct
        The value that is wanted, and whether its function may write it where it goes.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    length: int
    code: loops.Integers
    num_first: int
    num_buffers: int
    _numbers: NumericArray
    _number_places: tuple[tuple[int, int], ...]  # in numbers, and among the operands
    input_places: tuple[int, ...]
    truth_places: tuple[int, ...]
    last: int
    direct: bool
    _ending: TileSum | None

    @property
    def start(self) -> int:
        """Global place of the first element, where a sum is wanted."""
        return 0 if self._ending is None else self._ending.start

    @property
    def is_whole_sum(self) -> bool:
        """Whether it is the value of the whole tree."""
        return self._ending is not None and self._ending.num_nodes is None

    @property
    def is_sum(self) -> bool:
        """Whether the result is a sum, so that parts come one after the other."""
        return self._ending is not None

    def begin(self, operands: Sequence[NumericArray], out: NumericArray) -> Pass:
        """Return what writes the result, part by part, into contiguous memory of its shape and dtype.

        The memory may be that of an operand of this shape. Memory besides: a few tiles a part.

        Parameters
        ----------
        operands
            Of the forms that the program was written for, without the product.
        """
        numbers = self._numbers
        if self._number_places:
            numbers = numbers.copy()
            for number, place in self._number_places:
                numbers[number] = operands[place].item()
        return Pass(self, operands, numbers, out)


class Pass:
    """One run of a program over its operands; parts of sums run one after the other, others side by side."""

    def __init__(
        self, tiles: Tiles, operands: Sequence[NumericArray], numbers: NumericArray, out: NumericArray
    ) -> None:
        self._tiles, self._numbers, self._out = tiles, numbers, out
        self._kept = operands  # whose addresses follow
        self._inputs = [_address(operands[place]) for place in tiles.input_places]
        self._truths = np.zeros(loops.NUM_TRUTHS, np.int64)
        for number, place in enumerate(tiles.truth_places):
            self._truths[number] = _address(operands[place])
        self._target = 0 if tiles.is_sum else _address(out)
        self._top = 0
        if tiles.is_sum:
            self._stack, self._group = np.empty(_MOST_NODES), np.empty(ROOM)

    def run(
        self,
        begin: int,
        end: int,
        buffers: NumericArray,
        product: NumericArray | None = None,
        room: NumericArray | None = None,
    ) -> None:
        """Run the part from one place to another.

        Parameters
        ----------
        begin, end
            Where sums are wanted, each part but the last ends at a multiple of 64 of the global places.
        buffers
            For the program's values, ``num_buffers`` times a tile.
        product
            Its elements alone, where there is one.
        room
            For as many elements, where sums are wanted.
        """
        tiles = self._tiles
        places = np.arange(tiles.num_buffers + loops.NUM_INPUTS)
        places *= loops.TILE * loops.ITEM
        places += _address(buffers)
        steps = np.zeros(places.size, np.int64)
        for number, address in enumerate(self._inputs):
            places[~number], steps[~number] = address, loops.ITEM
        if product is not None:
            places[0], steps[0] = _address(product) - begin * loops.ITEM, loops.ITEM
        target = self._target if room is None else _address(room) - begin * loops.ITEM
        # Loops that write where they read are not made of wide instructions.
        if tiles.direct and target not in self._inputs:
            places[tiles.last], steps[tiles.last] = target, loops.ITEM
        to_truths = tiles.dtype == TRUTH
        loops.run_tiles(
            tiles.code, tiles.num_first, self._numbers, buffers, places, steps, self._truths,
            tiles.last, begin, end, target, to_truths,
        )  # fmt: skip
        if room is not None:
            self._add(begin, end, given(room))

    def _add(self, begin: int, end: int, values: NumericArray) -> None:
        # The nodes of a sum's part, and its end.
        tiles, at = self._tiles, self._tiles.start + begin
        is_whole, nodes = tiles.is_whole_sum, self._stack
        self._top = push_run(
            values, -at, at, tiles.start + end, tiles.start, is_whole, nodes, self._top, self._group
        )
        if end == tiles.length and is_whole:
            self._out[0] = sum_stack(nodes, self._top)
        elif end == tiles.length:
            self._out[: self._top] = nodes[: self._top]


def _address(array: NumericArray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
