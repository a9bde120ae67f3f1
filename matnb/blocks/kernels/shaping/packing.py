"""Elements or rows taken out and put back by their places; the places that a block's columns touch."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from matnb.blocks.formats import Csr, NumericArray
from matnb.blocks.kernels.compiled import UnsignedArray, compiled, given, is_worth_compiling, unsigned

_WORDS: dict[int, np.dtype] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}


def can_pack(values: NumericArray) -> bool:
    """Tell whether elements or rows of an array can be packed: they move as words of its elements' size."""
    return 1 <= values.ndim <= 2 and values.flags.c_contiguous and values.dtype.itemsize in _WORDS


def touched(block: Csr, first: int, length: int, seen: npt.NDArray[np.uint8]) -> None:
    """Set ``seen`` to 1 at each place whose column, ``first`` + place, has an entry in a block.

    Raises
    ------
    ValueError
        When ``seen`` has not ``length`` places.
    """
    if seen.size != length:
        raise ValueError(f"{seen.size} places to mark, of {length}")
    marked = unsigned(block.columns), np.uint64(first), np.uint64(length), seen
    if is_worth_compiling(_mark, block.nnz, *marked):
        _mark(*marked)
    else:
        inside = (block.columns >= first) & (block.columns < first + length)
        seen[block.columns[inside] - first] = 1


def pack(values: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    """Write the elements, or rows, at some places, one after the other; all are contiguous, of one dtype."""
    word: np.dtype = _WORDS[values.dtype.itemsize]
    gather = _gather if values.ndim == 1 else _gather_rows
    arrays = given(values.view(word)), given(places), out.view(word)
    if is_worth_compiling(gather, out.size, *arrays):
        gather(*arrays)
    else:
        arrays[2][...] = arrays[0][places]


def unpack(packed: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    """Write elements, or rows, that were packed at their places; the others stay as they are."""
    word: np.dtype = _WORDS[packed.dtype.itemsize]
    scatter = _scatter if packed.ndim == 1 else _scatter_rows
    arrays = given(packed.view(word)), given(places), out.view(word)
    if is_worth_compiling(scatter, packed.size, *arrays):
        scatter(*arrays)
    else:
        arrays[2][places] = arrays[0]


@compiled
def _mark(columns: UnsignedArray, first: np.uint64, length: np.uint64, seen: npt.NDArray[np.uint8]) -> None:
    for k in range(columns.size):
        place = np.uint64(columns[k]) - first  # of a column before the first: more than any length
        if place < length:
            seen[place] = 1


@compiled
def _gather(values: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        out[k] = values[places[k]]


# By elements: Numba takes 20 ns to begin with each row that is assigned as a whole.
@compiled
def _gather_rows(values: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        for j in range(out.shape[1]):
            out[k, j] = values[places[k], j]


@compiled
def _scatter(packed: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        out[places[k]] = packed[k]


@compiled
def _scatter_rows(packed: NumericArray, places: npt.NDArray[np.uint32], out: NumericArray) -> None:
    for k in range(places.size):
        for j in range(out.shape[1]):
            out[places[k], j] = packed[k, j]
